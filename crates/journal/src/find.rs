//! Finds a run by what a person types.

use convoke_core::RunId;
use convoke_core::nearest::{did_you_mean, nearest};

use crate::error::JournalError;
use crate::store::Store;

/// How many candidates a message names.
const SHOWN: usize = 5;

/// Why a run was not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// No run has this in its id.
    #[error("there is no run `{wanted}`{}", meant(nearest))]
    None {
        /// What was typed.
        wanted: String,
        /// The runs that are spelled most like it.
        nearest: Vec<RunId>,
    },
    /// More than one run has this in its id.
    #[error("`{wanted}` is part of {} ids: {}; type more of it", candidates.len(), shown(candidates))]
    Ambiguous {
        /// What was typed.
        wanted: String,
        /// The runs it could be, newest first.
        candidates: Vec<RunId>,
    },
    /// The runs could not be listed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

fn meant(nearest: &[RunId]) -> String {
    did_you_mean(&nearest.iter().map(RunId::as_str).collect::<Vec<_>>())
}

fn shown(candidates: &[RunId]) -> String {
    let named: Vec<String> = candidates.iter().take(SHOWN).map(|id| format!("`{id}`")).collect();
    let more = if candidates.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}

impl Store {
    /// Finds the run with this id, or the only one with this in its id.
    pub fn find(&self, wanted: &str) -> Result<RunId, FindError> {
        let ids = self.ids()?;
        if ids.iter().any(|id| id == wanted) {
            return Ok(RunId::new(wanted));
        }
        let mut candidates: Vec<RunId> = ids
            .iter()
            .filter(|id| !wanted.is_empty() && id.contains(wanted))
            .map(|id| RunId::new(id.as_str()))
            .collect();
        candidates.sort_by(|left, right| right.cmp(left));
        match candidates.as_slice() {
            [only] => Ok(only.clone()),
            [] => {
                let nearest = nearest(wanted, ids.iter().map(String::as_str));
                let nearest = nearest.into_iter().map(RunId::new).collect();
                Err(FindError::None { wanted: wanted.to_owned(), nearest })
            }
            _ => Err(FindError::Ambiguous { wanted: wanted.to_owned(), candidates }),
        }
    }

    /// Returns the newest run. Ids sort by time, so this is the last of them.
    pub fn last(&self) -> Result<Option<RunId>, JournalError> {
        Ok(self.ids()?.into_iter().max().map(RunId::new))
    }
}

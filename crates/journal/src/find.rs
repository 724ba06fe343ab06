//! Finds a run by what a person types.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use convoke_core::RunId;
use convoke_core::nearest::{did_you_mean, nearest};

use crate::error::JournalError;
use crate::files;
use crate::store::Store;
use crate::summary::Summary;

/// How many candidates a message names.
const SHOWN: usize = 5;

/// The runs among which the newest is looked for.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// Runs of this directory, given as a path without links.
    Directory(&'a Path),
    /// Those of all directories.
    Everywhere,
}

impl Scope<'_> {
    /// Tells whether a run is one of them. Remembers directories whose links were followed.
    fn includes(self, run: &Summary, followed: &mut HashMap<PathBuf, bool>) -> bool {
        match (self, &run.directory) {
            (Self::Everywhere, _) => true,
            (Self::Directory(_), None) => false,
            (Self::Directory(here), Some(there)) => {
                let is_here = || is_same_directory(there, here);
                *followed.entry(there.clone()).or_insert_with(is_here)
            }
        }
    }
}

/// Tells whether a recorded directory is the one at this path, which has no links.
pub fn is_same_directory(recorded: &Path, present: &Path) -> bool {
    recorded == present || files::canonical(recorded).is_ok_and(|recorded| recorded == present)
}

/// The run that was last worked on.
#[derive(Clone, Debug)]
pub struct Newest {
    /// The run, if there is one in the scope.
    pub run: Option<Summary>,
    /// How many runs are outside of the scope.
    pub elsewhere: usize,
}

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

    /// Finds the run that was last worked on, which need not be the one that was started last. Calls of a server's
    /// clients are no such run: a server may work all day.
    pub fn newest(&self, scope: Scope<'_>, except: Option<&RunId>) -> Result<Newest, JournalError> {
        let mut all = self.list()?;
        all.retain(|run| !run.served && Some(&run.run) != except);
        all.sort_by_key(|run| Reverse(run.last_activity));
        let total = all.len();
        let mut directories = HashMap::new();
        all.retain(|run| scope.includes(run, &mut directories));
        let elsewhere = total - all.len();
        Ok(Newest { run: all.into_iter().next(), elsewhere })
    }
}

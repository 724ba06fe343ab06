//! Conversations that are kept: taking one up again, parting from one, writing one down.

use std::path::{Path, PathBuf};

use convoke::Origin;
use convoke::agent::{Journals, Paused, Reopened};
use convoke::journal::Scope;
use convoke_core::{Mode, RunId};

use super::super::runs::consent::shell_word;
use super::super::runs::{Format, named};
use crate::failure::Failure;
use crate::files;
use crate::session::Session;

/// The journals of a chat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept<'a>(pub(super) Option<&'a Journals>);

impl Kept<'_> {
    /// Takes up an earlier conversation, or the last one but for the present one.
    pub(super) fn resume(
        self,
        id: Option<&str>,
        present: Option<&Paused>,
        session: &Session<'_>,
    ) -> Result<Reopened, Failure> {
        let journals = self.journals()?;
        let run = match id {
            Some(id) => named::find(journals.store(), id)?,
            None => self.last_but(present.map(Paused::id).as_ref(), session)?,
        };
        if present.is_some_and(|present| present.id() == run) {
            return Err(Failure::usage("this is the conversation you are in"));
        }
        let kept = journals.reopen(&run).map_err(|error| named::failure(&error))?;
        stay_here(&run, &kept, session)?;
        Ok(kept)
    }

    fn last_but(self, present: Option<&RunId>, session: &Session<'_>) -> Result<RunId, Failure> {
        let store = self.journals()?.store();
        let scope = Scope::Directory(session.working_directory());
        let newest = store.newest(scope, present).map_err(|error| named::failure(&error))?;
        newest.run.map(|run| run.run).ok_or_else(|| {
            let failure = Failure::usage("there is no earlier conversation in this directory");
            match newest.elsewhere {
                0 => failure,
                _ => failure.hint("`convoke runs list` shows those of all directories"),
            }
        })
    }

    /// Begins a conversation that is like this one up to an event, or to its end.
    pub(super) fn fork(self, from: &Paused, seq: Option<u64>) -> Result<Reopened, Failure> {
        let journals = self.journals()?;
        let all = || {
            let recorded = journals.store().read(&from.id());
            recorded.map(|recorded| recorded.events.len() as u64)
        };
        let at = seq.map_or_else(all, Ok).map_err(|error| named::failure(&error))?;
        journals.fork(&from.id(), at).map_err(|error| named::failure(&error))
    }

    /// Writes a conversation to a file, or to one that is named after it. Returns its path.
    pub(super) fn export(
        self,
        from: &Paused,
        file: Option<&str>,
        directory: &Path,
    ) -> Result<PathBuf, Failure> {
        let id = from.id();
        let path = file.map_or_else(|| format!("run-{id}.html").into(), PathBuf::from);
        let format = Format::of(&path).ok_or_else(|| {
            Failure::usage(format!("`{}` does not say what to write", path.display()))
                .hint("a name that ends with .html, .md or .jsonl does")
        })?;
        let recorded = self.journals()?.store().read(&id);
        let recorded = recorded.map_err(|error| named::failure(&error))?;
        let cannot = |error: &std::io::Error| {
            Failure::failed(format!("`{}` cannot be written", path.display())).because(error)
        };
        let text = format.text(&recorded).map_err(|error| cannot(&error))?;
        files::put(&directory.join(&path), &text).map_err(|error| cannot(&error))?;
        Ok(path)
    }

    fn journals(&self) -> Result<&Journals, Failure> {
        self.0.ok_or_else(|| {
            Failure::usage("nothing of this conversation is kept")
                .hint("leave out --no-journal, or name a place with --state")
        })
    }
}

/// Refuses a conversation of another directory: a chat works in one.
fn stay_here(run: &RunId, kept: &Reopened, session: &Session<'_>) -> Result<(), Failure> {
    let here = session.working_directory();
    let origin = Origin::of(&kept.events);
    let elsewhere = origin.and_then(|origin| origin.compare(here, Mode::Full).directory);
    let Some(elsewhere) = elsewhere else { return Ok(()) };
    let message = format!("run `{run}` works in `{}`, and this chat does not", elsewhere.display());
    let command = format!("convoke --cwd {} chat --resume {run}", shell_word(&elsewhere));
    Err(Failure::usage(message)
        .hint(format!("leave with /quit; `{command}` goes on with it there"))
        .hint(format!("`convoke chat --resume {run} --here` lets it work in this directory")))
}

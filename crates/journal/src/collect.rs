//! Removes old runs.

use std::time::Duration;

use convoke_core::{Cause, RunId, Timestamp};

use crate::error::{JournalError, Tried};
use crate::files;
use crate::name;
use crate::store::{Store, journal_in};
use crate::summary::{Condition, Summary};

/// Nobody takes so long to remove or to copy a run.
const LEFT_BEHIND: Duration = Duration::from_hours(1);

/// Which runs may go. Without any rule, none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Those in which nothing happened for this long.
    pub older_than: Option<Duration>,
    /// The newest runs, this many, never go. As the only rule: all others do.
    pub keep: Option<usize>,
    /// The oldest, until all runs together have no more bytes than this.
    pub max_bytes: Option<u64>,
    /// Whether runs that can still be resumed go too.
    pub unfinished: Unfinished,
}

/// What becomes of runs that have not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unfinished {
    /// They stay.
    #[default]
    Keep,
    /// They go like the others, unless a process works on them.
    Remove,
}

/// What went.
#[derive(Debug, Default)]
pub struct Collection {
    /// The runs that were removed.
    pub removed: Vec<Collected>,
    /// Those that could not be removed, and why.
    pub failed: Vec<(RunId, JournalError)>,
    /// Those whose journals were gone before, though nobody removed them with this program. Their heads
    /// went now.
    pub forgotten: Vec<RunId>,
}

/// A run that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Its id.
    pub run: RunId,
    /// How many bytes it had.
    pub bytes: u64,
}

impl Policy {
    /// Chooses among runs, oldest first.
    fn choose(&self, mut runs: Vec<Summary>, now: Timestamp) -> Vec<Collected> {
        runs.sort_by(|left, right| {
            right.last_activity.cmp(&left.last_activity).then_with(|| right.run.cmp(&left.run))
        });
        let mut total: u64 = runs.iter().map(|run| run.bytes).sum();
        let kept = self.keep.unwrap_or(0);
        let mut chosen = Vec::new();
        for run in runs.iter().skip(kept).rev().filter(|run| self.may_go(run)) {
            let too_old = self.older_than.is_some_and(|age| run.last_activity.after(age) < now);
            let too_much = self.max_bytes.is_some_and(|limit| total > limit);
            let too_many =
                self.keep.is_some() && self.older_than.is_none() && self.max_bytes.is_none();
            if too_old || too_much || too_many {
                total -= run.bytes;
                chosen.push(Collected { run: run.run.clone(), bytes: run.bytes });
            }
        }
        chosen
    }

    fn may_go(&self, run: &Summary) -> bool {
        // What cannot be read may be of a newer program, or in good order behind a disk that is not.
        if run.problem.is_some() {
            return false;
        }
        match run.condition {
            Condition::Running | Condition::Waiting => false,
            Condition::Interrupted
            | Condition::Ended {
                cause: Cause::Interrupted | Cause::Terminated | Cause::AwaitsApproval,
                ..
            } => self.unfinished == Unfinished::Remove,
            // Nothing of it would be lost.
            Condition::NeverStarted | Condition::Ended { .. } => true,
        }
    }
}

impl Store {
    /// Says which runs would go.
    pub fn collectable(
        &self,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Vec<Collected>, JournalError> {
        Ok(policy.choose(self.list()?, now))
    }

    /// Removes the runs that may go. One that cannot be removed does not stop the others.
    pub fn collect(&self, policy: &Policy, now: Timestamp) -> Result<Collection, JournalError> {
        let forgotten = self.tidy(now)?;
        let mut collection = Collection { forgotten, ..Collection::default() };
        for chosen in self.collectable(policy, now)? {
            match self.remove(&chosen.run) {
                Ok(()) => collection.removed.push(chosen),
                Err(error) => collection.failed.push((chosen.run, error)),
            }
        }
        Ok(collection)
    }

    /// Removes what is left of runs that are gone already. Returns those whose journals went without
    /// [`Store::remove`].
    pub fn tidy(&self, now: Timestamp) -> Result<Vec<RunId>, JournalError> {
        self.sweep(now)?;
        self.sweep_heads()
    }

    /// Removes what a process left that died while it removed or copied a run.
    fn sweep(&self, now: Timestamp) -> Result<(), JournalError> {
        let runs = self.runs();
        for name in files::names(&runs).tried("list", &runs)? {
            let path = runs.join(&name);
            let hidden = name.starts_with(".removed-") || name.starts_with(".forked-");
            let is_bare = name::is_valid(&name) && !journal_in(&path).exists();
            if is_bare && files::age(&path, now).is_some_and(|age| age > LEFT_BEHIND) {
                // Its process was lost before it made a journal.
                files::remove_directory(&path).tried("remove", &path)?;
                continue;
            }
            if hidden && files::age(&path, now).is_some_and(|age| age > LEFT_BEHIND) {
                self.sweep_head_of(&name)?;
                files::remove_directory(&path).tried("remove", &path)?;
            }
        }
        Ok(())
    }
}

//! What can go wrong with a journal, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use convoke_core::RunId;
use convoke_core::count::count;

use crate::damage::Damage;
use crate::header::FORMAT;
use crate::owner::Owner;

/// Something about a journal that did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The id cannot be a directory's name.
    #[error("`{id}` cannot name a run: {reason}")]
    InvalidId {
        /// The id, as it can be shown.
        id: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is such a run already.
    #[error("there is a run `{run}` already in `{}`; choose another id, or resume it", path.display())]
    Taken {
        /// Its id.
        run: RunId,
        /// Its directory.
        path: PathBuf,
    },
    /// There is no such run.
    #[error("there is no run `{run}` in `{}`; `convoke runs list` shows all there are", path.display())]
    NotFound {
        /// The id that was wanted.
        run: RunId,
        /// The directory of all runs.
        path: PathBuf,
    },
    /// A process works on the run.
    #[error("run `{run}` is being worked on{}; wait until that ends, or stop it", by(owner.as_ref()))]
    Busy {
        /// Which run.
        run: RunId,
        /// Who, where that could be read.
        owner: Option<Owner>,
    },
    /// A newer program wrote the journal.
    #[error(
        "the journal of run `{run}` has format {found}, and this program knows formats up to {FORMAT}; \
         update the program; nothing was changed"
    )]
    Newer {
        /// Which run.
        run: RunId,
        /// The format that was found.
        found: u64,
    },
    /// The run ended before its journal had a first line.
    #[error(
        "run `{run}` never started: its journal is empty, since its process was lost before anything began"
    )]
    Empty {
        /// Which run.
        run: RunId,
    },
    /// Something changed in the journal that nobody may change.
    #[error("the journal of run `{run}` is damaged: {damage}{}", way_out(run, damage))]
    Damaged {
        /// Which run.
        run: RunId,
        /// Where, and what.
        damage: Damage,
    },
    /// Texts of a run are lost, and everything else is intact.
    #[error("a text of run `{run}` is lost: {damage}{}; everything else is intact", and_more(*others))]
    TextLost {
        /// Which run.
        run: RunId,
        /// Where, and what.
        damage: Damage,
        /// The number of other texts that are lost.
        others: usize,
    },
    /// Bytes stand after the last line of a run that has ended.
    #[error(
        "{} after the last line of the journal of run `{run}`, which has ended: something else \
         wrote there; everything before is intact", stand(*bytes)
    )]
    Trailing {
        /// Which run.
        run: RunId,
        /// The number of bytes.
        bytes: u64,
    },
    /// The head of a run is damaged.
    #[error(
        "the head of run `{run}` is damaged: nothing vouches for its journal, whose lines fit each other"
    )]
    DamagedHead {
        /// Which run.
        run: RunId,
    },
    /// Nothing is left of the journal but its head.
    #[error(
        "the journal of run `{run}` is gone, and `convoke runs rm` did not remove it: its head was left \
         behind; `convoke runs gc` forgets it"
    )]
    Gone {
        /// Which run.
        run: RunId,
    },
    /// The run has no such event.
    #[error("run `{run}` has {}, so there is no event {at}", events(*last))]
    NoSuchEvent {
        /// Which run.
        run: RunId,
        /// The event that was wanted.
        at: u64,
        /// The last one there is.
        last: u64,
    },
    /// An agent works in files of its own where the run was to be forked.
    #[error(
        "run `{run}` cannot be forked at event {at}: its agent `{agent}` works in files of its own there, and \
         two runs would change them; fork it where the agent has not begun, or has ended"
    )]
    OwnFiles {
        /// Which run.
        run: RunId,
        /// The last event that was to be copied.
        at: u64,
        /// The run of the agent.
        agent: RunId,
    },
    /// An event that is only streamed was to be kept.
    #[error(
        "an event that follows event {after} is only streamed; a journal keeps numbered events"
    )]
    Ephemeral {
        /// The event it follows.
        after: u64,
    },
    /// An event came out of turn.
    #[error(
        "event {found} came where event {expected} has to come; the journal takes no more events"
    )]
    OutOfOrder {
        /// The number that had to come.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// An event came from another tree of runs.
    #[error("an event of run `{found}` came to the journal of run `{run}`")]
    OtherRun {
        /// Whose journal it is.
        run: RunId,
        /// Whose event came.
        found: RunId,
    },
    /// An event could not be read back if it were written.
    #[error(
        "event {seq} has values inside values more than {limit} deep, which cannot be read back"
    )]
    TooDeep {
        /// The event.
        seq: u64,
        /// How deep is still fine.
        limit: usize,
    },
    /// Somebody removed the run while it worked.
    #[error("run `{run}` was removed while it worked, so nothing more of it can be kept")]
    Removed {
        /// Which run.
        run: RunId,
    },
    /// Something cannot be written as JSON.
    #[error("this cannot be written as JSON")]
    Json(#[source] serde_json::Error),
    /// The disk is full, or the file would be larger than the process may write.
    #[error(
        "{} to {action} `{}`; everything recorded before is kept; {}, then resume the run",
        shortage(source), path.display(), remedy(source)
    )]
    Full {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system did not do what was asked.
    #[error("cannot {action} `{}`{}", path.display(), advice(source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An error before closed the journal; this is that error again.
    #[error(transparent)]
    Closed(Arc<JournalError>),
}

impl JournalError {
    /// Returns the error that came first, where this one repeats it.
    pub fn first(&self) -> &Self {
        match self {
            Self::Closed(first) => first.first(),
            first => first,
        }
    }

    /// Says what was tried when the system refused.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full { action, path, source },
            _ => Self::Io { action, path, source },
        }
    }
}

fn by(owner: Option<&Owner>) -> String {
    owner.map_or_else(String::new, |owner| format!(" by {owner}"))
}

fn events(number: u64) -> String {
    count(number, "event")
}

fn and_more(others: usize) -> String {
    match others {
        0 => String::new(),
        others => format!(" (and {})", count(others as u64, "other text")),
    }
}

fn stand(bytes: u64) -> String {
    let verb = if bytes == 1 { "stands" } else { "stand" };
    format!("{} {verb}", count(bytes, "byte"))
}

fn way_out(run: &RunId, damage: &Damage) -> String {
    let later = match damage.later {
        0 => String::new(),
        later => format!("; {} after it can be read, and others may be missing", events(later)),
    };
    format!("{}{later}", intact(run, damage))
}

fn intact(run: &RunId, damage: &Damage) -> String {
    match damage.seq_before {
        0 => "; no event before it is intact".to_owned(),
        1 => format!("; event 1 is intact; go on from there with `convoke runs fork {run} --at 1`"),
        seq => format!(
            "; events 1 to {seq} are intact; go on from there with `convoke runs fork {run} --at {seq}`"
        ),
    }
}

fn shortage(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::FileTooLarge => {
            "no space is left within the file-size limit of this process"
        }
        _ => "no space is left",
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::FileTooLarge => "raise the limit (`ulimit -f`)",
        _ => "free some space",
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; make it writable for you, or choose another state directory"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "; it is on a read-only file system; choose another state directory"
        }
        io::ErrorKind::NotADirectory => "; a part of this path is a file, not a directory",
        _ => "",
    }
}

/// Says what was tried when something failed.
pub(crate) trait Tried<T> {
    fn tried(self, action: &'static str, path: &Path) -> Result<T, JournalError>;
}

impl<T> Tried<T> for io::Result<T> {
    fn tried(self, action: &'static str, path: &Path) -> Result<T, JournalError> {
        self.map_err(|source| JournalError::io(action, path, source))
    }
}

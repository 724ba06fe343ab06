//! The stale-file guard: no tool replaces, moves or deletes content that its run, or the user who approved the
//! change, has not seen.
//!
//! [`SeenFiles`] holds the hash of each file that a run last read or wrote. A file tool changes a file only by
//! [`replace`](Target::replace), [`create`](Target::create), [`remove`](Target::remove) or
//! [`move_to`](Target::move_to). Each of them looks at the very file that it took out of its place and puts that
//! file back if the caller does not accept its content. So a process that changes the file at the same moment
//! loses nothing. Commands are outside this rule.

mod exchange;
mod lock;
mod made;
mod new_file;
mod seen;
mod state;
mod sweep;

pub use exchange::{Accepts, Changed, Refused, Target};
pub use lock::DirectoryLock;
pub(crate) use made::Listing;
pub use new_file::NewFile;
pub(crate) use seen::CallFiles;
pub use seen::SeenFiles;
pub use state::{FileHash, FileState};
pub use sweep::sweep;

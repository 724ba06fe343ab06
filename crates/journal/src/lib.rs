//! What happened in a run, kept on disk.
//!
//! A [`Store`] is a state directory, and every run has one directory in it:
//!
//! ```text
//! <state>/runs/<run id>/journal.jsonl   a header, then one event a line
//!                       blobs/<sha256>  long texts that the lines point to
//!                       inbox/          what other processes want to tell the run
//!                       lock            who works on it now
//! <state>/heads/<run id>                the hash of a late line, to verify the journal by
//!         index                         a cache for listing; it can be deleted
//! ```
//!
//! The invariant: **what [`append`](Journal::append) accepted survives the process, what was synced
//! survives the machine, and nothing that was accepted is ever changed.** Each line carries the SHA-256
//! of the line before it and a checksum of itself, so a change anywhere is noticed, and the line is
//! named. What a crash left half written at the end is cut off, and said. The hash of a late line is kept
//! apart, so that a journal whose hashes were all made anew, or that was cut short, is noticed too.
//!
//! [`timeline`] is what happened in a run in the shape in which a person reads it, and [`export`] makes a
//! page, Markdown or bare lines of it. [`audit`] is who did what, and what allowed it.
//!
//! The crate decides nothing about runs. It does not look at a clock either: whoever writes says when.
//!
//! ```
//! use convoke_core::event::VERSION;
//! use convoke_core::{AgentPath, Event, EventBody, Position, RunId, Timestamp};
//! use convoke_journal::{Journal, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let state = tempfile::tempdir()?;
//! let store = Store::at(state.path());
//! let run = RunId::new("2026-03-01-a1");
//! let now = Timestamp::from_millis(1_772_323_200_000);
//! let event = Event {
//!     v: VERSION,
//!     position: Position::Durable { seq: 1 },
//!     ts: now,
//!     run: run.clone(),
//!     parent: None,
//!     agent: AgentPath::default(),
//!     call: None,
//!     secrets: std::collections::BTreeSet::new(),
//!     body: EventBody::Notice { message: "hello".into() },
//! };
//!
//! let journal = store.create(&run, now)?;
//! journal.append(&event)?;
//! journal.sync().wait()?;
//! drop(journal);
//!
//! assert_eq!(store.open(&run, now)?.events, [event]);
//! # Ok(())
//! # }
//! ```

pub mod audit;
mod blob;
mod collect;
mod damage;
mod error;
pub mod export;
mod files;
mod find;
mod fork;
mod hash;
mod head;
mod header;
mod inbox;
mod index;
mod journal;
mod line;
mod list;
mod memory;
mod name;
mod names;
mod owner;
mod questions;
mod scan;
mod store;
mod summary;
mod sync;
mod tape;
pub mod timeline;

pub use collect::{Collected, Collection, Policy, Unfinished};
pub use damage::{Damage, Reason};
pub use error::JournalError;
pub use find::{FindError, Newest, Scope, is_same_directory};
pub use head::Vouched;
pub use header::{FORMAT, Forked};
pub use inbox::{Inbox, Item, PutResult, SetAside, Waiting};
pub use journal::{Journal, RunJournal};
pub use memory::MemoryJournal;
pub use owner::Owner;
pub use questions::{OpenInquiry, OpenQuestion, open_questions};
pub use store::{Opened, Recorded, Repair, Store};
pub use summary::{Condition, Summary};
pub use sync::{Durability, Synced};

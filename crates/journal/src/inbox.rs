//! What other processes want to tell a run.
//!
//! Anybody who may write there drops a small file; the process that works on the run takes the files in
//! the order of their names, which is the order of time. An item is a JSON object with an `id` and a
//! `kind`; what it means is up to whoever takes it.
//!
//! Nothing is lost: an item stays until it is said to be [`done`](Inbox::done). If the process dies
//! between, it is seen again, with the same id.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use convoke_core::{RunId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{JournalError, Tried};
use crate::files;
use crate::hash::Hash;

/// Nothing that somebody wants to tell is longer.
const MAX_BYTES: u64 = 1024 * 1024;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The inbox of one run.
#[derive(Clone, Debug)]
pub struct Inbox {
    run: RunId,
    directory: PathBuf,
}

/// Something for a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Names it, so that one seen twice is known.
    pub id: String,
    /// What it is: `message`, `cancel`, or something else.
    pub kind: String,
    /// Everything else.
    #[serde(flatten)]
    pub content: Map<String, Value>,
    /// The file it came in.
    #[serde(skip)]
    file: Option<String>,
}

impl Item {
    /// Makes an item.
    pub fn new(
        id: impl Into<String>,
        kind: impl Into<String>,
        content: Map<String, Value>,
    ) -> Self {
        Self { id: id.into(), kind: kind.into(), content, file: None }
    }
}

/// The result of dropping an item that there is only one of.
#[derive(Clone, Debug, PartialEq)]
pub enum PutResult {
    /// It lies there now.
    Put(Item),
    /// Another one was there before.
    Taken(Option<Item>),
}

/// What lies in an inbox.
#[derive(Debug, Default, PartialEq)]
pub struct Waiting {
    /// The items, oldest first.
    pub items: Vec<Item>,
    /// The files that hold no item.
    pub set_aside: Vec<SetAside>,
}

/// A file that holds no item. It has another name now and is not looked at again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Where it is now.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: String,
}

impl Inbox {
    pub(crate) fn new(run: RunId, run_directory: &Path) -> Self {
        Self { run, directory: run_directory.join("inbox") }
    }

    /// Drops an item.
    pub fn put(&self, item: &Item, now: Timestamp) -> Result<(), JournalError> {
        let bytes = serde_json::to_vec(item).map_err(JournalError::Json)?;
        self.ensure()?;
        let millis = u64::try_from(now.as_millis()).unwrap_or_default();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{millis:015}-{:010}-{number:010}.json", std::process::id());
        let path = self.directory.join(name);
        files::put(&path, &bytes).tried("write", &path)
    }

    /// Drops an item unless one of the same id lies there: of several processes that answer the same question, one
    /// succeeds. Returns the item that lies there already, where it can be read.
    pub fn put_once(&self, item: &Item) -> Result<PutResult, JournalError> {
        let bytes = serde_json::to_vec(item).map_err(JournalError::Json)?;
        self.ensure()?;
        let name = format!("once-{}.json", Hash::of(item.id.as_bytes()).as_str());
        let path = self.directory.join(&name);
        if files::put_new(&path, &bytes).tried("write", &path)? {
            return Ok(PutResult::Put(Item { file: Some(name), ..item.clone() }));
        }
        let there = files::read_stranger(&path, MAX_BYTES).ok().flatten();
        let there = there.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(PutResult::Taken(there))
    }

    fn ensure(&self) -> Result<(), JournalError> {
        match files::ensure_directory(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let runs = self.directory.ancestors().nth(2).unwrap_or(&self.directory);
                Err(JournalError::NotFound { run: self.run.clone(), path: runs.into() })
            }
            made => made.tried("make the directory", &self.directory).map(drop),
        }
    }

    /// Returns what lies there, and leaves it there. What is no item is set aside; links, and files
    /// longer than a MiB, are passed over.
    pub fn waiting(&self) -> Result<Waiting, JournalError> {
        let mut names = files::names(&self.directory).tried("list", &self.directory)?;
        // What begins with a point is still being written.
        names.retain(|name| !name.starts_with('.') && is_item(name));
        names.sort();
        let mut waiting = Waiting::default();
        for name in names {
            // A link cannot be opened here, and a file that is gone was taken by somebody else.
            let path = self.directory.join(&name);
            let Ok(Some(bytes)) = files::read_stranger(&path, MAX_BYTES) else { continue };
            match serde_json::from_slice::<Item>(&bytes) {
                Ok(item) => waiting.items.push(Item { file: Some(name), ..item }),
                Err(error) => {
                    let aside = path.with_extension("junk");
                    files::rename(&path, &aside).tried("set aside", &path)?;
                    waiting.set_aside.push(SetAside { path: aside, problem: error.to_string() });
                }
            }
        }
        Ok(waiting)
    }

    /// Removes an item that came from here.
    pub fn done(&self, item: &Item) -> Result<(), JournalError> {
        let Some(name) = &item.file else { return Ok(()) };
        let path = self.directory.join(name);
        match files::remove(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.tried("remove", &path),
        }
    }

    /// Returns what lies there and removes it.
    pub fn take(&self) -> Result<Waiting, JournalError> {
        let waiting = self.waiting()?;
        waiting.items.iter().try_for_each(|item| self.done(item))?;
        Ok(waiting)
    }
}

fn is_item(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "json")
}

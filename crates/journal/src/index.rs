//! A cache that makes listing fast. It may be deleted at any time, and one that cannot be read, or does not
//! fit its checksum, counts as none.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use convoke_core::Timestamp;
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use crate::files;
use crate::hash::Hash;
use crate::summary::Gathered;

/// The form of the cache; another one is not read.
const FORM: u32 = 6;

/// What was gathered from every journal when it was last listed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Index {
    form: u32,
    pub(crate) runs: HashMap<String, Entry>,
}

/// What was gathered from one journal, and in which state that was.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) stamp: Stamp,
    pub(crate) blob_bytes: u64,
    pub(crate) gathered: Gathered,
}

/// The state of a journal file. The same stamp means the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    inode: u64,
    seconds: i64,
    nanoseconds: u64,
}

impl Entry {
    /// Stands for a journal that could not be read.
    pub(crate) fn unreadable(stamp: Stamp, error: &io::Error) -> Self {
        let problem = format!("the journal cannot be read ({error})");
        Self { stamp, blob_bytes: 0, gathered: Gathered::nothing(Some(problem)) }
    }
}

impl Stamp {
    #[expect(
        clippy::useless_conversion,
        reason = "these numbers have other types on other systems"
    )]
    pub(crate) fn of(status: &Stat) -> Self {
        Self {
            size: u64::try_from(status.st_size).unwrap_or_default(),
            inode: u64::from(status.st_ino),
            seconds: i64::from(status.st_mtime),
            nanoseconds: u64::try_from(status.st_mtime_nsec).unwrap_or_default(),
        }
    }
}

impl Stamp {
    /// Returns when the file was last changed.
    pub(crate) const fn changed(&self) -> Timestamp {
        Timestamp::from_millis(self.seconds.saturating_mul(1000))
    }
}

impl Index {
    pub(crate) fn read(path: &Path) -> Self {
        let bytes = files::read(path).unwrap_or_default();
        let index: Option<Self> = checked(&bytes).and_then(|it| serde_json::from_slice(it).ok());
        index.filter(|index| index.form == FORM).unwrap_or_default()
    }

    pub(crate) fn of(runs: HashMap<String, Entry>) -> Self {
        Self { form: FORM, runs }
    }

    /// Replaces the cache. Where that is not possible, listing is only slower.
    pub(crate) fn write(&self, path: &Path) {
        if let Ok(bytes) = serde_json::to_vec(self) {
            let sum = Hash::of(&bytes);
            drop(files::put(path, &[sum.as_bytes(), b"\n", &bytes].concat()));
        }
    }
}

/// Returns the content of a cache whose checksum, the first line, fits it.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let newline = bytes.iter().position(|byte| *byte == b'\n')?;
    let (sum, content) = bytes.split_at_checked(newline)?;
    let content = content.get(1..)?;
    (Hash::of(content).as_bytes() == sum).then_some(content)
}

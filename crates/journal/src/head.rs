//! The head of a journal, kept apart from it.
//!
//! The lines of a journal vouch for each other, so a change is noticed, unless somebody makes all hashes
//! anew after it. Against that, the hash of a late line is kept in another file, `heads/<run>` in the
//! state directory: the journal has to hold that line at that place.
//!
//! A head is written after a sync, off the path of those who record events, and so may lag behind: lines
//! after it are fine. It is never ahead of what is on the disk, except where nothing is ever synced
//! ([`Durability::Relaxed`](crate::Durability)). So a journal that ends before its head was cut short,
//! or lost by the disk; both are told. So is a head whose journal is gone: whoever removes a run with this
//! program removes its head as well. A journal without a head cannot be verified, which is told too: it
//! was recorded by an older program, ended before its first sync, or somebody removed the head. A head that
//! is not whole is damage: it is written with one call, and nothing else writes there.
//!
//! Who can write both files can forge both. The head protects against whoever gets at the journals alone.

use std::io;
use std::path::{Path, PathBuf};

use convoke_core::RunId;

use crate::damage::{Damage, Reason};
use crate::files;
use crate::hash::Hash;
use crate::tape::End;

/// A record is always as long as this, so that a new one covers the old one with one write.
const LENGTH: u64 = 20 + 1 + 64 + 1 + 16 + 1;
/// How often a record is read that is being written at this moment.
const ATTEMPTS: usize = 100;

/// How far the head of a journal vouches for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vouched {
    /// Up to this event; what comes after it was not synced when the head was written.
    UpTo(u64),
    /// Not at all: there is no head.
    NoHead,
    /// Not at all: there is a head, and it is damaged.
    DamagedHead,
}

/// The head file of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeadFile {
    Whole(Head),
    Absent,
    /// It holds no head: something was written over it.
    Damaged,
}

impl HeadFile {
    pub(crate) const fn head(&self) -> Option<&Head> {
        match self {
            Self::Whole(head) => Some(head),
            Self::Absent | Self::Damaged => None,
        }
    }

    pub(crate) const fn vouched(&self) -> Vouched {
        match self {
            Self::Whole(head) => Vouched::UpTo(head.seq),
            Self::Absent => Vouched::NoHead,
            Self::Damaged => Vouched::DamagedHead,
        }
    }
}

/// A line that a journal has to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    seq: u64,
    hash: Hash,
}

impl Head {
    /// Returns where the head of a run is.
    pub(crate) fn path(root: &Path, run: &RunId) -> PathBuf {
        root.join("heads").join(run.as_str())
    }

    /// Writes the head of a journal that ends like this.
    pub(crate) fn write(path: &Path, end: &End) -> io::Result<()> {
        let line = format!("{:020} {}", end.seq, end.hash.as_str());
        let record = format!("{line} {}\n", sum(&line));
        match files::overwrite(path, record.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                path.parent().map_or(Ok(true), files::ensure_directory)?;
                files::overwrite(path, record.as_bytes())
            }
            written => written,
        }
    }

    /// Reads a head.
    pub(crate) fn read(path: &Path) -> io::Result<HeadFile> {
        let mut is_empty = false;
        for _ in 0..ATTEMPTS {
            let bytes = match files::read_stranger(path, LENGTH) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(HeadFile::Absent);
                }
                bytes => bytes?,
            };
            let text = bytes.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
            if let Some(head) = text.and_then(Self::parse) {
                return Ok(HeadFile::Whole(head));
            }
            is_empty = bytes.is_some_and(|bytes| bytes.is_empty());
            // Whoever reads while another process writes may see half of each.
            std::thread::yield_now();
        }
        // A process that was lost before it wrote the first head leaves an empty file.
        Ok(if is_empty { HeadFile::Absent } else { HeadFile::Damaged })
    }

    fn parse(record: &str) -> Option<Self> {
        let (line, found) = record.strip_suffix('\n')?.rsplit_once(' ')?;
        let (seq, hash) = line.split_once(' ')?;
        let head = Self { seq: seq.parse().ok()?, hash: Hash::parse(hash)? };
        (found == sum(line)).then_some(head)
    }

    /// Tells whether this is the event whose line it knows.
    pub(crate) const fn is_at(&self, seq: u64) -> bool {
        self.seq == seq
    }

    /// Says what is wrong with a journal that is in itself as it should be, whose last event has this
    /// number, and whose line at the place of the head has this hash.
    pub(crate) fn check(&self, last: u64, found: Option<&Hash>) -> Option<Damage> {
        match found {
            Some(hash) if *hash == self.hash => None,
            Some(_) => {
                let reason = Reason::OtherThanHead;
                Some(Damage { line: self.seq + 1, seq_before: 0, reason, later: 0 })
            }
            None => {
                let reason = Reason::CutShort { head: self.seq };
                Some(Damage::after(last, reason))
            }
        }
    }

    /// Says what is wrong with a journal that has not even its first line.
    pub(crate) const fn emptied(&self) -> Damage {
        let reason = Reason::CutShort { head: self.seq };
        Damage { line: 1, seq_before: 0, reason, later: 0 }
    }
}

fn sum(line: &str) -> String {
    String::from_utf8_lossy(Hash::of(line.as_bytes()).short()).into_owned()
}

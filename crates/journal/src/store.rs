//! The state directory: where the runs are.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use convoke_core::{Event, RunId, Timestamp};

use crate::blob::{Blobs, Fresh};
use crate::damage::Damage;
use crate::error::{JournalError, Tried};
use crate::files;
use crate::head::{Head, HeadFile, Vouched};
use crate::header::{Forked, Header};
use crate::inbox::Inbox;
use crate::journal::RunJournal;
use crate::line;
use crate::name;
use crate::owner::{self, Owner};
use crate::scan::{Scan, scan};
use crate::sync::{Disk, Durability, Syncer, SystemDisk};
use crate::tape::{End, Tape};

/// The runs of one state directory. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    root: Arc<Path>,
    durability: Durability,
    syncer: Arc<Syncer>,
}

/// A run that was opened to go on.
#[derive(Debug)]
pub struct Opened {
    /// Takes the next events.
    pub journal: RunJournal,
    /// All events so far.
    pub events: Vec<Event>,
    /// What was cut off at the end.
    pub repaired: Option<Repair>,
    /// The process that worked on the run before and died.
    pub died: Option<Owner>,
    /// The texts that are lost: in the events, a mark stands for each.
    pub lost: Vec<Damage>,
}

/// A last line that was not finished when a process or a machine went down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// How many bytes were cut off.
    pub bytes: u64,
    /// Which line they were, from 1.
    pub at_line: u64,
}

/// What a journal holds, as somebody sees it who only looks.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// When the run was made.
    pub created: Timestamp,
    /// The program that made it.
    pub program: String,
    /// Where it was copied from.
    pub forked_from: Option<Forked>,
    /// All events that can be read: those before the first damage, and those after it whose lines are intact.
    pub events: Vec<Event>,
    /// The first line that is not as it was written.
    pub damage: Option<Damage>,
    /// The texts that are lost, though the lines that point to them are intact. In the events, a mark stands for each.
    pub lost: Vec<Damage>,
    /// The bytes after the last line: one that is being written, was not finished, or never belonged there.
    pub torn: u64,
    /// How far what is kept apart vouches for it.
    pub vouched: Vouched,
}

impl Recorded {
    /// Returns the error that says what is not as it was recorded.
    pub fn problem(&self, run: &RunId) -> Option<JournalError> {
        let run = run.clone();
        if let Some(damage) = self.damage.clone() {
            return Some(JournalError::Damaged { run, damage });
        }
        let (first, others) = self.lost.split_first()?;
        Some(JournalError::TextLost { run, damage: first.clone(), others: others.len() })
    }

    /// Returns the events up to the first one that is not as it was recorded.
    pub fn intact(&self) -> &[Event] {
        let damaged = self.damage.iter().chain(&self.lost).map(|damage| damage.seq_before).min();
        let end = damaged.and_then(|seq| usize::try_from(seq).ok()).unwrap_or(self.events.len());
        self.events.get(..end).unwrap_or(&self.events)
    }
}

impl Store {
    /// Names a state directory. Nothing is made or read yet.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self::on(root.into(), SystemDisk)
    }

    pub(crate) fn on(root: PathBuf, disk: impl Disk + 'static) -> Self {
        let syncer = Arc::new(Syncer::new(disk));
        Self { root: root.into(), durability: Durability::default(), syncer }
    }

    #[cfg(test)]
    pub(crate) fn syncer_for_tests(&self) -> &Syncer {
        &self.syncer
    }

    /// Says how much a crash of the machine may cost.
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Returns the state directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of a run, whether it is there or not.
    pub fn directory(&self, run: &RunId) -> Result<PathBuf, JournalError> {
        name::check(run)?;
        Ok(self.runs().join(run.as_str()))
    }

    /// Returns what other processes want to tell a run.
    pub fn inbox(&self, run: &RunId) -> Result<Inbox, JournalError> {
        Ok(Inbox::new(run.clone(), &self.directory(run)?))
    }

    /// Begins the journal of a new run.
    pub fn create(&self, run: &RunId, now: Timestamp) -> Result<RunJournal, JournalError> {
        let directory = self.directory(run)?;
        self.create_in(&directory, &Header::new(run, now, None), Blobs::of(&directory), now)
    }

    /// Makes a directory and begins a journal in it. If that fails, nothing is left.
    pub(crate) fn create_in(
        &self,
        directory: &Path,
        header: &Header,
        blobs: Blobs,
        now: Timestamp,
    ) -> Result<RunJournal, JournalError> {
        let mut unsynced = self.make_parents()?;
        files::make_directory(directory).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                JournalError::Taken { run: header.run.clone(), path: directory.to_path_buf() }
            }
            _ => JournalError::io("make the directory", directory, error),
        })?;
        unsynced.directories.extend([self.runs(), directory.to_path_buf()]);
        // What a run of this name may have left that was removed. There is nearly never anything.
        drop(files::remove(&self.head(&header.run)));
        let begun = begin(directory, header, now);
        if begun.is_err() {
            // The first error is the one to tell; this is tidying up.
            drop(files::remove_directory(directory));
        }
        let (file, end) = begun?;
        Ok(self.journal(header.run.clone(), file, directory, blobs, end, unsynced))
    }

    /// Opens a run to go on with it. A last line that was not finished is cut off.
    pub fn open(&self, run: &RunId, now: Timestamp) -> Result<Opened, JournalError> {
        let directory = self.directory(run)?;
        let path = journal_in(&directory);
        let file = files::open_to_append(&path).map_err(|error| self.missing(run, &path, error))?;
        self.lock(run, &file, &path)?;
        let mut held = Held(Some(file));
        let file = held.0.as_mut().ok_or_else(|| JournalError::Empty { run: run.clone() })?;

        let blobs = Blobs::of(&directory);
        let head = self.read_head(run)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).tried("read", &path)?;
        let Scan { events, intact, last, torn, damage, lost, .. } =
            scan(run, &bytes, &blobs, head.head())?;
        if let Some(damage) = damage {
            return Err(JournalError::Damaged { run: run.clone(), damage });
        }
        let seq = events.len() as u64;
        let repaired = (torn > 0).then_some(Repair { bytes: torn, at_line: seq + 2 });
        if repaired.is_some() {
            file.set_len(intact).tried("cut off the unfinished last line of", &path)?;
        }
        let died = Owner::read(&directory);
        claim(&directory, now)?;
        let end = End { seq, hash: last, length: intact };
        let mut unsynced = blobs.all()?;
        unsynced.directories.extend([self.runs(), directory.clone()]);
        let file = held.0.take().ok_or_else(|| JournalError::Empty { run: run.clone() })?;
        let journal = self.journal(run.clone(), file, &directory, blobs, end, unsynced);
        Ok(Opened { journal, events, repaired, died, lost })
    }

    /// Reads a run without touching it, also while a process works on it.
    pub fn read(&self, run: &RunId) -> Result<Recorded, JournalError> {
        let directory = self.directory(run)?;
        let path = journal_in(&directory);
        // A run that is at work may go on between the two, so its head is read first.
        let head = self.read_head(run)?;
        let bytes = files::read(&path).map_err(|error| self.missing(run, &path, error))?;
        let Scan { header, events, damage, lost, torn, .. } =
            scan(run, &bytes, &Blobs::of(&directory), head.head())?;
        let Header { created, program, forked_from, .. } = header;
        let vouched = head.vouched();
        Ok(Recorded { created, program, forked_from, events, damage, lost, torn, vouched })
    }

    fn read_head(&self, run: &RunId) -> Result<HeadFile, JournalError> {
        let path = self.head(run);
        Head::read(&path).tried("read", &path)
    }

    pub(crate) fn head(&self, run: &RunId) -> PathBuf {
        Head::path(&self.root, run)
    }

    /// Returns the runs of which nothing but a head is left, though nobody removed them with
    /// [`remove`](Self::remove).
    pub fn gone(&self) -> Result<Vec<RunId>, JournalError> {
        let has_journal = |name: &String| journal_in(&self.runs().join(name)).exists();
        let mut gone = self.heads()?;
        gone.retain(|name| name::is_valid(name) && !has_journal(name));
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        let left = files::names(&self.runs()).tried("list", &self.runs())?;
        let is_under_way = |name: &String| left.iter().any(|left| is_part_of(left, name));
        let head = |name: &String| self.root.join("heads").join(name);
        // Once more, since a removal or a copy may have come to its end meanwhile.
        gone.retain(|name| !is_under_way(name) && head(name).exists() && !has_journal(name));
        gone.sort();
        Ok(gone.into_iter().map(RunId::new).collect())
    }

    fn heads(&self) -> Result<Vec<String>, JournalError> {
        let heads = self.root.join("heads");
        files::names(&heads).tried("list", &heads)
    }

    /// Removes the heads of runs that are [`gone`](Self::gone), and returns these.
    pub(crate) fn sweep_heads(&self) -> Result<Vec<RunId>, JournalError> {
        let gone = self.gone()?;
        gone.iter().try_for_each(|run| self.remove_head(run))?;
        Ok(gone)
    }

    /// Removes the head of a run that a process died over while it removed or copied it.
    pub(crate) fn sweep_head_of(&self, directory: &str) -> Result<(), JournalError> {
        let names = self.heads()?;
        let mut left = names.iter().filter(|name| is_part_of(directory, name));
        let is_there = |name: &&String| journal_in(&self.runs().join(name)).exists();
        match left.next().filter(|name| !is_there(name)) {
            Some(name) => self.remove_head(&RunId::new(name.as_str())),
            None => Ok(()),
        }
    }

    fn remove_head(&self, run: &RunId) -> Result<(), JournalError> {
        let head = self.head(run);
        match files::remove(&head) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.tried("remove", &head),
        }
    }

    /// Removes a run and everything that belongs to it, unless a process works on it.
    pub fn remove(&self, run: &RunId) -> Result<(), JournalError> {
        let directory = self.directory(run)?;
        let path = journal_in(&directory);
        // The lock is held until the directory is out of reach.
        let _held = match files::open(&path) {
            Ok(file) => {
                self.lock(run, &file, &path)?;
                Some(Held(Some(file)))
            }
            // A directory without a journal is what a crash left.
            Err(error) if error.kind() == io::ErrorKind::NotFound && directory.is_dir() => None,
            Err(error) => return Err(self.missing(run, &path, error)),
        };
        // First out of the way, with one step: half a run is never seen.
        let hidden = format!("{}{}", removed(run.as_str()), std::process::id());
        let hidden = self.runs().join(hidden);
        files::rename(&directory, &hidden).tried("remove", &directory)?;
        // Before the rest: a head without anything beside it would look like a theft.
        self.remove_head(run)?;
        files::remove_directory(&hidden).tried("remove", &hidden)
    }

    /// Returns the ids of all runs, in no order.
    pub(crate) fn ids(&self) -> Result<Vec<String>, JournalError> {
        let mut names = files::names(&self.runs()).tried("list", &self.runs())?;
        names.retain(|name| name::is_valid(name));
        Ok(names)
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Makes what has to be there before a run can be; returns the directories that changed by it.
    fn make_parents(&self) -> Result<Fresh, JournalError> {
        let runs = self.runs();
        let mut missing = Vec::new();
        let mut fresh = Fresh::default();
        for directory in runs.ancestors() {
            match files::ensure_directory(directory) {
                Ok(false) => break,
                Ok(true) => {
                    fresh.directories.extend(directory.parent().map(Path::to_path_buf));
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(directory),
                // A directory that is there and may not be made is no problem yet.
                Err(_) if directory.is_dir() => break,
                Err(error) => return Err(error).tried("make the directory", directory),
            }
        }
        for directory in missing.into_iter().rev() {
            files::ensure_directory(directory).tried("make the directory", directory)?;
            fresh.directories.extend(directory.parent().map(Path::to_path_buf));
        }
        Ok(fresh)
    }

    fn lock(&self, run: &RunId, file: &File, path: &Path) -> Result<(), JournalError> {
        let directory = path.parent().unwrap_or(path);
        if !owner::lock_after(directory, file).tried("lock", path)? {
            // One that died is not the one who holds it now.
            let owner = path.parent().and_then(Owner::read).filter(Owner::is_alive);
            return Err(JournalError::Busy { run: run.clone(), owner });
        }
        // Whoever held the lock may have removed the run.
        let removed = rustix::fs::fstat(file).is_ok_and(|status| status.st_nlink == 0);
        if removed { Err(self.missing(run, path, io::ErrorKind::NotFound.into())) } else { Ok(()) }
    }

    fn missing(&self, run: &RunId, path: &Path, error: io::Error) -> JournalError {
        match error.kind() {
            io::ErrorKind::NotFound => {
                JournalError::NotFound { run: run.clone(), path: self.runs() }
            }
            _ => JournalError::io("open", path, error),
        }
    }

    fn journal(
        &self,
        run: RunId,
        file: File,
        directory: &Path,
        blobs: Blobs,
        end: End,
        unsynced: Fresh,
    ) -> RunJournal {
        let head = self.head(&run);
        let tape = Tape::new(run, file, journal_in(directory), head, blobs, end, unsynced);
        RunJournal::new(Arc::new(tape), Arc::clone(&self.syncer), self.durability)
    }
}

/// A journal that is locked. Closing the file is not enough to let go of it: a program that is being started
/// at this moment has the file open as well, until it is itself.
struct Held(Option<File>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            drop(file.unlock());
        }
    }
}

/// Returns how the name of a run's directory begins while it is being removed.
fn removed(run: &str) -> String {
    format!(".removed-{run}-")
}

/// Tells whether a directory is that of a run that a process removes or copies, or died over.
fn is_part_of(directory: &str, run: &str) -> bool {
    [removed(run), format!(".forked-{run}-")].iter().any(|begin| {
        let process = directory.strip_prefix(begin.as_str());
        process.is_some_and(|process| process.bytes().all(|digit| digit.is_ascii_digit()))
    })
}

/// Returns where the journal of the run in this directory is.
pub(crate) fn journal_in(directory: &Path) -> PathBuf {
    directory.join("journal.jsonl")
}

/// Makes a journal with its first line.
fn begin(directory: &Path, header: &Header, now: Timestamp) -> Result<(File, End), JournalError> {
    let path = journal_in(directory);
    let mut file = files::create(&path).tried("make", &path)?;
    if !owner::lock(&file).tried("lock", &path)? {
        let owner = Owner::read(directory);
        return Err(JournalError::Busy { run: header.run.clone(), owner });
    }
    let mut line = Vec::new();
    let hash = line::write_header(&mut line, header)?;
    file.write_all(&line).tried("write", &path)?;
    claim(directory, now)?;
    Ok((file, End { seq: 0, hash, length: line.len() as u64 }))
}

/// Says that this process works on the run in this directory.
fn claim(directory: &Path, now: Timestamp) -> Result<(), JournalError> {
    let path = owner::path_in(directory);
    let owner = serde_json::to_vec(&Owner::this_process(now)).map_err(JournalError::Json)?;
    files::put(&path, &owner).tried("write", &path)
}

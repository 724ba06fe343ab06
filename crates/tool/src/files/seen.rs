//! The files that a run knows, and those of one call.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use convoke_core::event::FileSeen;
use tokio_util::sync::CancellationToken;

use super::lock::DirectoryLock;
use super::state::{FileHash, FileState};
use super::sweep::sweep;
use crate::cache::Stamp;

/// Longer texts are not kept for the diff of a later refusal.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// The directories that are swept when a run is resumed.
const MAX_SWEPT: usize = 256;
/// All kept texts of a run together.
const MAX_TEXTS_BYTES: usize = 8 * 1024 * 1024;

/// The files of one run, by their absolute paths with links resolved: the content that the run last read or wrote.
/// Cheap to clone; clones are the same files.
#[derive(Clone, Debug, Default)]
pub struct SeenFiles(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    files: Mutex<Files>,
    keep: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct Files {
    known: HashMap<PathBuf, Known>,
    /// The files whose texts are kept, the oldest first.
    texts: VecDeque<PathBuf>,
    text_bytes: usize,
    swept: HashSet<PathBuf>,
}

#[derive(Debug)]
struct Known {
    hash: FileHash,
    stamp: Option<Stamp>,
    text: Option<Arc<str>>,
}

impl SeenFiles {
    /// The files of a run whose journal knows these paths and hashes. A hash of another kind counts as unread.
    /// Replaced contents are kept in the directory `keep`, if there is one.
    pub fn new<'a>(
        known: impl IntoIterator<Item = (&'a String, &'a String)>,
        keep: Option<PathBuf>,
    ) -> Self {
        let known = known.into_iter().filter_map(|(path, hash)| {
            let hash = hash.parse().ok()?;
            Some((PathBuf::from(path), Known { hash, stamp: None, text: None }))
        });
        let files = Files { known: known.collect(), ..Files::default() };
        Self(Arc::new(Inner { files: Mutex::new(files), keep }))
    }

    /// Returns the directory in which replaced contents are kept.
    pub fn keep(&self) -> Option<&Path> {
        self.0.keep.as_deref()
    }

    /// Returns the content that the run last saw in a file.
    pub fn hash(&self, path: &Path) -> Option<FileHash> {
        self.files().known.get(path).map(|known| known.hash)
    }

    /// Returns the hash of a file that is in the very state in which the run last saw it.
    pub fn hash_of_state(&self, path: &Path, stamp: &Stamp) -> Option<FileHash> {
        let files = self.files();
        let known = files.known.get(path)?;
        (known.stamp.as_ref() == Some(stamp)).then_some(known.hash)
    }

    /// Returns the text that the run last saw in a file, if it was kept.
    pub fn text(&self, path: &Path) -> Option<Arc<str>> {
        self.files().known.get(path)?.text.clone()
    }

    /// Tells, once for each directory, that temporary files of dead writers are to be removed there.
    pub fn is_unswept(&self, directory: &Path) -> bool {
        self.files().swept.insert(directory.to_owned())
    }

    /// Removes temporary files of dead writers from the directories of the files that the run knows. A directory in
    /// which another writer works, or that cannot be read, is left for its next write.
    pub fn sweep(&self) {
        let known = |files: &Files| {
            let above = files.known.keys().filter_map(|path| path.parent());
            above.map(Path::to_owned).collect::<BTreeSet<PathBuf>>()
        };
        let directories = known(&self.files());
        let once = CancellationToken::new();
        once.cancel();
        for path in directories.into_iter().take(MAX_SWEPT) {
            let Ok(directory) = Dir::open_ambient_dir(&path, ambient_authority()) else { continue };
            let lock = DirectoryLock::hold(&[&directory], &once);
            if lock.is_ok_and(|lock| sweep(&directory, &lock, self.keep()).is_ok()) {
                self.is_unswept(&path);
            }
        }
    }

    fn note(&self, path: &Path, hash: FileHash, stamp: Option<Stamp>, text: Option<&str>) {
        let text = text.filter(|text| text.len() <= MAX_TEXT_BYTES);
        let mut files = self.files();
        files.forget(path);
        if let Some(text) = text {
            files.text_bytes += text.len();
            files.texts.push_back(path.to_owned());
        }
        files.known.insert(path.to_owned(), Known { hash, stamp, text: text.map(Arc::from) });
        while files.text_bytes > MAX_TEXTS_BYTES {
            let Some(oldest) = files.texts.pop_front() else { break };
            let text = files.known.get_mut(&oldest).and_then(|known| known.text.take());
            files.text_bytes -= text.map_or(0, |text| text.len());
        }
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    fn forget(&mut self, path: &Path) {
        let known = self.known.remove(path);
        if let Some(text) = known.and_then(|known| known.text) {
            self.text_bytes -= text.len();
            self.texts.retain(|kept| kept != path);
        }
    }
}

/// The files of one call: those that its preview showed, and those that it saw or left.
#[derive(Debug, Default)]
pub(crate) struct CallFiles {
    pinned: Mutex<HashMap<PathBuf, FileState>>,
    noted: Mutex<Vec<FileSeen>>,
}

impl CallFiles {
    /// The call changes just this state of the file, which a person was shown.
    pub(crate) fn pin(&self, path: PathBuf, state: FileState) {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).insert(path, state);
    }

    pub(crate) fn pinned(&self, path: &Path) -> Option<FileState> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied()
    }

    /// Forgets the states that were shown: they are shown anew.
    pub(crate) fn unpin(&self) {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the shown states in words, always in the same order.
    pub(crate) fn shown(&self) -> Vec<String> {
        let pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shown: Vec<String> =
            pinned.iter().map(|(path, state)| format!("{} {state}", path.display())).collect();
        shown.sort_unstable();
        shown
    }

    pub(crate) fn note(
        &self,
        seen: &SeenFiles,
        path: &Path,
        (hash, stamp, text): (FileHash, Option<Stamp>, Option<&str>),
        replaced: Option<String>,
    ) {
        seen.note(path, hash, stamp, text);
        self.remember(path, Some(hash), replaced);
    }

    pub(crate) fn note_gone(&self, seen: &SeenFiles, path: &Path, replaced: Option<String>) {
        seen.files().forget(path);
        self.remember(path, None, replaced);
    }

    /// A name that is no text counts as unread when the run is resumed.
    fn remember(&self, path: &Path, hash: Option<FileHash>, replaced: Option<String>) {
        let Some(path) = path.to_str().map(str::to_owned) else { return };
        let hash = hash.map(|hash| hash.to_string());
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push(FileSeen { path, hash, replaced });
    }

    /// Takes the files that were noted since the last time.
    pub(crate) fn take_noted(&self) -> Vec<FileSeen> {
        std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_texts_are_bounded_and_hashes_are_not_forgotten() {
        let (seen, call) = (SeenFiles::default(), CallFiles::default());
        let text = "x".repeat(MAX_TEXT_BYTES);
        let path = |number: usize| PathBuf::from(format!("/f{number}"));
        let hash = FileHash::of(text.as_bytes());
        for number in 0..40 {
            call.note(&seen, &path(number), (hash, None, Some(&text)), None);
            call.note(&seen, &path(number), (hash, None, Some(&text)), None);
        }
        assert!(seen.text(&path(0)).is_none() && seen.text(&path(39)).is_some());
        assert!((0..40).all(|number| seen.hash(&path(number)) == Some(hash)));
        assert!(seen.files().text_bytes <= MAX_TEXTS_BYTES);
        call.note_gone(&seen, &path(39), None);
        assert_eq!(seen.hash(&path(39)), None);
        assert_eq!(call.take_noted().len(), 81);
    }

    #[test]
    fn hash_of_another_kind_counts_as_unread() {
        let known = [("/a".to_owned(), "md5-1".to_owned())];
        let seen = SeenFiles::new(known.iter().map(|(path, hash)| (path, hash)), None);
        assert_eq!(seen.hash(Path::new("/a")), None);
    }
}

//! The files that a command made.
//!
//! The names in the working directory and below are listed before the command and compared after it. The walk is
//! bounded; a file in a directory that was not listed does not count as made by the command.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::state::{FileHash, FileState};

/// The names that are listed before a command.
const MAX_NAMES: usize = 4_000;
/// The files of one command that count as seen.
const MAX_MADE: usize = 200;
/// The bytes that are hashed after a command.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Younger time stamps may be those of the next change, too.
const RESOLUTION: Duration = Duration::from_millis(100);
/// Directories that hold many files which no file tool writes.
const LEFT_OUT: [&str; 3] = [".git", "node_modules", "target"];

/// The names below a directory, before a command.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The directories whose names are all known, with their time stamps.
    directories: HashMap<PathBuf, Option<Times>>,
    names: HashSet<PathBuf>,
}

type Times = (u64, i64, i64, i64, i64);

impl Listing {
    /// Lists the names in a directory and below it, as many as are allowed.
    pub(crate) fn of(directory: &Path) -> Self {
        let mut listing = Self::default();
        let mut queue = VecDeque::from([directory.to_owned()]);
        while let Some(directory) = queue.pop_front() {
            // A change after this has later times, unless the last one is too young to tell.
            let Some((times, is_young)) = times(&directory) else { continue };
            let times = (!is_young).then_some(times);
            let Some(entries) = entries(&directory) else { continue };
            if listing.names.len() + entries.len() > MAX_NAMES {
                break;
            }
            for (path, kind) in entries {
                if kind == Kind::Directory {
                    queue.push_back(path.clone());
                }
                listing.names.insert(path);
            }
            listing.directories.insert(directory, times);
        }
        listing
    }

    /// Returns the files that are there now and were not before, with their contents.
    pub(crate) fn made(&self) -> Vec<(PathBuf, FileHash)> {
        let (mut made, mut bytes) = (Vec::new(), 0);
        let changed = self.directories.iter().filter(|(path, before)| {
            let now = times(path).map(|(times, _)| times);
            before.is_none() || now != **before
        });
        let mut queue: VecDeque<PathBuf> = changed.map(|(path, _)| path.clone()).collect();
        while let Some(directory) = queue.pop_front() {
            for (path, kind) in entries(&directory).unwrap_or_default() {
                if self.names.contains(&path) || kind == Kind::Other {
                    continue;
                }
                if kind == Kind::Directory {
                    queue.push_back(path);
                    continue;
                }
                bytes += fs::symlink_metadata(&path).map_or(0, |metadata| metadata.len());
                if made.len() >= MAX_MADE || bytes > MAX_BYTES {
                    return made;
                }
                if let Some(FileState::File(hash)) = content(&path) {
                    made.push((path, hash));
                }
            }
        }
        made
    }
}

/// Returns the time stamps of a directory, and whether they are younger than the resolution of such stamps.
fn times(directory: &Path) -> Option<(Times, bool)> {
    let metadata = fs::symlink_metadata(directory).ok().filter(fs::Metadata::is_dir)?;
    let (modified, changed) = (metadata.mtime_nsec(), metadata.ctime_nsec());
    let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
    let is_young = age.is_none_or(|age| age < RESOLUTION);
    Some(((metadata.ino(), metadata.mtime(), modified, metadata.ctime(), changed), is_young))
}

/// Returns the content of a file. A link that was put in its place is not followed.
fn content(path: &Path) -> Option<FileState> {
    let directory = Dir::open_ambient_dir(path.parent()?, ambient_authority()).ok()?;
    FileState::of(&directory, path.file_name()?).ok()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    /// A link, a device, or a directory that is left out.
    Other,
}

/// Returns the names in a directory; none, if there are too many.
fn entries(directory: &Path) -> Option<Vec<(PathBuf, Kind)>> {
    let mut entries = Vec::new();
    let opened = Dir::open_ambient_dir(directory, ambient_authority()).ok()?;
    for entry in opened.entries().ok()?.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let is_left_out = LEFT_OUT.iter().any(|name| entry.file_name() == *name);
        let kind = match (kind.is_file(), kind.is_dir()) {
            (true, _) => Kind::File,
            (_, true) if !is_left_out => Kind::Directory,
            _ => Kind::Other,
        };
        entries.push((directory.join(entry.file_name()), kind));
        if entries.len() > MAX_NAMES {
            return None;
        }
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make the files they look at")]

    use super::*;

    #[test]
    fn made_files_are_those_that_were_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(root.join("src/old"), "old").unwrap();
        fs::write(root.join("kept"), "kept").unwrap();
        let before = Listing::of(&root);
        assert_eq!(before.made(), []);
        fs::write(root.join("src/.tmp"), "saved").unwrap();
        fs::rename(root.join("src/.tmp"), root.join("src/old")).unwrap();
        fs::write(root.join("src/new"), "new").unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/c"), "c").unwrap();
        fs::create_dir(root.join("target")).unwrap();
        fs::write(root.join("target/out"), "out").unwrap();
        let mut made = before.made();
        made.sort_by(|left, right| left.0.cmp(&right.0));
        let expected = [("a/b/c", "c"), ("src/new", "new")];
        let expected =
            expected.map(|(path, text)| (root.join(path), FileHash::of(text.as_bytes())));
        assert_eq!(made, expected, "a file that was saved anew was there before");
    }

    #[test]
    fn directory_with_too_many_names_makes_nothing_known() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..=MAX_NAMES {
            fs::write(directory.path().join(number.to_string()), "").unwrap();
        }
        let before = Listing::of(directory.path());
        fs::write(directory.path().join("new"), "new").unwrap();
        assert_eq!(before.made(), []);
    }
}

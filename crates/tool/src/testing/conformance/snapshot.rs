//! What the allowed roots hold at one moment, to be compared with a later one.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, DirEntry};

use crate::roots::Roots;

/// Everything below the roots, by path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Snapshot(BTreeMap<PathBuf, State>);

/// What one path holds.
#[derive(Debug, PartialEq, Eq)]
enum State {
    Directory,
    File { bytes: u64, hash: u64 },
    Link(PathBuf),
    Special,
    Unreadable(io::ErrorKind),
}

impl Snapshot {
    /// Looks at everything.
    pub(super) fn take(roots: &Roots) -> Self {
        let mut states = BTreeMap::new();
        for root in roots.paths() {
            let opened = roots.locate(root, ".").and_then(|place| place.open_directory());
            if let Ok(directory) = opened {
                walk(&directory, root, &mut states);
            }
        }
        Self(states)
    }

    /// Says what is different in a later one, each path with how it changed.
    pub(super) fn changes(&self, later: &Self) -> Vec<String> {
        let gone = self.0.keys().filter(|path| !later.0.contains_key(*path));
        let gone = gone.map(|path| format!("`{}` is gone", path.display()));
        let other = later.0.iter().filter_map(|(path, state)| match self.0.get(path) {
            None => Some(format!("`{}` is new", path.display())),
            Some(before) if before != state => Some(format!("`{}` changed", path.display())),
            Some(_) => None,
        });
        gone.chain(other).collect()
    }
}

fn walk(directory: &Dir, path: &Path, states: &mut BTreeMap<PathBuf, State>) {
    let entries = match directory.entries() {
        Ok(entries) => entries,
        Err(error) => {
            states.insert(path.to_path_buf(), State::Unreadable(error.kind()));
            return;
        }
    };
    for entry in entries.flatten() {
        let path = path.join(entry.file_name());
        let state = look(directory, &entry).unwrap_or_else(|e| State::Unreadable(e.kind()));
        let inner = (state == State::Directory).then(|| entry.open_dir().ok()).flatten();
        if let Some(inner) = inner {
            walk(&inner, &path, states);
        }
        states.insert(path, state);
    }
}

fn look(directory: &Dir, entry: &DirEntry) -> io::Result<State> {
    let kind = entry.file_type()?;
    if kind.is_dir() {
        return Ok(State::Directory);
    }
    if kind.is_symlink() {
        return directory.read_link_contents(entry.file_name()).map(State::Link);
    }
    if !kind.is_file() {
        return Ok(State::Special);
    }
    let mut file = entry.open()?;
    let (mut hasher, mut bytes, mut buffer) = (DefaultHasher::new(), 0, vec![0; 64 * 1024]);
    loop {
        let read = file.read(&mut buffer)?;
        let Some(chunk) = buffer.get(..read).filter(|chunk| !chunk.is_empty()) else { break };
        hasher.write(chunk);
        bytes += chunk.len() as u64;
    }
    Ok(State::File { bytes, hash: hasher.finish() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempWorkspace;

    #[test]
    fn every_change_is_seen() {
        let workspace = TempWorkspace::new().unwrap();
        for name in ["same", "changed", "sub/gone"] {
            workspace.write(name, "1").unwrap();
        }
        let roots = workspace.context().roots().clone();
        let before = Snapshot::take(&roots);
        assert_eq!(before.changes(&Snapshot::take(&roots)), Vec::<String>::new());

        workspace.write("changed", "2").unwrap();
        workspace.write("sub/new", "1").unwrap();
        let directory = workspace.context().locate("sub").unwrap().open_directory().unwrap();
        directory.remove_file("gone").unwrap();
        let said = |name: &str, how: &str| format!("`{}` {how}", workspace.path(name).display());
        assert_eq!(
            before.changes(&Snapshot::take(&roots)),
            [said("sub/gone", "is gone"), said("changed", "changed"), said("sub/new", "is new")]
        );
    }
}

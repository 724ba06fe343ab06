//! The project files the user trusts, as a text file that people can read and edit.
//!
//! One file a line, with the SHA-256 of what it held when it was trusted before it, as `sha256sum` writes
//! them; empty lines and lines that begin with `#` are kept as they are. Trust is given to what a file says,
//! not to where it is: whoever can write into a folder, a model for instance, could else decide what runs
//! there. A line without a digest trusts nothing.
//!
//! This is the text only: the command reads and writes the file, and hands in paths with the links of
//! their directories followed.

use std::fmt;
use std::path::{Component, Path};

use super::digest::Digest;
use super::sources::Trust;

/// Between the digest and the path.
const BETWEEN: &str = "  ";

/// The project files the user trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustStore {
    lines: Vec<String>,
}

/// Why a file cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// Its path is relative, or has `.` or `..` in it.
    #[error("`{0}` is not an absolute path without `.` and `..`")]
    NotCanonical(String),
    /// Its path cannot be written on one line of text.
    #[error("`{0}` cannot be written as a line of text")]
    NotALine(String),
}

/// A line that lists something.
struct Listed<'a> {
    path: &'a Path,
    digest: Option<Digest>,
}

impl TrustStore {
    /// Reads the text of the file.
    pub fn parse(text: &str) -> Self {
        Self { lines: text.lines().map(str::to_owned).collect() }
    }

    /// Returns the files that are listed, in order.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.listed().filter(|line| line.digest.is_some()).map(|line| line.path)
    }

    fn listed(&self) -> impl Iterator<Item = Listed<'_>> {
        self.lines.iter().filter_map(|line| Listed::read(line))
    }

    /// Returns how far a project's file is trusted: in the state that is listed for it. One that is listed
    /// without a state, or whose folder is, is trusted in none.
    pub fn trust(&self, file: &Path) -> Trust {
        let mut trust = Trust::Untrusted;
        for Listed { path, digest } in self.listed().filter(|line| is_canonical(line.path)) {
            match digest {
                Some(digest) if path == file => return Trust::Pinned(digest),
                None if file.starts_with(path) => trust = Trust::Lapsed,
                _ => {}
            }
        }
        trust
    }

    /// Lists a file in this state, and in no other. Returns whether that is new.
    pub fn add(&mut self, file: &Path, digest: Digest) -> Result<bool, TrustError> {
        let shown = || file.display().to_string();
        if !is_canonical(file) {
            return Err(TrustError::NotCanonical(shown()));
        }
        let path = file.to_str().filter(|path| !path.contains(['\n', '\r']));
        let path = path.ok_or_else(|| TrustError::NotALine(shown()))?;
        if self.trust(file) == Trust::Pinned(digest) {
            return Ok(false);
        }
        self.remove(file);
        self.lines.push(format!("{digest}{BETWEEN}{path}"));
        Ok(true)
    }

    /// Takes a file off the list, or the files in a folder. Returns whether one was there.
    pub fn remove(&mut self, path: &Path) -> bool {
        let before = self.lines.len();
        let is_meant = |line: &Listed<'_>| line.path == path || line.path.parent() == Some(path);
        self.lines.retain(|line| !Listed::read(line).is_some_and(|line| is_meant(&line)));
        self.lines.len() < before
    }
}

impl<'a> Listed<'a> {
    fn read(line: &'a str) -> Option<Self> {
        if line.trim().is_empty() || line.starts_with('#') {
            return None;
        }
        let parts = line.split_once(BETWEEN);
        let pinned = parts.and_then(|(digest, path)| Some((digest.parse().ok()?, path)));
        Some(match pinned {
            Some((digest, path)) => Self { path: Path::new(path), digest: Some(digest) },
            None => Self { path: Path::new(line), digest: None },
        })
    }
}

/// Writes the text of the file.
impl fmt::Display for TrustStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(formatter, "{line}"))
    }
}

fn is_canonical(path: &Path) -> bool {
    let plain = |part: Component<'_>| !matches!(part, Component::ParentDir | Component::CurDir);
    path.is_absolute() && path.components().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Digest {
        Digest::of(text)
    }

    #[test]
    fn a_file_is_trusted_in_the_state_that_is_listed() {
        let text = format!(
            "# mine\n{}  /home/ann/project/convoke.yml\n\n/srv/a b\n/old/..\n",
            digest("a")
        );
        let store = TrustStore::parse(&text);
        let trust = |path: &str| store.trust(Path::new(path));
        assert_eq!(trust("/home/ann/project/convoke.yml"), Trust::Pinned(digest("a")));
        for other in [
            "/home/ann/project/sub/convoke.yml",
            "/home/ann/project/convoke.yaml",
            "/other/convoke.yml",
            "# mine",
        ] {
            assert_eq!(trust(other), Trust::Untrusted, "{other}");
        }
        assert_eq!(trust("/srv/a b/x/convoke.yml"), Trust::Lapsed, "a folder, without a state");
        assert_eq!(store.files().collect::<Vec<_>>(), [Path::new("/home/ann/project/convoke.yml")]);
        assert_eq!(store.to_string(), text);
    }

    #[test]
    fn a_file_is_listed_in_one_state() {
        let mut store = TrustStore::parse("# mine\n/home/ann/project/convoke.yml\n");
        let file = Path::new("/home/ann/project/convoke.yml");
        assert_eq!(store.add(file, digest("a")), Ok(true));
        assert_eq!(store.add(file, digest("a")), Ok(false));
        assert_eq!(store.add(file, digest("b")), Ok(true));
        assert_eq!(
            store.to_string(),
            format!("# mine\n{}  /home/ann/project/convoke.yml\n", digest("b"))
        );
        assert!(store.remove(Path::new("/home/ann/project")));
        assert!(!store.remove(Path::new("/home/ann/project")));
        assert_eq!(store.to_string(), "# mine\n");
    }

    #[test]
    fn what_cannot_be_a_line_is_refused() {
        let mut store = TrustStore::default();
        let mut add = |path: &str| store.add(Path::new(path), digest("a"));
        assert_eq!(add("a"), Err(TrustError::NotCanonical("a".into())));
        assert_eq!(add("/a/../b"), Err(TrustError::NotCanonical("/a/../b".into())));
        assert_eq!(add("/a\n/"), Err(TrustError::NotALine("/a\n/".into())));
        assert_eq!(store.to_string(), "");
    }
}

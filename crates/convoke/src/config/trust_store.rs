//! The folders the user trusts, as a text file that people can read and edit.
//!
//! One absolute directory a line; empty lines and lines that begin with `#` are kept as they are.
//! This is the text only: the command reads and writes the file, and hands in directories with
//! their links followed.

use std::fmt;
use std::path::{Component, Path};

/// The folders the user trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustStore {
    lines: Vec<String>,
}

/// Why a folder cannot be listed.
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

impl TrustStore {
    /// Reads the text of the file.
    pub fn parse(text: &str) -> Self {
        Self { lines: text.lines().map(str::to_owned).collect() }
    }

    /// Returns the folders that are listed, in order.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.lines.iter().map(String::as_str).filter(|line| !is_comment(line)).map(Path::new)
    }

    /// Returns whether a folder is trusted: it is listed, or a folder above it is.
    pub fn contains(&self, directory: &Path) -> bool {
        let listed = |above: &Path| is_canonical(above) && directory.starts_with(above);
        is_canonical(directory) && self.directories().any(listed)
    }

    /// Lists a folder. Returns whether it was new: one that is trusted already is not added.
    pub fn add(&mut self, directory: &Path) -> Result<bool, TrustError> {
        let shown = || directory.display().to_string();
        if !is_canonical(directory) {
            return Err(TrustError::NotCanonical(shown()));
        }
        let line = directory.to_str().filter(|line| !line.contains(['\n', '\r']));
        let line = line.ok_or_else(|| TrustError::NotALine(shown()))?;
        if self.contains(directory) {
            return Ok(false);
        }
        self.lines.push(line.to_owned());
        Ok(true)
    }

    /// Takes a folder off the list. Returns whether it was there. A folder above it that is listed
    /// stays, and keeps it trusted.
    pub fn remove(&mut self, directory: &Path) -> bool {
        let before = self.lines.len();
        self.lines.retain(|line| is_comment(line) || Path::new(line) != directory);
        self.lines.len() < before
    }
}

/// Writes the text of the file.
impl fmt::Display for TrustStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(formatter, "{line}"))
    }
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

fn is_canonical(path: &Path) -> bool {
    let plain = |part: Component<'_>| !matches!(part, Component::ParentDir | Component::CurDir);
    path.is_absolute() && path.components().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# mine\n/home/ada/work\n\n/srv/a b\n";

    #[test]
    fn a_folder_is_trusted_with_everything_below_it() {
        let store = TrustStore::parse(TEXT);
        for (directory, trusted) in [
            ("/home/ada/work", true),
            ("/home/ada/work/deep/er", true),
            ("/srv/a b", true),
            ("/home/ada", false),
            ("/home/ada/workshop", false),
            ("/home/ada/work/../evil", false),
            ("home/ada/work", false),
            ("# mine", false),
        ] {
            assert_eq!(store.contains(Path::new(directory)), trusted, "{directory}");
        }
        assert!(!TrustStore::parse("/a/..\nrelative\n").contains(Path::new("/b")));
        assert!(!TrustStore::default().contains(Path::new("/")));
    }

    #[test]
    fn the_text_survives_changes() {
        let mut store = TrustStore::parse(TEXT);
        assert_eq!(store.to_string(), TEXT);
        assert_eq!(store.add(Path::new("/home/ada/work/x")), Ok(false));
        assert_eq!(store.add(Path::new("/new")), Ok(true));
        assert!(store.remove(Path::new("/home/ada/work")));
        assert!(!store.remove(Path::new("/home/ada/work")));
        assert_eq!(store.to_string(), "# mine\n\n/srv/a b\n/new\n");
        assert_eq!(TrustStore::parse(&store.to_string()), store);
    }

    #[test]
    fn what_cannot_be_a_line_is_refused() {
        let mut store = TrustStore::default();
        let relative = TrustError::NotCanonical("a".into());
        assert_eq!(store.add(Path::new("a")), Err(relative));
        let climbing = TrustError::NotCanonical("/a/..".into());
        assert_eq!(store.add(Path::new("/a/..")), Err(climbing));
        let two_lines = TrustError::NotALine("/a\n/".into());
        assert_eq!(store.add(Path::new("/a\n/")), Err(two_lines));
        assert_eq!(store.to_string(), "");
    }
}

//! The projects that the user trusts, as a text file that people can read and edit.
//!
//! A line `project /path` begins a project. Each line below it is an entry that the user has seen: its SHA-256,
//! two spaces and its label. Empty lines and lines that begin with `#` are kept as they are. Trust is given to
//! what an entry says, not to where it is: whoever can write into a folder, a model for instance, could else
//! decide what runs there.
//!
//! An older version listed files: a SHA-256 and a path, or a path alone. Such a line trusts nothing.
//!
//! This is the text only: the command reads and writes the file, and hands in paths with their links followed.

use std::fmt;
use std::path::{Component, Path};
use std::sync::Arc;

use super::digest::Digest;
use super::entry::{ProjectEntry, TrustedEntries};
use super::sources::Trust;

/// Between a digest and what it is of.
const BETWEEN: &str = "  ";
/// Before the path of a project.
const PROJECT: &str = "project ";

/// The projects that the user trusts, with their entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustStore {
    lines: Vec<String>,
}

/// Why a project cannot be listed.
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

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'a> {
    /// A project begins.
    Project(&'a Path),
    /// An entry of the project above.
    Entry(Digest, &'a str),
    /// A folder that an older version listed, by its file or by itself.
    Old(&'a Path),
    /// A comment, or nothing.
    Other,
}

impl TrustStore {
    /// Reads the text of the file.
    pub fn parse(text: &str) -> Self {
        Self { lines: text.lines().map(str::to_owned).collect() }
    }

    /// Returns the projects that are listed, in order.
    pub fn projects(&self) -> impl Iterator<Item = &Path> {
        self.lines().filter_map(|(project, line)| match line {
            Line::Project(_) => project,
            _ => None,
        })
    }

    /// Returns each line with the project it belongs to.
    fn lines(&self) -> impl Iterator<Item = (Option<&Path>, Line<'_>)> {
        self.lines.iter().scan(None, |project, line| {
            let line = Line::read(line);
            if let Line::Project(path) = line {
                *project = Some(path).filter(|path| is_canonical(path));
            }
            Some((*project, line))
        })
    }

    /// Returns how far a project is trusted.
    pub fn trust(&self, folder: &Path) -> Trust {
        let mut entries = None;
        let mut is_old = false;
        for (project, line) in self.lines() {
            match line {
                Line::Project(_) if project == Some(folder) => {
                    entries.get_or_insert_with(Vec::new);
                }
                Line::Entry(digest, label) if project == Some(folder) => {
                    entries.get_or_insert_with(Vec::new).push((digest, label.to_owned()));
                }
                Line::Old(path) => is_old |= path == folder,
                _ => {}
            }
        }
        match entries {
            Some(entries) => Trust::Entries(Arc::new(TrustedEntries::new(entries))),
            None if is_old => Trust::Lapsed,
            None => Trust::Untrusted,
        }
    }

    /// Lists a project with these entries and no others. Returns whether that is new.
    pub fn set(&mut self, folder: &Path, entries: &[ProjectEntry]) -> Result<bool, TrustError> {
        let shown = || folder.display().to_string();
        if !is_canonical(folder) {
            return Err(TrustError::NotCanonical(shown()));
        }
        let path = folder.to_str().filter(|path| !path.contains(['\n', '\r']));
        let path = path.ok_or_else(|| TrustError::NotALine(shown()))?;
        let before = self.lines.clone();
        self.remove(folder);
        self.lines.push(format!("{PROJECT}{path}"));
        let entry = |entry: &ProjectEntry| format!("{}{BETWEEN}{}", entry.digest, entry.label);
        self.lines.extend(entries.iter().map(entry));
        Ok(self.lines != before)
    }

    /// Takes a project off the list. Returns whether it was there.
    pub fn remove(&mut self, folder: &Path) -> bool {
        let keeps: Vec<bool> = self
            .lines()
            .map(|(project, line)| match line {
                Line::Project(_) | Line::Entry(..) => project != Some(folder),
                Line::Old(path) => path != folder,
                Line::Other => true,
            })
            .collect();
        let before = self.lines.len();
        let mut keeps = keeps.into_iter();
        self.lines.retain(|_| keeps.next().unwrap_or(true));
        self.lines.len() < before
    }
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Self {
        if line.trim().is_empty() || line.starts_with('#') {
            return Self::Other;
        }
        if let Some(path) = line.strip_prefix(PROJECT) {
            return Self::Project(Path::new(path));
        }
        let parts = line.split_once(BETWEEN);
        match parts.and_then(|(digest, of)| Some((digest.parse().ok()?, of))) {
            Some((_, of)) if of.starts_with('/') => {
                Self::Old(Path::new(of).parent().unwrap_or(Path::new(of)))
            }
            Some((digest, label)) => Self::Entry(digest, label),
            None => Self::Old(Path::new(line)),
        }
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
    use serde_json::Value;

    use super::super::entry::{EntryContent, EntryState};
    use super::*;

    fn digest(text: &str) -> Digest {
        Digest::of(text)
    }

    fn entry(label: &str, digest: Digest) -> ProjectEntry {
        ProjectEntry {
            label: label.to_owned(),
            digest,
            state: EntryState::New,
            content: EntryContent::Setting { key: label.to_owned(), value: Value::Null },
            files: Vec::new(),
        }
    }

    fn entries(of: &[(&str, &str)]) -> Trust {
        let entries = of.iter().map(|(text, label)| (digest(text), (*label).to_owned()));
        Trust::Entries(Arc::new(TrustedEntries::new(entries.collect())))
    }

    #[test]
    fn store_lists_a_project_with_its_entries() {
        let mut store = TrustStore::parse("# mine\n");
        let folder = Path::new("/srv/a b");
        let hook = entry("hooks `x` of convoke.yml", digest("a"));
        assert_eq!(store.set(folder, std::slice::from_ref(&hook)), Ok(true));
        assert_eq!(store.set(folder, std::slice::from_ref(&hook)), Ok(false));
        let text = format!("# mine\nproject /srv/a b\n{}  hooks `x` of convoke.yml\n", digest("a"));
        assert_eq!(store.to_string(), text);
        let store = TrustStore::parse(&text);
        assert_eq!(store.trust(folder), entries(&[("a", "hooks `x` of convoke.yml")]));
        for other in ["/srv/a b/sub", "/srv", "# mine"] {
            assert_eq!(store.trust(Path::new(other)), Trust::Untrusted, "{other}");
        }
        assert_eq!(store.projects().collect::<Vec<_>>(), [folder]);
    }

    #[test]
    fn store_replaces_and_removes_the_entries_of_one_project() {
        let text =
            format!("project /a\n{}  x\n# mine\nproject /b\n{}  x\n", digest("one"), digest("two"));
        let mut store = TrustStore::parse(&text);
        assert_eq!(store.set(Path::new("/a"), &[entry("x", digest("three"))]), Ok(true));
        assert_eq!(store.trust(Path::new("/a")), entries(&[("three", "x")]));
        assert_eq!(store.trust(Path::new("/b")), entries(&[("two", "x")]));
        assert!(store.remove(Path::new("/b")));
        assert!(!store.remove(Path::new("/b")));
        assert_eq!(store.to_string(), format!("# mine\nproject /a\n{}  x\n", digest("three")));
    }

    #[test]
    fn store_of_an_older_version_trusts_nothing() {
        let text = format!("{}  /srv/p/convoke.yml\n/srv/q\n/old/..\n", digest("a"));
        let mut store = TrustStore::parse(&text);
        for folder in ["/srv/p", "/srv/q"] {
            assert_eq!(store.trust(Path::new(folder)), Trust::Lapsed, "{folder}");
        }
        assert_eq!(store.trust(Path::new("/srv")), Trust::Untrusted);
        assert_eq!(store.set(Path::new("/srv/p"), &[]), Ok(true));
        assert_eq!(store.trust(Path::new("/srv/p")), entries(&[]));
        assert!(!store.to_string().contains("convoke.yml"), "{store}");
    }

    #[test]
    fn store_refuses_a_path_that_cannot_be_a_line() {
        let mut store = TrustStore::default();
        let mut set = |path: &str| store.set(Path::new(path), &[]);
        assert_eq!(set("a"), Err(TrustError::NotCanonical("a".into())));
        assert_eq!(set("/a/../b"), Err(TrustError::NotCanonical("/a/../b".into())));
        assert_eq!(set("/a\n/"), Err(TrustError::NotALine("/a\n/".into())));
        assert_eq!(store.to_string(), "");
    }
}

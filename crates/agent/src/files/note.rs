//! What there is to say about a file.

use std::fmt;
use std::path::{Path, PathBuf};

/// Something about a file: what is wrong or not used, where, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileNote {
    /// The file, or the directory.
    pub path: PathBuf,
    /// The line, from 1, if it is one line.
    pub line: Option<u64>,
    /// The key, if it is about one.
    pub key: Option<String>,
    /// What there is to say.
    pub message: String,
}

impl FileNote {
    /// Says something about a file as a whole.
    pub fn new(path: &Path, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, key: None, message: message.into() }
    }
}

impl fmt::Display for FileNote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.path.display())?;
        self.line.iter().try_for_each(|line| write!(formatter, "{line}:"))?;
        self.key.iter().try_for_each(|key| write!(formatter, " key `{key}`:"))?;
        write!(formatter, " {}", self.message)
    }
}

/// What was found while reading one file.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) problems: Vec<Finding>,
    pub(super) warnings: Vec<Finding>,
    /// Tools of servers that it has anyway, and that the file names all the same, with their lines.
    pub(super) switched_on: Vec<(String, u64)>,
}

/// One thing that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) line: Option<u64>,
    pub(super) key: Option<String>,
    pub(super) message: String,
}

impl Finding {
    pub(super) fn at(line: u64, key: &str, message: impl Into<String>) -> Self {
        Self { line: Some(line), key: Some(key.to_owned()), message: message.into() }
    }

    pub(super) fn of_line(line: u64, message: impl Into<String>) -> Self {
        Self { line: Some(line), key: None, message: message.into() }
    }

    pub(super) fn into_note(self, path: &Path) -> FileNote {
        FileNote { path: path.to_owned(), line: self.line, key: self.key, message: self.message }
    }
}

impl Findings {
    pub(super) fn problem(&mut self, line: u64, key: &str, message: impl Into<String>) {
        self.problems.push(Finding::at(line, key, message));
    }

    pub(super) fn warning(&mut self, line: u64, key: &str, message: impl Into<String>) {
        self.warnings.push(Finding::at(line, key, message));
    }

    /// Sorts what was found by its lines.
    pub(super) fn sort(&mut self) {
        for list in [&mut self.problems, &mut self.warnings] {
            list.sort_by_key(|finding| finding.line.unwrap_or(0));
        }
    }
}

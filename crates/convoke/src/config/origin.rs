//! Where a value comes from: which layer, and which line of what.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::problem::printable;

/// A layer of configuration. The order is the order of precedence: a later layer wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// What holds where nobody said anything.
    BuiltIn,
    /// The user's file.
    User,
    /// The project's file.
    Project,
    /// `CONVOKE__…` variables.
    Environment,
    /// `--set` flags.
    Flags,
}

impl Layer {
    /// Returns the layer's name for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::User => "user",
            Self::Project => "project",
            Self::Environment => "environment",
            Self::Flags => "flags",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

/// The exact place something was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Place {
    /// Nowhere: it is built in.
    BuiltIn,
    /// A file.
    File {
        /// Its path.
        #[serde(serialize_with = "readable_path")]
        path: Arc<Path>,
        /// The line and column; none where the whole file is meant.
        position: Option<Position>,
    },
    /// An environment variable, by name.
    Variable(Arc<str>),
    /// A `--set` flag, by the key it sets.
    Flag(Arc<str>),
    /// What the caller of the library passed in.
    Caller,
}

impl Place {
    /// A place in a file.
    pub(crate) fn at(path: &Arc<Path>, position: Position) -> Self {
        Self::File { path: Arc::clone(path), position: Some(position) }
    }

    /// Returns the file, where it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns the line and column, where it has them.
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::File { position, .. } => *position,
            _ => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => formatter.write_str("built in"),
            Self::File { path, position } => {
                formatter.write_str(&printable(&path.to_string_lossy()))?;
                match position {
                    Some(Position { line, column }) => write!(formatter, ":{line}:{column}"),
                    None => Ok(()),
                }
            }
            Self::Variable(name) => write!(formatter, "environment variable {name}"),
            Self::Flag(key) => write!(formatter, "--set {key}"),
            Self::Caller => formatter.write_str("sources"),
        }
    }
}

/// Writes a path as people read it: one that is not UTF-8 is no reason to write nothing.
pub(crate) fn readable_path<P: AsRef<Path>, S: Serializer>(
    path: &P,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.as_ref().display())
}

/// The layer and the place a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Origin {
    /// The layer.
    pub layer: Layer,
    /// The place.
    pub place: Place,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.layer, &self.place) {
            (_, Place::BuiltIn) => write!(formatter, "{}", self.layer),
            (layer, place) => write!(formatter, "{layer} ({place})"),
        }
    }
}

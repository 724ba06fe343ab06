//! Patterns for names and paths, as the tools take them.
//!
//! One without a slash matches names at any depth, one with a slash paths below the start. One that
//! ends in a slash matches directories, and everything below them. An absolute one has to lie below the
//! start.

use std::path::Path;

use convoke_core::{ToolError, glob};
use convoke_tool::Place;
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

/// Each takes memory once it is compiled.
const MAX_PATTERNS: usize = 256;

/// One pattern or several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Patterns {
    /// One.
    One(String),
    /// Several; any of them will do.
    Many(Vec<String>),
}

impl Patterns {
    pub(crate) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(pattern) => std::slice::from_ref(pattern),
            Self::Many(patterns) => patterns,
        }
    }
}

/// Compiled patterns.
#[derive(Debug)]
pub(crate) struct Globs {
    all: GlobSet,
    /// Those that only a directory itself can match.
    directories: GlobSet,
}

impl Globs {
    /// Compiles patterns for paths below a start.
    pub(crate) fn new(
        parameter: &str,
        patterns: &[String],
        start: &Place,
    ) -> Result<Self, ToolError> {
        if patterns.len() > MAX_PATTERNS {
            return Err(ToolError::validation([format!(
                "`{parameter}` has {} patterns, and {MAX_PATTERNS} is the most",
                patterns.len()
            )]));
        }
        let (mut all, mut directories) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for pattern in patterns {
            let glob = below(parameter, pattern, start)?;
            if pattern.ends_with('/') {
                directories.add(compile(parameter, &glob)?);
                all.add(compile(parameter, &format!("{glob}/**"))?);
            } else {
                all.add(compile(parameter, &glob)?);
            }
        }
        let build =
            |set: &GlobSetBuilder| set.build().map_err(|error| bad_pattern(parameter, &error));
        Ok(Self { all: build(&all)?, directories: build(&directories)? })
    }

    /// Tells whether any of them matches what is no directory.
    pub(crate) fn match_file(&self, path: &Path) -> bool {
        self.all.is_match(path)
    }

    /// Tells whether any of them matches a directory.
    pub(crate) fn match_directory(&self, path: &Path) -> bool {
        self.all.is_match(path) || self.directories.is_match(path)
    }
}

/// Turns a pattern into one for whole paths below the start, without the slash at its end.
fn below(parameter: &str, pattern: &str, start: &Place) -> Result<String, ToolError> {
    if pattern.is_empty() {
        return Err(ToolError::validation([format!("`{parameter}` is empty")]));
    }
    if pattern.split('/').any(|part| part == "..") {
        return Err(ToolError::validation([format!(
            "`{parameter}`: `{pattern}` leads out of where the search starts; set `path` instead"
        )]));
    }
    if pattern.starts_with('/') {
        return relative(parameter, pattern, start);
    }
    let trimmed = pattern.trim_start_matches("./").trim_end_matches('/');
    let is_name = !trimmed.contains('/');
    Ok(if is_name { format!("**/{trimmed}") } else { trimmed.to_owned() })
}

fn relative(parameter: &str, pattern: &str, start: &Place) -> Result<String, ToolError> {
    let starts = [start.absolute(), start.resolved()];
    let found = starts.iter().find_map(|start| Path::new(pattern).strip_prefix(start).ok());
    match found.and_then(Path::to_str) {
        Some("") => Ok("**".to_owned()),
        Some(rest) => Ok(rest.trim_end_matches('/').to_owned()),
        None => Err(ToolError::validation([format!(
            "`{parameter}`: `{pattern}` is not below `{}`; write it relative to that",
            start.absolute().display()
        )])),
    }
}

fn compile(parameter: &str, pattern: &str) -> Result<Glob, ToolError> {
    glob::check(pattern)
        .map_err(|problem| ToolError::validation([format!("`{parameter}`: {problem}")]))?;
    let mut builder = GlobBuilder::new(pattern);
    builder.literal_separator(true).build().map_err(|error| bad_pattern(parameter, &error))
}

fn bad_pattern(parameter: &str, error: &globset::Error) -> ToolError {
    ToolError::validation([format!("`{parameter}`: {error}")])
}

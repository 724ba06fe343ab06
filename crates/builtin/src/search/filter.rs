//! Which files a search looks at: by glob and by type.

use std::path::Path;

use convoke_core::ToolError;
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::types::{Types, TypesBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

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

/// Which files to look at.
#[derive(Debug, Default)]
pub(super) struct Filter {
    include: Option<GlobSet>,
    exclude: Option<GlobSet>,
    types: Option<Types>,
}

impl Filter {
    pub(super) fn new(
        include: Option<&Patterns>,
        exclude: Option<&Patterns>,
        file_type: Option<&str>,
    ) -> Result<Self, ToolError> {
        let set = |name: &str, patterns: Option<&Patterns>| {
            patterns.map(|patterns| glob_set(name, patterns.as_slice())).transpose()
        };
        Ok(Self {
            include: set("include", include)?,
            exclude: set("exclude", exclude)?,
            types: file_type.map(select_type).transpose()?,
        })
    }

    /// Tells whether to look at the file at this path below the start.
    pub(super) fn takes(&self, path: &Path) -> bool {
        self.include.as_ref().is_none_or(|set| set.is_match(path))
            && !self.exclude.as_ref().is_some_and(|set| set.is_match(path))
            && self.types.as_ref().is_none_or(|types| types.matched(path, false).is_whitelist())
    }

    /// Tells whether to look into the directory at this path below the start.
    pub(super) fn enters(&self, path: &Path) -> bool {
        !self.exclude.as_ref().is_some_and(|set| set.is_match(path))
    }
}

/// Compiles patterns; one without a slash matches names at any depth.
pub(crate) fn glob_set(parameter: &str, patterns: &[String]) -> Result<GlobSet, ToolError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(compile(parameter, pattern)?);
    }
    set.build().map_err(|error| bad_pattern(parameter, &error))
}

fn compile(parameter: &str, pattern: &str) -> Result<Glob, ToolError> {
    let trimmed = pattern.trim_start_matches("./");
    let anywhere = if trimmed.contains('/') { trimmed.to_owned() } else { format!("**/{trimmed}") };
    let mut builder = GlobBuilder::new(anywhere.trim_start_matches('/'));
    builder.literal_separator(true).build().map_err(|error| bad_pattern(parameter, &error))
}

fn bad_pattern(parameter: &str, error: &globset::Error) -> ToolError {
    ToolError::validation([format!("`{parameter}`: {error}")])
}

fn select_type(name: &str) -> Result<Types, ToolError> {
    let mut builder = TypesBuilder::new();
    builder.add_defaults().select(name);
    builder.build().map_err(|_| {
        let known: Vec<String> = builder.definitions().iter().map(|one| one.name().to_owned()).collect();
        let close = convoke_core::nearest::nearest(name, known.iter().map(String::as_str));
        let hint = convoke_core::nearest::did_you_mean(&close);
        ToolError::validation([format!(
            "`type`: `{name}` is not a known file type{hint} (types are words like rust, py, js, md)"
        )])
    })
}

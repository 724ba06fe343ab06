//! Which files a search looks at: by glob and by type.

use std::path::Path;

use convoke_core::ToolError;
use convoke_tool::Place;
use ignore::types::{Types, TypesBuilder};

use super::globs::{Globs, Patterns};

/// Which files to look at.
#[derive(Debug, Default)]
pub(super) struct Filter {
    include: Option<Globs>,
    exclude: Option<Globs>,
    types: Option<Types>,
}

impl Filter {
    pub(super) fn new(
        include: Option<&Patterns>,
        exclude: Option<&Patterns>,
        file_type: Option<&str>,
        start: &Place,
    ) -> Result<Self, ToolError> {
        let set = |name: &str, patterns: Option<&Patterns>| {
            patterns.map(|patterns| Globs::new(name, patterns.as_slice(), start)).transpose()
        };
        Ok(Self {
            include: set("include", include)?,
            exclude: set("exclude", exclude)?,
            types: file_type.map(select_type).transpose()?,
        })
    }

    /// Tells whether to look at the file at this path below the start.
    pub(super) fn takes(&self, path: &Path) -> bool {
        self.include.as_ref().is_none_or(|globs| globs.match_file(path))
            && !self.exclude.as_ref().is_some_and(|globs| globs.match_file(path))
            && self.types.as_ref().is_none_or(|types| types.matched(path, false).is_whitelist())
    }

    /// Tells whether to look into the directory at this path below the start.
    pub(super) fn enters(&self, path: &Path) -> bool {
        !self.exclude.as_ref().is_some_and(|globs| globs.match_directory(path))
    }
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

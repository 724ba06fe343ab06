//! Where a search starts, and how what it finds is named.

use std::path::{Path, PathBuf};

use convoke_core::{Effects, Resource, ToolError};
use convoke_tool::{Place, ToolContext};

use crate::walk::{Ignore, Walk};

/// What a search of a path touches; one without a path reads the working directory.
pub(crate) fn reads_or_here(path: Option<&str>) -> Effects {
    let path = path.unwrap_or(".").to_owned();
    Effects { reads: vec![Resource::Path(path)], writes: Vec::new() }
}

/// A directory to search, or one file.
pub(super) enum Scope {
    Directory(Box<Walk>),
    File(std::fs::File),
}

/// Opens what a search was pointed at.
pub(super) fn open(
    place: &Place,
    ignore: Ignore,
    context: &ToolContext,
) -> Result<Scope, ToolError> {
    if place.metadata()?.is_dir() {
        let (root, below) = place.root();
        let walk =
            Walk::below(place, ignore)?.with_rules_from(root, below).for_call(place, context);
        return Ok(Scope::Directory(Box::new(walk)));
    }
    place.open_file().map(|(file, _)| Scope::File(file))
}

/// Names what is found, as the other tools take it: relative to the working directory where possible.
pub(super) struct Naming {
    start: PathBuf,
}

impl Naming {
    pub(super) fn new(place: &Place, context: &ToolContext) -> Self {
        let absolute = place.absolute();
        let start = match absolute.strip_prefix(context.working_directory()) {
            Ok(relative) => relative.to_path_buf(),
            Err(_) => absolute,
        };
        Self { start }
    }

    /// Returns the name of something at a path below the start.
    pub(super) fn name(&self, path: &Path) -> String {
        let joined =
            if path.as_os_str().is_empty() { self.start.clone() } else { self.start.join(path) };
        joined.to_string_lossy().into_owned()
    }
}

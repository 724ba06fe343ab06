//! Finding files by name and by content.

mod filter;
mod glob;
mod globs;
mod grep;
mod lines;
mod report;
mod scope;
pub(crate) mod unreadable;

use std::sync::Arc;

use convoke_core::{Category, Kind};
use convoke_tool::{FunctionTool, Tool};

pub(crate) use globs::{Globs, Patterns};
pub(crate) use scope::reads_or_here;

/// Returns the tools of this family.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(
            FunctionTool::new(
                "grep",
                "Searches file contents for a regular expression. Files that `.gitignore` names and \
                 binary files are passed over.",
                grep::grep,
            )
            .category(Category::File)
            .kind(Kind::Search)
            .reads("path")
            .effects(grep::GrepArguments::effects)
            .alias("dir_path", "path"),
        ),
        Arc::new(
            FunctionTool::new(
                "glob",
                "Finds files by name: `*.rs` anywhere below, `src/**/*.rs` by path. Files that \
                 `.gitignore` names are passed over.",
                glob::glob,
            )
            .category(Category::File)
            .kind(Kind::Search)
            .reads("path")
            .effects(glob::GlobArguments::effects)
            .alias("dir_path", "path"),
        ),
    ]
}

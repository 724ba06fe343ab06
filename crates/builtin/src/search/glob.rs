//! Finding files by name.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use convoke_core::{Effects, ToolError};
use convoke_tool::{Place, Rendered, ToolContext};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::globs::Globs;
use super::scope::{Naming, Scope, open, reads_or_here};
use super::unreadable;
use crate::walk::{Ignore, Missed, Next, threads};

const DEFAULT_LIMIT: usize = 1000;
/// So many paths may wait to be put in order.
const SETTLE_AT: usize = 10_000;

#[derive(Deserialize, JsonSchema)]
pub(super) struct GlobArguments {
    /// The pattern.
    pattern: String,
    /// The directory to look in; the working directory if absent.
    path: Option<String>,
    /// How many files at most; 1000 if absent.
    #[schemars(range(min = 1, max = 100_000))]
    limit: Option<usize>,
    /// Whether to show files that `.gitignore` names, too.
    include_ignored: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct GlobResult {
    /// The paths, sorted.
    files: Vec<String>,
    /// Whether there are more than were asked for.
    truncated: bool,
    /// How many directories could not be read.
    #[serde(skip_serializing_if = "unreadable::is_zero")]
    unreadable: u64,
    /// How many files and directories the policy keeps from this call.
    #[serde(skip_serializing_if = "unreadable::is_zero")]
    forbidden: u64,
}

impl GlobArguments {
    pub(super) fn effects(&self) -> Effects {
        reads_or_here(self.path.as_deref())
    }
}

pub(super) async fn glob(
    wanted: GlobArguments,
    context: ToolContext,
) -> Result<Rendered<GlobResult>, ToolError> {
    let place = context.locate(wanted.path.as_deref().unwrap_or("."))?;
    let inner = context.clone();
    context.blocking(move || find(&wanted, &place, &inner)).await
}

fn find(
    wanted: &GlobArguments,
    place: &Place,
    context: &ToolContext,
) -> Result<Rendered<GlobResult>, ToolError> {
    let patterns = Globs::new("pattern", std::slice::from_ref(&wanted.pattern), place)?;
    let ignore =
        if wanted.include_ignored == Some(true) { Ignore::Nothing } else { Ignore::Respect };
    let Scope::Directory(walk) = open(place, ignore, context)? else {
        return Err(ToolError::failed(format!(
            "`{}` is a file; `path` has to be a directory",
            place.spelled()
        )));
    };
    let limit = wanted.limit.unwrap_or(DEFAULT_LIMIT);
    let first = Mutex::new(First { paths: Vec::new(), limit, more: false });
    let missed = walk.run(threads(), &|| context.cancellation().is_cancelled(), || {
        |found| {
            if found.file_type != FileType::Directory && patterns.match_file(found.path) {
                first.lock().unwrap_or_else(PoisonError::into_inner).add(found.path.to_path_buf());
            }
            Next::GoOn
        }
    });
    let mut first = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    first.settle();
    let naming = Naming::new(place, context);
    let files: Vec<String> = first.paths.iter().map(|path| naming.name(path)).collect();
    let mut text = if files.is_empty() { "No file matches.".to_owned() } else { files.join("\n") };
    if first.more {
        text.push_str(&format!(
            "\n[only the first {limit} files; narrow the pattern, or raise `limit`]"
        ));
    }
    let text = unreadable::note(text, missed);
    let Missed { unreadable, forbidden } = missed;
    Ok(Rendered::new(GlobResult { files, truncated: first.more, unreadable, forbidden }, text))
}

/// The first paths in order, however they come in. They are put in order now and then, not each time.
struct First {
    paths: Vec<PathBuf>,
    limit: usize,
    more: bool,
}

impl First {
    fn add(&mut self, path: PathBuf) {
        self.paths.push(path);
        if self.paths.len() > self.limit.saturating_mul(2).max(SETTLE_AT) {
            self.settle();
        }
    }

    /// Keeps the first ones, in order.
    fn settle(&mut self) {
        self.paths.sort_unstable();
        self.more |= self.paths.len() > self.limit;
        self.paths.truncate(self.limit);
    }
}

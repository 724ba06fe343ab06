//! Listing directories.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use convoke_core::{Effects, ToolError};
use convoke_tool::{Place, Rendered, ToolContext};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FileInfo;
use crate::search::{Globs, Patterns, reads_or_here, unreadable};
use crate::walk::{Depth, Found, Ignore, Missed, Next, Walk, threads};

/// More entries are cut off, and said to be.
const MAX_ENTRIES: usize = 10_000;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListFiles {
    /// The directory.
    path: String,
    /// Whether to go into directories.
    recursive: Option<bool>,
    /// Only entries that match, as `*.rs`, `src/**/*.rs` or `src/`.
    pattern: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Listing {
    /// The entries, sorted by path.
    files: Vec<FileInfo>,
    /// Whether there are more.
    truncated: bool,
    /// How many directories could not be read.
    #[serde(skip_serializing_if = "unreadable::is_zero")]
    unreadable: u64,
    /// How many files and directories the policy keeps from this call.
    #[serde(skip_serializing_if = "unreadable::is_zero")]
    forbidden: u64,
}

pub(super) async fn list_files(
    wanted: ListFiles,
    context: ToolContext,
) -> Result<Rendered<Listing>, ToolError> {
    let place = context.locate(&wanted.path)?;
    let depth = if wanted.recursive == Some(true) { Depth::All } else { Depth::One };
    let only =
        wanted.pattern.map(|pattern| Globs::new("pattern", &[pattern], &place)).transpose()?;
    list(place, depth, Choice { only, without: None }, context).await
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Ls {
    /// The directory; the working directory if absent.
    path: Option<String>,
    /// Names or patterns to leave out, as `*.log`.
    ignore: Option<Patterns>,
}

impl Ls {
    pub(super) fn effects(&self) -> Effects {
        reads_or_here(self.path.as_deref())
    }
}

pub(super) async fn ls(wanted: Ls, context: ToolContext) -> Result<Rendered<Listing>, ToolError> {
    let place = context.locate(wanted.path.as_deref().unwrap_or("."))?;
    let ignore = wanted.ignore;
    let without =
        ignore.map(|ignore| Globs::new("ignore", ignore.as_slice(), &place)).transpose()?;
    list(place, Depth::One, Choice { only: None, without }, context).await
}

/// Which entries to list.
struct Choice {
    only: Option<Globs>,
    without: Option<Globs>,
}

impl Choice {
    fn takes(&self, found: &Found<'_>) -> bool {
        let matches = |globs: &Globs| match found.file_type {
            FileType::Directory => globs.match_directory(found.path),
            _ => globs.match_file(found.path),
        };
        self.only.as_ref().is_none_or(matches) && !self.without.as_ref().is_some_and(matches)
    }
}

async fn list(
    place: Place,
    depth: Depth,
    choice: Choice,
    context: ToolContext,
) -> Result<Rendered<Listing>, ToolError> {
    let inner = context.clone();
    let listed = context.blocking(move || {
        let walk = Walk::below(&place, Ignore::Nothing)?.depth(depth).for_call(&place, &inner);
        let entries = Mutex::new(BTreeMap::new());
        let missed = walk.run(threads(), &|| inner.cancellation().is_cancelled(), || {
            |found| {
                if choice.takes(found) {
                    let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
                    entries.insert(found.path.to_path_buf(), info(found, &place));
                    if entries.len() > MAX_ENTRIES + 1 {
                        entries.pop_last();
                    }
                }
                Next::GoOn
            }
        });
        Ok((entries.into_inner().unwrap_or_else(PoisonError::into_inner), missed))
    });
    let (entries, missed) = listed.await?;
    Ok(render(entries, missed))
}

fn info(found: &Found<'_>, place: &Place) -> FileInfo {
    let path = PathBuf::from(place.spelled()).join(found.path);
    let stat = found.stat().ok();
    FileInfo {
        name: found.name().to_string_lossy().into_owned(),
        path: path.to_string_lossy().into_owned(),
        is_dir: found.file_type == FileType::Directory,
        is_symlink: found.file_type == FileType::Symlink,
        size: stat.as_ref().and_then(|stat| u64::try_from(stat.st_size).ok()).unwrap_or_default(),
        modified: stat.as_ref().map(modified_millis).unwrap_or_default(),
    }
}

#[expect(clippy::cast_possible_wrap, reason = "nanoseconds are below a thousand million")]
fn modified_millis(stat: &rustix::fs::Stat) -> i64 {
    stat.st_mtime.saturating_mul(1000).saturating_add(stat.st_mtime_nsec as i64 / 1_000_000)
}

fn render(entries: BTreeMap<PathBuf, FileInfo>, missed: Missed) -> Rendered<Listing> {
    let truncated = entries.len() > MAX_ENTRIES;
    let line = |(path, info): (&PathBuf, &FileInfo)| {
        let mark = if info.is_dir {
            "/"
        } else if info.is_symlink {
            "@"
        } else {
            ""
        };
        format!("{}{mark}", path.display())
    };
    let mut text = entries.iter().take(MAX_ENTRIES).map(line).collect::<Vec<_>>().join("\n");
    if entries.is_empty() {
        text.push_str("(empty)");
    }
    if truncated {
        text.push_str(&format!("\n[only the first {MAX_ENTRIES} entries]"));
    }
    let files = entries.into_values().take(MAX_ENTRIES).collect();
    let text = unreadable::note(text, missed);
    let Missed { unreadable, forbidden } = missed;
    Rendered::new(Listing { files, truncated, unreadable, forbidden }, text)
}

//! Changing parts of a file.
//!
//! An edit names the text to replace. It has to be there, and only once unless every occurrence is
//! meant; so an edit that was made for another state of the file fails instead of landing somewhere. If
//! the text is there but for white space at the ends of lines, it is replaced all the same, moved as a
//! whole to the file's indentation, and that is said. Line ends follow the file. Several edits are made
//! one after the other, all or none. Neither the file nor what becomes of it is longer than 16 MiB.

mod line_ends;
mod replace;
mod tolerant;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use convoke_core::{Category, Display, DisplayFormat, Kind, ToolError};
use convoke_tool::files::{FileHash, FileState};
use convoke_tool::{FunctionTool, Place, Rendered, Tool, ToolContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::atomic::replace as replace_file;
use crate::diff::unified;
use crate::refusal::{Current, Refusal, Why};
use replace::{Applied, Edit};

/// Longer files are not edited, and none is made longer.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// More edits in one call are refused.
const MAX_EDITS: usize = 1000;

/// Returns the tools of this family.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    let edit = FunctionTool::new(
        "edit_file",
        "Replaces exact text in a file. `old_string` has to occur exactly once, so give enough lines \
         around the change; `replace_all` replaces every occurrence. Several changes at once go into \
         `edits`: all of them are made, or none.",
        edit_file,
    );
    vec![Arc::new(
        edit.category(Category::File)
            .kind(Kind::Edit)
            .takes_secrets()
            .preview(preview)
            .writes("path")
            .alias("file_path", "path")
            .alias("old_text", "old_string")
            .alias("new_text", "new_string"),
    )]
}

#[derive(Clone, Deserialize, JsonSchema)]
struct EditFile {
    /// The path.
    path: String,
    /// The text to replace.
    old_string: Option<String>,
    /// What to put in its place.
    new_string: Option<String>,
    /// Whether to replace every occurrence.
    replace_all: Option<bool>,
    /// Several changes, made in this order, instead of the one above.
    #[schemars(length(max = 1000))]
    edits: Option<Vec<Edit>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Edited {
    /// How many places were changed.
    replacements: usize,
    /// Each edit, in order.
    edits: Vec<Applied>,
    /// How many bytes the file has now.
    bytes_written: usize,
}

async fn edit_file(wanted: EditFile, context: ToolContext) -> Result<Rendered<Edited>, ToolError> {
    let place = context.locate(&wanted.path)?;
    let edits = wanted.edits()?;
    let inner = context.clone();
    context.blocking(move || apply(&place, &edits, &inner)).await
}

impl EditFile {
    /// Returns the changes, however they were given.
    fn edits(self) -> Result<Vec<Edit>, ToolError> {
        match (self.edits, self.old_string, self.new_string) {
            (Some(edits), None, None) if edits.len() > MAX_EDITS => {
                Err(ToolError::validation([format!("`edits` has more than {MAX_EDITS} items")]))
            }
            (Some(edits), None, None) if !edits.is_empty() => Ok(edits),
            (None, Some(old_string), Some(new_string)) => {
                Ok(vec![Edit { old_string, new_string, replace_all: self.replace_all }])
            }
            (Some(_), None, None) => Err(ToolError::validation(["`edits` is empty"])),
            (Some(_), ..) => Err(ToolError::validation([
                "give either `edits`, or `old_string` and `new_string`, not both",
            ])),
            (None, old, _) => {
                let missing = if old.is_none() { "old_string" } else { "new_string" };
                Err(ToolError::validation([format!("`{missing}` is missing")]))
            }
        }
    }
}

/// Shows what a call would change, and pins the file as it is. An edit that does not fit ends the call.
fn preview(wanted: &EditFile, context: &ToolContext) -> Result<Option<Display>, ToolError> {
    let place = context.locate(&wanted.path)?;
    let changed = change(&place, &wanted.clone().edits()?, context.cancellation())?;
    context.pin(place.resolved(), FileState::File(FileHash::of(changed.old.as_bytes())));
    Ok(Some(changed.diff(&place)))
}

/// A file as it was and as it will be.
struct Changed {
    old: String,
    new: String,
    applied: Vec<Applied>,
}

impl Changed {
    fn diff(&self, place: &Place) -> Display {
        let text = unified(place.spelled(), &self.old, &self.new);
        Display { format: DisplayFormat::Diff, text }
    }
}

fn apply(
    place: &Place,
    edits: &[Edit],
    context: &ToolContext,
) -> Result<Rendered<Edited>, ToolError> {
    let path = place.resolved();
    let shown = context.pinned(&path);
    let changed = match (change(place, edits, context.cancellation()), shown) {
        // An edit that was shown fitted: the file is another one now.
        (Err(error), Some(shown)) => {
            let current = Current::of(place)?;
            let state = Current::state(current.as_ref());
            let refusal = || not_as_shown(place, &path).tell(&state, context).caused_by(&error);
            return Err(if state == shown { error } else { refusal() });
        }
        (changed, _) => changed?,
    };
    let base = FileHash::of(changed.old.as_bytes());
    if shown.is_some_and(|shown| shown != FileState::File(base)) {
        return Err(not_as_shown(place, &path).tell(&FileState::File(base), context));
    }
    replace_file(place, changed.new.as_bytes(), Some(base), context)?;
    let display = changed.diff(place);
    let Changed { new, applied, .. } = changed;
    let replacements = applied.iter().map(|edit| edit.replacements).sum();
    let text = summary(place.spelled(), replacements, &applied);
    let edited = Edited { replacements, edits: applied, bytes_written: new.len() };
    Ok(Rendered::new(edited, text).with_display(display))
}

fn not_as_shown<'a>(place: &'a Place, path: &'a Path) -> Refusal<'a> {
    Refusal { verb: "edit", place, path, why: Why::NotAsShown }
}

/// Reads the file and makes the changes, in memory.
fn change(place: &Place, edits: &[Edit], token: &CancellationToken) -> Result<Changed, ToolError> {
    let (file, metadata) = place.open_file()?;
    let max = MAX_BYTES as u64;
    if metadata.len() > max {
        return Err(ToolError::failed(format!(
            "`{}` is too long to be edited ({} bytes)",
            place.spelled(),
            metadata.len()
        )));
    }
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes).map_err(|error| place.error(&error, "read"))?;
    let old = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        ToolError::failed(format!(
            "`{}` is not UTF-8 text (byte {valid} is invalid), so it cannot be edited",
            place.spelled()
        ))
    })?;
    let (new, applied) = replace::all(&old, edits, place.spelled(), token)?;
    if new == old {
        return Err(ToolError::failed(format!("the edits leave `{}` as it is", place.spelled())));
    }
    Ok(Changed { old, new, applied })
}

/// Says what was done, and where to look again.
fn summary(path: &str, replacements: usize, applied: &[Applied]) -> String {
    let mut text = format!("Changed `{path}` in {replacements} place(s).");
    for (number, edit) in applied.iter().enumerate().filter(|(_, edit)| edit.whitespace_ignored) {
        text.push_str(&format!(
            " Edit {} matched at line {} only with white space ignored; check its indentation.",
            number + 1,
            edit.line
        ));
    }
    text
}

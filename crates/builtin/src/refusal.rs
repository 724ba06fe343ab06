//! Refuses to change a file whose content the run, or the user who approved the change, has not seen.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use convoke_core::count::count;
use convoke_core::{ErrorKind, ToolError};
use convoke_tool::files::{FileHash, FileState};
use convoke_tool::{Place, Stamp, ToolContext, cut_middle, floor_char_boundary};
use serde_json::json;

use crate::diff::unified;

/// Longer contents are not compared and not shown.
pub(crate) const MAX_DIFF_BYTES: u64 = 256 * 1024;
/// A refusal is read by a model: it shows this much of a diff or of a content.
const MAX_SHOWN_BYTES: usize = 6 * 1024;

/// The reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The run has never seen the file.
    Unread,
    /// The file changed after the run saw it.
    Changed,
    /// The file is not in the state that the preview showed, or from which the change was made.
    NotAsShown,
    /// A directory or a device is in its place.
    NoFile,
}

/// A call that is refused.
pub(crate) struct Refusal<'a> {
    pub(crate) verb: &'a str,
    pub(crate) place: &'a Place,
    pub(crate) path: &'a Path,
    pub(crate) why: Why,
}

impl Refusal<'_> {
    /// Says what is there now. That counts as a read, so the call can be repeated.
    pub(crate) fn tell(&self, state: &FileState, context: &ToolContext) -> ToolError {
        let Self { verb, place, why, .. } = self;
        let spelled = place.spelled();
        let reason = match (state, why) {
            (FileState::Absent, _) => "the file is not there any more",
            (_, Why::Unread) => "the file exists and this run has not read it",
            (_, Why::Changed) => "the file changed after this run last read or wrote it",
            (_, Why::NotAsShown) => "the file changed after this change was shown or made",
            (_, Why::NoFile) => "there is no regular file at this path any more",
        };
        let head = format!("cannot {verb} `{spelled}`: {reason}; nothing was changed");
        let shown = match state {
            FileState::Absent | FileState::Other => None,
            FileState::Link(hash) => {
                context.note_file(self.path, (*hash, None, None), None);
                Some("It is a symbolic link.".to_owned())
            }
            FileState::File(_) => self.now(context),
        };
        if *state == FileState::Absent {
            context.note_gone(self.path, None);
        }
        let next = match (&shown, context.seen_files()) {
            (Some(_), Some(_)) => {
                "This counts as a read. If your change still fits the file as it is now, call the tool \
                 again; otherwise adapt it, for example with edit_file."
            }
            _ => "Look at the file again before you repeat the call.",
        };
        let shown = shown.map(|shown| format!("\n{shown}")).unwrap_or_default();
        ToolError::new(ErrorKind::Failed, format!("{head}.{shown}\n{next}"))
            .with_details(json!({ "stale": spelled }))
    }

    /// Shows how the file differs from what the run last saw, or its beginning.
    fn now(&self, context: &ToolContext) -> Option<String> {
        if context.forbids(self.path) {
            return None;
        }
        let Current { hash, stamp, text, size } = Current::of(self.place).ok()??;
        let before = context.seen_files().and_then(|seen| seen.text(self.path));
        context.note_file(self.path, (hash, Some(stamp), text.as_deref()), None);
        let size = count(size, "byte");
        Some(match (text, before) {
            (None, _) => {
                format!("It has {size}, which are not shown: too many, or not UTF-8 text.")
            }
            (Some(text), Some(before)) if *before != *text => {
                let diff = unified(self.place.spelled(), &before, &text);
                let diff = cut_middle(&diff, MAX_SHOWN_BYTES).unwrap_or(diff);
                format!("It changed like this since this run last saw it:\n{diff}")
            }
            (Some(text), _) => {
                let kept = floor_char_boundary(&text, MAX_SHOWN_BYTES);
                let beginning = text.get(..kept).unwrap_or_default();
                let what = if kept == text.len() { "holds" } else { "begins with" };
                format!("It has {size} and {what}:\n{beginning}")
            }
        })
    }
}

/// A file as it is now.
pub(crate) struct Current {
    pub(crate) hash: FileHash,
    pub(crate) stamp: Stamp,
    /// The content, if it is short text.
    pub(crate) text: Option<String>,
    pub(crate) size: u64,
}

impl Current {
    /// Reads a file once, for its hash and its text; nothing, if there is none.
    pub(crate) fn of(place: &Place) -> Result<Option<Self>, ToolError> {
        let (file, metadata) = match place.open_file() {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let (stamp, size) = (Stamp::of(&metadata), metadata.len());
        let (hash, text) = read(file).map_err(|error| place.error(&error, "read"))?;
        Ok(Some(Self { hash, stamp, text, size }))
    }

    /// Returns the state of the file.
    pub(crate) fn state(current: Option<&Self>) -> FileState {
        current.map_or(FileState::Absent, |current| FileState::File(current.hash))
    }
}

fn read(mut file: File) -> std::io::Result<(FileHash, Option<String>)> {
    let mut bytes = Vec::new();
    (&mut file).take(MAX_DIFF_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= MAX_DIFF_BYTES {
        return Ok((FileHash::of(&bytes), String::from_utf8(bytes).ok()));
    }
    file.rewind()?;
    Ok((FileHash::read(file)?, None))
}

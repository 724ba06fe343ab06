//! Writing a file, whole.

use std::io::Read;

use convoke_core::count::count;
use convoke_core::{Display, DisplayFormat, ErrorKind, ToolError};
use convoke_tool::{Place, Rendered, ToolContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::atomic::{Expect, replace};
use crate::diff::unified;
use crate::encoding::Encoding;

/// Longer old files are replaced without showing what changed.
const MAX_DIFF_BYTES: u64 = 256 * 1024;

#[derive(Deserialize, JsonSchema)]
pub(super) struct WriteFile {
    /// The path.
    path: String,
    /// All of the new content.
    content: String,
    /// How the text becomes bytes, as in `read_file`; utf-8 if absent.
    encoding: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Written {
    /// How many bytes the file has now.
    bytes_written: usize,
}

pub(super) async fn write_file(
    wanted: WriteFile,
    context: ToolContext,
) -> Result<Rendered<Written>, ToolError> {
    if wanted.path.ends_with('/') {
        return Err(ToolError::validation([format!(
            "`path`: `{}` names a directory",
            wanted.path
        )]));
    }
    let encoding = Encoding::named(wanted.encoding.as_deref())?;
    let place = context.locate(&wanted.path)?;
    let token = context.cancellation().clone();
    context
        .blocking(move || {
            let bytes = encoding.encode(&wanted.content)?;
            let old = if encoding == Encoding::Utf8 { old_text(&place) } else { None };
            replace(&place, &*bytes, Expect::Anything, &token)?;
            let text = format!("Wrote {} to `{}`.", count(bytes.len() as u64, "byte"), wanted.path);
            let rendered = Rendered::new(Written { bytes_written: bytes.len() }, text);
            Ok(match old {
                Some(old) => rendered.with_display(Display {
                    format: DisplayFormat::Diff,
                    text: unified(&wanted.path, &old, &wanted.content),
                }),
                None => rendered,
            })
        })
        .await
}

/// Shows what a call would change.
pub(super) fn preview(wanted: &WriteFile, context: &ToolContext) -> Option<Display> {
    if Encoding::named(wanted.encoding.as_deref()).ok()? != Encoding::Utf8 {
        return None;
    }
    let old = old_text(&context.locate(&wanted.path).ok()?)?;
    let text = unified(&wanted.path, &old, &wanted.content);
    Some(Display { format: DisplayFormat::Diff, text })
}

/// Returns what is there now, if it is short text; nothing at all counts as empty.
fn old_text(place: &Place) -> Option<String> {
    match place.open_file() {
        Ok((file, metadata)) if metadata.len() <= MAX_DIFF_BYTES => {
            let mut text = String::new();
            file.take(MAX_DIFF_BYTES).read_to_string(&mut text).ok()?;
            Some(text)
        }
        Err(error) if error.kind == ErrorKind::NotFound => Some(String::new()),
        _ => None,
    }
}

//! Writing a file, whole.

use convoke_core::count::count;
use convoke_core::{Display, DisplayFormat, ToolError};
use convoke_tool::{Place, Rendered, ToolContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::atomic::{Demand, replace};
use crate::diff::unified;
use crate::encoding::Encoding;
use crate::refusal::{Current, Refusal};

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
    let inner = context.clone();
    context
        .blocking(move || {
            let bytes = encoding.encode(&wanted.content)?;
            let old = if encoding == Encoding::Utf8 { old_text(&place) } else { None };
            replace(&place, &bytes, None, &inner)?;
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

/// Shows what a call would change, and pins the file as it is. A file that the run has not seen ends the call.
pub(super) fn preview(
    wanted: &WriteFile,
    context: &ToolContext,
) -> Result<Option<Display>, ToolError> {
    let encoding = Encoding::named(wanted.encoding.as_deref())?;
    let place = context.locate(&wanted.path)?;
    let (path, current) = (place.resolved(), Current::of(&place)?);
    let state = Current::state(current.as_ref());
    if let Some(why) = Demand::of(context, &path).objection(&state) {
        let refusal = Refusal { verb: "write", place: &place, path: &path, why };
        return Err(refusal.tell(&state, context));
    }
    context.pin(path, state);
    let old = current.map_or(Some(String::new()), |current| current.text);
    let old = old.filter(|_| encoding == Encoding::Utf8);
    Ok(old.map(|old| {
        let text = unified(&wanted.path, &old, &wanted.content);
        Display { format: DisplayFormat::Diff, text }
    }))
}

/// Returns what is there now, if it is short text; nothing at all counts as empty.
fn old_text(place: &Place) -> Option<String> {
    Current::of(place).ok()?.map_or(Some(String::new()), |current| current.text)
}

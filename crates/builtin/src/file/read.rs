//! Reading a file, whole or some lines of it.

use std::io::{BufRead, BufReader, Read};

use convoke_core::ToolError;
use convoke_tool::{Place, Stamp, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::encoding::Encoding;

/// The size of a read when lines are looked for in a long file.
const BUFFER_BYTES: usize = 256 * 1024;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ReadFile {
    /// The path.
    path: String,
    /// How its bytes become text: utf-8 (the default), utf-16le, utf-16be, latin1, or base64 for bytes.
    encoding: Option<String>,
    /// The first line wanted, counted from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many lines.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

/// What was read.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileContent {
    /// The text.
    content: String,
    /// How many bytes the whole file has.
    size: u64,
    /// The number of the first line, if lines were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<u64>,
    /// The number of the last line.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<u64>,
    /// Whether there is more than was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
}

pub(super) async fn read_file(
    wanted: ReadFile,
    context: ToolContext,
    max_bytes: usize,
) -> Result<ToolOutput, ToolError> {
    let encoding = Encoding::named(wanted.encoding.as_deref())?;
    let place = context.locate(&wanted.path)?;
    let lines = wanted.offset.is_some() || wanted.limit.is_some();
    let inner = context.clone();
    context
        .blocking(move || {
            if lines {
                let offset = wanted.offset.unwrap_or(1);
                read_lines(&place, encoding, offset, wanted.limit, max_bytes, &inner)
            } else {
                read_whole(&place, encoding, max_bytes, &inner)
            }
        })
        .await
}

fn read_whole(
    place: &Place,
    encoding: Encoding,
    max_bytes: usize,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let (file, metadata) = place.open_file()?;
    let stamp = Stamp::of(&metadata);
    let cache = (encoding == Encoding::Utf8).then(|| (place.absolute(), context.read_cache()));
    if let Some((path, cache)) = &cache
        && let Some(content) = cache.get(path, stamp)
    {
        return Ok(whole(content.to_string(), metadata.len()));
    }
    let expected = usize::try_from(metadata.len()).unwrap_or(usize::MAX).min(max_bytes);
    // One byte more than expected: a read that comes back short shows the end without another one.
    let mut bytes = Vec::with_capacity(expected + 1);
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).map_err(|error| place.error(&error, "read"))?;
    let size = metadata.len().max(bytes.len() as u64);
    if bytes.len() > max_bytes {
        bytes.truncate(encoding.floor(&bytes, max_bytes));
        let kept = bytes.len();
        let content = encoding.decode(bytes, place.spelled())?;
        let note =
            format!("[only the first {kept} of {size} bytes; read on with `offset` and `limit`]");
        let text = format!("{content}\n{note}");
        return Ok(ToolOutput::new(json!({ "content": content, "size": size, "truncated": true }))
            .with_text(text));
    }
    let content = encoding.decode(bytes, place.spelled())?;
    if let Some((path, cache)) = cache {
        cache.put(&path, stamp, &content, context.clock().now());
    }
    Ok(whole(content, size))
}

/// A long text is moved into the value; the model's part of it is cut from there.
fn whole(content: String, size: u64) -> ToolOutput {
    let mut value = serde_json::Map::new();
    value.insert("content".into(), Value::String(content));
    value.insert("size".into(), size.into());
    ToolOutput::new(Value::Object(value)).with_text_field("content")
}

fn read_lines(
    place: &Place,
    encoding: Encoding,
    offset: u64,
    limit: Option<u64>,
    max_bytes: usize,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    if !matches!(encoding, Encoding::Utf8 | Encoding::Latin1) {
        return Err(ToolError::validation([
            "`offset` and `limit` count lines, which only utf-8 and latin1 files have here",
        ]));
    }
    let (file, metadata) = place.open_file()?;
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let skipped = skip_lines(&mut reader, offset - 1, context)
        .map_err(|error| place.error(&error, "read"))?;
    if skipped < offset - 1 {
        return Err(ToolError::failed(format!(
            "`{}` has {skipped} lines, so there is no line {offset}",
            place.spelled()
        )));
    }
    let wanted = limit.unwrap_or(u64::MAX);
    let (mut bytes, mut lines, mut cut) = (Vec::new(), 0, false);
    while lines < wanted && !cut {
        let room = u64::try_from(max_bytes - bytes.len()).unwrap_or(u64::MAX);
        let read = reader.by_ref().take(room).read_until(b'\n', &mut bytes);
        match read.map_err(|error| place.error(&error, "read"))? {
            0 => break,
            _ => lines += 1,
        }
        cut = bytes.len() >= max_bytes;
    }
    let more = cut || !reader.fill_buf().map_err(|error| place.error(&error, "read"))?.is_empty();
    if cut {
        bytes.truncate(encoding.floor(&bytes, max_bytes));
    }
    let content = encoding.decode(bytes, place.spelled())?;
    let last = offset + lines.saturating_sub(1);
    let mut text = content.clone();
    if more {
        text.push_str(&format!(
            "\n[lines {offset} to {last}; more follow: read on with offset {}]",
            last + 1
        ));
    }
    Ok(ToolOutput::new(json!({
        "content": content, "size": metadata.len(),
        "startLine": offset, "endLine": last, "truncated": more,
    }))
    .with_text(text))
}

/// Skips lines and returns how many there were to skip. A long file can be given up half way.
fn skip_lines(
    reader: &mut impl BufRead,
    count: u64,
    context: &ToolContext,
) -> std::io::Result<u64> {
    let mut skipped = 0;
    while skipped < count && !context.cancellation().is_cancelled() {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        let wanted = usize::try_from(count - skipped).unwrap_or(usize::MAX);
        let (mut newlines, mut last) = (0, 0);
        for at in memchr::memchr_iter(b'\n', buffer).take(wanted) {
            newlines += 1;
            last = at;
        }
        skipped += newlines as u64;
        let consumed = if newlines == wanted { last + 1 } else { buffer.len() };
        reader.consume(consumed);
    }
    Ok(skipped)
}

//! Reading a file, whole or some lines of it.
//!
//! No more is read than the limit. What is cut is cut between characters, and lines are given whole:
//! one that does not fit is left for the next read, unless it is the first and fits into none.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};

use convoke_core::ToolError;
use convoke_tool::files::FileHash;
use convoke_tool::{Place, Stamp, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

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
    let (mut file, metadata) = place.open_file()?;
    let stamp = Stamp::of(&metadata);
    let cache = (encoding == Encoding::Utf8).then(|| (place.absolute(), context.read_cache()));
    if let Some((path, cache)) = &cache
        && let Some(content) = cache.get(path, stamp)
    {
        note(context, place, stamp, FileHash::of(content.as_bytes()), Some(&content));
        return Ok(whole(content.to_string(), metadata.len()));
    }
    let expected = usize::try_from(metadata.len()).unwrap_or(usize::MAX).min(max_bytes);
    // One byte more than expected: a read that comes back short shows the end without another one.
    let mut bytes = Vec::with_capacity(expected + 1);
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    let read = (&mut file).take(limit).read_to_end(&mut bytes);
    read.map_err(|error| place.error(&error, "read"))?;
    let size = metadata.len().max(bytes.len() as u64);
    if bytes.len() > max_bytes {
        note_whole(&mut file, stamp, place, context)?;
        bytes.truncate(encoding.floor(&bytes, max_bytes));
        let kept = bytes.len();
        let content = encoding.decode(bytes, place.spelled())?;
        let note = format!(
            "[only the first {kept} of {size} bytes; `offset` and `limit` read other lines]"
        );
        let text = format!("{content}\n{note}");
        return Ok(ToolOutput::new(json!({ "content": content, "size": size, "truncated": true }))
            .with_text(text));
    }
    let hash = FileHash::of(&bytes);
    let content = encoding.decode(bytes, place.spelled())?;
    let text = Some(content.as_str()).filter(|_| encoding == Encoding::Utf8);
    note(context, place, stamp, hash, text);
    if let Some((path, cache)) = cache {
        cache.put(&path, stamp, &content, context.clock().now());
    }
    Ok(whole(content, size))
}

/// Notes the content that the run saw. Any part of a file counts as a read of the file.
fn note(context: &ToolContext, place: &Place, stamp: Stamp, hash: FileHash, text: Option<&str>) {
    if context.seen_files().is_some() {
        context.note_file(&place.resolved(), (hash, Some(stamp), text), None);
    }
}

/// Notes a file of which only a part was read: all of it is hashed, unless it is as the run last saw it.
fn note_whole(
    file: &mut File,
    stamp: Stamp,
    place: &Place,
    context: &ToolContext,
) -> Result<(), ToolError> {
    let Some(seen) = context.seen_files() else { return Ok(()) };
    let path = place.resolved();
    if seen.hash_of_state(&path, &stamp).is_some() {
        return Ok(());
    }
    let rest = Stoppable { file: &mut *file, token: context.cancellation() };
    let hash = rest.file.rewind().and_then(|()| FileHash::read(rest));
    match hash {
        Ok(hash) => note(context, place, stamp, hash, None),
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            return Err(ToolError::cancelled(format!("`{}` was not read", place.spelled())));
        }
        Err(error) => return Err(place.error(&error, "read")),
    }
    Ok(())
}

/// A file whose reading ends when the call does.
struct Stoppable<'a> {
    file: &'a mut File,
    token: &'a CancellationToken,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.token.is_cancelled() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
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
    find_line(&mut reader, offset, place, context)?;
    let taken = take_lines(&mut reader, limit.unwrap_or(u64::MAX), max_bytes, encoding)
        .map_err(|error| place.error(&error, "read"))?;
    let content = encoding.decode(taken.bytes, place.spelled())?;
    note_whole(&mut reader.into_inner(), Stamp::of(&metadata), place, context)?;
    let last = offset + taken.lines.saturating_sub(1);
    let note = match taken.rest {
        Rest::Nothing => String::new(),
        Rest::Lines => {
            format!("\n[lines {offset} to {last}; more follow: read on with offset {}]", last + 1)
        }
        Rest::OfTheLine { kept } => {
            format!("\n[line {last} is cut at {kept} bytes; the next line is offset {}]", last + 1)
        }
    };
    let text = format!("{content}{note}");
    Ok(ToolOutput::new(json!({
        "content": content, "size": metadata.len(),
        "startLine": offset, "endLine": last, "truncated": taken.rest != Rest::Nothing,
    }))
    .with_text(text))
}

/// Lines that were read, and what was not.
struct Taken {
    bytes: Vec<u8>,
    lines: u64,
    rest: Rest,
}

#[derive(PartialEq, Eq)]
enum Rest {
    Nothing,
    Lines,
    /// The only line was too long.
    OfTheLine {
        kept: usize,
    },
}

/// Reads lines as long as they fit.
fn take_lines(
    reader: &mut impl BufRead,
    wanted: u64,
    max_bytes: usize,
    encoding: Encoding,
) -> std::io::Result<Taken> {
    let (mut bytes, mut lines) = (Vec::new(), 0);
    while lines < wanted {
        let start = bytes.len();
        // One byte more than there is room for shows whether the line fits.
        let room = u64::try_from(max_bytes - start).unwrap_or(u64::MAX).saturating_add(1);
        if reader.by_ref().take(room).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(Taken { bytes, lines, rest: Rest::Nothing });
        }
        if bytes.len() > max_bytes && lines == 0 {
            let kept = encoding.floor(&bytes, max_bytes);
            bytes.truncate(kept);
            return Ok(Taken { bytes, lines: 1, rest: Rest::OfTheLine { kept } });
        }
        if bytes.len() > max_bytes {
            bytes.truncate(start);
            return Ok(Taken { bytes, lines, rest: Rest::Lines });
        }
        lines += 1;
    }
    let rest = if reader.fill_buf()?.is_empty() { Rest::Nothing } else { Rest::Lines };
    Ok(Taken { bytes, lines, rest })
}

/// Goes to a line, or says that there is none. The first line of an empty file is there.
fn find_line(
    reader: &mut impl BufRead,
    offset: u64,
    place: &Place,
    context: &ToolContext,
) -> Result<(), ToolError> {
    let skipped =
        skip_lines(reader, offset - 1, context).map_err(|error| place.error(&error, "read"))?;
    if context.cancellation().is_cancelled() {
        return Err(ToolError::cancelled(format!("`{}` was not read", place.spelled())));
    }
    let at_end = reader.fill_buf().map_err(|error| place.error(&error, "read"))?.is_empty();
    if offset == 1 || !at_end {
        return Ok(());
    }
    Err(ToolError::failed(format!(
        "`{}` has {skipped} line{}, so there is no line {offset}",
        place.spelled(),
        if skipped == 1 { "" } else { "s" }
    )))
}

/// Skips lines and returns how many there were to skip; the last may have no newline. A long file can
/// be given up half way.
fn skip_lines(
    reader: &mut impl BufRead,
    count: u64,
    context: &ToolContext,
) -> std::io::Result<u64> {
    let (mut skipped, mut inside_line) = (0, false);
    while skipped < count && !context.cancellation().is_cancelled() {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(skipped + u64::from(inside_line));
        }
        let wanted = usize::try_from(count - skipped).unwrap_or(usize::MAX);
        let (mut newlines, mut last) = (0, 0);
        for at in memchr::memchr_iter(b'\n', buffer).take(wanted) {
            newlines += 1;
            last = at;
        }
        skipped += newlines as u64;
        inside_line = buffer.last() != Some(&b'\n');
        let consumed = if newlines == wanted { last + 1 } else { buffer.len() };
        reader.consume(consumed);
    }
    Ok(skipped)
}

//! One line of a journal.
//!
//! ```text
//! {"prev":"<sha256 of the line before>",…the fields of the event…,"sum":"<checksum of this line>"}
//! ```
//!
//! `prev` is the SHA-256 of all bytes of the line before, without its newline, so `sha256sum` alone can
//! follow the chain. `sum` is the first sixteen digits of the SHA-256 of everything before `,"sum"`: it
//! tells which line was altered, and covers the last one, which no other line vouches for. An event
//! with long texts has them elsewhere: then `"blobs":{"<JSON pointer>":"<sha256>"}` follows `prev`.

use std::collections::BTreeMap;

use convoke_core::Event;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::damage::Reason;
use crate::error::JournalError;
use crate::hash::Hash;

/// Values inside values, this deep, can be read back on any thread's stack.
pub(crate) const MAX_DEPTH: usize = 256;

const PREV: &[u8] = b"{\"prev\":\"";
const SUM: &[u8] = b",\"sum\":\"";
const END: &[u8] = b"\"}";
const BLOBS: &[u8] = b",\"blobs\":";

/// The digits of a hash.
const HASH_LENGTH: usize = 64;
/// Stands for a text whose blob is gone or is not what it was.
const LOST_TEXT: &str = "[lost: the file of this text is missing or damaged]";

/// Which values of an event are kept in which blobs, by JSON pointer.
pub(crate) type Moved = BTreeMap<String, String>;

/// Writes the line of an event, its newline included, and returns its hash.
pub(crate) fn write(
    line: &mut Vec<u8>,
    prev: &Hash,
    moved: &Moved,
    event: &Event,
) -> Result<Hash, JournalError> {
    line.clear();
    line.extend_from_slice(PREV);
    line.extend_from_slice(prev.as_bytes());
    line.push(b'"');
    if !moved.is_empty() {
        line.extend_from_slice(BLOBS);
        serde_json::to_writer(&mut *line, moved).map_err(JournalError::Json)?;
    }
    let opening = line.len();
    serde_json::to_writer(&mut *line, event).map_err(JournalError::Json)?;
    // The fields of the event go on where ours end.
    if let Some(brace) = line.get_mut(opening) {
        *brace = b',';
    }
    Ok(seal(line))
}

/// Writes the first line and returns its hash.
pub(crate) fn write_header(
    line: &mut Vec<u8>,
    header: &impl Serialize,
) -> Result<Hash, JournalError> {
    line.clear();
    serde_json::to_writer(&mut *line, header).map_err(JournalError::Json)?;
    Ok(seal(line))
}

/// Ends a line with its checksum and a newline.
fn seal(line: &mut Vec<u8>) -> Hash {
    line.pop();
    let mut hasher = Sha256::new_with_prefix(&*line);
    let checksum = Hash::finish(hasher.clone());
    let content = line.len();
    line.extend_from_slice(SUM);
    line.extend_from_slice(checksum.short());
    line.extend_from_slice(END);
    hasher.update(line.get(content..).unwrap_or_default());
    line.push(b'\n');
    Hash::finish(hasher)
}

/// Checks that a line, without its newline, is as it was written, and returns its hash.
pub(crate) fn verify(line: &[u8]) -> Result<Hash, Reason> {
    let sum_length = SUM.len() + 16 + END.len();
    let content = line.len().saturating_sub(sum_length);
    let (content, rest) = line.split_at_checked(content).unwrap_or_default();
    let mut hasher = Sha256::new_with_prefix(content);
    let checksum = Hash::finish(hasher.clone());
    let fits = rest.strip_prefix(SUM).and_then(|rest| rest.strip_suffix(END));
    if fits == Some(checksum.short()) {
        hasher.update(rest);
        return Ok(Hash::finish(hasher));
    }
    Err(if is_json(line) { Reason::Altered } else { Reason::NotJson })
}

/// Reads the event of a line that was verified, and that follows the line with this hash, where that is known. A text
/// whose blob cannot be had is replaced by a mark, and the reason is added to `lost`.
pub(crate) fn read(
    line: &[u8],
    prev: Option<&Hash>,
    fetch: impl Fn(&str, &str) -> Result<String, Reason>,
    lost: &mut Vec<Reason>,
) -> Result<Event, Reason> {
    let rest = line.strip_prefix(PREV).and_then(|rest| match prev {
        Some(prev) => rest.strip_prefix(prev.as_bytes()),
        None => rest.split_at_checked(HASH_LENGTH).map(|(_, rest)| rest),
    });
    let rest = rest.and_then(|rest| rest.strip_prefix(b"\"")).ok_or(Reason::BrokenChain)?;
    let event = if rest.starts_with(BLOBS) { put_back(line, fetch, lost)? } else { parse(line) };
    event.map_err(|error| Reason::Unknown { problem: error.to_string() })
}

fn put_back(
    line: &[u8],
    fetch: impl Fn(&str, &str) -> Result<String, Reason>,
    lost: &mut Vec<Reason>,
) -> Result<serde_json::Result<Event>, Reason> {
    let unknown = |problem: String| Reason::Unknown { problem };
    let mut whole: Value = parse(line).map_err(|error| unknown(error.to_string()))?;
    let moved = whole.get_mut("blobs").map(Value::take).unwrap_or_default();
    let moved: Moved = serde_json::from_value(moved).map_err(|error| unknown(error.to_string()))?;
    for (pointer, hash) in moved {
        let text = fetch(&pointer, &hash).unwrap_or_else(|reason| {
            lost.push(reason);
            LOST_TEXT.to_owned()
        });
        match whole.pointer_mut(&pointer) {
            Some(value) => *value = Value::String(text),
            None => return Err(unknown(format!("there is no value at `{pointer}`"))),
        }
    }
    Ok(serde_json::from_value(whole))
}

/// Reads JSON as deep as [`write`] may have written it.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    if depth(bytes) <= MAX_DEPTH {
        deserializer.disable_recursion_limit();
    }
    let value = T::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Tells whether a disk that lost its power may have left a line so: nobody writes zeros to a journal, but
/// they stand where it was made longer before what was to stand there arrived.
pub(crate) fn is_torn(line: &[u8]) -> bool {
    line.contains(&0)
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// Returns how deep values are inside values, or a number at least as high where that is low enough.
pub(crate) fn depth(json: &[u8]) -> usize {
    let opened = json.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if opened <= MAX_DEPTH { opened } else { exact_depth(json) }
}

fn exact_depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = json.iter();
    let mut in_text = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_text = !in_text,
            b'\\' if in_text => drop(bytes.next()),
            b'{' | b'[' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_texts_are_not_depth() {
        let flat = format!("[\"{}\\\"{}\"]", "[".repeat(400), "{".repeat(400));
        assert_eq!(depth(flat.as_bytes()), 1);
        let wide = format!("[{}[]]", "{},".repeat(400));
        assert_eq!(depth(wide.as_bytes()), 2);
        assert_eq!(depth("[".repeat(300).as_bytes()), 300);
    }

    #[test]
    fn a_line_says_what_is_wrong_with_it() {
        let mut line = Vec::new();
        let hash = write_header(&mut line, &serde_json::json!({ "a": 1 })).unwrap();
        assert_eq!(line.pop(), Some(b'\n'));
        assert_eq!(hash, Hash::of(&line));
        assert_eq!(verify(&line), Ok(hash));
        let altered = String::from_utf8(line).unwrap().replace(":1", ":2");
        assert_eq!(verify(altered.as_bytes()), Err(Reason::Altered));
        assert_eq!(verify(b"\0\0\0"), Err(Reason::NotJson));
        assert_eq!(verify(b""), Err(Reason::NotJson));
    }
}

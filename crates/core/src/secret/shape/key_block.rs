//! Private keys as they stand in files: a line that begins them, lines of base64, a line that ends them.
//!
//! A block that was cut off, by `head` for instance, is a secret too. The lines may be real ones or
//! written with `\n`, as in JSON, and may be indented.

use super::token::{is_example, secret};
use super::{End, Verdict};

/// No key is longer: so much is looked at, and held back, at most.
const LONGEST: usize = 16 * 1024;
/// No label and no header is longer.
const LONGEST_LABEL: usize = 64;
const LONGEST_HEADER: usize = 256;
/// All lines of a key but the last have at least this many characters.
const SHORTEST_LINE: usize = 32;

/// Judges a block that begins at `place`, and whose label begins at `label`.
pub(super) fn judge(
    kind: &'static str,
    text: &str,
    place: usize,
    label: usize,
    end: End,
) -> Verdict {
    let bytes = text.as_bytes();
    let limit = (place + LONGEST).min(bytes.len());
    let mut cursor = Cursor { bytes: bytes.get(..limit).unwrap_or_default(), at: label };
    // Where the limit ends the text, nothing that comes later changes anything.
    let end = if limit < bytes.len() { End::Here } else { end };
    match cursor.label() {
        Read::Done(label) if is_private(label) => {}
        Read::EndOfText if end == End::Later => return Verdict::More,
        _ => return Verdict::No,
    }
    let mut first: Option<&[u8]> = None;
    let mut last_end = cursor.at;
    loop {
        let new_line = cursor.separators();
        if cursor.rest().is_empty() {
            break;
        }
        match cursor.closing() {
            Read::Done(()) => return whole(kind, text, place, first, cursor.at),
            Read::EndOfText if end == End::Later => return Verdict::More,
            _ => {}
        }
        let line = cursor.line();
        if line.len() == cursor.rest().len() && end == End::Later {
            return Verdict::More;
        }
        if line.len() >= SHORTEST_LINE {
            cursor.at += line.len();
            last_end = cursor.at;
            first = first.or(Some(line));
            continue;
        }
        let Some(_) = first else {
            match cursor.header() {
                Read::Done(()) if new_line => continue,
                Read::EndOfText if end == End::Later => return Verdict::More,
                _ => break,
            }
        };
        if line.is_empty() || !new_line {
            return whole(kind, text, place, first, last_end);
        }
        // A short line is the last one: the block ends after it, or the text does.
        let mut after = Cursor { at: cursor.at + line.len(), ..cursor };
        let line_end = after.at;
        after.separators();
        match after.closing() {
            Read::EndOfText if end == End::Later => return Verdict::More,
            Read::Done(()) => {}
            _ if after.rest().is_empty() => {}
            _ => return whole(kind, text, place, first, last_end),
        }
        cursor.at = line_end;
        last_end = line_end;
    }
    if cursor.rest().is_empty() && end == End::Later {
        return Verdict::More;
    }
    whole(kind, text, place, first, last_end)
}

fn whole(
    kind: &'static str,
    text: &str,
    place: usize,
    first: Option<&[u8]>,
    end: usize,
) -> Verdict {
    match first {
        Some(line) if !is_example(line) => secret(kind, text, place..end),
        _ => Verdict::No,
    }
}

fn is_private(label: &[u8]) -> bool {
    label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK")
}

/// What was read.
enum Read<T> {
    Done(T),
    /// Something else is there.
    Other,
    /// The text ended before.
    EndOfText,
}

fn word(rest: &[u8], word: &[u8]) -> Read<()> {
    if rest.starts_with(word) {
        Read::Done(())
    } else if word.starts_with(rest) {
        Read::EndOfText
    } else {
        Read::Other
    }
}

struct Cursor<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Cursor<'t> {
    fn rest(&self) -> &'t [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Reads a label and the dashes after it.
    fn label(&mut self) -> Read<&'t [u8]> {
        let rest = self.rest();
        let is_letter =
            |byte: &&u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || **byte == b' ';
        let length = rest.iter().take(LONGEST_LABEL).take_while(is_letter).count();
        let (label, after) = rest.split_at_checked(length).unwrap_or_default();
        match word(after, b"-----") {
            Read::Done(()) => {
                self.at += length + 5;
                Read::Done(label)
            }
            Read::EndOfText if length < LONGEST_LABEL => Read::EndOfText,
            _ => Read::Other,
        }
    }

    /// Reads the line that ends a block.
    fn closing(&mut self) -> Read<()> {
        const START: &[u8] = b"-----END ";
        let start = self.at;
        match word(self.rest(), START) {
            Read::Done(()) => self.at += START.len(),
            other => return other,
        }
        match self.label() {
            Read::Done(_) => Read::Done(()),
            Read::EndOfText => {
                self.at = start;
                Read::EndOfText
            }
            Read::Other => {
                self.at = start;
                Read::Other
            }
        }
    }

    /// Goes over what stands between lines; tells whether a new line is there.
    fn separators(&mut self) -> bool {
        let mut new_line = false;
        loop {
            match self.rest() {
                [b'\\', b'n' | b'r', ..] => {
                    new_line = true;
                    self.at += 2;
                }
                [b'\n' | b'\r', ..] => {
                    new_line = true;
                    self.at += 1;
                }
                // A backslash at the end is half of a line break.
                [b' ' | b'\t', ..] | [b'\\'] => self.at += 1,
                _ => return new_line,
            }
        }
    }

    fn line(&self) -> &'t [u8] {
        let rest = self.rest();
        let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        rest.get(..rest.iter().take_while(is_letter).count()).unwrap_or_default()
    }

    /// Reads a header: a name, a colon and something until the line ends.
    fn header(&mut self) -> Read<()> {
        let rest = self.rest();
        let is_over = |byte: &u8| matches!(byte, b'\n' | b'\r' | b'\\');
        let looked_at = rest.get(..rest.len().min(LONGEST_HEADER)).unwrap_or_default();
        let length = looked_at.iter().position(is_over);
        let line = looked_at.get(..length.unwrap_or(looked_at.len())).unwrap_or_default();
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        let name = line.iter().take_while(|byte| is_name(byte)).count();
        match (length, line.get(name)) {
            (None, None | Some(b':')) if looked_at.len() < LONGEST_HEADER => Read::EndOfText,
            (Some(length), Some(b':')) if name > 0 => {
                self.at += length;
                Read::Done(())
            }
            _ => Read::Other,
        }
    }
}

//! Known secrets whose characters are escaped, all of them or some: in addresses (`%73`), code (`\x73`,
//! `\u0073`, `\163`), markup (`&#115;`), mail (`=73`) and JSON within JSON.
//!
//! Lines with such escapes are decoded, up to three times, and the known forms are looked for in the
//! result.

use std::ops::Range;

use super::finder::{Finder, Found};
use super::layout::Unit;
use super::shape::End;

/// Characters of a line that are decoded at once. A longer line is decoded in overlapping parts.
const LONGEST_PART: usize = 64 * 1024;
/// How often a text may have been escaped.
const ROUNDS: usize = 3;
/// Characters of the longest escape: `\u{10ffff}`.
const LONGEST_ESCAPE: usize = 10;

/// A form that was found behind escapes.
pub(super) struct Escaped {
    pub(super) span: Range<usize>,
    pub(super) word: usize,
}

/// The answer about a text from a place on.
pub(super) enum Answer {
    /// No form, as far as the text goes.
    Clear,
    Found(Escaped),
    /// From here on a form may begin.
    Open(usize),
}

/// Finds the first of the finder's words that stands in a text behind escapes.
pub(super) fn next(
    text: &str,
    from: usize,
    end: End,
    finder: &Finder,
    longest: usize,
    is_form: impl Fn(usize) -> bool,
) -> Answer {
    let mut unfinished = unfinished_escape(text.as_bytes(), from).filter(|_| end == End::Later);
    let text = text.get(..unfinished.unwrap_or(text.len())).unwrap_or(text);
    let mut place = from;
    while let Some(escape) = next_escape(text.as_bytes(), place) {
        let line = part_around(text, from, escape);
        let mut units = plain(text, line.clone());
        for _ in 0..ROUNDS {
            let decoded = decode(&units);
            if decoded.len() == units.len() {
                break;
            }
            units = decoded;
            let bytes: Vec<u8> = units.iter().map(|unit| unit.byte).collect();
            if let Some(found) = first_form(finder, &bytes, &is_form) {
                let span = span(&units, found.start, found.end);
                return Answer::Found(Escaped { span, word: found.word });
            }
            if end == End::Here || line.end < text.len() {
                continue;
            }
            let cut = unfinished_escape(&bytes, 0).unwrap_or(bytes.len());
            let whole = bytes.get(..cut).unwrap_or_default();
            let start = |at: usize| units.get(at).map(|unit| unit.start.max(from));
            let beginning = finder.find_beginning(whole, 0, |_, _| true).unwrap_or(cut);
            unfinished = start(beginning).into_iter().chain(unfinished).min();
            units.truncate(cut);
        }
        // Parts of a long line overlap, so that a form between two of them is found.
        let is_whole = line.end == text.len() || text.get(..line.end).is_some_and(ends_line);
        let overlap = line.end.saturating_sub(longest * LONGEST_ESCAPE).max(escape + 1);
        place = if is_whole { line.end } else { text.ceil_char_boundary(overlap) };
    }
    unfinished.map_or(Answer::Clear, Answer::Open)
}

fn first_form(finder: &Finder, bytes: &[u8], is_form: impl Fn(usize) -> bool) -> Option<Found> {
    let mut from = 0;
    while let Some(found) = finder.find(bytes, from) {
        if is_form(found.word) {
            return Some(found);
        }
        from = found.start + 1;
    }
    None
}

fn span(units: &[Unit], first: usize, end: usize) -> Range<usize> {
    let start = units.get(first).map_or(0, |unit| unit.start);
    let last = units.get(end.saturating_sub(1)).map_or(start, |unit| unit.end);
    start..last
}

/// Returns the line around an escape, with the lines that it goes on in, up to a limit.
fn part_around(text: &str, from: usize, escape: usize) -> Range<usize> {
    let before = text.get(from..escape).unwrap_or_default();
    let start = before.rfind('\n').map_or(from, |at| from + at + 1);
    let start = text.floor_char_boundary(start.max(escape.saturating_sub(LONGEST_PART)));
    let limit = text.floor_char_boundary((escape + LONGEST_PART).min(text.len()));
    let mut end = escape;
    while let Some(rest) = text.get(end..limit) {
        let Some(line_end) = rest.find('\n') else { break };
        let line = rest.get(..line_end).unwrap_or_default().trim_end_matches('\r');
        end += line_end + 1;
        if !line.ends_with(['=', '\\']) {
            return start..end;
        }
    }
    start..limit
}

fn plain(text: &str, part: Range<usize>) -> Vec<Unit> {
    let bytes = text.as_bytes().get(part.clone()).unwrap_or_default().iter().zip(part);
    bytes.map(|(byte, start)| Unit { byte: *byte, start, end: start + 1 }).collect()
}

fn ends_line(text: &str) -> bool {
    text.ends_with('\n')
}

/// Returns the place of the next escape.
fn next_escape(text: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let is_escape = |at: &usize| {
        let head = rest.get(*at..rest.len().min(at + LONGEST_ESCAPE)).unwrap_or_default();
        read_escape(head).is_some()
    };
    let first = memchr::memchr3_iter(b'%', b'\\', b'&', rest).find(is_escape);
    // The sign of mail is looked for apart: it is frequent in code, and hardly ever an escape there.
    let before = rest.get(..first.unwrap_or(rest.len())).unwrap_or_default();
    let mail = memchr::memchr_iter(b'=', before).find(is_escape);
    mail.or(first).map(|at| from + at)
}

/// Returns where an escape begins whose end is not there yet.
fn unfinished_escape(bytes: &[u8], from: usize) -> Option<usize> {
    let near = from.max(bytes.len().saturating_sub(LONGEST_ESCAPE - 1));
    let tail = bytes.get(near..)?;
    let at = near + tail.iter().rposition(|byte| matches!(byte, b'%' | b'\\' | b'&' | b'='))?;
    let escape = bytes.get(at + 1..)?;
    let digits =
        escape.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'#' | b'{'));
    (digits && read_escape(bytes.get(at..)?).is_none()).then_some(at)
}

/// Decodes the escapes of a text once.
fn decode(units: &[Unit]) -> Vec<Unit> {
    let mut decoded = Vec::with_capacity(units.len());
    let mut place = 0;
    while let Some(unit) = units.get(place) {
        let is_sign = matches!(unit.byte, b'%' | b'\\' | b'&' | b'=');
        let head = units.get(place..units.len().min(place + LONGEST_ESCAPE)).unwrap_or_default();
        let head: Vec<u8> =
            if is_sign { head.iter().map(|unit| unit.byte).collect() } else { vec![] };
        let Some((letter, length)) = read_escape(&head) else {
            decoded.push(*unit);
            place += 1;
            continue;
        };
        let end = units.get(place + length - 1).map_or(unit.end, |last| last.end);
        let mut bytes = [0; 4];
        let bytes: &[u8] = match letter {
            Letter::Byte(byte) => &[byte],
            Letter::Char(letter) => letter.encode_utf8(&mut bytes).as_bytes(),
            Letter::Nothing => &[],
        };
        decoded.extend(bytes.iter().map(|byte| Unit { byte: *byte, start: unit.start, end }));
        place += length;
    }
    decoded
}

/// An escape stands for this.
enum Letter {
    Byte(u8),
    Char(char),
    Nothing,
}

/// Reads the escape at the beginning of a text, and its length.
fn read_escape(text: &[u8]) -> Option<(Letter, usize)> {
    let number = |digits: Option<&[u8]>, radix| {
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_alphanumeric))?;
        u32::from_str_radix(str::from_utf8(digits).ok()?, radix).ok()
    };
    let byte = |digits, radix| Some(Letter::Byte(u8::try_from(number(digits, radix)?).ok()?));
    let letter = |digits, radix| Some(Letter::Char(char::from_u32(number(digits, radix)?)?));
    let until = |from: usize, end: u8| {
        text.get(from..)?.iter().position(|byte| *byte == end).map(|at| from + at)
    };
    match text {
        [b'%' | b'=', b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..] => {
            Some((byte(text.get(1..3), 16)?, 3))
        }
        [b'=', b'\r', b'\n', ..] => Some((Letter::Nothing, 3)),
        [b'=' | b'\\', b'\n', ..] => Some((Letter::Nothing, 2)),
        [b'\\', b'x' | b'u', b'{', ..] => {
            let end = until(3, b'}')?;
            Some((letter(text.get(3..end), 16)?, end + 1))
        }
        [b'\\', b'x', ..] => Some((byte(text.get(2..4), 16)?, 4)),
        [b'\\' | b'%', b'u', ..] => Some((letter(text.get(2..6), 16)?, 6)),
        [b'\\', b'U', ..] => Some((letter(text.get(2..10), 16)?, 10)),
        [b'\\', b'0', b'0'..=b'3', b'0'..=b'7', b'0'..=b'7', ..] => {
            Some((byte(text.get(2..5), 8)?, 5))
        }
        [b'\\', b'0'..=b'3', ..] => Some((byte(text.get(1..4), 8)?, 4)),
        [b'\\', sign @ (b'\\' | b'/' | b'"' | b'\''), ..] => Some((Letter::Byte(*sign), 2)),
        [b'&', b'#', b'x' | b'X', ..] => {
            let end = until(3, b';')?;
            Some((letter(text.get(3..end), 16)?, end + 1))
        }
        [b'&', b'#', ..] => {
            let end = until(2, b';')?;
            Some((letter(text.get(2..end), 10)?, end + 1))
        }
        [b'&', ..] => {
            let names: [(&[u8], u8); 5] = [
                (b"&amp;", b'&'),
                (b"&lt;", b'<'),
                (b"&gt;", b'>'),
                (b"&quot;", b'"'),
                (b"&apos;", b'\''),
            ];
            let (name, sign) = names.iter().find(|(name, _)| text.starts_with(name))?;
            Some((Letter::Byte(*sign), name.len()))
        }
        _ => None,
    }
}

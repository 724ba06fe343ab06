//! Known secrets in the layouts of dumps and wrapped text: bytes between separators, columns or line
//! breaks.
//!
//! Such a text has no fixed form that could be looked for. But two short parts of the value, one after the
//! other, have: a line end or a gap can break one of them, never both. These parts are the anchors. Where
//! an anchor is found, the text around it is decoded, and the value is looked for in the bytes.

use std::ops::Range;

/// Characters of an anchor in wrapped text. Narrower columns than twice that are not recognised.
const WRAPPED: usize = 8;
/// Bytes of an anchor in a dump.
const DUMPED: usize = 4;
/// Characters that a byte takes in the widest dump, columns and line numbers included.
const WIDEST: usize = 16;
/// Characters around an anchor that are decoded in any case.
const MARGIN: usize = 512;

/// The layout of a value's bytes in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// The characters themselves, broken by line ends, line numbers, quotation marks or colours.
    Wrapped,
    /// Hexadecimal numbers of one byte or more, the first byte first: `xxd`, `hexdump -C`, `od -tx1`.
    Hex,
    /// Hexadecimal numbers of two bytes, the second byte first: `hexdump`, `od -x`.
    HexSwapped,
    /// Octal numbers of one byte: `od -b`.
    Octal,
    /// Octal numbers of two bytes, the second byte first: `od`.
    OctalSwapped,
    /// Decimal numbers of one byte: `od -tu1`, a list of numbers in code.
    Decimal,
    /// Characters in columns of four: `od -c`.
    Columns,
}

/// A part of a value as a layout writes it.
#[derive(Debug)]
pub(super) struct Anchor {
    pub(super) text: String,
    pub(super) layout: Layout,
}

/// A decoded byte and its place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) byte: u8,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Returns the anchors of a form that may be wrapped.
pub(super) fn wrapped_anchors(form: &str) -> impl Iterator<Item = Anchor> {
    let parts = [0..WRAPPED, WRAPPED..2 * WRAPPED, 2 * WRAPPED..3 * WRAPPED];
    let long = form.len() >= 2 * WRAPPED;
    let texts = parts.into_iter().filter_map(move |part| form.get(part).filter(|_| long));
    texts.map(|text| Anchor { text: text.to_owned(), layout: Layout::Wrapped })
}

/// Returns the anchors of a value in dumps.
pub(super) fn dump_anchors(value: &[u8]) -> Vec<Anchor> {
    let mut anchors = Vec::new();
    let mut add = |layout, text: String| anchors.push(Anchor { text, layout });
    for (number, part) in value.windows(DUMPED).take(2 * DUMPED).enumerate() {
        // Words of two bytes may begin at an even or an odd byte of the value.
        if matches!(number, 0 | 1 | 4 | 5) {
            for separator in [" ", ":", "-"] {
                for (layout, text) in in_pairs(part, separator) {
                    add(layout, text);
                }
            }
        }
        // Groups of four bytes and more may begin anywhere.
        add(Layout::Hex, join(part, "", |byte| format!("{byte:02x}")));
        if !matches!(number, 0 | DUMPED) {
            continue;
        }
        for separator in [" ", ":", "-", ", 0x", ",0x", " 0x"] {
            add(Layout::Hex, join(part, separator, |byte| format!("{byte:02x}")));
            add(Layout::Hex, join(part, separator, |byte| format!("{byte:02X}")));
        }
        for separator in [", ", ",", " "] {
            add(Layout::Decimal, join(part, separator, |byte| byte.to_string()));
        }
        let padded = join(part, "", |byte| format!("{byte:>4}"));
        add(Layout::Decimal, padded.trim_start().to_owned());
        add(Layout::Octal, join(part, " ", |byte| format!("{byte:03o}")));
        if part.iter().all(u8::is_ascii_graphic) {
            add(Layout::Columns, join(part, "   ", |byte| char::from(byte).to_string()));
        }
    }
    anchors
}

fn join(part: &[u8], separator: &str, write: impl Fn(u8) -> String) -> String {
    part.iter().map(|byte| write(*byte)).collect::<Vec<_>>().join(separator)
}

/// Writes four bytes as two numbers of two bytes.
fn in_pairs(part: &[u8], separator: &str) -> Vec<(Layout, String)> {
    let pairs = |write: fn(u8, u8) -> String| {
        let pairs = part.chunks_exact(2).filter_map(|pair| match pair {
            [first, second] => Some(write(*first, *second)),
            _ => None,
        });
        pairs.collect::<Vec<_>>().join(separator)
    };
    vec![
        (Layout::Hex, pairs(|first, second| format!("{first:02x}{second:02x}"))),
        (Layout::Hex, pairs(|first, second| format!("{first:02X}{second:02X}"))),
        (Layout::HexSwapped, pairs(|first, second| format!("{second:02x}{first:02x}"))),
        (
            Layout::OctalSwapped,
            pairs(|first, second| format!("{:06o}", u16::from_le_bytes([first, second]))),
        ),
    ]
}

/// Finds a value, laid out like this, around an anchor.
pub(super) fn locate(
    layout: Layout,
    value: &[u8],
    text: &str,
    anchor: Range<usize>,
) -> Option<Range<usize>> {
    let around = reach(value);
    let before = text.floor_char_boundary(anchor.start.saturating_sub(around));
    let start = text.get(before..anchor.start)?.find('\n').map_or(before, |at| before + at + 1);
    let start = if before == 0 { 0 } else { start };
    let end = text.ceil_char_boundary((anchor.end + around).min(text.len()));
    let window = text.get(start..end)?;
    let shift = |found: Range<usize>| found.start + start..found.end + start;
    if layout == Layout::Wrapped {
        let edges = [(false, false), (true, false), (false, true), (true, true)];
        let mut edges = edges.map(|(prefix, joint)| Edges { prefix, joint }).into_iter();
        let found = |edges| find(&squeeze(window, edges), value, anchor.start - start);
        return edges.find_map(found).map(shift);
    }
    let units = decode(layout, window);
    let found = find(&units, value, anchor.start - start)?;
    Some(shift(found.start..end_of_dump(window, &found)))
}

/// How many characters around an anchor may belong to a value.
pub(super) fn reach(value: &[u8]) -> usize {
    value.len() * WIDEST + MARGIN
}

/// Finds the occurrence of a value that holds, or follows, a place.
fn find(units: &[Unit], value: &[u8], place: usize) -> Option<Range<usize>> {
    let mut occurrences = units.windows(value.len().max(1)).filter(|units| {
        units.iter().map(|unit| unit.byte).eq(value.iter().copied())
            && units.last().is_some_and(|last| last.end > place)
    });
    let range = |units: &[Unit]| Some(units.first()?.start..units.last()?.end);
    occurrences.find_map(range)
}

/// Returns where what belongs to a value ends: a dump has the characters again at the end of its lines.
fn end_of_dump(text: &str, found: &Range<usize>) -> usize {
    let line = text.get(..found.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let is_dump = text.get(line..).is_some_and(|line| offset_column(line) > 0);
    let rest = text.get(found.end..).unwrap_or_default();
    if is_dump { found.end + rest.find('\n').unwrap_or(rest.len()) } else { found.end }
}

/// The edges of lines that do not belong to a wrapped value.
#[derive(Clone, Copy)]
struct Edges {
    /// Line numbers and the signs of quotations and diffs.
    prefix: bool,
    /// Quotation marks and signs that join lines in code.
    joint: bool,
}

/// Returns the characters of a text without blanks, colours and the edges of its lines.
fn squeeze(text: &str, edges: Edges) -> Vec<Unit> {
    let mut units = Vec::with_capacity(text.len());
    let mut place = 0;
    for line in text.split_inclusive('\n') {
        let skipped = if edges.prefix { line_prefix(line) } else { 0 };
        let joint = |letter: char| {
            edges.joint && matches!(letter, '\\' | '+' | ',' | ';' | '"' | '\'' | '$')
        };
        let body = line.trim_end_matches(|letter: char| letter.is_whitespace() || joint(letter));
        let mut letters = body.char_indices().skip_while(|(at, _)| *at < skipped).peekable();
        while let Some((at, letter)) = letters.next() {
            if letter == '\u{1b}' {
                while letters.next_if(|(_, next)| !next.is_ascii_alphabetic()).is_some() {}
                letters.next();
                continue;
            }
            let is_break = edges.joint
                && letter == '\\'
                && letters.next_if(|(_, next)| matches!(next, 'n' | 'r')).is_some();
            let opens = at == skipped && edges.joint && matches!(letter, '"' | '\'');
            let is_invisible =
                matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}');
            if letter.is_whitespace() || opens || is_invisible || is_break {
                continue;
            }
            let start = place + at;
            let end = start + letter.len_utf8();
            let mut bytes = [0; 4];
            let bytes = letter.encode_utf8(&mut bytes).bytes();
            units.extend(bytes.map(|byte| Unit { byte, start, end }));
        }
        place += line.len();
    }
    units
}

/// Returns the length of a line number, and of the signs of quotations and diffs.
fn line_prefix(line: &str) -> usize {
    let bytes = line.as_bytes();
    let count = |from: usize, has: fn(&u8) -> bool| {
        bytes.get(from..).unwrap_or_default().iter().take_while(|byte| has(byte)).count()
    };
    let blanks = count(0, |byte| matches!(byte, b' ' | b'\t'));
    let digits = count(blanks, u8::is_ascii_digit);
    let after = blanks + digits;
    let is_number =
        digits > 0 && matches!(bytes.get(after), Some(b':' | b'|' | b'\t' | b'-' | b' '));
    // A name and a line number, as `grep -n` writes them.
    let named = line.split_once(':').and_then(|(name, rest)| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let is_named = digits > 0 && rest.as_bytes().get(digits) == Some(&b':');
        (is_named && !name.contains(' ')).then(|| name.len() + digits + 2)
    });
    let from = if is_number { after + 1 } else { named.unwrap_or(blanks) };
    from + count(from, |byte| {
        matches!(byte, b' ' | b'\t' | b'>' | b'|' | b'+' | b'-' | b'#' | b'*')
    })
}

/// Reads the numbers or characters of every line as bytes.
fn decode(layout: Layout, text: &str) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut place = 0;
    for line in text.split_inclusive('\n') {
        let offset = offset_column(line);
        let data = line.get(offset..).unwrap_or_default();
        let found = match layout {
            Layout::Columns => columns(data),
            _ => numbers(layout, data),
        };
        let shift = place + offset;
        let moved = |unit: Unit| Unit { start: unit.start + shift, end: unit.end + shift, ..unit };
        units.extend(found.into_iter().map(moved));
        place += line.len();
    }
    units
}

/// Returns the length of the offset that begins a line of a dump, with what stands before it: digits
/// that are followed by a colon, or of which there are seven or more before a blank.
fn offset_column(line: &str) -> usize {
    let after = |from: usize| {
        let bytes = line.as_bytes().get(from..).unwrap_or_default();
        let digits = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        match bytes.get(digits) {
            Some(b':') if digits >= 4 => Some(from + digits + 1),
            Some(b' ') if digits >= 7 => Some(from + digits),
            _ => None,
        }
    };
    after(0).or_else(|| after(line_prefix(line))).unwrap_or_default()
}

/// Reads cells of four characters, the last of which are one character or its name.
fn columns(line: &str) -> Vec<Unit> {
    let cells = line.trim_end_matches(['\n', '\r']).as_bytes().chunks(4).enumerate();
    let read = |(number, cell): (usize, &[u8])| {
        let text = str::from_utf8(cell).ok()?.trim_start();
        let byte = match text.as_bytes() {
            [] => b' ',
            [byte] => *byte,
            [b'\\', b'n'] => b'\n',
            [b'\\', b't'] => b'\t',
            [b'\\', b'0'] => 0,
            [_, _, _] => u8::from_str_radix(text, 8).ok()?,
            _ => return None,
        };
        Some(Unit { byte, start: number * 4, end: number * 4 + cell.len() })
    };
    cells.filter_map(read).collect()
}

/// Reads the numbers of a line up to what is none, such as the characters at the end of a dump.
fn numbers(layout: Layout, line: &str) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut width = None;
    for (start, word) in words(line) {
        let digits = word.strip_prefix("0x").or(word.strip_prefix("0X")).unwrap_or(word);
        let Some(bytes) = read_number(layout, digits) else {
            // In prose a number may follow; a dump ends here.
            if width.is_some() {
                break;
            }
            continue;
        };
        if layout == Layout::Hex && width.is_some_and(|width| digits.len() > width) {
            break;
        }
        width = width.or(Some(digits.len()));
        let end = start + word.len();
        units.extend(bytes.into_iter().map(|byte| Unit { byte, start, end }));
    }
    units
}

/// Splits a line at everything that is neither a letter nor a digit.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_separator = |letter: char| !letter.is_ascii_alphanumeric();
    let offset = |part: &str| part.as_ptr().addr() - line.as_ptr().addr();
    line.split(is_separator).filter(|part| !part.is_empty()).map(move |part| (offset(part), part))
}

fn read_number(layout: Layout, digits: &str) -> Option<Vec<u8>> {
    let hex = |digits: &str| {
        let pairs = digits.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).ok());
        let bytes =
            pairs.map(|pair| u8::from_str_radix(pair.filter(|pair| pair.len() == 2)?, 16).ok());
        bytes.collect::<Option<Vec<u8>>>()
    };
    match layout {
        Layout::Hex => hex(digits),
        Layout::HexSwapped => hex(digits).map(|bytes| bytes.into_iter().rev().collect()),
        Layout::Octal => Some(vec![u8::from_str_radix(digits, 8).ok()?]),
        Layout::OctalSwapped => Some(u16::from_str_radix(digits, 8).ok()?.to_le_bytes().to_vec()),
        Layout::Decimal => Some(vec![digits.parse().ok()?]),
        Layout::Wrapped | Layout::Columns => None,
    }
}

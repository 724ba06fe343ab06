//! Values that are assigned to what is called a password, a secret or a key: `DB_PASSWORD=…`,
//! `"api_key": "…"`, `client_secret: …`.
//!
//! The name alone says little. Code is full of variables, types, calls and names of files behind such a
//! name, and manuals are full of examples. So the value has to look like one that nobody would write for
//! anything else, and the less stands around it (quotes, a name and a value without a gap), the more. A weak
//! password that looks like a word is left: to hide words from code would make code unreadable.

use super::token::{is_example, is_word_byte, run};
use super::wrapped::own_shape;
use super::{End, LOOKS_BACK, Verdict};

const SHORTEST: usize = 6;
const LONGEST: usize = 256;
/// No name ends in more.
const LONGEST_ENDING: usize = 16;
/// No gap is wider.
const WIDEST: usize = 32;
/// Nobody guesses one that is as long: its name may be made of it.
const LONG: usize = 20;

/// What stands for a value in manuals and tests, and names of algorithms, without their digits.
const NO_VALUES: [&str; 36] = [
    "abc",
    "abcd",
    "abcdef",
    "admin",
    "aes",
    "apikey",
    "argon",
    "argonid",
    "bar",
    "base",
    "bcrypt",
    "blake",
    "ed",
    "foo",
    "foobar",
    "hs",
    "key",
    "md",
    "mypassword",
    "mysecret",
    "pass",
    "passwd",
    "password",
    "passw",
    "passwrd",
    "passwrt",
    "qwerty",
    "root",
    "secret",
    "sha",
    "string",
    "test",
    "token",
    "user",
    "utf",
    "value",
];

/// How a value stands there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Between quotes.
    Quoted,
    /// Right behind a `=` that is right behind the name.
    Tight,
    /// Behind a gap.
    Loose,
}

/// Judges what is assigned to a name of which a part ends at `from`, and the rest is one of these endings.
pub(super) fn judge(
    kind: &'static str,
    endings: &[&str],
    text: &str,
    place: usize,
    from: usize,
    end: End,
) -> Verdict {
    let mut cursor = Cursor { text, at: from, end };
    match cursor.value(endings) {
        Read::Value(style, value) if is_secret(value, style) => {
            let owner = owner(text, place, from);
            let parts = if value.len() >= LONG { [value, b""] } else { [kind.as_bytes(), owner] };
            own_shape(kind, text, cursor.at, value.len(), parts)
        }
        Read::Value(..) | Read::Nothing => Verdict::No,
        Read::EndOfText => Verdict::More,
    }
}

/// Whose secret it is. A weak one could be guessed from a number that was made of it.
fn owner(text: &str, place: usize, from: usize) -> &[u8] {
    let before = text.as_bytes().get(..place).unwrap_or_default();
    let is_letter = |byte: &&u8| is_word_byte(**byte);
    let length = before.iter().rev().take(LOOKS_BACK).take_while(is_letter).count();
    text.as_bytes().get(place - length..from).unwrap_or_default()
}

/// What was read.
enum Read<'t> {
    Value(Style, &'t [u8]),
    Nothing,
    /// The text ends too early to tell.
    EndOfText,
}

struct Cursor<'t> {
    text: &'t str,
    at: usize,
    end: End,
}

impl<'t> Cursor<'t> {
    /// Reads up to the value and returns it; it stands where the cursor is then.
    fn value(&mut self, endings: &[&str]) -> Read<'t> {
        let is_letter = |byte: u8| is_word_byte(byte) || byte == b'-';
        let Some(ending) = run(self.text, self.at, LONGEST_ENDING, is_letter) else {
            return Read::Nothing;
        };
        if !endings.iter().any(|known| known.as_bytes().starts_with(ending.bytes)) {
            return Read::Nothing;
        }
        self.at += ending.bytes.len();
        if self.is_over() {
            return self.over();
        }
        if !endings.iter().any(|known| known.as_bytes() == ending.bytes) {
            return Read::Nothing;
        }
        self.skip(b"\\");
        self.skip(b"\"'");
        self.skip(b"]");
        let Some(before) = self.gap() else { return Read::Nothing };
        if self.is_over() {
            return self.over();
        }
        let Some(sign) = self.skip(b"=:") else { return Read::Nothing };
        // `:=` and `=>` assign, too.
        let more = match sign {
            b':' => self.skip(b"="),
            _ => self.skip(b">"),
        };
        let Some(after) = self.gap() else { return Read::Nothing };
        if self.is_over() {
            return self.over();
        }
        let escape = self.skip(b"\\");
        if let Some(quote) = self.skip(b"\"'`") {
            return self.quoted(quote, escape.is_some());
        }
        match (escape, sign, more, before + after) {
            (None, b'=', None, 0) => self.bare(Style::Tight),
            // In YAML a gap has to follow the colon.
            (None, _, None | Some(b'='), _) if after > 0 => self.bare(Style::Loose),
            _ if self.is_over() => self.over(),
            _ => Read::Nothing,
        }
    }

    /// Reads up to the quote that ends the value, or to the end of the text.
    fn quoted(&self, quote: u8, escaped: bool) -> Read<'t> {
        let has = |byte: u8| {
            byte != quote
                && byte != b'\\'
                && !byte.is_ascii_whitespace()
                && !byte.is_ascii_control()
        };
        let Some(value) = run(self.text, self.at, LONGEST, has) else { return Read::Nothing };
        let rest = self.text.as_bytes().get(self.at + value.bytes.len()..).unwrap_or_default();
        match rest {
            [] | [b'\\'] if self.end == End::Later => Read::EndOfText,
            [] => Read::Value(Style::Quoted, value.bytes),
            [first, ..] if !escaped && *first == quote => Read::Value(Style::Quoted, value.bytes),
            [b'\\', next, ..] if escaped && *next == quote => {
                Read::Value(Style::Quoted, value.bytes)
            }
            _ => Read::Nothing,
        }
    }

    /// Reads a value without quotes.
    fn bare(&self, style: Style) -> Read<'t> {
        let has = |byte: u8| {
            let ends = byte.is_ascii_whitespace()
                || byte.is_ascii_control()
                || b"\"'`,;)]}<>|\\".contains(&byte)
                // In the query of an address it ends there.
                || byte == b'&' && style == Style::Tight;
            !ends
        };
        match run(self.text, self.at, LONGEST, has) {
            None => Read::Nothing,
            Some(value) if value.reaches_the_end && self.end == End::Later => Read::EndOfText,
            // A full stop at the end is one of the sentence.
            Some(value) => {
                Read::Value(style, value.bytes.strip_suffix(b".").unwrap_or(value.bytes))
            }
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn is_over(&self) -> bool {
        self.at >= self.text.len()
    }

    fn over(&self) -> Read<'t> {
        match self.end {
            End::Later => Read::EndOfText,
            End::Here => Read::Nothing,
        }
    }

    /// Steps over one of these bytes.
    fn skip(&mut self, any: &[u8]) -> Option<u8> {
        let byte = self.byte().filter(|byte| any.contains(byte))?;
        self.at += 1;
        Some(byte)
    }

    /// Steps over blanks, unless there are too many.
    fn gap(&mut self) -> Option<usize> {
        let gap = run(self.text, self.at, WIDEST, |byte| matches!(byte, b' ' | b'\t'))?;
        self.at += gap.bytes.len();
        Some(gap.bytes.len())
    }
}

/// Tells whether a value is one that nobody would write for anything else.
fn is_secret(value: &[u8], style: Style) -> bool {
    if value.len() < SHORTEST || stands_for_another(value) || is_example(value) || is_name(value) {
        return false;
    }
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    let (letter, digit) = (has(u8::is_ascii_alphabetic), has(u8::is_ascii_digit));
    let sign = value.iter().any(|byte| b"!#$%&^~@".contains(byte));
    match style {
        Style::Quoted => letter && (digit || sign),
        Style::Tight => letter && digit && !is_code(value),
        Style::Loose => letter && digit && !is_code(value) && (sign || is_random(value)),
    }
}

/// Tells whether it is a variable, a template, an address, a path or a placeholder.
fn stands_for_another(value: &[u8]) -> bool {
    let begins = value.first().is_some_and(|byte| b"$%<>*{}[]()@/.~&|\\-+=:,;?".contains(byte));
    let holds = |part: &[u8]| value.windows(part.len()).any(|window| window == part);
    let letters: Vec<u8> = value
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic())
        .map(u8::to_ascii_lowercase)
        .collect();
    begins
        || ["${", "{{", "#{", "$(", "%(", "://", "...", "**"]
            .iter()
            .any(|part| holds(part.as_bytes()))
        || NO_VALUES.iter().any(|word| word.as_bytes() == letters)
}

/// Tells whether it is an expression of code.
fn is_code(value: &[u8]) -> bool {
    value.iter().any(|byte| b"([{*+".contains(byte))
        || value.windows(2).any(|pair| matches!(pair, b"::" | b"->" | b"==" | b"&&"))
}

/// Tells whether it is made of words: `db-creds-2`, `config.password1`, `API_KEY_2`, `ann1@example.com`, `key1.pem`.
fn is_name(value: &[u8]) -> bool {
    let is_word = |part: &[u8]| {
        let letters = part.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let digits = part.iter().skip(letters).take_while(|byte| byte.is_ascii_digit()).count();
        letters + digits == part.len() && digits <= if letters > 0 { 2 } else { 4 }
    };
    let separates = |byte: &u8| b"_-./@:".contains(byte);
    value.iter().any(separates) && value.split(separates).all(is_word)
}

/// Tells whether digits and letters are mixed as in no word and in no name of a type.
fn is_random(value: &[u8]) -> bool {
    let is_random = |part: &[u8]| {
        let is_start = |pair: &[u8]| matches!(pair, [before, digit] if digit.is_ascii_digit() && !before.is_ascii_digit());
        let first = usize::from(part.first().is_some_and(u8::is_ascii_digit));
        let groups = first + part.windows(2).filter(|pair| is_start(pair)).count();
        part.len() >= 8 && groups >= 3 || part.len() >= LONG && groups >= 2
    };
    value.split(|byte| b"_-.".contains(byte)).any(is_random)
}

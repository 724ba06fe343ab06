//! The forms in which a known secret turns up: as it is, and as programs write it down.
//!
//! Each form has a name of its own, so that whoever writes a form back by its name writes that form. In
//! base64 a value looks different after each number of bytes before it, so there are three of those; what
//! they share with their neighbours, a character at each end, is left out.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;

/// A part of base64 that is shorter could stand anywhere by chance.
const MIN_BASE64: usize = 12;

/// A form of a value: what is said of it after its name, and its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) kind: &'static str,
    pub(super) text: String,
}

/// Returns the forms of a value, the value itself first, each text once.
pub(super) fn forms(value: &str) -> Vec<Form> {
    let mut forms = vec![Form { kind: "", text: value.to_owned() }];
    let mut add = |kind, text: String| {
        if forms.iter().all(|form| form.text != text) {
            forms.push(Form { kind, text });
        }
    };
    add(" in json", in_json(value));
    add(" in percent", in_percent(value));
    add(" in hex", in_hex(value, |byte| format!("{byte:02x}")));
    add(" in HEX", in_hex(value, |byte| format!("{byte:02X}")));
    for (before, kind) in [(0, " in base64"), (1, " in base64, 1"), (2, " in base64, 2")] {
        add(kind, in_base64(value, before, &STANDARD_NO_PAD));
    }
    for (before, kind) in [(0, " in base64url"), (1, " in base64url, 1"), (2, " in base64url, 2")] {
        add(kind, in_base64(value, before, &URL_SAFE_NO_PAD));
    }
    for (before, kind) in BASE32.into_iter().enumerate() {
        add(kind, in_base32(value.as_bytes(), before));
    }
    forms.retain(|form| !form.kind.contains("base") || form.text.len() >= MIN_BASE64);
    forms
}

/// Names of the forms in base32, by the number of bytes (modulo 5) before the value.
const BASE32: [&str; 5] =
    [" in base32", " in base32, 1", " in base32, 2", " in base32, 3", " in base32, 4"];

/// Returns the characters of base32 that depend on the value alone, where this many bytes come before.
fn in_base32(value: &[u8], before: usize) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits = value.len() * 8;
    let skipped = (5 - before * 8 % 5) % 5;
    let letter = |at: usize| {
        let letter = (at..at + 5).fold(0, |letter, bit| {
            let byte = value.get(bit / 8).copied().unwrap_or_default();
            letter << 1 | usize::from(byte >> (7 - bit % 8) & 1)
        });
        char::from(LETTERS.get(letter).copied().unwrap_or(b'A'))
    };
    (skipped..).step_by(5).take_while(|at| at + 5 <= bits).map(letter).collect()
}

fn in_json(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value).to_owned()
}

fn in_percent(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            // Writing to a text cannot fail.
            _ => drop(write!(text, "%{byte:02X}")),
        }
        text
    })
}

fn in_hex(value: &str, digits: impl Fn(u8) -> String) -> String {
    value.bytes().map(digits).collect()
}

/// Returns what of the base64 of a value is the same whatever comes before and after it, where this many
/// bytes (modulo 3) come before.
fn in_base64(value: &str, before: usize, engine: &impl Engine) -> String {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(value.as_bytes());
    let whole = bytes.len() * 8 / 6;
    let shared = [0, 2, 3].get(before).copied().unwrap_or_default();
    engine.encode(&bytes).get(shared..whole).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn base64_is_found_after_any_number_of_bytes() {
        let value = "pass:w0rd/äö?x";
        let texts: Vec<String> = forms(value).into_iter().map(|form| form.text).collect();
        for before in ["", "u", "us", "user:", "user::"] {
            for after in ["", "!", "!!", " and more"] {
                let encoded = STANDARD.encode(format!("{before}{value}{after}"));
                let found = texts.iter().any(|text| encoded.contains(text));
                assert!(found, "{before} {after}");
            }
        }
    }

    #[test]
    fn a_plain_value_has_no_form_twice() {
        let kinds: Vec<&str> = forms("0123456789lmnop").iter().map(|form| form.kind).collect();
        let base64 = [" in base64", " in base64, 1", " in base64, 2"];
        assert_eq!(kinds[..3], ["", " in hex", " in HEX"]);
        assert_eq!(kinds[3..6], base64);
        assert_eq!(kinds[6..], BASE32);
        let quoted = forms("a\"b c\\d e");
        assert_eq!(quoted[1], Form { kind: " in json", text: "a\\\"b c\\\\d e".into() });
        assert_eq!(quoted[2], Form { kind: " in percent", text: "a%22b%20c%5Cd%20e".into() });
    }
}

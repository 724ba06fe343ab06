//! Text encodings of files: between bytes on disk and the text a model sees.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoke_core::ToolError;
use encoding_rs::{UTF_16BE, UTF_16LE};

use crate::data::decode_base64;

/// How a file's bytes are shown as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    #[default]
    Utf8,
    Utf16Le,
    Utf16Be,
    Latin1,
    Base64,
}

const NAMES: &[(&str, Encoding)] = &[
    ("utf-8", Encoding::Utf8),
    ("utf8", Encoding::Utf8),
    ("utf-16le", Encoding::Utf16Le),
    ("utf-16be", Encoding::Utf16Be),
    ("latin1", Encoding::Latin1),
    ("iso-8859-1", Encoding::Latin1),
    ("base64", Encoding::Base64),
];

impl Encoding {
    /// Finds an encoding by name; UTF-8 where none is given.
    pub(crate) fn named(name: Option<&str>) -> Result<Self, ToolError> {
        let Some(name) = name else { return Ok(Self::default()) };
        let lower = name.to_ascii_lowercase();
        let found = NAMES.iter().find(|(known, _)| *known == lower).map(|(_, encoding)| *encoding);
        found.ok_or_else(|| {
            ToolError::validation([format!(
                "`encoding`: `{name}` is not known; there are: utf-8, utf-16le, utf-16be, latin1, base64"
            )])
        })
    }

    /// Turns bytes into text. Bytes that are not text in this encoding are an error, never replaced:
    /// a file that is written back must come out the same.
    pub(crate) fn decode(self, bytes: Vec<u8>, path: &str) -> Result<String, ToolError> {
        match self {
            Self::Utf8 => String::from_utf8(bytes).map_err(|error| {
                let valid = error.utf8_error().valid_up_to();
                not_text(path, error.as_bytes(), valid)
            }),
            Self::Utf16Le => decode_utf16(UTF_16LE, &bytes, path),
            Self::Utf16Be => decode_utf16(UTF_16BE, &bytes, path),
            Self::Latin1 => Ok(bytes.iter().map(|byte| char::from(*byte)).collect()),
            Self::Base64 => Ok(STANDARD.encode(bytes)),
        }
    }

    /// Turns text into bytes. A character the encoding does not have is an error.
    pub(crate) fn encode(self, text: &str) -> Result<Cow<'_, [u8]>, ToolError> {
        match self {
            Self::Utf8 => Ok(Cow::Borrowed(text.as_bytes())),
            Self::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Self::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Self::Latin1 => text
                .chars()
                .map(|letter| u8::try_from(letter).map_err(|_| letter))
                .collect::<Result<_, _>>()
                .map_err(|letter| {
                    ToolError::validation([format!("`content`: latin1 has no {letter:?}")])
                }),
            Self::Base64 => decode_base64(text).map(Cow::Owned),
        }
    }

    /// Returns the largest position up to `index` where bytes of this encoding may be cut. The byte at
    /// `index` has to be there, unless the text ends with it: it shows whether a character goes on.
    pub(crate) fn floor(self, bytes: &[u8], index: usize) -> usize {
        let index = index.min(bytes.len());
        match self {
            Self::Utf8 => {
                let starts_character =
                    |at: &usize| bytes.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
                (index.saturating_sub(3)..=index).rev().find(starts_character).unwrap_or(index)
            }
            Self::Utf16Le => utf16_floor(bytes, index, u16::from_le_bytes),
            Self::Utf16Be => utf16_floor(bytes, index, u16::from_be_bytes),
            Self::Latin1 => index,
            Self::Base64 => index - index % 3,
        }
    }
}

/// Steps back over half a unit, and over the first half of a pair.
fn utf16_floor(bytes: &[u8], index: usize, unit: fn([u8; 2]) -> u16) -> usize {
    let whole = index & !1;
    let last = bytes.get(..whole).and_then(<[u8]>::last_chunk::<2>);
    let splits_pair = last.is_some_and(|last| (0xD800..0xDC00).contains(&unit(*last)));
    if splits_pair { whole - 2 } else { whole }
}

fn decode_utf16(
    encoding: &'static encoding_rs::Encoding,
    bytes: &[u8],
    path: &str,
) -> Result<String, ToolError> {
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
    text.map(Cow::into_owned).ok_or_else(|| {
        ToolError::failed(format!(
            "`{path}` is not {} text; read it with encoding `base64` to see its bytes",
            encoding.name().to_ascii_lowercase()
        ))
    })
}

fn not_text(path: &str, bytes: &[u8], valid: usize) -> ToolError {
    let hint = match bytes {
        [0xFF, 0xFE, ..] => "it begins like utf-16le",
        [0xFE, 0xFF, ..] => "it begins like utf-16be",
        _ if bytes.iter().take(8192).any(|byte| *byte == 0) => "it looks binary: use base64",
        _ => "try latin1, or base64 for its bytes",
    };
    ToolError::failed(format!(
        "`{path}` is not UTF-8 text (byte {valid} is invalid); {hint}, given as `encoding`"
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Encoding; 4] =
        [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be, Encoding::Base64];

    proptest! {
        #[test]
        fn text_survives_a_file(text in ".{0,200}") {
            for encoding in [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be] {
                let bytes = encoding.encode(&text).unwrap().into_owned();
                prop_assert_eq!(&encoding.decode(bytes, "f").unwrap(), &text);
            }
        }

        #[test]
        fn bytes_survive_a_model(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for encoding in [Encoding::Latin1, Encoding::Base64] {
                let text = encoding.decode(bytes.clone(), "f").unwrap();
                let back = encoding.encode(&text).unwrap().into_owned();
                prop_assert_eq!(&back, &bytes);
            }
        }

        #[test]
        fn a_cut_never_splits_a_character(text in ".{1,50}", at in 0..200_usize) {
            for encoding in ALL {
                let bytes = if encoding == Encoding::Base64 { text.clone().into_bytes() } else { encoding.encode(&text).unwrap().into_owned() };
                let cut = encoding.floor(&bytes, at);
                prop_assert!(cut <= bytes.len());
                prop_assert!(encoding.decode(bytes[..cut].to_vec(), "f").is_ok());
                prop_assert!(at.min(bytes.len()) - cut <= 3);
            }
        }
    }

    #[test]
    fn wrong_text_is_explained() {
        for (bytes, says) in [
            (vec![b'a', 0xFF], "byte 1 is invalid"),
            (vec![0xFF, 0xFE, b'a', 0], "utf-16le"),
            (vec![0, 1, 2, 0xFF], "looks binary"),
        ] {
            let error = Encoding::Utf8.decode(bytes, "f").unwrap_err();
            assert!(error.message.contains(says), "{error}");
        }
        assert!(Encoding::named(Some("ebcdic")).unwrap_err().message.contains("utf-16le"));
        assert!(Encoding::Latin1.encode("€").is_err());
    }
}

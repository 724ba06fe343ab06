//! Turns the bytes of a body into text, or into base64 where they are no text.
//!
//! The charset of the `content-type` header counts, then a byte order mark, then UTF-8. Nothing inside
//! a document, such as a `<meta>` element, is looked at.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::{Encoding, UTF_8};

/// A body as it can stand in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// It is text.
    Text(String),
    /// It is not; this is its base64 form.
    Base64(String),
}

/// Whether the last bytes of a body are its end or just where it was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    Ends,
    Cut,
}

/// Decodes a body by its media type, and by what it looks like where that says nothing.
pub(super) fn decode(body: &[u8], content_type: &str, tail: Tail) -> Content {
    let text = |encoding| Content::Text(to_text(body, encoding, tail));
    if let Some(encoding) = charset(content_type) {
        return text(encoding);
    }
    if is_textual(content_type) || looks_like_text(body, tail) {
        return text(UTF_8);
    }
    Content::Base64(STANDARD.encode(body))
}

/// Decodes a body that has to be text.
pub(super) fn decode_text(body: &[u8], content_type: &str) -> String {
    to_text(body, charset(content_type).unwrap_or(UTF_8), Tail::Ends)
}

fn to_text(body: &[u8], encoding: &'static Encoding, tail: Tail) -> String {
    let mut decoder = encoding.new_decoder();
    let length = decoder.max_utf8_buffer_length(body.len()).unwrap_or(body.len());
    let mut text = String::with_capacity(length);
    // There is room for all of it, so one step is enough. A character that was cut in two stays out.
    let last = tail == Tail::Ends;
    let (_result, _read, _had_errors) = decoder.decode_to_string(body, &mut text, last);
    text.shrink_to_fit();
    text
}

fn charset(content_type: &str) -> Option<&'static Encoding> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| Encoding::for_label(value.trim().trim_matches('"').as_bytes()))?
    })
}

fn is_textual(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let Some((family, name)) = media_type.split_once('/') else { return false };
    let text_formats = ["json", "xml", "javascript", "yaml", "x-www-form-urlencoded", "x-ndjson"];
    family == "text"
        || text_formats.contains(&name)
        || name.ends_with("+json")
        || name.ends_with("+xml")
}

fn looks_like_text(body: &[u8], tail: Tail) -> bool {
    let whole_characters = match std::str::from_utf8(body) {
        Ok(_) => true,
        Err(error) => tail == Tail::Cut && error.error_len().is_none(),
    };
    whole_characters && !body.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_charset_of_the_header_counts() {
        for (content_type, body, text) in [
            ("text/plain; charset=utf-8", "grün".as_bytes(), "grün"),
            ("text/plain", "grün".as_bytes(), "grün"),
            ("", "grün".as_bytes(), "grün"),
            ("text/html; Charset=\"ISO-8859-1\"", b"gr\xfcn", "grün"),
            ("text/plain; a=b; charset=windows-1252", b"\x80", "€"),
            ("text/plain; charset=utf-16le", b"h\0i\0", "hi"),
            ("text/plain; charset=shift_jis", b"\x93\xfa", "日"),
            ("text/plain", b"\xef\xbb\xbfhi", "hi"),
            ("text/plain", b"\xff\xfeh\0i\0", "hi"),
            ("text/plain; charset=klingon", b"hi", "hi"),
            ("application/json", b"\xff", "\u{fffd}"),
            ("application/problem+json", b"{}", "{}"),
            ("image/svg+xml", b"<svg/>", "<svg/>"),
            ("application/octet-stream", b"just text", "just text"),
            ("image/png", b"", ""),
        ] {
            let content = decode(body, content_type, Tail::Ends);
            assert_eq!(content, Content::Text(text.into()), "{content_type}");
        }
    }

    #[test]
    fn what_is_no_text_is_base64() {
        for (content_type, body) in [
            ("image/png", b"\x89PNG\0".as_slice()),
            ("", b"a\0b"),
            ("application/zip", b"\xff\xfe"),
        ] {
            let content = decode(body, content_type, Tail::Ends);
            assert_eq!(content, Content::Base64(STANDARD.encode(body)), "{content_type}");
        }
    }

    #[test]
    fn a_character_cut_in_two_does_not_make_text_binary() {
        let cut = "grü".as_bytes().split_last().unwrap().1;
        for content_type in ["", "text/plain", "text/plain; charset=utf-8"] {
            let content = decode(cut, content_type, Tail::Cut);
            assert_eq!(content, Content::Text("gr".into()), "{content_type}");
        }
        assert!(matches!(decode(cut, "", Tail::Ends), Content::Base64(_)));
    }
}

//! JSON as people write it into settings: with comments, and commas after the last item.

/// Returns the text as JSON: what is not JSON in it becomes spaces, so that everything else stays in its place.
pub(super) fn strict(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    // A comma that waits for what comes after it: how long the text was when it came.
    let mut comma = None;
    let mut last = '{';
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => first.len_utf8(),
        };
        let (piece, after) = rest.split_at(length);
        rest = after;
        if piece.starts_with("//") || piece.starts_with("/*") {
            plain.extend(piece.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
            continue;
        }
        match first {
            // One with nothing before it is a mistake.
            ',' => comma = (!matches!(last, '{' | '[' | ',' | ':')).then_some(plain.len()),
            '}' | ']' => {
                if let Some(at) = comma.take() {
                    plain.replace_range(at..=at, " ");
                }
            }
            letter if letter.is_whitespace() => {}
            _ => comma = None,
        }
        if !first.is_whitespace() {
            last = first;
        }
        plain.push_str(piece);
    }
    plain
}

/// Returns how long the string is that a text begins with, quotes included.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn comments_and_last_commas_go() {
        let text = "\u{feff}// servers\n{ /* one\n two */ \"a\": [1, 2, /* x */ ], // b,\n \
                    \"u\": \"http://x/*y*/, ]\\\"//\", }\n";
        let read: Value = serde_json::from_str(&strict(text)).unwrap();
        assert_eq!(read, json!({ "a": [1, 2], "u": "http://x/*y*/, ]\"//" }));
    }

    #[test]
    fn what_is_no_json_stays_none_and_where_it_is() {
        for text in ["{,}", "[1,,]", "[,1]", "{\"a\" /* never ends", "\"open", "/", "{]"] {
            assert!(serde_json::from_str::<Value>(&strict(text)).is_err(), "{text}");
        }
        let error = serde_json::from_str::<Value>(&strict("{\n  // é\n  \"a\": ?\n}")).unwrap_err();
        assert_eq!((error.line(), error.column()), (3, 8));
    }
}

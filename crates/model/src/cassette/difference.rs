//! The first place where two values differ, for people.

use serde_json::Value;

/// How much of a value is shown.
const SHOWN: usize = 120;
/// How much of a text is shown before the first difference.
const LEAD: usize = 20;

/// Where two values differ first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// As `messages[2].parts[0].text`.
    pub(super) path: String,
    pub(super) expected: String,
    pub(super) got: String,
}

/// Finds the first difference; nothing if there is none.
pub(super) fn first_difference(path: &str, expected: &Value, got: &Value) -> Option<Difference> {
    match (expected, got) {
        _ if expected == got => None,
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
            first(names.map(|name| (format!("{path}.{name}"), one.get(name), other.get(name))))
        }
        (Value::Array(one), Value::Array(other)) => {
            let places = 0..one.len().max(other.len());
            first(
                places.map(|place| (format!("{path}[{place}]"), one.get(place), other.get(place))),
            )
        }
        (Value::String(one), Value::String(other)) => {
            let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
            let skip = same.saturating_sub(LEAD);
            let (expected, got) = (excerpt(one, skip), excerpt(other, skip));
            Some(Difference { path: path.to_owned(), expected, got })
        }
        _ => Some(Difference { path: path.to_owned(), expected: show(expected), got: show(got) }),
    }
}

fn first<'a>(
    pairs: impl Iterator<Item = (String, Option<&'a Value>, Option<&'a Value>)>,
) -> Option<Difference> {
    let nothing = || "nothing".to_owned();
    pairs.into_iter().find_map(|(path, one, other)| match (one, other) {
        (Some(one), Some(other)) => first_difference(&path, one, other),
        (Some(one), None) => Some(Difference { path, expected: show(one), got: nothing() }),
        (None, Some(other)) => Some(Difference { path, expected: nothing(), got: show(other) }),
        (None, None) => None,
    })
}

fn show(value: &Value) -> String {
    match value {
        Value::String(text) => excerpt(text, 0),
        value => format!("`{}`", cut(&value.to_string())),
    }
}

fn excerpt(text: &str, skip: usize) -> String {
    let start = if skip > 0 { "…" } else { "" };
    let rest: String = text.chars().skip(skip).collect();
    format!("`{start}{}`", cut(&rest))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(expected: &Value, got: &Value) -> Option<(String, String, String)> {
        first_difference("a", expected, got).map(|found| (found.path, found.expected, found.got))
    }

    #[test]
    fn the_place_and_both_values_are_named() {
        for (expected, got, path, left, right) in [
            (json!(1), json!("1"), "a", "`1`", "`1`"),
            (json!([1, 2]), json!([1, 3]), "a[1]", "`2`", "`3`"),
            (json!([1]), json!([1, { "b": 2 }]), "a[1]", "nothing", "`{\"b\":2}`"),
            (json!({ "b": { "c": "x" } }), json!({ "b": {} }), "a.b.c", "`x`", "nothing"),
            (json!({}), json!({ "b": null }), "a.b", "nothing", "`null`"),
        ] {
            let expected = of(&expected, &got).unwrap();
            assert_eq!(expected, (path.to_owned(), left.to_owned(), right.to_owned()));
        }
        assert_eq!(of(&json!({ "b": [1] }), &json!({ "b": [1] })), None);
    }

    #[test]
    fn a_long_text_is_shown_around_the_difference() {
        let (one, other) = ("é".repeat(500) + "x" + &"z".repeat(500), "é".repeat(500) + "y");
        let (_, expected, got) = of(&json!(one), &json!(other)).unwrap();
        assert_eq!(expected, format!("`…{}x{}…`", "é".repeat(LEAD), "z".repeat(SHOWN - LEAD - 1)));
        assert_eq!(got, format!("`…{}y`", "é".repeat(LEAD)));
    }
}

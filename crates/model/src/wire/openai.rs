//! What both wires of OpenAI share: the words of errors, calls, parts, schemas, and what a model's name
//! tells.

pub(super) mod arguments;
pub(super) mod error;
pub(super) mod family;
pub(super) mod part;
#[cfg(test)]
pub(super) mod samples;
pub(super) mod schema;

use serde_json::Value;

/// Returns the headers that carry the key. A local server often wants none.
pub(super) fn headers(key: Option<&str>) -> Vec<(&'static str, String)> {
    let key = key.filter(|key| !key.is_empty());
    key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
}

/// Returns the text under a key, or an empty one: servers leave out, or send `null`, as they like.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the number under a path of keys, or zero.
pub(super) fn number(value: &Value, path: &[&str]) -> u64 {
    path.iter()
        .try_fold(value, |value, key| value.get(key))
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_sent_only_if_there_is_one() {
        assert_eq!(headers(Some("k")), [("authorization", "Bearer k".to_owned())]);
        assert_eq!(headers(None), []);
        assert_eq!(headers(Some("")), []);
    }
}

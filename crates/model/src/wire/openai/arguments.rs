//! Arguments of calls: JSON in a string, both ways.

use serde_json::{Map, Value};

use crate::wire::json;

/// Reads the arguments a model wrote. Nothing means no arguments; what is not JSON, or nested too deep, is
/// kept as the text it is, so that whoever validates it can show it to the model.
pub(in crate::wire) fn read(text: &str) -> Value {
    match json::arguments(text) {
        Value::Null => Value::Object(Map::new()),
        value => value,
    }
}

/// Writes the arguments of an earlier call. It is always JSON, also where the model's own text was
/// not: some servers parse what they are sent and refuse the whole conversation otherwise.
pub(in crate::wire) fn write(arguments: &Value) -> String {
    if arguments.is_null() { "{}".to_owned() } else { arguments.to_string() }
}

/// Returns the text of arguments on the wire: a string, or an object from servers that do not wrap
/// it.
pub(in crate::wire) fn raw(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Tells whether a text is whole JSON.
pub(in crate::wire) fn is_whole(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_read_and_written() {
        let table = [
            ("", json!({}), "{}"),
            ("  \n", json!({}), "{}"),
            ("null", json!({}), "{}"),
            (r#"{"a": 1}"#, json!({"a": 1}), r#"{"a":1}"#),
            ("[1]", json!([1]), "[1]"),
            (r#"{"a":"#, json!(r#"{"a":"#), r#""{\"a\":""#),
        ];
        for (text, value, written) in table {
            assert_eq!(read(text), value, "{text}");
            assert_eq!(write(&value), written, "{text}");
        }
        assert_eq!(write(&Value::Null), "{}");
    }
}

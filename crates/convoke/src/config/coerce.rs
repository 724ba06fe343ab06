//! Text from outside YAML (a variable, a flag) into the type that its key has.

use serde_json::{Number, Value};

use super::schema::{Schema, Shape};
use super::size::Size;
use super::timeout::Timeout;
use super::yaml;

/// Turns text into a value of the schema's type, or nothing where it cannot be one.
///
/// A list may be written as YAML or JSON (`[a, b]`), or as `a, b`; a mapping as YAML or JSON. Text
/// stays as it is: `"5"` set for a key that holds text is two quotes and a five.
pub(crate) fn coerce(text: &str, schema: Schema<'_>) -> Option<Value> {
    let trimmed = text.trim();
    match schema.shape() {
        Shape::Text => Some(Value::String(text.to_owned())),
        Shape::Integer => integer(trimmed).map(Value::Number),
        Shape::Number => integer(trimmed).or_else(|| float(trimmed)).map(Value::Number),
        Shape::Duration | Shape::Bytes => {
            integer(trimmed).or_else(|| with_unit(trimmed, schema)).map(Value::Number)
        }
        Shape::Boolean => trimmed.parse().ok().map(Value::Bool),
        Shape::List => list(trimmed, schema),
        Shape::Map => yaml::parse_value(trimmed).filter(Value::is_object),
        Shape::Any => yaml::parse_value(trimmed),
    }
}

fn integer(text: &str) -> Option<Number> {
    let unsigned = text.parse::<u64>().map(Number::from);
    unsigned.or_else(|_| text.parse::<i64>().map(Number::from)).ok()
}

/// Reads a duration as a number of milliseconds, a size as one of bytes.
pub(crate) fn with_unit(text: &str, schema: Schema<'_>) -> Option<Number> {
    let number = match schema.shape() {
        Shape::Duration => text.parse::<Timeout>().ok().map(Timeout::as_millis),
        Shape::Bytes => text.parse::<Size>().ok().map(Size::bytes),
        _ => None,
    };
    number.map(Number::from)
}

fn float(text: &str) -> Option<Number> {
    text.parse().ok().and_then(Number::from_f64)
}

fn list(text: &str, schema: Schema<'_>) -> Option<Value> {
    if text.starts_with('[') || text.starts_with("- ") {
        return yaml::parse_value(text).filter(Value::is_array);
    }
    let items = schema.items()?;
    if text.is_empty() {
        return Some(Value::Array(Vec::new()));
    }
    if items.shape() == Shape::Map {
        return None;
    }
    text.split(',').map(|item| coerce(item.trim(), items)).collect::<Option<_>>().map(Value::Array)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_becomes_what_the_key_holds() {
        let texts = json!({ "type": "array", "items": { "type": "string" } });
        let maps = json!({ "type": "array", "items": { "type": "object" } });
        let is = |name: &str| json!({ "type": name });
        for (schema, text, expected) in [
            (is("string"), " 5 ", Some(json!(" 5 "))),
            (is("integer"), " 5000 ", Some(json!(5000))),
            (is("integer"), "-5", Some(json!(-5))),
            (is("integer"), "5.0", None),
            (is("integer"), "", None),
            (is("integer"), "5s", None),
            (is("number"), "5", Some(json!(5))),
            (is("number"), "0.5", Some(json!(0.5))),
            (is("number"), "inf", None),
            (json!({ "type": ["integer", "string"] }), " 1h30m ", Some(json!(5_400_000))),
            (json!({ "type": ["integer", "string"] }), "5000", Some(json!(5000))),
            (json!({ "type": ["integer", "string"] }), "soon", None),
            (
                json!({ "type": ["integer", "string"], "format": "bytes" }),
                "2KiB",
                Some(json!(2048)),
            ),
            (is("boolean"), "true", Some(json!(true))),
            (is("boolean"), "yes", None),
            (is("boolean"), "1", None),
            (texts.clone(), "", Some(json!([]))),
            (texts.clone(), "a", Some(json!(["a"]))),
            (texts.clone(), "a, b,c", Some(json!(["a", "b", "c"]))),
            (texts.clone(), "[a, 'b,c']", Some(json!(["a", "b,c"]))),
            (texts.clone(), "- a\n- b", Some(json!(["a", "b"]))),
            (texts, "[a", None),
            (maps.clone(), "a", None),
            (maps, "[{name: x}]", Some(json!([{ "name": "x" }]))),
            (is("object"), "{a: 1}", Some(json!({ "a": 1 }))),
            (is("object"), "a", None),
            (json!({}), "[1]", Some(json!([1]))),
        ] {
            assert_eq!(coerce(text, Schema::new(&schema)), expected, "{text:?} as {schema}");
        }
    }
}

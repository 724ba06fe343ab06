//! Whether a JSON Schema may be sent as a strict one.
//!
//! OpenAI holds a model to a schema exactly, but only to schemas of a certain shape; any other is
//! refused with the whole request. We do not rewrite schemas: one that does not fit is sent without
//! the promise.

use serde_json::Value;

const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Tells whether a schema has the shape that strict output needs: an object at the root; every object
/// closed and all its properties required; and no keyword beyond the known ones.
pub(in crate::wire) fn is_strict(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object") && fits(schema)
}

fn fits(schema: &Value) -> bool {
    let Value::Object(keywords) = schema else { return false };
    let says_something = ["type", "anyOf", "enum", "const", "$ref"];
    let is_object = |kind: &Value| {
        kind == "object" || kind.as_array().is_some_and(|kinds| kinds.contains(&"object".into()))
    };
    says_something.iter().any(|keyword| keywords.contains_key(*keyword))
        && keywords.iter().all(|(keyword, value)| keyword_fits(keyword, value))
        && (!keywords.get("type").is_some_and(is_object) || is_closed(schema))
}

fn keyword_fits(keyword: &str, value: &Value) -> bool {
    match keyword {
        "properties" | "$defs" | "definitions" => {
            value.as_object().is_some_and(|schemas| schemas.values().all(fits))
        }
        "items" => fits(value),
        "anyOf" => value.as_array().is_some_and(|schemas| schemas.iter().all(fits)),
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        "additionalProperties" => value == false,
        "$schema" | "$id" | "$ref" | "title" | "description" | "type" | "enum" | "const"
        | "required" | "pattern" | "minimum" | "maximum" | "exclusiveMinimum"
        | "exclusiveMaximum" | "multipleOf" | "minItems" | "maxItems" => true,
        _ => false,
    }
}

/// Tells whether an object takes nothing but its properties, and all of them.
fn is_closed(schema: &Value) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &String| {
        required.is_some_and(|names| names.iter().any(|required| required == name.as_str()))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    schema.get("additionalProperties").is_some_and(|additional| additional == false)
        && properties.is_none_or(|properties| properties.keys().all(is_required))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_closed_objects_are_strict() {
        let closed = json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "where"},
                "days": {"type": "array", "items": {"$ref": "#/$defs/day"}},
                "wind": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            },
            "required": ["city", "days", "wind"],
            "additionalProperties": false,
            "$defs": {"day": {"type": "string", "format": "date"}},
        });
        assert!(is_strict(&closed));

        let change = |pointer: &str, value: Value| {
            let mut schema = closed.clone();
            *schema.pointer_mut(pointer).unwrap() = value;
            schema
        };
        let broken = [
            change("/required", json!(["city", "days"])),
            change("/additionalProperties", json!(true)),
            change("/properties/city", json!({})),
            change("/properties/city", json!({"type": "object", "properties": {}})),
            change("/properties/city", json!({"type": ["object", "null"]})),
            change("/properties/wind", json!({"oneOf": [{"type": "number"}]})),
            change("/properties/city", json!({"type": "string", "default": "Bern"})),
            change("/$defs/day/format", json!("uint32")),
            change("/type", json!("array")),
            json!(true),
            json!({}),
        ];
        for schema in broken {
            assert!(!is_strict(&schema), "{schema}");
        }
    }
}

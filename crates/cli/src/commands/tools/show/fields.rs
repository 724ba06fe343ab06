//! The parameters and output fields of a tool, read from their JSON Schema.

use serde_json::Value;

/// Fields of fields are shown this deep.
const MAX_DEPTH: usize = 3;

/// One field, as people read it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) struct Field {
    pub(in crate::commands) name: String,
    /// Its type and what else is known: `integer, 1 or more, default 100`.
    pub(in crate::commands) about: String,
    pub(in crate::commands) description: String,
    /// How many fields it is inside of.
    pub(in crate::commands) depth: usize,
}

/// Whose fields they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Side {
    /// What a call is given: some of it has to be.
    Parameters,
    /// What it gives back.
    Output,
}

/// Returns the fields of an object, required ones first, each followed by the fields inside it.
pub(in crate::commands) fn fields(schema: &Value, side: Side) -> Vec<Field> {
    let mut found = Vec::new();
    collect(schema, side, 0, &mut found);
    found
}

fn collect(schema: &Value, side: Side, depth: usize, found: &mut Vec<Field>) {
    let object = objects_in(schema);
    let Some(properties) = object.get("properties").and_then(Value::as_object) else { return };
    let required = required(object);
    let first = required.iter().filter_map(|name| Some((*name, properties.get(*name)?)));
    let others = properties.iter().map(|(name, schema)| (name.as_str(), schema));
    let others = others.filter(|(name, _)| !required.contains(name));
    for (name, schema) in first.chain(others) {
        found.push(Field {
            name: name.to_owned(),
            about: about(schema, side == Side::Parameters && required.contains(&name)),
            description: text(schema, "description"),
            depth,
        });
        if depth + 1 < MAX_DEPTH {
            collect(schema, side, depth + 1, found);
        }
    }
}

/// The names of the fields that have to be there, in their order.
pub(in crate::commands) fn required(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A list has the fields of its items.
fn objects_in(schema: &Value) -> &Value {
    match schema.get("items") {
        Some(items) => objects_in(items),
        None => schema,
    }
}

fn about(schema: &Value, required: bool) -> String {
    let mut parts = vec![type_of(schema)];
    if required {
        parts.push("required".to_owned());
    }
    parts.extend(range(schema));
    parts.extend(schema.get("default").map(|value| format!("default {value}")));
    parts.join(", ")
}

/// Returns the type of a value in words.
pub(super) fn type_of(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<String> =
            values.iter().filter(|value| !value.is_null()).map(plain).collect();
        return format!("one of {}", words.join(", "));
    }
    if let Some(value) = schema.get("const") {
        return plain(value);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(keyword).and_then(Value::as_array) {
            let types: Vec<String> = choices.iter().map(type_of).collect();
            return either(types.iter().map(String::as_str));
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) if name == "array" => match schema.get("items") {
            Some(items) => format!("array of {}", type_of(items)),
            None => "array".to_owned(),
        },
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => either(names.iter().filter_map(Value::as_str)),
        _ => "any value".to_owned(),
    }
}

/// Nothing at all is the same as a field that is absent.
fn either<'a>(types: impl Iterator<Item = &'a str>) -> String {
    types.filter(|name| *name != "null").collect::<Vec<_>>().join(" or ")
}

fn range(schema: &Value) -> Option<String> {
    match (schema.get("minimum"), schema.get("maximum")) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) if least != 0 => Some(format!("{least} or more")),
        (None, Some(most)) => Some(format!("at most {most}")),
        _ => None,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn text(schema: &Value, name: &str) -> String {
    schema.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn required_fields_come_first_and_inner_fields_follow() {
        let schema = json!({
            "type": "object",
            "required": ["path"],
            "properties": {
                "edits": {
                    "type": "array", "description": "Edits.",
                    "items": { "type": "object", "properties": { "old": { "type": "string" } } },
                },
                "path": { "type": "string" },
            },
        });
        let shown: Vec<String> = fields(&schema, Side::Parameters)
            .iter()
            .map(|field| format!("{}{} {}", "-".repeat(field.depth), field.name, field.about))
            .collect();
        assert_eq!(shown, ["path string, required", "edits array of object", "-old string"]);
    }

    #[test]
    fn types_are_words() {
        for (schema, words) in [
            (json!({ "type": "integer", "minimum": 1 }), "integer, 1 or more"),
            (json!({ "type": "integer", "minimum": 0, "maximum": 9 }), "integer, 0 to 9"),
            (
                json!({ "type": "integer", "maximum": 50, "default": 2 }),
                "integer, at most 50, default 2",
            ),
            (json!({ "type": "integer", "minimum": 0 }), "integer"),
            (json!({ "enum": ["a", "b"] }), "one of a, b"),
            (
                json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] }),
                "string or array of string",
            ),
            (json!({ "type": ["string", "null"] }), "string"),
            (json!(true), "any value"),
        ] {
            assert_eq!(about(&schema, false), words, "{schema}");
        }
    }
}

//! JSON Schemas of Rust types, written so that every model provider takes them.
//!
//! What `schemars` makes is correct but too rich: nullable unions for optional fields, integer formats
//! of Rust, one-of lists for plain enums. Here optional means "may be absent", formats of Rust go, and
//! a plain enum is a list of words.

mod cost;

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

pub use cost::{Unchecked, check_cost};

/// Returns the schema of a tool's arguments: an object that takes nothing it does not name. An optional
/// argument may be absent; that it may be null as well is not said, so that models leave it out.
pub fn parameters_of<T: JsonSchema>() -> Value {
    let mut schema = generate::<T>(Plain { nulls: Nulls::Drop });
    if let Some(object) = schema.as_object_mut() {
        object.entry("type").or_insert_with(|| "object".into());
        object.entry("properties").or_insert_with(|| json!({}));
        object.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    schema
}

/// Returns the schema of a value.
pub fn schema_of<T: JsonSchema>() -> Value {
    generate::<T>(Plain { nulls: Nulls::Keep })
}

/// Arguments are read and values are written, which makes a difference for fields that may be left out.
fn generate<T: JsonSchema>(plain: Plain) -> Value {
    let settings = match plain.nulls {
        Nulls::Drop => SchemaSettings::draft2020_12().for_deserialize(),
        Nulls::Keep => SchemaSettings::draft2020_12().for_serialize(),
    };
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let generator = settings.with_transform(plain).into_generator();
    let mut schema: Value = generator.into_root_schema_for::<T>().into();
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
    }
    schema
}

#[derive(Clone, Debug)]
struct Plain {
    nulls: Nulls,
}

/// Whether "or null" stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nulls {
    Keep,
    Drop,
}

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if let Some(object) = schema.as_object_mut() {
            if self.nulls == Nulls::Drop {
                drop_null_type(object);
                drop_null_branch(object, "anyOf");
                drop_null_branch(object, "oneOf");
            }
            words_instead_of_branches(object);
            drop_rust_format(object);
        }
    }
}

fn drop_null_type(object: &mut Map<String, Value>) {
    if let Some(Value::Array(words)) = object.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let Some(Value::Array(types)) = object.get_mut("type") else { return };
    types.retain(|name| name != "null");
    if let [only] = types.as_slice() {
        let only = only.clone();
        object.insert("type".into(), only);
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
}

fn drop_null_branch(object: &mut Map<String, Value>, keyword: &str) {
    let Some(Value::Array(branches)) = object.get_mut(keyword) else { return };
    branches.retain(|branch| branch != &json!({ "type": "null" }));
    if branches.len() != 1 {
        return;
    }
    if let Some(Value::Object(only)) = branches.pop() {
        object.remove(keyword);
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
}

/// `oneOf` of constants, with a description each, becomes `enum`.
fn words_instead_of_branches(object: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = object.get("oneOf") else { return };
    let words: Option<Vec<Value>> = branches.iter().map(word_of).collect();
    let Some(words) = words.filter(|words| !words.is_empty()) else { return };
    object.remove("oneOf");
    object.insert("type".into(), "string".into());
    object.insert("enum".into(), words.into_iter().flat_map(flatten).collect());
}

fn word_of(branch: &Value) -> Option<Value> {
    if branch.get("type")? != "string" {
        return None;
    }
    branch.get("const").or_else(|| branch.get("enum")).cloned()
}

fn flatten(word: Value) -> Vec<Value> {
    match word {
        Value::Array(words) => words,
        word => vec![word],
    }
}

fn drop_rust_format(object: &mut Map<String, Value>) {
    const RUST: [&str; 4] = ["int", "uint", "float", "double"];
    let format = object.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| RUST.iter().any(|prefix| format.starts_with(prefix))) {
        object.remove("format");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Arguments {
        /// Where to look.
        path: String,
        /// How many.
        limit: Option<u32>,
        /// How to order.
        order: Option<Order>,
        /// Which way.
        way: Option<Way>,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Way {
        Up,
        Down,
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Order {
        /// By name.
        Name,
        /// By size.
        Size,
    }

    #[test]
    fn schemas_are_plain() {
        assert_eq!(
            parameters_of::<Arguments>(),
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Where to look." },
                    "limit": { "type": "integer", "minimum": 0, "description": "How many." },
                    "order": { "type": "string", "enum": ["name", "size"], "description": "How to order." },
                    "way": { "type": "string", "enum": ["up", "down"], "description": "Which way." },
                },
                "required": ["path"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn a_value_may_be_null_where_its_type_says_so() {
        assert_eq!(schema_of::<Option<String>>(), json!({ "type": ["string", "null"] }));
    }

    #[test]
    fn no_arguments_is_an_empty_object() {
        assert_eq!(parameters_of::<()>()["properties"], json!({}));
    }
}

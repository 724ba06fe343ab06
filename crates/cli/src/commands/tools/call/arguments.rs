//! The arguments of a call, from what was typed.
//!
//! A value becomes what the tool's schema asks for where that has one meaning. Where it has none, the
//! text is passed on as it is, and the same check that judges models says what was expected.

use std::io;
use std::path::PathBuf;

use convoke_core::ToolSpec;
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::files;

/// Reads a JSON object.
pub(super) fn from_json(text: &str) -> Result<Map<String, Value>, Failure> {
    object(text, "arguments", "--arg")
}

/// Reads a JSON object: what is in it, and the flag that says one thing of it, are told where it is none.
pub(in crate::commands) fn object(
    text: &str,
    what: &str,
    flag: &str,
) -> Result<Map<String, Value>, Failure> {
    let hint = format!("write them as '{{\"key\": \"value\"}}', or as {flag} key=value");
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Failure::usage(format!("the {what} are not a JSON object")).hint(hint)),
        Err(error) => {
            Err(Failure::usage(format!("the {what} are not JSON")).because(&error).hint(hint))
        }
    }
}

/// Reads a JSON object from standard input.
pub(super) fn from_stdin() -> Result<Map<String, Value>, Failure> {
    let text = files::read_text(io::stdin().lock()).map_err(|error| {
        Failure::usage("the arguments cannot be read from standard input").because(&error)
    })?;
    from_json(&text)
}

/// Lays single arguments over a JSON object. `find` says where a file named in one is.
pub(in crate::commands) fn combine(
    mut map: Map<String, Value>,
    pairs: &[(String, String)],
    spec: Option<&ToolSpec>,
    find: impl Fn(PathBuf) -> PathBuf,
) -> Result<Value, Failure> {
    let mut given: Vec<&str> = Vec::new();
    for (name, written) in pairs {
        let text = text_of(name, written, &find)?;
        let schema = spec.map_or(&Value::Null, |spec| schema_of(spec, name));
        let again = given.contains(&name.as_str());
        let value = coerce(&text, schema);
        match (map.get_mut(name), value) {
            (Some(Value::Array(items)), Value::Array(more)) if again => items.extend(more),
            (Some(first), more) if again && types_in(schema).contains(&"array") => {
                add(first, more);
            }
            (Some(_), _) if again => {
                return Err(Failure::usage(format!("the argument `{name}` is given twice")));
            }
            (_, value) => {
                map.insert(name.clone(), value);
            }
        }
        given.push(name);
    }
    Ok(Value::Object(map))
}

/// Adds a value to those given before it: a parameter that takes one or several takes several then.
fn add(before: &mut Value, value: Value) {
    match before {
        Value::Array(items) => items.push(value),
        single => *single = Value::Array(vec![single.take(), value]),
    }
}

/// Returns the text an argument stands for: its own, or that of the file it names.
fn text_of(
    name: &str,
    written: &str,
    find: impl Fn(PathBuf) -> PathBuf,
) -> Result<String, Failure> {
    match written.strip_prefix('@') {
        None => Ok(written.to_owned()),
        Some(rest) if rest.starts_with('@') => Ok(rest.to_owned()),
        Some(path) => files::read(&find(path.into())).map_err(|error| {
            Failure::usage(format!("the file `{path}` for the argument `{name}` cannot be read"))
                .because(&error)
                .hint(format!("`{name}=@@{path}` is the text `@{path}`"))
        }),
    }
}

fn schema_of<'a>(spec: &'a ToolSpec, name: &str) -> &'a Value {
    let name = spec.aliases.get(name).map_or(name, String::as_str);
    spec.parameters.get("properties").and_then(|all| all.get(name)).unwrap_or(&Value::Null)
}

/// Turns a text into the value its schema asks for, or leaves it a text.
fn coerce(text: &str, schema: &Value) -> Value {
    let parsed = || serde_json::from_str::<Value>(text.trim()).ok();
    let value = match type_of(schema) {
        Type::Text => None,
        Type::Integer | Type::Number => parsed().filter(Value::is_number),
        Type::Boolean => parsed().filter(Value::is_boolean),
        Type::Object => parsed().filter(Value::is_object),
        Type::List => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            let single = || Value::Array(vec![coerce(text, items)]);
            Some(parsed().filter(Value::is_array).unwrap_or_else(single))
        }
        Type::Any => parsed(),
        Type::TextOr => parsed().filter(|value| value.is_array() || value.is_object()),
    };
    value.unwrap_or_else(|| text.into())
}

enum Type {
    Text,
    Integer,
    Number,
    Boolean,
    List,
    Object,
    /// Text or something that is clearly not text.
    TextOr,
    Any,
}

fn type_of(schema: &Value) -> Type {
    let names = types_in(schema);
    let names: Vec<&str> = names.into_iter().filter(|name| *name != "null").collect();
    match names.as_slice() {
        ["string"] => Type::Text,
        ["integer"] => Type::Integer,
        ["number"] => Type::Number,
        ["boolean"] => Type::Boolean,
        ["array"] => Type::List,
        ["object"] => Type::Object,
        several if several.contains(&"string") => Type::TextOr,
        _ => Type::Any,
    }
}

/// Returns the names of all types a schema allows, as far as it says.
fn types_in(schema: &Value) -> Vec<&str> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array)
        && values.iter().all(|value| value.is_string() || value.is_null())
    {
        return vec!["string"];
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(keyword).and_then(Value::as_array) {
            return choices.iter().flat_map(types_in).collect();
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;

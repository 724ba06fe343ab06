//! Checks arguments before a tool sees them.
//!
//! What models commonly get slightly wrong and what has only one meaning is put right first: arguments
//! that are missing altogether, sent as a string of JSON, under a known other name, or `null` for
//! "not given". Everything else that does not fit is reported, all of it at once.

use std::collections::BTreeMap;

use convoke_core::nearest::{did_you_mean, nearest};
use convoke_core::{Schema, ToolError, ToolSpec};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

use crate::schema::check_cost;

/// Deeper arguments are refused: nobody means them, and recursive code would run out of stack.
pub const MAX_DEPTH: usize = 64;
const MAX_ISSUES: usize = 10;
/// How many values of a list of allowed ones are named.
const MAX_OPTIONS: usize = 24;

/// Checks arguments of one tool. Made once, when the tool is first called.
#[derive(Debug)]
pub(crate) struct ArgumentCheck {
    schema: Validator,
    /// The schema as it is written.
    parameters_schema: Schema,
    parameters: Vec<String>,
    required: Vec<String>,
    aliases: BTreeMap<String, String>,
}

impl ArgumentCheck {
    pub(crate) fn new(spec: &ToolSpec) -> Result<Self, ToolError> {
        let name = &spec.name;
        check_cost(&spec.parameters).map_err(|error| {
            ToolError::unavailable(format!("the schema of tool `{name}` {error}"))
        })?;
        let schema = jsonschema::validator_for(&spec.parameters).map_err(|error| {
            ToolError::unavailable(format!("the schema of tool `{name}` is not valid: {error}"))
        })?;
        let properties = spec.parameters.get("properties").and_then(Value::as_object);
        let required = spec.parameters.get("required").and_then(Value::as_array);
        Ok(Self {
            schema,
            parameters_schema: spec.parameters.clone(),
            parameters: properties.map(|map| map.keys().cloned().collect()).unwrap_or_default(),
            required: required
                .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
                .unwrap_or_default(),
            aliases: spec.aliases.clone(),
        })
    }

    /// Returns the arguments, put right where that is safe, or everything that is wrong with them.
    pub(crate) fn check(&self, arguments: Value, max_bytes: usize) -> Result<Value, ToolError> {
        check_size(&arguments, max_bytes)?;
        let was_text = arguments.is_string();
        let mut arguments = as_object(arguments)?;
        self.rename_aliases(&mut arguments);
        let arguments = Value::Object(arguments);
        if was_text {
            check_size(&arguments, max_bytes)?;
        }
        if self.schema.is_valid(&arguments) {
            return Ok(arguments);
        }
        // Null may mean something to a tool; where it does not fit, a key that the schema names is not given.
        let mut without_nulls = arguments.clone();
        drop_nulls(&mut without_nulls, &[&self.parameters_schema], &self.parameters_schema);
        if self.schema.is_valid(&without_nulls) {
            return Ok(without_nulls);
        }
        let errors = self.schema.iter_errors(&arguments);
        let issues = errors.filter(|error| !self.is_dropped_null(error, &without_nulls));
        let issues =
            issues.take(MAX_ISSUES).flat_map(|error| self.describe(&error)).take(MAX_ISSUES);
        Err(ToolError::validation(issues.collect::<Vec<_>>()))
    }

    /// Tells whether an error is about a null that means "not given", which is no mistake by itself.
    fn is_dropped_null(&self, error: &ValidationError<'_>, without_nulls: &Value) -> bool {
        let path = error.instance_path().as_str();
        let name = path.trim_start_matches('/');
        error.instance().is_null()
            && without_nulls.pointer(path).is_none()
            && !self.required.iter().any(|required| required == name)
    }

    fn rename_aliases(&self, arguments: &mut Map<String, Value>) {
        for (alias, name) in &self.aliases {
            if arguments.get(name).is_none_or(Value::is_null)
                && let Some(value) = arguments.remove(alias)
            {
                arguments.insert(name.clone(), value);
            }
        }
    }

    fn describe(&self, error: &ValidationError<'_>) -> Vec<String> {
        let path = error.instance_path().as_str();
        let place = path.trim_start_matches('/').replace('/', ".");
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                vec![if place.is_empty() {
                    format!("`{name}` is missing")
                } else {
                    format!("`{place}.{name}` is missing")
                }]
            }
            ValidationErrorKind::AdditionalProperties { unexpected } if place.is_empty() => {
                unexpected
                    .iter()
                    .take(MAX_ISSUES)
                    .map(|name| self.describe_unexpected(name))
                    .collect()
            }
            ValidationErrorKind::Type { kind } => {
                let found = shorten(&error.instance().to_string());
                vec![format!("`{place}` has to be {}, not {found}", expected_type(kind))]
            }
            ValidationErrorKind::Enum { options } if !place.is_empty() => {
                let found = shorten(&error.instance().to_string());
                vec![format!("`{place}` has to be {}, not {found}", one_of(options))]
            }
            _ if place.is_empty() => vec![shorten(&error.to_string())],
            _ => vec![format!("`{place}`: {}", shorten(&error.to_string()))],
        }
    }

    fn describe_unexpected(&self, name: &str) -> String {
        let name = shorten(name);
        let name = name.as_str();
        let known = self.parameters.iter().map(String::as_str);
        let close = nearest(name, known);
        if close.is_empty() {
            let parameters: Vec<String> =
                self.parameters.iter().map(|name| format!("`{name}`")).collect();
            let list = if parameters.is_empty() { "none".into() } else { parameters.join(", ") };
            return format!("`{name}` is not a parameter; there are: {list}");
        }
        format!("`{name}` is not a parameter{}", did_you_mean(&close))
    }
}

fn check_size(arguments: &Value, max_bytes: usize) -> Result<(), ToolError> {
    let bytes = measure(arguments, 0)?;
    if bytes > max_bytes {
        return Err(ToolError::validation([format!(
            "the arguments are {bytes} bytes long; the limit is {max_bytes} (tools.maxArgumentBytes)"
        )]));
    }
    Ok(())
}

/// Takes out the values that are null where the schema names the key: there, null means "not given". A key that
/// only fits a pattern was chosen by the model, so its null is data and stays.
fn drop_nulls(value: &mut Value, schemas: &[&Value], root: &Value) {
    let schemas = alternatives(schemas, root);
    match value {
        Value::Object(map) => {
            let named = |name: &str| below(&schemas, "properties", name);
            map.retain(|name, item| !item.is_null() || named(name).is_empty());
            for (name, item) in map {
                let mut inner = named(name);
                for free in ["patternProperties", "additionalProperties"] {
                    inner.extend(schemas.iter().filter_map(|schema| schema.get(free)).flat_map(
                        |free_schema| match (free, free_schema.as_object()) {
                            ("patternProperties", Some(patterns)) => patterns.values().collect(),
                            _ => vec![free_schema],
                        },
                    ));
                }
                drop_nulls(item, &inner, root);
            }
        }
        Value::Array(items) => {
            let lists = ["items", "prefixItems"].into_iter();
            let lists = lists.flat_map(|key| schemas.iter().filter_map(move |one| one.get(key)));
            let inner: Vec<&Value> = lists
                .flat_map(|list| {
                    list.as_array().map_or_else(|| vec![list], |all| all.iter().collect())
                })
                .collect();
            for item in items {
                drop_nulls(item, &inner, root);
            }
        }
        _ => {}
    }
}

fn below<'s>(schemas: &[&'s Value], key: &str, name: &str) -> Vec<&'s Value> {
    schemas.iter().filter_map(|schema| schema.get(key)?.get(name)).collect()
}

/// Returns schemas with all that they refer to or combine. Each is taken once, so a circle ends.
fn alternatives<'s>(schemas: &[&'s Value], root: &'s Value) -> Vec<&'s Value> {
    let mut found: Vec<&'s Value> = Vec::new();
    let mut open: Vec<&'s Value> = schemas.to_vec();
    while let Some(schema) = open.pop() {
        if found.iter().any(|known| std::ptr::eq(*known, schema)) {
            continue;
        }
        found.push(schema);
        for key in ["allOf", "anyOf", "oneOf"] {
            open.extend(schema.get(key).and_then(Value::as_array).into_iter().flatten());
        }
        open.extend(["if", "then", "else"].into_iter().filter_map(|key| schema.get(key)));
        let reference = schema.get("$ref").and_then(Value::as_str);
        let pointer = reference.and_then(|reference| reference.strip_prefix('#'));
        open.extend(pointer.and_then(|pointer| root.pointer(pointer)));
    }
    found
}

fn as_object(arguments: Value) -> Result<Map<String, Value>, ToolError> {
    match arguments {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::String(text) if text.trim().is_empty() => Ok(Map::new()),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(map)) => Ok(map),
            _ => Err(not_an_object(&Value::String(text))),
        },
        other => Err(not_an_object(&other)),
    }
}

fn not_an_object(arguments: &Value) -> ToolError {
    let found = shorten(&arguments.to_string());
    ToolError::validation([format!("the arguments have to be a JSON object, not {found}")])
}

/// Names the values there are: whoever chose a wrong one cannot guess the right one.
fn one_of(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let named = options.iter().take(MAX_OPTIONS).map(|option| shorten(&option.to_string()));
    let more = match options.len().saturating_sub(MAX_OPTIONS) {
        0 => String::new(),
        more => format!(" or {more} others"),
    };
    format!("one of {}{more}", named.collect::<Vec<_>>().join(", "))
}

fn expected_type(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(only) => format!("of type {only}"),
        TypeKind::Multiple(several) => {
            let names: Vec<String> = several.iter().map(|one| one.to_string()).collect();
            format!("of type {}", names.join(" or "))
        }
    }
}

fn shorten(text: &str) -> String {
    const MAX_CHARACTERS: usize = 120;
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Counts about how many bytes of JSON a value is; refuses one that is nested too deep.
fn measure(value: &Value, depth: usize) -> Result<usize, ToolError> {
    if depth > MAX_DEPTH {
        return Err(ToolError::validation([format!(
            "the arguments are nested more than {MAX_DEPTH} levels deep"
        )]));
    }
    Ok(match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => {
            let mut bytes = 2;
            for item in items {
                bytes += measure(item, depth + 1)? + 1;
            }
            bytes
        }
        Value::Object(map) => {
            let mut bytes = 2;
            for (key, item) in map {
                bytes += key.len() + 4 + measure(item, depth + 1)?;
            }
            bytes
        }
    })
}

#[cfg(test)]
mod tests {
    use convoke_core::Kind;
    use serde_json::json;

    use super::*;

    fn check(arguments: Value) -> Result<Value, String> {
        let mut spec = ToolSpec::new("t", "", Kind::Read);
        spec.parameters = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "limit": { "type": "integer", "minimum": 1 },
                "tags": { "type": "array", "items": { "type": "string" } },
            },
            "required": ["path"],
            "additionalProperties": false,
        })
        .into();
        spec.aliases.insert("file_path".into(), "path".into());
        let check = ArgumentCheck::new(&spec).unwrap();
        check.check(arguments, 10_000).map_err(|error| error.message)
    }

    #[test]
    fn slips_with_one_meaning_are_put_right() {
        for arguments in [
            json!({ "path": "a" }),
            json!({ "file_path": "a" }),
            json!({ "path": "a", "limit": null }),
            json!({ "path": null, "file_path": "a" }),
            json!("{\"path\": \"a\"}"),
        ] {
            assert_eq!(check(arguments.clone()), Ok(json!({ "path": "a" })), "{arguments}");
        }
    }

    #[test]
    fn every_mistake_is_named() {
        for (arguments, says) in [
            (json!(null), "`path` is missing"),
            (json!({ "path": null }), "`path` has to be of type string, not null"),
            (json!({ "path": 3 }), "`path` has to be of type string, not 3"),
            (json!({ "path": "a", "limit": 0 }), "`limit`: 0 is less than the minimum of 1"),
            (json!({ "path": "a", "tags": ["x", 1] }), "`tags.1` has to be of type string, not 1"),
            (
                json!({ "path": "a", "limits": 1 }),
                "`limits` is not a parameter; did you mean `limit`?",
            ),
            (json!({ "path": "a", "zzz": 1 }), "there are: `limit`, `path`, `tags`"),
            (json!([1]), "have to be a JSON object, not [1]"),
            (json!("no json"), "have to be a JSON object"),
        ] {
            let message = check(arguments.clone()).unwrap_err();
            assert!(message.starts_with("Parameter validation failed"), "{message}");
            assert!(message.contains(says), "{arguments}: {message}");
        }
    }

    #[test]
    fn the_values_that_are_allowed_are_all_named() {
        let mut spec = ToolSpec::new("t", "", Kind::Read);
        let many: Vec<u32> = (0..100).collect();
        spec.parameters = json!({ "type": "object", "properties": {
            "action": { "enum": ["list", "wait", "cancel", "collect"] },
            "number": { "enum": many },
        } })
        .into();
        let check = ArgumentCheck::new(&spec).unwrap();
        let said = |given: Value| check.check(given, 1000).unwrap_err().message;
        let message = said(json!({ "action": "stop" }));
        let all = r#"`action` has to be one of "list", "wait", "cancel", "collect", not "stop""#;
        assert!(message.contains(all), "{message}");
        let message = said(json!({ "number": 200 }));
        assert!(message.contains("22, 23 or 76 others, not 200"), "{message}");
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let message = check(json!({ "limit": "many", "tags": 1 })).unwrap_err();
        assert_eq!(message.matches("\n- ").count(), 3, "{message}");
    }

    #[test]
    fn a_null_that_means_something_is_kept() {
        let mut spec = ToolSpec::new("t", "", Kind::Read);
        spec.parameters = json!({ "type": "object", "properties": {
            "assignee": { "type": ["string", "null"] },
            "rows": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } } } },
        } }).into();
        let check = ArgumentCheck::new(&spec).unwrap();
        let given = json!({ "assignee": null });
        assert_eq!(check.check(given.clone(), 1000).unwrap(), given);
        let nested = check.check(json!({ "rows": [{ "n": null }] }), 1000).unwrap();
        assert_eq!(nested, json!({ "rows": [{}] }));
    }

    /// Regression: a null in a nested object was dropped, so it fitted a schema of booleans.
    #[test]
    fn null_under_a_key_that_only_fits_a_pattern_is_refused() {
        for open in [
            json!({ "patternProperties": { "^x-": { "type": "boolean" } } }),
            json!({ "additionalProperties": { "type": "boolean" } }),
            json!({ "$ref": "#/$defs/flags" }),
        ] {
            let mut spec = ToolSpec::new("t", "", Kind::Read);
            spec.parameters = json!({
                "type": "object",
                "properties": { "flags": open, "n": { "type": "integer" } },
                "$defs": { "flags": { "patternProperties": { "": { "type": "boolean" } } } },
            })
            .into();
            let check = ArgumentCheck::new(&spec).unwrap();
            let given = json!({ "flags": { "x-a": null }, "n": null });
            let message = check.check(given, 1000).unwrap_err().message;
            assert!(message.contains("`flags.x-a` has to be of type boolean"), "{message}");
            let fits = check.check(json!({ "flags": { "x-a": true }, "n": null }), 1000);
            assert_eq!(fits.unwrap(), json!({ "flags": { "x-a": true } }));
        }
    }

    #[test]
    fn null_under_a_key_that_a_part_of_the_schema_names_is_not_given() {
        let mut spec = ToolSpec::new("t", "", Kind::Read);
        spec.parameters = json!({
            "type": "object",
            "properties": { "tree": { "$ref": "#/$defs/tree" } },
            "$defs": { "tree": { "anyOf": [
                { "type": "string" },
                { "type": "object", "properties": {
                    "n": { "type": "integer" },
                    "below": { "type": "array", "items": { "$ref": "#/$defs/tree" } },
                } },
            ] } },
        })
        .into();
        let check = ArgumentCheck::new(&spec).unwrap();
        let given = json!({ "tree": { "n": null, "below": [{ "n": null }, "x"] } });
        let put_right = check.check(given, 1000).unwrap();
        assert_eq!(put_right, json!({ "tree": { "below": [{}, "x"] } }));
    }

    #[test]
    fn depth_is_limited_also_in_a_string() {
        let deep = format!("{{\"path\": {}1{}}}", "[".repeat(100), "]".repeat(100));
        assert!(check(Value::String(deep)).unwrap_err().contains("nested more than"));
    }

    #[test]
    fn many_unknown_names_give_a_short_answer() {
        let many: Map<String, Value> =
            (0..300).map(|number| (format!("wrong_{number}"), json!(1))).collect();
        let message = check(Value::Object(many)).unwrap_err();
        assert!(message.len() < 4_000, "{}", message.len());
    }

    #[test]
    fn size_and_depth_are_limited() {
        let message = check(json!({ "path": "x".repeat(20_000) })).unwrap_err();
        assert!(message.contains("the limit is 10000"), "{message}");
        let deep = (0..500).fold(json!(1), |inner, _| json!([inner]));
        let message = check(json!({ "path": deep })).unwrap_err();
        assert!(message.contains("nested more than 64 levels"), "{message}");
    }
}

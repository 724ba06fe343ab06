//! What a server offers, in our own words, read with patience.
//!
//! A server may get one entry of a list wrong; that one is then left out or marked as unusable, with the
//! reason, and the others are taken.

use convoke_core::{Kind, Repeat, Schema};
use convoke_tool::floor_char_boundary;
use convoke_tool::schema::check_cost;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::config::Trust;
use super::message::TASK_SUPPORT;

/// A description that a model reads with every request.
const MAX_DESCRIPTION_BYTES: usize = 8 * 1024;
const MAX_TITLE_BYTES: usize = 200;
/// A schema that a model reads with every request.
const MAX_SCHEMA_BYTES: usize = 128 * 1024;
const MAX_SCHEMA_DEPTH: usize = 48;
/// Each is a regular expression, which may take megabytes once it is compiled.
const MAX_SCHEMA_PATTERNS: usize = 50;
/// A name that nobody means.
const MAX_NAME_BYTES: usize = 1024;
const MAX_ADDRESS_BYTES: usize = 8 * 1024;
const MAX_ARGUMENTS: usize = 100;

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ToolEntry {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: String,
    #[serde(deserialize_with = "written")]
    pub(super) input: Schema,
    #[serde(default, deserialize_with = "written_if_any")]
    pub(super) output: Option<Schema>,
    pub(super) hints: Hints,
    #[serde(default)]
    pub(super) calling: Calling,
    /// Why it cannot be used, if it cannot.
    pub(super) unusable: Option<String>,
}

/// How a tool is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Calling {
    /// The answer is the result.
    #[default]
    Plainly,
    /// The answer names a task, whose result is asked for later.
    AsTask,
}

/// What a server says a tool does to the world. Believed only where the server is trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Hints {
    #[serde(rename = "readOnlyHint")]
    read_only: Option<bool>,
    #[serde(rename = "destructiveHint")]
    destructive: Option<bool>,
    #[serde(rename = "idempotentHint")]
    idempotent: Option<bool>,
    #[serde(rename = "openWorldHint")]
    open_world: Option<bool>,
}

impl Hints {
    /// Returns what kind of tool it is.
    pub(super) fn kind(self, trust: Trust) -> Kind {
        if trust == Trust::Nothing {
            return Kind::Other;
        }
        match (self.read_only, self.destructive) {
            (Some(true), _) if self.open_world == Some(true) => Kind::Fetch,
            (Some(true), _) => Kind::Read,
            (_, Some(true)) => Kind::Delete,
            (_, Some(false)) => Kind::Edit,
            (_, None) => Kind::Other,
        }
    }

    /// Returns what happens when a call is repeated.
    pub(super) fn repeat(self, trust: Trust) -> Repeat {
        match (trust, self.read_only, self.idempotent) {
            (Trust::Nothing, _, _) => Repeat::Unsafe,
            (_, Some(true), _) => Repeat::Pure,
            (_, _, Some(true)) => Repeat::Idempotent,
            _ => Repeat::Unsafe,
        }
    }
}

impl ToolEntry {
    /// Reads an entry of the list. Without a name it is nothing.
    pub(super) fn read(entry: &Value) -> Option<Self> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let name = text("name").filter(|name| !name.is_empty() && name.len() <= MAX_NAME_BYTES)?;
        let title = text("title").or_else(|| entry.pointer("/annotations/title")?.as_str());
        let hints = entry.get("annotations").cloned().unwrap_or_default();
        let input = entry.get("inputSchema").cloned().unwrap_or_default();
        let input = of_an_object(input);
        let output = entry.get("outputSchema").filter(|schema| !schema.is_null()).cloned();
        let support = entry.get("_meta").and_then(|meta| meta.get(TASK_SUPPORT));
        let needs_task = support.is_some_and(|support| support == "required");
        let problem = problem_with_input(&input).map(|why| format!("its input schema {why}"));
        let problem = problem.or_else(|| {
            let why = output.as_ref().and_then(problem_with_schema)?;
            Some(format!("its output schema {why}"))
        });
        // What cannot be used is not kept either: it may be huge.
        let (input, output) = if problem.is_some() { (Value::Null, None) } else { (input, output) };
        Some(Self {
            name: name.to_owned(),
            title: title.filter(|title| !title.is_empty()).map(|title| cut(title, MAX_TITLE_BYTES)),
            description: cut(text("description").unwrap_or_default(), MAX_DESCRIPTION_BYTES),
            input: input.into(),
            output: output.map(Schema::from),
            hints: serde_json::from_value(hints).unwrap_or_default(),
            calling: if needs_task { Calling::AsTask } else { Calling::Plainly },
            unusable: problem,
        })
    }
}

/// Takes a schema from a file as it is: whoever calls the tool, or looks for it, reads it.
fn written<'de, D: Deserializer<'de>>(file: D) -> Result<Schema, D::Error> {
    Box::<RawValue>::deserialize(file).map(Schema::written)
}

fn written_if_any<'de, D: Deserializer<'de>>(file: D) -> Result<Option<Schema>, D::Error> {
    Ok(Option::<Box<RawValue>>::deserialize(file)?.map(Schema::written))
}

/// Says of a schema that it is one of an object, where it leaves that open: arguments always are one.
fn of_an_object(mut schema: Value) -> Value {
    if may_be_object(&schema, MAX_SCHEMA_DEPTH)
        && let Some(map) = schema.as_object_mut()
    {
        map.insert("type".to_owned(), "object".into());
    }
    schema
}

/// Tells whether nothing in a schema rules out objects, as far as that can be seen without solving it.
fn may_be_object(schema: &Value, levels: usize) -> bool {
    let (Some(below), Some(map)) = (levels.checked_sub(1), schema.as_object()) else {
        return schema == &Value::Bool(true);
    };
    let branch = |branch: &Value| may_be_object(branch, below);
    map.iter().all(|(keyword, value)| match (keyword.as_str(), value) {
        ("type", Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        ("type", kind) => kind == "object",
        ("const", value) => value.is_object(),
        ("enum", Value::Array(values)) => values.iter().any(Value::is_object),
        ("anyOf" | "oneOf", Value::Array(branches)) => branches.iter().any(branch),
        ("allOf", Value::Array(branches)) => branches.iter().all(branch),
        _ => true,
    })
}

fn problem_with_input(schema: &Value) -> Option<String> {
    if schema.get("type").is_none_or(|kind| kind != "object") {
        return Some("is not the schema of an object".to_owned());
    }
    problem_with_schema(schema)
}

/// Says what is wrong with a schema that a server gave, if anything is.
pub(super) fn problem_with_schema(schema: &Value) -> Option<String> {
    let bytes = serde_json::to_vec(schema).map_or(usize::MAX, |text| text.len());
    if bytes > MAX_SCHEMA_BYTES {
        return Some(format!("is {bytes} bytes long; the limit is {MAX_SCHEMA_BYTES}"));
    }
    if is_deeper(schema, MAX_SCHEMA_DEPTH) {
        return Some(format!("is nested more than {MAX_SCHEMA_DEPTH} levels deep"));
    }
    let patterns = patterns(schema);
    if patterns > MAX_SCHEMA_PATTERNS {
        return Some(format!("has {patterns} patterns; the limit is {MAX_SCHEMA_PATTERNS}"));
    }
    if let Err(error) = check_cost(schema) {
        return Some(error.to_string());
    }
    let error = jsonschema::validator_for(schema).err()?;
    Some(format!("is not valid: {}", cut(&error.to_string(), 300)))
}

/// Counts what may be a regular expression in a schema that is not too deep.
fn patterns(value: &Value) -> usize {
    match value {
        Value::Object(map) => {
            let here = map.iter().map(|(keyword, value)| match (keyword.as_str(), value) {
                ("pattern", Value::String(_)) => 1,
                ("patternProperties", Value::Object(names)) => names.len(),
                _ => 0,
            });
            here.sum::<usize>() + map.values().map(patterns).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(patterns).sum(),
        _ => 0,
    }
}

/// Tells whether a value is nested more than so many levels deep.
pub(super) fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return true;
    };
    match value {
        Value::Object(map) => map.values().any(|item| is_deeper(item, below)),
        Value::Array(items) => items.iter().any(|item| is_deeper(item, below)),
        _ => false,
    }
}

/// Returns the beginning of a text that is too long, and says so.
pub(super) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = floor_char_boundary(text, limit);
    format!("{} [… cut]", text.get(..end).unwrap_or_default())
}

/// Something that can be read from a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// What it is read by.
    pub uri: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// How many bytes it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// A family of things that can be read from a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// What they are read by, with `{names}` in it.
    pub uri_template: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// What they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Their media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// A prepared message that a server can fill in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What is filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
}

/// What is filled into a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it has to be given.
    #[serde(default)]
    pub required: bool,
}

/// An entry of a list that people and models read.
pub(super) trait Entry: for<'de> Deserialize<'de> {
    /// Cuts what is too long. Tells whether anything is left that can be used.
    fn bound(&mut self) -> bool;
}

impl Entry for Resource {
    fn bound(&mut self) -> bool {
        bound(&mut self.mime_type, MAX_TITLE_BYTES);
        self.name = cut(&self.name, MAX_TITLE_BYTES);
        bound(&mut self.title, MAX_TITLE_BYTES);
        bound(&mut self.description, MAX_DESCRIPTION_BYTES);
        self.uri.len() <= MAX_ADDRESS_BYTES
    }
}

impl Entry for ResourceTemplate {
    fn bound(&mut self) -> bool {
        bound(&mut self.mime_type, MAX_TITLE_BYTES);
        self.name = cut(&self.name, MAX_TITLE_BYTES);
        bound(&mut self.description, MAX_DESCRIPTION_BYTES);
        self.uri_template.len() <= MAX_ADDRESS_BYTES
    }
}

impl Entry for Prompt {
    fn bound(&mut self) -> bool {
        bound(&mut self.title, MAX_TITLE_BYTES);
        bound(&mut self.description, MAX_DESCRIPTION_BYTES);
        for argument in &mut self.arguments {
            bound(&mut argument.description, MAX_TITLE_BYTES);
        }
        let named = self.arguments.iter().map(|argument| &argument.name).chain([&self.name]);
        self.arguments.len() <= MAX_ARGUMENTS
            && named.into_iter().all(|name| name.len() <= MAX_NAME_BYTES)
    }
}

fn bound(text: &mut Option<String>, limit: usize) {
    if let Some(text) = text {
        *text = cut(text, limit);
    }
}

/// Reads the entries that can be read, and counts the others.
pub(super) fn read_all<T: Entry>(entries: Vec<Value>) -> (Vec<T>, usize) {
    let all = entries.len();
    let read = |entry| {
        let mut entry: T = serde_json::from_value(entry).ok()?;
        entry.bound().then_some(entry)
    };
    let good: Vec<T> = entries.into_iter().filter_map(read).collect();
    let bad = all - good.len();
    (good, bad)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(schema: &Value) -> ToolEntry {
        ToolEntry::read(&json!({ "name": "t", "inputSchema": schema })).unwrap()
    }

    #[test]
    fn a_bad_schema_makes_one_tool_unusable_and_says_why() {
        assert_eq!(entry(&json!({ "type": "object" })).unusable, None);
        for (schema, says) in [
            (json!(null), "not the schema of an object"),
            (json!(true), "not the schema of an object"),
            (json!({ "type": "string" }), "not the schema of an object"),
            (json!({ "type": "object", "properties": 7 }), "is not valid"),
            (json!({ "type": "object", "$ref": "http://elsewhere.example/x" }), "not in it"),
            (json!({ "type": "object", "description": "x".repeat(200_000) }), "bytes long"),
            (
                json!({ "type": "object", "allOf": vec![json!({ "pattern": "\\w{200}" }); 51] }),
                "has 51 patterns; the limit is 50",
            ),
            (json!({ "type": "object", "pattern": "(a{9999}){9999}" }), "is not valid"),
            (
                (0..100).fold(json!({}), |inner, _| json!({ "type": "object", "not": inner })),
                "deep",
            ),
        ] {
            let why = entry(&schema).unusable.unwrap_or_default();
            assert!(why.contains(says), "{says}: {why}");
        }
        assert!(ToolEntry::read(&json!({ "inputSchema": {} })).is_none());
    }

    #[test]
    fn a_tool_may_want_to_be_called_as_a_task() {
        for (support, calling) in [
            ("required", Calling::AsTask),
            ("optional", Calling::Plainly),
            ("forbidden", Calling::Plainly),
        ] {
            let meta = json!({ TASK_SUPPORT: support });
            let entry = json!({ "name": "t", "inputSchema": {}, "_meta": meta });
            let read = ToolEntry::read(&entry).unwrap();
            assert_eq!((read.calling, read.unusable), (calling, None), "{support}");
        }
    }

    /// A few lines of references make a check last for ever; a tree that refers to itself does not.
    #[test]
    fn a_schema_that_costs_too_much_to_check_is_not_used() {
        let level = |next: usize| {
            let next = json!({ "$ref": format!("#/$defs/d{next}") });
            json!({ "allOf": [next, next] })
        };
        let mut parts: serde_json::Map<String, Value> =
            (0..40).map(|index| (format!("d{index}"), level(index + 1))).collect();
        parts.insert("d40".into(), json!({}));
        let chain =
            json!({ "type": "object", "allOf": [{ "$ref": "#/$defs/d0" }], "$defs": parts });
        let why = entry(&chain).unusable.unwrap_or_default();
        assert!(why.contains("costs too much"), "{why}");
        let tree = json!({ "type": "object", "properties": { "below": { "type": "array", "items": { "$ref": "#" } } } });
        assert_eq!(entry(&tree).unusable, None);
    }

    #[test]
    fn entries_that_nobody_can_use_are_left_out() {
        let long = "x".repeat(5_000_000);
        let (good, bad) = read_all::<Resource>(vec![
            json!({ "uri": format!("a:{long}") }),
            json!({ "uri": "a:b", "mimeType": long }),
        ]);
        assert_eq!((good.len(), bad), (1, 1));
        assert!(good[0].mime_type.as_ref().is_some_and(|mime| mime.len() < 300));
        let (prompts, bad) = read_all::<Prompt>(vec![json!({ "name": long })]);
        assert_eq!((prompts.len(), bad), (0, 1));
    }

    #[test]
    fn a_schema_that_leaves_its_type_open_is_one_of_an_object() {
        for schema in [
            json!({}),
            json!({ "properties": { "n": { "type": "integer" } }, "required": ["n"] }),
            json!({ "type": ["object", "null"], "properties": {} }),
            json!({ "anyOf": [{ "type": "string" }, { "required": ["a"] }] }),
            json!({ "allOf": [true, { "properties": { "a": {} } }] }),
        ] {
            let read = entry(&schema);
            assert_eq!(read.unusable, None, "{schema}");
            let mut declared = schema.clone();
            declared["type"] = json!("object");
            assert_eq!(read.input, declared);
        }
        for schema in [
            json!({ "type": ["string", "null"] }),
            json!({ "const": 7 }),
            json!({ "enum": ["a", "b"] }),
            json!({ "oneOf": [{ "type": "string" }, { "const": 1 }] }),
            json!({ "allOf": [{ "properties": {} }, { "type": "array" }] }),
        ] {
            let why = entry(&schema).unusable.unwrap_or_default();
            assert!(why.contains("not the schema of an object"), "{schema}: {why}");
        }
        let whole = json!({ "type": "object", "$defs": { "a": { "$anchor": "x" } } });
        assert_eq!(entry(&whole).input, whole);
    }

    #[test]
    fn long_descriptions_are_cut() {
        let long = json!({ "name": "t", "description": "ä".repeat(500_000), "inputSchema": {} });
        let read = ToolEntry::read(&long).unwrap();
        assert!(read.description.len() < 9_000 && read.description.ends_with("[… cut]"));
    }

    #[test]
    fn hints_are_believed_only_where_the_server_is_trusted() {
        let hints: Hints =
            serde_json::from_value(json!({ "readOnlyHint": true, "idempotentHint": true }))
                .unwrap();
        assert_eq!(hints.kind(Trust::Nothing), Kind::Other);
        assert_eq!(hints.repeat(Trust::Nothing), Repeat::Unsafe);
        assert_eq!(hints.kind(Trust::Annotations), Kind::Read);
        assert_eq!(hints.repeat(Trust::Annotations), Repeat::Pure);
        for (hints, kind, repeat) in [
            (json!({ "readOnlyHint": true, "openWorldHint": true }), Kind::Fetch, Repeat::Pure),
            (json!({ "destructiveHint": true }), Kind::Delete, Repeat::Unsafe),
            (json!({ "destructiveHint": false }), Kind::Edit, Repeat::Unsafe),
            (json!({ "idempotentHint": true }), Kind::Other, Repeat::Idempotent),
            (json!({}), Kind::Other, Repeat::Unsafe),
        ] {
            let read: Hints = serde_json::from_value(hints.clone()).unwrap();
            assert_eq!(read.kind(Trust::Annotations), kind, "{hints}");
            assert_eq!(read.repeat(Trust::Annotations), repeat, "{hints}");
        }
    }

    #[test]
    fn entries_that_cannot_be_read_are_counted() {
        let (good, bad) = read_all::<Resource>(vec![json!({ "uri": "a:b" }), json!({}), json!(3)]);
        assert_eq!((good.len(), bad), (1, 2));
    }
}

//! The JSON Schema of [`Config`], made from the Rust types: for editors, and for everything in this
//! module that has to know which keys there are and what they hold.
//!
//! There is no second list of keys. Checking, coercion, masking, explaining and "did you mean" all
//! read this schema through [`Schema`].

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Map, Value, json};

use super::key::{Key, Segment};
use super::settings::Config;

/// Returns the JSON Schema (draft 2020-12) of a configuration file.
pub fn config_schema() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.with_transform(Plain).into_generator().into_root_schema_for::<Config>().to_value()
}

/// Returns a schema that allows only these words.
pub(crate) fn words(words: impl Iterator<Item = &'static str>) -> Value {
    json!({ "enum": words.collect::<Vec<_>>() })
}

/// Makes generated schemas plain: no `null` (a key has a value or is not there), no
/// Rust number formats, and choices between words as one `enum`.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        drop_null(object);
        join_words(object);
        join_lines(object);
        let number_format = |format: &str| {
            format.starts_with("uint") || format.starts_with("int") || format == "double"
        };
        if object.get("format").and_then(Value::as_str).is_some_and(number_format) {
            object.remove("format");
        }
    }
}

fn drop_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice != &json!({ "type": "null" }));
        if let [Value::Object(only)] = choices.as_mut_slice() {
            let only = std::mem::take(only);
            object.remove("anyOf");
            for (keyword, value) in only {
                object.entry(keyword).or_insert(value);
            }
        }
    }
    if object.get("default") == Some(&Value::Null) {
        object.remove("default");
    }
}

fn join_words(object: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = object.get("oneOf") else { return };
    let word = |choice: &Value| choice.get("const").filter(|word| word.is_string()).cloned();
    if let Some(words) = choices.iter().map(word).collect::<Option<Vec<_>>>() {
        object.remove("oneOf");
        object.insert("type".to_owned(), "string".into());
        object.insert("enum".to_owned(), words.into());
    }
}

/// Undoes the line breaks of doc comments; paragraphs stay apart.
fn join_lines(object: &mut Map<String, Value>) {
    if let Some(Value::String(description)) = object.get_mut("description") {
        let paragraphs: Vec<String> =
            description.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
        *description = paragraphs.join("\n\n");
    }
}

/// The schema of one value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schema<'a>(&'a Value);

/// What a schema says about a key below it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Child<'a> {
    /// The key is known and this is the schema of its value.
    Known(Schema<'a>),
    /// There is no such key.
    Unknown,
    /// Anything may be here: it is not Convoke's to judge.
    Free,
}

impl Child<'_> {
    /// Returns what is said about a name below.
    pub(crate) fn named(self, name: &str) -> Self {
        match self {
            Self::Known(schema) => schema.named(name),
            other => other,
        }
    }

    /// Returns what is said about the items of a list.
    pub(crate) fn item(self) -> Self {
        match self {
            Self::Known(schema) => schema.item(),
            other => other,
        }
    }

    /// Returns what is said about a step below.
    pub(crate) fn step(self, segment: &Segment) -> Self {
        match segment {
            Segment::Name(name) => self.named(name),
            Segment::Index(_) => self.item(),
        }
    }
}

/// What a value has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    Integer,
    Number,
    Duration,
    Bytes,
    Boolean,
    List,
    Map,
    Any,
}

impl<'a> Schema<'a> {
    pub(crate) fn new(value: &'a Value) -> Self {
        Self(value)
    }

    /// Returns what the schema says about a name below it.
    pub(crate) fn named(self, name: &str) -> Child<'a> {
        if let Some(property) = self.0.get("properties").and_then(|all| all.get(name)) {
            return Child::Known(Self(property));
        }
        match self.0.get("additionalProperties") {
            Some(rest @ Value::Object(_)) => match self.allowed_names() {
                Some(names) if !names.contains(&name) => Child::Unknown,
                _ => Child::Known(Self(rest)),
            },
            None if matches!(self.shape(), Shape::Map | Shape::Any) => Child::Free,
            _ => Child::Unknown,
        }
    }

    /// Returns what the schema says about the items of a list.
    fn item(self) -> Child<'a> {
        match self.items() {
            Some(items) => Child::Known(items),
            None if self.shape() == Shape::Any => Child::Free,
            None => Child::Unknown,
        }
    }

    /// Returns what the schema says about a key.
    pub(crate) fn get(self, key: &Key) -> Child<'a> {
        key.segments().iter().fold(Child::Known(self), Child::step)
    }

    /// Returns the names that are known below this one, in order.
    pub(crate) fn names(self) -> Vec<&'a str> {
        let properties = self.0.get("properties").and_then(Value::as_object);
        let mut names: Vec<&str> =
            properties.into_iter().flat_map(|all| all.keys()).map(String::as_str).collect();
        names.extend(self.allowed_names().unwrap_or_default());
        names
    }

    /// Returns the words that are allowed as names, where only some are.
    fn allowed_names(self) -> Option<Vec<&'a str>> {
        let names = self.0.get("propertyNames")?.get("enum")?.as_array()?;
        Some(names.iter().filter_map(Value::as_str).collect())
    }

    /// Returns every key that has a name of its own, the root left out.
    pub(crate) fn keys(self) -> Vec<Key> {
        let mut found = Vec::new();
        self.collect_keys(&Key::default(), &mut found);
        found
    }

    fn collect_keys(self, above: &Key, found: &mut Vec<Key>) {
        for name in self.names() {
            let key = above.name(name);
            found.push(key.clone());
            if let Child::Known(schema) = self.named(name) {
                schema.collect_keys(&key, found);
            }
        }
    }

    /// Returns what a value has to be.
    pub(crate) fn shape(self) -> Shape {
        let kind = self.0.get("type");
        if kind.is_some_and(Value::is_array) {
            // Durations and sizes alone can be written in two ways.
            let is_size = self.0.get("format").and_then(Value::as_str) == Some("bytes");
            return if is_size { Shape::Bytes } else { Shape::Duration };
        }
        match kind.and_then(Value::as_str) {
            Some("string") => Shape::Text,
            Some("integer") => Shape::Integer,
            Some("number") => Shape::Number,
            Some("boolean") => Shape::Boolean,
            Some("array") => Shape::List,
            Some("object") => Shape::Map,
            _ => Shape::Any,
        }
    }

    /// Returns the schema of the items of a list.
    pub(crate) fn items(self) -> Option<Self> {
        self.0.get("items").map(Self)
    }

    /// Returns the words a value may be, where only some are.
    pub(crate) fn choices(self) -> Option<Vec<&'a str>> {
        let choices = self.0.get("enum")?.as_array()?;
        Some(choices.iter().filter_map(Value::as_str).collect())
    }

    /// Returns whether the value is never shown.
    pub(crate) fn is_secret(self) -> bool {
        self.0.get("writeOnly") == Some(&Value::Bool(true))
    }

    /// Returns whether the value is a path.
    pub(crate) fn is_path(self) -> bool {
        self.0.get("format").and_then(Value::as_str) == Some("path")
    }

    /// Returns whether the path may begin with the word for the workspace.
    pub(crate) fn is_place(self) -> bool {
        self.0.get("x-workspace") == Some(&Value::Bool(true))
    }

    /// Returns whether the value is the name of an environment variable.
    pub(crate) fn is_variable(self) -> bool {
        self.0.get("format").and_then(Value::as_str) == Some("environment-variable")
    }

    /// Returns what the names in a mapping have to match, where they have to.
    pub(crate) fn name_pattern(self) -> Option<&'a str> {
        self.0.get("propertyNames")?.get("pattern")?.as_str()
    }

    /// Returns what the key is for.
    pub(crate) fn description(self) -> Option<&'a str> {
        self.0.get("description").and_then(Value::as_str)
    }

    /// Returns the value a key has where it is not written.
    pub(crate) fn default(self) -> Option<&'a Value> {
        self.0.get("default")
    }

    /// Says what a value has to be: "a whole number from 1 to 100".
    pub(crate) fn expected(self) -> String {
        if let Some(choices) = self.choices() {
            let quoted: Vec<String> = choices.iter().map(|word| format!("`{word}`")).collect();
            return format!("one of {}", quoted.join(", "));
        }
        match self.shape() {
            Shape::Integer => format!("a whole number{}", self.range()),
            Shape::Number => format!("a number{}", self.range()),
            Shape::Duration => {
                format!("a duration, as 250ms, 90s or 1h30m, or milliseconds{}", self.range())
            }
            Shape::Bytes => format!("a size, as 500MB or 2GiB, or bytes{}", self.range()),
            Shape::Boolean => "`true` or `false`".to_owned(),
            Shape::Map => "a mapping".to_owned(),
            Shape::List => self.expected_list(),
            Shape::Any => "a value".to_owned(),
            Shape::Text => match self.0.get("pattern").and_then(Value::as_str) {
                Some(pattern) => format!("text that matches `{pattern}`"),
                None if self.0.get("minLength").is_some() => "text that is not empty".to_owned(),
                None => "text".to_owned(),
            },
        }
    }

    fn expected_list(self) -> String {
        let empty = if self.0.get("minItems").is_some() { " that is not empty" } else { "" };
        match self.items().map(Self::shape) {
            Some(Shape::Text) => format!("a list of text{empty}"),
            Some(Shape::Map) => format!("a list of mappings{empty}"),
            _ => format!("a list{empty}"),
        }
    }

    fn range(self) -> String {
        match (self.0.get("minimum"), self.0.get("maximum")) {
            (Some(least), Some(most)) => format!(" from {least} to {most}"),
            (Some(least), None) => format!(" of at least {least}"),
            (None, Some(most)) => format!(" of at most {most}"),
            (None, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests;

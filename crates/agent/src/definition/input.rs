//! What goes into an agent.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// What goes in: named values of simple types, or anything a JSON Schema can say.
#[derive(Clone, Debug, PartialEq)]
pub enum InputConfig {
    /// Named values of simple types.
    Named(BTreeMap<String, Input>),
    /// An object of this JSON Schema.
    Schema(Value),
}

/// One named value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// What it is, for the model that calls the agent.
    pub description: String,
    /// Its type.
    pub kind: InputType,
    /// Whether it has to be there.
    pub required: bool,
}

/// The type of a named value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputType {
    /// A text.
    String,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// Several texts.
    Strings,
    /// Several numbers.
    Numbers,
}

/// A type that an input cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "agent `{agent}`: the input `{input}` has the type `{given}`; it has to be one of string, number, \
     integer, boolean, string[], number[]"
)]
pub struct UnknownInputType {
    /// The agent.
    pub agent: String,
    /// The input.
    pub input: String,
    /// What was written.
    pub given: String,
}

impl InputType {
    /// Every type, with the word it has in a file.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("string", Self::String),
        ("number", Self::Number),
        ("integer", Self::Integer),
        ("boolean", Self::Boolean),
        ("string[]", Self::Strings),
        ("number[]", Self::Numbers),
    ];

    /// Returns the type a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
    }

    /// Returns the word it has in a file.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }

    fn schema(self) -> Value {
        match self {
            Self::String => json!({ "type": "string" }),
            Self::Number => json!({ "type": "number" }),
            Self::Integer => json!({ "type": "integer" }),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::Strings => json!({ "type": "array", "items": { "type": "string" } }),
            Self::Numbers => json!({ "type": "array", "items": { "type": "number" } }),
        }
    }
}

impl InputConfig {
    /// The input of an agent that takes one text.
    pub const TASK: &'static str = "task";

    /// Adds a value that has to be there.
    #[must_use]
    pub fn required(self, name: &str, kind: InputType, description: &str) -> Self {
        self.with(name, Input { description: description.to_owned(), kind, required: true })
    }

    /// Adds a value that may be left out.
    #[must_use]
    pub fn optional(self, name: &str, kind: InputType, description: &str) -> Self {
        self.with(name, Input { description: description.to_owned(), kind, required: false })
    }

    /// Starts without any value.
    pub const fn none() -> Self {
        Self::Named(BTreeMap::new())
    }

    fn with(self, name: &str, input: Input) -> Self {
        let mut inputs = match self {
            Self::Named(inputs) => inputs,
            Self::Schema(_) => BTreeMap::new(),
        };
        inputs.insert(name.to_owned(), input);
        Self::Named(inputs)
    }

    /// Returns the JSON Schema of what goes in. `required` is left out where nothing is. Named values are all there
    /// are; what else a schema of its own lets through, it lets through.
    pub fn schema(&self) -> Value {
        let inputs = match self {
            Self::Named(inputs) => inputs,
            Self::Schema(schema) => return schema.clone(),
        };
        let properties: Map<String, Value> = inputs
            .iter()
            .map(|(name, input)| {
                let mut schema = input.kind.schema();
                if let Value::Object(schema) = &mut schema {
                    schema.insert("description".into(), input.description.clone().into());
                }
                (name.clone(), schema)
            })
            .collect();
        let required: Vec<&String> =
            inputs.iter().filter(|(_, input)| input.required).map(|(name, _)| name).collect();
        let mut schema =
            json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if let (false, Value::Object(schema)) = (required.is_empty(), &mut schema) {
            schema.insert("required".into(), json!(required));
        }
        schema
    }

    /// Returns the names of what goes in, and whether each has to be there.
    pub fn names(&self) -> Vec<(String, bool)> {
        match self {
            Self::Named(inputs) => {
                inputs.iter().map(|(name, input)| (name.clone(), input.required)).collect()
            }
            Self::Schema(schema) => {
                let required = schema.get("required").and_then(Value::as_array);
                let is_required = |name: &str| {
                    required.is_some_and(|names| names.iter().any(|given| given == name))
                };
                let properties = schema.get("properties").and_then(Value::as_object);
                let names = properties.into_iter().flat_map(Map::keys);
                names.map(|name| (name.clone(), is_required(name))).collect()
            }
        }
    }

    /// Tells whether something of this name goes in.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names().iter().any(|(known, _)| known == name)
    }

    /// Returns the one input that a text can be handed to: the only one that has to be there if it is a
    /// text, or the only one there is.
    pub fn single_text(&self) -> Option<String> {
        let is_text = |name: &str| match self {
            Self::Named(inputs) => {
                inputs.get(name).is_some_and(|input| input.kind == InputType::String)
            }
            Self::Schema(schema) => schema
                .get("properties")
                .and_then(|properties| properties.get(name))
                .is_some_and(|property| property.get("type").is_some_and(|kind| kind == "string")),
        };
        let names = self.names();
        let mut required = names.iter().filter(|(_, required)| *required);
        match (required.next(), required.next()) {
            (Some((name, _)), None) if is_text(name) => Some(name.clone()),
            (None, _) => match names.as_slice() {
                [(name, _)] if is_text(name) => Some(name.clone()),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Default for InputConfig {
    fn default() -> Self {
        Self::none().required(Self::TASK, InputType::String, "What the agent is to do, in full.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r160_inputs_become_a_schema() {
        let inputs = InputConfig::none()
            .required("objective", InputType::String, "What to find out.")
            .optional("max_files", InputType::Integer, "How many files to read.");
        assert_eq!(
            inputs.schema(),
            json!({
                "type": "object",
                "properties": {
                    "objective": { "type": "string", "description": "What to find out." },
                    "max_files": { "type": "integer", "description": "How many files to read." },
                },
                "required": ["objective"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn every_type_has_its_schema_and_nothing_required_is_nothing_said() {
        let all = InputType::WORDS
            .iter()
            .fold(InputConfig::none(), |inputs, (word, kind)| inputs.optional(word, *kind, "It."));
        let schema = all.schema();
        assert_eq!(schema.get("required"), None);
        for (word, items) in [("string[]", "string"), ("number[]", "number")] {
            assert_eq!(
                schema["properties"][word],
                json!({ "type": "array", "items": { "type": items }, "description": "It." })
            );
        }
        for word in ["string", "number", "integer", "boolean"] {
            assert_eq!(schema["properties"][word], json!({ "type": word, "description": "It." }));
        }
    }

    #[test]
    fn a_text_goes_to_the_one_input_that_can_take_it() {
        let text = InputType::String;
        for (inputs, single) in [
            (InputConfig::default(), Some("task")),
            (InputConfig::none(), None),
            (InputConfig::none().required("n", InputType::Integer, ""), None),
            (InputConfig::none().optional("a", text, ""), Some("a")),
            (InputConfig::none().optional("a", text, "").optional("b", text, ""), None),
            (InputConfig::none().required("a", text, "").optional("b", text, ""), Some("a")),
            (InputConfig::none().required("a", text, "").required("b", text, ""), None),
        ] {
            assert_eq!(inputs.single_text().as_deref(), single, "{inputs:?}");
            let same = InputConfig::Schema(inputs.schema());
            assert_eq!(same.single_text().as_deref(), single, "{inputs:?}");
        }
    }
}

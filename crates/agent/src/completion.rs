//! `complete_task`, and answers that have to have a shape.

use convoke_core::Declaration;
use convoke_core::run::{COMPLETE_TASK, OutputSpec};
use serde_json::{Map, Value, json};

/// How many mistakes of an answer are told at once.
const MAX_PROBLEMS: usize = 10;

/// What an answer is checked against.
#[derive(Debug)]
pub(crate) struct Completion {
    spec: Option<OutputSpec>,
    validator: Option<jsonschema::Validator>,
}

impl Completion {
    /// Prepares the check; a schema that is none is refused.
    pub(crate) fn new(spec: Option<OutputSpec>) -> Result<Self, String> {
        let validator = match &spec {
            None => None,
            Some(spec) => {
                let made = jsonschema::validator_for(&spec.schema);
                Some(made.map_err(|error| error.to_string())?)
            }
        };
        Ok(Self { spec, validator })
    }

    pub(crate) const fn spec(&self) -> Option<&OutputSpec> {
        self.spec.as_ref()
    }

    /// Returns what the model is told about `complete_task`.
    pub(crate) fn declaration(&self) -> Declaration {
        let mut definitions = Map::new();
        let (name, schema) = match &self.spec {
            Some(spec) => {
                let mut schema = spec.schema.clone();
                if let Value::Object(map) = &mut schema {
                    map.remove("$schema");
                    // References count from the root, so what they refer to stays there.
                    for key in ["$defs", "definitions"] {
                        definitions.extend(map.remove_entry(key));
                    }
                    map.entry("description").or_insert_with(|| spec.description.clone().into());
                }
                (spec.name.as_str(), schema)
            }
            None => ("result", json!({ "description": "The result: text, or an object." })),
        };
        let properties = Map::from_iter([(name.to_owned(), schema)]);
        let mut parameters = definitions;
        parameters.insert("type".to_owned(), json!("object"));
        parameters.insert("properties".to_owned(), properties.into());
        parameters.insert("required".to_owned(), json!([name]));
        Declaration {
            name: COMPLETE_TASK.to_owned(),
            description:
                "Says that the task is done, and gives its result. Call it exactly once, at \
                          the end, and not together with other calls."
                    .to_owned(),
            parameters: Value::Object(parameters).into(),
        }
    }

    /// Checks the arguments of `complete_task`: returns the output, or what is wrong.
    pub(crate) fn check_call(&self, arguments: &Value) -> Result<Value, Vec<String>> {
        let name = self.spec.as_ref().map_or("result", |spec| spec.name.as_str());
        let Some(value) = arguments.get(name) else {
            return Err(vec![format!("the argument `{name}` is missing")]);
        };
        if self.spec.is_none() && !(value.is_string() || value.is_object()) {
            return Err(vec![format!("`{name}` has to be a text or an object")]);
        }
        self.check(value).map(|()| value.clone())
    }

    /// Checks an answer in words: returns the JSON in it, or what is wrong.
    pub(crate) fn check_words(&self, words: &str) -> Result<Value, (Value, Vec<String>)> {
        let as_text = || Value::String(words.to_owned());
        let value = json_in(words).ok_or_else(|| (as_text(), vec!["it is not JSON".to_owned()]))?;
        match self.check(&value) {
            Ok(()) => Ok(value),
            Err(problems) => Err((value, problems)),
        }
    }

    fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        let Some(validator) = &self.validator else { return Ok(()) };
        let problems: Vec<String> = validator
            .iter_errors(value)
            .take(MAX_PROBLEMS)
            .map(|error| match error.instance_path().to_string() {
                path if path.is_empty() => error.to_string(),
                path => format!("{path}: {error}"),
            })
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

/// Finds the JSON in an answer: all of it, what is in a fence, or what is between the outermost
/// brackets.
pub(crate) fn json_in(words: &str) -> Option<Value> {
    let words = words.trim();
    let fenced = || {
        let inside = words.split("```").nth(1)?;
        let inside = inside.strip_prefix("json").unwrap_or(inside);
        serde_json::from_str(inside.trim()).ok()
    };
    let between = |open: char, close: char| {
        let (start, end) = (words.find(open)?, words.rfind(close)?);
        serde_json::from_str(words.get(start..=end)?).ok()
    };
    serde_json::from_str(words)
        .ok()
        .or_else(fenced)
        .or_else(|| between('{', '}'))
        .or_else(|| between('[', ']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Completion {
        let schema = json!({
            "type": "object", "properties": { "count": { "type": "integer" } }, "required": ["count"],
        });
        let spec =
            OutputSpec { name: "report".into(), description: "What was counted.".into(), schema };
        Completion::new(Some(spec)).unwrap()
    }

    #[test]
    fn an_output_has_its_own_name_and_shape() {
        let completion = report();
        let declared = completion.declaration();
        assert_eq!(declared.parameters["required"], json!(["report"]));
        assert_eq!(declared.parameters["properties"]["report"]["description"], "What was counted.");
        assert_eq!(
            completion.check_call(&json!({ "report": { "count": 3 } })),
            Ok(json!({ "count": 3 }))
        );
        let wrong = completion.check_call(&json!({ "report": { "count": "3" } })).unwrap_err();
        assert!(wrong[0].starts_with("/count: "), "{wrong:?}");
        let missing = completion.check_call(&json!({ "result": 1 })).unwrap_err();
        assert_eq!(missing, ["the argument `report` is missing"]);
    }

    #[test]
    fn references_still_lead_somewhere() {
        let schema = json!({
            "type": "array", "items": { "$ref": "#/$defs/Word" }, "$defs": { "Word": { "type": "string" } },
        });
        let spec = OutputSpec { name: "words".into(), description: String::new(), schema };
        let completion = Completion::new(Some(spec)).unwrap();
        let parameters = completion.declaration().parameters;
        assert_eq!(parameters["$defs"]["Word"]["type"], "string");
        let declared = jsonschema::validator_for(&parameters).unwrap();
        assert!(declared.is_valid(&json!({ "words": ["a"] })));
        assert!(!declared.is_valid(&json!({ "words": [1] })));
    }

    #[test]
    fn without_a_shape_a_text_or_an_object_will_do() {
        let completion = Completion::new(None).unwrap();
        assert_eq!(completion.check_call(&json!({ "result": "done" })), Ok(json!("done")));
        assert_eq!(completion.check_call(&json!({ "result": { "a": 1 } })), Ok(json!({ "a": 1 })));
        assert!(completion.check_call(&json!({ "result": 7 })).is_err());
    }

    #[test]
    fn json_is_found_in_what_models_put_around_it() {
        for words in [
            r#"{"count": 3}"#,
            "```json\n{\"count\": 3}\n```",
            "Here it is: {\"count\": 3}. Is that all?",
        ] {
            assert_eq!(report().check_words(words), Ok(json!({ "count": 3 })), "{words}");
        }
        assert!(report().check_words("three").is_err());
        assert!(
            Completion::new(Some(OutputSpec {
                name: "x".into(),
                description: String::new(),
                schema: json!({ "type": "nonsense" }),
            }))
            .is_err()
        );
    }
}

//! What may stand in a field, the schema it is checked by, and how that is said in words.

use serde_json::{Value, json};

use super::choice::{Choice, choices, told};

/// What a field is checked for, beside its type and its choices.
const CHECKS: [&str; 8] = [
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];
const FORMATS: [(&str, &str); 4] = [
    ("email", "an e-mail address"),
    ("uri", "a web address"),
    ("date", "a date such as 2026-01-31"),
    ("date-time", "a time such as 2026-01-31T12:00:00Z"),
];

/// What may stand in a field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldKind {
    /// A text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Truth,
    /// One of several values.
    Choice(Vec<Choice>),
    /// Any of several values.
    Choices(Vec<Choice>),
    /// Any texts.
    Texts,
}

impl FieldKind {
    /// Tells whether somebody types what stands in it, and does not choose it.
    pub(super) const fn is_typed(&self) -> bool {
        matches!(self, Self::Text | Self::Integer | Self::Number | Self::Texts)
    }

    /// Forms have no forms inside them; a choice of several words is a list of words.
    pub(super) fn of(property: &Value) -> Option<Self> {
        if let Some(choices) = choices(property) {
            return Some(Self::Choice(choices));
        }
        match property.get("type").and_then(Value::as_str)? {
            "string" => Some(Self::Text),
            "integer" => Some(Self::Integer),
            "number" => Some(Self::Number),
            "boolean" => Some(Self::Truth),
            "array" => {
                let items = property.get("items")?;
                match choices(items) {
                    Some(choices) => Some(Self::Choices(choices)),
                    None => (items.get("type")? == "string").then_some(Self::Texts),
                }
            }
            _ => None,
        }
    }

    /// Returns the schema of such a field: what is known of it, and nothing else.
    pub(super) fn schema(&self, property: &Value) -> Value {
        let values = |choices: &[Choice]| {
            choices.iter().map(|choice| choice.value.clone()).collect::<Value>()
        };
        let mut schema = match self {
            Self::Text => json!({ "type": "string" }),
            Self::Integer => json!({ "type": "integer" }),
            Self::Number => json!({ "type": "number" }),
            Self::Truth => json!({ "type": "boolean" }),
            Self::Choice(choices) => return json!({ "enum": values(choices) }),
            Self::Choices(choices) => json!({ "type": "array", "uniqueItems": true,
                "items": { "enum": values(choices) } }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        };
        let is_list = matches!(self, Self::Choices(_) | Self::Texts);
        let checks: &[&str] = if is_list { &["minItems", "maxItems"] } else { &CHECKS };
        let known = checks.iter().copied().chain(format_of(property).map(|_| "format"));
        if let Value::Object(schema) = &mut schema {
            for key in known {
                schema.extend(property.get(key).map(|value| (key.to_owned(), value.clone())));
            }
        }
        schema
    }

    pub(super) fn expected(&self, property: &Value) -> String {
        let bound = |key: &str| property.get(key).filter(|value| value.is_number());
        let between = |what: &str, least: Option<&Value>, most: Option<&Value>| match (least, most)
        {
            (Some(least), Some(most)) => format!("{what} from {least} to {most}"),
            (Some(least), None) => format!("{what} of at least {least}"),
            (None, Some(most)) => format!("{what} of at most {most}"),
            (None, None) => what.to_owned(),
        };
        let number = |what| between(what, bound("minimum"), bound("maximum"));
        match self {
            Self::Text => match format_of(property) {
                Some(format) => format.to_owned(),
                None => match (bound("minLength"), bound("maxLength")) {
                    (None, None) => "text".to_owned(),
                    (least, most) => format!("{} characters", between("text", least, most)),
                },
            },
            Self::Integer => number("a whole number"),
            Self::Number => number("a number"),
            Self::Truth => "yes or no".to_owned(),
            Self::Choice(choices) => format!("one of {}", told(choices)),
            Self::Choices(choices) => format!("any of {}, with commas between", told(choices)),
            Self::Texts => "texts, with commas between".to_owned(),
        }
    }
}

fn format_of(property: &Value) -> Option<&'static str> {
    let named = property.get("format").and_then(Value::as_str)?;
    FORMATS.iter().find(|(format, _)| *format == named).map(|(_, words)| *words)
}

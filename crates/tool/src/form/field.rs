//! A field of a form: read from its schema, and filled in by what a person typed.

use jsonschema::Validator;
use serde_json::{Value, json};

use super::choice::{chosen, plain};
use super::{FieldKind, cut, is_secret_name, speaks_of_secret, validator};

/// A field of a form.
#[derive(Debug)]
pub struct Field {
    /// What it is called.
    pub name: String,
    /// What it is for.
    pub meaning: Option<String>,
    /// What may stand in it.
    pub kind: FieldKind,
    /// Whether it has to be filled in.
    pub required: bool,
    /// What stands in it if nothing else is entered.
    pub default: Option<Value>,
    /// What is expected of it, in words.
    expected: String,
    /// Whether it says that it takes a password, or a key.
    pub(super) secret: bool,
    check: Validator,
}

impl Field {
    /// Reads a field, and returns the schema it is checked by.
    pub(super) fn of(
        name: &str,
        property: &Value,
        required: bool,
    ) -> Result<(Self, Value), String> {
        let kind = FieldKind::of(property)
            .ok_or_else(|| format!("field `{}` is not of a simple type", cut(name)))?;
        let schema = kind.schema(property);
        let check = validator(&schema)?;
        let text = |key: &str| property.get(key).and_then(Value::as_str).map(cut);
        let meaning = match (text("title"), text("description")) {
            (Some(title), Some(description)) if title != name => {
                Some(format!("{title}: {description}"))
            }
            (title, description) => description.or(title.filter(|title| title != name)),
        };
        let secret = is_secret_name(name)
            || text("title").is_some_and(|title| is_secret_name(&title))
            || (kind.is_typed() && text("description").is_some_and(|text| speaks_of_secret(&text)))
            || text("format").is_some_and(|format| format == "password")
            || property.get("writeOnly") == Some(&Value::Bool(true));
        // What the field itself would not take is no default.
        let default = property.get("default").filter(|value| check.is_valid(value)).cloned();
        let expected = kind.expected(property);
        let name = name.to_owned();
        Ok((Self { name, meaning, kind, required, default, expected, secret, check }, schema))
    }

    /// Reads what a person typed. An empty line is the default, or nothing where the field may be left out.
    pub fn read(&self, line: &str) -> Result<Option<Value>, String> {
        let line = line.trim();
        if line.is_empty() {
            return match &self.default {
                None if self.required => Err("something has to be entered".to_owned()),
                default => Ok(default.clone()),
            };
        }
        let unread = || format!("this is not {}", self.expected);
        let value = match &self.kind {
            FieldKind::Text => json!(line),
            FieldKind::Integer => json!(line.parse::<i64>().map_err(|_| unread())?),
            FieldKind::Number => match line.parse::<i64>() {
                Ok(whole) => json!(whole),
                Err(_) => json!(line.parse::<f64>().map_err(|_| unread())?),
            },
            FieldKind::Truth => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" => json!(true),
                "n" | "no" | "false" => json!(false),
                _ => return Err(unread()),
            },
            FieldKind::Choice(choices) => chosen(choices, line).ok_or_else(unread)?,
            FieldKind::Choices(choices) => words(line)
                .map(|word| chosen(choices, word).ok_or_else(unread))
                .collect::<Result<Value, String>>()?,
            FieldKind::Texts => words(line).collect(),
        };
        let problem = self.check.iter_errors(&value).next();
        // What is wrong with a line is shown; a password that does not fit must not be.
        let told = problem
            .map(|error| if self.secret { error.masked().to_string() } else { error.to_string() });
        told.map_or(Ok(Some(value)), |told| Err(cut(&told)))
    }

    /// Tells whether it takes a password, or a key: what is entered into it is not shown.
    pub const fn is_secret(&self) -> bool {
        self.secret
    }

    /// Returns what is expected, in words.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// Returns what it is, what is expected, and its default, on one line.
    pub fn told(&self) -> String {
        match &self.default {
            Some(default) => format!("{} [{}]", self.described(), self.shown(default)),
            None => self.described(),
        }
    }

    /// Returns what it is and what is expected, on one line.
    pub fn described(&self) -> String {
        let needed = if self.required { "required" } else { "may be left out" };
        let meaning = self.meaning.as_ref().map(|meaning| format!(": {meaning}"));
        let meaning = meaning.unwrap_or_default();
        format!("{} ({}; {needed}){meaning}", cut(&self.name), self.expected)
    }

    /// Returns a value as a person would enter it.
    pub fn shown(&self, value: &Value) -> String {
        match (&self.kind, value) {
            (FieldKind::Truth, Value::Bool(true)) => "yes".to_owned(),
            (FieldKind::Truth, Value::Bool(false)) => "no".to_owned(),
            (_, Value::Array(items)) => {
                cut(&items.iter().map(plain).collect::<Vec<_>>().join(", "))
            }
            (_, value) => cut(&plain(value)),
        }
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(str::trim).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(property: &Value) -> Field {
        Field::of("f", property, true).unwrap().0
    }

    #[test]
    fn what_is_typed_becomes_what_the_field_holds() {
        let colours =
            json!({ "type": "string", "enum": ["red", "green"], "enumNames": ["R", "Grün"] });
        let sizes = json!({ "type": "string", "enum": ["10", "2"] });
        let titled = json!({ "oneOf": [{ "const": "a", "title": "First" }, { "const": "b" }] });
        let several = json!({ "type": "array", "maxItems": 2,
            "items": { "anyOf": [{ "const": "x" }, { "const": "y" }, { "const": "z" }] } });
        for (property, line, expected) in [
            (json!({ "type": "string" }), " Ada \n", Some(json!("Ada"))),
            (json!({ "type": "string" }), "n", Some(json!("n"))),
            (json!({ "type": "string", "maxLength": 2 }), "Ada", None),
            (json!({ "type": "string", "format": "email" }), "ada", None),
            (
                json!({ "type": "string", "format": "email" }),
                "a@b.example",
                Some(json!("a@b.example")),
            ),
            (json!({ "type": "string", "format": "date" }), "2026-02-30", None),
            (json!({ "type": "string", "format": "moon" }), "full", Some(json!("full"))),
            (json!({ "type": "string", "pattern": "^a+$" }), "b", None),
            (json!({ "type": "integer" }), "7", Some(json!(7))),
            (json!({ "type": "integer" }), "7.5", None),
            (json!({ "type": "integer", "maximum": 5 }), "7", None),
            (json!({ "type": "number" }), "7.5", Some(json!(7.5))),
            (json!({ "type": "number" }), "NaN", None),
            (json!({ "type": "boolean" }), "Yes", Some(json!(true))),
            (json!({ "type": "boolean" }), "n", Some(json!(false))),
            (json!({ "type": "boolean" }), "maybe", None),
            (colours.clone(), "green", Some(json!("green"))),
            (colours.clone(), "grün", Some(json!("green"))),
            (colours.clone(), "1", Some(json!("red"))),
            (colours, "3", None),
            (sizes.clone(), "2", Some(json!("2"))),
            (sizes, "1", None),
            (titled, "first", Some(json!("a"))),
            (several.clone(), "x, 3", Some(json!(["x", "z"]))),
            (several.clone(), "x, x", None),
            (several, "x,y,z", None),
            (
                json!({ "type": "array", "items": { "type": "string" } }),
                "a,, b",
                Some(json!(["a", "b"])),
            ),
        ] {
            let field = field(&property);
            assert_eq!(field.read(line).ok(), expected.map(Some), "{property} {line}");
        }
    }

    /// Regression: a password that was too short was shown in clear, with what was wrong with it.
    #[test]
    fn a_password_that_does_not_fit_is_not_repeated() {
        for limit in [json!({ "minLength": 12 }), json!({ "pattern": "^[0-9]+$" })] {
            let mut property = json!({ "type": "string", "format": "password" });
            property.as_object_mut().unwrap().extend(limit.as_object().unwrap().clone());
            let wrong = field(&property).read("hunter2").unwrap_err();
            assert!(!wrong.contains("hunter2") && wrong.contains("value"), "{wrong}");
            property["format"] = json!("moon");
            let wrong = field(&property).read("hunter2").unwrap_err();
            assert!(wrong.contains("\"hunter2\""), "{wrong}");
        }
    }

    #[test]
    fn an_empty_line_is_the_default_or_nothing() {
        assert!(field(&json!({ "type": "string" })).read("\n").is_err());
        assert_eq!(field(&json!({ "type": "integer", "default": 7 })).read(""), Ok(Some(json!(7))));
        let optional = Field::of("f", &json!({ "type": "string" }), false).unwrap().0;
        assert_eq!(optional.read(" "), Ok(None));
        let odd = field(&json!({ "type": "integer", "default": "seven" }));
        assert_eq!(odd.default, None, "what does not fit is no default");
    }
}

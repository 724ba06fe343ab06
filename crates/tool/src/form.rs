//! Forms that a person fills in: small and flat, and answered field by field or all at once.
//!
//! Who asks may be a stranger. So what a form may hold is a short list, and everything else in its schema
//! is refused or has no meaning here; what is checked against a pattern takes time in proportion to it.
//!
//! | module | owns |
//! | --- | --- |
//! | `field` | a field, and what a person typed into it |
//! | `kind` | what may stand in a field, as a schema and in words |
//! | `choice` | values to choose from |

mod choice;
mod field;
mod kind;

use convoke_core::event::Wanted;
use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};

pub use self::choice::Choice;
pub use self::field::Field;
pub use self::kind::FieldKind;
use crate::environment::looks_like_credential;
use crate::truncate::floor_char_boundary;

/// A form beyond these is nothing that a person would fill in.
const MAX_BYTES: usize = 32 * 1024;
const MAX_FIELDS: usize = 50;
/// How much of a text, and how many problems, are told.
const MAX_TEXT_BYTES: usize = 600;
const MAX_PROBLEMS: usize = 5;

/// A form to be filled in.
#[derive(Debug)]
pub struct Form {
    fields: Vec<Field>,
    check: Validator,
}

impl Form {
    /// Reads a form from the JSON Schema of a flat object, or says why nobody could fill it in.
    ///
    /// ```
    /// use convoke_tool::Form;
    /// use serde_json::json;
    ///
    /// let schema = json!({ "type": "object", "required": ["age"],
    ///     "properties": { "age": { "type": "integer", "minimum": 0 } } });
    /// let form = Form::of(&schema).unwrap();
    /// let age = &form.fields()[0];
    /// assert_eq!(age.read("42"), Ok(Some(json!(42))));
    /// assert!(age.read("-1").is_err() && age.read("").is_err());
    /// ```
    pub fn of(schema: &Value) -> Result<Self, String> {
        let bytes = serde_json::to_vec(schema).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_BYTES {
            return Err(format!("the form has {bytes} bytes; the limit is {MAX_BYTES}"));
        }
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        if properties.len() > MAX_FIELDS {
            let count = properties.len();
            return Err(format!("the form has {count} fields; the limit is {MAX_FIELDS}"));
        }
        let required = schema.get("required").and_then(Value::as_array);
        let required: Vec<&str> =
            required.into_iter().flatten().filter_map(Value::as_str).collect();
        if let Some(name) = required.iter().find(|name| !properties.contains_key(**name)) {
            return Err(format!("`{name}` is required and is no field"));
        }
        let (mut fields, mut checked) = (Vec::new(), Map::new());
        let is_optional = |name: &&str| !required.contains(name);
        let optional = properties.keys().map(String::as_str).filter(is_optional);
        for name in required.iter().copied().chain(optional) {
            let Some(property) = properties.get(name).filter(|_| !checked.contains_key(name))
            else {
                continue;
            };
            let (field, schema) = Field::of(name, property, required.contains(&name))?;
            fields.push(field);
            checked.insert(name.to_owned(), schema);
        }
        let check = validator(&json!({ "type": "object", "properties": checked,
            "required": required, "additionalProperties": false }))?;
        Ok(Self { fields, check })
    }

    /// Reads the form that is wanted; none, where something else is.
    pub fn wanted(wanted: &Wanted) -> Result<Option<Self>, String> {
        match wanted {
            Wanted::Form { schema } => Self::of(schema).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns its fields: those that are required, in the order in which they are, and then the others.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns it with what is known already, and with nothing in the other fields.
    pub fn blank(&self) -> Value {
        let known =
            |field: &Field| (field.name.clone(), field.default.clone().unwrap_or(Value::Null));
        Value::Object(self.fields.iter().map(known).collect())
    }

    /// Tells whether what is entered into a field is recorded nowhere: it is a password, or a key.
    pub(crate) fn hides(&self, name: &str) -> bool {
        let is_secret = |field: &Field| field.name == name && field.secret;
        is_secret_name(name) || self.fields.iter().any(is_secret)
    }

    /// Returns what was entered, with the defaults of what was left out, or what is wrong with it.
    pub fn filled(&self, entered: Map<String, Value>) -> Result<Map<String, Value>, String> {
        let default =
            |field: &Field| field.default.clone().map(|value| (field.name.clone(), value));
        let mut values: Map<String, Value> = self.fields.iter().filter_map(default).collect();
        values.extend(entered.into_iter().filter(|(_, value)| !value.is_null()));
        let all = Value::Object(values);
        let problems = self.check.iter_errors(&all).take(MAX_PROBLEMS);
        let problems = problems.map(|error| {
            let place = error.instance_path().as_str().trim_start_matches('/').to_owned();
            // As it is written in a path.
            let field = place.split('/').next().unwrap_or_default();
            let field = field.replace("~1", "/").replace("~0", "~");
            // What is wrong with an answer is recorded; a password that does not fit must not be.
            let hides = self.hides(&field);
            let said = if hides { error.masked().to_string() } else { error.to_string() };
            let said = cut(&said);
            if place.is_empty() { said } else { format!("{place}: {said}") }
        });
        let problems: Vec<String> = problems.collect();
        match all {
            Value::Object(values) if problems.is_empty() => Ok(values),
            _ => Err(problems.join("; ")),
        }
    }
}

/// Tells whether a field of this name takes a password, or a key. A short one is asked for in forms only.
fn is_secret_name(name: &str) -> bool {
    let apart = with_words_apart(name);
    [name, &apart].into_iter().any(looks_like_credential) || has_word(&apart, &SHORT)
}

/// Tells whether a sentence speaks of a password: a field with any name may be one for it. Words that mean much else,
/// as `key` and `token` do, do not count in a sentence.
fn speaks_of_secret(sentence: &str) -> bool {
    const LONG: [&str; 4] = ["PASSWORD", "PASSPHRASE", "PASSWD", "SECRET"];
    has_word(sentence, &SHORT) || has_word(sentence, &LONG)
}

/// What short secrets are called.
const SHORT: [&str; 4] = ["PIN", "PASSCODE", "OTP", "CVV"];

fn has_word(text: &str, wanted: &[&str]) -> bool {
    let upper = text.to_uppercase();
    upper.split(|letter: char| !letter.is_alphanumeric()).any(|word| wanted.contains(&word))
}

/// Returns a name with a line between words that only a capital letter tells apart: `userPin` is `user_Pin`.
fn with_words_apart(name: &str) -> String {
    let mut apart = String::with_capacity(name.len());
    let mut letters = name.chars().peekable();
    let mut before = None;
    while let Some(letter) = letters.next() {
        let ends_small = before.is_some_and(|before: char| !before.is_uppercase());
        let begins_word = letters.peek().is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && before.is_some() && (ends_small || begins_word) {
            apart.push('_');
        }
        apart.push(letter);
        before = Some(letter);
    }
    apart
}

/// Returns the beginning of a text that is too long, on one line.
fn cut(text: &str) -> String {
    let text = &*text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.get(..floor_char_boundary(text, MAX_TEXT_BYTES)) {
        Some(beginning) if beginning.len() < text.len() => format!("{beginning} …"),
        _ => text.to_owned(),
    }
}

/// Patterns are matched by an engine that never goes back: a stranger's cannot make it take for ever.
fn validator(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| format!("the form cannot be understood: {}", cut(&error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: &Value, required: &[&str]) -> Form {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        Form::of(&schema).unwrap()
    }

    #[test]
    fn a_field_says_what_it_wants() {
        let properties = json!({
            "name": { "type": "string", "title": "Name", "description": "as on the badge" },
            "level": { "type": "integer", "minimum": 1, "maximum": 5, "default": 3 },
            "colour": { "type": "string", "enum": ["red", "green"] },
            "sure": { "type": "boolean", "default": true },
        });
        let form = form(&properties, &["name", "colour"]);
        let told: Vec<String> = form.fields().iter().map(Field::told).collect();
        let find = |name: &str| told.iter().find(|line| line.starts_with(name)).unwrap().as_str();
        assert_eq!(find("name"), "name (text; required): Name: as on the badge");
        assert_eq!(find("level"), "level (a whole number from 1 to 5; may be left out) [3]");
        assert_eq!(find("colour"), "colour (one of 1 red, 2 green; required)");
        assert_eq!(find("sure"), "sure (yes or no; may be left out) [yes]");
        assert_eq!(form.blank()["level"], json!(3));
        assert_eq!(form.blank()["name"], Value::Null);
    }

    #[test]
    fn what_is_left_out_gets_its_default_and_what_does_not_fit_is_told() {
        let properties = json!({ "name": { "type": "string" },
            "age": { "type": "integer", "minimum": 0, "default": 7 } });
        let form = form(&properties, &["name"]);
        let fill = |value: Value| form.filled(value.as_object().unwrap().clone());
        let filled = fill(json!({ "name": "Ada", "age": null })).unwrap();
        assert_eq!(Value::Object(filled), json!({ "name": "Ada", "age": 7 }));
        let wrong = fill(json!({ "age": -1, "nmae": "Ada" })).unwrap_err();
        for part in ["age: ", "nmae", "\"name\""] {
            assert!(wrong.contains(part), "{part}: {wrong}");
        }
    }

    #[test]
    fn a_password_that_does_not_fit_is_not_repeated() {
        let properties = json!({ "password": { "type": "string", "minLength": 12 },
            "tokens": { "type": "array", "items": { "type": "string" }, "maxItems": 1 },
            "name": { "type": "string", "maxLength": 2 } });
        let form = form(&properties, &["password"]);
        let entered = json!({ "password": "hunter2", "tokens": ["abc", "def"], "name": "Ada" });
        let wrong = form.filled(entered.as_object().unwrap().clone()).unwrap_err();
        assert!(wrong.contains("password: value is shorter than 12 characters"), "{wrong}");
        assert!(!wrong.contains("hunter2") && !wrong.contains("abc"), "{wrong}");
        assert!(wrong.contains("\"Ada\""), "{wrong}");
    }

    #[test]
    fn a_field_may_say_in_several_ways_that_it_takes_a_password() {
        let text = |more: Value| {
            let mut property = json!({ "type": "string" });
            property.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            property
        };
        let properties = json!({ "api_token": text(json!({})), "a": text(json!({ "title": "Your password" })),
            "b": text(json!({ "format": "password" })), "c": text(json!({ "writeOnly": true })),
            "d": text(json!({ "title": "Your name" })), "card_pin": text(json!({})) });
        let form = form(&properties, &[]);
        assert!(form.hides("card_pin") && !form.hides("pinned"));
        let hidden = ["api_token", "a", "b", "c", "d"].map(|name| form.hides(name));
        assert_eq!(hidden, [true, true, true, true, false]);
        assert!(form.hides("password"), "also where there is no such field");
    }

    /// Bug: what a field with a harmless name is for was said in its description alone, and not heeded.
    #[test]
    fn what_a_description_calls_a_password_is_one() {
        let field = |description: &str, kind: Value| {
            let mut property = json!({ "description": description });
            property.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
            form(&json!({ "code": property }), &[]).hides("code")
        };
        let text = json!({ "type": "string" });
        assert!(field("Your one-time password", text.clone()));
        assert!(field("the PIN of your card", json!({ "type": "integer" })));
        assert!(!field("Which key of the table?", text));
        let choice = json!({ "type": "string", "enum": ["yes", "no"] });
        assert!(!field("Save the password?", choice), "what is chosen is seen");
    }

    /// Regression: short secrets were known by names with underscores only.
    #[test]
    fn a_name_in_capitals_and_small_letters_says_so_as_well() {
        for name in ["userPin", "pinCode", "otpCode", "cardCvv", "userPIN", "PINCode", "privateKey"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["pinned", "spinCount", "Pinned", "OTPLESS", "userName", "monkeyCount"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_form_that_nobody_would_fill_in_is_none() {
        let many: Map<String, Value> =
            (0..51).map(|at| (format!("f{at}"), json!({ "type": "string" }))).collect();
        for (schema, why) in [
            (json!({ "properties": { "inner": { "type": "object" } } }), "`inner`"),
            (
                json!({ "properties": { "a": { "type": "array", "items": { "type": "array" } } } }),
                "`a`",
            ),
            (json!({ "properties": many }), "51 fields"),
            (json!({ "properties": {}, "required": ["x"] }), "no field"),
            (
                json!({ "properties": { "a": { "type": "string", "description": "x".repeat(40_000) } } }),
                "bytes",
            ),
            (json!({ "properties": { "a": { "type": "string", "pattern": "(" } } }), "understood"),
        ] {
            let refused = Form::of(&schema).unwrap_err();
            assert!(refused.contains(why), "{why}: {refused}");
        }
    }
}

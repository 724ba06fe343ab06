//! Forms that a person fills in: small and flat, and answered field by field or all at once.
//!
//! Who asks may be a stranger. So what a form may hold is a short list, and everything else in its schema
//! is refused or has no meaning here; what is checked against a pattern takes time in proportion to it.

use convoke_core::event::Wanted;
use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};

use crate::environment::looks_like_credential;
use crate::truncate::floor_char_boundary;

/// A form beyond these is nothing that a person would fill in.
const MAX_BYTES: usize = 32 * 1024;
const MAX_FIELDS: usize = 50;
/// How many choices, and how much of anything else, is told in words.
const MAX_TOLD: usize = 30;
const MAX_TEXT_BYTES: usize = 600;
const MAX_PROBLEMS: usize = 5;

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

/// A form to be filled in.
#[derive(Debug)]
pub struct Form {
    fields: Vec<Field>,
    check: Validator,
}

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
    secret: bool,
    check: Validator,
}

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

/// A value to choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The value.
    pub value: Value,
    /// What people call it, if that is something else.
    pub title: Option<String>,
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
        looks_like_credential(name) || self.fields.iter().any(is_secret)
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

impl Field {
    /// Reads a field, and returns the schema it is checked by.
    fn of(name: &str, property: &Value, required: bool) -> Result<(Self, Value), String> {
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
        let secret = text("title").is_some_and(|title| looks_like_credential(&title))
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
        let problem = self.check.iter_errors(&value).next().map(|error| cut(&error.to_string()));
        problem.map_or(Ok(Some(value)), Err)
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

impl FieldKind {
    /// Forms have no forms inside them; a choice of several words is a list of words.
    fn of(property: &Value) -> Option<Self> {
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
    fn schema(&self, property: &Value) -> Value {
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

    fn expected(&self, property: &Value) -> String {
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

/// Returns the values there are to choose from, however they are written.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let titles = schema.get("enumNames").and_then(Value::as_array);
        let title = |at: usize| titles?.get(at)?.as_str().map(cut);
        let each = values.iter().enumerate();
        return Some(each.map(|(at, value)| Choice::of(value, title(at))).collect());
    }
    let each = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let choice = |one: &Value| {
        let title = one.get("title").and_then(Value::as_str).map(cut);
        one.get("const").map(|value| Choice::of(value, title))
    };
    each.iter().map(choice).collect()
}

impl Choice {
    fn of(value: &Value, title: Option<String>) -> Self {
        Self { title: title.filter(|title| *title != plain(value)), value: value.clone() }
    }

    fn is_called(&self, word: &str) -> bool {
        plain(&self.value) == word || self.title.as_deref() == Some(word)
    }
}

/// Finds the value that is meant: by itself, by its title, or by its number where these are told.
fn chosen(choices: &[Choice], word: &str) -> Option<Value> {
    let exactly = choices.iter().find(|choice| choice.is_called(word));
    let lower = word.to_lowercase();
    let nearly = || {
        let is_meant = |choice: &&Choice| {
            let title = choice.title.as_ref().map(|title| title.to_lowercase());
            plain(&choice.value).to_lowercase() == lower || title.as_ref() == Some(&lower)
        };
        let mut meant = choices.iter().filter(is_meant);
        meant.next().filter(|_| meant.next().is_none())
    };
    let numbered = || {
        let number = word.parse::<usize>().ok().filter(|_| have_numbers(choices))?;
        choices.get(number.checked_sub(1)?)
    };
    exactly.or_else(nearly).or_else(numbered).map(|choice| choice.value.clone())
}

/// Choices that are numbers, or called so, have no numbers beside that.
fn have_numbers(choices: &[Choice]) -> bool {
    let is_number = |text: &str| text.trim().parse::<f64>().is_ok();
    !choices.iter().any(|choice| {
        is_number(&plain(&choice.value)) || choice.title.as_deref().is_some_and(is_number)
    })
}

fn told(choices: &[Choice]) -> String {
    let numbered = have_numbers(choices);
    let each = choices.iter().take(MAX_TOLD).enumerate().map(|(at, choice)| {
        let number = if numbered { format!("{} ", at + 1) } else { String::new() };
        let value = cut(&plain(&choice.value));
        let title = choice.title.as_ref().map(|title| format!(" ({title})")).unwrap_or_default();
        format!("{number}{value}{title}")
    });
    let told = each.collect::<Vec<_>>().join(", ");
    match choices.len().checked_sub(MAX_TOLD).filter(|more| *more > 0) {
        Some(more) => format!("{told} and {more} more"),
        None => told,
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
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

    #[test]
    fn an_empty_line_is_the_default_or_nothing() {
        assert!(field(&json!({ "type": "string" })).read("\n").is_err());
        assert_eq!(field(&json!({ "type": "integer", "default": 7 })).read(""), Ok(Some(json!(7))));
        let optional = Field::of("f", &json!({ "type": "string" }), false).unwrap().0;
        assert_eq!(optional.read(" "), Ok(None));
        let odd = field(&json!({ "type": "integer", "default": "seven" }));
        assert_eq!(odd.default, None, "what does not fit is no default");
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
            "d": text(json!({ "title": "Your name" })) });
        let form = form(&properties, &[]);
        let hidden = ["api_token", "a", "b", "c", "d"].map(|name| form.hides(name));
        assert_eq!(hidden, [true, true, true, true, false]);
        assert!(form.hides("password"), "also where there is no such field");
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

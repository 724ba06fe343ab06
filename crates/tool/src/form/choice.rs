//! Values to choose from: however they are written in a schema, and whatever a person calls them.

use serde_json::Value;

use super::cut;

/// How many choices are told in words.
const MAX_TOLD: usize = 30;

/// A value to choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The value.
    pub value: Value,
    /// What people call it, if that is something else.
    pub title: Option<String>,
}

/// Returns the values there are to choose from, however they are written.
pub(super) fn choices(schema: &Value) -> Option<Vec<Choice>> {
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
pub(super) fn chosen(choices: &[Choice], word: &str) -> Option<Value> {
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

pub(super) fn told(choices: &[Choice]) -> String {
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

pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

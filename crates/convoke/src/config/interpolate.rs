//! `${NAME}` in text: taken from the environment that was passed in, and from nowhere else.
//!
//! | written | gives |
//! | --- | --- |
//! | `${NAME}` | the variable; it is a mistake if it is not set |
//! | `${NAME:-text}` | the variable, or `text` where it is not set or empty |
//! | `$${` | `${` as it stands |
//!
//! Replacing happens after YAML was read, so nothing in a variable can add keys or break quoting,
//! and what was put in is not looked at again.

use std::collections::BTreeMap;

/// Text after replacement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Replaced {
    /// The text.
    pub(crate) text: String,
    /// Whether a variable was asked for, set or not.
    pub(crate) used_variables: bool,
}

/// Replaces every `${…}`, or says what is wrong. No value of a variable is in the message.
pub(crate) fn replace(
    text: &str,
    environment: &BTreeMap<String, String>,
) -> Result<Replaced, String> {
    let mut replaced = Replaced { text: String::with_capacity(text.len()), used_variables: false };
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        if let Some(literal) = before.strip_suffix('$') {
            replaced.text.push_str(literal);
            replaced.text.push_str("${");
            rest = from.get(2..).unwrap_or_default();
            continue;
        }
        replaced.text.push_str(before);
        let inner = from.get(2..).unwrap_or_default();
        let (reference, after) = inner.split_once('}').ok_or("`${` has no closing `}`")?;
        replaced.text.push_str(look_up(reference, environment)?);
        replaced.used_variables = true;
        rest = after;
    }
    replaced.text.push_str(rest);
    Ok(replaced)
}

/// Returns whether the text asks for a variable, rightly or wrongly written.
pub(crate) fn asks_for_variables(text: &str) -> bool {
    !matches!(replace(text, &BTreeMap::new()), Ok(Replaced { used_variables: false, .. }))
}

/// Returns the names of the variables that a text asks for, with or without a default.
pub(crate) fn names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        rest = from.get(2..).unwrap_or_default();
        if before.ends_with('$') {
            continue;
        }
        let Some((reference, after)) = rest.split_once('}') else { break };
        let name = reference.split_once(":-").map_or(reference, |(name, _)| name);
        names.extend(Some(name).filter(|name| is_name(name)));
        rest = after;
    }
    names
}

fn look_up<'a>(
    reference: &'a str,
    environment: &'a BTreeMap<String, String>,
) -> Result<&'a str, String> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    if !is_name(name) {
        return Err("`${…}` does not contain the name of a variable".to_owned());
    }
    match (environment.get(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default),
        (None, None) => Err(format!("the environment variable `{name}` is not set")),
    }
}

fn is_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> BTreeMap<String, String> {
        let pairs = [("A", "one"), ("EMPTY", ""), ("NESTED", "${A} $${A}"), ("_x1", "two")];
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn variables_are_put_in() {
        for (written, expected) in [
            ("", ""),
            ("plain $ $A $$ {A} }", "plain $ $A $$ {A} }"),
            ("${A}", "one"),
            ("-${A}-${_x1}-", "-one-two-"),
            ("${EMPTY}", ""),
            ("${EMPTY:-d}", "d"),
            ("${NONE:-d}", "d"),
            ("${NONE:-}", ""),
            ("${NONE:-a:-b$}", "a:-b$"),
            ("${A:-d}", "one"),
            ("$${A}", "${A}"),
            ("$$${A}", "$${A}"),
            ("$${A} ${A}", "${A} one"),
            ("${NESTED}", "${A} $${A}"),
            ("é${A}é", "éoneé"),
        ] {
            let replaced = replace(written, &environment()).map(|replaced| replaced.text);
            assert_eq!(replaced.as_deref(), Ok(expected), "{written}");
        }
    }

    #[test]
    fn mistakes_are_named_and_values_are_not() {
        const WITHOUT_NAME: &str = "`${…}` does not contain the name of a variable";
        for (written, mistake) in [
            ("${A} ${NONE}", "the environment variable `NONE` is not set"),
            ("${A", "`${` has no closing `}`"),
            ("${}", WITHOUT_NAME),
            ("${1A}", WITHOUT_NAME),
            ("${A:?no}", WITHOUT_NAME),
            ("${A-x}", WITHOUT_NAME),
        ] {
            assert_eq!(replace(written, &environment()), Err(mistake.to_owned()), "{written}");
        }
    }

    #[test]
    fn names_are_found_with_and_without_a_default() {
        for (written, expected) in [
            ("${A}-${B:-x}", &["A", "B"][..]),
            ("$${A} ${_x1} ${1A} ${B", &["_x1"]),
            ("plain", &[]),
        ] {
            assert_eq!(names(written), expected, "{written}");
        }
    }

    #[test]
    fn asking_is_recognised_however_it_is_written() {
        for (written, asks) in [("${A}", true), ("${A", true), ("$${A}", false), ("$A", false)] {
            assert_eq!(asks_for_variables(written), asks, "{written}");
        }
    }
}

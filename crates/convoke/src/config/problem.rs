//! What is wrong with a configuration, said so that it can be put right.
//!
//! Nothing here stops at the first mistake: a [`ConfigError`] carries all of them. A message never
//! contains the value of a secret or of an environment variable.

use std::fmt;

use serde::Serialize;

use super::key::Key;
use super::origin::Place;

/// One thing that is wrong: an error where it stops loading, a warning where it does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// Where it was written.
    pub place: Place,
    /// The full key it concerns, where it concerns one.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem with one key.
    pub(crate) fn new(place: &Place, key: &Key, message: impl Into<String>) -> Self {
        let key = (!key.is_root()).then(|| key.to_string());
        Self { key, ..Self::of_place(place.clone(), message) }
    }

    /// A problem with a place as a whole.
    pub(crate) fn of_place(place: Place, message: impl Into<String>) -> Self {
        Self { place, key: None, message: printable(&message.into()), hint: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(printable(&hint.into()));
        self
    }

    /// Adds what to do about it, if that is known.
    #[must_use]
    pub(crate) fn with_any_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.place)?;
        match (&self.key, &self.place) {
            (Some(key), Place::Flag(flag)) if **flag == **key => {}
            (Some(key), _) => write!(formatter, "{key}: ")?,
            (None, _) => {}
        }
        formatter.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(formatter, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Makes control characters visible: what a file from anywhere says must not steer a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, letter| {
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
        shown
    })
}

/// A configuration that cannot be used, with everything that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", render(.problems))]
#[non_exhaustive]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    pub(crate) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|left, right| left.place.cmp(&right.place));
        Self { problems }
    }

    /// Returns the problems: files first, by path and line, then variables, then flags.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

fn render(problems: &[Problem]) -> String {
    let mut text = match problems.len() {
        1 => "the configuration has a mistake".to_owned(),
        count => format!("the configuration has {count} mistakes"),
    };
    for problem in problems {
        text.push('\n');
        text.push_str(&problem.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line_and_a_hint_whatever_it_quotes() {
        let problem = Problem::new(&Place::Caller, &Key::default().name("a\nb"), "x\u{1b}[2Jy")
            .with_hint("do\tthis");
        assert_eq!(problem.to_string(), "sources: \"a\\nb\": x\\u{1b}[2Jy\n  hint: do\\tthis");
    }

    #[test]
    fn an_error_counts_and_sorts_its_problems() {
        let problem = |place| Problem::of_place(place, "wrong");
        let one = ConfigError::new(vec![problem(Place::Caller)]);
        assert_eq!(one.to_string(), "the configuration has a mistake\nsources: wrong");
        let two = ConfigError::new(vec![
            problem(Place::Flag("b".into())),
            problem(Place::Variable("A".into())),
        ]);
        assert_eq!(
            two.to_string(),
            "the configuration has 2 mistakes\nenvironment variable A: wrong\n--set b: wrong"
        );
    }
}

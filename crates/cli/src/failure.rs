//! What stops a command, said so that it can be put right.
//!
//! ```text
//! error: what went wrong
//! cause: why, nearest first
//! hint: what to do about it
//! ```

use std::error::Error;
use std::fmt;

use convoke::RuntimeError;
use convoke::config::{ConfigError, Problem};
use convoke_core::{Cause, ExitCode};

use crate::output::{Output, Stream, Style, harmless, wrap};

/// A command that could not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    cause: Cause,
    message: String,
    lines: Vec<Line>,
}

/// A line below the error.
#[derive(Debug)]
enum Line {
    Cause(String),
    Hint(String),
}

impl Failure {
    pub(crate) fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self { cause, message: message.into(), lines: Vec::new() }
    }

    /// It was tried and did not work.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Cause::Error, message)
    }

    /// It was asked for wrongly.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Cause::Usage, message)
    }

    /// The configuration stands in its way.
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(Cause::Configuration, message)
    }

    /// Adds an error that led to it, and what led to that.
    pub(crate) fn because(mut self, error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            self.lines.push(Line::Cause(error.to_string()));
            next = error.source();
        }
        self
    }

    /// Adds causes in words.
    pub(crate) fn causes(mut self, causes: impl IntoIterator<Item = String>) -> Self {
        self.lines.extend(causes.into_iter().map(Line::Cause));
        self
    }

    /// Adds what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.lines.push(Line::Hint(hint.into()));
        self
    }

    /// Adds what to do about it, if that is known.
    pub(crate) fn any_hint(self, hint: Option<String>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// It was the command line that said it.
    pub(crate) fn into_usage(mut self) -> Self {
        self.cause = Cause::Usage;
        self.lines.retain(|line| !matches!(line, Line::Hint(_)));
        self.hint("`convoke tools list` shows the tools there are")
    }

    /// Returns it as programs read it: the words a report of a run has.
    pub(crate) fn report(&self) -> serde_json::Value {
        serde_json::json!({
            "type": "report",
            "status": self.cause.status(),
            "cause": self.cause,
            "recovered": false,
            "answer": null,
            "message": self.to_string(),
            "hints": self.hints().collect::<Vec<_>>(),
            "exitCode": self.code() as u8,
        })
    }

    /// Returns what to do about it.
    pub(crate) fn hints(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            Line::Hint(hint) => Some(hint.as_str()),
            Line::Cause(_) => None,
        })
    }

    /// Returns the exit code the command ends with.
    pub(crate) fn code(&self) -> ExitCode {
        self.cause.exit_code()
    }

    /// Writes it to standard error.
    pub(crate) fn print(&self, output: &mut Output) {
        for line in self.shown_on(&output.err) {
            output.err.line(line);
        }
    }

    /// Returns its lines, as they look on a stream.
    pub(crate) fn shown_on(&self, stream: &Stream) -> Vec<String> {
        let mut lines = labelled_lines(stream, Style::Bad, "error", &self.message);
        for line in &self.lines {
            lines.extend(match line {
                Line::Cause(text) => labelled_lines(stream, Style::Bad, "cause", text),
                Line::Hint(text) => labelled_lines(stream, Style::Good, "hint", text),
            });
        }
        lines
    }
}

/// All of it on one line.
impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        self.lines.iter().try_for_each(|line| match line {
            Line::Cause(text) => write!(formatter, ": {text}"),
            Line::Hint(_) => Ok(()),
        })
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let message = match error.problems() {
            [_] => "the configuration has a mistake".to_owned(),
            several => format!("the configuration has {} mistakes", several.len()),
        };
        error.problems().iter().fold(Self::configuration(message), |failure, problem| {
            failure.causes([headline(problem)]).any_hint(problem.hint.clone())
        })
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        let failure = Self::configuration(error.to_string());
        let failure = match error.source() {
            Some(source) => failure.because(source),
            None => failure,
        };
        let who = |key| format!("`convoke config explain {key}` says which file and line set it");
        failure.any_hint(error.setting().map(who))
    }
}

/// Returns a problem without its hint, which has a line of its own.
pub(crate) fn headline(problem: &Problem) -> String {
    let text = problem.to_string();
    match &problem.hint {
        Some(hint) => text.strip_suffix(&format!("\n  hint: {hint}")).unwrap_or(&text).to_owned(),
        None => text,
    }
}

/// Writes warnings to standard error, unless there are to be none. None is given twice, and a hint that several
/// in a row share once, after the last of them.
pub(crate) fn warn(output: &mut Output, problems: &[Problem]) {
    if output.is_quiet() {
        return;
    }
    let problems: Vec<&Problem> =
        problems.iter().filter(|problem| output.warns_first(&headline(problem))).collect();
    for (index, problem) in problems.iter().enumerate() {
        labelled(&output.err, Style::Warn, "warning", &headline(problem));
        let next = problems.get(index + 1).and_then(|next| next.hint.as_ref());
        if let Some(hint) = problem.hint.as_ref().filter(|hint| next != Some(hint)) {
            labelled(&output.err, Style::Good, "hint", hint);
        }
    }
}

/// Writes a warning to standard error, unless there are to be none. None is given twice.
pub(crate) fn warning(output: &mut Output, message: &str) {
    if !output.is_quiet() {
        doubt(output, message);
    }
}

/// Writes a warning to standard error, also where few words are wanted: one that puts the answer in doubt, or is
/// about what nobody can undo. None is given twice.
pub(crate) fn doubt(output: &mut Output, message: &str) {
    if output.warns_first(message) {
        labelled(&output.err, Style::Warn, "warning", message);
    }
}

/// Writes what to do about a warning to standard error, unless there are to be none.
pub(crate) fn hint(output: &mut Output, message: &str) {
    if !output.is_quiet() {
        labelled(&output.err, Style::Good, "hint", message);
    }
}

/// Writes `label: text`.
fn labelled(stream: &Stream, style: Style, label: &str, text: &str) {
    for line in labelled_lines(stream, style, label, text) {
        stream.line(line);
    }
}

/// Returns `label: text`; further lines of the text, and what does not fit, are indented.
fn labelled_lines(stream: &Stream, style: Style, label: &str, text: &str) -> Vec<String> {
    // Where it is kept in a file, somebody looks at it later.
    let text = harmless(text);
    let room = stream.width().map(|width| width.saturating_sub(label.len() + 2));
    let mut lines = wrap(&text, room).into_iter();
    let label = stream.paint(style, format!("{label}:"));
    let first = format!("{label} {}", lines.next().unwrap_or_default());
    std::iter::once(first).chain(lines.map(|line| format!("  {line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_block_of_labelled_lines() {
        let mut output = Output::in_memory();
        let inner = std::io::Error::other("disk full");
        Failure::failed("nothing was\nwritten")
            .because(&inner)
            .hint("make room")
            .print(&mut output);
        assert_eq!(
            output.err.contents(),
            "error: nothing was\n  written\ncause: disk full\nhint: make room\n"
        );
    }

    #[test]
    fn what_others_wrote_steers_no_terminal_also_where_it_is_read_later() {
        let mut output = Output::in_memory();
        warning(&mut output, "`a\u{1b}[2J` is left out");
        assert_eq!(output.err.contents(), "warning: `a\\u{1b}[2J` is left out\n");
    }

    #[test]
    fn nobody_is_warned_twice_of_the_same() {
        let mut output = Output::in_memory();
        for message in ["one", "two", "one"] {
            warning(&mut output, message);
        }
        assert_eq!(output.err.contents(), "warning: one\nwarning: two\n");
    }

    #[test]
    fn causes_decide_the_exit_code() {
        assert_eq!(Failure::usage("x").code(), ExitCode::Usage);
        assert_eq!(Failure::configuration("x").code(), ExitCode::Configuration);
        assert_eq!(Failure::failed("x").code(), ExitCode::Failed);
    }
}

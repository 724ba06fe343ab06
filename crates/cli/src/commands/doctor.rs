//! `convoke doctor`: whether everything is in order here.

mod checks;
mod confinement;
mod kept;
mod mcp;
mod model;
mod programs;
mod sandbox;
mod workspaces;

use clap::Args;
use convoke_core::ExitCode;
use serde::Serialize;
use serde_json::Value;

use crate::output::{Output, Stream, Style, Table};
use crate::session::Session;

pub(super) use self::programs::problem as program_problem;

const AFTER_HELP: &str = "\
Says also which model would be asked and why, whether there is a key for it, and whether a server on \
this machine answers. Nobody else is asked; `convoke models check` does that.

Examples:
  convoke doctor
  convoke doctor --json

Exit codes:
  0 everything works, 1 something does not, 7 configuration wrong";

/// Check that everything is in order
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Doctor {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    message: String,
    /// What else is worth knowing, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    hints: Vec<String>,
    /// The same in parts, where a program may want them.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Box<Value>>,
    #[serde(skip)]
    code: ExitCode,
}

impl Check {
    fn new(name: &'static str, state: State, message: impl Into<String>) -> Self {
        let code = if state == State::Fail { ExitCode::Failed } else { ExitCode::Done };
        let (notes, hints) = (Vec::new(), Vec::new());
        Self { name, state, message: message.into(), notes, hints, details: None, code }
    }

    fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, State::Ok, message)
    }

    fn warn(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, State::Warn, message)
    }

    fn fail(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, State::Fail, message)
    }

    fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    fn details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// The command ends with this code if the check failed.
    fn exits(mut self, code: ExitCode) -> Self {
        self.code = code;
        self
    }
}

impl Doctor {
    /// Runs the command.
    pub(super) fn run(&self, session: &Session<'_>, output: &mut Output) -> ExitCode {
        let checks = checks::all(session, output);
        if self.json {
            output.json(&checks);
        } else {
            print(&checks, output);
        }
        let failed = checks.iter().filter(|check| check.state == State::Fail);
        failed.map(|check| check.code).max_by_key(|code| *code as u8).unwrap_or(ExitCode::Done)
    }
}

fn print(checks: &[Check], output: &Output) {
    let mut table = Table::default();
    for check in checks {
        let (word, style) = match check.state {
            State::Ok => ("ok", Style::Good),
            State::Warn => ("warn", Style::Warn),
            State::Fail => ("fail", Style::Bad),
        };
        table.row([
            (word.to_owned(), Some(style)),
            (check.name.to_owned(), Some(Style::Name)),
            (check.message.clone(), None),
        ]);
        let hints = check.hints.iter().map(|hint| format!("hint: {hint}"));
        for line in check.notes.iter().cloned().chain(hints) {
            table.row([(String::new(), None), (String::new(), None), (line, Some(Style::Dim))]);
        }
    }
    table.print(&output.out);
    if !output.is_quiet() {
        output.out.gap();
        output.out.line(summary(checks, &output.out));
    }
}

fn summary(checks: &[Check], out: &Stream) -> String {
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    match (count(State::Warn), count(State::Fail)) {
        (0, 0) => out.paint(Style::Good, "Everything is in order.").to_string(),
        (warned, 0) => format!("Everything works; worth a look: {warned}."),
        (_, failed) => {
            out.paint(Style::Bad, format_args!("Something does not work: {failed}.")).to_string()
        }
    }
}

//! `convoke runs approve` and `convoke runs deny`: a run's question is answered from another terminal.

use std::path::PathBuf;

use clap::Args;
use convoke::agent::Letter;
use convoke::journal::{JournalError, OpenQuestion, Store, open_questions};
use convoke::tools::{Clock, SystemClock};
use convoke_core::policy::RuleSpec;
use convoke_core::{CallId, Cause, DisplayFormat, Event, ExitCode, RunId};
use serde_json::Value;

use super::super::run::approve::save;
use super::state::State;
use super::{ask, named};
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;
use crate::view::brief::one_line;
use crate::view::diff;

/// How much of a description is shown in a list.
const BRIEF: usize = 100;

const APPROVE_HELP: &str = "\
A run that works takes the answer at once; one that is parked or was interrupted takes it when it is resumed. \
An answer holds for what is asked now and for nothing else. `convoke runs show ID` lists the questions; without an \
ITEM the only open one is shown, and you are asked.

Examples:
  convoke runs approve 1k2m call_7
  convoke runs approve 1k2m call_7 --always
  convoke runs approve 1k2m call_7 --arguments '{\"command\": \"cargo test\"}'";

const DENY_HELP: &str = "\
Without an ITEM the only open question is meant; `convoke runs show ID` lists them.

Examples:
  convoke runs deny 1k2m
  convoke runs deny 1k2m call_7 --message \"use the staging server\"";

/// Which question is meant.
#[derive(Debug, Args)]
struct Meant {
    /// The run, or any part of its id that no other run has
    #[arg(value_name = "ID")]
    run: String,
    /// The question: the id of the call, or how it begins
    #[arg(value_name = "ITEM")]
    item: Option<String>,
}

/// Allow what a run waits for
#[derive(Debug, Args)]
#[command(after_help = APPROVE_HELP)]
pub(crate) struct Approve {
    #[command(flatten)]
    meant: Meant,
    /// Allow the like for the rest of the run, by the rule that was proposed
    #[arg(long)]
    always: bool,
    /// Keep that rule for all runs to come, too
    #[arg(long)]
    save: bool,
    /// Let it run with these arguments instead
    #[arg(long, value_name = "JSON")]
    arguments: Option<String>,
}

/// Refuse what a run waits for
#[derive(Debug, Args)]
#[command(after_help = DENY_HELP)]
pub(crate) struct Deny {
    #[command(flatten)]
    meant: Meant,
    /// Tell the model why, or what to do instead
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
}

impl Approve {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let arguments = self.arguments.as_deref().map(object).transpose()?;
        let found = self.meant.find(session)?;
        let question = self.meant.question(&found)?;
        if self.meant.item.is_none() {
            shown_and_confirmed(&question, output)?;
        }
        let mut letter = letter(&question, "approve", session);
        letter.approved = true;
        letter.arguments = arguments;
        if self.always || self.save {
            if question.rules.is_empty() {
                let message = "no rule would allow this; it is asked about each time";
                return Err(Failure::usage(message).hint("leave out --always and --save"));
            }
            letter.rules = question.rules.to_vec();
        }
        let rules = letter.rules.clone();
        found.leave(letter)?;
        let changed = if self.arguments.is_some() { ", with other arguments" } else { "" };
        output.out.line(format_args!("approved {}{changed}", described(&question)));
        if self.save {
            let path = keep(&rules, session)?;
            output.out.line(format_args!("saved {} in {}", shown(&rules), path.display()));
        } else if self.always {
            output.out.line(format_args!("allowed from now on in this run: {}", shown(&rules)));
        }
        found.tell_next_step(output);
        Ok(ExitCode::Done)
    }
}

impl Deny {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let found = self.meant.find(session)?;
        let question = self.meant.question(&found)?;
        let mut letter = letter(&question, "deny", session);
        letter.message = self.message;
        found.leave(letter)?;
        output.out.line(format_args!("refused {}", described(&question)));
        found.tell_next_step(output);
        Ok(ExitCode::Done)
    }
}

/// A run whose questions are answered.
struct Found {
    store: Store,
    run: RunId,
    events: Vec<Event>,
}

impl Meant {
    fn find(&self, session: &Session<'_>) -> Result<Found, Failure> {
        let store = session.existing_store()?;
        let run = named::find(&store, &self.run)?;
        let recorded = store.read(&run).map_err(|error| named::failure(&error))?;
        match recorded.damage {
            Some(damage) => Err(named::failure(&JournalError::Damaged { run, damage })),
            None => Ok(Found { store, run, events: recorded.events }),
        }
    }

    fn question<'f>(&self, found: &'f Found) -> Result<OpenQuestion<'f>, Failure> {
        let open = open_questions(&found.events);
        let item = self.item.as_deref();
        let exact = |question: &&OpenQuestion<'_>| item == Some(question.call.as_str());
        if let Some(question) = open.iter().find(exact) {
            return Ok(question.clone());
        }
        let wanted = |call: &CallId| item.is_none_or(|item| call.as_str().starts_with(item));
        let meant: Vec<_> = open.iter().filter(|question| wanted(question.call)).collect();
        match (meant.as_slice(), open.as_slice()) {
            ([question], _) => Ok((*question).clone()),
            (_, []) => Err(Failure::usage(format!("run `{}` waits for no answer", found.run))),
            ([], _) => Err(listed(Failure::usage("there is no such question"), &open)),
            _ => Err(listed(Failure::usage("several questions are meant; name one"), &open)),
        }
    }
}

impl Found {
    fn leave(&self, letter: Letter) -> Result<(), Failure> {
        let now = letter.at;
        let inbox = self.store.inbox(&self.run).map_err(|error| named::failure(&error))?;
        inbox.put(&letter.into_item(), now).map_err(|error| named::failure(&error))
    }

    fn tell_next_step(&self, output: &Output) {
        if output.is_quiet() {
            return;
        }
        let all = self.store.list().unwrap_or_default();
        let state = all.iter().find(|summary| summary.run == self.run).map(State::of);
        match state {
            Some(State::Running) => output.err.line("the run goes on"),
            _ => output.err.line(format_args!("`convoke runs resume {}` goes on", self.run)),
        }
    }
}

/// What is approved has to be seen first: by its name, or here.
fn shown_and_confirmed(question: &OpenQuestion<'_>, output: &Output) -> Result<(), Failure> {
    let stream = &output.err;
    stream.line(stream.printable(&described(question)));
    match question.preview {
        Some(preview) if preview.format == DisplayFormat::Diff => diff::show(stream, &preview.text),
        Some(preview) => stream.line(stream.printable(&preview.text)),
        None => {
            let arguments = serde_json::to_string_pretty(question.arguments).unwrap_or_default();
            arguments
                .lines()
                .for_each(|line| stream.line(format_args!("  {}", stream.printable(line))));
        }
    }
    match ask::yes("Approve it?", output) {
        Some(true) => Ok(()),
        Some(false) => Err(Failure::usage("nothing was approved")),
        None => Err(listed(
            Failure::usage("nobody can be asked, so the question has to be named"),
            std::slice::from_ref(question),
        )),
    }
}

/// Starts an answer to a question: no, unless somebody says otherwise.
fn letter(question: &OpenQuestion<'_>, verb: &str, session: &Session<'_>) -> Letter {
    let (call, fingerprint) = (question.call.clone(), question.fingerprint.to_owned());
    let mut letter = Letter::no(question.run.clone(), call, fingerprint, SystemClock.now());
    letter.by = Some(who(verb, session));
    letter
}

fn shown(rules: &[RuleSpec]) -> String {
    rules.iter().map(RuleSpec::shown).collect::<Vec<_>>().join("; ")
}

fn listed(failure: Failure, open: &[OpenQuestion<'_>]) -> Failure {
    open.iter().fold(failure, |failure, question| failure.hint(described(question)))
}

fn described(question: &OpenQuestion<'_>) -> String {
    let OpenQuestion { call, tool_name, description, .. } = question;
    let call = one_line(call.as_str(), BRIEF);
    format!("{call}  {}  {}", one_line(tool_name, BRIEF), one_line(description, BRIEF))
}

/// Says who answers, as the journal will have it.
fn who(verb: &str, session: &Session<'_>) -> String {
    let variables = session.environment().variables();
    let user = ["USER", "LOGNAME"].into_iter().find_map(|name| variables.get(name));
    match user {
        Some(user) => format!("{user} (runs {verb})"),
        None => format!("runs {verb}"),
    }
}

fn keep(rules: &[RuleSpec], session: &Session<'_>) -> Result<PathBuf, Failure> {
    let Some(path) = session.rules_file() else {
        return Err(Failure::usage("there is no place to save rules")
            .hint("they are kept beside the usual configuration file, not beside a named one"));
    };
    match save(&path, rules) {
        Ok(()) => Ok(path),
        Err(error) => {
            let message = format!("the rule cannot be saved in `{}`", path.display());
            Err(Failure::new(Cause::State, message).because(&error))
        }
    }
}

fn object(text: &str) -> Result<Value, Failure> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Failure::usage("the arguments are no JSON").because(&error))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(Failure::usage("the arguments are no JSON object"))
    }
}

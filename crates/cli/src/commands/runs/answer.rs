//! `convoke runs approve` and `convoke runs deny`: a run's question is answered from another terminal.

use clap::Args;
use convoke::agent::Letter;
use convoke::journal::{JournalError, OpenQuestion, Store, open_questions};
use convoke::tools::{Clock, SystemClock};
use convoke_core::policy::RuleSpec;
use convoke_core::{CallId, Cause, ExitCode, RunId};
use serde_json::Value;

use super::super::run::approve::save;
use super::named;
use super::state::State;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;
use crate::view::brief::one_line;

/// How much of a description is shown in a list.
const BRIEF: usize = 100;

const APPROVE_HELP: &str = "\
A run that works takes the answer at once; one that is parked or was interrupted takes it when it is resumed. \
Without an ITEM the only open question is meant; `convoke runs show ID` lists them.

Examples:
  convoke runs approve 1k2m
  convoke runs approve 1k2m call_7 --always
  convoke runs approve 1k2m --arguments '{\"command\": \"cargo test\"}'";

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
        self.meant.answer(session, output, |letter, rules| {
            letter.approved = true;
            letter.arguments = arguments;
            if !self.always && !self.save {
                return Ok(());
            }
            if rules.is_empty() {
                return Err(Failure::usage(
                    "no rule would allow this; it is asked about each time",
                )
                .hint("leave out --always and --save"));
            }
            if self.save {
                keep(rules, session)?;
            }
            letter.rules = rules.to_vec();
            Ok(())
        })
    }
}

impl Deny {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        self.meant.answer(session, output, |letter, _| {
            letter.approved = false;
            letter.message = self.message;
            Ok(())
        })
    }
}

impl Meant {
    /// Leaves an answer to the question for the run.
    fn answer(
        &self,
        session: &Session<'_>,
        output: &mut Output,
        fill: impl FnOnce(&mut Letter, &[RuleSpec]) -> Result<(), Failure>,
    ) -> Result<ExitCode, Failure> {
        let store = session.existing_store()?;
        let run = named::find(&store, &self.run)?;
        let recorded = store.read(&run).map_err(|error| named::failure(&error))?;
        if let Some(damage) = recorded.damage {
            return Err(named::failure(&JournalError::Damaged { run, damage }));
        }
        let open = open_questions(&recorded.events);
        let question = self.question(&run, &open)?;
        let now = SystemClock.now();
        let mut letter = Letter::no(question.call.clone(), now);
        letter.by = Some(who(session));
        fill(&mut letter, question.rules)?;
        let said = if letter.approved { "approved" } else { "refused" };
        let inbox = store.inbox(&run).map_err(|error| named::failure(&error))?;
        inbox.put(&letter.into_item(), now).map_err(|error| named::failure(&error))?;
        output.out.line(format_args!("{said} {}", described(question)));
        if !output.is_quiet() {
            output.err.line(next_step(&store, &run));
        }
        Ok(ExitCode::Done)
    }

    fn question<'q, 'e>(
        &self,
        run: &RunId,
        open: &'q [OpenQuestion<'e>],
    ) -> Result<&'q OpenQuestion<'e>, Failure> {
        let wanted = |call: &CallId| self.item.as_deref().is_none_or(|item| begins(call, item));
        let exact = |question: &&OpenQuestion<'_>| {
            self.item.as_deref() == Some(question.call.to_string().as_str())
        };
        if let Some(question) = open.iter().find(exact) {
            return Ok(question);
        }
        let meant: Vec<_> = open.iter().filter(|question| wanted(question.call)).collect();
        match (meant.as_slice(), open) {
            ([question], _) => Ok(question),
            (_, []) => Err(Failure::usage(format!("run `{run}` waits for no answer"))),
            ([], _) => Err(listed(Failure::usage("there is no such question"), open)),
            _ => Err(listed(Failure::usage("several questions are meant; name one"), open)),
        }
    }
}

fn begins(call: &CallId, item: &str) -> bool {
    call.to_string().starts_with(item)
}

fn listed(failure: Failure, open: &[OpenQuestion<'_>]) -> Failure {
    open.iter().fold(failure, |failure, question| failure.hint(described(question)))
}

fn described(question: &OpenQuestion<'_>) -> String {
    let OpenQuestion { call, tool_name, description, .. } = question;
    format!("{call}  {tool_name}  {}", one_line(description, BRIEF))
}

fn next_step(store: &Store, run: &RunId) -> String {
    let all = store.list().unwrap_or_default();
    let state = all.iter().find(|summary| summary.run == *run).map(State::of);
    match state {
        Some(State::Running) => "the run goes on".to_owned(),
        _ => format!("`convoke runs resume {run}` goes on"),
    }
}

/// Says who answers, as the journal will have it.
fn who(session: &Session<'_>) -> String {
    let variables = session.environment().variables();
    let user = ["USER", "LOGNAME"].into_iter().find_map(|name| variables.get(name));
    match user {
        Some(user) => format!("{user} (runs approve)"),
        None => "runs approve".to_owned(),
    }
}

fn keep(rules: &[RuleSpec], session: &Session<'_>) -> Result<(), Failure> {
    let Some(path) = session.rules_file() else {
        return Err(Failure::usage("there is no place to save rules")
            .hint("they are kept beside the usual configuration file, not beside a named one"));
    };
    save(&path, rules).map_err(|error| {
        let message = format!("`{}` cannot be written", path.display());
        Failure::new(Cause::State, message).because(&error)
    })
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

//! `convoke runs approve` and `convoke runs deny`: a run's questions are answered from another terminal.

mod form;
mod meant;

use std::path::PathBuf;

use clap::Args;
use convoke::agent::Letter;
use convoke::journal::OpenQuestion;
use convoke::tools::{Clock, SystemClock};
use convoke_core::policy::RuleSpec;
use convoke_core::{Cause, ExitCode};
use serde_json::Value;

use self::meant::{AnswerState, Meant, described};
pub(super) use self::meant::{name, whole};
use super::super::inquiry::Answering;
use super::super::run::approve::save;
use crate::failure::Failure;
use crate::output::{Output, harmless};
use crate::session::Session;

const APPROVE_HELP: &str = "\
A run that works takes the answer at once; one that is parked or was interrupted takes it when it is resumed. \
An answer holds for what is asked now and for nothing else. `convoke runs show ID` lists the questions. What you name, \
or the only open one, is shown whole, and you are asked; with --all each of them is, one after the other. Where nobody \
can be asked, what is approved has to be named.

What an MCP server asks in the middle of a call is a form or a page. A form is filled in here, field by field, or with \
--arguments; where nobody can be asked, its defaults are taken if that is enough. It has to be answered while the run \
works: a run that is parked or interrupted has no call that could hear it.

Examples:
  convoke runs approve 1k2m call_7
  convoke runs approve 1k2m call_7 call_8
  convoke runs approve 1k2m --all
  convoke runs approve 1k2m call_7 --always
  convoke runs approve 1k2m call_7 --arguments '{\"command\": \"cargo test\"}'
  convoke runs approve 1k2m call_9 --arguments '{\"name\": \"Ada\"}'     a form of a server";

const DENY_HELP: &str = "\
Without an ITEM the only open question is meant; `convoke runs show ID` lists them.

Examples:
  convoke runs deny 1k2m
  convoke runs deny 1k2m --all --message \"not in this branch\"
  convoke runs deny 1k2m call_7 --message \"use the staging server\"";

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
    /// Let it run with these arguments instead, this once; fill in the form of a server with them
    #[arg(long, value_name = "JSON", conflicts_with_all = ["always", "save"])]
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
        let questions = self.meant.questions(&found)?;
        if arguments.is_some() && questions.len() > 1 {
            return Err(Failure::usage("--arguments are those of one call; name one question"));
        }
        let questions = self.meant.seen(questions, arguments.as_ref(), session, output)?;
        let keeps = self.always || self.save;
        if let Some(question) = questions.iter().find(|question| question.rules.is_empty())
            && keeps
        {
            let message = "no rule would allow this; it is asked about each time";
            return Err(Failure::usage(message)
                .hint(described(question))
                .hint("leave out --always and --save"));
        }
        let rules = if keeps { offered(&questions) } else { Vec::new() };
        // What cannot be saved is not approved either.
        let saved = self.save.then(|| keep(&rules, session)).transpose()?;
        let (mut answered, mut not_yet) = (Vec::new(), false);
        for question in questions {
            let mut letter = letter(&question, "approve", session);
            letter.approved = true;
            let done = if let Some(answering) = Answering::of(&question) {
                let entered = form::entered(answering, &question, arguments.as_ref(), output)?;
                let Some(entered) = entered else { continue };
                letter.arguments = Some(Value::Object(entered));
                "answered"
            } else {
                letter.arguments.clone_from(&arguments);
                letter.rules = if keeps { question.rules.to_vec() } else { Vec::new() };
                "approved"
            };
            not_yet |= found.leave(letter)? == AnswerState::Left;
            let is_changed = arguments.is_some() && question.inquiry.is_none();
            let changed = if is_changed { ", with other arguments" } else { "" };
            output.out.line(format_args!("{done} {}{changed}", described(&question)));
            answered.push(question);
        }
        if answered.is_empty() {
            return Err(Failure::usage("nothing was sent, and the question is still open")
                .hint("`convoke runs deny` declines it"));
        }
        if let Some(path) = saved {
            output.out.line(format_args!("saved {} in {}", shown(&rules), path.display()));
        } else if self.always {
            output.out.line(format_args!("allowed from now on in this run: {}", shown(&rules)));
        }
        found.tell_next_step(&answered, not_yet, output);
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
        let questions = self.meant.questions(&found)?;
        let mut not_yet = false;
        for question in &questions {
            let mut letter = letter(question, "deny", session);
            letter.message.clone_from(&self.message);
            not_yet |= found.leave(letter)? == AnswerState::Left;
            output.out.line(format_args!("refused {}", described(question)));
        }
        found.tell_next_step(&questions, not_yet, output);
        Ok(ExitCode::Done)
    }
}

/// Starts an answer to a question: no, unless somebody says otherwise.
fn letter(question: &OpenQuestion<'_>, verb: &str, session: &Session<'_>) -> Letter {
    let (call, fingerprint) = (question.call.clone(), question.fingerprint.to_owned());
    // The clock may have been set back since the question was asked: the answer still comes after it.
    let now = SystemClock.now().max(question.asked);
    let mut letter = Letter::no(question.run.clone(), call, fingerprint, now);
    letter.by = Some(who(verb, session));
    letter
}

/// Returns the rules that would allow all of these, each once.
fn offered(questions: &[OpenQuestion<'_>]) -> Vec<RuleSpec> {
    let mut rules: Vec<RuleSpec> = Vec::new();
    for rule in questions.iter().flat_map(|question| question.rules) {
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
    rules
}

/// Says what rules allow. A model wrote what is in them.
fn shown(rules: &[RuleSpec]) -> String {
    harmless(&rules.iter().map(RuleSpec::shown).collect::<Vec<_>>().join("; "))
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

#[cfg(test)]
mod tests {
    use convoke_core::Permission;

    use super::*;

    #[test]
    fn a_rule_that_was_kept_steers_no_terminal() {
        let mut rule = RuleSpec::tool(Permission::Allow, "write_file");
        rule.path = Some("a\u{1b}]0;x\u{7}".to_owned());
        assert_eq!(shown(&[rule]), "tool `write_file`, path `a\\u{1b}]0;x\\u{7}`");
    }
}

//! Which questions are meant, and that they were seen or named before they are approved.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::{Duration, Instant};

use clap::Args;
use convoke::agent::{LeaveResult, Letter};
use convoke::journal::{JournalError, OpenQuestion, Store};
use convoke_core::{CallId, DisplayFormat, Event, EventBody, RunId, Status};
use serde_json::Value;

use super::super::named::{self, Opened};
use super::super::show::page;
use super::super::state::State;
use super::super::unanswered::Questions;
use crate::commands::ask;
use crate::failure::Failure;
use crate::output::{Output, Stream, folded, harmless};
use crate::session::Session;
use crate::view::brief::one_line;
use crate::view::diff;

/// How long an answer is waited for that a run at work is to record.
const TAKEN_WITHIN: Duration = Duration::from_secs(2);
/// How often the journal is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// How much of a description is shown in a list.
const BRIEF: usize = 100;
/// How far what a call would do is set off at most.
const INDENT: usize = 4;

/// Which questions are meant.
#[derive(Debug, Args)]
pub(super) struct Meant {
    /// The run, or any part of its id that no other run has
    #[arg(value_name = "ID")]
    run: String,
    /// The questions: the id of the call, with that of its agent's run before it where two are the same
    /// (`RUN/CALL`), or how it begins
    #[arg(value_name = "ITEM")]
    items: Vec<String>,
    /// All that are open
    #[arg(long, conflicts_with = "items")]
    all: bool,
}

/// A run whose questions are answered.
pub(super) struct Found {
    store: Store,
    run: RunId,
    events: Vec<Event>,
}

impl Meant {
    pub(super) fn find(&self, session: &Session<'_>) -> Result<Found, Failure> {
        let Opened { store, id, recorded } = Opened::named(session, &self.run)?;
        if let Some(damage) = recorded.damage {
            return Err(named::failure(&JournalError::Damaged { run: id, damage }));
        }
        Ok(Found { store, run: id, events: recorded.events })
    }

    /// Returns the open questions that are meant: at least one, and each once.
    pub(super) fn questions<'f>(&self, found: &'f Found) -> Result<Vec<OpenQuestion<'f>>, Failure> {
        let Questions { open, answered } = Questions::of(&found.store, &found.run, &found.events);
        if open.is_empty() && answered > 0 {
            let run = &found.run;
            return Err(Failure::usage(format!("all questions of run `{run}` have an answer"))
                .hint(format!("`convoke runs resume {run}` goes on with it")));
        }
        if open.is_empty() {
            return Err(Failure::usage(format!("run `{}` waits for no answer", found.run)));
        }
        if self.all {
            return Ok(open);
        }
        if self.items.is_empty() {
            return match open.as_slice() {
                [_] => Ok(open),
                several => Err(listed(
                    Failure::usage("several questions are meant; name one or more, or say --all"),
                    several,
                )),
            };
        }
        let mut seen = HashSet::new();
        let mut meant = Vec::new();
        for item in &self.items {
            let question = one(item, &open)?;
            if seen.insert((question.run, question.call)) {
                meant.push(question.clone());
            }
        }
        Ok(meant)
    }

    /// What is approved has to be seen first, one after the other; where nobody can be asked it has to be named. Whoever
    /// names a call and its arguments has seen it. Returns what was said yes to.
    pub(super) fn seen<'f>(
        &self,
        questions: Vec<OpenQuestion<'f>>,
        given: Option<&Value>,
        session: &Session<'_>,
        output: &Output,
    ) -> Result<Vec<OpenQuestion<'f>>, Failure> {
        if !self.items.is_empty() && (given.is_some() || !ask::can_be_asked(output)) {
            return Ok(questions);
        }
        let mut approved = Vec::new();
        for question in &questions {
            // What a server asks is shown where it is answered; who filled it in already has seen it.
            if question.inquiry.is_some() {
                if given.is_none() && !ask::can_be_asked(output) {
                    let message = "nobody can be asked, so the question has to be named";
                    let failure = Failure::usage(message)
                        .hint("--arguments fills in a form: `convoke runs show` says with what");
                    return Err(listed(failure, &questions));
                }
                approved.push(question.clone());
                continue;
            }
            show(question, session, output);
            match ask::yes("Approve it?", output) {
                Some(true) => approved.push(question.clone()),
                Some(false) => {}
                None => {
                    let message = "nobody can be asked, so what is approved has to be named";
                    return Err(listed(Failure::usage(message), &questions));
                }
            }
        }
        if approved.is_empty() {
            return Err(Failure::usage("nothing was approved"));
        }
        Ok(approved)
    }
}

/// Finds the question that is called this, or begins like this if no other does.
fn one<'o, 'e>(item: &str, open: &'o [OpenQuestion<'e>]) -> Result<&'o OpenQuestion<'e>, Failure> {
    let is_called = |question: &&OpenQuestion<'_>| {
        name(question, open) == item || format!("{}/{}", question.run, question.call) == item
    };
    if let Some(question) = open.iter().find(is_called) {
        return Ok(question);
    }
    // A part of the run's id is enough, where no other question is meant by it.
    if let Some((run, call)) = item.split_once('/').filter(|(run, _)| !run.is_empty()) {
        let of_run = |question: &&OpenQuestion<'_>| {
            question.run.as_str().contains(run) && question.call.as_str() == call
        };
        let meant: Vec<_> = open.iter().filter(of_run).collect();
        if let [question] = meant.as_slice() {
            return Ok(question);
        }
    }
    let begins = |question: &&OpenQuestion<'_>| {
        name(question, open).starts_with(item) || question.call.as_str().starts_with(item)
    };
    let meant: Vec<_> = open.iter().filter(begins).collect();
    match meant.as_slice() {
        [question] => Ok(question),
        [] => Err(listed(Failure::usage(format!("there is no such question: `{item}`")), open)),
        _ => {
            let message = format!("several questions begin like `{item}`; name one in full");
            Err(listed(Failure::usage(message), open))
        }
    }
}

/// Returns what a question is called: by its call, and by the run of its agent where another has the same.
pub(in crate::commands::runs) fn name(
    question: &OpenQuestion<'_>,
    open: &[OpenQuestion<'_>],
) -> String {
    let same = open.iter().filter(|other| other.call == question.call).count();
    if same > 1 { format!("{}/{}", question.run, question.call) } else { question.call.to_string() }
}

/// The state of an answer that was left for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerState {
    /// The run has recorded it.
    Recorded,
    /// It lies in the inbox, and is the first there.
    Left,
}

impl Found {
    /// Leaves an answer for the run. Where a process works on the run, waits a moment until it has recorded one.
    /// Fails if another answer counted.
    pub(super) fn leave(&self, letter: Letter) -> Result<AnswerState, Failure> {
        let inbox = self.store.inbox(&self.run).map_err(|error| named::failure(&error))?;
        let (sent, about) = (letter.clone(), (letter.run.clone(), letter.call.clone()));
        let item = match letter.leave(&inbox).map_err(|error| named::failure(&error))? {
            LeaveResult::Placed(item) => item,
            LeaveResult::AlreadyAnswered(other) => {
                let how = other.map(|other| said(other.approved, other.by.as_deref()));
                return Err(too_late(&about.1, how));
            }
        };
        let deadline = Instant::now() + TAKEN_WITHIN;
        while self.is_worked_on() {
            if let Some(answered) = self.answer_since(&about) {
                if sent.is_recorded_as(&answered) {
                    return Ok(AnswerState::Recorded);
                }
                // What another answer left unused would wait for a question that is asked no more.
                drop(inbox.done(&item));
                return Err(too_late(&about.1, recorded_answer(&answered)));
            }
            if Instant::now() >= deadline {
                return Ok(AnswerState::Left);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(AnswerState::Left)
    }

    fn is_worked_on(&self) -> bool {
        let all = self.store.list().unwrap_or_default();
        let own = all.iter().find(|summary| summary.run == self.run);
        own.is_some_and(|summary| State::of(summary).is_worked_on())
    }

    /// Returns the answer to a question that was recorded since the journal was read.
    fn answer_since(&self, (run, call): &(RunId, CallId)) -> Option<Event> {
        let events = self.store.read(&self.run).ok()?.events;
        let answers = |event: &&Event| {
            let is_answer = matches!(
                event.body,
                EventBody::ApprovalAnswered { .. } | EventBody::InquiryAnswered { .. }
            );
            (is_answer || event.body.ends_call())
                && event.run == *run
                && event.call.as_ref() == Some(call)
        };
        events.iter().skip(self.events.len()).find(answers).cloned()
    }

    /// Says what is left to do after these were answered.
    pub(super) fn tell_next_step(
        &self,
        answered: &[OpenQuestion<'_>],
        not_yet: bool,
        output: &Output,
    ) {
        if output.is_quiet() {
            return;
        }
        // A run that works may have taken the answers from its inbox, and asked something else.
        let now = self.store.read(&self.run).map(|recorded| recorded.events);
        let events = now.as_deref().unwrap_or(&self.events);
        let is_answered = |question: &OpenQuestion<'_>| {
            answered.iter().any(|one| {
                one.run == question.run
                    && one.call == question.call
                    && one.fingerprint == question.fingerprint
            })
        };
        let mut left = Questions::of(&self.store, &self.run, events).open;
        left.retain(|question| !is_answered(question));
        match left.len() {
            0 => {}
            1 => output.err.line("one more waits for an answer"),
            open => output.err.line(format_args!("{open} more wait for an answer")),
        }
        let all = self.store.list().unwrap_or_default();
        let state = all.iter().find(|summary| summary.run == self.run).map(State::of);
        if not_yet && state.is_some_and(State::is_worked_on) {
            output.err.line("left for the run, which has not recorded it yet");
            return;
        }
        output.err.line(next_step(&self.run, state));
    }
}

/// Says that another answer counted, in these words.
fn too_late(call: &CallId, how: Option<String>) -> Failure {
    let call = one_line(call.as_str(), BRIEF);
    let how = how.unwrap_or_else(|| "it is over".to_owned());
    Failure::usage(format!("`{call}` has an answer already: {how}"))
        .hint("the first answer counts; this one was not given")
}

fn said(approved: bool, by: Option<&str>) -> String {
    let verb = if approved { "approved" } else { "denied" };
    by.map_or_else(|| verb.to_owned(), |by| format!("{verb} by {}", one_line(by, BRIEF)))
}

fn recorded_answer(event: &Event) -> Option<String> {
    match &event.body {
        EventBody::ApprovalAnswered { approved, by, .. } => Some(said(*approved, by.as_deref())),
        EventBody::InquiryAnswered { accepted, by, .. } => Some(said(*accepted, by.as_deref())),
        _ => None,
    }
}

/// Says how a run goes on that has an answer. It may have ended since it was given.
fn next_step(run: &RunId, state: Option<State>) -> String {
    match state {
        Some(state) if state.is_worked_on() => "the run goes on".to_owned(),
        Some(state @ State::Ended(status)) if status != Status::Parked => {
            let word = state.word();
            format!("the run went on and is {word}; `convoke runs show {run}` shows it")
        }
        _ => format!("`convoke runs resume {run}` goes on"),
    }
}

/// Shows what would be approved.
fn show(question: &OpenQuestion<'_>, session: &Session<'_>, output: &Output) {
    let stream = &output.err;
    stream.line(stream.printable(&described(question)));
    stream.line(format_args!("  {}", stream.printable(question.reason)));
    let lines: Vec<String> = whole(question, stream).map(|line| format!("  {line}")).collect();
    let onto = io::stderr().as_fd().try_clone_to_owned().map(Stdio::from);
    page(&lines, session, stream, onto);
}

/// Returns all of what a call would do, line by line.
pub(in crate::commands::runs) fn whole(
    question: &OpenQuestion<'_>,
    stream: &Stream,
) -> impl Iterator<Item = String> {
    // A pager may be told to cut what is too wide for the window.
    let width = stream.screen().map_or(usize::MAX, |size| size.columns).saturating_sub(INDENT);
    let rows = |text: &str| -> Vec<String> {
        let text = harmless(&text.replace('\t', "    "));
        text.lines().flat_map(|line| folded(line, width)).map(str::to_owned).collect()
    };
    let rows = match question.preview {
        Some(preview) if preview.format == DisplayFormat::Diff => {
            diff::whole(&preview.text, width, stream)
        }
        Some(preview) => rows(&preview.text),
        None => rows(&serde_json::to_string_pretty(question.arguments).unwrap_or_default()),
    };
    rows.into_iter()
}

fn listed(failure: Failure, open: &[OpenQuestion<'_>]) -> Failure {
    open.iter().fold(failure, |failure, question| {
        let name = one_line(&name(question, open), BRIEF);
        failure.hint(format!("{name}  {}", about(question)))
    })
}

fn about(question: &OpenQuestion<'_>) -> String {
    let OpenQuestion { agent, agent_label, tool_name, description, inquiry, .. } = question;
    let who = if agent.is_root() { String::new() } else { format!("{agent_label}  ") };
    let asks = inquiry.as_ref().map(|inquiry| format!("{} asks: ", one_line(inquiry.who, BRIEF)));
    let asks = asks.unwrap_or_default();
    format!("{who}{}  {asks}{}", one_line(tool_name, BRIEF), one_line(description, BRIEF))
}

/// Returns a question on one line.
pub(super) fn described(question: &OpenQuestion<'_>) -> String {
    let call = one_line(question.call.as_str(), BRIEF);
    format!("{call}  {}", about(question))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_that_nobody_works_on_has_to_be_resumed() {
        let run = RunId::new("1k2m");
        let said = |state| next_step(&run, state);
        for state in [State::Running, State::Waiting] {
            assert_eq!(said(Some(state)), "the run goes on");
        }
        for state in [Some(State::Ended(Status::Parked)), Some(State::Interrupted), None] {
            assert_eq!(said(state), "`convoke runs resume 1k2m` goes on");
        }
        let ended = said(Some(State::Ended(Status::Completed)));
        assert_eq!(ended, "the run went on and is completed; `convoke runs show 1k2m` shows it");
    }
}

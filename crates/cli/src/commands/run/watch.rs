//! Watches a run: shows what happens, asks the person, hears what is typed meanwhile, passes on
//! signals, prints the answer.

use std::sync::Arc;
use std::time::Duration;

use convoke::agent::{RunHandle, RunReport, Running};
use convoke::model::Replay;
use convoke_core::{Cause, Event, ExitCode};
use futures_util::StreamExt;
use tokio::time::MissedTickBehavior;

use super::approve::{Approvals, Asked, Awaited, Said, Unanswered};
use crate::failure::Failure;
use crate::output::Output;
use crate::signals::Signals;
use crate::typing::Typing;
use crate::view::View;

/// Starts what runs work on: this thread. A run mostly waits; what blocks has threads of its own, made
/// when they are needed, and starting others would take longer than all the work before the first request.
pub(in crate::commands) fn threads() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed("the run cannot be started").because(&error))
}

/// What becomes of what a person types while a run works.
pub(in crate::commands) trait Listener {
    /// Takes in a line.
    fn hear(&mut self, line: String, run: &RunHandle);

    /// Takes in what happens. Returns a message of the person that the run has just taken in.
    fn notice(&mut self, event: &Event) -> Option<String>;

    /// Returns the messages that were heard and that the run has not taken in.
    fn waiting(&self) -> Vec<String>;
}

/// Somebody who may type while a run works.
pub(in crate::commands) struct Person<'a> {
    pub(in crate::commands) typing: &'a mut Typing,
    pub(in crate::commands) listener: &'a mut dyn Listener,
}

/// The one who watches.
#[derive(Debug)]
pub(in crate::commands) struct Watch<'a> {
    view: View,
    approvals: &'a mut Approvals,
    replay: Option<Arc<Replay>>,
}

impl<'a> Watch<'a> {
    pub(in crate::commands) const fn new(view: View, approvals: &'a mut Approvals) -> Self {
        Self { view, approvals, replay: None }
    }

    /// Says at the end what of a recording was not used.
    pub(in crate::commands) fn replaying(self, replay: Option<Arc<Replay>>) -> Self {
        Self { replay, ..self }
    }

    /// Watches until the run has ended, and says how it did.
    pub(in crate::commands) fn until_the_end(
        mut self,
        threads: &tokio::runtime::Runtime,
        mut run: Running,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        self.follow(threads, &mut run, None, output)?;
        self.view.learn(run.report().and_then(|report| report.task.as_ref()));
        if let Some(left) = self.replay.as_deref().and_then(left_over) {
            self.view.warn(&left, output);
        }
        self.view.finish(output);
        match self.unrecorded(&run) {
            Some(failure) => Err(failure),
            None => Ok(run.report().map_or(ExitCode::Failed, RunReport::exit_code)),
        }
    }

    /// Watches until the run has ended.
    pub(in crate::commands) fn follow(
        &mut self,
        threads: &tokio::runtime::Runtime,
        run: &mut Running,
        person: Option<Person<'_>>,
        output: &Output,
    ) -> Result<(), Failure> {
        let mut open = Open { question: None, leaving: None, person };
        let watched = threads.block_on(self.watch(run, &mut open, output));
        open.let_go(&run.handle());
        watched.inspect_err(|_| self.view.abandon())
    }

    /// Returns what is shown.
    pub(in crate::commands) const fn view(&mut self) -> &mut View {
        &mut self.view
    }

    /// A run whose end could not be recorded has told nobody how it ended.
    pub(in crate::commands) fn unrecorded(&self, run: &Running) -> Option<Failure> {
        match (run.report(), self.view.report()) {
            // The end was shown, but will not survive the machine.
            (Some(report), Some(shown)) if report.outcome.cause != shown.cause => {
                let message = report.outcome.message.as_deref().unwrap_or("it could not be kept");
                Some(Failure::new(report.outcome.cause, message))
            }
            (Some(_), Some(_)) => None,
            (Some(report), None) => {
                let message =
                    report.outcome.message.as_deref().unwrap_or("it could not be recorded");
                Some(
                    Failure::new(report.outcome.cause, message)
                        .hint("`--state DIR` keeps runs elsewhere, `--no-journal` keeps nothing"),
                )
            }
            (None, _) => Some(Failure::failed("the run gave no report; this is a defect")),
        }
    }

    async fn watch(
        &mut self,
        run: &mut Running,
        open: &mut Open<'_>,
        output: &Output,
    ) -> Result<(), Failure> {
        let mut signals = Signals::listen()
            .map_err(|error| Failure::failed("signals cannot be heard").because(&error))?;
        let handle = run.handle();
        let mut stopping = false;
        let mut frame = tokio::time::interval(Duration::from_millis(100));
        frame.set_missed_tick_behavior(MissedTickBehavior::Delay);
        open.listen(&mut self.view);
        loop {
            tokio::select! {
                biased;
                cause = signals.next() => {
                    if cause == Cause::Interrupted && open.decline_inquiry() {
                        output.err.line("\n(declined)");
                        self.view.go_on();
                        open.listen(&mut self.view);
                        continue;
                    }
                    if stopping {
                        return Err(Failure::new(cause, "the run was given up"));
                    }
                    stopping = true;
                    handle.cancel_because(cause);
                }
                heard = open.next() => match heard {
                    Heard::Answer(question, said) => {
                        open.question = question.hear(said, self.approvals, &output.err);
                        if open.question.is_none() {
                            self.view.go_on();
                            open.listen(&mut self.view);
                        }
                    }
                    Heard::Withdrawn => {
                        output.err.line("\n(no answer is needed any more)");
                        self.view.go_on();
                        open.listen(&mut self.view);
                    }
                    Heard::Typed(lines) => {
                        open.hear(lines, &handle);
                        open.show(&mut self.view);
                    }
                },
                question = self.approvals.next(), if open.question.is_none() && open.leaving.is_none() => {
                    // A rule that was granted meanwhile may have answered it.
                    if question.is_withdrawn() {
                        continue;
                    }
                    open.let_go(&handle);
                    self.view.pause();
                    if !self.view.is_fresh() {
                        output.err.gap();
                    }
                    let question = question.seen_in(&self.view);
                    question.show(self.approvals, &output.err);
                    open.question = Some((question, Awaited::line()));
                }
                event = run.next() => match event {
                    Some(event) => {
                        open.notice(&event, &mut self.view);
                        self.view.event(&event);
                        // Nobody will see the answer: there is no reason to go on paying for it.
                        if output.out.is_gone() {
                            handle.cancel();
                        }
                    }
                    None => return Ok(()),
                },
                _ = frame.tick(), if self.view.is_live() => self.view.tick(),
            }
        }
    }
}

/// Says which exchanges of a recording nobody asked for.
fn left_over(replay: &Replay) -> Option<String> {
    const MOST: usize = 10;
    let lines = replay.unused_lines();
    let shown: Vec<String> = lines.iter().take(MOST).map(ToString::to_string).collect();
    let more = if lines.len() > MOST { ", …" } else { "" };
    let shown = format!("{}{more}", shown.join(", "));
    match lines.len() {
        0 => None,
        1 => Some(format!("an exchange of the recording was not used: line {shown}")),
        count => Some(format!("{count} exchanges of the recording were not used: lines {shown}")),
    }
}

/// What was heard from the person.
enum Heard {
    /// An answer to a question.
    Answer(Box<Asked>, Said),
    /// The question is not asked any more.
    Withdrawn,
    /// Lines that were typed; the draft changed in any case.
    Typed(Vec<String>),
}

/// What is open between the run and the person.
struct Open<'a> {
    /// A question that was put, and the line that is awaited.
    question: Option<Unanswered>,
    /// What still has the terminal for a question that is not asked any more.
    leaving: Option<Awaited>,
    person: Option<Person<'a>>,
}

impl Open<'_> {
    /// Waits for the person. While there is a question, everything typed is the answer.
    async fn next(&mut self) -> Heard {
        if self.leaving.is_some() {
            self.left().await;
            return Heard::Withdrawn;
        }
        if let Some((question, line)) = &mut self.question {
            let said = async {
                match line {
                    Some(line) => line.next().await,
                    None => Said::Line(None),
                }
            };
            let said = tokio::select! {
                biased;
                said = said => Some(said),
                () = question.withdrawn() => None,
            };
            return match (self.question.take(), said) {
                (Some((question, _)), Some(said)) => Heard::Answer(Box::new(question), said),
                (Some((_, line)), None) => {
                    self.leaving = line;
                    self.left().await;
                    Heard::Withdrawn
                }
                (None, _) => Heard::Withdrawn,
            };
        }
        match &mut self.person {
            Some(person) => Heard::Typed(person.typing.next().await),
            None => std::future::pending().await,
        }
    }

    /// Says no to a call that asks what it has to know, if one does. The run goes on.
    fn decline_inquiry(&mut self) -> bool {
        match self.question.take_if(|(question, _)| question.is_inquiry()) {
            Some((question, _)) => {
                question.decline();
                true
            }
            None => false,
        }
    }

    /// Waits until the terminal is free again.
    async fn left(&mut self) {
        if let Some(line) = &mut self.leaving {
            line.give_up();
            line.next().await;
        }
        self.leaving = None;
    }

    fn listen(&mut self, view: &mut View) {
        if let Some(person) = &mut self.person {
            person.typing.listen();
        }
        self.show(view);
    }

    /// Gives the terminal back to others.
    fn let_go(&mut self, run: &RunHandle) {
        let lines = self.person.as_mut().map(|person| person.typing.rest());
        self.hear(lines.unwrap_or_default(), run);
    }

    fn hear(&mut self, lines: Vec<String>, run: &RunHandle) {
        if let Some(person) = &mut self.person {
            for line in lines {
                person.listener.hear(line, run);
            }
        }
    }

    fn notice(&mut self, event: &Event, view: &mut View) {
        let Some(person) = &mut self.person else { return };
        if let Some(message) = person.listener.notice(event) {
            view.heard(&message);
            self.show(view);
        }
    }

    fn show(&self, view: &mut View) {
        if let Some(person) = &self.person {
            view.typed(person.listener.waiting(), person.typing.draft());
        }
    }
}

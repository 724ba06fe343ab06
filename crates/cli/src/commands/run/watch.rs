//! Watches a run: shows what happens, asks the person, hears what is typed meanwhile, passes on
//! signals, prints the answer.

mod quiet;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use convoke::agent::{RunHandle, RunReport, Running};
use convoke::journal::Store;
use convoke::model::Replay;
use convoke_core::{Cause, Event, ExitCode};
use futures_util::StreamExt;
use tokio::time::{Instant, MissedTickBehavior};

use self::quiet::Quiet;
use super::super::runs::is_answered;
use super::approve::{Approvals, Asked, Awaited, Keys, Said, Unanswered};
use crate::failure::Failure;
use crate::output::Output;
use crate::signals::{Declined, Signals};
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

impl Person<'_> {
    /// Returns what has to pass before a question that comes now is put.
    fn quiet(&self, now: Instant) -> Option<Quiet> {
        Quiet::before_asking(self.typing.draft(), self.typing.last_pressed(), now)
    }
}

/// The one who watches.
#[derive(Debug)]
pub(in crate::commands) struct Watch<'a> {
    view: View,
    approvals: &'a mut Approvals,
    replay: Option<Arc<Replay>>,
    store: Option<Store>,
}

impl<'a> Watch<'a> {
    pub(in crate::commands) const fn new(view: View, approvals: &'a mut Approvals) -> Self {
        Self { view, approvals, replay: None, store: None }
    }

    /// Says at the end what of a recording was not used.
    pub(in crate::commands) fn replaying(self, replay: Option<Arc<Replay>>) -> Self {
        Self { replay, ..self }
    }

    /// Looks at the end whether what the run waits for was answered before.
    pub(in crate::commands) fn kept_in(self, store: Store) -> Self {
        Self { store: Some(store), ..self }
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
        let report = run.report();
        if let (Some(store), Some(report)) = (&self.store, report)
            && report.outcome.cause == Cause::AwaitsApproval
            && is_answered(store, run.id())
        {
            self.view.answered();
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
        let mut open = Open { question: None, quiet: None, is_put: false, leaving: None, person };
        let watched = threads.block_on(self.watch(run, &mut open, output));
        let lines = open.let_go();
        open.hear(lines, &run.handle());
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
        let (mut stopping, mut declined) = (false, Declined::default());
        let mut frame = tokio::time::interval(Duration::from_millis(100));
        frame.set_missed_tick_behavior(MissedTickBehavior::Delay);
        open.listen(&mut self.view);
        loop {
            tokio::select! {
                biased;
                cause = signals.next() => {
                    let (now, is_interrupt) = (Instant::now(), cause == Cause::Interrupted);
                    if is_interrupt && !declined.is_insisted(now) && open.decline_inquiry() {
                        declined.note(now);
                        output.err.line("\n(declined; Ctrl-C again stops the run)");
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
                    Heard::Quiet => {
                        let lines = open.go_on(self.approvals, output);
                        open.hear(lines, &handle);
                    }
                },
                question = self.approvals.next(), if open.question.is_none() && open.leaving.is_none() => {
                    // A rule that was granted meanwhile may have answered it.
                    if question.is_withdrawn() {
                        continue;
                    }
                    self.view.pause();
                    if !self.view.is_fresh() {
                        output.err.gap();
                    }
                    let waiting = self.approvals.waiting();
                    let mut question = question.seen_in(&self.view).before(waiting);
                    question.show(&output.err);
                    (open.question, open.is_put) = (Some((question, None)), false);
                    open.begin_to_settle(Instant::now());
                    if open.quiet.is_none() {
                        let lines = open.go_on(self.approvals, output);
                        open.hear(lines, &handle);
                    }
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
    /// Nobody types any more, and a question waits to be put, or its answer to be heard.
    Quiet,
}

/// What is open between the run and the person.
struct Open<'a> {
    /// A question that is shown, and the line that is awaited.
    question: Option<Unanswered>,
    /// What has to pass before that question is put, or before what is typed is the answer.
    quiet: Option<Quiet>,
    /// Whether that question was put.
    is_put: bool,
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
        if let Some(heard) = self.settle().await {
            return heard;
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

    /// Begins to wait until nobody types on. What is typed until then is not seen, so nothing of it is sent.
    fn begin_to_settle(&mut self, now: Instant) {
        let Some(person) = &mut self.person else { return };
        self.quiet = person.quiet(now);
        if self.quiet.is_some() {
            person.typing.hold();
        }
    }

    /// Waits until nobody types on, where a question came in the middle of a line. What is typed belongs to the
    /// draft.
    async fn settle(&mut self) -> Option<Heard> {
        let (quiet, (question, _)) = (self.quiet.as_mut()?, self.question.as_mut()?);
        let person = self.person.as_mut()?;
        let heard = tokio::select! {
            biased;
            lines = person.typing.next() => {
                quiet.disturb(Instant::now());
                Heard::Typed(lines)
            }
            () = question.withdrawn() => Heard::Withdrawn,
            () = tokio::time::sleep_until(quiet.until()) => Heard::Quiet,
        };
        if matches!(heard, Heard::Withdrawn) {
            (self.question, self.quiet) = (None, None);
        }
        Some(heard)
    }

    /// Goes on with the question that is shown: puts it, and takes what is typed for the answer. Where there is a
    /// draft, these are two steps, and what is typed between them still belongs to it. Returns the lines that were
    /// completed in the last moment.
    fn go_on(&mut self, approvals: &Approvals, output: &Output) -> Vec<String> {
        self.quiet = None;
        if !self.is_put {
            let now = Instant::now();
            let person = self.person.as_ref();
            self.quiet =
                person.and_then(|person| Quiet::before_an_answer(person.typing.draft(), now));
        }
        let is_quiet = self.quiet.is_none();
        let lines = if is_quiet { self.take_terminal(approvals.keys()) } else { Vec::new() };
        let Some((question, line)) = &mut self.question else { return lines };
        // The terminal is nobody else's now, and what is secret is unseen from the first letter on.
        if is_quiet {
            *line = question.line(approvals);
        }
        if !std::mem::replace(&mut self.is_put, true) {
            question.put(approvals, &output.err);
        }
        lines
    }

    /// Makes the terminal ready for an answer: what was typed before is none.
    fn take_terminal(&mut self, keys: Keys) -> Vec<String> {
        let lines = self.let_go();
        keys.forget();
        lines
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

    /// Gives the terminal back to others. Returns the lines that were completed in the last moment.
    fn let_go(&mut self) -> Vec<String> {
        self.person.as_mut().map(|person| person.typing.rest()).unwrap_or_default()
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

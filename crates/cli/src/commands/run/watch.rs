//! Watches a run: shows what happens, asks the person, passes on signals, prints the answer.

use std::sync::Arc;
use std::time::Duration;

use convoke::agent::Running;
use convoke::model::Replay;
use convoke_core::ExitCode;
use futures_util::StreamExt;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::approve::{Approvals, Asked, read_line, wants_all};
use crate::failure::Failure;
use crate::output::Output;
use crate::signals::Signals;
use crate::view::View;

/// Starts what runs work on: this thread. A run mostly waits; what blocks has threads of its own, made
/// when they are needed, and starting others would take longer than all the work before the first request.
pub(in crate::commands) fn threads() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed("the run cannot be started").because(&error))
}

/// A question that was put to the person, and the line that is awaited.
type Open = Option<(Asked, JoinHandle<Option<String>>)>;

/// The one who watches.
#[derive(Debug)]
pub(in crate::commands) struct Watch {
    view: View,
    approvals: Approvals,
    replay: Option<Arc<Replay>>,
}

impl Watch {
    pub(in crate::commands) const fn new(view: View, approvals: Approvals) -> Self {
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
        if let Err(failure) = threads.block_on(self.watch(&mut run, output)) {
            self.view.abandon();
            return Err(failure);
        }
        self.view.learn(run.report().and_then(|report| report.task.as_ref()));
        if let Some(left) = self.replay.as_deref().and_then(left_over) {
            self.view.warn(&left, output);
        }
        self.view.finish(output);
        match (run.report(), self.view.report()) {
            (Some(report), Some(_)) => Ok(report.exit_code()),
            // A run whose end could not be recorded has told nobody how it ended.
            (Some(report), None) => {
                let message =
                    report.outcome.message.as_deref().unwrap_or("it could not be recorded");
                Err(Failure::new(report.outcome.cause, message)
                    .hint("`--state DIR` keeps runs elsewhere, `--no-journal` keeps nothing"))
            }
            (None, _) => Err(Failure::failed("the run gave no report; this is a defect")),
        }
    }

    async fn watch(&mut self, run: &mut Running, output: &Output) -> Result<(), Failure> {
        let mut signals = Signals::listen()
            .map_err(|error| Failure::failed("signals cannot be heard").because(&error))?;
        let handle = run.handle();
        let mut stopping = false;
        let mut open: Open = None;
        let mut frame = tokio::time::interval(Duration::from_millis(100));
        frame.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                cause = signals.next() => {
                    if stopping {
                        return Err(Failure::new(cause, "the run was given up"));
                    }
                    stopping = true;
                    handle.cancel_because(cause);
                }
                line = answered(&mut open) => {
                    if let Some((question, _)) = open.take() {
                        if wants_all(line.as_deref()) {
                            let again = question.again(&output.err, &self.approvals);
                            let line = tokio::task::spawn_blocking(move || again.ask());
                            open = Some((question, line));
                            continue;
                        }
                        question.answer(line.as_deref(), &self.approvals);
                    }
                    self.view.go_on();
                }
                question = self.approvals.next(), if open.is_none() => {
                    self.view.pause();
                    question.show(&output.err);
                    open = Some((question, tokio::task::spawn_blocking(read_line)));
                }
                event = run.next() => match event {
                    Some(event) => {
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

async fn answered(open: &mut Open) -> Option<String> {
    match open {
        Some((_, line)) => line.await.ok().flatten(),
        None => std::future::pending().await,
    }
}

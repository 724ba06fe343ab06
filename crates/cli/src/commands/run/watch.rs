//! Watches a run: shows what happens, asks the person, passes on signals, prints the answer.

use std::time::Duration;

use convoke::agent::Running;
use convoke_core::ExitCode;
use futures_util::StreamExt;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::approve::{Approvals, Asked, read_line};
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
}

impl Watch {
    pub(in crate::commands) const fn new(view: View, approvals: Approvals) -> Self {
        Self { view, approvals }
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
        self.view.finish(output);
        match (run.report(), self.view.report()) {
            (Some(report), Some(_)) => Ok(report.exit_code()),
            // A run whose end could not be recorded has told nobody how it ended.
            (Some(report), None) => {
                let message =
                    report.outcome.message.as_deref().unwrap_or("it could not be recorded");
                Err(Failure::new(report.outcome.cause, message))
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

async fn answered(open: &mut Open) -> Option<String> {
    match open {
        Some((_, line)) => line.await.ok().flatten(),
        None => std::future::pending().await,
    }
}

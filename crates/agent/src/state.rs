//! The run as its driver holds it: folded as its events are recorded.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use convoke_core::{Event, EventBody, Run, WorkspaceReport};
use convoke_tool::Observer;
use convoke_tool::files::SeenFiles;
use tokio::sync::Notify;

/// A run that follows its own events. Every event that is recorded for it, by the driver or by the tool
/// pipeline, is folded right after it was accepted: there is no other way to change it.
#[derive(Debug)]
pub(crate) struct RunState {
    run: Mutex<Run>,
    /// What it changed in its own workspace, as far as that was looked at.
    changed: Mutex<Option<WorkspaceReport>>,
    /// Somebody is waited for, or not any more: deadlines have to be looked at again.
    waiting_changed: Notify,
    /// The files that its calls read or wrote.
    files: OnceLock<SeenFiles>,
}

impl RunState {
    pub(crate) fn of(run: Run) -> Self {
        Self {
            run: Mutex::new(run),
            changed: Mutex::default(),
            waiting_changed: Notify::new(),
            files: OnceLock::new(),
        }
    }

    /// Returns the files that the run knows: those of its journal at first. Contents that are replaced are kept in
    /// this directory.
    pub(crate) fn seen_files(&self, replaced: Option<PathBuf>) -> SeenFiles {
        self.files.get_or_init(|| SeenFiles::new(self.lock().files(), replaced)).clone()
    }

    /// Notes what was changed in its own workspace.
    pub(crate) fn note_changes(&self, report: WorkspaceReport) {
        *self.changed.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    /// Returns what was changed in its own workspace.
    pub(crate) fn changes(&self) -> Option<WorkspaceReport> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at the run. Nothing may be recorded while the guard is held.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn waiting_changed(&self) {
        self.waiting_changed.notified().await;
    }
}

impl Observer for RunState {
    fn observe(&self, event: &Event) {
        self.lock().apply(event);
        if let EventBody::WorkspaceChanged(report) = &event.body {
            self.note_changes(report.clone());
        }
        let changes = matches!(
            event.body,
            EventBody::ApprovalAsked { .. }
                | EventBody::ApprovalAnswered { .. }
                | EventBody::InquiryAsked { .. }
                | EventBody::InquiryAnswered { .. }
                | EventBody::ToolCallDeferred { .. }
                | EventBody::AgentWaits { .. }
                | EventBody::ToolCallStarted { .. }
        );
        if changes || event.body.ends_call() {
            self.waiting_changed.notify_one();
        }
    }
}

//! Calls whose result is asked for later: the extension `io.modelcontextprotocol/tasks`.
//!
//! A task is there before its id is told. It works until it ends, is taken back, or the server stops;
//! then its result is kept for a while. There are never more tasks than the limit: a finished one
//! makes room before its time, and where all of them work, another is refused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::Timestamp;
use convoke_tool::Clock;
use rmcp::model::{DetailedTask, JsonObject, Task, TaskPayload, TaskStatus};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::service::ServeLimits;

/// How much of what a task says its client is told at once.
const MAX_MESSAGE_BYTES: usize = 1024;

/// The tasks of one server. Cheap to clone.
#[derive(Clone)]
pub(super) struct Tasks(Arc<Store>);

struct Store {
    entries: Mutex<HashMap<String, Entry>>,
    limits: ServeLimits,
    clock: Arc<dyn Clock>,
}

struct Entry {
    task: Task,
    payload: TaskPayload,
    cancellation: CancellationToken,
    created: Instant,
    ended: Option<Instant>,
}

/// How a task ended.
pub(super) enum End {
    /// With a result, which may be that of a call that failed.
    Completed(JsonObject),
    /// Its client took it back.
    Cancelled,
}

impl Tasks {
    pub(super) fn new(limits: ServeLimits, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Store { entries: Mutex::default(), limits, clock }))
    }

    /// Makes a task; none where there are too many that work.
    pub(super) fn create(&self, cancellation: CancellationToken) -> Option<(Task, TaskHandle)> {
        let mut entries = self.swept();
        if entries.len() >= self.0.limits.max_tasks {
            let ended = entries.iter().filter_map(|(id, entry)| Some((entry.ended?, id.clone())));
            let (_, oldest) = ended.min()?;
            entries.remove(&oldest);
        }
        let id = uuid::Uuid::new_v4().to_string();
        let now = iso(self.0.clock.now());
        let poll = u64::try_from(self.0.limits.task_poll.as_millis()).unwrap_or(u64::MAX);
        let task = Task::new(id.clone(), TaskStatus::Working, now.clone(), now)
            .with_poll_interval_ms(poll);
        let entry = Entry {
            task: task.clone(),
            payload: TaskPayload::Working,
            cancellation,
            created: Instant::now(),
            ended: None,
        };
        entries.insert(id.clone(), entry);
        Some((task, TaskHandle { tasks: self.clone(), id }))
    }

    /// Returns how a task is getting on.
    pub(super) fn get(&self, id: &str) -> Option<DetailedTask> {
        let entries = self.swept();
        let entry = entries.get(id)?;
        Some(DetailedTask::new(entry.task.clone(), entry.payload.clone()))
    }

    /// Tells a task to stop. A task that has ended stays as it is.
    pub(super) fn cancel(&self, id: &str) -> Option<()> {
        self.swept().get(id).map(|entry| entry.cancellation.cancel())
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Entry)) {
        let now = iso(self.0.clock.now());
        if let Some(entry) = self.lock().get_mut(id) {
            entry.task.last_updated_at = now;
            change(entry);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Entry>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the tasks, without those whose time is over.
    fn swept(&self) -> std::sync::MutexGuard<'_, HashMap<String, Entry>> {
        let retention = self.0.limits.task_retention;
        let mut entries = self.lock();
        entries.retain(|_, entry| entry.ended.is_none_or(|ended| ended.elapsed() < retention));
        entries
    }
}

/// The task, for whoever works on it. If that is lost, the task has failed.
pub(super) struct TaskHandle {
    tasks: Tasks,
    id: String,
}

impl TaskHandle {
    /// Tells what the task does now: the last line of what was said.
    pub(super) fn say(&self, text: &str) {
        let Some(line) = text.lines().map(str::trim).rfind(|line| !line.is_empty()) else { return };
        let cut = convoke_tool::floor_char_boundary(line, MAX_MESSAGE_BYTES);
        let line = line.get(..cut).unwrap_or_default().to_owned();
        self.tasks.change(&self.id, |entry| entry.task.status_message = Some(line));
    }

    /// Says how it ended.
    pub(super) fn end(self, end: End) {
        self.close(match end {
            End::Completed(result) => TaskPayload::Completed { result },
            End::Cancelled => TaskPayload::Cancelled,
        });
    }

    fn close(&self, payload: TaskPayload) {
        let retention = self.tasks.0.limits.task_retention;
        self.tasks.change(&self.id, |entry| {
            if entry.ended.is_some() {
                return;
            }
            entry.ended = Some(Instant::now());
            entry.payload = payload;
            let lives = entry.created.elapsed() + retention;
            entry.task.ttl_ms = Some(u64::try_from(lives.as_millis()).unwrap_or(u64::MAX));
        });
    }
}

impl Drop for TaskHandle {
    fn drop(&mut self) {
        let mut error = JsonObject::new();
        error.insert("code".into(), (-32603).into());
        error.insert("message".into(), "the task was lost; this is a defect of the server".into());
        self.close(TaskPayload::Failed { error });
    }
}

/// Writes a moment as `2026-03-01T12:30:05.250Z`.
fn iso(at: Timestamp) -> String {
    let of_day = at.as_millis().rem_euclid(86_400_000);
    let (hours, minutes) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (seconds, millis) = (of_day / 1000 % 60, of_day % 1000);
    format!("{}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z", at.date())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use convoke_tool::ManualClock;

    use super::*;

    fn tasks(max_tasks: usize) -> (Tasks, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_772_368_205_250)));
        let limits = ServeLimits { max_tasks, ..ServeLimits::default() };
        (Tasks::new(limits, clock.clone()), clock)
    }

    fn status(tasks: &Tasks, id: &str) -> Option<TaskStatus> {
        tasks.get(id).map(|task| task.status())
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_is_kept_for_a_while() {
        let (tasks, clock) = tasks(4);
        let (task, handle) = tasks.create(CancellationToken::new()).unwrap();
        assert_eq!(task.created_at, "2026-03-01T12:30:05.250Z");
        clock.advance(Duration::from_secs(1));
        handle.say("first\n  second  \n\n");
        let told = tasks.get(&task.task_id).unwrap().task;
        assert_eq!(told.status_message.as_deref(), Some("second"));
        assert_eq!(
            (told.ttl_ms, told.last_updated_at.as_str()),
            (None, "2026-03-01T12:30:06.250Z")
        );
        tokio::time::advance(Duration::from_hours(5)).await;
        assert_eq!(
            status(&tasks, &task.task_id),
            Some(TaskStatus::Working),
            "it works as long as it takes"
        );
        handle.end(End::Completed(JsonObject::new()));
        let told = tasks.get(&task.task_id).unwrap();
        assert_eq!((told.status(), told.task.ttl_ms), (TaskStatus::Completed, Some(18_900_000)));
        tokio::time::advance(Duration::from_mins(14)).await;
        assert!(tasks.get(&task.task_id).is_some());
        tokio::time::advance(Duration::from_mins(1)).await;
        assert!(tasks.get(&task.task_id).is_none());
    }

    #[tokio::test]
    async fn finished_tasks_make_room_and_working_ones_do_not() {
        let (tasks, _) = tasks(2);
        let (first, first_handle) = tasks.create(CancellationToken::new()).unwrap();
        let (second, _second_handle) = tasks.create(CancellationToken::new()).unwrap();
        assert!(tasks.create(CancellationToken::new()).is_none());
        first_handle.end(End::Cancelled);
        assert_eq!(status(&tasks, &first.task_id), Some(TaskStatus::Cancelled));
        assert!(tasks.create(CancellationToken::new()).is_some());
        assert_eq!(status(&tasks, &first.task_id), None);
        assert_eq!(status(&tasks, &second.task_id), Some(TaskStatus::Working));
    }

    #[tokio::test]
    async fn a_task_that_nobody_works_on_has_failed() {
        let (tasks, _) = tasks(2);
        let token = CancellationToken::new();
        let (task, handle) = tasks.create(token.clone()).unwrap();
        assert_eq!(tasks.cancel("unknown"), None);
        tasks.cancel(&task.task_id).unwrap();
        assert!(token.is_cancelled());
        drop(handle);
        assert_eq!(status(&tasks, &task.task_id), Some(TaskStatus::Failed));
    }
}

//! Calls of tools that are called as tasks only, as revision 2025-11-25 has them: the call is answered with the id of a
//! task, which is asked after until it has ended. Who gives up takes the task back.

use std::sync::Arc;
use std::time::Duration;

use convoke_tool::Interlude;
use rmcp::model::{ClientRequest, CustomRequest};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{CANCEL_PATIENCE, Connection, Terms, cancelled};
use crate::client::calls::CallUnderWay;
use crate::client::failure::Failure;
use crate::client::in_call::Asker;
use crate::client::offer::cut;
use crate::client::rounds::{MAX_ROUNDS, too_many, visited};

/// How often a task is asked after, where the server does not say, and within which bounds it may say.
const USUAL_PAUSE: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How much of what a server says of a task is shown at once.
const MAX_NOTE_BYTES: usize = 500;

impl Connection {
    /// Calls a tool as a task, and waits for what comes of it.
    pub(in crate::client) async fn call_as_task(
        self: &Arc<Self>,
        tool: &str,
        arguments: &Map<String, Value>,
        terms: Terms<'_>,
    ) -> Result<Value, Failure> {
        // What is reported of the task, or asked for it, is the call's for as long as this lives.
        let enrolled = self.calls().enrol(Some(tool), terms.context);
        let call = enrolled.call();
        let time = Time::of(call, &self.handler.interlude, terms.total);
        let params = json!({ "name": tool, "arguments": arguments, "task": {} });
        let answer = self.begin_task(params, call, terms).await?;
        let Some(id) = answer.pointer("/task/taskId").and_then(Value::as_str) else {
            // It did without a task.
            return Ok(answer);
        };
        call.is_task(id);
        let mut task = Task { connection: Arc::clone(self), id: id.to_owned(), is_over: false };
        let mut state = answer.get("task").cloned().unwrap_or_default();
        let pause = pause(&state);
        let mut said = String::new();
        while state.get("status").is_some_and(|status| status == "working") {
            tell(&state, &mut said, terms);
            tokio::select! {
                biased;
                () = cancelled(terms.context) => return Err(Failure::Cancelled),
                how = self.ended() => return Err(Failure::Ended(how)),
                () = tokio::time::sleep(pause) => {}
                () = news(call) => {}
            }
            if time.left().is_zero() {
                return Err(Failure::Timeout(terms.total));
            }
            // It is no call of its own: what the call is known by stays.
            let unlisted = self.calls().enrol(None, None);
            let asked = self.demand("tasks/get", task.named(), unlisted.call(), terms).await;
            state = asked.map_err(|failure| self.once_begun(failure))?;
        }
        let status = state.get("status").and_then(Value::as_str);
        if status == Some("cancelled") {
            task.is_over = true;
            let message = "it has taken the task back that the call was".to_owned();
            return Err(Failure::Refused { code: -1, message, data: None });
        }
        // A task that needs something asks for it while its result is waited for.
        let left = time.left().max(terms.idle);
        let patient = Terms { idle: left, total: left, context: terms.context };
        let result = self.demand("tasks/result", task.named(), call, patient).await;
        // One that may still be at work is taken back, however its result was lost.
        task.is_over = result.is_ok() || matches!(status, Some("completed" | "failed"));
        result.map_err(|failure| match failure {
            // A call that failed is refused as it would have been without a task.
            refused @ Failure::Refused { .. } if status == Some("failed") => refused,
            other => self.once_begun(other),
        })
    }

    /// Makes the call that begins a task, again if pages have to be visited first.
    async fn begin_task(
        &self,
        params: Value,
        call: &Arc<CallUnderWay>,
        terms: Terms<'_>,
    ) -> Result<Value, Failure> {
        let asker = Asker::of(terms.context);
        for _ in 0..MAX_ROUNDS {
            match self.demand("tools/call", params.clone(), call, terms).await {
                Ok(answer) => return Ok(answer),
                Err(refusal) => {
                    let _asking = Arc::clone(call).asks();
                    visited(self, terms.context, asker.as_ref(), refusal).await?;
                }
            }
        }
        Err(too_many())
    }

    /// Says of a failure that the task it is about had begun: what could not be asked is how it goes on, and not
    /// whether to do it.
    fn once_begun(&self, failure: Failure) -> Failure {
        let why = match failure {
            Failure::Unsent(why) | Failure::Lost(why) => why,
            Failure::Unauthorized(what) => format!("it wants to know who asks: {what}"),
            Failure::Refused { code, message, .. } => format!(
                "it does not say what became of its task: {} (code {code})",
                cut(&message, MAX_NOTE_BYTES)
            ),
            other => return other,
        };
        let why = format!("{why} (the call had begun)");
        if self.given_up.get().is_some() {
            return Failure::Ended(why.into());
        }
        Failure::Lost(why)
    }

    /// Makes a request that the library has no name for.
    async fn demand(
        &self,
        method: &str,
        params: Value,
        call: &CallUnderWay,
        terms: Terms<'_>,
    ) -> Result<Value, Failure> {
        let result = self.exchange(request(method, params), call, terms).await?;
        serde_json::to_value(result).map_err(|error| Failure::Unsent(error.to_string()))
    }
}

/// How long a task may take. While a person is asked something, or logs in, time stands still.
struct Time<'a> {
    over_at: Instant,
    call: &'a CallUnderWay,
    logins: &'a Interlude,
    /// How much time went into logins before.
    spent_before: Duration,
}

impl<'a> Time<'a> {
    fn of(call: &'a CallUnderWay, logins: &'a Interlude, total: Duration) -> Self {
        let spent_before = logins.spent_so_far();
        Self { over_at: Instant::now() + total, call, logins, spent_before }
    }

    fn left(&self) -> Duration {
        let logged_in = self.logins.spent_so_far().saturating_sub(self.spent_before);
        let over_at = self.over_at + self.call.time_asking() + logged_in;
        over_at.saturating_duration_since(Instant::now())
    }
}

/// A task under way. If it is dropped before it is over, the server is told.
struct Task {
    connection: Arc<Connection>,
    id: String,
    is_over: bool,
}

impl Task {
    fn named(&self) -> Value {
        json!({ "taskId": self.id })
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (connection, request) =
            (Arc::clone(&self.connection), request("tasks/cancel", self.named()));
        self.connection.farewells.say(async move {
            let terms = Terms { idle: CANCEL_PATIENCE, total: CANCEL_PATIENCE, context: None };
            // A server that is gone, or cannot take it back, needs no more.
            drop(connection.request(request, terms).await);
        });
    }
}

fn request(method: &str, params: Value) -> ClientRequest {
    ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)))
}

/// Waits until the server says that the task has come on. Who says so all the time is not asked all the time.
async fn news(call: &CallUnderWay) {
    tokio::time::sleep(SHORTEST_PAUSE).await;
    call.task_came_on().await;
}

fn pause(state: &Value) -> Duration {
    let said = state.get("pollInterval").and_then(Value::as_u64).map(Duration::from_millis);
    said.unwrap_or(USUAL_PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

/// Tells what a task does now, if that is new.
fn tell(state: &Value, said: &mut String, terms: Terms<'_>) {
    let note = state.get("statusMessage").and_then(Value::as_str).unwrap_or_default();
    let note = cut(note.trim(), MAX_NOTE_BYTES);
    if note.is_empty() || note == *said {
        return;
    }
    if let Some(context) = terms.context {
        context.progress().text(format!("{note}\n"));
    }
    *said = note;
}

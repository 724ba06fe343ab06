//! One call of a tool: started, watched, told about, and stopped when nobody waits for it any more.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use convoke_core::event::Progress;
use convoke_core::{ToolError, ToolResult, ToolSpec};
use futures_util::FutureExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult,
    ErrorData, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{Peer, RoleServer};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Context, Shared};
use crate::serve::answer::answer;
use crate::serve::extras::json;
use crate::serve::http::SessionEnd;
use crate::serve::offer::CallHandle;
use crate::serve::progress::{ProgressSink, Steps};
use crate::serve::tasks::{End, TaskHandle};
use crate::serve::tools::unknown;

/// How much time lies between two words about one call.
const PACE: Duration = Duration::from_millis(20);
/// How long a client may take to take a word.
const WORD_WITHIN: Duration = Duration::from_secs(10);

/// How a call ended.
enum Ended {
    With(Box<ToolResult>),
    /// Nobody waits for its result any more.
    TakenBack,
    /// It was stopped for another reason, which its client is told.
    Stopped(ToolError),
}

/// How it is known that nobody waits for a call any more.
struct Client {
    request: CancellationToken,
    /// Where there are sessions: a request outlives its connection, but not its session.
    session: Option<CancellationToken>,
}

impl Client {
    fn of(context: &Context) -> Self {
        let head = context.extensions.get::<http::request::Parts>();
        let session = head.and_then(|head| head.extensions.get::<SessionEnd>());
        Self { request: context.ct.clone(), session: session.map(|end| end.0.clone()) }
    }

    /// Waits until it is gone.
    async fn gone(&self) {
        match &self.session {
            None => self.request.cancelled().await,
            Some(session) => tokio::select! {
                () = self.request.cancelled() => {}
                () = session.cancelled() => {}
            },
        }
    }
}

/// Who hears of a call while it runs.
enum Audience {
    Nobody,
    Client { peer: Peer<RoleServer>, token: ProgressToken, steps: Steps },
    Task { handle: TaskHandle, steps: Steps },
}

impl Shared {
    pub(super) async fn call(
        self: &Arc<Self>,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let offer = &self.service.offer;
        let Some(spec) = offer.tool(&request.name) else {
            let error = unknown(&request.name, &offer.tools());
            return Err(ErrorData::invalid_params(error.message, None));
        };
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            return Ok(busy(self.service.limits.max_calls, "calls").into());
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        if offer.takes_long(&spec) && knows_tasks(&context) {
            return Ok(self.start_task(spec, arguments, room));
        }
        let _under_way = self.under_way.token();
        let mut audience = match context.meta.get_progress_token() {
            Some(token) => {
                Audience::Client { peer: context.peer.clone(), token, steps: Steps::default() }
            }
            None => Audience::Nobody,
        };
        let client = Client::of(&context);
        let ended = self.carry_out(&spec, arguments, &client, &mut audience).await;
        drop(room);
        match ended {
            Ended::With(result) => Ok(answer(*result, &spec, &self.service.limits).into()),
            Ended::Stopped(error) => Ok(refused(&error).into()),
            // The library does not send it: a call that was taken back is not answered.
            Ended::TakenBack => Err(ErrorData::internal_error("the call was taken back", None)),
        }
    }

    /// Goes on with a call while its client does something else.
    fn start_task(
        self: &Arc<Self>,
        spec: ToolSpec,
        arguments: Value,
        room: OwnedSemaphorePermit,
    ) -> CallToolResponse {
        let stop = self.stop.child_token();
        let Some((task, handle)) = self.tasks.create(stop.clone()) else {
            return busy(self.service.limits.max_tasks, "tasks").into();
        };
        let shared = Arc::clone(self);
        self.under_way.spawn(async move {
            shared.work(handle, spec, arguments, stop).await;
            drop(room);
        });
        CallToolResponse::Task(CreateTaskResult::new(task))
    }

    /// Works on a task until it ends.
    async fn work(
        &self,
        handle: TaskHandle,
        spec: ToolSpec,
        arguments: Value,
        stop: CancellationToken,
    ) {
        let mut audience = Audience::Task { handle, steps: Steps::default() };
        let client = Client { request: stop, session: None };
        let ended = self.carry_out(&spec, arguments, &client, &mut audience).await;
        let Audience::Task { handle, .. } = audience else { return };
        let result = match ended {
            Ended::TakenBack => return handle.end(End::Cancelled),
            Ended::With(result) => answer(*result, &spec, &self.service.limits),
            Ended::Stopped(error) => refused(&error),
        };
        let Value::Object(result) = json(&result) else { return };
        handle.end(End::Completed(result));
    }

    /// Makes the call, tells about it, and tells it to stop when it has to.
    async fn carry_out(
        &self,
        spec: &ToolSpec,
        arguments: Value,
        client: &Client,
        audience: &mut Audience,
    ) -> Ended {
        let limits = &self.service.limits;
        let progress = ProgressSink::default();
        let stop = CancellationToken::new();
        // However this ends, what the call left behind is told to stop.
        let _stop_the_rest = stop.clone().drop_guard();
        let handle = CallHandle { cancellation: stop.clone(), progress: progress.clone() };
        let call = self.service.offer.call(&spec.name, arguments, handle);
        // A call is answered even if the offer breaks down.
        let mut call = AssertUnwindSafe(call).catch_unwind();
        let over = CancellationToken::new();
        // A slow client is told while the call goes on: neither waits for the other.
        let mut telling = std::pin::pin!(audience.follow(&progress, client, &over));
        let reason = tokio::select! {
            biased;
            // When the server stops, every client is gone as well: look at that first.
            () = self.stop.cancelled() => Some(ToolError::cancelled("the server is shutting down")),
            () = client.gone() => None,
            ended = until_ended(&mut call, telling.as_mut()) => {
                let Ok(result) = ended else { return Ended::Stopped(broken(spec)) };
                over.cancel();
                telling.await;
                return Ended::With(Box::new(result));
            }
            () = tokio::time::sleep(limits.longest_call) => {
                Some(ToolError::timeout(limits.longest_call))
            }
        };
        stop.cancel();
        // What it returns now counts for nothing, but it may have something to put in order.
        drop(tokio::time::timeout(limits.stop_grace, call).await);
        reason.map_or(Ended::TakenBack, Ended::Stopped)
    }
}

impl Audience {
    /// Tells what a call says, and when it is over, what is left of that.
    async fn follow(&mut self, progress: &ProgressSink, client: &Client, over: &CancellationToken) {
        let mut not_before = Instant::now();
        loop {
            let update = tokio::select! {
                biased;
                () = over.cancelled() => break,
                update = paced(progress, not_before) => update,
            };
            self.hear(update, client).await;
            not_before = Instant::now() + PACE;
        }
        if let Some(update) = progress.take() {
            self.hear(update, client).await;
        }
    }

    /// Tells what a call said. A client that does not listen misses it.
    async fn hear(&mut self, update: Progress, client: &Client) {
        match self {
            Self::Nobody => {}
            Self::Task { handle, steps } => {
                if let Some(step) = steps.next(&update) {
                    let percent = step.total.map(|_| format!("{:.0} %", step.progress));
                    let words = [percent, step.message].into_iter().flatten();
                    handle.say(&words.collect::<Vec<_>>().join(": "));
                }
            }
            Self::Client { peer, token, steps } => {
                let Some(step) = steps.next(&update) else { return };
                let mut word = ProgressNotificationParam::new(token.clone(), step.progress);
                (word.total, word.message) = (step.total, step.message);
                let told = tokio::time::timeout(WORD_WITHIN, peer.notify_progress(word));
                tokio::select! {
                    biased;
                    () = client.gone() => {}
                    told = told => drop(told),
                }
            }
        }
    }
}

/// Waits for the end of a call, and lets be told about it until then.
async fn until_ended<T>(
    call: impl Future<Output = T>,
    mut telling: Pin<&mut impl Future<Output = ()>>,
) -> T {
    tokio::pin!(call);
    tokio::select! {
        biased;
        ended = &mut call => ended,
        // It goes on until the call is over.
        () = telling.as_mut() => call.await,
    }
}

async fn paced(progress: &ProgressSink, not_before: Instant) -> Progress {
    tokio::time::sleep_until(not_before).await;
    progress.next().await
}

/// Returns a result for a model that says why there is none.
fn refused(error: &ToolError) -> CallToolResult {
    let text = format!("Error ({}): {}", error.kind, error.message);
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn broken(spec: &ToolSpec) -> ToolError {
    ToolError::failed(format!("`{}` broke down; this is a defect in it", spec.name))
}

fn busy(limit: usize, what: &str) -> CallToolResult {
    refused(&ToolError::unavailable(format!(
        "the server has {limit} {what} under way; make this call again when others have ended"
    )))
}

fn knows_tasks(context: &Context) -> bool {
    context.client_capabilities().is_some_and(|known| known.supports_tasks())
}

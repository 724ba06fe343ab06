//! What is answered to each request, whichever way it came.

mod call;

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::ServerHandler;
#[expect(deprecated, reason = "older clients set a level, and extras may want to know it")]
use rmcp::model::SetLevelRequestParams;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, ErrorCode, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult,
    Implementation, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, TASKS_EXTENSION_ID, Tool, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::declare::{declare, page};
use super::extras::{Asker, RequestError, json as to_json};
use super::offer::Offer;
use super::service::Service;
use super::tasks::Tasks;

type Context = RequestContext<RoleServer>;

/// How often it is looked whether a client that is told of changes is still there.
const PRESENCE: Duration = Duration::from_secs(30);

/// What all connections of a server share.
pub(super) struct Shared {
    pub(super) service: Service,
    info: ServerConfig,
    tasks: Tasks,
    /// Room for calls that are under way or wait.
    room: Arc<Semaphore>,
    /// Calls that have not ended, tasks included.
    under_way: TaskTracker,
    /// Cancelled when the server stops.
    stop: CancellationToken,
}

impl Shared {
    pub(super) fn new(service: Service, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            info: info(&service),
            tasks: Tasks::new(service.limits.clone(), Arc::clone(&service.clock)),
            room: Arc::new(Semaphore::new(service.limits.max_calls)),
            under_way: TaskTracker::new(),
            stop,
            service,
        })
    }

    /// Tells every call to stop, waits until all of them have, and lets the offer finish.
    pub(super) async fn finish(&self) {
        self.stop.cancel();
        self.under_way.close();
        let grace = self.service.limits.stop_grace;
        // A call that does not stop is left behind; there is nobody to tell.
        drop(tokio::time::timeout(grace, self.under_way.wait()).await);
        drop(tokio::time::timeout(grace, self.service.offer.finish()).await);
    }
}

/// Answers the requests of one connection.
#[derive(Clone)]
pub(super) struct Handler {
    shared: Arc<Shared>,
    /// Whether anything may have changed since the client came.
    changes: watch::Receiver<u64>,
    /// Whether this client is told of changes already.
    told_of_changes: Arc<AtomicBool>,
    /// Cancelled when the client has hung up, where that is known before all that it asked for has ended.
    gone: CancellationToken,
}

impl Handler {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let changes = shared.service.offer.changes();
        Self { shared, changes, told_of_changes: Arc::default(), gone: CancellationToken::new() }
    }

    /// Tells it how it learns that the client has hung up. What is under way is still answered then; what only waits
    /// for news ends.
    pub(super) fn until(self, gone: CancellationToken) -> Self {
        Self { gone, ..self }
    }

    fn following(&self) -> Following {
        let offer = Arc::clone(&self.shared.service.offer);
        let (now, changes) = (fingerprint(&*offer), self.changes.clone());
        // Where something has changed since the client came, nobody knows which tools it has seen.
        let known = changes.has_changed().is_ok_and(|changed| !changed).then_some(now);
        Following { offer, changes, known }
    }

    /// Lets the extras answer.
    async fn extra(
        &self,
        method: &str,
        params: &impl Serialize,
        context: &Context,
    ) -> Option<Result<Value, ErrorData>> {
        let extras = self.shared.service.extras.as_ref()?;
        let mut answered = extras.answer(method, to_json(params), &Asker::of(context)).await?;
        if let Ok(Value::Object(answer)) = &mut answered {
            // Newer clients want to be told that an answer is one; for older ones it is taken out again.
            answer.entry("resultType").or_insert_with(|| "complete".into());
        }
        Some(answered.map_err(RequestError::into_error))
    }

    /// Answers what only extras can answer.
    async fn only_extra<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        context: &Context,
    ) -> Result<T, ErrorData> {
        match self.extra(method, params, context).await {
            Some(answered) => typed(method, answered?),
            None => Err(unknown_method(method)),
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        self.shared.info.clone()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let service = &self.shared.service;
        page(service.offer.tools(), cursor.as_deref(), service.limits.page_size)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.service.offer.tool(name).as_ref().map(declare)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        const METHOD: &str = "tools/call";
        if let Some(answered) = self.extra(METHOD, &request, &context).await {
            let answer = answered?;
            return Ok(match input_required(METHOD, &answer) {
                Some(asked) => asked?.into(),
                None => typed::<CallToolResult>(METHOD, answer)?.into(),
            });
        }
        self.shared.call(request, context).await
    }

    fn accepted_subscription_filter(
        &self,
        wanted: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(wanted.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut tools = self.following();
        let wanted = context.accepted().tools_list_changed == Some(true);
        loop {
            tokio::select! {
                biased;
                () = context.cancelled() => return Ok(()),
                () = self.shared.stop.cancelled() => return Ok(()),
                () = self.gone.cancelled() => return Ok(()),
                changed = tools.changed(), if wanted => {
                    if changed.is_none() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.told_of_changes.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut tools = self.following();
        while !context.peer.is_transport_closed() {
            tokio::select! {
                biased;
                () = self.shared.stop.cancelled() => return,
                changed = tools.changed() => {
                    if changed.is_none() || context.peer.notify_tool_list_changed().await.is_err() {
                        return;
                    }
                }
                () = tokio::time::sleep(PRESENCE) => {}
            }
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: Context,
    ) -> Result<GetTaskResult, ErrorData> {
        let task = self.shared.tasks.get(&request.task_id);
        task.map(GetTaskResult::new).ok_or_else(|| unknown_task(&request.task_id))
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        // No task of ours asks its client anything, so there is nothing that an answer could be for.
        let task = self.shared.tasks.get(&request.task_id);
        task.map(drop).ok_or_else(|| unknown_task(&request.task_id))
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.shared.tasks.cancel(&request.task_id).ok_or_else(|| unknown_task(&request.task_id))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        self.only_extra("completion/complete", &request, &context).await
    }

    #[expect(deprecated, reason = "older clients set a level, and extras may want to know it")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        const METHOD: &str = "logging/setLevel";
        if stands_alone(&context) {
            return Err(unknown_method(METHOD));
        }
        self.only_extra::<Value>(METHOD, &request, &context).await.map(drop)
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.only_extra("prompts/list", &request, &context).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        const METHOD: &str = "prompts/get";
        let answer: Value = self.only_extra(METHOD, &request, &context).await?;
        Ok(match input_required(METHOD, &answer) {
            Some(asked) => asked?.into(),
            None => typed::<GetPromptResult>(METHOD, answer)?.into(),
        })
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.only_extra("resources/list", &request, &context).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.only_extra("resources/templates/list", &request, &context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        const METHOD: &str = "resources/read";
        let answer: Value = self.only_extra(METHOD, &request, &context).await?;
        Ok(match input_required(METHOD, &answer) {
            Some(asked) => asked?.into(),
            None => typed::<ReadResourceResult>(METHOD, answer)?.into(),
        })
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        self.only_extra::<Value>("resources/subscribe", &request, &context).await.map(drop)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        self.only_extra::<Value>("resources/unsubscribe", &request, &context).await.map(drop)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: Context,
    ) -> Result<CustomResult, ErrorData> {
        if stands_alone(&context) && needs_handshake(&request.method) {
            return Err(unknown_method(&request.method));
        }
        if is_known(&request.method) {
            // What arrives here under a known name had parameters that do not fit it.
            return Err(ErrorData::invalid_params(
                format!("the parameters are not those of `{}`", request.method),
                None,
            ));
        }
        match self.extra(&request.method, &request.params, &context).await {
            Some(answered) => Ok(CustomResult::new(answered?)),
            None => Err(unknown_method(&request.method)),
        }
    }
}

/// What a client has to be told about the tools.
struct Following {
    offer: Arc<dyn Offer>,
    changes: watch::Receiver<u64>,
    /// What the tools were when it was last told, if that is known.
    known: Option<u64>,
}

impl Following {
    /// Waits until the tools are others than before; nothing, where that cannot be any more. May be given up at any
    /// moment.
    async fn changed(&mut self) -> Option<()> {
        loop {
            self.changes.changed().await.ok()?;
            let now = Some(fingerprint(&*self.offer));
            if now != self.known {
                self.known = now;
                return Some(());
            }
        }
    }
}

fn fingerprint(offer: &dyn Offer) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(to_json(&offer.tools()).to_string().as_bytes());
    hasher.finish()
}

fn info(service: &Service) -> ServerConfig {
    let mut capabilities = Map::new();
    if let Some(extras) = &service.extras {
        capabilities = extras.capabilities();
    }
    capabilities.insert("tools".into(), json!({ "listChanged": true }));
    let extensions = capabilities.entry("extensions").or_insert_with(|| json!({}));
    if let Value::Object(extensions) = extensions {
        extensions.insert(TASKS_EXTENSION_ID.into(), json!({}));
    }
    // What cannot be read is not said; a server that has only tools says that much in any case.
    let capabilities = serde_json::from_value(Value::Object(capabilities))
        .unwrap_or_else(|_| ServerCapabilities::builder().enable_tools().enable_tasks().build());
    let mut own = Implementation::new(service.name.clone(), service.version.clone());
    own.title.clone_from(&service.title);
    let mut info = ServerConfig::new(capabilities).with_server_info(own);
    info.instructions.clone_from(&service.instructions);
    info
}

/// Reads an answer of the extras.
fn typed<T: DeserializeOwned>(method: &str, answer: Value) -> Result<T, ErrorData> {
    serde_json::from_value(answer).map_err(|error| {
        ErrorData::internal_error(
            format!("the server has an answer to `{method}` that is not one: {error}"),
            None,
        )
    })
}

/// Reads an answer that asks the client for something first.
fn input_required(method: &str, answer: &Value) -> Option<Result<InputRequiredResult, ErrorData>> {
    let asks = answer.get("resultType").is_some_and(|kind| kind == "input_required");
    asks.then(|| typed(method, answer.clone()))
}

fn unknown_method(method: &str) -> ErrorData {
    let message: Cow<'static, str> = format!("this server does not answer `{method}`").into();
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

fn unknown_task(id: &str) -> ErrorData {
    let reason = format!("there is no task `{id}`, or its result was kept long enough");
    ErrorData::invalid_params(reason, None)
}

/// Tells whether a request stands alone, as in revisions without a handshake.
fn stands_alone(context: &Context) -> bool {
    context.meta.protocol_version().is_some()
}

fn is_known(method: &str) -> bool {
    const KNOWN: [&str; 13] = [
        "completion/complete",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "subscriptions/listen",
        "tasks/cancel",
        "tasks/get",
        "tasks/update",
        "tools/call",
        "tools/list",
    ];
    KNOWN.contains(&method) || needs_handshake(method)
}

/// Tells whether a method is not part of revisions without a handshake.
fn needs_handshake(method: &str) -> bool {
    matches!(
        method,
        "initialize"
            | "logging/setLevel"
            | "ping"
            | "resources/subscribe"
            | "resources/unsubscribe"
    )
}

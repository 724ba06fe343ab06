//! What a server may ask of us, and what it may tell us.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use convoke_tool::Interlude;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomNotification, CustomRequest, CustomResult,
    ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorCode, ErrorData,
    FormElicitationCapability, Implementation, ProgressNotificationParam, ProtocolVersion,
    RequestId, SamplingCapability, UrlElicitationCapability,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, RoleClient};
use serde_json::Value;
use tokio::sync::Notify;

use super::calls::{CallUnderWay, Calls};
use super::config::Sampling;
use super::{elicit, sample};

/// What the specification answers with when a person says no to sampling.
const REFUSED: ErrorCode = ErrorCode(-1);

/// Which lists a server said to have changed.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    lists: AtomicU8,
    woken: Notify,
}

/// The lists of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// Tools.
    Tools = 1,
    /// Resources and their templates.
    Resources = 2,
    /// Prompts.
    Prompts = 4,
}

impl List {
    /// What it is called.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}

impl Dirty {
    pub(super) fn mark(&self, list: List) {
        self.lists.fetch_or(list as u8, Ordering::AcqRel);
        self.woken.notify_one();
    }

    /// Takes all lists for changed.
    pub(super) fn mark_all(&self) {
        for list in [List::Tools, List::Resources, List::Prompts] {
            self.mark(list);
        }
    }

    /// Waits until a list has changed.
    pub(super) async fn changed(&self) {
        while self.lists.load(Ordering::Acquire) == 0 {
            self.woken.notified().await;
        }
    }

    /// Returns which have changed since this was last asked.
    pub(super) fn take(&self) -> Vec<List> {
        let marked = self.lists.swap(0, Ordering::AcqRel);
        let all = [List::Tools, List::Resources, List::Prompts];
        all.into_iter().filter(|list| marked & *list as u8 != 0).collect()
    }
}

/// Answers one server.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    pub(super) server: Arc<str>,
    pub(super) sampling: Sampling,
    pub(super) calls: Arc<Calls>,
    pub(super) dirty: Arc<Dirty>,
    pub(super) interlude: Arc<Interlude>,
}

impl Handler {
    /// Answers a question for a person, whichever way it came. One that may belong to several calls is put again for
    /// another of them if the one it was put for is over before anybody answered.
    pub(super) async fn elicit(
        &self,
        params: &Value,
        origin: Option<&RequestId>,
    ) -> Result<Value, elicit::Unaskable> {
        let calls = self.calls.concerned(origin);
        let _pauses: Vec<_> = calls.iter().filter_map(|call| call.pause()).collect();
        let _asking: Vec<_> = calls.iter().cloned().map(CallUnderWay::asks).collect();
        let concerned: Vec<_> = calls.iter().rev().filter_map(|call| call.concerned()).collect();
        let mut open = calls.iter();
        let mut call = open.next();
        loop {
            let elicitor = call.and_then(|call| call.elicitor());
            let answer = elicit::answer(&self.server, params, &concerned, elicitor).await?;
            let is_over = call.is_some_and(|call| !self.calls.has(call));
            if answer != elicit::cancelled() || !is_over {
                return Ok(answer);
            }
            // For one that is over meanwhile as well, nobody would record how it ended.
            call = open.find(|other| self.calls.has(other));
            if call.is_none() {
                return Ok(answer);
            }
        }
    }

    /// Answers a question for a model.
    pub(super) async fn sample(
        &self,
        params: &Value,
        origin: Option<&RequestId>,
    ) -> Result<Value, String> {
        if self.sampling == Sampling::Refused {
            return Err("this server is not granted answers of a model".to_owned());
        }
        let calls = self.calls.concerned(origin);
        let sampling = calls.first().and_then(|call| call.sampling());
        let _asking: Vec<_> = calls.into_iter().map(CallUnderWay::asks).collect();
        sample::answer(&self.server, params, sampling).await
    }
}

fn origin(context: &RequestContext<RoleClient>) -> Option<&RequestId> {
    match context.extensions.get::<InboundStreamOrigin>() {
        Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
        _ => None,
    }
}

fn as_value(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn wrong(why: impl Into<std::borrow::Cow<'static, str>>) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_PARAMS, why, None)
}

#[expect(deprecated, reason = "servers of earlier revisions sample")]
impl ClientHandler for Handler {
    async fn create_message(
        &self,
        params: rmcp::model::CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::CreateMessageResult, ErrorData> {
        let answered = self.sample(&as_value(&params), origin(&context)).await;
        let answer = answered.map_err(|why| ErrorData::new(REFUSED, why, None))?;
        serde_json::from_value(answer).map_err(|error| wrong(error.to_string()))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Ok(rmcp::model::ListRootsResult::default())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let answered = self.elicit(&as_value(&request), origin(&context)).await;
        let answer = answered.map_err(|unaskable| wrong(unaskable.0))?;
        serde_json::from_value(answer).map_err(|error| wrong(error.to_string()))
    }

    /// Questions of a shape the library does not know end up here.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "elicitation/create" {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let params = request.params.clone().unwrap_or_default();
        let answered = self.elicit(&params, origin(&context)).await;
        answered.map(CustomResult).map_err(|unaskable| wrong(unaskable.0))
    }

    async fn on_progress(
        &self,
        update: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.calls.progress(&update);
    }

    /// Tasks as revision 2025-11-25 has them are not known to the library.
    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleClient>,
    ) {
        let task = notification.params.as_ref().and_then(|params| params.get("taskId")?.as_str());
        if let Some(task) = task.filter(|_| notification.method == "notifications/tasks/status") {
            self.calls.task_came_on(task);
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.dirty.mark(List::Tools);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.dirty.mark(List::Resources);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.dirty.mark(List::Prompts);
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::new().with_schema_validation(true))
                .with_url(UrlElicitationCapability::new()),
        );
        if self.sampling == Sampling::Granted {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        let own = Implementation::new("convoke", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, own)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use async_trait::async_trait;
    use convoke_tool::ToolContext;
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::super::elicit::{Elicitation, Elicited, Elicitor, ElicitorHandle};
    use super::*;

    /// Stops the call that it is asked for first, and says no after that.
    #[derive(Debug, Default)]
    struct Leaves {
        stop: CancellationToken,
        asked: AtomicUsize,
    }

    #[async_trait]
    impl Elicitor for Leaves {
        async fn elicit(&self, _: Elicitation) -> Elicited {
            if self.asked.fetch_add(1, Ordering::AcqRel) == 0 {
                self.stop.cancel();
                std::future::pending::<()>().await;
            }
            Elicited::Decline
        }
    }

    fn handler(calls: &Arc<Calls>) -> Handler {
        Handler {
            server: "s".into(),
            sampling: Sampling::Refused,
            calls: Arc::clone(calls),
            dirty: Arc::default(),
            interlude: Arc::default(),
        }
    }

    fn question() -> Value {
        json!({ "message": "Who?", "requestedSchema": { "type": "object",
            "properties": { "name": { "type": "string" } } } })
    }

    /// A call that is stopped may still be on the list for a moment.
    #[tokio::test]
    async fn a_question_does_not_go_away_with_a_call_that_is_about_to_end() {
        let person = Arc::new(Leaves::default());
        let context = |stop: CancellationToken| {
            let handle = ElicitorHandle(person.clone());
            ToolContext::builder("task").extension(handle).cancellation(stop).build()
        };
        let calls = Arc::new(Calls::default());
        let goes_on = context(CancellationToken::new());
        let stops = context(person.stop.clone());
        let _first = calls.enrol(Some("a"), Some(&goes_on));
        let _second = calls.enrol(Some("b"), Some(&stops));
        let answer = handler(&calls).elicit(&question(), None).await;
        assert_eq!(answer, Ok(json!({ "action": "decline" })));
        assert_eq!(person.asked.load(Ordering::Acquire), 2);
    }

    /// The person behind one call, who says no. If this call is asked for, these end.
    #[derive(Debug)]
    struct Behind {
        call: &'static str,
        ends: Vec<CancellationToken>,
        asked: Arc<Mutex<Vec<&'static str>>>,
    }

    #[async_trait]
    impl Elicitor for Behind {
        async fn elicit(&self, _: Elicitation) -> Elicited {
            self.asked.lock().unwrap().push(self.call);
            for call in &self.ends {
                call.cancel();
            }
            if self.ends.is_empty() { Elicited::Decline } else { std::future::pending().await }
        }

        fn person(&self) -> Option<String> {
            Some("the same".to_owned())
        }
    }

    /// Regression: it was put for one that was over as well, and recorded as asked without an answer.
    #[tokio::test]
    async fn a_question_is_put_again_only_for_a_call_that_is_under_way() {
        let asked = Arc::<Mutex<Vec<&'static str>>>::default();
        let [first, second, third] = [(); 3].map(|()| CancellationToken::new());
        let context = |call, stop: &CancellationToken, ends: Vec<CancellationToken>| {
            let person = Arc::new(Behind { call, ends, asked: Arc::clone(&asked) });
            let builder = ToolContext::builder("task").extension(ElicitorHandle(person));
            builder.cancellation(stop.clone()).build()
        };
        let calls = Arc::new(Calls::default());
        // The last one is asked for first.
        let goes_on = context("goes on", &first, Vec::new());
        let ends_too = context("ends too", &second, Vec::new());
        let ends = context("ends", &third, vec![second.clone(), third.clone()]);
        let _enrolled = [&goes_on, &ends_too, &ends].map(|own| calls.enrol(Some("a"), Some(own)));
        let answer = handler(&calls).elicit(&question(), None).await;
        assert_eq!(answer, Ok(json!({ "action": "decline" })));
        assert_eq!(*asked.lock().unwrap(), ["ends", "goes on"]);
    }
}

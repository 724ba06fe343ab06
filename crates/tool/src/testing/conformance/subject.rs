//! The tool under test, and the calls that are made of it.
//!
//! Every call gets an id of its own and is kept with its answer, so that what holds for all calls can
//! be checked at the end. A call that does not give an answer is an escape, which is kept too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use convoke_core::{CallId, ToolCall, ToolResult, ToolSpec};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::context::ToolContext;
use crate::executor::{CallOptions, Decided, Limits, ToolExecutor};
use crate::progress::ProgressSender;
use crate::registry::RegistryError;
use crate::task::{Contained, Uncontained};
use crate::testing::{AllowAll, CollectedEvents, executor_with};
use crate::tool::Tool;

/// The tool under test with everything its calls need.
pub(super) struct Subject {
    pub(super) tool: Arc<dyn Tool>,
    /// What the tool said about itself at first.
    pub(super) spec: ToolSpec,
    pub(super) examples: Vec<Value>,
    pub(super) context: ToolContext,
    pub(super) events: CollectedEvents,
    /// Every call that was made.
    pub(super) calls: Vec<CallId>,
    /// Every answer that came.
    pub(super) results: Vec<ToolResult>,
    /// What became of the calls that gave no answer.
    pub(super) escapes: Vec<String>,
    executor: ToolExecutor,
    stopped: ToolExecutor,
    deadline: Duration,
}

impl Subject {
    pub(super) fn new(
        tool: Arc<dyn Tool>,
        examples: Vec<Value>,
        context: ToolContext,
        limits: Limits,
    ) -> Result<Self, RegistryError> {
        let spec = tool.spec().clone();
        let deadline = limits.timeout_of(&spec, None, None).max(limits.longest_timeout);
        let deadline = deadline + 2 * limits.stop_grace;
        let (executor, events) = executor_with(Arc::clone(&tool), context.clone(), limits)?;
        let stopped = ToolExecutor::builder(executor.view().clone(), cancelled(&context))
            .authorizer(AllowAll)
            .recorder(executor.recorder().clone())
            .build();
        Ok(Self {
            tool,
            spec,
            examples,
            context,
            events,
            calls: Vec::new(),
            results: Vec::new(),
            escapes: Vec::new(),
            executor,
            stopped,
            deadline,
        })
    }

    /// Makes a call and returns its answer, if it gives one.
    pub(super) async fn call(&mut self, arguments: Value) -> Option<ToolResult> {
        let executor = self.executor.clone();
        self.call_through(executor, arguments).await
    }

    /// Makes a call in a context that is cancelled already.
    pub(super) async fn call_stopped(&mut self, arguments: Value) -> Option<ToolResult> {
        let executor = self.stopped.clone();
        self.call_through(executor, arguments).await
    }

    async fn call_through(
        &mut self,
        executor: ToolExecutor,
        arguments: Value,
    ) -> Option<ToolResult> {
        let call = self.next_call(arguments);
        let work = Contained::spawn(async move { executor.execute(call).await });
        match tokio::time::timeout(self.deadline, work).await {
            Ok(Ok(result)) => {
                self.results.push(result.clone());
                Some(result)
            }
            Ok(Err(Uncontained::Panicked(message))) => {
                self.escaped(&format!("panicked: {message}"))
            }
            Ok(Err(Uncontained::Aborted)) => self.escaped("was aborted"),
            Err(_) => self.escaped(&format!("did not end within {:?}", self.deadline)),
        }
    }

    /// Makes the first half of a call, gives it up, and returns the refusal if there was one.
    pub(super) fn prepare_and_drop(&mut self, arguments: Value) -> Option<ToolResult> {
        let call = self.next_call(arguments);
        let executor = &self.executor;
        // The executor is made for panics of tools: it keeps no lock across them.
        let half = catch_unwind(AssertUnwindSafe(|| {
            match executor.decide_first(call, CallOptions::default()) {
                Ok(Decided::Answered(result) | Decided::Deferred(result)) => Some(*result),
                Ok(Decided::Ready(_) | Decided::Ask(_)) | Err(_) => None,
            }
        }));
        match half {
            Ok(refused) => {
                self.results.extend(refused.clone());
                refused
            }
            Err(_) => self.escaped("panicked when it was prepared or given up"),
        }
    }

    fn next_call(&mut self, arguments: Value) -> ToolCall {
        let id = CallId::new(format!("conformance-{}", self.calls.len() + 1));
        self.calls.push(id.clone());
        ToolCall::new(id, self.spec.name.clone(), arguments)
    }

    fn escaped(&mut self, how: &str) -> Option<ToolResult> {
        let call = self.calls.last().map(ToString::to_string).unwrap_or_default();
        self.escapes.push(format!("call `{call}` {how}"));
        None
    }

    /// Returns the parameters with their schemas.
    pub(super) fn parameters(&self) -> Map<String, Value> {
        let properties = self.spec.parameters.get("properties").and_then(Value::as_object);
        properties.cloned().unwrap_or_default()
    }

    /// Returns the names of the required parameters.
    pub(super) fn required(&self) -> Vec<String> {
        let names = self.spec.parameters.get("required").and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    }

    /// Returns an example without an argument, under any of its names.
    pub(super) fn without(&self, name: &str) -> Map<String, Value> {
        let mut arguments = self.example_for(name);
        arguments.retain(|given, _| self.parameter_named(given) != name);
        arguments
    }

    /// Returns an example with another value for one argument.
    pub(super) fn with(&self, name: &str, value: Value) -> Value {
        let mut arguments = self.without(name);
        arguments.insert(name.to_owned(), value);
        Value::Object(arguments)
    }

    /// Returns an example that has this argument if there is one, or else the first.
    fn example_for(&self, name: &str) -> Map<String, Value> {
        let examples = || self.examples.iter().filter_map(Value::as_object);
        let uses = |example: &&Map<String, Value>| {
            example.keys().any(|given| self.parameter_named(given) == name)
        };
        examples().find(uses).or_else(|| examples().next()).cloned().unwrap_or_default()
    }

    /// Returns the parameter that is meant by a name. One that is a parameter means itself.
    fn parameter_named<'a>(&'a self, given: &'a str) -> &'a str {
        if self.parameters().contains_key(given) {
            return given;
        }
        self.spec.aliases.get(given).map_or(given, String::as_str)
    }
}

/// Returns the same context, cancelled. The context itself goes on.
fn cancelled(context: &ToolContext) -> ToolContext {
    let token = CancellationToken::new();
    token.cancel();
    context.for_call(CallId::new(""), token, ProgressSender::silent(), Arc::new(()))
}

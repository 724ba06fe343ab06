//! Tools and executors for the tests.

use std::sync::Arc;
use std::time::Duration;

use convoke_core::{Event, EventBody, Kind, ToolCall};
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    ContextBuilder, ExecutorBuilder, FunctionTool, ManualClock, MemorySink, Recorder, ToolContext,
    ToolExecutor, ToolRegistry, ToolView,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Nothing {}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Wait {
    /// How long.
    pub(crate) millis: u64,
}

/// A tool that waits and then says how long.
pub(crate) fn wait() -> FunctionTool<Wait> {
    FunctionTool::new("wait", "Waits.", async |wait: Wait, _: ToolContext| {
        tokio::time::sleep(Duration::from_millis(wait.millis)).await;
        Ok::<_, String>(wait.millis)
    })
    .kind(Kind::Read)
}

pub(crate) struct Bench {
    pub(crate) registry: ToolRegistry,
    pub(crate) sink: Arc<MemorySink>,
    pub(crate) builder: ExecutorBuilder,
}

/// An executor in which everything is allowed and every event is kept.
pub(crate) fn bench(context: ContextBuilder) -> Bench {
    let registry = ToolRegistry::new();
    let sink = Arc::new(MemorySink::default());
    let clock = Arc::new(ManualClock::default());
    let recorder = Recorder::new("run", sink.clone(), clock.clone());
    let context = context.clock(clock).build();
    let builder = ToolExecutor::builder(ToolView::of(registry.clone()), context)
        .authorizer(AllowAll)
        .recorder(recorder);
    Bench { registry, sink, builder }
}

pub(crate) fn empty() -> ContextBuilder {
    ToolContext::builder("task")
}

pub(crate) fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall::new("c1", name, arguments)
}

/// The names of the events, in order.
pub(crate) fn types(events: &[Arc<Event>]) -> Vec<String> {
    let name = |event: &Arc<Event>| serde_json::to_value(&event.body).unwrap()["type"].to_string();
    events.iter().map(|event| name(event).trim_matches('"').to_owned()).collect()
}

/// Asserts that every request has exactly one end, after it, and that durable events have no gaps.
pub(crate) fn assert_balanced(events: &[Arc<Event>]) {
    let mut open = std::collections::BTreeMap::new();
    let mut seq = 0;
    for event in events {
        if let convoke_core::Position::Durable { seq: number } = event.position {
            seq += 1;
            assert_eq!(number, seq, "a gap");
        }
        let Some(call) = &event.call else { continue };
        if matches!(event.body, EventBody::ToolCallRequested { .. }) {
            assert_eq!(open.insert(call.clone(), 0), None, "{call} requested twice");
        }
        if event.body.ends_call() {
            *open.get_mut(call).unwrap() += 1;
        }
    }
    assert!(open.values().all(|ends| *ends == 1), "{open:?}");
}

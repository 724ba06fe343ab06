//! An agent with a few small tools.

use std::sync::Arc;
use std::time::Duration;

use convoke_agent::{AgentBuilder, AgentExecutor, RunReport, Running, replay};
use convoke_core::{Event, EventBody, Kind, ModelFacts, Timestamp};
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    Clock, FunctionTool, ToolContext, ToolError, ToolExecutor, ToolRegistry, ToolView,
};
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

/// Wall time that follows tokio's clock, which tests pause.
#[derive(Debug)]
pub(crate) struct PausedClock(Instant);

impl PausedClock {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).after(self.0.elapsed())
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Word {
    pub(crate) word: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Nap {
    millis: u64,
}

pub(crate) fn echo() -> impl convoke_tool::IntoTool {
    FunctionTool::new("echo", "Says it again.", async |word: Word, _: ToolContext| {
        Ok::<_, String>(format!("you said {}", word.word))
    })
    .kind(Kind::Read)
}

pub(crate) fn fail() -> impl convoke_tool::IntoTool {
    FunctionTool::new("fail", "Fails.", async |_: Word, _: ToolContext| {
        Err::<(), _>(ToolError::failed("it always fails"))
    })
    .kind(Kind::Read)
}

pub(crate) fn nap() -> impl convoke_tool::IntoTool {
    FunctionTool::new("nap", "Sleeps.", async |nap: Nap, _: ToolContext| {
        tokio::time::sleep(Duration::from_millis(nap.millis)).await;
        Ok::<_, String>(format!("slept {}", nap.millis))
    })
    .kind(Kind::Read)
    .timeout(Duration::from_hours(10))
}

pub(crate) fn with(model: &Arc<ScriptedModel>) -> AgentBuilder {
    let registry = ToolRegistry::new();
    registry.register(echo()).unwrap();
    registry.register(fail()).unwrap();
    registry.register(nap()).unwrap();
    let context = ToolContext::builder("t").clock(Arc::new(PausedClock::new())).build();
    let tools = ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowAll);
    AgentExecutor::with_model(model.clone(), tools)
}

pub(crate) fn script(turns: impl IntoIterator<Item = Turn>) -> Arc<ScriptedModel> {
    let facts = ModelFacts { window: Some(100_000), ..ModelFacts::default() };
    Arc::new(ScriptedModel::new(turns).with_facts(facts))
}

/// Reads a run to its end.
pub(crate) async fn read(mut run: Running) -> (Vec<Arc<Event>>, RunReport) {
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    let report = run.report().unwrap().clone();
    // Whatever a test does, doing it again from the record comes out the same.
    let kept: Vec<Event> = durable(&events);
    if let Some(EventBody::RunStarted { .. }) = kept.first().map(|event| &event.body) {
        let difference = replay(&report.run, &kept).err().map(|difference| difference.to_string());
        assert_eq!(difference, None);
    }
    (events, report)
}

/// Returns the events that a journal keeps.
pub(crate) fn durable(events: &[Arc<Event>]) -> Vec<Event> {
    let kept = events.iter().filter(|event| event.body.is_durable());
    kept.map(|event| Event::clone(event)).collect()
}

/// The durable events in short, so that a whole run fits an assertion.
pub(crate) fn told(events: &[Arc<Event>]) -> Vec<String> {
    let brief = |event: &Arc<Event>| {
        let call = event.call.as_ref().map(|call| format!("({call})")).unwrap_or_default();
        let json = serde_json::to_value(&event.body).unwrap();
        let purpose = match &event.body {
            EventBody::ModelRequest { purpose, .. } if purpose.as_str() != "main" => {
                format!(":{purpose}")
            }
            _ => String::new(),
        };
        format!("{}{purpose}{call}", json["type"].as_str().unwrap())
    };
    let kept = events.iter().filter(|event| event.body.is_durable());
    kept.map(brief).filter(|word| !word.starts_with("usage")).collect()
}

//! Hooks on a whole run: before the model is asked, and at the end.

use std::sync::{Arc, Mutex};

use convoke_agent::AgentExecutor;
use convoke_core::hook::Moment;
use convoke_core::{Cause, EventBody, ExitCode};
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    FunctionHook, Hook, Hooks, ToolContext, ToolExecutor, ToolRegistry, ToolView, Verdict,
};
use serde_json::json;

use crate::support::{echo, read};

fn agent(model: &Arc<ScriptedModel>, hook: impl Hook + 'static) -> AgentExecutor {
    let registry = ToolRegistry::new();
    registry.register(echo()).unwrap();
    let tools = ToolExecutor::builder(ToolView::of(registry), ToolContext::builder("t").build())
        .authorizer(AllowAll)
        .hooks(Hooks::default().and(hook));
    AgentExecutor::with_model(model.clone(), tools).build().unwrap()
}

#[tokio::test]
async fn a_guard_may_keep_the_model_from_being_asked() {
    let model = Arc::new(ScriptedModel::new([
        Turn::call("echo", json!({ "word": "a" })),
        Turn::text("never"),
    ]));
    let asked = Mutex::new(0);
    let guard = FunctionHook::new("quota", [Moment::BeforeModel], move |_, _| {
        let mut asked = asked.lock().unwrap();
        *asked += 1;
        let enough = *asked > 1;
        let deny = Verdict::Deny { reason: "enough for today".into() };
        std::future::ready(Ok(if enough { deny } else { Verdict::Go }))
    });
    let (events, report) = read(agent(&model, guard.guarding()).start("Go.")).await;
    assert_eq!((report.outcome.cause, report.exit_code()), (Cause::Denied, ExitCode::Denied));
    let message = report.outcome.message.unwrap();
    assert!(message.contains("the hook `quota` refused it: enough for today"), "{message}");
    assert_eq!(model.requests().len(), 1);
    let acted = |event: &EventBody| matches!(event, EventBody::HookActed { action, .. } if action == "denied");
    assert!(events.iter().any(|event| acted(&event.body)));
}

#[tokio::test]
async fn whoever_watches_the_end_is_told_how_and_changes_nothing() {
    let model = Arc::new(ScriptedModel::new([Turn::text("done")]));
    let told = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&told);
    let watcher =
        FunctionHook::new("bell", [Moment::BeforeModel, Moment::End], move |moment, event| {
            keeps.lock().unwrap().push((moment, event.body));
            std::future::ready(Err("no bell".to_owned()))
        });
    let (events, report) = read(agent(&model, watcher).start("Go.")).await;
    assert_eq!((report.outcome.cause, report.text().as_deref()), (Cause::Goal, Some("done")));
    let told = told.lock().unwrap();
    assert_eq!(told[0].0, Moment::BeforeModel);
    assert!(
        matches!(&told[1].1, EventBody::RunEnded { answer: Some(answer), .. } if answer == "done")
    );
    let last = &events.last().unwrap().body;
    assert!(
        matches!(last, EventBody::RunEnded { .. }),
        "the end is the last that happens: {last:?}"
    );
    let failed = events.iter().filter(|event| matches!(event.body, EventBody::HookActed { .. }));
    assert_eq!(failed.count(), 2, "that it failed is said");
}

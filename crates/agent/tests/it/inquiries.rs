//! What a call asks a person for while it runs: answered from another process, and not at the run's expense.

use std::sync::Arc;
use std::time::Duration;

use convoke_agent::{AgentExecutor, Journals, Letter, replay};
use convoke_core::event::Wanted;
use convoke_core::{Cause, Kind, Millis, RunId};
use convoke_journal::{Store, open_questions};
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    Answer, Approver, Clock, FunctionTool, Inquiry, Question, SystemClock, ToolContext,
    ToolExecutor, ToolRegistry, ToolView, ask_with,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{PausedClock, Word, read};

fn inquiry(message: &str) -> Inquiry {
    let schema = json!({ "properties": { "name": { "type": "string" } }, "required": ["name"] });
    Inquiry {
        who: "somebody".into(),
        message: message.into(),
        wanted: Wanted::Form { schema },
        problem: None,
        reason: "it has to know".into(),
        calls: Vec::new(),
    }
}

/// A tool that asks two things at once, and says what it heard.
fn ask_both() -> FunctionTool<Word> {
    FunctionTool::new("ask", "Asks.", async |_: Word, context: ToolContext| {
        let (one, two) = (inquiry("One?"), inquiry("Two?"));
        let (one, two) = tokio::join!(context.inquire(one), context.inquire(two));
        let name = |answer: Answer| match answer {
            Answer::Yes(consent) => consent.arguments.unwrap_or_default()["name"].clone(),
            _ => Value::Null,
        };
        Ok::<_, String>(json!([name(one), name(two)]))
    })
    .kind(Kind::Read)
    .timeout(Duration::from_secs(1))
}

fn journals(state: &TempDir) -> Journals {
    Journals::new(Store::at(state.path()), Arc::new(SystemClock))
}

fn script() -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new([Turn::call("ask", json!({ "word": "x" })), Turn::text("done")]))
}

fn tools(approver: impl Approver + 'static, context: ToolContext) -> convoke_tool::ExecutorBuilder {
    let registry = ToolRegistry::new();
    registry.register(ask_both()).unwrap();
    ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowAll).approver(approver)
}

/// Somebody answers each question from elsewhere, as it is listed there; nobody does here.
#[tokio::test]
async fn each_question_of_a_call_gets_its_own_answer_from_another_process() {
    let state = Arc::new(tempfile::tempdir().unwrap());
    let elsewhere = Arc::clone(&state);
    let approver = ask_with(move |question: Question| {
        let id = RunId::new("r");
        let store = journals(&elsewhere).store().clone();
        let events = store.read(&id).unwrap().events;
        let open = open_questions(&events);
        assert_eq!(open.len(), 1, "one at a time");
        assert_eq!(open[0].fingerprint, question.fingerprint);
        assert_eq!(open[0].inquiry.as_ref().unwrap().who, "somebody");
        let fingerprint = open[0].fingerprint.to_owned();
        let mut letter =
            Letter::yes(id.clone(), open[0].call.clone(), fingerprint, SystemClock.now());
        letter.arguments = Some(json!({ "name": open[0].description }));
        let now = letter.at;
        store.inbox(&id).unwrap().put(&letter.into_item(), now).unwrap();
        std::future::pending()
    });
    let model = script();
    let tools = tools(approver, ToolContext::builder("t").build());
    let agent = AgentExecutor::with_model(model.clone(), tools)
        .keeper(Arc::new(journals(&state)))
        .build()
        .unwrap();
    let (events, report) = read(agent.start_as(RunId::new("r"), "Go.")).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    let heard = serde_json::to_string(&events).unwrap();
    assert!(heard.contains(r#""result":["One?","Two?"]"#), "{heard}");
    let (id, store) = (RunId::new("r"), journals(&state).store().clone());
    let events = store.read(&id).unwrap().events;
    assert!(open_questions(&events).is_empty());
    assert!(store.inbox(&id).unwrap().waiting().unwrap().items.is_empty());
    replay(&id, &events).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_loses_no_time_while_a_person_answers_a_call() {
    let thinks = ask_with(async |_| {
        tokio::time::sleep(Duration::from_hours(2)).await;
        Answer::with_arguments(json!({ "name": "Ada" }))
    });
    let clock = Arc::new(PausedClock::new());
    let context = ToolContext::builder("t").clock(clock).build();
    let mut settings = convoke_core::RunSettings::default();
    settings.budget.time_ms = Millis::new(Duration::from_mins(5));
    let agent =
        AgentExecutor::with_model(script(), tools(thinks, context)).run_settings(settings).build();
    let (_, report) = read(agent.unwrap().start("Go.")).await;
    assert_eq!((report.outcome.cause, report.text().as_deref()), (Cause::Goal, Some("done")));
}

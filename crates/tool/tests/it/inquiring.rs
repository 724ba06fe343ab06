//! What a call has to know from a person in the middle of its work.

use std::sync::Arc;

use convoke_core::{Event, EventBody, Kind, ToolCall};
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    Answer, FunctionTool, Inquiry, MemorySink, NobodyToAsk, Question, Recorder, SystemClock,
    ToolContext, ToolExecutor, ToolRegistry, ToolView, ask_with,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{assert_balanced, types};

#[derive(Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A tool that asks who somebody is, and says what it heard.
fn registry() -> ToolRegistry {
    let registry = ToolRegistry::new();
    let ask = async |_: Nothing, context: ToolContext| {
        let inquiry = Inquiry {
            who: "greeter".into(),
            message: "Who are you?".into(),
            form: json!({ "name": "Ada" }),
            reason: "the server wants to know".into(),
        };
        Ok::<_, String>(match context.inquire(inquiry).await {
            Answer::Yes(consent) => json!({ "heard": consent.arguments }),
            Answer::No(objection) => json!({ "refused": objection.message }),
            Answer::Nobody => json!("nobody"),
        })
    };
    registry.register(FunctionTool::new("greet", "Greets.", ask).kind(Kind::Read)).unwrap();
    registry
}

async fn asked_with(answer: Answer) -> (Value, Vec<Arc<Event>>) {
    let sink = Arc::new(MemorySink::default());
    let context = ToolContext::builder("t").build();
    let recorder = Recorder::new("run", sink.clone(), Arc::new(SystemClock));
    let builder = ToolExecutor::builder(ToolView::of(registry()), context)
        .authorizer(AllowAll)
        .recorder(recorder);
    let executor = if answer == Answer::Nobody {
        builder.approver(NobodyToAsk).build()
    } else {
        let approver = ask_with(move |question: Question| {
            assert_eq!((question.kind, question.tool_name.as_str()), (Kind::Think, "greeter"));
            assert_eq!(*question.arguments, json!({ "name": "Ada" }));
            std::future::ready(answer.clone())
        });
        builder.approver(approver).build()
    };
    let result = executor.execute(ToolCall::new("c", "greet", json!({}))).await;
    (result.value().cloned().unwrap_or_default(), sink.events())
}

#[tokio::test]
async fn a_call_hears_what_a_person_says_and_all_of_it_is_recorded() {
    let (heard, events) = asked_with(Answer::yes().by("me")).await;
    assert_eq!(heard, json!({ "heard": { "name": "Ada" } }), "as it was shown");
    assert_balanced(&events);
    let asked = ["approval_asked", "approval_answered"];
    let types: Vec<String> = types(&events).iter().map(ToString::to_string).collect();
    let first = types.iter().position(|kind| kind == asked[0]).unwrap();
    assert_eq!(types[first + 1], asked[1], "{types:?}");
    let (heard, events) = asked_with(Answer::with_arguments(json!({ "name": "Eve" }))).await;
    assert_eq!(heard, json!({ "heard": { "name": "Eve" } }));
    let recorded = events.iter().any(|event| {
        matches!(&event.body, EventBody::ApprovalAnswered { approved: true, arguments: Some(said), .. }
            if **said == json!({ "name": "Eve" }))
    });
    assert!(recorded);
    let (heard, _) = asked_with(Answer::no_because("not your business")).await;
    assert_eq!(heard, json!({ "refused": "not your business" }));
}

#[tokio::test]
async fn where_nobody_is_the_call_goes_on_without() {
    let (heard, events) = asked_with(Answer::Nobody).await;
    assert_eq!(heard, json!("nobody"));
    assert_balanced(&events);
    let no = |event: &Arc<Event>| {
        matches!(&event.body, EventBody::ApprovalAnswered { approved: false, .. })
    };
    assert!(events.iter().any(no));
}

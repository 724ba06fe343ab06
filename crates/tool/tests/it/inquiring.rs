//! What a call has to know from a person in the middle of its work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke_core::event::Wanted;
use convoke_core::hook::Moment;
use convoke_core::{Event, EventBody, Kind, ToolCall};
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    Answer, ExecutorBuilder, FunctionHook, FunctionTool, Hooks, Inquiry, Limits, MemorySink,
    NobodyToAsk, Question, Recorder, SystemClock, ToolContext, ToolExecutor, ToolRegistry,
    ToolView, Unanswered, Verdict, ask_with,
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
        let heard = context.inquire(inquiry("Who are you?")).await;
        Ok::<_, String>(match heard {
            Answer::Yes(consent) => json!({ "heard": consent.arguments }),
            Answer::No(objection) => json!({ "refused": objection.message }),
            Answer::Change(_) | Answer::Nobody => json!("nobody"),
        })
    };
    let both = async |_: Nothing, context: ToolContext| {
        let (first, second) = (inquiry("First?"), inquiry("Second?"));
        let (first, second) = tokio::join!(context.inquire(first), context.inquire(second));
        let name = |answer: Answer| match answer {
            Answer::Yes(consent) => consent.arguments.unwrap_or_default(),
            _ => Value::Null,
        };
        Ok::<_, String>(json!([name(first), name(second)]))
    };
    let second = Duration::from_secs(1);
    let greet = FunctionTool::new("greet", "Greets.", ask).kind(Kind::Read).timeout(second);
    registry.register(greet).unwrap();
    registry.register(FunctionTool::new("both", "Asks twice.", both).kind(Kind::Read)).unwrap();
    registry
}

fn inquiry(message: &str) -> Inquiry {
    let name = json!({ "type": "string", "default": "Ada" });
    Inquiry {
        who: "greeter".into(),
        message: message.into(),
        wanted: Wanted::Form { schema: json!({ "properties": { "name": name } }) },
        problem: None,
        reason: "the server wants to know".into(),
        calls: Vec::new(),
    }
}

fn builder() -> (ExecutorBuilder, Arc<MemorySink>) {
    let sink = Arc::new(MemorySink::default());
    let context = ToolContext::builder("t").build();
    let recorder = Recorder::new("run", sink.clone(), Arc::new(SystemClock));
    let builder = ToolExecutor::builder(ToolView::of(registry()), context)
        .authorizer(AllowAll)
        .recorder(recorder);
    (builder, sink)
}

fn greet() -> ToolCall {
    ToolCall::new("c", "greet", json!({}))
}

async fn asked_with(answer: Answer) -> (Value, Vec<Arc<Event>>) {
    let (builder, sink) = builder();
    let executor = if answer == Answer::Nobody {
        builder.approver(NobodyToAsk).build()
    } else {
        let approver = ask_with(move |question: Question| {
            assert_eq!((question.kind, question.tool_name.as_str()), (Kind::Think, "greet"));
            assert_eq!(*question.arguments, json!({ "name": "Ada" }));
            assert_eq!(question.inquiry.as_deref(), Some(&inquiry("Who are you?")));
            let words = "greeter asks: Who are you?\n  name (text; may be left out) [Ada]";
            assert_eq!(question.description, words);
            std::future::ready(answer.clone())
        });
        builder.approver(approver).build()
    };
    let result = executor.execute(greet()).await;
    (result.value().cloned().unwrap_or_default(), sink.events())
}

#[tokio::test]
async fn a_call_hears_what_a_person_says_and_all_of_it_is_recorded() {
    let (heard, events) = asked_with(Answer::yes().by("me")).await;
    assert_eq!(heard, json!({ "heard": { "name": "Ada" } }), "as it was shown");
    assert_balanced(&events);
    let asked = ["inquiry_asked", "inquiry_answered"];
    let types: Vec<String> = types(&events).iter().map(ToString::to_string).collect();
    let first = types.iter().position(|kind| kind == asked[0]).unwrap();
    assert_eq!(types[first + 1], asked[1], "{types:?}");
    let (heard, events) = asked_with(Answer::with_arguments(json!({ "name": "Eve" }))).await;
    assert_eq!(heard, json!({ "heard": { "name": "Eve" } }));
    let recorded = events.iter().any(|event| {
        matches!(&event.body, EventBody::InquiryAnswered { accepted: true, values: Some(said), .. }
            if **said == json!({ "name": "Eve" }))
    });
    assert!(recorded);
    let (heard, _) = asked_with(Answer::no_because("not your business")).await;
    assert_eq!(heard, json!({ "refused": "not your business" }));
}

#[tokio::test]
async fn a_call_knows_which_agent_made_it_and_a_question_for_one_of_several_calls_says_so() {
    let registry = ToolRegistry::new();
    let who = async |_: Nothing, context: ToolContext| {
        Ok::<_, String>(json!(context.agent().map(ToString::to_string)))
    };
    registry.register(FunctionTool::new("who", "Says who.", who).kind(Kind::Read)).unwrap();
    let sink = Arc::new(MemorySink::default());
    let recorder = Recorder::new("run", sink, Arc::new(SystemClock)).child("own", "worker");
    let (builder, _) = builder();
    let executor = builder.view(ToolView::of(registry)).recorder(recorder).build();
    let result = executor.execute(ToolCall::new("c", "who", json!({}))).await;
    assert_eq!(result.value(), Some(&json!("main/worker")));
    assert_eq!(ToolContext::builder("t").build().agent(), None);

    let plain = inquiry("?");
    assert_eq!(plain.whole_reason(), "the server wants to know");
    assert_eq!(plain.clone().recorded_for("the server wants to know"), plain);
    let calls = vec!["a of main/worker".to_owned(), "b".to_owned()];
    let several = Inquiry { calls, ..plain.clone() };
    let whole = "the server wants to know (for one of its calls: a of main/worker, b)";
    assert_eq!(several.whole_reason(), whole);
    assert_eq!(plain.recorded_for(whole), several, "as it is read again");
}

/// Regression: a password that is too short to be known by its shape was in the result, and in the stream.
#[tokio::test]
async fn a_short_password_that_a_call_repeats_is_told_to_nobody() {
    let registry = ToolRegistry::new();
    let ask = async |_: Nothing, context: ToolContext| {
        let secret = json!({ "type": "string", "format": "password" });
        let schema = json!({ "properties": { "word": secret } });
        let heard =
            context.inquire(Inquiry { wanted: Wanted::Form { schema }, ..inquiry("?") }).await;
        let Answer::Yes(consent) = heard else { return Err("nobody".to_owned()) };
        Ok(json!({ "heard": consent.arguments, "text": "the first of many" }))
    };
    registry.register(FunctionTool::new("log_in", "Logs in.", ask).kind(Kind::Read)).unwrap();
    let approver = ask_with(async |_| Answer::with_arguments(json!({ "word": "first" })));
    let (builder, sink) = builder();
    let executor = builder.view(ToolView::of(registry)).approver(approver).build();
    let result = executor.execute(ToolCall::new("c", "log_in", json!({}))).await;
    let told = json!({ "heard": { "word": "[secret word]" }, "text": "the first of many" });
    assert_eq!(result.value(), Some(&told));
    let all = serde_json::to_string(&sink.events()).unwrap();
    assert!(all.contains("[secret word]") && !all.contains("\"first"), "{all}");
}

/// Regression: it was hidden in the result, and stood in the next question and in what was told meanwhile.
#[tokio::test]
async fn a_password_that_a_call_repeats_in_its_next_question_is_told_to_nobody() {
    let registry = ToolRegistry::new();
    let ask = async |_: Nothing, context: ToolContext| {
        let secret = json!({ "type": "string", "format": "password" });
        let wanted = Wanted::Form { schema: json!({ "properties": { "word": secret } }) };
        let first = Inquiry { wanted: wanted.clone(), ..inquiry("?") };
        let Answer::Yes(_) = context.inquire(first).await else { return Err("no".to_owned()) };
        context.progress().text("tried \"first\"\n");
        let problem = Some("word: \"first\" is wrong".to_owned());
        context.inquire(Inquiry { wanted, problem, ..inquiry("Not \"first\", what then?") }).await;
        Ok("the first of many")
    };
    registry.register(FunctionTool::new("log_in", "Logs in.", ask).kind(Kind::Read)).unwrap();
    let approver = ask_with(async |question: Question| {
        assert!(!question.description.contains("\"first"), "{}", question.description);
        Answer::with_arguments(json!({ "word": "first" }))
    });
    let (builder, sink) = builder();
    let executor = builder.view(ToolView::of(registry)).approver(approver).build();
    let result = executor.execute(ToolCall::new("c", "log_in", json!({}))).await;
    assert_eq!(result.text(), "the first of many");
    let all = serde_json::to_string(&sink.events()).unwrap();
    for part in
        ["Not \\\"[secret word]\\\", what", "word: \\\"[secret word]", "tried \\\"[secret word]"]
    {
        assert!(all.contains(part), "{part}: {all}");
    }
    assert!(!all.contains("\\\"first"), "{all}");
}

#[tokio::test]
async fn where_nobody_is_the_call_goes_on_without() {
    let (heard, events) = asked_with(Answer::Nobody).await;
    assert_eq!(heard, json!("nobody"));
    assert_balanced(&events);
    let no = |event: &Arc<Event>| {
        matches!(&event.body, EventBody::InquiryAnswered { accepted: false, message, .. }
            if message.as_deref() == Some("nobody can be asked here"))
    };
    assert!(events.iter().any(no));
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_stands_still_while_a_person_thinks() {
    let thinks = ask_with(async |_| {
        tokio::time::sleep(Duration::from_hours(1)).await;
        Answer::yes()
    });
    let executor = builder().0.approver(thinks).build();
    let result = executor.execute(greet()).await;
    assert!(result.success(), "{:?}", result.error());
}

#[tokio::test(start_paused = true)]
async fn two_questions_of_one_call_come_one_after_the_other() {
    let open = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&open);
    let approver = ask_with(move |question: Question| {
        let open = Arc::clone(&counted);
        async move {
            assert_eq!(open.fetch_add(1, Ordering::AcqRel), 0, "one at a time");
            tokio::time::sleep(Duration::from_secs(9)).await;
            open.fetch_sub(1, Ordering::AcqRel);
            let asked = question.inquiry.unwrap().message.clone();
            Answer::with_arguments(json!({ "name": asked }))
        }
    });
    let executor = builder().0.approver(approver).build();
    let result = executor.execute(ToolCall::new("c", "both", json!({}))).await;
    assert_eq!(result.value(), Some(&json!([{ "name": "First?" }, { "name": "Second?" }])));
}

#[tokio::test]
async fn hooks_are_told_of_an_inquiry_and_a_guard_may_refuse_it() {
    for refuses in [false, true] {
        let told = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&told);
        let hook = FunctionHook::new("h", [Moment::Approval], move |_, event: Event| {
            assert_eq!(Moment::tool(&event.body), Some("greet"));
            assert!(matches!(event.body, EventBody::InquiryAsked { .. }));
            counted.fetch_add(1, Ordering::AcqRel);
            let deny = Verdict::Deny { reason: "not on Mondays".into() };
            std::future::ready(Ok(if refuses { deny } else { Verdict::Go }))
        });
        let approver = ask_with(move |_| {
            assert!(!refuses, "nobody is asked");
            std::future::ready(Answer::yes())
        });
        let (builder, sink) = builder();
        let hooks = Hooks::default().and(hook.guarding());
        let result = builder.approver(approver).hooks(hooks).build().execute(greet()).await;
        assert_eq!(told.load(Ordering::Acquire), 1);
        let heard = result.value().unwrap().to_string();
        assert_eq!(heard.contains("not on Mondays"), refuses, "{heard}");
        assert_balanced(&sink.events());
    }
}

#[tokio::test]
async fn a_call_in_the_middle_of_its_work_cannot_be_parked() {
    let (builder, sink) = builder();
    let limits = Limits { unanswered: Unanswered::Park, ..Limits::default() };
    let result = builder.approver(NobodyToAsk).limits(limits).build().execute(greet()).await;
    assert_eq!(result.value(), Some(&json!("nobody")));
    assert_balanced(&sink.events());
}

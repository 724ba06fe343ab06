//! Hooks that want a person to be asked.

use std::sync::{Arc, Mutex};

use convoke_core::hook::Moment;
use convoke_core::policy::RuleSpec;
use convoke_core::{Event, EventBody, Kind, ToolCall};
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    Answer, Authorizer, FunctionHook, FunctionTool, Hook, Hooks, KindAuthorizer, Permission,
    Question, ToolContext, ToolExecutor, Verdict, ask_with,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::support::{Bench, assert_balanced, bench, empty, types};

#[derive(Deserialize, JsonSchema)]
struct Size {
    size: u32,
}

type Questions = Arc<Mutex<Vec<Question>>>;

/// An executor whose questions are all answered in one way, and kept.
fn with(
    hooks: Hooks,
    authorizer: impl Authorizer + 'static,
    answer: Answer,
) -> (ToolExecutor, Bench, Questions) {
    let bench = bench(empty());
    let grow = async |input: Size, _: ToolContext| Ok::<_, String>(input.size);
    bench.registry.register(FunctionTool::new("grow", "Grows.", grow).kind(Kind::Edit)).unwrap();
    let questions = Questions::default();
    let kept = Arc::clone(&questions);
    let approver = ask_with(move |question: Question| {
        kept.lock().unwrap().push(question);
        std::future::ready(answer.clone())
    });
    let builder = bench.builder.clone().authorizer(authorizer).approver(approver);
    (builder.hooks(hooks).build(), bench, questions)
}

fn saying(name: &str, verdict: Verdict) -> FunctionHook<impl Fn(Moment, Event) -> Said> {
    FunctionHook::new(name, [Moment::BeforeTool], move |_, _| {
        std::future::ready(Ok(verdict.clone()))
    })
}

type Said = std::future::Ready<Result<Verdict, String>>;

fn asks() -> impl Hook + 'static {
    saying("careful", Verdict::Ask { reason: "it is Friday".into() }).guarding()
}

fn grow(size: u32) -> ToolCall {
    ToolCall::new("c", "grow", json!({ "size": size }))
}

#[tokio::test]
async fn what_policy_allows_is_asked_about_if_a_guard_wants_it() {
    let (executor, bench, questions) = with(Hooks::default().and(asks()), AllowAll, Answer::yes());
    assert_eq!(executor.execute(grow(3)).await.value(), Some(&json!(3)));
    let question = questions.lock().unwrap().remove(0);
    assert_eq!(question.reason, "the hook `careful` asks: it is Friday");
    assert_eq!((question.rules.len(), &*question.arguments), (0, &json!({ "size": 3 })));
    let events = bench.sink.events();
    assert_eq!(
        types(&events)[..5],
        [
            "tool_call_requested",
            "policy_decision",
            "hook_acted",
            "approval_asked",
            "approval_answered"
        ]
    );
    assert_balanced(&events);

    let (executor, bench, _) = with(Hooks::default().and(asks()), AllowAll, Answer::no());
    assert!(!executor.execute(grow(3)).await.success());
    assert_balanced(&bench.sink.events());
    let (executor, _, _) = with(Hooks::default().and(asks()), AllowAll, Answer::Nobody);
    let message = executor.execute(grow(3)).await.error().unwrap().message.clone();
    assert!(message.contains("it is Friday, and nobody can be asked here"), "{message}");
}

#[tokio::test]
async fn what_policy_denies_is_not_asked_about() {
    let deny = KindAuthorizer::default().with(Kind::Edit, Permission::Deny);
    let (executor, _, questions) = with(Hooks::default().and(asks()), deny, Answer::yes());
    assert!(!executor.execute(grow(3)).await.success());
    assert_eq!(questions.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn both_reasons_are_told_where_policy_asks_too() {
    let ask = KindAuthorizer::default().with(Kind::Edit, Permission::Ask);
    let (executor, _, questions) = with(Hooks::default().and(asks()), ask, Answer::yes());
    assert!(executor.execute(grow(3)).await.success());
    let question = questions.lock().unwrap().remove(0);
    assert!(question.reason.ends_with("; the hook `careful` asks: it is Friday"), "{question:?}");
    assert_eq!(question.rules, [], "no rule keeps a hook from asking");
}

/// A grant answers what waits for an answer where policy asks; a hook asks on its own account.
#[tokio::test]
async fn a_rule_that_was_granted_does_not_answer_for_the_person_a_hook_wants() {
    let always = Answer::always(vec![RuleSpec::tool(Permission::Allow, "grow")]);
    let (executor, _, questions) = with(Hooks::default().and(asks()), AllowAll, always);
    for count in 1..=3 {
        assert!(executor.execute(grow(3)).await.success());
        assert_eq!(questions.lock().unwrap().len(), count);
    }
}

#[tokio::test]
async fn nobody_is_asked_twice_about_what_they_wrote() {
    let other = Answer::with_arguments(json!({ "size": 9 }));
    let (executor, bench, questions) = with(Hooks::default().and(asks()), AllowAll, other);
    assert_eq!(executor.execute(grow(3)).await.value(), Some(&json!(9)));
    assert_eq!(questions.lock().unwrap().len(), 1);
    assert_balanced(&bench.sink.events());
}

#[tokio::test]
async fn a_guard_that_changes_arguments_does_not_get_around_one_that_asks() {
    let larger =
        || saying("larger", Verdict::Change { arguments: json!({ "size": 50 }) }).guarding();
    for hooks in
        [Hooks::default().and(asks()).and(larger()), Hooks::default().and(larger()).and(asks())]
    {
        let (executor, _, questions) = with(hooks, AllowAll, Answer::no());
        assert!(!executor.execute(grow(3)).await.success());
        let question = questions.lock().unwrap().remove(0);
        assert_eq!(*question.arguments, json!({ "size": 50 }), "what would run is shown");
    }
}

#[tokio::test]
async fn one_that_only_watches_asks_nobody() {
    let watcher = saying("watcher", Verdict::Ask { reason: "?".into() });
    let hooks = Hooks::default().and(watcher);
    let (executor, bench, questions) = with(hooks, AllowAll, Answer::no());
    assert!(executor.execute(grow(3)).await.success());
    assert_eq!(questions.lock().unwrap().len(), 0);
    let ignored = |event: &Arc<Event>| matches!(&event.body, EventBody::HookActed { action, .. } if action == "ignored");
    assert!(bench.sink.events().iter().any(ignored));
}

#[tokio::test]
async fn where_nobody_can_be_asked_it_does_not_happen() {
    let every = FunctionHook::new("h", [Moment::BeforeModel, Moment::Approval], |_, _| {
        std::future::ready(Ok(Verdict::Ask { reason: "why now".into() }))
    });
    let hooks = Hooks::default().and(every.guarding());
    let (executor, ..) = with(Hooks::default(), AllowAll, Answer::yes());
    let body = EventBody::Notice { message: "any event".into() };
    let told = hooks.tell(Moment::BeforeModel, None, &body, executor.recorder()).await;
    assert!(told.unwrap_err().contains("not possible here: why now"));
    let told = hooks.tell(Moment::Approval, None, &body, executor.recorder()).await;
    assert_eq!(told, Ok(()), "a person is asked already");
}

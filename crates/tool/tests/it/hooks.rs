//! Hooks: what they are told, what they may decide, and what happens when they fail.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke_core::hook::Moment;
use convoke_core::{Event, EventBody, Kind, ToolCall};
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    Answer, FunctionHook, FunctionTool, Hook, Hooks, KindAuthorizer, Limits, Permission,
    ToolContext, ToolExecutor, Unanswered, Verdict, ask_with,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Bench, assert_balanced, bench, empty, types};

#[derive(Deserialize, JsonSchema)]
struct Size {
    size: u32,
}

fn grow() -> FunctionTool<Size> {
    FunctionTool::new("grow", "Grows.", async |input: Size, _: ToolContext| {
        Ok::<_, String>(input.size)
    })
    .kind(Kind::Edit)
}

fn with(hooks: Hooks) -> (ToolExecutor, Bench) {
    let bench = bench(empty());
    bench.registry.register(grow()).unwrap();
    (bench.builder.clone().hooks(hooks).build(), bench)
}

fn call(size: impl Into<Value>) -> ToolCall {
    let size: Value = size.into();
    ToolCall::new("c", "grow", json!({ "size": size }))
}

fn before(
    verdict: impl Fn() -> Result<Verdict, String> + Send + Sync + 'static,
) -> impl Hook + 'static {
    FunctionHook::new("h", [Moment::BeforeTool], move |_, _| std::future::ready(verdict()))
        .guarding()
}

fn deny() -> Verdict {
    Verdict::Deny { reason: "not on Mondays".into() }
}

#[tokio::test]
async fn a_guard_may_refuse_and_the_model_learns_why() {
    let (executor, bench) = with(Hooks::default().and(before(|| Ok(deny()))));
    for result in [
        executor.execute(call(1)).await,
        executor
            .execute_batch(vec![ToolCall::new("d", "grow", json!({ "size": 1 }))])
            .await
            .remove(0),
    ] {
        let message = &result.error().unwrap().message;
        assert!(message.contains("the hook `h` refused it: not on Mondays"), "{message}");
    }
    let events = bench.sink.events();
    assert_eq!(
        types(&events)[..4],
        ["tool_call_requested", "policy_decision", "hook_acted", "tool_call_denied"]
    );
    assert_balanced(&events);
}

#[tokio::test]
async fn changed_arguments_are_checked_and_decided_about_from_the_start() {
    let change = |arguments: Value| {
        Hooks::default().and(before(move || Ok(Verdict::Change { arguments: arguments.clone() })))
    };
    let (executor, bench) = with(change(json!({ "size": 7 })));
    let result = executor.execute(call(1)).await;
    assert_eq!(result.value(), Some(&json!(7)));
    assert!(
        format!("{:?}", result.llm_content).contains("A hook changed the arguments of this call")
    );
    assert_balanced(&bench.sink.events());

    let (executor, _) = with(change(json!({ "size": "many" })));
    let message = executor.execute(call(1)).await.error().unwrap().message.clone();
    assert!(message.contains("size"), "it is validated: {message}");

    let bench = self::bench(empty());
    bench.registry.register(grow()).unwrap();
    let executor = bench
        .builder
        .authorizer(KindAuthorizer::default().with(Kind::Edit, Permission::Ask))
        .approver(ask_with(async |question| {
            assert_eq!(question.arguments["size"], 7, "the person sees what would run");
            Answer::no()
        }))
        .hooks(change(json!({ "size": 7 })))
        .build();
    assert!(!executor.execute(call(1)).await.success(), "policy still asks");
}

/// A guard that puts a number in the place of a smaller one.
fn at_least(least: u64) -> impl Hook + 'static {
    FunctionHook::new("least", [Moment::BeforeTool], move |_, event: Event| async move {
        let EventBody::ToolCallRequested { params, .. } = event.body else { unreachable!() };
        let size = params["size"].as_u64().unwrap().max(least);
        Ok(Verdict::Change { arguments: json!({ "size": size }) })
    })
    .guarding()
}

#[tokio::test]
async fn each_guard_sees_what_the_one_before_left() {
    let (executor, _) = with(Hooks::default().and(at_least(5)).and(at_least(3)).and(at_least(7)));
    assert_eq!(executor.execute(call(1)).await.value(), Some(&json!(7)));
}

#[tokio::test]
async fn no_guard_is_got_around_by_one_that_comes_after_it() {
    let small = FunctionHook::new("small", [Moment::BeforeTool], |_, event: Event| async move {
        let EventBody::ToolCallRequested { params, .. } = event.body else { unreachable!() };
        let large = params["size"].as_u64().unwrap() > 10;
        let deny = Verdict::Deny { reason: "too large".into() };
        Ok(if large { deny } else { Verdict::Go })
    });
    let (executor, bench) = with(Hooks::default().and(small.guarding()).and(at_least(50)));
    let message = executor.execute(call(1)).await.error().unwrap().message.clone();
    assert!(message.contains("`small` refused it: too large"), "{message}");
    assert_balanced(&bench.sink.events());

    let never_content = || {
        FunctionHook::new("more", [Moment::BeforeTool], |_, event: Event| async move {
            let EventBody::ToolCallRequested { params, .. } = event.body else { unreachable!() };
            let size = params["size"].as_u64().unwrap() + 1;
            Ok(Verdict::Change { arguments: json!({ "size": size }) })
        })
        .guarding()
    };
    let (executor, _) = with(Hooks::default().and(never_content()));
    let message = executor.execute(call(1)).await.error().unwrap().message.clone();
    assert!(message.contains("do not agree"), "{message}");
}

#[tokio::test]
async fn guards_judge_what_a_person_wrote_too() {
    let bench = bench(empty());
    bench.registry.register(grow()).unwrap();
    let small = FunctionHook::new("small", [Moment::BeforeTool], |_, event: Event| async move {
        let EventBody::ToolCallRequested { params, .. } = event.body else { unreachable!() };
        let deny = Verdict::Deny { reason: "too large".into() };
        Ok(if params["size"] == 99 { deny } else { Verdict::Go })
    });
    let executor = bench
        .builder
        .authorizer(KindAuthorizer::default().with(Kind::Edit, Permission::Ask))
        .approver(ask_with(async |_| Answer::with_arguments(json!({ "size": 99 }))))
        .hooks(Hooks::default().and(small.guarding()))
        .build();
    let message = executor.execute(call(1)).await.error().unwrap().message.clone();
    assert!(message.contains("too large"), "{message}");
    assert_balanced(&bench.sink.events());
}

#[tokio::test]
async fn a_hook_that_breaks_down_before_it_is_asked_stays_contained() {
    #[derive(Debug)]
    struct Broken;
    #[async_trait::async_trait]
    impl Hook for Broken {
        fn name(&self) -> &'static str {
            "broken"
        }
        fn wants(&self, _: Moment, event: &Event) -> bool {
            assert!(event.call.is_none(), "broken");
            true
        }
        fn guards(&self) -> bool {
            false
        }
        async fn call(&self, _: Moment, _: &Event) -> Result<Verdict, String> {
            Ok(Verdict::Go)
        }
    }
    let (executor, bench) = with(Hooks::default().and(Broken));
    assert!(!executor.execute(call(1)).await.success(), "it may have been a guard");
    assert_balanced(&bench.sink.events());
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_fails_closes_and_a_watcher_that_fails_does_not() {
    type Failing = fn() -> Hooks;
    let guards: [(Failing, &str); 3] = [
        (|| Hooks::default().and(before(|| Err("no disk".into()))), "no disk"),
        (|| Hooks::default().and(before(|| panic!("oh"))), "it broke down"),
        (
            || {
                let never = |_, _| std::future::pending::<Result<Verdict, String>>();
                let slow = FunctionHook::new("h", [Moment::BeforeTool], never).guarding();
                Hooks::default().and(slow.timeout(Duration::from_millis(20)))
            },
            "longer than 20 ms",
        ),
    ];
    for (hooks, problem) in guards {
        let (executor, bench) = with(hooks());
        let message = executor.execute(call(1)).await.error().unwrap().message.clone();
        assert!(
            message.contains("that guards it failed") && message.contains(problem),
            "{message}"
        );
        assert_balanced(&bench.sink.events());
    }
    for verdict in [Err("no disk".to_owned()), Ok(deny())] {
        let watcher = FunctionHook::new("w", [Moment::BeforeTool], move |_, _| {
            std::future::ready(verdict.clone())
        });
        let (executor, bench) = with(Hooks::default().and(watcher));
        assert!(executor.execute(call(1)).await.success());
        let acted = bench.sink.events().iter().find_map(|event| match &event.body {
            EventBody::HookActed { action, .. } => Some(action.clone()),
            _ => None,
        });
        assert!(matches!(acted.as_deref(), Some("failed" | "ignored")), "{acted:?}");
    }
}

type Told = Arc<Mutex<Vec<(Moment, Event)>>>;

/// Keeps what it is told.
fn watching(moments: &[Moment]) -> (Hooks, Told) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&seen);
    let hook = FunctionHook::new("w", moments.to_vec(), move |moment, event| {
        keeps.lock().unwrap().push((moment, event));
        std::future::ready(Ok(Verdict::Go))
    });
    (Hooks::default().and(hook), seen)
}

#[tokio::test]
async fn watchers_are_told_of_every_end_and_of_questions() {
    let (hooks, seen) = watching(&[Moment::AfterTool, Moment::Approval]);
    let bench = bench(empty());
    bench.registry.register(grow()).unwrap();
    let asks = KindAuthorizer::default().with(Kind::Edit, Permission::Ask);
    let builder = bench.builder.clone().hooks(hooks);
    builder.clone().authorizer(AllowAll).build().execute(call(1)).await;
    builder.clone().authorizer(AllowAll).build().execute(call("x")).await;
    builder.clone().authorizer(asks.clone()).build().execute(call(1)).await;
    let limits = Limits { unanswered: Unanswered::Park, ..Limits::default() };
    builder.authorizer(asks).limits(limits).build().execute(call(1)).await;
    let seen: Vec<String> = seen
        .lock()
        .unwrap()
        .iter()
        .map(|(moment, event)| {
            let body = serde_json::to_value(&event.body).unwrap();
            format!("{moment} {}", body["type"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        seen,
        [
            "after_tool tool_call_completed",
            "after_tool tool_call_failed",
            "approval approval_asked",
            "after_tool tool_call_denied",
            "approval approval_asked",
        ],
        "a call that waits is not over"
    );
}

#[tokio::test]
async fn a_guard_may_refuse_before_a_person_is_asked() {
    let guard = FunctionHook::new("h", [Moment::Approval], |_, _| std::future::ready(Ok(deny())));
    let bench = bench(empty());
    bench.registry.register(grow()).unwrap();
    let executor = bench
        .builder
        .authorizer(KindAuthorizer::default().with(Kind::Edit, Permission::Ask))
        .approver(ask_with(async |_| panic!("nobody is asked")))
        .hooks(Hooks::default().and(guard.guarding()))
        .build();
    let message = executor.execute(call(1)).await.error().unwrap().message.clone();
    assert!(message.contains("refused it: not on Mondays"), "{message}");
    assert_balanced(&bench.sink.events());
}

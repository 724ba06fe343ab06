//! One call: every way it can go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use convoke_core::{CallOutcome, Category, ErrorKind, Event, Kind, mission};
use convoke_tool::{
    Answer, Approver, CallOptions, Decided, EventSink, FunctionTool, KindAuthorizer, Limits,
    ManualClock, Permission, Question, RecordError, Recorder, Roots, ToolContext, ToolError,
    ToolExecutor, ToolOutput, ToolRegistry, ToolView,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Nothing, assert_balanced, bench, call, empty, types, wait};

#[tokio::test]
async fn a_good_call_is_requested_decided_started_and_completed() {
    let bench = bench(empty());
    bench.registry.register(wait()).unwrap();
    let result = bench.builder.build().execute(call("wait", json!({ "millis": 0 }))).await;
    assert!(result.success());
    assert_eq!((result.value(), result.text().as_str()), (Some(&json!(0)), "0"));
    let events = bench.sink.events();
    assert_eq!(
        types(&events),
        ["tool_call_requested", "policy_decision", "tool_call_started", "tool_call_completed"]
    );
    assert_eq!(mission::tool_event(&events[0]).unwrap()["type"], "TOOL_CALL_REQUESTED");
    assert_eq!(mission::tool_event(&events[3]).unwrap()["payload"]["result"], 0);
    assert_balanced(&events);
}

#[tokio::test]
async fn an_unknown_tool_and_wrong_arguments_are_told_apart() {
    let bench = bench(empty());
    bench.registry.register(wait()).unwrap();
    let executor = bench.builder.build();
    let unknown = executor.execute(call("wayt", json!({}))).await;
    assert_eq!(unknown.error_kind(), Some(ErrorKind::NotFound));
    assert_eq!(unknown.error().unwrap().message, "Tool \"wayt\" not found; did you mean `wait`?");
    let wrong =
        executor.execute(convoke_core::ToolCall::new("c2", "wait", json!({ "milis": 3 }))).await;
    assert_eq!(wrong.error_kind(), Some(ErrorKind::Validation));
    assert!(wrong.text().contains("`millis` is missing"), "{}", wrong.text());
    assert_eq!(types(&bench.sink.events()).len(), 4);
    assert_balanced(&bench.sink.events());
    let stats = bench.registry.stats();
    assert_eq!((stats.call_stats["wait"].count, stats.call_stats["wait"].failures), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_ended_and_says_how_long_it_had() {
    let bench = bench(empty());
    bench.registry.register(wait()).unwrap();
    let result = bench.builder.build().execute(call("wait", json!({ "millis": 60_000 }))).await;
    assert_eq!(result.error().unwrap().message, "Tool execution timed out after 30000ms");
    assert!(result.duration.get() >= Duration::from_secs(30));
    assert_balanced(&bench.sink.events());
}

#[tokio::test(start_paused = true)]
async fn the_callers_wish_goes_before_every_other_time_limit() {
    let bench = bench(empty());
    bench.registry.register(wait().timeout(Duration::from_secs(5))).unwrap();
    let options = CallOptions::timeout(Duration::from_millis(10));
    let result = bench
        .builder
        .build()
        .execute_with(call("wait", json!({ "millis": 60_000 })), options)
        .await;
    assert_eq!(result.error().unwrap().message, "Tool execution timed out after 10ms");
}

#[tokio::test(start_paused = true)]
async fn what_there_was_before_the_end_of_time_is_kept() {
    let bench = bench(empty());
    let polite = FunctionTool::new(
        "polite",
        "Stops when asked.",
        async |_: Nothing, context: ToolContext| {
            context.cancelled().await;
            Ok::<_, String>(ToolOutput::new(json!({ "done": "half" })))
        },
    );
    let stubborn =
        FunctionTool::new("stubborn", "Never stops.", async |_: Nothing, context: ToolContext| {
            context.progress().text("I got ");
            context.progress().text("this far");
            std::future::pending::<()>().await;
            Ok::<_, String>(())
        });
    bench.registry.register(polite).unwrap();
    bench.registry.register(stubborn).unwrap();
    let executor = bench.builder.build();
    let result = executor.execute(call("polite", json!({}))).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    assert!(
        matches!(&result.outcome, CallOutcome::Failed { partial: Some(value), .. } if value == &json!({ "done": "half" }))
    );
    let result = executor.execute(convoke_core::ToolCall::new("c2", "stubborn", json!({}))).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    assert!(result.text().ends_with("I got this far"), "{}", result.text());
}

#[tokio::test]
async fn a_panic_is_a_failed_result_and_the_next_call_works() {
    let bench = bench(empty());
    let broken = FunctionTool::new("broken", "Breaks.", async |_: Nothing, _: ToolContext| {
        assert_eq!(1, 2, "arithmetic failed");
        Ok::<_, String>(())
    });
    bench.registry.register(broken).unwrap();
    bench.registry.register(wait()).unwrap();
    let executor = bench.builder.build();
    let result = executor.execute(call("broken", json!({}))).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Failed));
    assert!(result.text().contains("arithmetic failed"), "{}", result.text());
    let next = convoke_core::ToolCall::new("c2", "wait", json!({ "millis": 0 }));
    assert!(executor.execute(next).await.success());
    assert_balanced(&bench.sink.events());
}

struct BreaksEarly(convoke_core::ToolSpec);

impl convoke_tool::Tool for BreaksEarly {
    fn spec(&self) -> &convoke_core::ToolSpec {
        &self.0
    }

    fn prepare(
        &self,
        _: serde_json::Value,
    ) -> Result<Box<dyn convoke_tool::Invocation>, ToolError> {
        assert_eq!(1, 2, "broken from the start");
        Err(ToolError::failed("never reached"))
    }
}

#[tokio::test]
async fn a_panic_while_preparing_is_a_failed_result_too() {
    let bench = bench(empty());
    let spec = convoke_core::ToolSpec::new("early", "Breaks.", Kind::Think);
    bench.registry.register(BreaksEarly(spec)).unwrap();
    let result = bench.builder.build().execute(call("early", json!({}))).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Failed));
    assert!(result.text().contains("broken from the start"), "{}", result.text());
    assert_balanced(&bench.sink.events());
}

#[tokio::test]
async fn a_blocking_tool_is_still_timed_out() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let bench = bench(empty());
    let blocking =
        FunctionTool::new("blocking", "Blocks its thread.", move |_: Nothing, _: ToolContext| {
            let held = Arc::clone(&held);
            async move {
                held.lock().unwrap().recv().ok();
                Ok::<_, String>(())
            }
        });
    bench.registry.register(blocking).unwrap();
    let limits = Limits { stop_grace: Duration::ZERO, ..Limits::default() };
    let executor = bench.builder.limits(limits).build();
    let options = CallOptions::timeout(Duration::from_millis(20));
    let result = runtime
        .spawn(async move { executor.execute_with(call("blocking", json!({})), options).await });
    assert_eq!(result.await.unwrap().error_kind(), Some(ErrorKind::Timeout));
    drop(release);
    runtime.shutdown_background();
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_run_ends_its_calls() {
    let token = CancellationToken::new();
    let bench = bench(empty().cancellation(token.clone()));
    bench.registry.register(wait()).unwrap();
    let executor = bench.builder.build();
    let running = executor.execute(call("wait", json!({ "millis": 9_000 })));
    let stop = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        token.cancel();
    };
    let (result, ()) = tokio::join!(running, stop);
    assert_eq!(result.error_kind(), Some(ErrorKind::Cancelled));
    let late =
        executor.execute(convoke_core::ToolCall::new("c2", "wait", json!({ "millis": 1 }))).await;
    assert_eq!(late.error_kind(), Some(ErrorKind::Cancelled));
    assert_balanced(&bench.sink.events());
}

#[tokio::test(start_paused = true)]
async fn a_call_nobody_waits_for_is_recorded_as_cancelled() {
    let bench = bench(empty());
    bench.registry.register(wait()).unwrap();
    let executor = bench.builder.build();
    let running = executor.execute(call("wait", json!({ "millis": 9_000 })));
    assert!(tokio::time::timeout(Duration::from_secs(1), running).await.is_err());
    assert_eq!(types(&bench.sink.events()).last().unwrap(), "tool_call_failed");
    let call = convoke_core::ToolCall::new("c2", "wait", json!({ "millis": 1 }));
    drop(executor.prepare(call, CallOptions::default()).await);
    assert_balanced(&bench.sink.events());
    assert_eq!(bench.registry.stats().call_stats["wait"].failures, 2);
}

#[derive(Deserialize, JsonSchema)]
struct PathArgument {
    path: String,
}

#[tokio::test]
async fn a_path_outside_the_roots_is_denied_whatever_the_authorizer_says() {
    let directory = tempfile::tempdir().unwrap();
    let ran = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ran);
    let touch =
        FunctionTool::new("touch", "Touches.", move |argument: PathArgument, _: ToolContext| {
            seen.store(true, Ordering::Relaxed);
            async move { Ok::<_, String>(argument.path) }
        })
        .writes("path");
    let bench = bench(empty().roots(Roots::open([directory.path()]).unwrap()));
    bench.registry.register(touch).unwrap();
    let result =
        bench.builder.build().execute(call("touch", json!({ "path": "/etc/passwd" }))).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Permission));
    assert!(result.error().unwrap().message.starts_with("Permission denied: Access denied"));
    assert!(!ran.load(Ordering::Relaxed));
    assert_eq!(types(&bench.sink.events()).last().unwrap(), "tool_call_denied");
}

#[derive(Debug)]
struct Says(Answer);

#[async_trait]
impl Approver for Says {
    async fn ask(&self, question: Question) -> Answer {
        assert_eq!((question.tool_name.as_str(), question.kind), ("wait", Kind::Read));
        self.0.clone()
    }
}

/// gemini-cli 4.18: nobody to ask is a no.
#[tokio::test]
async fn asking_leads_to_yes_no_or_nobody() {
    for (answer, says) in [
        (Answer::yes(), None),
        (Answer::no(), Some("Permission denied: the user said no")),
        (Answer::no_because("use ls"), Some("Permission denied: the user said no: use ls")),
        (
            Answer::Nobody,
            Some(
                "Permission denied: tools of kind `read` need a person's consent, and nobody can be asked here",
            ),
        ),
    ] {
        let bench = bench(empty());
        bench.registry.register(wait()).unwrap();
        let executor = bench
            .builder
            .authorizer(KindAuthorizer::default().with(Kind::Read, Permission::Ask))
            .approver(Says(answer))
            .build();
        let result = executor.execute(call("wait", json!({ "millis": 0 }))).await;
        assert_eq!(result.error().map(|error| error.message.as_str()), says);
        assert_balanced(&bench.sink.events());
        let names = types(&bench.sink.events());
        assert_eq!(names[2..4], ["approval_asked", "approval_answered"]);
    }
}

#[tokio::test]
async fn the_careful_default_denies_programs_and_asks_about_changes() {
    let registry = ToolRegistry::new();
    let tool = |name: &str, kind| {
        FunctionTool::new(name, "Acts.", async |_: Nothing, _: ToolContext| Ok::<_, String>(()))
            .kind(kind)
    };
    registry.register(tool("look", Kind::Search)).unwrap();
    registry.register(tool("change", Kind::Edit)).unwrap();
    registry.register(tool("run", Kind::Execute)).unwrap();
    let executor = ToolExecutor::builder(ToolView::of(registry), empty().build()).build();
    let kind = async |name: &str| executor.execute(call(name, json!({}))).await.error_kind();
    assert_eq!(kind("look").await, None);
    assert_eq!(kind("change").await, Some(ErrorKind::Permission));
    assert_eq!(kind("run").await, Some(ErrorKind::Permission));
    let decided = executor.prepare(call("change", json!({})), CallOptions::default()).await;
    assert!(matches!(decided, Decided::Ask(prepared) if prepared.question().is_some()));
}

#[tokio::test]
async fn too_much_output_is_cut_for_the_model_and_said() {
    let bench = bench(empty());
    let long = FunctionTool::new("long", "Says much.", async |_: Nothing, _: ToolContext| {
        Ok::<_, String>("line\n".repeat(100_000))
    });
    bench.registry.register(long.category(Category::Data)).unwrap();
    let result = bench.builder.build().execute(call("long", json!({}))).await;
    assert_eq!(result.value().unwrap().as_str().unwrap().len(), 500_000, "the value is whole");
    let truncated = result.truncated.unwrap();
    assert_eq!(truncated.original_bytes, 500_000);
    assert!(truncated.kept_bytes <= 66_000, "{truncated:?}");
    assert!(result.text().contains("bytes are not shown"));
    let events = bench.sink.events();
    assert!(serde_json::to_string(&*events[3]).unwrap().len() < 90_000, "events stay small");
}

#[tokio::test]
async fn errors_of_any_type_keep_their_kind_and_cause() {
    let bench = bench(empty());
    let typed = FunctionTool::new("typed", "Fails.", async |_: Nothing, _: ToolContext| {
        Err::<(), _>(ToolError::unavailable("the server is down"))
    });
    let other = FunctionTool::new("other", "Fails.", async |_: Nothing, _: ToolContext| {
        Err::<(), _>(std::io::Error::other("the disk is on fire"))
    });
    bench.registry.register(typed).unwrap();
    bench.registry.register(other).unwrap();
    let executor = bench.builder.build();
    let result = executor.execute(call("typed", json!({}))).await;
    assert_eq!(result.text(), "Error (unavailable): the server is down");
    let result = executor.execute(convoke_core::ToolCall::new("c2", "other", json!({}))).await;
    assert_eq!(result.text(), "Error (failed): the disk is on fire");
}

#[derive(Debug)]
struct FailsAt(AtomicUsize);

impl EventSink for FailsAt {
    fn append(&self, _: &Arc<Event>) -> Result<(), RecordError> {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 0 { Err(RecordError::new("disk full")) } else { Ok(()) }
    }

    fn stream(&self, _: &Arc<Event>) {}
}

/// gemini-cli 4.18: where nobody can be told of a call, it is not made.
#[tokio::test]
async fn nothing_runs_that_cannot_be_recorded() {
    for accepted in 0..3 {
        let ran = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ran);
        let act = FunctionTool::new("act", "Acts.", move |_: Nothing, _: ToolContext| {
            seen.store(true, Ordering::Relaxed);
            async { Ok::<_, String>(()) }
        });
        let bench = bench(empty());
        bench.registry.register(act).unwrap();
        let sink = Arc::new(FailsAt(AtomicUsize::new(accepted)));
        let recorder = Recorder::new("run", sink, Arc::new(ManualClock::default()));
        let result = bench.builder.recorder(recorder).build().execute(call("act", json!({}))).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Unavailable), "{accepted}");
        assert_eq!(result.error().unwrap().causes, ["the event could not be recorded: disk full"]);
        assert!(!ran.load(Ordering::Relaxed), "{accepted}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocking_work_that_outlives_its_call_keeps_its_lock_and_sees_that_it_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let bench = bench(
        empty().roots(Roots::open([directory.path()]).unwrap()).working_directory(directory.path()),
    );
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = Arc::new(std::sync::Mutex::new(wait));
    let (seen, saw) = std::sync::mpsc::channel::<bool>();
    let slow =
        FunctionTool::new("slow", "Blocks.", move |_: PathArgument, context: ToolContext| {
            let (wait, seen, token) =
                (Arc::clone(&wait), seen.clone(), context.cancellation().clone());
            async move {
                context
                    .blocking(move || {
                        wait.lock().unwrap().recv().ok();
                        seen.send(token.is_cancelled()).unwrap();
                        Ok(())
                    })
                    .await
            }
        });
    bench.registry.register(slow.writes("path").kind(Kind::Edit)).unwrap();
    bench.registry.register(wait_on_path()).unwrap();
    let limits = Limits { stop_grace: Duration::ZERO, ..Limits::default() };
    let executor = bench.builder.limits(limits).build();
    let options = CallOptions::timeout(Duration::from_millis(20));
    let result = executor.execute_with(call("slow", json!({ "path": "a" })), options).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));

    let next = executor.execute(convoke_core::ToolCall::new("c2", "touch", json!({ "path": "a" })));
    tokio::pin!(next);
    assert!(
        tokio::time::timeout(Duration::from_millis(50), &mut next).await.is_err(),
        "the path is still held"
    );
    go.send(()).unwrap();
    assert!(saw.recv().unwrap(), "the work sees that its call is over");
    assert!(next.await.success());
}

fn wait_on_path() -> FunctionTool<PathArgument> {
    FunctionTool::new("touch", "Touches.", async |argument: PathArgument, _: ToolContext| {
        Ok::<_, String>(argument.path)
    })
    .kind(Kind::Edit)
    .writes("path")
}

#[tokio::test]
async fn long_names_errors_and_descriptions_are_cut() {
    let bench = bench(empty());
    let wordy =
        FunctionTool::new("wordy", "Fails at length.", async |_: Nothing, _: ToolContext| {
            Err::<(), _>(ToolError::failed("why ".repeat(300_000)))
        })
        .describe(|_| "because ".repeat(100_000));
    bench.registry.register(wordy).unwrap();
    let executor = bench.builder.build();
    let result = executor.execute(call("wordy", json!({}))).await;
    assert!(result.text().len() < 10_000, "{}", result.text().len());
    let unknown =
        executor.execute(convoke_core::ToolCall::new("c2", "x".repeat(4_000_000), json!({}))).await;
    assert_eq!(unknown.error_kind(), Some(ErrorKind::NotFound));
    for event in bench.sink.events() {
        assert!(serde_json::to_string(&*event).unwrap().len() < 24_000, "{:?}", event.position);
    }
}

#[derive(Debug)]
struct BrokenAuthorizer;

impl convoke_tool::Authorizer for BrokenAuthorizer {
    fn decide(&self, request: &convoke_tool::Request<'_>) -> convoke_tool::Decision {
        assert_eq!(request.spec.name, "nobody", "broken");
        convoke_tool::Decision::Allow { rule: "never".into() }
    }
}

#[derive(Debug)]
struct BrokenApprover;

#[async_trait]
impl Approver for BrokenApprover {
    async fn ask(&self, question: Question) -> Answer {
        assert_eq!(question.tool_name, "nobody", "broken");
        Answer::yes()
    }
}

/// gemini-cli 4.18: a failure to decide or to ask is a no.
#[tokio::test]
async fn who_breaks_down_while_deciding_has_not_allowed_anything() {
    for (authorizer, asks) in [(true, false), (false, true)] {
        let bench = bench(empty());
        bench.registry.register(wait()).unwrap();
        let builder = bench.builder.approver(BrokenApprover);
        let builder = if authorizer {
            builder.authorizer(BrokenAuthorizer)
        } else {
            builder.authorizer(KindAuthorizer::default().with(Kind::Read, Permission::Ask))
        };
        let result = builder.build().execute(call("wait", json!({ "millis": 0 }))).await;
        assert_eq!(result.error_kind(), Some(ErrorKind::Permission), "{asks}");
        assert_balanced(&bench.sink.events());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_returns_because_it_was_cancelled_has_not_completed() {
    for _ in 0..300 {
        let token = CancellationToken::new();
        let bench = bench(empty().cancellation(token.clone()));
        let obliging = FunctionTool::new(
            "obliging",
            "Stops at once.",
            async |_: Nothing, context: ToolContext| {
                context.progress().text("begun");
                context.cancelled().await;
                Ok::<_, String>("what I have")
            },
        );
        bench.registry.register(obliging).unwrap();
        let (executor, sink) = (bench.builder.build(), bench.sink);
        let running = executor.execute(call("obliging", json!({})));
        let stop = async {
            while types(&sink.events()).last().is_none_or(|last| last != "tool_call_progress") {
                tokio::task::yield_now().await;
            }
            token.cancel();
        };
        let (result, ()) = tokio::join!(running, stop);
        assert_eq!(result.error_kind(), Some(ErrorKind::Cancelled));
    }
}

//! What people can answer, and what becomes of it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use convoke_core::policy::RuleSpec;
use convoke_core::{Effects, Event, EventBody, Kind, Permission, ToolCall, ToolResult};
use convoke_tool::{
    Answer, Authorizer, CallOptions, Decision, FunctionTool, Limits, MemorySink, Question,
    Recorder, Request, SystemClock, ToolContext, ToolExecutor, ToolRegistry, ToolView, Unanswered,
    ask_with,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{assert_balanced, types};

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Size {
    size: u32,
}

/// Allows up to 10, asks above, denies above 100; a grant allows whatever would be asked about.
#[derive(Debug)]
struct BySize;

impl Authorizer for BySize {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let rule = "by size".to_owned();
        let size = request.call.arguments["size"].as_u64().unwrap();
        match size {
            101.. => Decision::Deny { rule, reason: "too large".into() },
            11.. if request.granted.is_empty() => Decision::Ask {
                rule,
                reason: "rather large".into(),
                proposal: vec![RuleSpec::tool(Permission::Allow, "grow")],
            },
            _ => Decision::Allow { rule },
        }
    }
}

struct Asking {
    executor: ToolExecutor,
    sink: Arc<MemorySink>,
    asked: Arc<AtomicU32>,
}

fn asking(answer: Answer, limits: Limits) -> Asking {
    let registry = ToolRegistry::new();
    let grow = |input: Size, _: ToolContext| async move { Ok::<_, String>(input.size) };
    registry.register(FunctionTool::new("grow", "Grows.", grow).kind(Kind::Edit)).unwrap();
    let (sink, asked) = (Arc::new(MemorySink::default()), Arc::new(AtomicU32::new(0)));
    let counted = Arc::clone(&asked);
    let approver = ask_with(move |question: Question| {
        counted.fetch_add(1, Ordering::Relaxed);
        assert_eq!(question.rules, [RuleSpec::tool(Permission::Allow, "grow")]);
        std::future::ready(answer.clone())
    });
    let executor = ToolExecutor::builder(ToolView::of(registry), ToolContext::builder("t").build())
        .recorder(Recorder::new("r", sink.clone(), Arc::new(SystemClock)))
        .authorizer(BySize)
        .approver(approver)
        .limits(limits)
        .build();
    Asking { executor, sink, asked }
}

impl Asking {
    async fn grow(&self, size: Value) -> ToolResult {
        self.executor.execute(ToolCall::new("c", "grow", json!({ "size": size }))).await
    }

    fn events(&self) -> Vec<Arc<Event>> {
        self.sink.events()
    }

    fn answered(&self) -> EventBody {
        let events = self.events();
        let mut answered = events.iter().rev().map(|event| event.body.clone());
        answered.find(|body| matches!(body, EventBody::ApprovalAnswered { .. })).unwrap()
    }
}

#[tokio::test]
async fn a_question_says_what_would_allow_it_and_until_when_it_waits() {
    let asking = asking(Answer::yes().by("a test"), Limits::default());
    assert_eq!(asking.grow(json!(20)).await.value(), Some(&json!(20)));
    let events = asking.events();
    let question = events.iter().find_map(|event| match &event.body {
        EventBody::ApprovalAsked { arguments, rules, until, .. } => Some((
            arguments.clone(),
            rules.clone(),
            until.unwrap().as_millis() - event.ts.as_millis(),
        )),
        _ => None,
    });
    let (arguments, rules, wait) = question.unwrap();
    assert_eq!(*arguments, json!({ "size": 20 }));
    assert_eq!(rules, [RuleSpec::tool(Permission::Allow, "grow")]);
    assert!((86_390_000..=86_400_000).contains(&wait), "{wait}");
    let EventBody::ApprovalAnswered { approved, by, .. } = asking.answered() else {
        unreachable!()
    };
    assert_eq!((approved, by.as_deref()), (true, Some("a test")));
    assert_balanced(&events);
}

#[tokio::test]
async fn what_is_allowed_for_always_is_not_asked_about_again() {
    let rules = vec![RuleSpec::tool(Permission::Allow, "grow")];
    let asking = asking(Answer::always(rules.clone()), Limits::default());
    for _ in 0..3 {
        assert!(asking.grow(json!(20)).await.success());
    }
    assert_eq!(asking.asked.load(Ordering::Relaxed), 1);
    assert!(!asking.grow(json!(200)).await.success(), "what is denied stays denied");
    let EventBody::ApprovalAnswered { rules: recorded, .. } = asking.answered() else {
        unreachable!()
    };
    assert_eq!(recorded, rules);
}

#[tokio::test]
async fn changed_arguments_are_checked_like_any_and_the_model_is_told() {
    for (size, expected) in
        [(json!(30), Ok(30)), (json!(500), Err("too large")), (json!("many"), Err("size"))]
    {
        let changed = json!({ "size": size });
        let asking = asking(Answer::with_arguments(changed.clone()), Limits::default());
        let result = asking.grow(json!(20)).await;
        match expected {
            Ok(grown) => {
                assert_eq!(result.value(), Some(&json!(grown)));
                let told = format!("{:?}", result.llm_content);
                assert!(told.contains("changed the arguments") && told.contains("30"), "{told}");
            }
            Err(part) => {
                let message = &result.error().unwrap().message;
                assert!(message.contains(part), "{message}");
            }
        }
        let EventBody::ApprovalAnswered { arguments, .. } = asking.answered() else {
            unreachable!()
        };
        assert_eq!(arguments.as_deref(), Some(&changed));
        assert_eq!(asking.asked.load(Ordering::Relaxed), 1, "nobody is asked twice");
        assert_balanced(&asking.events());
    }
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_denied_or_stays_open() {
    let denied = asking(Answer::Nobody, Limits::default());
    let result = denied.grow(json!(20)).await;
    assert!(result.error().unwrap().message.contains("nobody can be asked here"));
    assert_eq!(types(&denied.events()).last().unwrap(), "tool_call_denied");

    let parked =
        asking(Answer::Nobody, Limits { unanswered: Unanswered::Park, ..Limits::default() });
    assert!(!parked.grow(json!(20)).await.success());
    assert_eq!(types(&parked.events()).last().unwrap(), "tool_call_deferred", "it has no end");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_waited_for_longer_than_was_said() {
    let registry = ToolRegistry::new();
    let grow = |_: Size, _: ToolContext| async move { Ok::<_, String>(Effects::NONE) };
    registry.register(FunctionTool::new("grow", "Grows.", grow).kind(Kind::Edit)).unwrap();
    let approval_timeout = Duration::from_mins(5);
    let executor = ToolExecutor::builder(ToolView::of(registry), ToolContext::builder("t").build())
        .authorizer(BySize)
        .approver(ask_with(|_| std::future::pending()))
        .limits(Limits { approval_timeout, ..Limits::default() })
        .build();
    let began = tokio::time::Instant::now();
    let result = executor.execute(ToolCall::new("c", "grow", json!({ "size": 20 }))).await;
    assert_eq!(began.elapsed(), approval_timeout);
    let message = &result.error().unwrap().message;
    assert!(message.contains("nobody answered in time"), "{message}");
}

#[tokio::test]
async fn what_has_to_be_asked_about_does_not_run_without_asking() {
    let asking = asking(Answer::yes(), Limits::default());
    let call = ToolCall::new("c", "grow", json!({ "size": 20 }));
    let convoke_tool::Decided::Ask(prepared) =
        asking.executor.prepare(call, CallOptions::default()).await
    else {
        panic!("somebody has to be asked")
    };
    let result = asking.executor.run(prepared).await;
    assert!(result.error().unwrap().message.contains("nobody was asked"), "{result:?}");
    assert_balanced(&asking.events());
}

#[derive(Deserialize, schemars::JsonSchema)]
struct At {
    path: String,
}

/// Lasts until its other end is gone.
type Until = Arc<Mutex<mpsc::Receiver<()>>>;

/// Asks about everything.
/// Allows what goes through no link.
#[derive(Debug)]
struct NoLinks;

impl Authorizer for NoLinks {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let rule = "no links".to_owned();
        match request.linked {
            [] => Decision::Allow { rule },
            [led_to, ..] => Decision::Deny { rule, reason: led_to.display().to_string() },
        }
    }
}

#[tokio::test]
async fn who_decides_is_told_where_links_lead() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    let registry = ToolRegistry::new();
    let look = |at: At, _: ToolContext| async move { Ok::<_, String>(at.path) };
    registry.register(FunctionTool::new("look", "Looks.", look).reads("path")).unwrap();
    let context = ToolContext::builder("t")
        .roots(convoke_tool::Roots::open([&root]).unwrap())
        .working_directory(root.clone())
        .build();
    let executor =
        ToolExecutor::builder(ToolView::of(registry), context).authorizer(NoLinks).build();
    let look = |path: &str| executor.execute(ToolCall::new("c", "look", json!({ "path": path })));
    for path in [".", "real", "real/new", "./real/../new"] {
        assert!(look(path).await.success(), "{path}");
    }
    for (path, led_to) in [("link", "real"), ("link/new", "real/new"), ("real/../link", "real")] {
        let text = look(path).await.text();
        assert!(text.contains(&*root.join(led_to).to_string_lossy()), "{path}: {text}");
    }
}

#[derive(Debug)]
struct AsksAlways;

impl Authorizer for AsksAlways {
    fn decide(&self, _: &Request<'_>) -> Decision {
        Decision::Ask { rule: "always".into(), reason: "always".into(), proposal: Vec::new() }
    }
}

#[tokio::test]
async fn a_link_that_is_put_there_while_somebody_is_asked_leads_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("open")).unwrap();
    std::fs::create_dir(root.join("closed")).unwrap();
    let registry = ToolRegistry::new();
    let put = |at: At, context: ToolContext| async move {
        let place = context.locate(&at.path)?;
        std::fs::write(place.absolute(), "x").map_err(|error| place.error(&error, "write"))?;
        Ok::<_, convoke_tool::ToolError>(())
    };
    let tool = FunctionTool::new("put", "Puts.", put).kind(Kind::Edit).writes("path");
    registry.register(tool).unwrap();
    let context = ToolContext::builder("t")
        .roots(convoke_tool::Roots::open([&root]).unwrap())
        .working_directory(root.clone())
        .build();
    let swapped = root.clone();
    let executor = ToolExecutor::builder(ToolView::of(registry), context)
        .authorizer(AsksAlways)
        .approver(ask_with(move |_| {
            std::fs::remove_dir(swapped.join("open")).unwrap();
            std::os::unix::fs::symlink("closed", swapped.join("open")).unwrap();
            std::future::ready(Answer::yes())
        }))
        .build();
    let arguments = json!({ "path": "open/file" });
    let result = executor.execute(ToolCall::new("c", "put", arguments)).await;
    let message = &result.error().unwrap().message;
    assert!(message.contains("leads elsewhere now"), "{message}");
    assert!(!root.join("closed/file").exists());
}

#[tokio::test]
async fn a_tool_that_cannot_say_what_it_would_change_holds_up_nobody() {
    #[derive(Debug)]
    struct Slow(convoke_core::ToolSpec, Until);
    impl convoke_tool::Tool for Slow {
        fn spec(&self) -> &convoke_core::ToolSpec {
            &self.0
        }
        fn prepare(
            &self,
            _: Value,
        ) -> Result<Box<dyn convoke_tool::Invocation>, convoke_tool::ToolError> {
            Ok(Box::new(Never(Arc::clone(&self.1))))
        }
    }
    #[derive(Debug)]
    struct Never(Until);
    #[async_trait::async_trait]
    impl convoke_tool::Invocation for Never {
        fn preview(
            &self,
            _: &ToolContext,
        ) -> Result<Option<convoke_core::Display>, convoke_core::ToolError> {
            assert!(self.0.lock().unwrap().recv().is_err(), "nothing is ever sent");
            Ok(None)
        }
        async fn run(
            self: Box<Self>,
            _: ToolContext,
        ) -> Result<convoke_tool::ToolOutput, convoke_tool::ToolError> {
            Ok(convoke_tool::ToolOutput::default())
        }
    }
    let registry = ToolRegistry::new();
    let spec = convoke_core::ToolSpec::new("slow", "Thinks.", Kind::Edit);
    let (_until_the_end, end) = mpsc::channel();
    let busy = Arc::new(Mutex::new(end));
    registry
        .register(Arc::new(Slow(spec, Arc::clone(&busy))) as Arc<dyn convoke_tool::Tool>)
        .unwrap();
    let executor = ToolExecutor::builder(ToolView::of(registry), ToolContext::builder("t").build())
        .authorizer(AsksAlways)
        .limits(Limits { preview_timeout: Duration::from_millis(20), ..Limits::default() })
        .build();
    let result = executor.execute(ToolCall::new("c", "slow", json!({}))).await;
    let message = &result.error().unwrap().message;
    assert!(message.contains("took too long to say"), "{message}");
}

/// A person who changes the arguments sees what the call would do with them before it runs.
#[tokio::test]
async fn changed_arguments_are_asked_about_anew_and_are_what_runs() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked);
    let approver = ask_with(move |question: Question| {
        let mut kept = kept.lock().unwrap();
        kept.push((question.arguments["size"].clone(), question.reason.clone()));
        let answer = match kept.len() {
            1 => Answer::Change(json!({ "size": "no number" })),
            2 => Answer::Change(json!({ "size": 500 })),
            3 => Answer::Change(json!({ "size": 5 })),
            _ => Answer::yes(),
        };
        async { answer }
    });
    let registry = ToolRegistry::new();
    let grow = FunctionTool::new("grow", "Grows.", async |size: Size, _: ToolContext| {
        Ok::<u32, String>(size.size)
    });
    registry.register(grow.kind(Kind::Edit)).unwrap();
    let sink = Arc::new(MemorySink::default());
    let clock = Arc::new(SystemClock);
    let context = ToolContext::builder("t").build();
    let executor = ToolExecutor::builder(ToolView::of(registry), context)
        .authorizer(BySize)
        .approver(approver)
        .recorder(Recorder::new("r", sink.clone(), clock))
        .build();
    let result = executor.execute(ToolCall::new("c", "grow", json!({ "size": 50 }))).await;
    assert_eq!(result.value(), Some(&json!(5)));
    assert!(result.text().contains("The user changed the arguments"), "{}", result.text());
    let asked = asked.lock().unwrap();
    let sizes: Vec<&Value> = asked.iter().map(|(size, _)| size).collect();
    assert_eq!(sizes, [&json!(50), &json!(50), &json!(50), &json!(5)]);
    assert!(asked[2].1.contains("too large"), "{asked:?}");
    let answers: Vec<Option<Value>> = sink
        .events()
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ApprovalAnswered { arguments, .. } => Some(arguments.as_deref().cloned()),
            _ => None,
        })
        .collect();
    assert_eq!(answers, [Some(json!({ "size": 5 }))], "only what was seen is approved");
}

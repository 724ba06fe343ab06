//! Questions of agents: they rise to the root, and while somebody waits for a person no clock runs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke_agent::AgentExecutor;
use convoke_core::policy::RuleSpec;
use convoke_core::run::Budget;
use convoke_core::{CallId, Cause, EventBody, Kind, Millis, Permission, Status};
use convoke_model::scripted::Turn;
use convoke_tool::{
    Answer, ExecutorBuilder, FunctionTool, Limits, NobodyToAsk, ToolContext, ToolExecutor,
    ToolRegistry, ToolView, ask_with,
};

use super::{granting, hit};
use crate::family::{Cast, agent, ask, done, team};
use crate::support::{PausedClock, Word, read};
use crate::world::{AsksAboutHit, World};

/// goose#11778, codex#12829, opencode#36868: a question of an agent reaches the person, with who asks.
#[tokio::test]
async fn questions_rise_to_the_root_with_the_path_of_who_asks() {
    let world = World::new();
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says("a", [ask("b", "x"), done("a")])
        .says("b", [hit("x"), done("b")])
        .model();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let approver = ask_with(move |question| {
        seen.lock().unwrap().push(question.agent.to_string());
        async { Answer::yes() }
    });
    let main = world.main(&model, [granting("a", &["b"]), agent("b")], approver).build().unwrap();
    let (_, report) = read(main.start("go")).await;
    assert_eq!((report.outcome.cause, world.hits()), (Cause::Goal, 1));
    assert_eq!(*asked.lock().unwrap(), ["main/a/b"]);
}

/// What somebody allows for always holds for the rest of the tree.
#[tokio::test]
async fn what_is_granted_to_one_agent_need_not_be_asked_by_the_next() {
    let world = World::new();
    let model = Cast::new()
        .says("main", [ask("a", "x"), ask("b", "x"), hit("z"), Turn::text("ok")])
        .says("a", [hit("x"), done("a")])
        .says("b", [hit("y"), done("b")])
        .model();
    let questions = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&questions);
    let approver = ask_with(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        let rule = RuleSpec::tool(Permission::Allow, "hit");
        async { Answer::always(vec![rule]) }
    });
    let main = world.main(&model, [agent("a"), agent("b")], approver).build().unwrap();
    read(main.start("go")).await;
    assert_eq!((questions.load(Ordering::Relaxed), world.hits()), (1, 3));
}

/// What waits was not denied.
#[tokio::test]
async fn a_call_that_waits_says_what_for() {
    let world = World::new();
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says("a", [hit("x"), done("done")])
        .model();
    let main = world.main(&model, [agent("a")], NobodyToAsk).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!(report.outcome.status, Status::Parked);
    let reasons: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ToolCallDeferred { reason, .. } => Some(reason.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].ends_with("and nobody can be asked here"), "{reasons:?}");
    assert_eq!(reasons[1], "the agent `a` waits for an answer");
    assert!(reasons.iter().all(|reason| !reason.contains("denied")), "{reasons:?}");
}

/// A tool that a person has to allow, which takes them long, by a clock that follows the paused time.
fn hitting_after_50_minutes() -> ExecutorBuilder {
    let approver = ask_with(async |_| {
        tokio::time::sleep(Duration::from_mins(50)).await;
        Answer::yes()
    });
    let registry = ToolRegistry::new();
    let hit =
        FunctionTool::new("hit", "Hits.", async |_: Word, _: ToolContext| Ok::<_, String>("hit"));
    registry.register(hit.kind(Kind::Execute)).unwrap();
    let clock = Arc::new(PausedClock::new());
    let context = ToolContext::builder("t").clock(clock).build();
    ToolExecutor::builder(ToolView::of(registry), context)
        .authorizer(AsksAboutHit)
        .approver(approver)
        .limits(Limits { approval_timeout: Duration::from_hours(3), ..Limits::default() })
}

/// Waiting for a person does not use up anybody's time, at any depth.
#[tokio::test(start_paused = true)]
async fn while_an_agent_waits_for_a_person_no_clock_runs() {
    let mut short = agent("a");
    short.run.max_time = Some(Duration::from_secs(100));
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says("a", [hit("x"), done("a")])
        .model();
    let main = AgentExecutor::with_model(model, hitting_after_50_minutes())
        .system("The main agent.")
        .budget(Budget { time_ms: Millis::new(Duration::from_secs(400)), ..Budget::default() })
        .team(team([short]).build())
        .build()
        .unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    let waits: Vec<bool> = events
        .iter()
        .filter_map(|event| match event.body {
            EventBody::AgentWaits { waits, .. } => Some(waits),
            _ => None,
        })
        .collect();
    assert_eq!(waits, [true, false]);
    assert!(events.iter().all(|event| event.call != Some(CallId::new(""))));
}

/// At every level above an agent that waits for a person, no clock runs.
#[tokio::test(start_paused = true)]
async fn two_levels_above_a_question_no_clock_runs() {
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says("a", [ask("b", "x"), done("a")])
        .says("b", [hit("x"), done("b")])
        .model();
    let main = AgentExecutor::with_model(model, hitting_after_50_minutes())
        .system("The main agent.")
        .team(team([granting("a", &["b"]), agent("b")]).build())
        .build()
        .unwrap();
    let (_, report) = read(main.start("go")).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
}

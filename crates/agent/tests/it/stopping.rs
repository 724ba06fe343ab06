//! Stopping a run from outside, at every place it can be at.

use std::sync::Arc;
use std::time::Duration;

use convoke_agent::{AgentExecutor, NotHeard, Task};
use convoke_core::run::Budget;
use convoke_core::{Cause, Event, EventBody, Kind, Millis, Repeat, Status};
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::testing::AllowAll;
use convoke_tool::{FunctionTool, ManualClock, ToolContext, ToolExecutor, ToolRegistry, ToolView};
use futures_util::StreamExt;
use serde_json::json;

use crate::support::{Word, echo, nap, read, script, told, with};

/// An agent whose `hit` must not be made again, nor `slow_hit`, which takes its time.
fn with_unsafe(model: &Arc<ScriptedModel>) -> AgentExecutor {
    let registry = ToolRegistry::new();
    for (name, time) in [("hit", 0), ("slow_hit", 9_000)] {
        let tool = FunctionTool::new(name, "Hits.", move |_: Word, _: ToolContext| async move {
            tokio::time::sleep(Duration::from_secs(time)).await;
            Ok::<_, String>("hit!")
        });
        let tool = tool.kind(Kind::Execute).repeat(Repeat::Unsafe);
        registry.register(tool.timeout(Duration::from_hours(10))).unwrap();
    }
    registry.register(echo()).unwrap();
    registry.register(nap()).unwrap();
    let context = ToolContext::builder("t").build();
    let tools = ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowAll);
    AgentExecutor::with_model(model.clone(), tools).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn stopping_while_the_model_speaks_keeps_what_it_said() {
    let model = script([Turn::text("half a ").and_wait(Duration::from_hours(1)).and_text("word")]);
    let mut run = with(&model).build().unwrap().start("Go.");
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        if matches!(event.body, EventBody::ModelDelta { .. }) {
            run.handle().cancel();
        }
        events.push(event);
    }
    let report = run.report().unwrap();
    assert_eq!(
        (report.outcome.status, report.outcome.cause),
        (Status::Cancelled, Cause::Interrupted)
    );
    assert_eq!(report.outcome.partial, Some(json!("half a ")));
    assert_eq!(told(&events).last().unwrap(), "run_ended");
}

/// goose#7914, #1624, #33: no call is left without a result by an interruption. Those that can begin again do so when
/// the run is resumed, as after a kill.
#[tokio::test(start_paused = true)]
async fn calls_under_way_when_a_run_is_stopped_are_made_when_it_is_resumed() {
    let model = script([
        Turn::call("nap", json!({ "millis": 9_000 }))
            .and_call("echo", json!({ "word": "a" }))
            .and_call("hit", json!({ "word": "b" }))
            .and_call("echo", json!({ "word": "c" })),
        Turn::text("done"),
    ]);
    let agent = with_unsafe(&model);
    let mut run = agent.start("Go.");
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        if matches!(&event.body, EventBody::ToolCallCompleted { .. }) {
            run.handle().cancel_because(Cause::Terminated);
        }
        events.push(event);
    }
    let report = run.report().unwrap();
    assert_eq!(report.exit_code() as u8, 143);
    let turns = report.turns;
    let kinds = |events: &[Arc<Event>]| -> Vec<(String, &'static str)> {
        let kind = |event: &Arc<Event>| {
            let kind = match &event.body {
                EventBody::ToolCallCompleted { .. } => "completed",
                EventBody::ToolCallDeferred { .. } => "deferred",
                EventBody::ToolCallFailed { error, .. } => error.kind.as_str(),
                _ => return None,
            };
            Some((event.call.as_ref()?.to_string(), kind))
        };
        let mut kinds: Vec<_> = events.iter().filter_map(kind).collect();
        kinds.sort();
        kinds
    };
    let ends = kinds(&events);
    let word = |id: &str| ends.iter().find(|(call, _)| call == id).map(|(_, kind)| *kind);
    assert_eq!(word("call_1"), Some("deferred"), "{ends:?}");
    assert_eq!(word("call_2"), Some("completed"), "{ends:?}");
    let (mut again, report) = read(agent.resume(run.pause(), None).unwrap()).await;
    again.splice(0..0, events);
    let ends = kinds(&again);
    let unsafe_end = ends.iter().filter(|(call, _)| call == "call_3").collect::<Vec<_>>();
    assert!(
        unsafe_end.iter().any(|(_, kind)| ["interrupted", "completed"].contains(kind)),
        "{ends:?}"
    );
    let completed = ends.iter().filter(|(_, kind)| *kind == "completed").count();
    assert!(completed >= 3, "{ends:?}");
    assert!(ends.iter().all(|(_, kind)| *kind != "cancelled"), "{ends:?}");
    assert_eq!((report.text().as_deref(), report.tool_calls), (Some("done"), 4));
    assert_eq!(report.turns, turns + 1, "the turn that was stopped goes on");
}

/// A call that may do harm is over when it was stopped in the middle, and the model is told that it may have had an
/// effect.
#[tokio::test(start_paused = true)]
async fn unsafe_call_under_way_when_a_run_is_stopped_is_interrupted() {
    for something_else in [false, true] {
        let model = script([
            Turn::call("slow_hit", json!({ "word": "a" })).and_call("echo", json!({ "word": "b" })),
            Turn::text("done"),
        ]);
        let agent = with_unsafe(&model);
        let mut run = agent.start("Go.");
        while let Some(event) = run.next().await {
            if matches!(&event.body, EventBody::ToolCallStarted { tool_name, .. } if tool_name == "slow_hit")
            {
                run.handle().cancel();
            }
        }
        let more = something_else.then(|| Task::new("something else"));
        let (_, report) = read(agent.resume(run.pause(), more).unwrap()).await;
        assert_eq!(report.text().as_deref(), Some("done"));
        let heard = format!("{:?}", model.requests()[1].messages);
        assert!(
            heard.contains("Error (interrupted)") && heard.contains("may have had an effect"),
            "{heard}"
        );
        assert_eq!(heard.contains("you said b"), !something_else, "{heard}");
    }
}

/// A request under way is asked again in the same turn.
#[tokio::test(start_paused = true)]
async fn request_under_way_when_a_run_is_stopped_is_asked_again() {
    let model = script([
        Turn::text("half a ").and_wait(Duration::from_hours(1)).and_text("word"),
        Turn::text("a whole word"),
    ]);
    let agent = with(&model).build().unwrap();
    let mut run = agent.start("Go.");
    while let Some(event) = run.next().await {
        if matches!(event.body, EventBody::ModelDelta { .. }) {
            run.handle().cancel_because(Cause::Terminated);
        }
    }
    let (_, report) = read(agent.resume(run.pause(), None).unwrap()).await;
    assert_eq!((report.text().as_deref(), report.turns), (Some("a whole word"), 1));
    assert_eq!(model.requests()[0].messages, model.requests()[1].messages);
}

/// A limit is kept whatever happens to the wall clock while the run works.
#[tokio::test(start_paused = true)]
async fn time_limit_holds_when_the_wall_clock_jumps() {
    const DAY: i64 = 86_400_000;
    for jump in [-DAY, -20_000, 20_000, DAY] {
        let now = convoke_core::Timestamp::from_millis(1_700_000_000_000);
        let wall = Arc::new(ManualClock::new(now));
        let jumps = Arc::clone(&wall);
        let registry = ToolRegistry::new();
        let nap = FunctionTool::new("nap", "Sleeps.", move |_: Word, _: ToolContext| {
            jumps.set(convoke_core::Timestamp::from_millis(now.as_millis() + jump));
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok::<_, String>("slept")
            }
        });
        registry.register(nap.kind(Kind::Read)).unwrap();
        let context = ToolContext::builder("t").clock(wall).build();
        let tools = ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowAll);
        let turns = (0..40).map(|word| Turn::call("nap", json!({ "word": word.to_string() })));
        let model = script(turns);
        let budget = Budget { time_ms: Millis::new(Duration::from_secs(10)), ..Budget::default() };
        let agent = AgentExecutor::with_model(model.clone(), tools).budget(budget).build().unwrap();
        let began = tokio::time::Instant::now();
        let (events, report) = read(agent.start("Go.")).await;
        assert_eq!(report.outcome.cause, Cause::Timeout, "{jump}");
        let took = began.elapsed();
        assert!(
            took > Duration::from_secs(7) && took < Duration::from_secs(12),
            "{jump}: {took:?}"
        );
        assert!(events.windows(2).all(|pair| pair[0].ts <= pair[1].ts), "{jump}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_stopped_before_it_begins_asks_nobody() {
    let model = script([Turn::text("hello")]);
    let run = with(&model).build().unwrap().start("Go.");
    run.handle().cancel();
    let (_, report) = read(run).await;
    assert_eq!(report.outcome.cause, Cause::Interrupted);
    assert!(model.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_the_user_says_meanwhile_enters_at_the_next_turn() {
    let model = script([
        Turn::call("nap", json!({ "millis": 1000 })),
        Turn::text("one").and_wait(Duration::from_secs(1)),
        Turn::text("two"),
    ]);
    let mut run = with(&model).build().unwrap().start("Go.");
    let mut said = 0;
    while let Some(event) = run.next().await {
        match event.body {
            EventBody::ToolCallStarted { .. } => run.handle().say("And hurry.").unwrap(),
            EventBody::ModelDelta { .. } if said == 0 => {
                said += 1;
                run.handle().say("One more thing.").unwrap();
            }
            _ => {}
        }
    }
    assert_eq!(run.report().unwrap().text().as_deref(), Some("two"));
    assert_eq!(run.handle().say("Still there?"), Err(NotHeard::Ended));
    let requests = model.requests();
    assert_eq!(requests[1].messages.last().unwrap().words(), "And hurry.");
    assert_eq!(requests[2].messages.last().unwrap().words(), "One more thing.");
}

/// An endless answer is cut before it fills the memory, and little of it is kept.
#[tokio::test(start_paused = true)]
async fn endless_answer_is_cut_and_the_cut_is_told() {
    const MEGABYTE: usize = 1024 * 1024;
    let turn = (0..12).fold(Turn::text(""), |turn, _| turn.and_text("x".repeat(MEGABYTE)));
    let model = script([turn]);
    let (events, report) = read(with(&model).build().unwrap().start("Go.")).await;
    let why = report.outcome.message.clone().unwrap();
    assert!(why.contains("the answer was cut: it is longer than 8 MB"), "{why}");
    let partial = report.outcome.partial.as_ref().unwrap().as_str().unwrap().len();
    assert!(partial <= MEGABYTE, "{partial}");
    let heard = |event: &Arc<Event>| match &event.body {
        EventBody::ModelDelta { text } => text.len(),
        _ => 0,
    };
    assert!(events.iter().map(heard).sum::<usize>() <= 9 * MEGABYTE);
}

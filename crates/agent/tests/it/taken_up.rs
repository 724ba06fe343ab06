//! Agents that go on, after their end or in another process: what they may do, may use and know is what it was.

use std::sync::Arc;
use std::time::Duration;

use convoke_agent::definition::ToolConfig;
use convoke_agent::{
    AgentDefinition, AgentExecutor, InputConfig, InputType, NotResumable, Paused, Task, TreeLimits,
};
use convoke_core::run::Budget;
use convoke_core::{Cause, Event, EventBody, Kind, Millis, ModelFacts, Permission, RunId, Status};
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::{
    Answer, Approver, ExecutorBuilder, FunctionTool, KindAuthorizer, Limits, NobodyToAsk,
    ToolContext, ToolExecutor, ToolRegistry, ToolView, Unanswered, ask_with,
};
use futures_util::StreamExt as _;
use serde_json::json;

use crate::family::{
    Cast, agent, answers, ask, ask_many, done, lost_after, main_with, task, team, turns, up_to, who,
};
use crate::support::{PausedClock, Word, durable, echo, nap, read, with};

/// Tools of which `hit` is asked about.
fn asking(clock: &Arc<PausedClock>, approver: impl Approver + 'static) -> ExecutorBuilder {
    let registry = ToolRegistry::new();
    let hit =
        FunctionTool::new("hit", "Hits.", async |_: Word, _: ToolContext| Ok::<_, String>("hit!"));
    registry.register(hit.kind(Kind::Execute)).unwrap();
    registry.register(echo()).unwrap();
    registry.register(nap()).unwrap();
    let context = ToolContext::builder("t").clock(clock.clone()).build();
    ToolExecutor::builder(ToolView::of(registry), context)
        .authorizer(KindAuthorizer::default().with(Kind::Execute, Permission::Ask))
        .approver(approver)
        .limits(Limits { unanswered: Unanswered::Park, ..Limits::default() })
}

fn with_tools(
    model: &Arc<ScriptedModel>,
    tools: ExecutorBuilder,
    agents: impl IntoIterator<Item = AgentDefinition>,
) -> AgentExecutor {
    let main = AgentExecutor::with_model(model.clone(), tools).system("The main agent.");
    main.team(team(agents).build()).build().unwrap()
}

/// Lets a run work until it ends, or is stopped after this time; returns it as it is then.
async fn left_after(main: &AgentExecutor, time: Duration) -> (Status, Paused) {
    let mut run = main.start("go");
    let handle = run.handle();
    let stopper = async {
        tokio::time::sleep(time).await;
        handle.cancel();
        std::future::pending::<()>().await;
    };
    let reader = async { while run.next().await.is_some() {} };
    tokio::select! {
        () = stopper => {}
        () = reader => {}
    }
    (run.report().unwrap().outcome.status, run.pause())
}

fn limited(name: &str) -> AgentDefinition {
    let mut definition = agent(name);
    definition.tools = ToolConfig::only(["nap", "hit"]);
    definition.policy.commands = Some(vec!["git status".to_owned()]);
    definition
}

/// The same agent when its file was changed: it has one tool more, and may run any command.
fn widened(name: &str) -> AgentDefinition {
    let mut definition = agent(name);
    definition.tools = ToolConfig::only(["nap", "hit", "echo"]);
    definition
}

fn is_told_of_a_change(events: &[Arc<Event>]) -> bool {
    events.iter().any(|event| {
        matches!(&event.body, EventBody::Warning { message } if message.contains("was changed since it began"))
    })
}

/// Its file was changed while the run lay there. It may do what both allow, and whoever looks is told.
#[tokio::test(start_paused = true)]
async fn an_agent_that_was_called_may_do_no_more_than_when_it_began() {
    let clock = Arc::new(PausedClock::new());
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says(
            "a",
            [
                Turn::call("nap", json!({ "millis": 60_000 })),
                Turn::call("echo", json!({ "word": "x" })),
                Turn::call("hit", json!({ "word": "x" })),
                done("as far as I may"),
            ],
        )
        .model();
    let yes = || ask_with(async |_| Answer::yes());
    let main = with_tools(&model, asking(&clock, yes()), [limited("a")]);
    let (status, paused) = left_after(&main, Duration::from_secs(10)).await;
    assert_eq!(status, Status::Cancelled);
    let main = with_tools(&model, asking(&clock, yes()), [widened("a")]);
    let (events, report) = read(main.resume(paused, None).unwrap()).await;
    assert!(report.text().is_some(), "{:?}", report.outcome);
    let told = answers(&events, "main/a").join("\n");
    assert!(!told.contains("you said"), "a tool it did not have: {told}");
    assert!(!told.contains("hit!"), "a command it might not run: {told}");
    assert!(told.contains("this agent may run only `git status`"), "{told}");
    assert!(is_told_of_a_change(&events));
}

/// The same holds for one that ended and is continued by its id.
#[tokio::test(start_paused = true)]
async fn an_agent_that_is_continued_may_do_no_more_than_when_it_began() {
    let clock = Arc::new(PausedClock::new());
    let more = json!({ "agent_name": "a", "prompt": "more", "agent_id": "call_1" });
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("first")])
        .says("main", [Turn::call("delegate_to_agent", more), Turn::text("ok")])
        .says("a", [done("one"), Turn::call("echo", json!({ "word": "x" })), done("two")])
        .model();
    let main = with_tools(&model, asking(&clock, NobodyToAsk), [limited("a")]);
    let (_, paused) = left_after(&main, Duration::from_hours(1)).await;
    let main = with_tools(&model, asking(&clock, NobodyToAsk), [widened("a")]);
    let (events, _) = read(main.resume(paused, Some(Task::new("again"))).unwrap()).await;
    let told = answers(&events, "main/a").join("\n");
    assert!(!told.is_empty() && !told.contains("you said"), "a tool it did not have: {told}");
    assert!(is_told_of_a_change(&events));
}

/// What an agent did is not given up because its file is gone: whoever takes the run up is told before anything is
/// done, and goes on without it if they say what to do instead.
#[tokio::test(start_paused = true)]
async fn a_run_whose_agent_is_gone_is_not_taken_up_without_a_word() {
    let lead = |agents: &[&str]| {
        let mut lead = agent("lead");
        lead.agents = agents.iter().map(ToString::to_string).collect();
        lead
    };
    for background in [false, true] {
        let mut call = task("lead", "x");
        call["background"] = background.into();
        let waits = || [Turn::text("I wait."), Turn::text("ok")];
        let model = Cast::new()
            .says("main", [Turn::call("delegate_to_agent", call)])
            .says("main", waits())
            .says("lead", [ask("plain", "y"), done("led")])
            .says("plain", [Turn::call("nap", json!({ "millis": 1_000 })), done("plain")])
            .model();
        let main = main_with(&model, [lead(&["plain"]), agent("plain")]).build().unwrap();
        let (events, _) = read(main.start_as(RunId::new("r"), "go")).await;
        let events = durable(&events);
        let kept = up_to(&events, |event| {
            event.agent.as_str() == "main/lead/plain"
                && matches!(event.body, EventBody::ModelResponse { .. })
        });
        for (team, gone) in [
            (vec![agent("plain")], "lead"),
            (vec![lead(&["plain"])], "plain"),
            (vec![lead(&[]), agent("plain")], "plain"),
        ] {
            let model = Cast::new().says("main", waits()).model();
            let main = main_with(&model, team).build().unwrap();
            let refused = main.resume(lost_after(&events, kept), None).unwrap_err();
            let NotResumable::Absent { agent, .. } = &refused else { panic!("{refused}") };
            assert_eq!(agent, gone, "{refused}");
            assert_eq!(model.requests().len(), 0);
            let with_more = main.resume(lost_after(&events, kept), Some(Task::new("go on")));
            let (_, report) = read(with_more.unwrap()).await;
            assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
        }
    }
}

/// What it may do is read from its beginning, also by the process after the next.
#[tokio::test(start_paused = true)]
async fn what_an_agent_might_do_when_it_began_is_not_recorded_anew() {
    let clock = Arc::new(PausedClock::new());
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says("a", [Turn::call("nap", json!({ "millis": 60_000 })), done("slept")])
        .model();
    let main = with_tools(&model, asking(&clock, NobodyToAsk), [limited("a")]);
    let (_, paused) = left_after(&main, Duration::from_secs(10)).await;
    let (events, _) = read(main.resume(paused, None).unwrap()).await;
    let origins: Vec<&serde_json::Value> = events
        .iter()
        .filter(|event| event.parent.is_some())
        .filter_map(|event| match &event.body {
            EventBody::RunResumed { origin, .. } => Some(origin),
            _ => None,
        })
        .collect();
    assert_eq!(origins, [&serde_json::Value::Null]);
}

/// The time it worked is part of the time its caller worked, and is not taken from it twice.
#[tokio::test(start_paused = true)]
async fn an_agent_that_waited_for_a_person_has_the_time_its_caller_has() {
    let clock = Arc::new(PausedClock::new());
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says(
            "a",
            [
                Turn::call("nap", json!({ "millis": 360_000 })),
                Turn::call("hit", json!({ "word": "x" })),
                done("a"),
            ],
        )
        .model();
    let main = |tools: ExecutorBuilder| {
        let budget = Budget { time_ms: Millis::new(Duration::from_mins(10)), ..Budget::default() };
        let main = AgentExecutor::with_model(model.clone(), tools).system("The main agent.");
        main.budget(budget).team(team([agent("a")]).build()).build().unwrap()
    };
    let first = main(asking(&clock, NobodyToAsk));
    let (status, paused) = left_after(&first, Duration::from_hours(1)).await;
    assert_eq!(status, Status::Parked);
    let second = main(asking(&clock, ask_with(async |_| Answer::yes())));
    let (events, report) = read(second.resume(paused, None).unwrap()).await;
    assert_eq!(report.text().as_deref(), Some("ok"), "{:?}", report.outcome);
    let told = answers(&events, "main");
    assert!(told[0].starts_with("a\n"), "{told:?}");
}

/// Makes two calls.
fn two(word: &str) -> Turn {
    let call = |number: u32| json!({ "word": format!("{word} {number}") });
    Turn::call("echo", call(1)).and_call("echo", call(2))
}

/// Who goes on after its end has its calls anew, for everybody who counts them; also in another process.
#[tokio::test(start_paused = true)]
async fn an_agent_that_is_continued_makes_its_calls_anew() {
    let mut busy = agent("a");
    busy.run.max_tool_calls = Some(3);
    let more = json!({ "agent_name": "a", "prompt": "more", "agent_id": "call_1" });
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::call("delegate_to_agent", more), Turn::text("ok")])
        .says("a", [two("one"), done("first"), two("two"), done("second")])
        .model();
    let main = main_with(&model, [busy.clone()]).build().unwrap();
    let (events, _) = read(main.start_as(RunId::new("r"), "go")).await;
    let told = answers(&events, "main");
    assert!(told[0].starts_with("first"), "{told:?}");
    assert!(told[1].starts_with("second"), "{told:?}");
    assert_eq!(answers(&events, "main/a").len(), 4);
    let events = durable(&events);
    let answered = events.iter().enumerate().filter(|(_, event)| {
        event.agent.as_str() == "main/a" && matches!(event.body, EventBody::ModelResponse { .. })
    });
    let kept = answered.map(|(index, _)| index + 1).nth(2).unwrap();
    let model = Cast::new().says("main", [Turn::text("ok")]).says("a", [done("second")]).model();
    let main = main_with(&model, [busy]).build().unwrap();
    let (later, _) = read(main.resume(lost_after(&events, kept), None).unwrap()).await;
    let told = answers(&later, "main");
    assert!(told[0].starts_with("second"), "{told:?}");
    assert_eq!(answers(&later, "main/a").len(), 2);
}

/// A call that is made again, because nobody knows how it ended, is one call for everybody who counts them.
#[tokio::test(start_paused = true)]
async fn calls_that_are_made_again_are_counted_once() {
    let budget = || Budget { tool_calls: Some(3), ..Budget::default() };
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says("a", [Turn::call("nap", json!({ "millis": 1_000 })), done("slept")])
        .model();
    let main = main_with(&model, [agent("a")]).budget(budget()).build().unwrap();
    let (events, _) = read(main.start_as(RunId::new("r"), "go")).await;
    let events = durable(&events);
    let kept = up_to(&events, |event| {
        event.parent.is_some() && matches!(event.body, EventBody::ToolCallStarted { .. })
    });
    let model = Cast::new().says("main", [Turn::text("ok")]).says("a", [done("slept")]).model();
    let main = main_with(&model, [agent("a")]).budget(budget()).build().unwrap();
    let (later, report) = read(main.resume(lost_after(&events, kept), None).unwrap()).await;
    let told = answers(&later, "main");
    assert!(told[0].starts_with("slept"), "{told:?}");
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
}

/// What agents used before all of them waited for a person is not there for any of them afterwards.
#[tokio::test(start_paused = true)]
async fn what_agents_used_before_they_waited_is_used() {
    let clock = Arc::new(PausedClock::new());
    let model = ScriptedModel::from_fn(|request: &RequestSnapshot| {
        let hit = || Turn::call("hit", json!({ "word": "x" }));
        match (who(request).as_str(), turns(request)) {
            ("main", 0) => ask("a", "x").and_call("delegate_to_agent", task("b", "y")),
            ("main", _) => Turn::text("ok"),
            (_, 4) => hit(),
            (_, turn) => Turn::call("echo", json!({ "word": turn.to_string() })).tokens(300, 200),
        }
    });
    let facts = ModelFacts { max_output: Some(1_000), ..ModelFacts::default() };
    let model = Arc::new(model.with_facts(facts));
    let main = |tools: ExecutorBuilder| {
        let main = AgentExecutor::with_model(model.clone(), tools).system("The main agent.");
        let main = main.budget(Budget { tokens: Some(12_000), ..Budget::default() });
        main.team(team([agent("a"), agent("b")]).build()).build().unwrap()
    };
    let (status, paused) =
        left_after(&main(asking(&clock, NobodyToAsk)), Duration::from_hours(1)).await;
    assert_eq!(status, Status::Parked);
    let again = main(asking(&clock, ask_with(async |_| Answer::yes())));
    let (_, report) = read(again.resume(paused, None).unwrap()).await;
    let used = report.usage.input_tokens + report.usage.output_tokens;
    assert!((8_000..=12_000).contains(&used), "{:?}", report.usage);
}

/// Bug: calls of tools that agents had made before they waited were forgotten where the same process went on.
#[tokio::test(start_paused = true)]
async fn calls_that_agents_made_before_they_waited_are_made() {
    let clock = Arc::new(PausedClock::new());
    let model = ScriptedModel::from_fn(|request: &RequestSnapshot| {
        match (who(request).as_str(), turns(request)) {
            ("main", 0) => ask("a", "x").and_call("delegate_to_agent", task("b", "y")),
            ("main", _) => Turn::text("ok"),
            (_, 4) => Turn::call("hit", json!({ "word": "x" })),
            (_, turn) => Turn::call("echo", json!({ "word": turn.to_string() })),
        }
    });
    let model = Arc::new(model);
    let main = |tools: ExecutorBuilder| {
        let main = AgentExecutor::with_model(model.clone(), tools).system("The main agent.");
        let main = main.budget(Budget { tool_calls: Some(13), ..Budget::default() });
        main.team(team([agent("a"), agent("b")]).build()).build().unwrap()
    };
    let (status, paused) =
        left_after(&main(asking(&clock, NobodyToAsk)), Duration::from_hours(1)).await;
    assert_eq!(status, Status::Parked);
    let again = main(asking(&clock, ask_with(async |_| Answer::yes())));
    let (events, _) = read(again.resume(paused, None).unwrap()).await;
    let begun = |tool: &str| {
        let is_it = |event: &&Arc<Event>| matches!(&event.body, EventBody::ToolCallStarted { tool_name, .. } if tool_name == tool);
        events.iter().filter(is_it).count()
    };
    assert_eq!(begun("hit"), 2, "they had room when they were asked about");
    assert_eq!(begun("echo"), 1, "two agents, two times four and two calls are made: one is left");
}

/// In a chat, agents of one answer cannot use again what was used for the one before.
#[tokio::test(start_paused = true)]
async fn what_was_used_before_a_run_went_on_is_used() {
    let model = ScriptedModel::from_fn(|request: &RequestSnapshot| {
        match (who(request).as_str(), turns(request)) {
            ("main", 0) => ask("big", "x"),
            ("main", 1) => Turn::text("first"),
            ("main", 2) => ask_many("w", 8),
            ("main", _) => Turn::text("all done"),
            (_, turn) => Turn::wait(Duration::from_millis(50))
                .and_call("echo", json!({ "word": turn.to_string() }))
                .tokens(300, 200),
        }
    });
    let mut big = agent("big");
    big.run.max_tokens = Some(10_000);
    let facts = ModelFacts { max_output: Some(1_000), ..ModelFacts::default() };
    let main = main_with(&Arc::new(model.with_facts(facts)), [big, agent("w")])
        .budget(Budget { tokens: Some(20_000), ..Budget::default() })
        .build()
        .unwrap();
    let (_, paused) = left_after(&main, Duration::from_hours(1)).await;
    let used = |usage: convoke_core::Usage| usage.input_tokens + usage.output_tokens;
    let before = used(paused.spent());
    assert!(before > 5_000, "{before}");
    let (_, report) = read(main.resume(paused, Some(Task::new("more"))).unwrap()).await;
    assert!(used(report.usage) > before, "some of it is left");
    assert!(used(report.usage) <= 20_000, "{:?}", report.usage);
}

/// How many agents there may be is a limit of the run, however often it goes on.
#[tokio::test(start_paused = true)]
async fn agents_are_counted_over_the_life_of_a_run() {
    let mut limits = TreeLimits::default();
    limits.max_agents = 1;
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("one"), ask("a", "y"), Turn::text("two")])
        .says("a", [done("a"), done("a again")])
        .model();
    let team = team([agent("a")]).limits(limits).build();
    let main = with(&model).system("The main agent.").team(team).build().unwrap();
    let (_, paused) = left_after(&main, Duration::from_hours(1)).await;
    let (events, _) = read(main.resume(paused, Some(Task::new("more"))).unwrap()).await;
    let told = answers(&events, "main");
    assert!(told[0].contains("this run has called 1 agent,"), "{told:?}");
    assert!(told[0].contains("do it yourself"), "{told:?}");
}

/// What was said beside its inputs is not lost with the process that was to hand it over.
#[tokio::test(start_paused = true)]
async fn an_agent_in_the_background_hears_all_that_it_was_told() {
    let mut mover = agent("mover");
    mover.input = InputConfig::none().required("from", InputType::String, "From where.").required(
        "to",
        InputType::String,
        "Where to.",
    );
    let moves = json!({
        "agent_name": "mover", "prompt": "Be careful.", "background": true,
        "inputs": { "from": "a", "to": "b" },
    });
    let waits = || [Turn::text("I wait."), Turn::text("It is moved.")];
    let model = Cast::new()
        .says("main", [Turn::call("delegate_to_agent", moves)])
        .says("main", waits())
        .says("mover", [done("moved")])
        .model();
    let main = main_with(&model, [mover.clone()]).build().unwrap();
    let (events, _) = read(main.start_as(RunId::new("r"), "go")).await;
    let asked = |model: &ScriptedModel| {
        let requests = model.requests();
        let first = requests.iter().find(|request| who(request) == "mover").unwrap();
        first.messages[0].words()
    };
    let told = asked(&model);
    assert!(told.contains("\"from\": \"a\"") && told.ends_with("Be careful."), "{told}");
    let events = durable(&events);
    let kept = up_to(&events, |event| matches!(event.body, EventBody::AgentSpawned { .. }));
    let model = Cast::new().says("main", waits()).says("mover", [done("moved")]).model();
    let main = main_with(&model, [mover]).build().unwrap();
    let (_, report) = read(main.resume(lost_after(&events, kept), None).unwrap()).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    assert_eq!(asked(&model), told);
}

/// It ended, and its caller was lost before it could note that.
#[tokio::test(start_paused = true)]
async fn the_end_of_an_agent_that_runs_only_once_is_noted_later() {
    let mut once = agent("once");
    once.run.at_most_once = true;
    let model = Cast::new()
        .says("main", [ask("once", "x"), Turn::text("ok")])
        .says("once", [done("done once")])
        .model();
    let main = main_with(&model, [once.clone()]).build().unwrap();
    let (events, _) = read(main.start_as(RunId::new("r"), "go")).await;
    let events = durable(&events);
    let kept = up_to(&events, |event| {
        event.parent.is_some() && matches!(event.body, EventBody::RunEnded { .. })
    });
    let model = Cast::new().says("main", [Turn::text("ok")]).model();
    let main = main_with(&model, [once]).build().unwrap();
    let (later, report) = read(main.resume(lost_after(&events, kept), None).unwrap()).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    let ended: Vec<Cause> = later
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::AgentEnded { outcome, .. } => Some(outcome.cause),
            _ => None,
        })
        .collect();
    assert_eq!(ended, [Cause::Goal]);
}

/// One that may run only once is not taken up anyway: that it is gone stops nothing, and what it used is counted.
#[tokio::test(start_paused = true)]
async fn a_run_goes_on_without_an_agent_that_would_not_go_on_anyway() {
    let mut once = agent("once");
    once.run.at_most_once = true;
    let model = Cast::new()
        .says("main", [ask("once", "x"), Turn::text("ok")])
        .says("once", [Turn::call("nap", json!({ "millis": 1_000 })), done("once")])
        .model();
    let main = main_with(&model, [once]).build().unwrap();
    let (events, _) = read(main.start_as(RunId::new("r"), "go")).await;
    let events = durable(&events);
    let kept = up_to(&events, |event| {
        event.parent.is_some() && matches!(event.body, EventBody::ModelResponse { .. })
    });
    let model = Cast::new().says("main", [Turn::text("ok")]).model();
    let main = main_with(&model, [agent("other")]).build().unwrap();
    let (later, report) = read(main.resume(lost_after(&events, kept), None).unwrap()).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    let told = answers(&later, "main");
    assert!(told[0].contains("interrupted"), "{told:?}");
    let ended = later.iter().find_map(|event| match &event.body {
        EventBody::AgentEnded { outcome, usage, .. } => Some((outcome.cause, usage.is_empty())),
        _ => None,
    });
    assert_eq!(ended, Some((Cause::Terminated, false)));
}

/// An agent that was granted others and is too far down to call them knows why it cannot.
#[tokio::test(start_paused = true)]
async fn an_agent_on_the_last_level_is_told_why_it_has_nobody_to_call() {
    let mut lead = agent("lead");
    lead.agents = vec!["plain".to_owned()];
    for (depth, is_told) in [(1, true), (2, false)] {
        let model = Cast::new()
            .says("main", [ask("lead", "x"), ask("plain", "x"), Turn::text("ok")])
            .model();
        let mut limits = TreeLimits::default();
        limits.max_depth = depth;
        let team = team([lead.clone(), agent("plain")]).limits(limits).build();
        let main = with(&model).system("The main agent.").team(team).build().unwrap();
        read(main.start("go")).await;
        let system = |name: &str| {
            let requests = model.requests();
            let request = requests.iter().find(|request| who(request) == name).unwrap();
            request.system.clone()
        };
        let told = |name: &str| system(name).contains("You cannot call agents here");
        assert_eq!((told("lead"), told("plain")), (is_told, false), "{depth}");
    }
}

/// What an agent that goes on would not hear is not taken as if it did.
#[tokio::test(start_paused = true)]
async fn who_goes_on_is_told_what_in_words() {
    let call = |prompt: &str, inputs: serde_json::Value| {
        let id = "call_1";
        let more = json!({ "agent_name": "a", "prompt": prompt, "inputs": inputs, "agent_id": id });
        Turn::call("delegate_to_agent", more)
    };
    let model = Cast::new()
        .says(
            "main",
            [
                ask("a", "x"),
                call(" ", json!({})),
                call("more", json!({ "task": "y" })),
                call("more", json!({})),
                Turn::text("ok"),
            ],
        )
        .says("a", [done("one"), done("two")])
        .model();
    let main = main_with(&model, [agent("a")]).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let told = answers(&events, "main");
    assert!(told[1].contains("`prompt` is empty"), "{told:?}");
    assert!(told[2].contains("takes no `inputs`; say all of it in `prompt`"), "{told:?}");
    assert!(told[3].starts_with("two"), "{told:?}");
}

/// A call that the user consented to waits for one before it that the user has not been asked about in time.
#[tokio::test(start_paused = true)]
async fn approval_of_a_call_survives_a_parked_neighbour() {
    use std::sync::Mutex;
    for changed in [false, true] {
        let clock = Arc::new(PausedClock::new());
        let questions: Arc<Mutex<Vec<String>>> = Arc::default();
        let (asked, resumed) =
            (Arc::clone(&questions), Arc::new(std::sync::atomic::AtomicBool::new(false)));
        let is_resumed = Arc::clone(&resumed);
        let approver = ask_with(move |question: convoke_tool::Question| {
            asked.lock().unwrap().push(question.call.to_string());
            let is_first = question.call.as_str() == "call_1";
            let later = is_resumed.load(std::sync::atomic::Ordering::Relaxed);
            async move {
                match (is_first, changed) {
                    (true, _) if !later => Answer::Nobody,
                    (false, true) => Answer::with_arguments(json!({ "word": "changed" })),
                    _ => Answer::yes(),
                }
            }
        });
        let hits =
            Turn::call("hit", json!({ "word": "a" })).and_call("hit", json!({ "word": "b" }));
        let model = crate::support::script([hits, Turn::text("done")]);
        let main = with_tools(&model, asking(&clock, approver), []);
        let (status, paused) = left_after(&main, Duration::from_secs(5)).await;
        assert_eq!(status, Status::Parked);
        let mut before = std::mem::take(&mut *questions.lock().unwrap());
        before.sort();
        assert_eq!(before, ["call_1", "call_2"]);
        resumed.store(true, std::sync::atomic::Ordering::Relaxed);
        let (events, report) = read(main.resume(paused, None).unwrap()).await;
        assert_eq!(report.text().as_deref(), Some("done"));
        assert_eq!(*questions.lock().unwrap(), ["call_1"], "the other was answered before");
        let hit = |event: &&Arc<Event>| matches!(event.body, EventBody::ToolCallCompleted { .. });
        assert_eq!(events.iter().filter(hit).count(), 2);
        let heard = format!("{:?}", model.requests()[1].messages);
        assert_eq!(heard.contains("The user changed the arguments"), changed, "{heard}");
    }
}

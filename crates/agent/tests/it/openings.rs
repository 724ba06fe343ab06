//! What hurts users of agents, and does not happen here.

use std::sync::Arc;
use std::time::Duration;

use convoke_agent::{AgentExecutor, TreeLimits};
use convoke_core::hook::Moment;
use convoke_core::run::Budget;
use convoke_core::{Cause, EventBody, Kind, ModelFacts, Permission, Price, Role, Status};
use convoke_model::scripted::Turn;
use convoke_model::{ModelError, ModelErrorKind};
use convoke_tool::{
    Answer, FunctionHook, FunctionTool, Hooks, KindAuthorizer, ToolContext, ToolExecutor,
    ToolRegistry, ToolView, Verdict, ask_with,
};
use serde_json::json;

use crate::family::{
    Cast, agent, answers, ask, asked, done, in_background, main_with, task, team, who,
};
use crate::support::{Word, echo, read, with};

fn say(word: &str) -> Turn {
    Turn::call("echo", json!({ "word": word }))
}

/// claude-code#40580, #60934, goose#12295: hooks are asked about the calls of agents, and their no counts.
#[tokio::test(start_paused = true)]
async fn hooks_guard_the_calls_of_agents() {
    let guard = FunctionHook::new("no secrets", [Moment::BeforeTool], |_, event| {
        let body = serde_json::to_string(&event.body).unwrap();
        let refused = !event.agent.is_root() && body.contains("secret");
        let deny = Verdict::Deny { reason: "not in here".into() };
        std::future::ready(Ok(if refused { deny } else { Verdict::Go }))
    });
    let registry = ToolRegistry::new();
    registry.register(echo()).unwrap();
    let tools = ToolExecutor::builder(ToolView::of(registry), ToolContext::builder("t").build())
        .hooks(Hooks::default().and(guard.guarding()));
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says("a", [say("the secret"), say("the rest"), done("a")])
        .model();
    let main = AgentExecutor::with_model(model, tools).system("Main.");
    let main = main.team(team([agent("a")]).build()).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let told = answers(&events, "main/a");
    assert!(told[0].contains("not in here"), "{told:?}");
    assert!(told[1].contains("you said the rest"), "{told:?}");
}

/// gemini-cli 4.2 (#17648): an agent that gets the shape of its output wrong again and again does not go on
/// forever.
#[tokio::test(start_paused = true)]
async fn a_shape_that_stays_wrong_ends_the_agent() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Report {
        #[expect(dead_code, reason = "only its schema counts")]
        summary: String,
    }
    let typed = agent("a").returning::<Report>("report", "It.");
    let wrong = || Turn::call("complete_task", json!({ "report": { "sumary": "x" } }));
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says("a", (0..60).map(|_| wrong()))
        .model();
    let main = main_with(&model, [typed.untyped()]).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let answer = &answers(&events, "main")[0];
    assert!(answer.contains("did not complete its task (loop)"), "{answer}");
    assert!(asked(&model).len() < 15, "{}", asked(&model).len());
}

/// gemini-cli 4.8: the conversation of an agent is summed up, too, though it has only one message of a user.
#[tokio::test(start_paused = true)]
async fn the_conversation_of_an_agent_is_summed_up() {
    let long = |word: &str| say(&word.repeat(3_000));
    let facts = ModelFacts { window: Some(6_000), ..ModelFacts::default() };
    let model = Cast::new()
        .says("main", [ask("a", "look through it"), Turn::text("ok")])
        .says("a", [long("a"), long("b"), Turn::text("I read a and b."), done("all read")])
        .model_with(facts);
    let main = main_with(&model, [agent("a")]).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let shortened = events.iter().any(|event| {
        event.agent.as_str() == "main/a"
            && matches!(&event.body, EventBody::Compaction { summary: Some(_), .. })
    });
    assert!(shortened);
    assert!(answers(&events, "main")[0].starts_with("all read"));
}

/// gemini-cli 4.13: a no to one of several calls of an agent is an answer to that call, and to no other.
#[tokio::test(start_paused = true)]
async fn a_no_to_one_call_of_an_agent_is_not_its_end() {
    let registry = ToolRegistry::new();
    registry.register(echo()).unwrap();
    let hit = FunctionTool::new("hit", "Hits.", async |word: Word, _: ToolContext| {
        Ok::<_, String>(format!("hit {}", word.word))
    });
    registry.register(hit.kind(Kind::Edit)).unwrap();
    let tools = ToolExecutor::builder(ToolView::of(registry), ToolContext::builder("t").build())
        .authorizer(KindAuthorizer::default().with(Kind::Edit, Permission::Ask))
        .approver(ask_with(async |question| {
            if question.arguments["word"] == "two" { Answer::no() } else { Answer::yes() }
        }));
    let hit = |word: &str| json!({ "word": word });
    let three =
        Turn::call("hit", hit("one")).and_call("hit", hit("two")).and_call("hit", hit("three"));
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says("a", [three, say("on"), done("went on")])
        .model();
    let main = AgentExecutor::with_model(model, tools).system("Main.");
    let main = main.team(team([agent("a")]).build()).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    let told = answers(&events, "main/a");
    assert!(told.iter().any(|answer| answer.contains("hit one")), "{told:?}");
    assert!(told.iter().any(|answer| answer.contains("hit three")), "{told:?}");
    assert!(told.iter().any(|answer| answer.contains("the user said no")), "{told:?}");
    assert!(answers(&events, "main")[0].starts_with("went on"));
    assert_eq!(report.outcome.status, Status::Completed);
}

/// gemini-cli 4.16: what is said to a run while its agents work is for the run, and not for them.
#[tokio::test(start_paused = true)]
async fn what_is_said_meanwhile_reaches_nobody_else() {
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("I heard you.")])
        .says("a", [Turn::call("nap", json!({ "millis": 5_000 })), say("on"), done("a")])
        .model();
    let main = main_with(&model, [agent("a")]).build().unwrap();
    let run = main.start("go");
    let handle = run.handle();
    let speaker = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        handle.say("look at the tests, too").unwrap();
    };
    let (_, ()) = tokio::join!(read(run), speaker);
    for request in model.requests() {
        let heard =
            request.messages.iter().any(|message| message.words().contains("the tests, too"));
        let is_later = request.messages.iter().any(|message| message.role == Role::Tool);
        assert_eq!(heard, who(&request) == "main" && is_later, "{}", who(&request));
    }
}

/// codex#39808: an agent pays for its own instructions and tools, and not for its caller's.
#[tokio::test(start_paused = true)]
async fn an_agent_pays_for_what_it_needs() {
    let mut small = agent("small");
    small.tools = convoke_agent::definition::ToolConfig::only(["echo"]);
    let model = Cast::new().says("main", [ask("small", "x"), Turn::text("ok")]).model();
    let instructions = "A very long story. ".repeat(500);
    let main = with(&model).system(instructions).team(team([small]).build()).build().unwrap();
    read(main.start("go")).await;
    let child = &model.requests()[1];
    assert!(child.system.len() < 400, "{}", child.system);
    let tools: Vec<&str> = child.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["echo", "complete_task"]);
}

/// codex#35541: names of tools for agents are not like those of others, and each says what it is for.
#[tokio::test(start_paused = true)]
async fn tools_for_agents_have_names_of_their_own() {
    let model = Cast::new().says("main", [Turn::text("ok")]).model();
    let main = main_with(&model, [agent("a")]).build().unwrap();
    read(main.start("go")).await;
    let names: Vec<String> =
        model.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["background_agents", "delegate_to_agent", "echo", "fail", "nap"]);
}

/// codex#34653, #24951, gemini-cli#21409: an agent whose model never answers does not hold up its caller for
/// longer than a turn may take.
#[tokio::test(start_paused = true)]
async fn an_agent_whose_model_is_silent_is_given_up() {
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says("a", [Turn::wait(Duration::from_hours(8)).and_text("never")])
        .model();
    let main = main_with(&model, [agent("a")]).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    assert!(report.duration_ms.get() < Duration::from_mins(10), "{:?}", report.duration_ms);
    assert!(answers(&events, "main")[0].contains("(timeout)"), "{:?}", answers(&events, "main"));
    assert_eq!(report.outcome.cause, Cause::Goal);
}

/// gemini-cli 4.15: two calls of one agent at the same time have nothing in common.
#[tokio::test(start_paused = true)]
async fn two_calls_of_one_agent_are_two_runs() {
    let both = ask("a", "left").and_call("delegate_to_agent", task("a", "right"));
    let model = Cast::new()
        .says("main", [both, Turn::text("ok")])
        .says("a", [say("1"), say("2"), done("x"), done("y")])
        .model();
    let main = main_with(&model, [agent("a")]).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let runs: std::collections::BTreeSet<_> = events
        .iter()
        .filter(|event| event.agent.as_str() == "main/a")
        .map(|event| event.run.clone())
        .collect();
    assert_eq!(runs.len(), 2);
    for request in model.requests().iter().filter(|request| who(request) == "a") {
        let first = request.messages[0].words();
        let others = request.messages.iter().skip(1).map(convoke_core::Message::words);
        let other = if first == "left" { "right" } else { "left" };
        assert!(others.into_iter().all(|words| !words.contains(other)), "{first}");
    }
}

/// codex#31378: a run can go on calling agents; none of those that ended, well or not, is in the way of the next.
#[tokio::test(start_paused = true)]
async fn the_hundredth_agent_works_like_the_first() {
    let asks = (0..100_usize).map(|index| ask(["good", "bad"][index % 2], &index.to_string()));
    let broken = || Turn::error(ModelError::new(ModelErrorKind::Authentication, "p", "no key"));
    let model = Cast::new()
        .says("main", asks.chain([Turn::text("ok")]))
        .says("good", (0..50).map(|index| done(&format!("good {index}"))))
        .says("bad", (0..50).map(|_| broken()))
        .model();
    let mut limits = TreeLimits::default();
    limits.max_parallel = 1;
    let team = team([agent("good"), agent("bad")]).limits(limits).build();
    let budget = Budget { turns: 200, ..Budget::default() };
    let main = with(&model).system("Main.").team(team).budget(budget).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!(report.text().as_deref(), Some("ok"), "{:?}", report.outcome);
    let told = answers(&events, "main");
    let good = told.iter().filter(|answer| answer.starts_with("good ")).count();
    assert_eq!((told.len(), good), (100, 50));
}

/// claude-code#94013: an agent that works in the background has limits like any other.
#[tokio::test(start_paused = true)]
async fn an_agent_in_the_background_has_limits() {
    let mut busy = agent("busy");
    busy.run.max_turns = Some(4);
    let start = Turn::call("delegate_to_agent", in_background("busy", "x"));
    let model = Cast::new()
        .says("main", [start, Turn::text("ok"), Turn::text("ok")])
        .says("busy", (0..50).map(|index| say(&index.to_string())))
        .model();
    let main = main_with(&model, [busy]).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    let cause = events.iter().find_map(|event| match &event.body {
        EventBody::AgentEnded { outcome, .. } => Some(outcome.cause),
        _ => None,
    });
    assert_eq!(cause, Some(Cause::MaxTurns));
    assert_eq!(asked(&model).iter().filter(|who| *who == "busy").count(), 4);
    assert_eq!(report.text().as_deref(), Some("ok"), "{:?}", report.outcome);
}

/// goose#7877, #7359, #10103, #4269, yoagent#173, codex#35027: what an agent cost is told for it, with its model, and
/// is part of what its caller cost, once.
#[tokio::test(start_paused = true)]
async fn what_an_agent_cost_is_told_and_is_part_of_the_whole() {
    let price = Price {
        input: "1".parse().unwrap(),
        cached_input: None,
        cache_write: None,
        output: "10".parse().unwrap(),
    };
    let facts = ModelFacts { window: Some(100_000), price: Some(price), ..ModelFacts::default() };
    let model = Cast::new()
        .says("main", [ask("a", "x").tokens(1_000, 100), Turn::text("ok").tokens(2_000, 100)])
        .says("a", [say("hi").tokens(1_000, 100), done("r").tokens(2_000, 100)])
        .model_with(facts);
    let main = main_with(&model, [agent("a")]).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!(report.usage.cost, Some("0.01".parse().unwrap()));
    let cost = events.iter().find_map(|event| match &event.body {
        EventBody::AgentEnded { usage, .. } => usage.cost,
        _ => None,
    });
    assert_eq!(cost, Some("0.005".parse().unwrap()));
    let works = events.iter().any(|event| {
        event.agent.as_str() == "main/a"
            && matches!(&event.body, EventBody::RunStarted { model, .. } if model == "scripted/model")
    });
    assert!(works, "it is told which model works");
}

/// gemini-cli 4.5 (#24870), 4.14: agents that ended leave nothing behind that listens, works or holds a model.
#[tokio::test(start_paused = true)]
async fn agents_that_ended_leave_nothing_behind() {
    let asks = |from: usize, to: usize| (from..to).map(|index| ask("a", &index.to_string()));
    let ok = || [Turn::text("ok")];
    let model =
        Cast::new().says("main", asks(0, 1).chain(ok()).chain(asks(1, 21)).chain(ok())).model();
    let main = main_with(&model, [agent("a")]).build().unwrap();
    let mut left = Vec::new();
    for _ in 0..2 {
        read(main.start("go")).await;
        // Whoever was stopped needs a turn to end.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        left.push((Arc::strong_count(&model), tasks));
    }
    assert_eq!(asked(&model).len(), 1 + 1 + 1 + 20 + 20 + 1);
    assert_eq!(left[0], left[1], "twenty agents leave as much as one");
}

/// codex#24951: whoever waits for an agent waits for as long as it said, and not until the agent ends.
#[tokio::test(start_paused = true)]
async fn waiting_for_an_agent_has_an_end() {
    let start = in_background("slow", "x");
    let look_after = |arguments: serde_json::Value| Turn::call("background_agents", arguments);
    let turns = [
        Turn::call("delegate_to_agent", start),
        look_after(json!({ "action": "wait", "seconds": 5 })),
        look_after(json!({ "action": "cancel", "agent_id": "call_1" })),
    ];
    let model = Cast::new()
        .says("main", turns.into_iter().chain(["ok", "ok"].map(Turn::text)))
        .says("slow", [Turn::call("nap", json!({ "millis": 500_000 }))])
        .model();
    let main = main_with(&model, [agent("slow")]).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    let told = answers(&events, "main");
    assert!(told[1].contains("\"status\":\"working\""), "{told:?}");
    assert!(report.duration_ms.get() < Duration::from_mins(1), "{:?}", report.duration_ms);
}

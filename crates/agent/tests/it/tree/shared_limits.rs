//! Limits that hold for all agents together: tokens, calls, how many there are, how many work at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use convoke_agent::{AgentExecutor, TreeLimits, replay};
use convoke_core::run::Budget;
use convoke_core::{Cause, Event, EventBody, Kind, Limit, ModelFacts, Role};
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::{FunctionTool, ToolContext, ToolExecutor, ToolRegistry, ToolView};
use serde_json::json;

use crate::family::{Cast, agent, answers, ask, ask_many, done, main_with, task, team, turns, who};
use crate::support::{Word, durable, read, with};

/// codex#12488, #38989: many agents at once cannot use more than there is, and the last ones are refused.
/// codex#12487, #46023, #30842: the limit is one for all of them.
#[tokio::test(start_paused = true)]
async fn thirty_two_agents_cannot_overspend_together() {
    let used = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&used);
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        match (who(request).as_str(), turns(request)) {
            ("main", 0) => ask_many("w", 32),
            ("main", _) => Turn::text("ok"),
            (_, turn) => {
                counted.fetch_add(300, Ordering::Relaxed);
                Turn::wait(Duration::from_millis(50))
                    .and_call("echo", json!({ "word": turn.to_string() }))
                    .tokens(100, 200)
            }
        }
    });
    let facts = ModelFacts { max_output: Some(200), ..ModelFacts::default() };
    let model = Arc::new(model.with_facts(facts));
    let main = main_with(&model, [agent("w")])
        .budget(Budget { tokens: Some(20_000), ..Budget::default() })
        .build()
        .unwrap();
    let (events, report) = read(main.start("go")).await;
    let used = used.load(Ordering::Relaxed);
    assert!((10_000..=17_000).contains(&used), "{used} tokens");
    assert_eq!(report.text().as_deref(), Some("ok"), "and their caller can still answer");
    assert!(report.usage.input_tokens + report.usage.output_tokens <= 20_000, "{:?}", report.usage);
    let refused = |event: &Arc<Event>| {
        matches!(&event.body, EventBody::BudgetExceeded { budget: Limit::Tokens, .. })
    };
    assert!(events.iter().filter(|event| refused(event)).count() >= 32);
    let waits =
        |event: &&Arc<Event>| matches!(event.body, EventBody::BudgetAwaited { tokens: 200.. });
    assert!(events.iter().filter(waits).count() >= 10, "who has to wait for others says so");
    let ends = events.iter().filter(|event| matches!(event.body, EventBody::AgentEnded { .. }));
    assert_eq!(ends.count(), 32, "each has an end of its own");
    // What is only kept or set aside is not said to be used.
    let told = answers(&events, "main").join("\n");
    assert!(told.contains("too little for a request: of 20000 tokens "), "{told}");
    assert!(told.contains(" are kept for the caller's answer; one request takes "), "{told}");
}

/// They were once told that the tokens are used up, which they were not.
#[tokio::test(start_paused = true)]
async fn agents_that_nothing_is_left_for_are_told_what_is_kept() {
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        match (who(request).as_str(), turns(request)) {
            ("main", 0) => ask_many("w", 3).tokens(1_400, 100),
            ("main", _) => Turn::text("ok"),
            (other, _) => panic!("{other} has nothing to ask with"),
        }
    });
    let main = main_with(&Arc::new(model), [agent("w")])
        .budget(Budget { tokens: Some(3_000), ..Budget::default() })
        .build()
        .unwrap();
    let (events, _) = read(main.start("go")).await;
    let told = answers(&events, "main");
    assert_eq!(told.len(), 3, "{told:?}");
    let why = "too little for a request: of 3000 tokens 1500 are used, 1500 are kept for the caller's answer; one \
               request takes ";
    assert!(told.iter().all(|told| told.contains(why)), "{told:?}");
    let explained = events.iter().filter(|event| {
        matches!(&event.body, EventBody::BudgetExceeded { of: Some(_), why: Some(_), .. })
    });
    assert_eq!(explained.count(), 3);
}

/// Agents that use up what there is leave their caller enough for an answer, at every level.
#[tokio::test(start_paused = true)]
async fn agents_leave_their_caller_tokens_for_an_answer() {
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        match (who(request).as_str(), turns(request)) {
            ("main", 0) => ask_many("w", 8),
            ("main", _) => Turn::text("all done").tokens(1_500, 20),
            (_, turn) => Turn::wait(Duration::from_millis(50))
                .and_call("echo", json!({ "word": turn.to_string() }))
                .tokens(300, 200),
        }
    });
    let facts = ModelFacts { max_output: Some(1_000), ..ModelFacts::default() };
    let main = main_with(&Arc::new(model.with_facts(facts)), [agent("w")])
        .budget(Budget { tokens: Some(10_000), ..Budget::default() })
        .build()
        .unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!(report.text().as_deref(), Some("all done"), "{:?}", report.outcome);
    let limited = |event: &&Arc<Event>| matches!(&event.body, EventBody::AgentEnded { outcome, .. } if outcome.cause == Cause::MaxTokens);
    assert_eq!(events.iter().filter(limited).count(), 8, "all of them came to their end");
}

/// codex#16183: more than may work at once wait for their turn, and none fails for it.
/// gemini-cli 4.19: there is a greatest number of agents that work at once.
#[tokio::test(start_paused = true)]
async fn more_agents_than_may_work_wait_for_their_turn() {
    let many = ask_many("w", 12);
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (working, peak) = (Arc::clone(&now), Arc::clone(&most));
    let busy = FunctionTool::new("busy", "Works.", move |_: Word, _: ToolContext| {
        let (working, peak) = (Arc::clone(&working), Arc::clone(&peak));
        async move {
            peak.fetch_max(working.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            working.fetch_sub(1, Ordering::Relaxed);
            Ok::<_, String>("done")
        }
    });
    let tools = ToolRegistry::new();
    tools.register(busy.kind(Kind::Read)).unwrap();
    let tools = ToolExecutor::builder(ToolView::of(tools), ToolContext::builder("t").build());
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        match (who(request).as_str(), turns(request)) {
            ("main", 0) => many.clone(),
            ("main", _) => Turn::text("ok"),
            ("w", 0) => Turn::call("busy", json!({ "word": "x" })),
            _ => done("fine"),
        }
    });
    let mut limits = TreeLimits::default();
    limits.max_parallel = 3;
    let main = AgentExecutor::with_model(Arc::new(model), tools)
        .system("The main agent.")
        .team(team([agent("w")]).limits(limits).build())
        .build()
        .unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    assert_eq!(most.load(Ordering::Relaxed), 3);
    assert!(answers(&events, "main").iter().all(|answer| answer.starts_with("fine")));
}

/// opencode#37235: 7,377 child sessions. There is an end to it.
#[tokio::test(start_paused = true)]
async fn a_tree_has_a_greatest_number_of_agents() {
    let four = ask_many("w", 4);
    let model = Cast::new().says("main", [four, Turn::text("ok")]).model();
    let mut limits = TreeLimits::default();
    limits.max_agents = 3;
    let main = with(&model)
        .system("The main agent.")
        .team(team([agent("w")]).limits(limits).build())
        .build()
        .unwrap();
    let (events, _) = read(main.start("go")).await;
    let told = answers(&events, "main");
    assert_eq!(told.iter().filter(|answer| answer.contains("has called 3 agents")).count(), 1);
}

/// A limit of calls holds for all agents together, not for each.
#[tokio::test(start_paused = true)]
async fn calls_of_tools_are_counted_for_the_whole_tree() {
    let many = ask_many("w", 8);
    let looks =
        || Turn::call("echo", json!({ "word": "a" })).and_call("echo", json!({ "word": "b" }));
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        let said = request.messages.iter().any(|one| one.role == Role::Assistant);
        match (who(request).as_str(), said) {
            ("main", false) => many.clone(),
            ("main", true) => Turn::text("ok"),
            (_, false) => looks(),
            _ => done("fine"),
        }
    });
    let main = main_with(&Arc::new(model), [agent("w")])
        .budget(Budget { tool_calls: Some(12), ..Budget::default() })
        .build()
        .unwrap();
    let (events, _) = read(main.start("go")).await;
    let begun = |event: &&Arc<Event>| matches!(event.body, EventBody::ToolCallStarted { .. });
    assert_eq!(events.iter().filter(begun).count(), 12);
}

/// What the ledger refuses a run is nothing that the run could have seen by itself: replaying it finds no difference.
#[tokio::test(start_paused = true)]
async fn what_the_ledger_refused_is_replayed() {
    let echo = |word: &str| Turn::call("echo", json!({ "word": word }));
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        match (who(request).as_str(), turns(request)) {
            ("main", 0) => ask_many("w", 2),
            ("main", 1) => echo("x").and_call("echo", json!({ "word": "y" })),
            ("main", _) => Turn::text("ok"),
            (_, 0) => echo("a").and_call("echo", json!({ "word": "b" })),
            _ => done("fine"),
        }
    });
    let main = main_with(&Arc::new(model), [agent("w")])
        .budget(Budget { tool_calls: Some(6), ..Budget::default() })
        .build()
        .unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!((report.outcome.cause, report.outcome.recovered), (Cause::MaxToolCalls, true));
    let root = events[0].run.clone();
    let refused = |event: &&Arc<Event>| {
        let EventBody::BudgetExceeded { budget, of, .. } = &event.body else { return false };
        (*budget, of.as_ref()) == (Limit::ToolCalls, Some(&root))
    };
    assert_eq!(events.iter().filter(refused).count(), 1);
    let replayed = replay(&root, &durable(&events));
    assert!(replayed.is_ok(), "{}", replayed.unwrap_err());
}

/// Bug: an agent at its last turn, which the others left nothing for, asked again and again for its last answer.
#[tokio::test(start_paused = true)]
async fn an_agent_whose_last_answer_nothing_is_left_for_ends() {
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        match (who(request).as_str(), turns(request)) {
            ("main", 0) => ask("slow", "x").and_call("delegate_to_agent", task("hungry", "y")),
            ("main", _) => Turn::text("ok"),
            ("slow", 0) => Turn::wait(Duration::from_secs(5))
                .and_call("echo", json!({ "word": "x" }))
                .tokens(1_200, 10),
            ("slow", _) => panic!("nothing is left to ask with"),
            (_, turn) => Turn::call("echo", json!({ "word": turn.to_string() })).tokens(100, 200),
        }
    });
    let mut slow = agent("slow");
    slow.run.max_turns = Some(2);
    let facts = ModelFacts { max_output: Some(200), ..ModelFacts::default() };
    let main = main_with(&Arc::new(model.with_facts(facts)), [slow, agent("hungry")])
        .budget(Budget { tokens: Some(9_000), ..Budget::default() })
        .build()
        .unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!(report.text().as_deref(), Some("ok"), "{:?}", report.outcome);
    let ends: Vec<(String, Cause)> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::RunEnded { outcome, .. } => Some((event.agent.to_string(), outcome.cause)),
            _ => None,
        })
        .collect();
    assert_eq!(
        ends,
        [
            ("main/hungry".to_owned(), Cause::MaxTokens),
            ("main/slow".to_owned(), Cause::MaxTurns),
            ("main".to_owned(), Cause::Goal)
        ]
    );
}

fn two_hundred_calls() -> Turn {
    (1..200).fold(Turn::call("echo", json!({ "word": "0" })), |turn, index| {
        turn.and_call("echo", json!({ "word": index.to_string() }))
    })
}

/// A model that asks for hundreds of calls at once has answered: some are taken, and it is told.
#[tokio::test(start_paused = true)]
async fn of_too_many_calls_the_first_are_taken() {
    let model = Cast::new()
        .says("main", [two_hundred_calls().tokens(100, 3_000), Turn::text("ok").tokens(100, 1)])
        .model();
    let main = main_with(&model, [agent("a")]).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!((report.outcome.cause, report.tool_calls), (Cause::Goal, 128));
    assert_eq!(report.usage.output_tokens, 3_001, "as the provider says");
    assert_eq!(answers(&events, "main").len(), 128);
    let told = model.requests()[1].messages.last().unwrap().words();
    assert!(told.contains("the first 128 were taken, 72 were not run"), "{told}");
}

/// Whoever runs a model of their own says how many calls of one answer it can be told the results of.
#[tokio::test(start_paused = true)]
async fn how_many_calls_are_taken_is_a_fact_of_the_model() {
    for (max_calls, taken) in [(2, 2), (199, 199), (200, 200), (1_000, 200)] {
        let facts = ModelFacts { max_calls: Some(max_calls), ..ModelFacts::default() };
        let model =
            Cast::new().says("main", [two_hundred_calls(), Turn::text("ok")]).model_with(facts);
        let main = main_with(&model, [agent("a")]).build().unwrap();
        let (events, report) = read(main.start("go")).await;
        assert_eq!((report.outcome.cause, report.tool_calls), (Cause::Goal, taken));
        assert_eq!(answers(&events, "main").len(), taken as usize);
        let told = model.requests()[1].messages.last().unwrap().words();
        let says = format!("the first {taken} were taken, {} were not run", 200 - taken);
        assert_eq!(told.contains(&says), taken < 200, "{told}");
    }
}

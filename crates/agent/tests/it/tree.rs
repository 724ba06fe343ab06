//! A whole tree that behaves like one run: questions, parking, taking up again, the background, the ledger.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use convoke_agent::{
    AgentBuilder, AgentDefinition, AgentExecutor, Journals, Letter, Paused, Task, TreeLimits,
};
use convoke_core::run::Budget;
use convoke_core::{
    CallId, Cause, Event, EventBody, Kind, Limit, ModelFacts, Permission, RunId, Status,
};
use convoke_journal::Store;
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::{
    Answer, Approver, Authorizer, Decision, ExecutorBuilder, FunctionTool, KindAuthorizer, Limits,
    NobodyToAsk, Request, SystemClock, ToolContext, ToolExecutor, ToolRegistry, ToolView,
    Unanswered, ask_with,
};
use futures_util::StreamExt as _;
use serde_json::json;
use tempfile::TempDir;

use crate::family::{Cast, agent, answers, ask, asked, done, main_with, task, team, who};
use crate::support::{Word, echo, nap, read};

/// Asks about `hit`, unless something was granted.
#[derive(Debug)]
struct AsksAboutHit;

impl Authorizer for AsksAboutHit {
    fn decide(&self, request: &Request<'_>) -> Decision {
        let asks = KindAuthorizer::default().with(Kind::Execute, Permission::Ask).decide(request);
        match asks {
            Decision::Ask { rule, .. } if !request.granted.is_empty() => Decision::Allow { rule },
            other => other,
        }
    }
}

struct World {
    state: TempDir,
    hits: Arc<AtomicU32>,
}

impl World {
    fn new() -> Self {
        Self { state: tempfile::tempdir().unwrap(), hits: Arc::default() }
    }

    fn journals(&self) -> Journals {
        Journals::new(Store::at(self.state.path()), Arc::new(SystemClock))
    }

    fn main(
        &self,
        model: &Arc<ScriptedModel>,
        agents: impl IntoIterator<Item = AgentDefinition>,
        approver: impl Approver + 'static,
    ) -> AgentBuilder {
        let registry = ToolRegistry::new();
        let hits = Arc::clone(&self.hits);
        let hit = FunctionTool::new("hit", "Hits.", move |word: Word, _: ToolContext| {
            hits.fetch_add(1, Ordering::Relaxed);
            async move { Ok::<_, String>(format!("hit {}", word.word)) }
        });
        registry.register(hit.kind(Kind::Execute)).unwrap();
        registry.register(echo()).unwrap();
        registry.register(nap()).unwrap();
        let tools =
            ToolExecutor::builder(ToolView::of(registry), ToolContext::builder("t").build())
                .authorizer(AsksAboutHit)
                .approver(approver)
                .limits(Limits { unanswered: Unanswered::Park, ..Limits::default() });
        AgentExecutor::with_model(model.clone(), tools)
            .system("The main agent.")
            .keeper(Arc::new(self.journals()))
            .team(team(agents).build())
    }

    fn events(&self) -> Vec<Event> {
        self.journals().store().read(&RunId::new("r")).unwrap().events
    }

    /// Leaves a yes to everything that is asked, as another process would.
    fn approve_all(&self) {
        let events = self.events();
        let inbox = self.journals().store().inbox(&RunId::new("r")).unwrap();
        for open in convoke_journal::open_questions(&events) {
            let now = open.asked.after(Duration::from_secs(1));
            let letter =
                Letter::yes(open.run.clone(), open.call.clone(), open.fingerprint.to_owned(), now);
            inbox.put(&letter.into_item(), now).unwrap();
        }
    }
}

fn hit(word: &str) -> Turn {
    Turn::call("hit", json!({ "word": word }))
}

fn granting(name: &str, granted: &[&str]) -> AgentDefinition {
    let mut definition = agent(name);
    definition.agents = granted.iter().map(|name| (*name).to_owned()).collect();
    definition
}

/// goose#11778, codex#12829, opencode#36868: a question of an agent reaches the person, with who asks.
#[tokio::test]
async fn questions_rise_to_the_root_with_the_path_of_who_asks() {
    let world = World::new();
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says("a", [ask("b", "x"), done("a")])
        .says("b", [hit("x"), done("b")])
        .model();
    let asked: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let approver = ask_with(move |question| {
        seen.lock().unwrap().push(question.agent.to_string());
        async { Answer::yes() }
    });
    let main = world.main(&model, [granting("a", &["b"]), agent("b")], approver).build().unwrap();
    let (_, report) = read(main.start("go")).await;
    assert_eq!((report.outcome.cause, world.hits.load(Ordering::Relaxed)), (Cause::Goal, 1));
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
        let rule = convoke_core::policy::RuleSpec::tool(Permission::Allow, "hit");
        async { Answer::always(vec![rule]) }
    });
    let main = world.main(&model, [agent("a"), agent("b")], approver).build().unwrap();
    read(main.start("go")).await;
    assert_eq!((questions.load(Ordering::Relaxed), world.hits.load(Ordering::Relaxed)), (1, 3));
}

/// Promise 8, opencode#43888: nobody there, two levels down: the whole tree waits, and goes on later.
#[tokio::test]
async fn a_tree_parks_and_goes_on_where_it_was() {
    let world = World::new();
    let both = ask("a", "1").and_call("delegate_to_agent", task("quick", "2"));
    let model = Cast::new()
        .says("main", [both])
        .says("a", [ask("b", "x")])
        .says("b", [hit("x")])
        .says("quick", [done("quick result")])
        .model();
    let agents = || [granting("a", &["b"]), agent("b"), agent("quick")];
    let main = world.main(&model, agents(), NobodyToAsk).build().unwrap();
    let (_, report) = read(main.start_as(RunId::new("r"), "go")).await;
    assert_eq!((report.outcome.status, report.exit_code() as u8), (Status::Parked, 8));
    assert_eq!(asked(&model).len(), 4, "{:?}", asked(&model));
    world.approve_all();
    let model = Cast::new()
        .says("main", [Turn::text("all done")])
        .says("a", [done("a result")])
        .says("b", [done("b result")])
        .model();
    let main = world.main(&model, agents(), NobodyToAsk).build().unwrap();
    let reopened = world.journals().reopen(&RunId::new("r")).unwrap();
    let (_, report) = read(main.resume(reopened.paused, None).unwrap()).await;
    assert_eq!(report.text().as_deref(), Some("all done"), "{:?}", report.outcome);
    assert_eq!(world.hits.load(Ordering::Relaxed), 1);
    assert_eq!(asked(&model), ["b", "a", "main"], "the one that had ended is not asked again");
    let results = serde_json::to_string(&model.requests()[2].messages.last()).unwrap();
    assert!(results.contains("a result") && results.contains("quick result"), "{results}");
}

/// codex#33002, #22033, gemini-cli#20258: every moment in which the process is lost, at every depth. What
/// had ended is never done again, and the end is the same.
/// codex#19140, forgecode#3287: no agent is lost, and none is called a second time.
#[tokio::test]
async fn a_tree_is_taken_up_after_any_event() {
    let script = |request: &RequestSnapshot| {
        let answers = request.messages.iter().flat_map(|message| &message.parts);
        let answered =
            answers.filter(|part| matches!(part, convoke_core::Part::ToolResult { .. })).count();
        match (who(request).as_str(), answered) {
            ("main", 0) => ask("a", "1").and_call("delegate_to_agent", task("c", "2")),
            ("main", 2) => hit("main"),
            ("main", _) => Turn::text("all done"),
            ("a", 0) => ask("b", "x"),
            ("b", 0) => hit("b"),
            ("c", 0) => Turn::call("echo", json!({ "word": "c" })),
            (other, _) => done(&format!("{other} result")),
        }
    };
    let agents = || [granting("a", &["b"]), agent("b"), agent("c")];
    let yes = || ask_with(async |_| Answer::yes());
    let world = World::new();
    let model = Arc::new(ScriptedModel::from_fn(script));
    let main = world.main(&model, agents(), yes()).build().unwrap();
    let (_, report) = read(main.start_as(RunId::new("r"), "go")).await;
    assert_eq!(report.outcome.cause, Cause::Goal);
    let events = world.events();
    let requests = model.requests().len();
    assert!(events.len() > 60, "{}", events.len());
    for kept in 1..events.len() {
        let again = World::new();
        let begun = events.get(..kept).unwrap();
        let hits = |body: &EventBody| matches!(body, EventBody::ToolCallStarted { tool_name, .. } if tool_name == "hit");
        let hit_before =
            u32::try_from(begun.iter().filter(|event| hits(&event.body)).count()).unwrap();
        let model = Arc::new(ScriptedModel::from_fn(script));
        let main = again.main(&model, agents(), yes()).build().unwrap();
        let place = convoke_agent::Place::new(Arc::new(convoke_tool::MemorySink::default()));
        let paused = Paused::rebuild(&RunId::new("r"), begun, place);
        if begun.iter().any(|event| {
            event.run == RunId::new("r") && matches!(event.body, EventBody::RunEnded { .. })
        }) {
            continue;
        }
        let (later, report) = read(main.resume(paused, None).unwrap()).await;
        assert_eq!(report.outcome.cause, Cause::Goal, "after {kept}: {:?}", report.outcome);
        assert_eq!(report.text().as_deref(), Some("all done"), "after {kept}");
        // What began and is not known to have ended may have done harm: it is not done again.
        let hits_now = again.hits.load(Ordering::Relaxed);
        assert_eq!(hit_before + hits_now, 2, "after {kept}");
        let answered = |event: &&Event| matches!(event.body, EventBody::ModelResponse { .. });
        let done = begun.iter().filter(answered).count();
        assert_eq!(model.requests().len() + done, requests, "after {kept}: nothing is asked twice");
        let spawned = |body: &EventBody| matches!(body, EventBody::AgentSpawned { .. });
        let all =
            begun.iter().map(|event| &event.body).chain(later.iter().map(|event| &event.body));
        assert_eq!(all.filter(|body| spawned(body)).count(), 3, "after {kept}: each agent once");
        let ended = |body: &EventBody| matches!(body, EventBody::AgentEnded { .. });
        let all =
            begun.iter().map(|event| &event.body).chain(later.iter().map(|event| &event.body));
        assert_eq!(all.filter(|body| ended(body)).count(), 3, "after {kept}: each ends once");
    }
}

/// codex#22755, claude-code#94013: a background agent works on its own, is heard of when it has ended, and
/// its caller does not end before it.
#[tokio::test(start_paused = true)]
async fn an_agent_works_in_the_background_and_its_caller_waits_at_the_end() {
    let start = Turn::call(
        "delegate_to_agent",
        json!({ "agent_name": "slow", "prompt": "dig", "background": true }),
    );
    let model = Cast::new()
        .says("main", [start, Turn::text("I am done."), Turn::text("Now I know: gold.")])
        .says("slow", [Turn::call("nap", json!({ "millis": 60_000 })), done("gold")])
        .model();
    let main = main_with(&model, [agent("slow")]).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!(report.text().as_deref(), Some("Now I know: gold."));
    let handle = &answers(&events, "main")[0];
    assert!(handle.contains("works in the background (agent_id: "), "{handle}");
    let last = model.requests().last().unwrap().messages.last().unwrap().words();
    assert!(
        last.starts_with("The agent `slow` has ended in the background. Its result:\n\ngold"),
        "{last}"
    );
    assert!(report.duration_ms.get() >= Duration::from_mins(1));
    let by = |who: &str, body: fn(&EventBody) -> bool| {
        events.iter().position(|event| event.agent.as_str() == who && body(&event.body)).unwrap()
    };
    let ended = |body: &EventBody| matches!(body, EventBody::RunEnded { .. });
    assert!(by("main/slow", ended) < by("main", ended));
}

#[tokio::test(start_paused = true)]
async fn background_agents_are_listed_waited_for_cancelled_and_collected() {
    let start = |name: &str| {
        Turn::call(
            "delegate_to_agent",
            json!({ "agent_name": name, "prompt": "x", "background": true }),
        )
    };
    let look = |action: &str| Turn::call("background_agents", json!({ "action": action }));
    let ids: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let known = Arc::clone(&ids);
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        let turn =
            request.messages.iter().filter(|one| one.role == convoke_core::Role::Assistant).count();
        let about = |action: &str, which: usize| {
            let id = known.lock().unwrap()[which].clone();
            Turn::call("background_agents", json!({ "action": action, "agent_id": id }))
        };
        match (who(request).as_str(), turn) {
            ("main", 0) => start("quick"),
            ("main", 1) => start("slow"),
            ("main", 2) => look("list"),
            ("main", 3) => look("wait"),
            ("main", 4) => about("collect", 0),
            ("main", 5) => about("cancel", 1),
            ("main", _) => Turn::text("done"),
            ("quick", 0) => Turn::call("nap", json!({ "millis": 2_000 })),
            ("slow", 0) => Turn::call("nap", json!({ "millis": 500_000 })),
            (other, _) => done(&format!("{other} result")),
        }
    });
    let model = Arc::new(model);
    let main = main_with(&model, [agent("quick"), agent("slow")]).build().unwrap();
    let mut run = main.start("go");
    let mut events = Vec::new();
    while let Some(event) = futures_util::StreamExt::next(&mut run).await {
        if let EventBody::AgentSpawned { child, background: true, .. } = &event.body {
            ids.lock().unwrap().push(child.to_string());
        }
        events.push(event);
    }
    let told = answers(&events, "main");
    assert!(
        told[2].contains("\"agent\":\"quick\"") && told[2].contains("\"status\":\"working\""),
        "{}",
        told[2]
    );
    assert!(told[3].contains("\"status\":\"completed\""), "{}", told[3]);
    assert!(told[4].starts_with("quick result"), "{}", told[4]);
    assert!(told[5].contains("did not complete its task (interrupted)"), "{}", told[5]);
    assert!(run.report().unwrap().duration_ms.get() < Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_stopped_stops_its_background_agents() {
    let start = Turn::call(
        "delegate_to_agent",
        json!({ "agent_name": "slow", "prompt": "dig", "background": true }),
    );
    let model = Cast::new()
        .says("main", [start, Turn::text("I am done.")])
        .says("slow", [Turn::call("nap", json!({ "millis": 500_000 })), done("gold")])
        .model();
    let main = main_with(&model, [agent("slow")]).build().unwrap();
    let run = main.start("go");
    let handle = run.handle();
    let stopper = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        handle.cancel();
    };
    let ((events, report), ()) = tokio::join!(read(run), stopper);
    assert_eq!(report.outcome.cause, Cause::Interrupted);
    let ends: Vec<&str> = events
        .iter()
        .filter(|event| matches!(event.body, EventBody::RunEnded { .. }))
        .map(|event| event.agent.as_str())
        .collect();
    assert_eq!(ends, ["main/slow", "main"]);
    assert_eq!(asked(&model).len(), 3);
}

/// Design 5: an agent that works in the background survives the process.
#[tokio::test]
async fn a_background_agent_is_taken_up_again() {
    let script = |request: &RequestSnapshot| {
        let turn =
            request.messages.iter().filter(|one| one.role == convoke_core::Role::Assistant).count();
        let said = request.messages.iter().map(convoke_core::Message::words);
        let heard = said.into_iter().any(|said| said.contains("has ended in the background"));
        match (who(request).as_str(), turn) {
            ("main", 0) => Turn::call(
                "delegate_to_agent",
                json!({ "agent_name": "slow", "prompt": "dig", "background": true }),
            ),
            ("main", _) if heard => Turn::text("all done"),
            ("main", _) => Turn::text("waiting"),
            ("slow", 0) => hit("slow"),
            (other, _) => done(&format!("{other} result")),
        }
    };
    let yes = || ask_with(async |_| Answer::yes());
    let world = World::new();
    let model = Arc::new(ScriptedModel::from_fn(script));
    let main = world.main(&model, [agent("slow")], yes()).build().unwrap();
    let (_, report) = read(main.start_as(RunId::new("r"), "go")).await;
    assert_eq!(report.text().as_deref(), Some("all done"));
    let events = world.events();
    for kept in 1..events.len() {
        let begun = events.get(..kept).unwrap();
        let over = |event: &Event| {
            event.run == RunId::new("r") && matches!(event.body, EventBody::RunEnded { .. })
        };
        if begun.iter().any(over) {
            continue;
        }
        let again = World::new();
        let model = Arc::new(ScriptedModel::from_fn(script));
        let main = again.main(&model, [agent("slow")], yes()).build().unwrap();
        let place = convoke_agent::Place::new(Arc::new(convoke_tool::MemorySink::default()));
        let paused = Paused::rebuild(&RunId::new("r"), begun, place);
        let (later, report) = read(main.resume(paused, None).unwrap()).await;
        assert_eq!(
            report.text().as_deref(),
            Some("all done"),
            "after {kept}: {:?}",
            report.outcome
        );
        let hits = |body: &EventBody| matches!(body, EventBody::ToolCallStarted { tool_name, .. } if tool_name == "hit");
        let before = begun.iter().filter(|event| hits(&event.body)).count();
        assert_eq!(before + again.hits.load(Ordering::Relaxed) as usize, 1, "after {kept}");
        let ended = |body: &EventBody| matches!(body, EventBody::AgentEnded { .. });
        let all =
            begun.iter().map(|event| &event.body).chain(later.iter().map(|event| &event.body));
        assert_eq!(all.filter(|body| ended(body)).count(), 1, "after {kept}");
    }
}

/// gemini-cli#17758, zed: an agent that ended goes on with something more, and knows what it did.
#[tokio::test(start_paused = true)]
async fn an_agent_that_ended_is_continued_by_its_id() {
    let id: Arc<std::sync::Mutex<String>> = Arc::default();
    let known = Arc::clone(&id);
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        let turn =
            request.messages.iter().filter(|one| one.role == convoke_core::Role::Assistant).count();
        let go_on = |id: &str| {
            Turn::call(
                "delegate_to_agent",
                json!({ "agent_name": "a", "prompt": "and now?", "agent_id": id }),
            )
        };
        match (who(request).as_str(), turn) {
            ("main", 0) => ask("a", "first"),
            ("main", 1) => go_on(&known.lock().unwrap()),
            ("main", 2) => go_on("nobody"),
            ("main", _) => Turn::text("ok"),
            (_, turn) => done(&format!("result {turn}")).tokens(100, 10),
        }
    });
    let model = Arc::new(model);
    let main = main_with(&model, [agent("a")]).build().unwrap();
    let mut run = main.start("go");
    let mut events = Vec::new();
    while let Some(event) = futures_util::StreamExt::next(&mut run).await {
        if let EventBody::AgentSpawned { child, .. } = &event.body {
            *id.lock().unwrap() = child.to_string();
        }
        events.push(event);
    }
    let told = answers(&events, "main");
    assert!(told[0].starts_with("result 0") && told[1].starts_with("result 1"), "{told:?}");
    assert!(told[2].contains("you called no agent with the id `nobody`"), "{}", told[2]);
    let second = &model.requests()[3].messages;
    assert_eq!(second[0].words(), "first");
    assert_eq!(second.last().unwrap().words(), "and now?");
    let used: Vec<u64> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::AgentEnded { usage, .. } => Some(usage.output_tokens),
            _ => None,
        })
        .collect();
    assert_eq!(used, [10, 10], "what was counted before is not counted again");
}

/// codex#19140, #22364: an agent that ended in another process is still there to go on.
#[tokio::test]
async fn an_agent_is_continued_by_its_id_in_another_process() {
    let world = World::new();
    let yes = || ask_with(async |_| Answer::yes());
    let model = Cast::new()
        .says("main", [ask("a", "first"), Turn::text("ok")])
        .says("a", [done("one")])
        .model();
    let main = world.main(&model, [agent("a")], yes()).build().unwrap();
    read(main.start_as(RunId::new("r"), "go")).await;
    let more = json!({ "agent_name": "a", "prompt": "and now?", "agent_id": "call_1" });
    let model = Cast::new()
        .says("main", [Turn::call("delegate_to_agent", more), Turn::text("ok")])
        .says("a", [done("two")])
        .model();
    let main = world.main(&model, [agent("a")], yes()).build().unwrap();
    let reopened = world.journals().reopen(&RunId::new("r")).unwrap();
    let again = main.resume(reopened.paused, Some(Task::new("go on"))).unwrap();
    let (events, _) = read(again).await;
    let told = answers(&events, "main");
    assert!(told[0].starts_with("two"), "{told:?}");
    assert_eq!(asked(&model), ["main", "a", "main"]);
    let heard = &model.requests()[1].messages;
    assert_eq!(heard[0].words(), "first", "it knows what it did");
    assert_eq!(heard.last().unwrap().words(), "and now?");
}

/// codex#12488, #38989: many agents at once cannot use more than there is, and the last ones are refused.
/// codex#12487, #46023, #30842: the limit is one for all of them.
#[tokio::test(start_paused = true)]
async fn thirty_two_agents_cannot_overspend_together() {
    let used = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&used);
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        let turn =
            request.messages.iter().filter(|one| one.role == convoke_core::Role::Assistant).count();
        match (who(request).as_str(), turn) {
            ("main", 0) => (1..32).fold(ask("w", "0"), |turn, index| {
                turn.and_call("delegate_to_agent", task("w", &index.to_string()))
            }),
            ("main", _) => Turn::text("ok"),
            _ => {
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

/// codex#16183: more than may work at once wait for their turn, and none fails for it.
/// gemini-cli 4.19: there is a greatest number of agents that work at once.
#[tokio::test(start_paused = true)]
async fn more_agents_than_may_work_wait_for_their_turn() {
    let many = (1..12).fold(ask("w", "0"), |turn, index| {
        turn.and_call("delegate_to_agent", task("w", &index.to_string()))
    });
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
        let turn =
            request.messages.iter().filter(|one| one.role == convoke_core::Role::Assistant).count();
        match (who(request).as_str(), turn) {
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
    let four = (1..4).fold(ask("w", "0"), |turn, index| {
        turn.and_call("delegate_to_agent", task("w", &index.to_string()))
    });
    let model = Cast::new().says("main", [four, Turn::text("ok")]).model();
    let mut limits = TreeLimits::default();
    limits.max_agents = 3;
    let main = crate::support::with(&model)
        .system("The main agent.")
        .team(team([agent("w")]).limits(limits).build())
        .build()
        .unwrap();
    let (events, _) = read(main.start("go")).await;
    let told = answers(&events, "main");
    assert_eq!(told.iter().filter(|answer| answer.contains("has called 3 agents")).count(), 1);
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
    let clock = Arc::new(crate::support::PausedClock::new());
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
        .budget(Budget {
            time_ms: convoke_core::Millis::new(Duration::from_secs(400)),
            ..Budget::default()
        })
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

/// An agent that must not be run a second time is left alone when the process was lost in its middle.
#[tokio::test]
async fn an_agent_that_runs_at_most_once_is_not_taken_up() {
    let mut once = agent("once");
    once.run.at_most_once = true;
    let script = |request: &RequestSnapshot| {
        let turn =
            request.messages.iter().filter(|one| one.role == convoke_core::Role::Assistant).count();
        match (who(request).as_str(), turn) {
            ("main", 0) => ask("once", "x"),
            ("main", _) => Turn::text("all done"),
            ("once", 0) => Turn::call("echo", json!({ "word": "x" })),
            _ => done("once result"),
        }
    };
    let world = World::new();
    let model = Arc::new(ScriptedModel::from_fn(script));
    let main = world.main(&model, [once.clone()], NobodyToAsk).build().unwrap();
    read(main.start_as(RunId::new("r"), "go")).await;
    let events = world.events();
    let begun = events.iter().position(|event| {
        event.agent.as_str() == "main/once" && matches!(event.body, EventBody::TurnStarted { .. })
    });
    let begun = events.get(..=begun.unwrap()).unwrap();
    let again = World::new();
    let model = Arc::new(ScriptedModel::from_fn(script));
    let main = again.main(&model, [once], NobodyToAsk).build().unwrap();
    let place = convoke_agent::Place::new(Arc::new(convoke_tool::MemorySink::default()));
    let paused = Paused::rebuild(&RunId::new("r"), begun, place);
    let (events, report) = read(main.resume(paused, None).unwrap()).await;
    assert_eq!(report.text().as_deref(), Some("all done"));
    assert_eq!(asked(&model), ["main"], "the agent is not asked again");
    assert!(answers(&events, "main")[0].contains("Error (interrupted)"), "and its caller knows");
}

/// Two calls that continue one agent at once would have worked on one conversation.
#[tokio::test(start_paused = true)]
async fn one_agent_is_continued_by_one_call_at_a_time_and_as_who_it_is() {
    let more =
        |name: &str| json!({ "agent_name": name, "prompt": "and now?", "agent_id": "call_1" });
    let twice = Turn::call("delegate_to_agent", more("a")).and_call("delegate_to_agent", more("a"));
    let other = Turn::call("delegate_to_agent", more("b"));
    let model = Cast::new()
        .says("main", [ask("a", "first"), twice, other, Turn::text("ok")])
        .says("a", [done("one"), Turn::call("nap", json!({ "millis": 1_000 })), done("two")])
        .model();
    let main = main_with(&model, [agent("a"), agent("b")]).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let told = answers(&events, "main");
    assert_eq!(told.iter().filter(|answer| answer.starts_with("two")).count(), 1, "{told:?}");
    assert!(
        told.iter().any(|answer| answer.contains("`call_1` works; wait for it first")),
        "{told:?}"
    );
    assert!(told[3].contains("the agent `call_1` is `a` and not `b`"), "{}", told[3]);
}

/// What is said beside the inputs of an agent was thrown away.
#[tokio::test(start_paused = true)]
async fn what_is_said_beside_the_inputs_is_heard() {
    let call = json!({
        "agent_name": "a", "prompt": "Leave the fixtures alone.", "inputs": { "task": "Write tests." },
    });
    let model =
        Cast::new().says("main", [Turn::call("delegate_to_agent", call), Turn::text("ok")]).model();
    let main = main_with(&model, [agent("a")]).build().unwrap();
    read(main.start("go")).await;
    let asked = model.requests()[1].messages[0].words();
    assert!(
        asked.contains("Write tests.") && asked.contains("Leave the fixtures alone."),
        "{asked}"
    );
}

/// Where agents do not work in the background, a model that wants it is told so.
#[tokio::test(start_paused = true)]
async fn the_background_is_refused_where_it_is_not_offered() {
    let call = json!({ "agent_name": "a", "prompt": "x", "background": true });
    let model =
        Cast::new().says("main", [Turn::call("delegate_to_agent", call), Turn::text("ok")]).model();
    let team = team([agent("a")]).background(false).build();
    let main = crate::support::with(&model).system("Main.").team(team).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    assert!(answers(&events, "main")[0].contains("do not work in the background here"));
}

/// A no that one agent got was the end of all others in the background.
#[tokio::test]
async fn a_denial_does_not_stop_those_who_work_in_the_background() {
    let start = |name: &str| json!({ "agent_name": name, "prompt": "x", "background": true });
    let both = Turn::call("delegate_to_agent", start("refused"))
        .and_call("delegate_to_agent", start("slow"));
    let world = World::new();
    let model = Cast::new()
        .says("main", [both, Turn::text("waiting"), Turn::text("waiting"), Turn::text("done")])
        .says("refused", [hit("x"), done("was refused")])
        .says("slow", [Turn::call("nap", json!({ "millis": 300 })), done("gold")])
        .model();
    let approver = ask_with(async |_| Answer::no());
    let main = world.main(&model, [agent("refused"), agent("slow")], approver).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let ended = events.iter().find_map(|event| match &event.body {
        EventBody::RunEnded { outcome, .. } if event.agent.as_str() == "main/slow" => {
            Some(outcome.cause)
        }
        _ => None,
    });
    assert_eq!(ended, Some(Cause::Goal));
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

/// A limit of calls holds for all agents together, not for each.
#[tokio::test(start_paused = true)]
async fn calls_of_tools_are_counted_for_the_whole_tree() {
    let many = (1..8).fold(ask("w", "0"), |turn, index| {
        turn.and_call("delegate_to_agent", task("w", &index.to_string()))
    });
    let looks =
        || Turn::call("echo", json!({ "word": "a" })).and_call("echo", json!({ "word": "b" }));
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        let said = request.messages.iter().any(|one| one.role == convoke_core::Role::Assistant);
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

/// While both wait for a seat, neither has begun: the second must not begin what the first was promised.
#[tokio::test(start_paused = true)]
async fn one_agent_is_promised_to_one_call_also_while_it_waits_for_a_seat() {
    let more = json!({ "agent_name": "a", "prompt": "and now?", "agent_id": "call_1" });
    let three = ask("busy", "x")
        .and_call("delegate_to_agent", more.clone())
        .and_call("delegate_to_agent", more);
    let model = Cast::new()
        .says("main", [ask("a", "first"), three, Turn::text("ok")])
        .says("busy", [Turn::call("nap", json!({ "millis": 5_000 })), done("busy")])
        .says("a", [done("one"), done("two"), done("three")])
        .model();
    let mut limits = TreeLimits::default();
    limits.max_parallel = 1;
    let team = team([agent("a"), agent("busy")]).limits(limits).build();
    let main = crate::support::with(&model).system("Main.").team(team).build().unwrap();
    let (events, _) = read(main.start("go")).await;
    let resumed = |event: &&Arc<Event>| matches!(event.body, EventBody::RunResumed { .. });
    assert_eq!(events.iter().filter(resumed).count(), 1, "{:?}", answers(&events, "main"));
}

/// What works at every level when a run is stopped: an agent, one below it, and one in the background.
fn stopped_in_the_middle() -> (Arc<ScriptedModel>, AgentExecutor) {
    let mut middle = agent("middle");
    middle.agents = vec!["low".into()];
    let digs = json!({ "agent_name": "digger", "prompt": "dig", "background": true });
    let nap = |millis: u64| Turn::call("nap", json!({ "millis": millis }));
    let model = Cast::new()
        .says(
            "main",
            [
                Turn::call("delegate_to_agent", digs),
                ask("middle", "x").and_call("nap", json!({ "millis": 1_000 })),
                Turn::text("all in"),
                Turn::text("all in, really"),
            ],
        )
        .says("middle", [ask("low", "y"), done("middle done")])
        .says("low", [nap(50_000), done("low done")])
        .says("digger", [nap(60_000), done("gold")])
        .model();
    let main = main_with(&model, [middle, agent("low"), agent("digger")]).build().unwrap();
    (model, main)
}

async fn stopped(main: &AgentExecutor, after: Duration) -> (Vec<Arc<Event>>, Paused) {
    let mut run = main.start("go");
    let handle = run.handle();
    let mut events = Vec::new();
    let stopper = async {
        tokio::time::sleep(after).await;
        handle.cancel();
    };
    let reader = async {
        while let Some(event) = run.next().await {
            events.push(event);
        }
    };
    tokio::join!(stopper, reader);
    assert_eq!(run.report().unwrap().outcome.cause, Cause::Interrupted);
    (events, run.pause())
}

/// Ctrl-C loses nothing: who goes on with the run goes on with its agents.
#[tokio::test(start_paused = true)]
async fn agents_that_were_stopped_with_the_run_are_taken_up_with_it() {
    let (model, main) = stopped_in_the_middle();
    let (_, paused) = stopped(&main, Duration::from_secs(10)).await;
    let before = asked(&model);
    assert_eq!(before.iter().filter(|who| *who == "main").count(), 2);
    let (events, report) = read(main.resume(paused, None).unwrap()).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    let spawned = |event: &&Arc<Event>| matches!(event.body, EventBody::AgentSpawned { .. });
    assert_eq!(events.iter().filter(spawned).count(), 0, "nobody was called a second time");
    let told = answers(&events, "main");
    assert!(told[0].starts_with("middle done"), "{told:?}");
    let after: Vec<String> = asked(&model).split_off(before.len());
    assert!(
        ["low", "middle", "digger", "main"].iter().all(|who| after.iter().any(|one| one == who)),
        "{after:?}"
    );
    let slept = |event: &&Arc<Event>| matches!(&event.body, EventBody::ToolCallFailed { tool_name, .. } if tool_name == "nap");
    assert_eq!(events.iter().filter(slept).count(), 0, "{told:?}");
}

/// Somebody who stops a run and says something else wants something else.
#[tokio::test(start_paused = true)]
async fn agents_that_were_stopped_are_given_up_when_there_is_something_else_to_do() {
    let (model, main) = stopped_in_the_middle();
    let (_, paused) = stopped(&main, Duration::from_secs(10)).await;
    let before = asked(&model).len();
    let (events, report) = read(main.resume(paused, Some(Task::new("forget it"))).unwrap()).await;
    assert_eq!(report.outcome.cause, Cause::Goal, "{:?}", report.outcome);
    assert_eq!(asked(&model).split_off(before), ["main"], "no agent went on");
    let told = answers(&events, "main");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("the agent `middle` was stopped together with the run"), "{told:?}");
    assert!(told[0].contains("agent_id: call_2"), "{told:?}");
    let last = model.requests().last().unwrap().messages.clone();
    let said: Vec<String> = last.iter().map(convoke_core::Message::words).collect();
    let notice = said.iter().rev().nth(1).unwrap();
    assert!(notice.contains("were stopped together with the run"), "{said:?}");
    assert!(notice.contains("`digger` (agent_id: call_1)"), "{said:?}");
    assert_eq!(said.last().unwrap(), "forget it");
}

/// Main has answered and only waits for an agent in the background.
fn stopped_while_it_waits() -> (Arc<ScriptedModel>, AgentExecutor) {
    let digs = json!({ "agent_name": "digger", "prompt": "dig", "background": true });
    let model = Cast::new()
        .says(
            "main",
            [
                Turn::call("delegate_to_agent", digs),
                Turn::text("I wait."),
                Turn::text("I still wait."),
                Turn::text("So it is gold."),
            ],
        )
        .says("digger", [Turn::call("nap", json!({ "millis": 60_000 })), done("gold")])
        .model();
    let main = main_with(&model, [agent("digger")]).build().unwrap();
    (model, main)
}

/// A polite stop must not lose what a hard one keeps.
#[tokio::test(start_paused = true)]
async fn agents_in_the_background_are_taken_up_with_a_caller_that_waited_for_them() {
    let (model, main) = stopped_while_it_waits();
    let (_, paused) = stopped(&main, Duration::from_secs(10)).await;
    let before = asked(&model).len();
    let (events, report) = read(main.resume(paused, None).unwrap()).await;
    assert_eq!(report.text().as_deref(), Some("So it is gold."), "{:?}", report.outcome);
    assert!(asked(&model).split_off(before).contains(&"digger".to_owned()));
    let spawned = |event: &&Arc<Event>| matches!(event.body, EventBody::AgentSpawned { .. });
    assert_eq!(events.iter().filter(spawned).count(), 0, "nobody was called a second time");
    let last = model.requests().last().unwrap().messages.last().unwrap().words();
    assert!(last.starts_with("The agent `digger` has ended in the background"), "{last}");
}

/// In a chat, the next request says who was stopped; who was given up once stays given up.
#[tokio::test(start_paused = true)]
async fn a_model_is_told_which_agents_in_the_background_were_given_up() {
    let (model, main) = stopped_while_it_waits();
    let (_, paused) = stopped(&main, Duration::from_secs(10)).await;
    let mut run = main.resume(paused, Some(Task::new("and now?"))).unwrap();
    while run.next().await.is_some() {}
    let said: Vec<String> = {
        let requests = model.requests();
        requests.last().unwrap().messages.iter().map(convoke_core::Message::words).collect()
    };
    assert!(said.iter().any(|said| said.contains("`digger` (agent_id: call_1)")), "{said:?}");
    assert_eq!(said.last().unwrap(), "and now?");
    assert_eq!(run.report().unwrap().text().as_deref(), Some("I still wait."));
    let (_, report) = read(main.resume(run.pause(), Some(Task::new("more"))).unwrap()).await;
    assert_eq!(report.text().as_deref(), Some("So it is gold."));
    let told = |request: &RequestSnapshot| {
        let words = request.messages.iter().map(convoke_core::Message::words);
        words.filter(|said| said.contains("were stopped together")).count()
    };
    assert_eq!(model.requests().last().map(told), Some(1), "it is told once");
    assert_eq!(asked(&model).iter().filter(|who| *who == "digger").count(), 1);
}

/// What decides is that something was done beside what was refused, and not which call came first.
#[tokio::test]
async fn an_agent_that_completed_is_complete_whatever_the_order_of_its_calls() {
    let look = json!({ "word": "a" });
    let orders = [
        Turn::call("echo", look.clone()).and_call("hit", look.clone()),
        Turn::call("hit", look.clone()).and_call("echo", look.clone()),
    ];
    for calls in orders {
        let world = World::new();
        let model = Cast::new()
            .says("main", [ask("a", "x"), Turn::text("ok")])
            .says("a", [calls, done("as far as I may")])
            .model();
        let approver = ask_with(async |_| Answer::no());
        let main = world.main(&model, [agent("a")], approver).build().unwrap();
        let (events, report) = read(main.start("go")).await;
        assert_eq!(report.outcome.cause, Cause::Goal);
        let told = &answers(&events, "main")[0];
        assert!(told.starts_with("as far as I may"), "{told}");
        assert!(told.contains("Some of its calls were refused: `hit`."), "{told}");
        let ended = events.iter().find_map(|event| match &event.body {
            EventBody::AgentEnded { outcome, .. } => Some(outcome.cause),
            _ => None,
        });
        assert_eq!(ended, Some(Cause::Goal));
    }
    let world = World::new();
    let model = Cast::new()
        .says("main", [ask("a", "x"), Turn::text("ok")])
        .says("a", [hit("x"), done("nothing")])
        .model();
    let main = world.main(&model, [agent("a")], ask_with(async |_| Answer::no())).build().unwrap();
    let (events, report) = read(main.start("go")).await;
    assert_eq!(report.outcome.cause, Cause::Denied, "nothing that was wanted was done");
    let told = &answers(&events, "main")[0];
    assert!(told.contains("was not allowed to do what it wanted (denied)"), "{told}");
    assert!(told.contains("It gave this result all the same"), "{told}");
}

/// Two agents of one answer, one of them refused: in which order they were called does not matter.
#[tokio::test]
async fn a_caller_of_agents_ends_the_same_whatever_the_order_of_their_calls() {
    for names in [["refused", "fine"], ["fine", "refused"]] {
        let world = World::new();
        let both = ask(names[0], "x").and_call("delegate_to_agent", task(names[1], "x"));
        let model = Cast::new()
            .says("main", [both, Turn::text("ok")])
            .says("refused", [hit("x"), done("nothing")])
            .says("fine", [Turn::call("echo", json!({ "word": "a" })), done("fine")])
            .model();
        let approver = ask_with(async |_| Answer::no());
        let agents = [agent("refused"), agent("fine")];
        let main = world.main(&model, agents, approver).build().unwrap();
        let (_, report) = read(main.start("go")).await;
        assert_eq!(report.outcome.cause, Cause::Goal, "{names:?}");
        assert_eq!(report.refused.get("delegate_to_agent"), Some(&1), "{names:?}");
    }
}

/// Neither does it matter whether their caller waits for them.
#[tokio::test]
async fn a_caller_of_agents_in_the_background_ends_as_if_it_had_waited() {
    let start = |name: &str| json!({ "agent_name": name, "prompt": "x", "background": true });
    for (names, cause) in [
        (&["refused", "fine"][..], Cause::Goal),
        (&["fine", "refused"][..], Cause::Goal),
        (&["refused"][..], Cause::Denied),
    ] {
        let world = World::new();
        let calls = names
            .iter()
            .fold(Turn::empty(), |turn, name| turn.and_call("delegate_to_agent", start(name)));
        let waits = (0..4).map(|_| Turn::text("ok"));
        let model = Cast::new()
            .says("main", [calls])
            .says("main", waits)
            .says("refused", [hit("x"), done("nothing")])
            .says("fine", [Turn::call("echo", json!({ "word": "a" })), done("fine")])
            .model();
        let approver = ask_with(async |_| Answer::no());
        let agents = [agent("refused"), agent("fine")];
        let main = world.main(&model, agents, approver).build().unwrap();
        let (_, report) = read(main.start("go")).await;
        assert_eq!(report.outcome.cause, cause, "{names:?}");
    }
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

/// Agents that use up what there is leave their caller enough for an answer, at every level.
#[tokio::test(start_paused = true)]
async fn agents_leave_their_caller_tokens_for_an_answer() {
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        let turn =
            request.messages.iter().filter(|one| one.role == convoke_core::Role::Assistant).count();
        match (who(request).as_str(), turn) {
            ("main", 0) => (1..8).fold(ask("w", "0"), |turn, index| {
                turn.and_call("delegate_to_agent", task("w", &index.to_string()))
            }),
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

/// A model that asks for hundreds of calls at once has answered: some are taken, and it is told.
#[tokio::test(start_paused = true)]
async fn of_too_many_calls_the_first_are_taken() {
    let many = (1..200).fold(Turn::call("echo", json!({ "word": "0" })), |turn, index| {
        turn.and_call("echo", json!({ "word": index.to_string() }))
    });
    let model = Cast::new()
        .says("main", [many.tokens(100, 3_000), Turn::text("ok").tokens(100, 1)])
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
        let many = (1..200).fold(Turn::call("echo", json!({ "word": "0" })), |turn, index| {
            turn.and_call("echo", json!({ "word": index.to_string() }))
        });
        let facts = ModelFacts { max_calls: Some(max_calls), ..ModelFacts::default() };
        let model = Cast::new().says("main", [many, Turn::text("ok")]).model_with(facts);
        let main = main_with(&model, [agent("a")]).build().unwrap();
        let (events, report) = read(main.start("go")).await;
        assert_eq!((report.outcome.cause, report.tool_calls), (Cause::Goal, taken));
        assert_eq!(answers(&events, "main").len(), taken as usize);
        let told = model.requests()[1].messages.last().unwrap().words();
        let says = format!("the first {taken} were taken, {} were not run", 200 - taken);
        assert_eq!(told.contains(&says), taken < 200, "{told}");
    }
}

//! A tree of agents is stopped on both sides of everything it does, by a kill and politely, and goes on in another
//! process: agents side by side, one below another, one in the background, and questions that wait for an
//! answer.
//!
//! The program starts itself again as the process that is killed. That one stops before or after it has
//! recorded a given event, says so, and waits to be killed from outside. Another process takes the tree up.
//! What tools did to the world is counted in a file, and what each agent's model was asked in another.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a test may fail by panicking and makes the world it runs in"
)]

#[path = "killing/process.rs"]
mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use convoke_agent::{AgentDefinition, AgentExecutor, AgentRegistry, Team};
use convoke_core::{Event, EventBody, Kind, Permission, Repeat, Role, RunId, Status};
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::{
    Answer, FunctionTool, KindAuthorizer, ToolContext, ToolExecutor, ToolRegistry, ToolView,
    ask_with,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::process::{How, KeepsAndStops, RUN, World, append, play, play_until, work};

const NAME: &str = "a_tree_killed_on_both_sides_of_everything";
const ANSWER: &str = "the whole tree is done";

fn main() {
    work(NAME, agent, killed_on_both_sides_of_everything);
}

impl World {
    /// Returns what models were asked. What a process was writing when it was killed is not among it.
    fn requests(&self) -> Vec<String> {
        let is_whole = |line: &String| serde_json::from_str::<Value>(line).is_ok();
        Self::lines(&self.requests).into_iter().filter(is_whole).collect()
    }
}

// ---------------------------------------------------------------- the process that is killed

/// Returns which agent is asked, and how many answers it has given.
fn part_of(request: &Value) -> (String, usize) {
    let system = request["system"].as_str().unwrap_or_default();
    let who = system.strip_prefix("You are ").and_then(|rest| rest.split_once('.'));
    let who = who.map_or("main", |(name, _)| name).to_owned();
    let messages = request["messages"].as_array().unwrap();
    (who, messages.iter().filter(|message| message["role"] == "assistant").count())
}

/// A model that looks at the conversation alone to know who it is and what to do.
fn model(world: &World) -> ScriptedModel {
    let requests = world.requests.clone();
    ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        let seen = serde_json::to_value(request).unwrap();
        // A line of its own also where another was torn.
        append(&requests, &format!("\n{seen}"));
        let heard = request.messages.iter().any(|message| {
            message.role == Role::User && message.words().contains("ended in the background")
        });
        let call = |agent: &str, more: bool| json!({ "agent_name": agent, "prompt": format!("for {agent}"), "background": more });
        let (who, turn) = part_of(&seen);
        let act = |tool: &str| Turn::call(tool, json!({ "what": format!("{who} {tool} {turn}") }));
        match (who.as_str(), turn) {
            ("main", 0) => Turn::call("delegate_to_agent", call("slow", true))
                .and_call("delegate_to_agent", call("a", false))
                .and_call("delegate_to_agent", call("c", false)),
            ("a", 0) => Turn::call("delegate_to_agent", call("b", false)),
            ("main" | "a" | "slow", 1) | ("b", 0) => act("hit"),
            ("main", _) if heard => Turn::text(ANSWER),
            ("main", _) => Turn::text("I wait for the last one."),
            ("c" | "slow", 0) => act("look"),
            ("c", 1) => act("put"),
            (who, _) => Turn::call("complete_task", json!({ "result": format!("{who} is done") })),
        }
    })
}

#[derive(Deserialize, JsonSchema)]
struct What {
    what: String,
}

fn agent(world: &World, keeper: KeepsAndStops) -> AgentExecutor {
    let registry = ToolRegistry::new();
    for (name, kind, repeat) in [
        ("look", Kind::Read, Repeat::Pure),
        ("put", Kind::Read, Repeat::Idempotent),
        ("hit", Kind::Execute, Repeat::Unsafe),
    ] {
        let effects = world.effects.clone();
        let tool = FunctionTool::new(name, "Does it.", move |what: What, _: ToolContext| {
            append(&effects, &what.what);
            async move { Ok::<_, String>(format!("done: {}", what.what)) }
        });
        registry.register(tool.kind(kind).repeat(repeat)).unwrap();
    }
    let agents = AgentRegistry::new();
    for name in ["a", "b", "c", "slow"] {
        let mut definition = AgentDefinition::new(name, "Helps.");
        definition.prompt.system_prompt = Some(format!("You are {name}."));
        definition.agents = if name == "a" { vec!["b".to_owned()] } else { Vec::new() };
        agents.register(definition).unwrap();
    }
    // Whoever hits something is asked about it: the question is open when the process is lost, too.
    let tools = ToolExecutor::builder(
        ToolView::of(registry),
        ToolContext::builder("t").clock(world.clock()).build(),
    )
    .authorizer(KindAuthorizer::default().with(Kind::Execute, Permission::Ask))
    .approver(ask_with(async |_| Answer::yes()));
    AgentExecutor::builder(model(world), tools)
        .system("The main agent.")
        .keeper(Arc::new(keeper))
        .team(Team::builder(agents).background(true).build())
        .build()
        .unwrap()
}

// ---------------------------------------------------------------- the one who kills

fn killed_on_both_sides_of_everything() {
    let began = Instant::now();
    let whole = tempfile::tempdir().unwrap();
    let whole = World::at(whole.path());
    assert_eq!(play(&whole, "start", "never").unwrap(), format!("answer: {ANSWER}"));
    let events = whole.events().len() as u64;
    let expected = by_part(&whole.requests());
    let (mut kills, mut interrupted, mut kept) = (0, 0, 0);
    for seq in 1..=events {
        let sides = ["before", "after"];
        for (side, way) in
            sides.iter().flat_map(|side| How::at(seq).into_iter().map(move |way| (*side, way)))
        {
            let stop = format!("{side}:{seq}");
            let directory = tempfile::tempdir().unwrap();
            let world = World::at(directory.path());
            if let Some(said) = play_until(&world, "start", &stop, way) {
                // What happens at once may end in an event less or more.
                assert_eq!(said, format!("answer: {ANSWER}"), "{way:?} {stop}");
                continue;
            }
            let stop = format!("{way:?} {stop}");
            if seq % 2 == 0 {
                world.set_clock(Duration::from_hours(24), seq % 4 == 0);
            }
            kills += 1;
            if side == "before" && seq == 1 && way == How::Kill {
                continue;
            }
            let before = world.events();
            // Now and then the second process is killed as well.
            let second = if seq % 9 == 0 { format!("{side}:{}", seq + 4) } else { "never".into() };
            let said = play_until(&world, "resume", &second, way).unwrap_or_else(|| {
                kills += 1;
                play(&world, "resume", "never").unwrap()
            });
            let ended = side == "after" && said == "ended before: Goal";
            assert!(ended || said == format!("answer: {ANSWER}"), "{stop}: {said}");
            let after = world.events();
            interrupted += check_effects(&stop, &after, &World::lines(&world.effects));
            kept += check_agents(&stop, &before, &after);
            check_requests(&stop, &world.requests(), &expected);
        }
    }
    assert!(kills > 200, "only {kills} kills");
    assert!(interrupted >= 4 && kept > 100, "{interrupted} interrupted, {kept} agents had ended");
    println!(
        "test {NAME} ... ok ({kills} kills, {interrupted} calls interrupted, {kept} agents had ended and \
         were left alone, {:.1?})",
        began.elapsed()
    );
}

/// Checks that nothing that does harm was done twice, and that the rest was done. Returns how many calls
/// were told to be interrupted.
fn check_effects(stop: &str, after: &[Event], effects: &[String]) -> usize {
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    for effect in effects {
        *made.entry(effect.as_str()).or_default() += 1;
    }
    for (what, times) in &made {
        assert!(!what.contains("hit") || *times == 1, "{stop}: {what} was done {times} times");
    }
    let interrupted = after.iter().filter(|event| match &event.body {
        EventBody::ToolCallFailed { tool_name, error, .. } => {
            assert_eq!(error.kind.as_str(), "interrupted", "{stop}: {tool_name}: {error:?}");
            assert_eq!(tool_name, "hit", "{stop}: only what does harm is not done again");
            true
        }
        _ => false,
    });
    let interrupted = interrupted.count();
    assert!(made.len() + interrupted >= 7, "{stop}: {made:?}");
    interrupted
}

/// Checks that every agent was called once and ended once, and that one that had ended was left alone.
/// Returns how many had ended.
fn check_agents(stop: &str, before: &[Event], after: &[Event]) -> usize {
    let mut spawned = BTreeMap::new();
    let mut ended: BTreeMap<RunId, usize> = BTreeMap::new();
    for event in after {
        match &event.body {
            EventBody::AgentSpawned { child, name, .. } => {
                let again = spawned.insert(child.clone(), name.clone());
                assert_eq!(again, None, "{stop}: {name} was called twice");
            }
            // One that was stopped with the tree goes on with it.
            EventBody::AgentEnded { child, outcome, .. } if outcome.status != Status::Cancelled => {
                *ended.entry(child.clone()).or_default() += 1;
            }
            _ => {}
        }
    }
    let names: BTreeSet<&str> = spawned.values().map(String::as_str).collect();
    assert_eq!(names, BTreeSet::from(["a", "b", "c", "slow"]), "{stop}");
    assert_eq!(spawned.len(), 4, "{stop}: {spawned:?}");
    assert!(spawned.keys().all(|child| ended.get(child) == Some(&1)), "{stop}: {ended:?}");
    let over = |event: &&Event| {
        matches!(&event.body, EventBody::RunEnded { outcome, .. } if outcome.status != Status::Cancelled)
            && event.run != RunId::new(RUN)
    };
    let over: BTreeSet<&RunId> = before.iter().filter(over).map(|event| &event.run).collect();
    let later = after.get(before.len()..).unwrap_or_default();
    let woken = later.iter().find(|event| over.contains(&event.run));
    assert_eq!(woken, None, "{stop}: an agent that had ended did something");
    over.len()
}

/// Checks that whatever an agent was asked is what it was asked in the tree that nobody interrupted.
fn check_requests(stop: &str, asked: &[String], expected: &BTreeMap<(String, usize), Value>) {
    let mut seen = BTreeSet::new();
    for request in asked {
        let request = comparable(request);
        let part = part_of(&request);
        seen.insert(part.clone());
        // How often the main agent is asked depends on when the last one ends.
        let Some(whole) = expected.get(&part).filter(|_| part.0 != "main" || part.1 < 2) else {
            assert_eq!(part.0, "main", "{stop}: {part:?}");
            continue;
        };
        if request.to_string().contains("Error (interrupted)") {
            continue;
        }
        assert_eq!(&request, whole, "{stop}: {part:?}");
    }
    let missing: Vec<_> =
        expected.keys().filter(|part| part.1 < 2 && !seen.contains(part)).collect();
    assert!(missing.is_empty(), "{stop}: never asked: {missing:?}");
}

fn by_part(requests: &[String]) -> BTreeMap<(String, usize), Value> {
    requests.iter().map(|request| comparable(request)).map(|one| (part_of(&one), one)).collect()
}

/// Returns a request without what is different in every process: the ids of agents, and when the one in the
/// background was heard of.
fn comparable(request: &str) -> Value {
    let mut pieces = request.split("agent_id: ");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        text.push_str("agent_id: X");
        text.push_str(piece.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric()));
    }
    let mut request: Value = serde_json::from_str(&text).unwrap();
    let messages = request["messages"].as_array_mut().unwrap();
    messages.retain(|message| !message.to_string().contains("ended in the background"));
    request
}

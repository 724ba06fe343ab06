//! A run is stopped on both sides of everything it does, by a kill and politely, and goes on in another process.
//!
//! The program starts itself again as the process that is killed. That one stops before or after it has
//! recorded a given event, says so, and waits to be killed from outside: before, what the event tells of
//! is done but not recorded; after, it is recorded but what follows has not begun. Another process takes
//! the run up. What tools did to the world is counted in a file, and what the model was asked is kept in
//! another.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
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

use convoke_agent::{AgentExecutor, replay};
use convoke_core::{CallId, Event, EventBody, Kind, Repeat, Role, Run, RunId};
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::testing::AllowAll;
use convoke_tool::{FunctionTool, ToolContext, ToolExecutor, ToolRegistry, ToolView};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::process::{How, KeepsAndStops, RUN, World, append, play, play_until, work};

/// The same answer for every way a run can be interrupted.
const ANSWER: &str = "fourteen things were done";

fn main() {
    work("killed_on_both_sides_of_everything", agent, killed_on_both_sides_of_everything);
}

// ---------------------------------------------------------------- the process that is killed

/// A model that looks at the conversation alone to know what to do.
fn model(world: &World) -> ScriptedModel {
    let requests = world.requests.clone();
    ScriptedModel::from_fn(move |request: &RequestSnapshot| {
        append(&requests, &serde_json::to_string(request).unwrap());
        let said = request.messages.iter().filter(|message| message.role == Role::Assistant);
        let calls: &[&str] = match said.count() {
            0 => &["look", "look", "look"],
            1 => &["put", "look", "put"],
            2 => &["hit"],
            3 => &["hit", "look", "put", "hit"],
            4 => &["look", "hit"],
            5 => &["put"],
            _ => return Turn::text(ANSWER),
        };
        let calls = calls.iter().enumerate();
        calls.fold(Turn::text("On it."), |turn, (index, tool)| {
            turn.and_call(*tool, json!({ "what": format!("{tool} {index}") }))
        })
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
        ("put", Kind::Edit, Repeat::Idempotent),
        ("hit", Kind::Execute, Repeat::Unsafe),
    ] {
        let effects = world.effects.clone();
        let tool = FunctionTool::new(name, "Does it.", move |what: What, context: ToolContext| {
            append(&effects, context.call().as_str());
            async move { Ok::<_, String>(format!("done: {}", what.what)) }
        });
        registry.register(tool.kind(kind).repeat(repeat)).unwrap();
    }
    let context = ToolContext::builder("t").clock(world.clock()).build();
    let tools = ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowAll);
    AgentExecutor::builder(model(world), tools).keeper(Arc::new(keeper)).build().unwrap()
}

// ---------------------------------------------------------------- the one who kills

fn killed_on_both_sides_of_everything() {
    let began = Instant::now();
    let whole = tempfile::tempdir().unwrap();
    let whole = World::at(whole.path());
    assert_eq!(play(&whole, "start", "never").unwrap(), format!("answer: {ANSWER}"));
    let whole_events = whole.events();
    let events = whole_events.len() as u64;
    let expected = World::lines(&whole.requests);
    assert_eq!(World::lines(&whole.effects).len(), 14);

    let (mut kills, mut interrupted, mut again) = (0, 0, 0);
    for seq in 1..=events {
        let sides = ["before", "after"];
        for (side, way) in
            sides.iter().flat_map(|side| How::at(seq).into_iter().map(move |way| (*side, way)))
        {
            let stop = format!("{side}:{seq}");
            let directory = tempfile::tempdir().unwrap();
            let world = World::at(directory.path());
            if let Some(said) = play_until(&world, "start", &stop, way) {
                // Calls that run together may end in one event less or more.
                assert_eq!(said, format!("answer: {ANSWER}"), "{way:?} {stop}");
                continue;
            }
            let stop = format!("{way:?} {stop}");
            // Every other time the clock was set meanwhile, forward or back.
            if seq % 2 == 0 {
                world.set_clock(Duration::from_hours(24), seq % 4 == 0);
            }
            kills += 1;
            if side == "before" && seq == 1 && way == How::Kill {
                // It was killed before anything was recorded: there is nothing to go on with.
                assert!(World::lines(&world.effects).is_empty());
                continue;
            }
            let before = world.events();
            let asked_before = World::lines(&world.requests).len();
            // Now and then the second process is killed as well.
            let second = if seq % 7 == 0 { format!("{side}:{}", seq + 3) } else { "never".into() };
            let said = play_until(&world, "resume", &second, way).unwrap_or_else(|| {
                kills += 1;
                play(&world, "resume", "never").unwrap()
            });
            let ended = side == "after" && said == "ended before: Goal";
            assert!(ended || said == format!("answer: {ANSWER}"), "{stop}: {said}");
            let check = Check { stop: &stop, before: &before, after: &world.events() };
            interrupted += check.calls(&World::lines(&world.effects));
            again += check.requests(&World::lines(&world.requests), asked_before, &expected);
            if let Err(difference) = replay(&RunId::new(RUN), check.after) {
                panic!("{stop}: {difference}");
            }
            check.accounts(&whole_events);
        }
    }
    assert!(kills > 2 * 60, "only {kills} kills");
    assert!(interrupted >= 4 && again >= 7, "{interrupted} interrupted, {again} asked again");
    println!(
        "test killed_on_both_sides_of_everything ... ok ({kills} kills, {interrupted} calls interrupted, \
         {again} answers asked for again, {:.1?})",
        began.elapsed()
    );
}

struct Check<'a> {
    stop: &'a str,
    before: &'a [Event],
    after: &'a [Event],
}

impl Check<'_> {
    /// Checks that the journal's times never go back, and that the run used its time, its turns and its calls as the one
    /// that nobody interrupted did.
    fn accounts(&self, whole: &[Event]) {
        let stop = self.stop;
        assert!(
            self.after.windows(2).all(|pair| pair[0].ts <= pair[1].ts),
            "{stop}: time went back"
        );
        let [run, whole] = [self.after, whole].map(|events| Run::replay(RunId::new(RUN), events));
        assert_eq!((run.turns(), run.tool_calls()), (whole.turns(), whole.tool_calls()), "{stop}");
        let worked = run.worked();
        assert!(worked < Duration::from_mins(1), "{stop}: {worked:?}");
        let requests = |events: &[Event]| {
            let asked = |event: &&Event| matches!(event.body, EventBody::ModelRequest { .. });
            events.iter().filter(asked).count() as u64
        };
        // Whatever was asked for is paid for: once, and once more for every answer that was lost.
        let per_request = whole.spent().input_tokens / 7;
        let (least, most) =
            (whole.spent().input_tokens, whole.spent().input_tokens + 7 * per_request);
        let paid = run.spent().input_tokens;
        assert!(
            paid >= least && paid <= most,
            "{stop}: {paid} for {} requests",
            requests(self.after)
        );
    }

    /// Checks how often each call was made. Returns how many were told to be interrupted.
    fn calls(&self, effects: &[String]) -> usize {
        let stop = self.stop;
        let mut made: BTreeMap<&str, usize> = BTreeMap::new();
        for effect in effects {
            *made.entry(effect.as_str()).or_default() += 1;
        }
        let ended = |events: &[Event]| -> BTreeSet<CallId> {
            let ends = events.iter().filter(|event| event.body.ends_call());
            ends.filter_map(|event| event.call.clone()).collect()
        };
        let ended_before = ended(self.before);
        assert_eq!(ended(self.after).len(), 14, "{stop}: every call is answered");
        let mut interrupted = 0;
        for event in self.after {
            let Some(call) = &event.call else { continue };
            let times = made.get(call.as_str()).copied().unwrap_or_default();
            match &event.body {
                EventBody::ToolCallCompleted { tool_name, .. } => {
                    assert!(times >= 1, "{stop}: {tool_name} {call} was never made");
                    if tool_name == "hit" || ended_before.contains(call) {
                        assert_eq!(times, 1, "{stop}: {tool_name} {call} was made {times} times");
                    }
                }
                EventBody::ToolCallFailed { tool_name, error, .. } => {
                    assert_eq!(error.kind.as_str(), "interrupted", "{stop}: {error:?}");
                    assert_eq!(tool_name, "hit", "{stop}: only what does harm is not made again");
                    assert!(times <= 1, "{stop}: {tool_name} {call} was made {times} times");
                    interrupted += 1;
                }
                _ => {}
            }
        }
        interrupted
    }

    /// Checks that everything the model was asked later is what it was asked in the run that nobody
    /// interrupted. Returns how many answers were asked for a second time.
    fn requests(&self, asked: &[String], asked_before: usize, expected: &[String]) -> usize {
        let stop = self.stop;
        let turn = |request: &Value| {
            let messages = request["messages"].as_array().unwrap();
            messages.iter().filter(|message| message["role"] == "assistant").count()
        };
        let mut seen = BTreeSet::new();
        let mut again = 0;
        for (index, request) in asked.iter().enumerate() {
            let mut parsed: Value = serde_json::from_str(request).unwrap();
            let turn = turn(&parsed);
            again += usize::from(!seen.insert(turn));
            if index < asked_before || !request.contains("Error (interrupted)") {
                assert_eq!(request, &expected[turn], "{stop}");
                continue;
            }
            // All but the answers of calls that were interrupted is the same.
            let whole: Value = serde_json::from_str(&expected[turn]).unwrap();
            put_right(&mut parsed, &whole);
            assert_eq!(parsed, whole, "{stop}");
        }
        assert_eq!(seen.len(), expected.len(), "{stop}: every turn was asked for");
        again
    }
}

/// Puts the answer that a call has in the other request in the place of one that was interrupted.
fn put_right(request: &mut Value, whole: &Value) {
    let messages = request["messages"].as_array_mut().unwrap().iter_mut();
    for (message, right) in messages.zip(whole["messages"].as_array().unwrap()) {
        let parts = message["parts"].as_array_mut().unwrap().iter_mut();
        for (part, right) in parts.zip(right["parts"].as_array().unwrap()) {
            if part.to_string().contains("Error (interrupted)") {
                part.clone_from(right);
            }
        }
    }
}

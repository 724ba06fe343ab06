//! A run is killed on both sides of everything it does, and goes on in another process.
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

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use convoke_agent::{AgentExecutor, Journaled, Keeper, Paused, Place, Running, replay};
use convoke_core::{CallId, Event, EventBody, Kind, Position, Repeat, Role, RunId};
use convoke_journal::Store;
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    Clock, EventSink, FunctionTool, RecordError, Synced, SystemClock, ToolContext, ToolExecutor,
    ToolRegistry, ToolView,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const RUN: &str = "killed";
/// The same answer for every way a run can be interrupted.
const ANSWER: &str = "fourteen things were done";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("child") => child(&World::at(Path::new(&words[1])), &words[2], &words[3]),
        // Whoever wants to know which tests there are is told; whoever wants another one gets none.
        Some("--list") => println!("killed_on_both_sides_of_everything: test"),
        Some(filter)
            if !filter.starts_with('-')
                && !"killed_on_both_sides_of_everything".contains(filter) => {}
        _ => killed_on_both_sides_of_everything(),
    }
}

/// What lies outside the process.
struct World {
    state: PathBuf,
    /// One line for every time a tool did something.
    effects: PathBuf,
    /// One line for every request the model got.
    requests: PathBuf,
    root: PathBuf,
}

impl World {
    fn at(root: &Path) -> Self {
        let [state, effects, requests] =
            ["state", "effects", "requests"].map(|name| root.join(name));
        Self { state, effects, requests, root: root.to_owned() }
    }

    fn lines(path: &Path) -> Vec<String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn events(&self) -> Vec<Event> {
        Store::at(&self.state).read(&RunId::new(RUN)).unwrap().events
    }
}

fn append(path: &Path, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

// ---------------------------------------------------------------- the process that is killed

/// Where to stop: before or after the event of this number is recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    Never,
    Before(u64),
    After(u64),
}

impl Stop {
    fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some(("before", seq)) => Self::Before(seq.parse().unwrap()),
            Some(("after", seq)) => Self::After(seq.parse().unwrap()),
            _ => Self::Never,
        }
    }

    /// Waits to be killed.
    fn here(self, now: Self) {
        if self == now {
            println!("stopped");
            std::io::stdout().flush().unwrap();
            loop {
                std::thread::park();
            }
        }
    }
}

/// A sink that stops.
#[derive(Debug)]
struct Stops {
    kept: Arc<dyn EventSink>,
    stop: Stop,
}

impl EventSink for Stops {
    fn append(&self, event: &Arc<Event>) -> Result<(), RecordError> {
        let Position::Durable { seq } = event.position else { return Ok(()) };
        self.stop.here(Stop::Before(seq));
        self.kept.append(event)?;
        self.stop.here(Stop::After(seq));
        Ok(())
    }

    fn stream(&self, _: &Arc<Event>) {}

    fn sync(&self) -> Synced {
        self.kept.sync()
    }
}

#[derive(Debug)]
struct KeepsAndStops {
    store: Store,
    stop: Stop,
}

impl Keeper for KeepsAndStops {
    fn keep(&self, run: &RunId) -> Result<Place, RecordError> {
        let journal = self.store.create(run, SystemClock.now());
        let journal = journal.map_err(|error| RecordError::new(error.to_string()))?;
        let kept = Stops { kept: Arc::new(Journaled::new(journal)), stop: self.stop };
        Ok(Place::new(Arc::new(kept)))
    }
}

fn child(world: &World, how: &str, stop: &str) {
    let store = Store::at(&world.state);
    let stop = Stop::parse(stop);
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let agent = agent(world, KeepsAndStops { store: store.clone(), stop });
    let run: Running = if how == "start" {
        agent.start_as(RunId::new(RUN), "Do all of it.")
    } else {
        let opened = store.open(&RunId::new(RUN), SystemClock.now()).unwrap();
        let kept = Stops { kept: Arc::new(Journaled::new(opened.journal)), stop };
        let paused = Paused::rebuild(&RunId::new(RUN), &opened.events, Place::new(Arc::new(kept)));
        if let Some(outcome) = paused.outcome() {
            println!("ended before: {:?}", outcome.cause);
            return;
        }
        agent.resume(paused, None).unwrap()
    };
    let report = threads.unwrap().block_on(run.finish());
    println!("answer: {}", report.text().unwrap_or_else(|| format!("{:?}", report.outcome)));
}

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
    let context = ToolContext::builder("t").build();
    let tools = ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowAll);
    AgentExecutor::builder(model(world), tools).keeper(Arc::new(keeper)).build().unwrap()
}

// ---------------------------------------------------------------- the one who kills

/// Starts the process and waits for it: until it has ended, or until it stopped and was killed.
fn play(world: &World, how: &str, stop: &str) -> Option<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut process = command
        .args(["child", world.root.to_str().unwrap(), how, stop])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let said = lines.next().map(Result::unwrap);
    if said.as_deref() == Some("stopped") {
        process.kill().unwrap();
        process.wait().unwrap();
        return None;
    }
    assert!(process.wait().unwrap().success(), "{how} {stop}: {said:?}");
    said
}

fn killed_on_both_sides_of_everything() {
    let began = Instant::now();
    let whole = tempfile::tempdir().unwrap();
    let whole = World::at(whole.path());
    assert_eq!(play(&whole, "start", "never").unwrap(), format!("answer: {ANSWER}"));
    let events = whole.events().len() as u64;
    let expected = World::lines(&whole.requests);
    assert_eq!(World::lines(&whole.effects).len(), 14);

    let (mut kills, mut interrupted, mut again) = (0, 0, 0);
    for seq in 1..=events {
        for side in ["before", "after"] {
            let stop = format!("{side}:{seq}");
            let directory = tempfile::tempdir().unwrap();
            let world = World::at(directory.path());
            if play(&world, "start", &stop).is_some() {
                // Calls that run together may end in one event less or more.
                continue;
            }
            kills += 1;
            if side == "before" && seq == 1 {
                // It was killed before anything was recorded: there is nothing to go on with.
                assert!(World::lines(&world.effects).is_empty());
                continue;
            }
            let before = world.events();
            let asked_before = World::lines(&world.requests).len();
            // Now and then the second process is killed as well.
            let second = if seq % 7 == 0 { format!("{side}:{}", seq + 3) } else { "never".into() };
            let said = play(&world, "resume", &second).unwrap_or_else(|| {
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

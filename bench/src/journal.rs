//! What keeping runs costs: turns, events, bytes, resuming and listing.
//!
//! Journals lie in the directory for temporary files; where that is memory, a sync costs nothing, so
//! `TMPDIR` has to name a disk for the row of the sync to mean something.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use convoke::Runtime;
use convoke::core::event::VERSION;
use convoke::core::run::Budget;
use convoke::core::{AgentPath, Event, EventBody, Kind, Position, RunId, Timestamp};
use convoke::journal::{Journal, Store};
use convoke::prelude::{FunctionTool, ToolContext};
use convoke_agent::{AgentExecutor, Journals};
use convoke_model::{ScriptedModel, Turn};
use convoke_testkit::Wire;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::Result;
use crate::measure::{in_turns, time, time_many};
use crate::runs::{LAST_WORDS, PROMPT, World, answer_of};
use crate::table::Table;

const TURNS: u32 = 50;
const SAMPLES: usize = 21;
const OLD_RUNS: u32 = 10_000;

pub(crate) fn measure(table: &mut Table, convoke: &Path) -> Result<()> {
    let world = World::new(convoke.to_owned())?;
    let state = tempfile::tempdir()?;
    turns(table, &world, state.path())?;
    events(table, state.path())?;
    growth(table, &world)?;
    resume(table)?;
    many(table, &world)
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Makes an agent that calls one tool in every turn but the last.
fn agent(world: &World, tool: &str, turns: u32, state: Option<&Path>) -> Result<AgentExecutor> {
    let act = FunctionTool::new("act", "Acts.", async |_: Nothing, _: ToolContext| {
        Ok::<_, String>("done")
    });
    let store = state.map(Store::at);
    let runtime = Runtime::builder(world.files())
        .tool(act.kind(Kind::Execute))
        .mode(convoke::core::Mode::Full)
        .store(store)
        .build()?;
    let call = |turn: u32| match tool {
        "act" => Turn::call("act", json!({})),
        tool => Turn::call(tool, json!({ "path": format!("file_{}_0.txt", turn % 50) })),
    };
    let answers = (0..turns - 1).map(call).chain([Turn::text(LAST_WORDS)]);
    let model = Arc::new(ScriptedModel::new(answers).forgetful());
    let budget = Budget { turns: turns + 1, ..Budget::default() };
    Ok(runtime.main_agent(model).budget(budget).max_repeats(u32::MAX - 1).build()?)
}

fn turns(table: &mut Table, world: &World, state: &Path) -> Result<()> {
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let turn = |tool: &str, state: Option<&Path>| {
        let agent = agent(world, tool, TURNS, state)?;
        Ok(time(|| answer_of(&threads.block_on(agent.start(PROMPT).finish())))? / TURNS)
    };
    let pair = in_turns(SAMPLES, || turn("read_file", Some(state)), || turn("read_file", None))?;
    table.pair("a turn with one `read_file`, kept in a journal", "not kept", pair, "");
    table.time("what keeping adds to it", pair.ours.saturating_sub(pair.theirs), "≤ 1 ms");
    let kept = in_turns(SAMPLES, || turn("act", Some(state)), || one_sync(state))?;
    table.pair("a turn with a call that must not be repeated", "one sync", kept, "");
    let added = kept.ours.saturating_sub(kept.theirs);
    table.time("what it takes beside the sync", added, "≤ 1 ms");
    Ok(())
}

/// Returns the time of writing a line to a file and bringing it to the disk.
fn one_sync(directory: &Path) -> Result<Duration> {
    let mut file = File::create(directory.join("one"))?;
    time_many(TURNS, || {
        file.write_all(&[b'x'; 300])?;
        Ok(file.sync_data()?)
    })
}

fn event(run: &RunId, seq: u64, body: EventBody) -> Event {
    Event {
        v: VERSION,
        position: Position::Durable { seq },
        ts: Timestamp::from_millis(1_794_800_000_000),
        run: run.clone(),
        parent: None,
        agent: AgentPath::default(),
        call: None,
        secrets: std::collections::BTreeSet::new(),
        body,
    }
}

fn note(run: &RunId, seq: u64) -> Event {
    event(run, seq, EventBody::Notice { message: "All work and no play. ".repeat(5) })
}

fn events(table: &mut Table, state: &Path) -> Result<()> {
    const EVENTS: u32 = 20_000;
    let now = Timestamp::from_millis(1_794_800_000_000);
    let mut number = 0;
    let ours = || {
        number += 1;
        let run = RunId::new(format!("events-{number}"));
        let journal = Store::at(state).create(&run, now)?;
        let mut seq = 0;
        time_many(EVENTS, || {
            seq += 1;
            Ok(journal.append(&note(&run, seq))?)
        })
    };
    let line = serde_json::to_string(&note(&RunId::new("events-1"), 1))?;
    let bare = || {
        let mut file = File::create(state.join("bare"))?;
        time_many(EVENTS, || Ok(writeln!(file, "{line}")?))
    };
    let pair = in_turns(5, ours, bare)?;
    table.pair("an event, made and recorded", "write", pair, "");
    let each = pair.ours.as_nanos().max(1);
    table.fact("events a second", (1_000_000_000 / each).to_string(), "");
    Ok(())
}

/// What the journal of a run grows by in one turn, early and late.
fn growth(table: &mut Table, world: &World) -> Result<()> {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let size = |turns: u32| -> Result<u64> {
        let state = tempfile::tempdir()?;
        let agent = agent(world, "read_file", turns, Some(state.path()))?;
        let report = threads.block_on(agent.start_as(RunId::new("grows"), PROMPT).finish());
        answer_of(&report)?;
        Ok(fs::metadata(state.path().join("runs/grows/journal.jsonl"))?.len())
    };
    let (early, late) = ((size(15)? - size(10)?) / 5, (size(505)? - size(500)?) / 5);
    table.sizes("bytes of a turn, at turn 500", "at turn 10", (late, early), "the same");
    Ok(())
}

/// Makes a run of ten thousand events that was interrupted, and takes it up.
fn resume(table: &mut Table) -> Result<()> {
    let state = tempfile::tempdir()?;
    let store = Store::at(state.path());
    let (run, now) = (RunId::new("long"), Timestamp::from_millis(1_794_800_000_000));
    {
        let journal = store.create(&run, now)?;
        let model = ScriptedModel::new([Turn::text("x")]);
        let runtime = Runtime::builder(state.path()).build()?;
        let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let sink = Arc::new(convoke::tools::MemorySink::default());
        let agent = runtime.main_agent(Arc::new(model)).sink(sink.clone()).build()?;
        threads.block_on(agent.start_as(run.clone(), PROMPT).finish());
        let started = sink.events().first().map(|event| event.body.clone());
        journal.append(&event(&run, 1, started.ok_or("the run did not start")?))?;
        for seq in 2..=10_000 {
            let turn = u32::try_from(seq / 2)?;
            let body = match seq % 2 {
                0 => EventBody::TurnStarted { turn },
                _ => EventBody::Notice { message: "All work and no play. ".repeat(5) },
            };
            journal.append(&event(&run, seq, body))?;
        }
        journal.sync().wait()?;
    }
    let journals = Journals::new(store, Arc::new(convoke::tools::SystemClock));
    let file = state.path().join("runs/long/journal.jsonl");
    let pair =
        in_turns(11, || time(|| Ok(journals.reopen(&run)?)), || time(|| Ok(fs::read(&file)?)))?;
    table.pair("taking up a run of 10,000 events", "reading the file", pair, "≤ 100 ms");
    Ok(())
}

/// Ten thousand runs that are over: listing them, and starting another.
fn many(table: &mut Table, world: &World) -> Result<()> {
    let state = tempfile::tempdir()?;
    let store = Store::at(state.path());
    let now = Timestamp::from_millis(1_794_800_000_000);
    for number in 0..OLD_RUNS {
        let run = RunId::new(format!("old-{number:05}"));
        let journal = store.create(&run, now)?;
        for seq in 1..=3 {
            journal.append(&note(&run, seq))?;
        }
    }
    let runs = state.path().join("runs");
    let look = || {
        time(|| {
            for entry in fs::read_dir(&runs)? {
                fs::metadata(entry?.path().join("journal.jsonl"))?;
            }
            Ok(())
        })
    };
    let pair = in_turns(7, || time(|| Ok(store.list()?.len())), look)?;
    table.pair("listing 10,000 runs", "a stat of each", pair, "≤ 200 ms");

    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let options = convoke_testkit::Options::default();
    let server = threads.block_on(options.start(convoke_testkit::Reply::text(LAST_WORDS)))?;
    let url = server.base_url(Wire::OpenAiChat);
    let start = |state: &Path| {
        let mut command = world.convoke_run(&url, 1);
        command.arg("--state").arg(state);
        crate::runs::first_request(&threads, &server, &mut command)
    };
    let empty = tempfile::tempdir()?;
    let unkept = || {
        let mut command = world.convoke_run(&url, 1);
        command.arg("--no-journal");
        crate::runs::first_request(&threads, &server, &mut command)
    };
    let pair = in_turns(21, || start(empty.path()), unkept)?;
    table.pair("start to first request, kept in a journal", "not kept", pair, "");
    let pair = in_turns(21, || start(state.path()), || start(empty.path()))?;
    table.pair("the same with 10,000 old runs", "with none", pair, "the same");
    Ok(())
}

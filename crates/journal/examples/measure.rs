//! Measures a journal on this machine: `cargo run --release -p convoke-journal --example measure`.
#![expect(clippy::disallowed_methods, reason = "the bare file it is compared with")]

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use convoke_core::event::VERSION;
use convoke_core::{AgentPath, CallId, Cause, Event, EventBody, Position, RunId, Timestamp, Usage};
use convoke_journal::{Journal, Store};
use serde_json::json;

const EVENTS: u64 = 10_000;
const RUNS: u64 = 10_000;

fn event(run: &RunId, seq: u64) -> Event {
    let params = json!({ "path": "src/main.rs", "pattern": "fn [a-z_]+", "limit": seq });
    Event {
        v: VERSION,
        position: Position::Durable { seq },
        ts: Timestamp::from_millis(1_772_368_496_000),
        run: run.clone(),
        parent: None,
        agent: AgentPath::default(),
        call: Some(CallId::new(format!("call_{seq}_0"))),
        body: EventBody::ToolCallRequested { tool_name: "grep".into(), params: params.into() },
    }
}

fn ended(run: &RunId, seq: u64) -> Event {
    let (outcome, usage) = (Cause::Goal.into(), Usage::default());
    Event { body: EventBody::RunEnded { outcome, answer: None, usage }, ..event(run, seq) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let state = tempfile::tempdir()?;
    let store = Store::at(state.path());
    let now = Timestamp::from_millis(1_772_368_496_000);
    let mut out = std::io::stdout().lock();

    let run = RunId::new("measured");
    let events: Vec<Event> = (1..=EVENTS).map(|seq| event(&run, seq)).collect();
    let journal = store.create(&run, now)?;
    let appended = time(|| events.iter().try_for_each(|event| journal.append(event)))?;
    let synced = time(|| journal.sync().wait())?;
    drop(journal);
    let path = state.path().join("runs/measured/journal.jsonl");
    let bytes = std::fs::read(&path)?;
    let mut bare = File::create(state.path().join("bare"))?;
    let written = time(|| {
        bytes.split_inclusive(|byte| *byte == b'\n').try_for_each(|line| bare.write_all(line))
    })?;
    writeln!(out, "bytes a line               {:>10}", bytes.len() as u64 / (EVENTS + 1))?;
    writeln!(out, "append                     {:>10.2?}", per(appended, EVENTS))?;
    writeln!(out, "the same bytes, bare write {:>10.2?}", per(written, EVENTS))?;
    writeln!(out, "sync                       {synced:>10.2?}")?;
    writeln!(out, "open {EVENTS} events         {:>10.2?}", time(|| store.open(&run, now))?)?;

    let made = time(|| {
        (0..RUNS).try_for_each(|number| {
            let run = RunId::new(format!("run-{number:05}"));
            let journal = store.create(&run, now)?;
            journal.append(&event(&run, 1))?;
            journal.append(&ended(&run, 2))
        })
    })?;
    writeln!(out, "create, 2 events, close    {:>10.2?}", per(made, RUNS))?;
    writeln!(out, "list {RUNS} runs, cold       {:>10.2?}", time(|| store.list())?)?;
    writeln!(out, "list {RUNS} runs, warm       {:>10.2?}", time(|| store.list())?)?;
    let open: Vec<_> = (0..1000)
        .map(|number| store.open(&RunId::new(format!("run-{number:05}")), now))
        .collect::<Result<_, _>>()?;
    writeln!(out, "the same, 1000 of them open{:>10.2?}", time(|| store.list())?)?;
    open.iter().try_for_each(|one| one.journal.append(&event(one.journal.run(), 3)))?;
    let synced = time(|| {
        let syncs: Vec<_> = open.iter().map(|one| one.journal.sync()).collect();
        syncs.into_iter().try_for_each(convoke_journal::Synced::wait)
    })?;
    writeln!(out, "sync 1000 journals         {synced:>10.2?}")?;
    writeln!(out, "list, 1000 of them changed {:>10.2?}", time(|| store.list())?)?;
    Ok(())
}

fn time<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<Duration, E> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}

fn per(whole: Duration, count: u64) -> Duration {
    whole / u32::try_from(count).unwrap_or(u32::MAX)
}

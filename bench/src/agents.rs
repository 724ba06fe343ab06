//! Agents that agents call: what it costs to call one, a thousand at once, how fast what they say is seen,
//! how fast they stop, and what it takes to take a tree up again.
//!
//! Models are scripted, so that nothing but the runtime is measured.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke::core::run::Budget;
use convoke::core::{
    Cause, EventBody, Kind, Message, ModelFacts, Part, Role, RunId, StopReason, ToolCall, Usage,
};
use convoke::tools::{FunctionTool, MemorySink, ToolContext, ToolExecutor, ToolRegistry, ToolView};
use convoke_agent::{
    AgentDefinition, AgentExecutor, AgentRegistry, Delegation, Journals, Team, TreeLimits,
};
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_model::{Answer, Chunk, Model, ModelName, ModelStream, Request, RequestSnapshot};
use futures_util::StreamExt;
use serde_json::json;
use tokio::runtime::Runtime as Threads;
use tokio::sync::mpsc;

use crate::Result;
use crate::measure::{in_turns, median, time};
use crate::process::Memory;
use crate::table::Table;

/// How many agents one call of the many spawns.
const MANY: usize = 1_000;
/// How long a model takes to answer.
const LATENCY: Duration = Duration::from_millis(50);
/// How long agents may take to begin, before something is wrong.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // First, while nothing of what others used is there to be used again.
    memory(table, &threads)?;
    spawning(table, &threads)?;
    many(table, &threads)?;
    deltas(table, &threads)?;
    cancelling(table, &threads)?;
    resuming(table, &threads)?;
    schemas(table)
}

fn registry(names: impl IntoIterator<Item = String>) -> Result<AgentRegistry> {
    let registry = AgentRegistry::new();
    for name in names {
        let description = "Looks through the project and reports what it found, with places.";
        let mut definition = AgentDefinition::new(name, description);
        definition.prompt.system_prompt = Some("You are a worker. Do it.".to_owned());
        registry.register(definition)?;
    }
    Ok(registry)
}

fn team() -> Result<Team> {
    let mut limits = TreeLimits::default();
    (limits.max_parallel, limits.max_agents) = (4 * MANY, u32::MAX);
    Ok(Team::builder(registry(["worker".to_owned()])?).limits(limits).build())
}

fn tools() -> Result<convoke::tools::ExecutorBuilder> {
    let registry = ToolRegistry::new();
    let noop =
        FunctionTool::new("noop", "Does nothing.", async |_: NoArguments, _: ToolContext| {
            Ok::<_, String>("done")
        });
    registry.register(noop.kind(Kind::Read))?;
    Ok(ToolExecutor::builder(ToolView::of(registry), ToolContext::builder("t").build()))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct NoArguments {}

fn is_worker(request: &RequestSnapshot) -> bool {
    request.system.starts_with("You are a worker.")
}

fn turns_of(request: &RequestSnapshot) -> usize {
    request.messages.iter().filter(|message| message.role == Role::Assistant).count()
}

fn done() -> Turn {
    Turn::call("complete_task", json!({ "result": "done" }))
}

fn call_many(count: usize) -> Turn {
    let task = || json!({ "agent_name": "worker", "prompt": "Do it." });
    let first = Turn::call("delegate_to_agent", task());
    (1..count).fold(first, |turn, _| turn.and_call("delegate_to_agent", task()))
}

fn budget() -> Budget {
    Budget { turns: 1_000, tokens: Some(1_000_000_000), ..Budget::default() }
}

/// A main agent that calls so many agents in one turn; each does what `work` says.
fn main_agent(
    count: usize,
    work: impl Fn(&RequestSnapshot) -> Turn + Send + Sync + 'static,
) -> Result<AgentExecutor> {
    let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| match turns_of(request) {
        _ if is_worker(request) => work(request),
        0 => call_many(count),
        _ => Turn::text("All of them are done."),
    });
    let all = ModelFacts { max_calls: Some(u32::try_from(count)?), ..ModelFacts::default() };
    let model = model.forgetful().with_facts(all);
    Ok(AgentExecutor::builder(model, tools()?).budget(budget()).team(team()?).build()?)
}

async fn finished(agent: &AgentExecutor) -> Result<()> {
    let report = agent.start("Go.").finish().await;
    if report.outcome.cause == Cause::Goal {
        Ok(())
    } else {
        Err(format!("{:?}", report.outcome).into())
    }
}

/// Waits until so many agents have asked their model.
async fn reached(asked: &AtomicU64, count: usize) -> Result<()> {
    let began = Instant::now();
    while asked.load(Ordering::Relaxed) < count as u64 {
        if began.elapsed() > PATIENCE {
            let asked = asked.load(Ordering::Relaxed);
            return Err(format!("only {asked} of {count} agents asked their model").into());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// What it costs to call one agent, beside a run of its own that does the same.
fn spawning(table: &mut Table, threads: &Threads) -> Result<()> {
    const COUNT: usize = 200;
    let count = u32::try_from(COUNT)?;
    let with_agents = main_agent(COUNT, |_| done())?;
    let alone = {
        let model = ScriptedModel::from_fn(|_: &RequestSnapshot| done()).forgetful();
        AgentExecutor::builder(model, tools()?).completes_by_call().budget(budget()).build()?
    };
    let pair = in_turns(
        15,
        || Ok(time(|| threads.block_on(finished(&with_agents)))? / count),
        || {
            time(|| {
                threads.block_on(async {
                    for _ in 0..COUNT {
                        finished(&alone).await?;
                    }
                    Ok(())
                })
            })
            .map(|all| all / count)
        },
    )?;
    table.pair("an agent called, from call to result", "a run of its own", pair, "≤ 200 µs");
    Ok(())
}

/// A thousand agents of one caller, each with two turns.
fn many(table: &mut Table, threads: &Threads) -> Result<()> {
    let work = |request: &RequestSnapshot| match turns_of(request) {
        0 => Turn::wait(LATENCY).and_call("noop", json!({})),
        _ => Turn::wait(LATENCY).and_call("complete_task", json!({ "result": "done" })),
    };
    let with_agents = main_agent(MANY, work)?;
    let alone = {
        let model = ScriptedModel::from_fn(work).forgetful();
        AgentExecutor::builder(model, tools()?).completes_by_call().budget(budget()).build()?
    };
    let pair = in_turns(
        5,
        || time(|| threads.block_on(finished(&with_agents))),
        || {
            time(|| {
                threads.block_on(async {
                    let mut all = tokio::task::JoinSet::new();
                    for _ in 0..MANY {
                        let alone = alone.clone();
                        all.spawn(async move { alone.start("Go.").finish().await.outcome.cause });
                    }
                    while let Some(cause) = all.join_next().await {
                        if cause? != Cause::Goal {
                            return Err("a run failed".into());
                        }
                    }
                    Ok(())
                })
            })
        },
    )?;
    table.pair(
        "1,000 agents of one caller, two turns of 50 ms, under one budget",
        "1,000 runs",
        pair,
        "",
    );
    Ok(())
}

/// What a thousand agents take that wait for their models.
fn memory(table: &mut Table, threads: &Threads) -> Result<()> {
    let waiting = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&waiting);
    let agent = main_agent(MANY, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Turn::wait(Duration::from_mins(1)).and_text("never")
    })?;
    let before = Memory::own()?.now;
    let run = agent.start("Go.");
    let handle = run.handle();
    let used = threads.block_on(async {
        let task = tokio::spawn(run.finish());
        reached(&waiting, MANY).await?;
        let used = Memory::own()?.now.saturating_sub(before);
        handle.cancel();
        task.await?;
        Ok::<_, Box<dyn std::error::Error>>(used)
    })?;
    table.size("memory of an agent that waits for its model", used / MANY as u64, "≤ 64 KB");
    Ok(())
}

/// How long a piece of an agent's answer takes to whoever reads the root's events, beside channels that
/// carry the same.
fn deltas(table: &mut Table, threads: &Threads) -> Result<()> {
    const AGENTS: usize = 32;
    const PIECES: usize = 200;
    let began = Instant::now();
    let stamp = move || format!("{} \n", began.elapsed().as_nanos());
    let age = move |text: &str| {
        let then = text.trim().parse().map(Duration::from_nanos).unwrap_or_default();
        began.elapsed().saturating_sub(then)
    };
    let p99 = |mut ages: Vec<Duration>| {
        ages.sort_unstable();
        ages.get(ages.len() * 99 / 100).copied().unwrap_or_default()
    };
    let ours = || -> Result<Duration> {
        let caller =
            ScriptedModel::from_fn(move |request: &RequestSnapshot| match turns_of(request) {
                0 => call_many(AGENTS),
                _ => Turn::text("All of them are done."),
            });
        let model = Stamping { caller, began, pieces: PIECES };
        let agent =
            AgentExecutor::builder(model, tools()?).budget(budget()).team(team()?).build()?;
        threads.block_on(async {
            let mut run = agent.start("Go.");
            let mut ages = Vec::new();
            while let Some(event) = run.next().await {
                if let EventBody::ModelDelta { text } = &event.body {
                    ages.push(age(text));
                }
            }
            if ages.len() < AGENTS * PIECES / 2 {
                return Err(format!("only {} pieces were seen", ages.len()).into());
            }
            Ok(p99(ages))
        })
    };
    let theirs = || -> Result<Duration> {
        threads.block_on(async {
            let (sender, mut receiver) = mpsc::unbounded_channel::<String>();
            for _ in 0..AGENTS {
                let sender = sender.clone();
                tokio::spawn(async move {
                    for _ in 0..PIECES {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        drop(sender.send(stamp()));
                    }
                });
            }
            drop(sender);
            let mut ages = Vec::new();
            while let Some(text) = receiver.recv().await {
                ages.push(age(&text));
            }
            Ok(p99(ages))
        })
    };
    // The 99th of a hundred is at the mercy of whatever else runs: many short rounds, and the one in the middle.
    let pair = in_turns(25, ours, theirs)?;
    table.pair(
        "a piece of an agent's answer to the root's reader, p99",
        "a channel",
        pair,
        "≤ 2 ×",
    );
    Ok(())
}

/// Agents say what time it is, a piece a millisecond; their caller does what is written for it.
#[derive(Debug)]
struct Stamping {
    caller: ScriptedModel,
    began: Instant,
    pieces: usize,
}

impl Model for Stamping {
    fn name(&self) -> &ModelName {
        self.caller.name()
    }

    fn facts(&self) -> &ModelFacts {
        self.caller.facts()
    }

    fn stream(&self, request: &Request<'_>) -> ModelStream {
        if !request.system.starts_with("You are a worker.") {
            return self.caller.stream(request);
        }
        let (began, pieces) = (self.began, self.pieces);
        let stamps = futures_util::stream::unfold(0, move |said| async move {
            if said == pieces {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            Some((Ok(Chunk::Text(format!("{} \n", began.elapsed().as_nanos()))), said + 1))
        });
        let call = ToolCall::new("c", "complete_task", json!({ "result": "done" }));
        let message = Message { role: Role::Assistant, parts: vec![Part::ToolCall(call)] };
        let (usage, stop) = (Usage::default(), StopReason::Done);
        let answer = Answer { message, usage, stop };
        Box::pin(stamps.chain(futures_util::stream::iter([Ok(Chunk::End(answer))])))
    }
}

/// How long a thousand agents take to stop.
fn cancelling(table: &mut Table, threads: &Threads) -> Result<()> {
    let mut samples = Vec::new();
    for _ in 0..5 {
        let waiting = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&waiting);
        let agent = main_agent(MANY, move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Turn::wait(Duration::from_mins(1)).and_text("never")
        })?;
        let run = agent.start("Go.");
        let handle = run.handle();
        samples.push(threads.block_on(async {
            let task = tokio::spawn(run.finish());
            reached(&waiting, MANY).await?;
            let began = Instant::now();
            handle.cancel();
            let report = task.await?;
            if report.outcome.cause != Cause::Interrupted {
                return Err(format!("{:?}", report.outcome).into());
            }
            Ok::<_, Box<dyn std::error::Error>>(began.elapsed())
        })?);
    }
    table.time("stopping 1,000 agents, to the last", median(samples), "≤ 100 ms");
    Ok(())
}

/// A tree with a hundred agents that ended and ten that did not, from its journal to its first request.
fn resuming(table: &mut Table, threads: &Threads) -> Result<()> {
    const ENDED: usize = 100;
    const OPEN: usize = 10;
    let state = tempfile::tempdir()?;
    let store = convoke::journal::Store::at(state.path());
    let journals = Journals::new(store, Arc::new(convoke::tools::SystemClock));
    let id = RunId::new("tree");
    let started = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&started);
    let first = main_with(&journals, move |_| {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        if usize::try_from(number).is_ok_and(|number| number < ENDED) {
            done()
        } else {
            Turn::wait(Duration::from_mins(1)).and_text("never")
        }
    })?;
    threads.block_on(async {
        let run = tokio::spawn(first.start_as(id.clone(), "Go.").finish());
        reached(&started, ENDED + OPEN).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        run.abort();
        drop(run.await);
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    let file = state.path().join("runs/tree/journal.jsonl");
    let ours = || {
        // The same tree every time: taking it up writes to it.
        let copy = tempfile::tempdir()?;
        copy_all(state.path(), copy.path())?;
        let store = convoke::journal::Store::at(copy.path());
        let journals = Journals::new(store, Arc::new(convoke::tools::SystemClock));
        let asked = Arc::new(AtomicBool::new(false));
        let again = Arc::clone(&asked);
        let second = main_with(&journals, move |_| {
            again.store(true, Ordering::Relaxed);
            Turn::wait(Duration::from_mins(1)).and_text("never")
        })?;
        let began = Instant::now();
        let reopened = journals.reopen(&id)?;
        let run = second.resume(reopened.paused, None)?;
        Ok(threads.block_on(async {
            let task = tokio::spawn(run.finish());
            while !asked.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
            let elapsed = began.elapsed();
            task.abort();
            drop(task.await);
            elapsed
        }))
    };
    let pair = in_turns(7, ours, || time(|| Ok(std::fs::read(&file)?)))?;
    table.pair(
        "taking up a tree with 100 ended and 10 open agents, to its first request",
        "reading the file",
        pair,
        "",
    );
    Ok(())
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn main_with(
    journals: &Journals,
    work: impl Fn(&RequestSnapshot) -> Turn + Send + Sync + 'static,
) -> Result<AgentExecutor> {
    let model =
        ScriptedModel::from_fn(
            move |request: &RequestSnapshot| {
                if is_worker(request) { work(request) } else { call_many(110) }
            },
        );
    let agent = AgentExecutor::builder(model.forgetful(), tools()?);
    Ok(agent.budget(budget()).team(team()?).keeper(Arc::new(journals.clone())).build()?)
}

/// What a model is told about the agents there are.
fn schemas(table: &mut Table) -> Result<()> {
    for count in [5, 20, 100] {
        let declared = |delegation: Delegation| -> Result<u64> {
            let registry = registry((0..count).map(|number| format!("worker_{number}")))?;
            let team = Team::builder(registry).delegation(delegation).background(false).build();
            let told: Arc<Mutex<u64>> = Arc::default();
            let seen = Arc::clone(&told);
            let model = ScriptedModel::from_fn(move |request: &RequestSnapshot| {
                let tools = request.tools.iter().filter(|tool| tool.name != "noop");
                let bytes = tools.map(|tool| {
                    let parameters = tool.parameters.text().get().len();
                    tool.name.len() + tool.description.len() + parameters
                });
                if let Ok(mut told) = seen.lock() {
                    *told = bytes.sum::<usize>() as u64;
                }
                Turn::text("ok")
            });
            let sink = Arc::new(MemorySink::default());
            let agent = AgentExecutor::builder(model, tools()?).team(team).sink(sink).build()?;
            let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            threads.block_on(finished(&agent))?;
            let told = told.lock().map(|told| *told).unwrap_or_default();
            Ok(told)
        };
        let pair = (declared(Delegation::Delegate)?, declared(Delegation::PerAgent)?);
        let what = format!("what a model is told about {count} agents");
        table.sizes(&what, "one tool an agent", pair, "");
    }
    Ok(())
}

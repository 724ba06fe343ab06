//! Many runs at once in one process.
//!
//! Each side plays its runs in a process of its own (this program, started again), so that processor
//! time and memory are its own. Runs begin a hundred a millisecond on both sides: no listening socket
//! takes ten thousand connections in one moment.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::server::{Plan, Server};
use super::{PROMPT, World, agent, answer_of, bare, expected};
use crate::Result;
use crate::measure::{Pair, median};
use crate::process::{Memory, own_cpu, raise_open_files};
use crate::search::run;
use crate::table::Table;

const PLAN: Plan = Plan { turns: 3, calls: 1, latency_ms: 50 };
/// How many runs begin in a millisecond.
const AT_ONCE: usize = 100;
/// Files that are open beside the connections.
const OTHER_FILES: u64 = 1_100;

/// What one side used for all its runs.
#[derive(Clone, Copy, Deserialize, Serialize)]
struct Used {
    wall: Duration,
    cpu: Duration,
    memory: u64,
    /// The most runs that were under way together.
    together: usize,
}

pub(super) fn measure(table: &mut Table, world: &World) -> Result<()> {
    for (wanted, samples) in [(1_000_u32, 5), (10_000, 3)] {
        let files = raise_open_files(u64::from(wanted) + OTHER_FILES);
        let room = u32::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(u32::MAX);
        let runs = wanted.min(room);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..samples {
            ours.push(one_side("convoke", runs, world)?);
            theirs.push(one_side("bare", runs, world)?);
        }
        report(table, runs, &ours, &theirs);
    }
    Ok(())
}

fn report(table: &mut Table, runs: u32, ours: &[Used], theirs: &[Used]) {
    let times = |of: fn(&Used) -> Duration| Pair {
        ours: median(ours.iter().map(of).collect()),
        theirs: median(theirs.iter().map(of).collect()),
    };
    let per_run =
        |side: &[Used]| median(side.iter().map(|used| used.memory).collect()) / u64::from(runs);
    let what = format!("{runs} runs of three turns at once");
    table.pair(&format!("{what}, wall"), "bare client", times(|used| used.wall), "≤ 1.5 ×");
    let cpu = times(|used| used.cpu);
    let cpu = Pair { ours: cpu.ours / runs, theirs: cpu.theirs / runs };
    table.pair(&format!("{what}, processor time a run"), "bare client", cpu, "≤ 2 ×");
    let least = |side: &[Used]| side.iter().map(|used| used.together).min().unwrap_or_default();
    table.counts("under way together", "bare client", (least(ours), least(theirs)));
    let memory = (per_run(ours), per_run(theirs));
    table.sizes(&format!("{what}, memory a run"), "bare client", memory, "≤ 100 KB");
}

/// Plays all runs of one side in a process of its own, against a server that is new.
fn one_side(side: &str, runs: u32, world: &World) -> Result<Used> {
    let server = Server::start(PLAN)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["many", side, &server.base_url(), &runs.to_string()]).arg(world.files());
    Ok(serde_json::from_str(&run(&mut command)?)?)
}

/// Plays the runs of one side and prints what they used: `many SIDE URL RUNS DIRECTORY`.
pub(crate) fn play(mut words: impl Iterator<Item = String>) -> Result<()> {
    let mut next = || words.next().ok_or("usage: convoke-bench many SIDE URL RUNS DIRECTORY");
    let (side, url, runs, files) = (next()?, next()?, next()?.parse()?, PathBuf::from(next()?));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let used = runtime.block_on(async {
        match side.as_str() {
            "convoke" => ours(&url, &files, runs).await,
            "bare" => theirs(&url, &files, runs).await,
            _ => Err("the sides are `convoke` and `bare`".into()),
        }
    })?;
    std::io::Write::write_all(&mut std::io::stdout(), &serde_json::to_vec(&used)?)?;
    Ok(())
}

async fn ours(url: &str, files: &Path, runs: usize) -> Result<Used> {
    let agent = agent(url, files)?;
    used_by(runs, || {
        let run = agent.start(PROMPT);
        async move { answer_of(&run.finish().await).map_err(|error| error.to_string()) }
    })
    .await
}

async fn theirs(url: &str, files: &Path, runs: usize) -> Result<Used> {
    let bare = bare(url, files)?;
    used_by(runs, || {
        let bare = bare.clone();
        async move {
            let answer = bare.run(PROMPT).await.map_err(|error| error.to_string())?;
            expected(answer).map_err(|error| error.to_string())
        }
    })
    .await
}

/// Starts all runs and waits for them, after one that does not count.
async fn used_by<R>(runs: usize, start: impl Fn() -> R) -> Result<Used>
where
    R: Future<Output = std::result::Result<String, String>> + Send + 'static,
{
    start().await?;
    let (before, cpu, began) = (Memory::own()?.now, own_cpu(), Instant::now());
    let mut tasks = JoinSet::new();
    let (under_way, together) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for number in 1..=runs {
        let (run, under_way, together) = (start(), Arc::clone(&under_way), Arc::clone(&together));
        tasks.spawn(async move {
            let now = under_way.fetch_add(1, Ordering::Relaxed) + 1;
            together.fetch_max(now, Ordering::Relaxed);
            let answer = run.await;
            under_way.fetch_sub(1, Ordering::Relaxed);
            answer
        });
        if number % AT_ONCE == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(Used {
        wall: began.elapsed(),
        cpu: own_cpu().saturating_sub(cpu),
        memory: Memory::own()?.peak.saturating_sub(before),
        together: together.load(Ordering::Relaxed),
    })
}

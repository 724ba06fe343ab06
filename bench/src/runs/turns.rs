//! What a turn costs in a process that is warm, with and without HTTP.

use std::path::Path;
use std::time::Duration;

use convoke_model::{ScriptedModel, Turn};
use serde_json::json;

use super::server::{Plan, Server};
use super::{LAST_WORDS, PROMPT, World, agent, agent_of, answer_of, bare, expected};
use crate::Result;
use crate::measure::{Pair, in_turns, time};
use crate::table::Table;

const TURNS: u32 = 50;
const SAMPLES: usize = 21;

pub(super) fn measure(table: &mut Table, world: &World) -> Result<()> {
    let files = world.files();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for (calls, what, aim) in [
        (1, "a turn with one `read_file`", "≤ 0.5 ms"),
        (8, "a turn with eight `read_file` at once", "≤ 2 ms"),
    ] {
        let server = Server::start(Plan { turns: TURNS as usize, calls, latency_ms: 0 })?;
        let (ours, theirs) =
            (agent(&server.base_url(), &files)?, bare(&server.base_url(), &files)?);
        let run = || answer_of(&runtime.block_on(ours.start(PROMPT).finish()));
        let peer = || {
            let answer = runtime.block_on(theirs.run(PROMPT)).map_err(|error| error.to_string())?;
            expected(answer)
        };
        let Pair { ours, theirs } = in_turns(SAMPLES, || time(run), || time(peer))?;
        let pair = Pair { ours: ours / TURNS, theirs: theirs / TURNS };
        table.pair(&format!("{what}, over HTTP"), "bare client", pair, "");
        table.time("what we add to it", pair.ours.saturating_sub(pair.theirs), aim);
        table.time("the same with a scripted model", scripted(&runtime, &files, calls)?, aim);
    }
    Ok(())
}

/// Returns the time of a turn in which the model answers at once.
fn scripted(runtime: &tokio::runtime::Runtime, files: &Path, calls: usize) -> Result<Duration> {
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let ask = |turn: u32| {
            (0..calls).fold(Turn::empty(), |asked, call| {
                asked.and_call("read_file", json!({ "path": format!("file_{turn}_{call}.txt") }))
            })
        };
        let turns = (0..TURNS - 1).map(ask).chain([Turn::text(LAST_WORDS)]);
        let ours = agent_of(ScriptedModel::new(turns).forgetful(), files)?;
        samples.push(time(|| answer_of(&runtime.block_on(ours.start(PROMPT).finish())))? / TURNS);
    }
    Ok(crate::measure::median(samples))
}

//! The most memory a whole command holds.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::server::{Plan, Server};
use super::{World, expected};
use crate::Result;
use crate::measure::median;
use crate::process::Memory;
use crate::table::Table;

const TURNS: usize = 10;
const SAMPLES: usize = 5;

pub(super) fn measure(table: &mut Table, world: &World) -> Result<()> {
    let server = Server::start(Plan { turns: TURNS, calls: 1, latency_ms: 10 })?;
    let base_url = server.base_url();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        ours.push(peak(&mut world.convoke_run(&base_url, TURNS))?);
        theirs.push(peak(&mut world.bare_run(&base_url)?)?);
    }
    let peaks = (median(ours), median(theirs));
    table.sizes("`convoke run` of 10 turns, peak memory", "bare client", peaks, "≤ 20 MB");
    Ok(())
}

/// Returns the most memory a command had, in bytes. It is looked at until the process has ended; the
/// peak never falls, so only what happens after the last look is missed.
fn peak(command: &mut Command) -> Result<u64> {
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut peak = 0;
    while process.try_wait()?.is_none() {
        peak = peak.max(Memory::of(process.id())?.peak);
        std::thread::sleep(Duration::from_micros(300));
    }
    expected(String::from_utf8(process.wait_with_output()?.stdout)?)?;
    Ok(peak)
}

//! What several clients need for the same calls, in turns, and how that is shown.

use std::time::Duration;

use serde::Deserialize;

use super::driver::Driver;
use crate::Result;
use crate::measure::{Pair, median};
use crate::table::Table;

const CALLS: u32 = 400;
const ROUNDS: usize = 7;
/// How many calls are under way together: one after the other, and many.
pub(super) const WAYS: [(usize, &str); 2] = [(1, "one after the other"), (16, "16 in flight")];

/// What some calls took, in nanoseconds.
#[derive(Debug, Deserialize)]
pub(super) struct Sample {
    /// All of them together.
    pub(super) wall: u64,
    /// Processor time of the client.
    pub(super) cpu: u64,
    /// Each of them.
    pub(super) latencies: Vec<u64>,
}

/// What a call takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    each: Duration,
    cpu: Duration,
    usual: Duration,
    worst: Duration,
}

/// Lets all drivers make their calls in turns, after a round that does not count.
pub(super) fn in_rounds(drivers: &mut [Box<dyn Driver>], at_once: usize) -> Result<Vec<Figures>> {
    let mut samples: Vec<Vec<Sample>> = drivers.iter().map(|_| Vec::new()).collect();
    for round in 0..=ROUNDS {
        for (driver, samples) in drivers.iter_mut().zip(&mut samples) {
            let sample = driver.calls(CALLS, at_once)?;
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    Ok(samples.iter().map(|samples| figures(samples)).collect())
}

fn figures(samples: &[Sample]) -> Figures {
    let each = |of: fn(&Sample) -> u64| {
        Duration::from_nanos(median(samples.iter().map(of).collect()) / u64::from(CALLS))
    };
    let mut latencies: Vec<u64> =
        samples.iter().flat_map(|sample| sample.latencies.iter().copied()).collect();
    latencies.sort_unstable();
    let at = |percent: usize| {
        let nanos = latencies.get(latencies.len() * percent / 100).copied();
        Duration::from_nanos(nanos.unwrap_or_default())
    };
    Figures {
        each: each(|sample| sample.wall),
        cpu: each(|sample| sample.cpu),
        usual: at(50),
        worst: at(99),
    }
}

/// Adds the rows of two that made the same calls.
pub(super) fn compare(table: &mut Table, what: &str, peer: &str, ours: Figures, theirs: Figures) {
    let rate = |figures: Figures| 1.0 / figures.each.as_secs_f64().max(1e-9);
    table.rates(&format!("{what}, calls a second"), peer, (rate(ours), rate(theirs)), "≥ 1");
    let usual = Pair { ours: ours.usual, theirs: theirs.usual };
    let worst = Pair { ours: ours.worst, theirs: theirs.worst };
    table.pairs(&format!("{what}, p50 / p99"), peer, [usual, worst], "≤ 1");
}

/// Adds the row of what two clients used themselves.
pub(super) fn compare_cpu(
    table: &mut Table,
    what: &str,
    peer: &str,
    ours: Figures,
    theirs: Figures,
) {
    let pair = Pair { ours: ours.cpu, theirs: theirs.cpu };
    table.pair(&format!("{what}, the client's processor time"), peer, pair, "≤ 1");
}

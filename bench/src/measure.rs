//! Takes samples of two things in turns.

use std::time::{Duration, Instant};

use crate::Result;

/// The medians of two things that took turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) ours: Duration,
    pub(crate) theirs: Duration,
}

/// Runs both in turns, after a round that does not count, and returns their medians.
pub(crate) fn in_turns(
    samples: usize,
    mut ours: impl FnMut() -> Result<Duration>,
    mut theirs: impl FnMut() -> Result<Duration>,
) -> Result<Pair> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for round in 0..=samples {
        let (one, other) = (ours()?, theirs()?);
        if round > 0 {
            left.push(one);
            right.push(other);
        }
    }
    Ok(Pair { ours: median(left), theirs: median(right) })
}

/// Times one run.
pub(crate) fn time<T>(work: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let started = Instant::now();
    let value = work()?;
    let elapsed = started.elapsed();
    drop(std::hint::black_box(value));
    Ok(elapsed)
}

/// Times many runs and returns the time of one.
pub(crate) fn time_many(runs: u32, mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let started = Instant::now();
    for _ in 0..runs {
        work()?;
    }
    Ok(started.elapsed() / runs)
}

/// Returns the sample in the middle.
pub(crate) fn median<T: Copy + Default + Ord>(mut samples: Vec<T>) -> T {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

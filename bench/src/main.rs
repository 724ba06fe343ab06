//! Measures Convoke beside its peers and prints one table.
//!
//! A number alone says little on a noisy machine, so every measurement has a peer, and the two take
//! turns: one sample of ours, one of theirs, and so on. What is printed is the median of each and their
//! ratio. Run it with `bench/run`, which builds everything first.
#![expect(clippy::disallowed_methods, reason = "a benchmark makes the world it measures")]

mod commands;
mod files;
mod measure;
mod pipeline;
mod registry;
mod search;
mod table;
mod tree;

use std::error::Error;
use std::path::PathBuf;

use table::Table;

/// Errors end the run; there is nothing to recover.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let command =
        PathBuf::from(std::env::args().nth(1).ok_or("usage: convoke-bench PATH-OF-CONVOKE")?);
    let command = command.canonicalize()?;
    let mut table = Table::default();
    pipeline::measure(&mut table)?;
    registry::measure(&mut table)?;
    files::measure(&mut table)?;
    search::measure(&mut table, &command)?;
    commands::measure(&mut table, &command)?;
    table.print()
}

//! Measures Convoke beside its peers and prints one table.
//!
//! A number alone says little on a noisy machine, so every measurement has a peer, and the two take
//! turns: one sample of ours, one of theirs, and so on. What is printed is the median of each and their
//! ratio. Run it with `bench/run`, which builds everything first.
#![expect(clippy::disallowed_methods, reason = "a benchmark makes the world it measures")]

mod agents;
mod bare;
mod commands;
mod files;
mod journal;
mod masking;
mod mcp;
mod measure;
mod pipeline;
mod policy;
mod process;
mod registry;
mod runs;
mod sandbox;
mod search;
mod table;
mod tree;

use std::error::Error;
use std::path::PathBuf;

use table::Table;

/// Errors end the run; there is nothing to recover.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "usage: convoke-bench PATH-OF-CONVOKE [GROUP…]
groups: pipeline registry policy files search runs agents journal sandbox masking mcp commands";

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let command = words.next().ok_or(USAGE)?;
    // What has to be a process of its own is this program, started again.
    match command.as_str() {
        "many" => return runs::play(words),
        "mcp-serve" => return mcp::serve(words),
        "mcp-fake" => return mcp::pretend(words),
        _ => {}
    }
    let command = PathBuf::from(command).canonicalize()?;
    let groups: Vec<String> = words.collect();
    let wanted = |group: &str| groups.is_empty() || groups.iter().any(|name| name == group);
    let mut table = Table::default();
    if wanted("pipeline") {
        pipeline::measure(&mut table)?;
    }
    if wanted("registry") {
        registry::measure(&mut table)?;
    }
    if wanted("policy") {
        policy::measure(&mut table)?;
    }
    if wanted("files") {
        files::measure(&mut table)?;
    }
    if wanted("search") {
        search::measure(&mut table, &command)?;
    }
    if wanted("runs") {
        runs::measure(&mut table, &command)?;
    }
    if wanted("agents") {
        agents::measure(&mut table)?;
    }
    if wanted("journal") {
        journal::measure(&mut table, &command)?;
    }
    if wanted("sandbox") {
        sandbox::measure(&mut table)?;
    }
    if wanted("masking") {
        masking::measure(&mut table)?;
    }
    if wanted("mcp") {
        mcp::measure(&mut table)?;
    }
    if wanted("commands") {
        commands::measure(&mut table, &command)?;
    }
    table.print()
}

//! What the agents of a tree are called, so that two of one name can be told apart.

use std::collections::HashMap;

use convoke_core::{Event, RunId};

/// The path of every agent; the second of a name has a `2` behind it, and so on, in the order in which they
/// were first heard of.
#[derive(Debug, Default)]
pub(crate) struct Names<'e> {
    of_runs: HashMap<&'e RunId, String>,
    counts: HashMap<&'e str, u32>,
}

impl<'e> Names<'e> {
    /// Returns the name of the agent that an event is about.
    pub(crate) fn of(&mut self, event: &'e Event) -> &str {
        let path = event.agent.as_str();
        let last = path.rsplit('/').next().unwrap_or(path);
        let Self { of_runs, counts } = self;
        of_runs.entry(&event.run).or_insert_with(|| {
            let count = counts.entry(last).or_default();
            *count += 1;
            if *count == 1 { path.to_owned() } else { format!("{path} {count}") }
        })
    }
}

//! Makes a long conversation short: the model sums up the older part, and the facts the runtime knows
//! for itself are added.

use std::collections::BTreeSet;

use convoke_core::Run;

use crate::prompts;

/// How many paths of each sort are named.
const MAX_NAMED: usize = 40;

/// Returns what takes the place of the older part of the conversation; nothing, if that is not shorter.
pub(crate) fn replacement(run: &Run, kept_from: usize, summary: &str) -> (u64, Option<String>) {
    let (read, changed) = match run.task() {
        Some(task) => (listed(&task.ledger.read), listed(&task.ledger.changed)),
        None => Default::default(),
    };
    let text = prompts::compacted(summary.trim(), &read, &changed);
    let after = run.after_compaction(kept_from, &text);
    let shorter = !summary.trim().is_empty() && after < run.context_tokens();
    (after, shorter.then_some(text))
}

fn listed(paths: &BTreeSet<String>) -> String {
    if paths.is_empty() {
        return "none".to_owned();
    }
    let named: Vec<&str> = paths.iter().take(MAX_NAMED).map(String::as_str).collect();
    match paths.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

//! Makes a long conversation short: the model sums up the older part, and the facts the runtime knows
//! for itself are added.

use std::collections::BTreeSet;

use convoke_core::Run;

use crate::prompts;

/// How many paths of each sort are named.
const MAX_NAMED: usize = 40;

/// How many tokens have to go for it to be worth dropping a part of the conversation.
const MIN_GAIN: u64 = 64;

/// Returns what takes the place of the older part of the conversation, and how long it is then; nothing, if that is not
/// shorter.
///
/// A summary that is empty, or so long that the conversation would have to be summed up again at once, is not used: the
/// older part is dropped, and the model is told that it was.
pub(crate) fn replacement(run: &Run, kept_from: usize, summary: &str) -> (u64, Option<String>) {
    let (read, changed) = match run.task() {
        Some(task) => (listed(&task.ledger.read), listed(&task.ledger.changed)),
        None => Default::default(),
    };
    let before = run.context_tokens();
    let measured = |text: String| (run.after_compaction(kept_from, &text), text);
    let dropped = measured(prompts::dropped(&read, &changed));
    let summed_up = measured(prompts::compacted(summary.trim(), &read, &changed));
    // Where even the dropped part does not help, a summary is no worse.
    let helps = run.is_short_enough(summed_up.0) || !run.is_short_enough(dropped.0);
    let is_used = !summary.trim().is_empty() && summed_up.0 < before && helps;
    let (after, text) = if is_used { summed_up } else { dropped };
    // Dropping what was dropped before is no help.
    let least = if is_used { 0 } else { MIN_GAIN };
    if after.saturating_add(least) < before { (after, Some(text)) } else { (before, None) }
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

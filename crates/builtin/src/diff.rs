//! Unified diffs, for people.

use std::time::Duration;

use similar::TextDiff;

/// Texts that have little in common take long to compare; after this the rest counts as changed.
const PATIENCE: Duration = Duration::from_millis(200);

/// Returns the difference between two texts as a unified diff.
pub(crate) fn unified(path: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let (before, after) = (format!("a/{path}"), format!("b/{path}"));
    diff.unified_diff().context_radius(3).header(&before, &after).to_string()
}

//! Unified diffs, for people.

use similar::TextDiff;

/// Returns the difference between two texts as a unified diff.
pub(crate) fn unified(path: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    diff.unified_diff()
        .context_radius(3)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string()
}

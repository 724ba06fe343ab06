//! Patterns for tool names: a name, a name with `*` in it, or a whole family as `category:file`.

use convoke_core::ToolSpec;
pub(crate) use convoke_core::policy::wildcard as matches;

/// Tells whether a pattern is a plain name that has to exist.
pub(crate) fn is_plain(pattern: &str) -> bool {
    !pattern.contains('*') && !pattern.starts_with(CATEGORY)
}

const CATEGORY: &str = "category:";

/// Tells whether a pattern covers a tool.
pub(crate) fn covers(pattern: &str, spec: &ToolSpec) -> bool {
    match pattern.strip_prefix(CATEGORY) {
        Some(category) => spec.category.as_str() == category,
        None => matches(pattern, &spec.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_anything() {
        for (pattern, name, expected) in [
            ("grep", "grep", true),
            ("grep", "grepp", false),
            ("*", "", true),
            ("*_file", "read_file", true),
            ("*_file", "read_files", false),
            ("http_*", "http_get", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("mcp_*_*", "mcp_fs_read", true),
            ("**", "x", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn a_hostile_pattern_is_not_slow() {
        let name = "a".repeat(2_000);
        let pattern = format!("{}b", "a*".repeat(1_000));
        assert!(!matches(&pattern, &name));
    }
}

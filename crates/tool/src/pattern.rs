//! Patterns for tool names: a name, a name with `*` in it, or a whole family as `category:file`.

pub(crate) use convoke_core::policy::wildcard as matches;
use convoke_core::{Category, ToolSpec};

/// Tells whether a pattern is a plain name that has to exist.
pub(crate) fn is_plain(pattern: &str) -> bool {
    !pattern.contains('*') && !pattern.starts_with(CATEGORY)
}

const CATEGORY: &str = "category:";

/// Tells whether a pattern is a family that there is: tools that come later may be of it.
pub(crate) fn is_family(pattern: &str) -> bool {
    pattern.strip_prefix(CATEGORY).is_some_and(|named| named.parse::<Category>().is_ok())
}

/// Tells whether a pattern covers a tool.
pub(crate) fn covers(pattern: &str, spec: &ToolSpec) -> bool {
    match pattern.strip_prefix(CATEGORY) {
        Some(category) => spec.category.as_str() == category,
        None => matches(pattern, &spec.name),
    }
}

/// Tells whether a pattern covers all that names that begin like this stand for, whatever their ends are.
pub(crate) fn covers_all(pattern: &str, start: &str, category: Option<Category>) -> bool {
    match pattern.strip_prefix(CATEGORY) {
        Some(named) => category.is_some_and(|category| category.as_str() == named),
        None => matches(pattern, start),
    }
}

/// Tells whether a pattern may cover a name that begins like this. Where the family is not known, it may be any.
pub(crate) fn may_cover(pattern: &str, start: &str, category: Option<Category>) -> bool {
    if let Some(named) = pattern.strip_prefix(CATEGORY) {
        return category.is_none_or(|category| category.as_str() == named);
    }
    // What a part of the pattern leaves over is for the rest of the name.
    let ends = pattern.char_indices().map(|(at, _)| at).chain([pattern.len()]);
    ends.filter_map(|end| pattern.get(..end)).any(|part| matches(part, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_held_against_the_beginnings_of_names() {
        for (pattern, start, all, some) in [
            ("mcp__a__*", "mcp__a__", true, true),
            ("mcp__a__", "mcp__a__", true, true),
            ("mcp_*", "mcp__a__", true, true),
            ("*", "mcp__a__", true, true),
            ("mcp__a__x", "mcp__a__", false, true),
            ("mcp__a__get_*", "mcp__a__", false, true),
            ("mcp__*__x", "mcp__a__", false, true),
            ("*_x", "mcp__a__", false, true),
            ("mcp__b__*", "mcp__a__", false, false),
            ("mcp__a", "mcp__a__", false, false),
            ("mcp_read_resource", "mcp__a__", false, false),
            ("category:mcp", "mcp__a__", true, true),
            ("category:file", "mcp__a__", false, false),
        ] {
            let family = Some(Category::Mcp);
            assert_eq!(covers_all(pattern, start, family), all, "{pattern} on {start}");
            assert_eq!(may_cover(pattern, start, family), some, "{pattern} on {start}");
        }
        assert!(may_cover("category:file", "mcp__", None), "it may be");
        assert!(!covers_all("category:file", "mcp__", None), "it need not be");
    }

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

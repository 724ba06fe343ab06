//! Names with `*` for any text.

/// Returns whether every name that `narrow` matches is matched by `wide`. Only `*` has a meaning,
/// and a `*` in `narrow` can only be covered by one in `wide`.
pub(crate) fn covers(wide: &str, narrow: &str) -> bool {
    let mut parts = wide.split('*');
    let Some(mut rest) = narrow.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(end) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_what_it_matches() {
        for (wide, narrow, covered) in [
            ("read_file", "read_file", true),
            ("read_file", "read_files", false),
            ("*", "*", true),
            ("*", "", true),
            ("read_*", "read_file", true),
            ("read_*", "read_f*", true),
            ("read_*", "*", false),
            ("read_*", "read*", false),
            ("*_file", "read_file", true),
            ("*_file", "read_files", false),
            ("a*c*e", "abcde", true),
            ("a*c*e", "ace", true),
            ("a*c*e", "ae", false),
            ("a*a", "a", false),
            ("", "", true),
            ("", "a", false),
            ("read_file", "*", false),
        ] {
            assert_eq!(covers(wide, narrow), covered, "{wide} covers {narrow}");
        }
    }
}

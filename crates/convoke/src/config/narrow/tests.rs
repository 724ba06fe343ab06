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

#[test]
fn a_kind_without_an_entry_keeps_what_is_built_in() {
    assert_eq!(strictness("execute", None), Permission::Deny);
    assert_eq!(strictness("read", None), Permission::Allow);
    assert_eq!(strictness("nonsense", None), Permission::Deny);
}

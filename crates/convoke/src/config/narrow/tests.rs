use super::*;

#[test]
fn a_kind_without_an_entry_keeps_what_is_built_in() {
    assert_eq!(strictness("execute", None), Permission::Ask);
    assert_eq!(strictness("read", None), Permission::Allow);
    assert_eq!(strictness("nonsense", None), Permission::Deny);
}

//! Runs by what a person types.

use std::fs;

use convoke_journal::FindError;

use crate::support::{World, id, world};

fn runs() -> World {
    let world = world();
    for run in ["2026-03-01-apple", "2026-03-01-apricot", "2026-03-02-apple", "2026-03-02"] {
        world.record(run, &[]);
    }
    fs::create_dir(world.directory(".removed-2026-04-01")).unwrap();
    world
}

#[test]
fn an_id_or_the_only_part_of_one_is_enough() {
    let world = runs();
    for (wanted, found) in [
        ("2026-03-01-apple", "2026-03-01-apple"),
        ("apricot", "2026-03-01-apricot"),
        ("02-app", "2026-03-02-apple"),
        // An exact id wins over others that it is part of.
        ("2026-03-02", "2026-03-02"),
    ] {
        assert_eq!(world.store.find(wanted).unwrap(), id(found));
    }
    assert_eq!(world.store.last().unwrap(), Some(id("2026-03-02-apple")));
}

#[test]
fn what_could_be_several_is_said() {
    let error = runs().store.find("apple").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`apple` is part of 2 ids: `2026-03-02-apple`, `2026-03-01-apple`; type more of it"
    );
    assert!(matches!(error, FindError::Ambiguous { candidates, .. } if candidates.len() == 2));
}

#[test]
fn what_is_not_there_is_said_with_what_was_meant() {
    let world = runs();
    let error = world.store.find("2026-03-01-aprikot").unwrap_err();
    assert!(error.to_string().contains("did you mean `2026-03-01-apricot`"), "{error}");
    for wanted in ["", "zzz", "../x", "removed"] {
        let error = world.store.find(wanted).unwrap_err();
        assert!(matches!(error, FindError::None { .. }), "{wanted}: {error:?}");
    }
}

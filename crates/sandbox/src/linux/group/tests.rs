use std::cell::RefCell;

use super::*;

const BOTH: Controllers = Controllers { memory: true, processes: true };
const MEMORY: Controllers = Controllers { memory: true, processes: false };
const NONE: Controllers = Controllers { memory: false, processes: false };

/// A directory that looks like a group.
fn fake(above: &Path, name: &str, controllers: &str, passed_on: &str) -> PathBuf {
    let path = above.join(name);
    std::fs::create_dir_all(&path).unwrap();
    let files = [("cgroup.controllers", controllers), ("cgroup.subtree_control", passed_on)];
    for (name, text) in files {
        let flags = OFlags::WRONLY | OFlags::CREATE;
        let file = open(path.join(name), flags, Mode::from(0o644)).unwrap();
        rustix::io::write(file, text.as_bytes()).unwrap();
    }
    path
}

#[expect(clippy::unnecessary_wraps, reason = "others fail")]
fn works(_: &Groups) -> io::Result<()> {
    Ok(())
}

#[test]
fn the_first_place_is_taken_that_passes_on_what_is_needed() {
    let tree = tempfile::tempdir().unwrap();
    let above = fake(tree.path(), "a", "cpu memory pids\n", "memory\n");
    let own = fake(tree.path(), "a/b", "memory\n", "\n");
    let places = [own.clone(), above.clone()];
    let found = |needed| Groups::among(&places, needed, works).map(|groups| groups.directory);
    assert_eq!(found(NONE), Ok(own.clone()), "it needs no controller");
    assert_eq!(found(BOTH), Ok(above.clone()), "the first has no `pids`");
    let written = |path: &Path| read(&path.join("cgroup.subtree_control")).unwrap();
    assert!(written(&above).starts_with("+pids"), "only what is missing is switched on");
    assert_eq!(written(&own), "\n", "nothing is switched on where that is not enough");
}

#[test]
fn each_place_that_does_not_work_is_told_with_the_reason() {
    let tree = tempfile::tempdir().unwrap();
    let above = fake(tree.path(), "a", "memory", "memory");
    let own = fake(tree.path(), "a/b", "", "");
    let tried = RefCell::new(Vec::new());
    let works = |groups: &Groups| {
        tried.borrow_mut().push(groups.directory.clone());
        Err(io::Error::from_raw_os_error(libc::EACCES))
    };
    let said = Groups::among(&[own.clone(), above.clone()], MEMORY, works).unwrap_err();
    let (own, shown) = (own.display(), above.display());
    let expected = format!(
        "`{own}`: it has no `memory` controller; `{shown}`: no group can be made there: Permission \
         denied (os error 13)"
    );
    assert_eq!((said, tried.into_inner()), (expected, vec![above]));
}

#[test]
fn a_place_that_is_no_group_is_none() {
    let tree = tempfile::tempdir().unwrap();
    let said = Groups::among(&[tree.path().join("gone")], NONE, works).unwrap_err();
    assert!(said.contains("No such file"), "{said}");
}

#[test]
fn groups_of_processes_that_are_gone_are_removed_and_no_others() {
    let tree = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        let path = tree.path().join(name);
        std::fs::create_dir_all(path.join(INNER)).unwrap();
        path
    };
    let age = |path: &Path, seconds: i64| {
        let now = stat(path).unwrap().st_mtime;
        let then = rustix::fs::Timespec { tv_sec: now - seconds, tv_nsec: 0 };
        let times = rustix::fs::Timestamps { last_access: then, last_modification: then };
        rustix::fs::utimensat(CWD, path, &times, AtFlags::empty()).unwrap();
    };
    // No process has a number this high.
    let dead = make("convoke-4194999-0");
    let young = make("convoke-4194999-1");
    let ours = make(&format!("convoke-{}-7", std::process::id()));
    let others =
        [make("convoke-tmp-1"), make("convoke-x"), make("user.slice"), young, ours.clone()];
    for path in [&dead, &ours, &others[0], &others[1], &others[2]] {
        age(path, 100);
    }
    let newest = make("convoke-1-99");
    remove_leftovers(tree.path(), &newest);
    assert!(!dead.exists(), "its process is no more");
    for path in &others {
        assert!(path.join(INNER).exists(), "{} is not to be removed", path.display());
    }
}

#[test]
fn programs_cannot_be_let_write_where_groups_are() {
    let Ok(text) = asked("mountinfo") else { return };
    let Some(point) = mount::points(&text).into_iter().next() else {
        convoke_testkit::skip("control groups", "they are not mounted");
        return;
    };
    let limits = Limits { cpu: Some(std::time::Duration::from_secs(1)), ..Limits::default() };
    for root in [PathBuf::from("/"), point.clone(), point.join("below")] {
        let write = Confinement { write: vec![root.clone()], ..Confinement::default() };
        let scratch = Confinement { scratch: vec![root], ..Confinement::default() };
        for confinement in [write, scratch] {
            let said = Groups::of(&confinement.clone().limits(limits.clone())).unwrap_err();
            assert!(said.why.contains("may be written"), "{said}");
            assert!(Groups::of(&confinement).unwrap().is_none(), "nothing needs a group");
        }
    }
}

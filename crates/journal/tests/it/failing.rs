//! Disks that are full and directories that may not be written.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use convoke_journal::Journal;

use crate::child;
use crate::support::{NOW, id, notice, world};

/// A user without any rights.
const NOBODY: u32 = 65534;

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn a_full_disk_leaves_a_clean_journal() {
    let world = world();
    // With the signal ignored, a write beyond the limit fails like one to a full disk.
    let script = "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\"";
    let mut limited = Command::new("sh");
    limited.arg("-c").arg(script).arg(child::this_program());
    succeeds(child::told(&mut limited, "writes_until_the_disk_is_full", world.state.path()));

    assert!(world.bytes("full").ends_with(b"\n"));
    let opened = world.store.open(&id("full"), NOW).unwrap();
    assert_eq!(opened.repaired, None);
    let last = opened.events.len() as u64;
    assert!(last > 10);
    opened.journal.append(&notice("full", last + 1, "there is space again")).unwrap();

    let opened = world.store.open(&id("blob"), NOW).unwrap();
    assert_eq!((opened.events.len(), opened.repaired), (1, None));
    assert_eq!(fs::read_dir(world.directory("blob").join("blobs")).unwrap().count(), 0);
}

#[test]
fn a_read_only_directory_is_explained_and_can_still_be_read() {
    let world = world();
    world.record("old", &[notice("old", 1, "x")]);
    let mut program = child::this_program();
    let root = rustix::process::geteuid().is_root();
    let place = tempfile::tempdir().unwrap();
    if root {
        // Root may write everywhere, so somebody else has to try; who has to reach the program.
        let copy = place.path().join("program");
        fs::copy(&program, &copy).unwrap();
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&copy, Permissions::from_mode(0o755)).unwrap();
        program = copy;
    }
    let parts = ["", "runs", "runs/old", "runs/old/journal.jsonl"];
    let paths = parts.map(|part| world.state.path().join(part));
    for path in &paths {
        if root {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let mode = if path.is_dir() { 0o500 } else { 0o400 };
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let mut command = Command::new(program);
    child::told(&mut command, "works_in_a_read_only_directory", world.state.path());
    if root {
        command.uid(NOBODY).gid(NOBODY);
    }
    succeeds(command.current_dir("/"));
    for path in &paths {
        let mode = if path.is_dir() { 0o700 } else { 0o600 };
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
}

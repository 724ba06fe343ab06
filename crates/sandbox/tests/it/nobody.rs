//! The same attacks by somebody who is not root.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::support::{DIRECTORY, variable};

const NOBODY: u32 = 65534;

/// Runs this very program again as nobody, with everything that a program could try.
#[test]
fn nothing_works_for_nobody_either() {
    if !rustix::process::geteuid().is_root() || variable(DIRECTORY).is_some() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let ran = Command::new(std::env::current_exe().unwrap())
        .args([
            "attacks::",
            "hosts::",
            "walls::",
            "guard::",
            "groups::",
            "limits::",
            "kernel::",
            "--test-threads=2",
        ])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env(DIRECTORY, directory.path())
        .current_dir(directory.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("test attacks::landlock::"), "nothing was tried: {said}");
}

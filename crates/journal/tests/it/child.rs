//! Processes that other tests start: this very program, told to run one of the functions below.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use convoke_journal::{Journal, JournalError, Store};

use crate::support::{NOW, id, notice};

const STATE: &str = "CONVOKE_TEST_STATE";

/// Tells a command that starts this program to run one of the functions below.
pub(crate) fn told<'a>(command: &'a mut Command, function: &str, state: &Path) -> &'a mut Command {
    let function = format!("child::{function}");
    command.args(["--exact", &function, "--ignored", "--nocapture"]).env(STATE, state)
}

pub(crate) fn this_program() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// Starts a process that works on run `held` until it is killed or its input ends.
pub(crate) fn start_holder(state: &Path) -> Child {
    let mut child = told(&mut Command::new(this_program()), "holds_a_run", state)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"), "the process ended early");
    child
}

/// Returns where to work, or nothing if nobody started this as a process of its own.
fn state() -> Option<PathBuf> {
    std::env::var_os(STATE).map(PathBuf::from)
}

#[test]
#[ignore = "other tests start it as a process of its own"]
fn holds_a_run() {
    let Some(state) = state() else { return };
    let journal = Store::at(state).create(&id("held"), NOW).unwrap();
    journal.append(&notice("held", 1, "x")).unwrap();
    io::stdout().write_all(b"\nready\n").unwrap();
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(journal.seq(), 1);
}

#[test]
#[ignore = "other tests start it as a process of its own, with a limit on the size of files"]
fn writes_until_the_disk_is_full() {
    let Some(state) = state() else { return };
    let store = Store::at(&state);
    let journal = store.create(&id("full"), NOW).unwrap();
    let error = (1..).find_map(|seq| journal.append(&notice("full", seq, "some text")).err());
    let error = error.unwrap();
    assert!(matches!(error.first(), JournalError::Full { action: "write", .. }), "{error:?}");
    assert!(std::error::Error::source(&error).is_some());
    assert!(error.to_string().contains("free some space, then resume the run"), "{error}");
    let last = journal.seq();
    // A short event would fit, but the journal is closed.
    let again = journal.append(&notice("full", last + 1, "")).unwrap_err();
    assert_eq!(again.to_string(), error.to_string());
    assert_eq!(store.read(&id("full")).unwrap().events.len() as u64, last);

    let journal = store.create(&id("blob"), NOW).unwrap();
    journal.append(&notice("blob", 1, "x")).unwrap();
    let error = journal.append(&notice("blob", 2, &"y".repeat(1 << 20))).unwrap_err();
    assert!(matches!(error.first(), JournalError::Full { .. }), "{error:?}");
}

#[test]
#[ignore = "other tests start it as a process of its own, with a directory it may not write"]
fn works_in_a_read_only_directory() {
    let Some(state) = state() else { return };
    let store = Store::at(&state);
    for error in [
        store.create(&id("new"), NOW).map(drop).unwrap_err(),
        store.open(&id("old"), NOW).map(drop).unwrap_err(),
        store.fork(&id("old"), 1, &id("new"), NOW).map(drop).unwrap_err(),
        store.remove(&id("old")).unwrap_err(),
        Store::at(state.join("below")).create(&id("new"), NOW).map(drop).unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(matches!(error, JournalError::Io { .. }), "{error:?}");
        assert!(text.starts_with("cannot ") && text.contains(&*state.to_string_lossy()), "{text}");
        assert!(text.contains("choose another state directory"), "{text}");
    }
    assert_eq!(store.read(&id("old")).unwrap().events.len(), 1);
    assert_eq!(store.list().unwrap().len(), 1);
}

//! Processes that other tests start: this very program, told to run one of the functions below.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use convoke_journal::{Journal, JournalError, Store};

use crate::support::{NOW, id, notice};

const STATE: &str = "CONVOKE_TEST_STATE";
const FUNCTION: &str = "CONVOKE_TEST_FUNCTION";
/// The test that is a process of its own when it is told to be.
const ENTRY: &str = "child::a_process_of_its_own_does_what_it_is_told";

/// Tells a command that starts this program to run one of the functions below.
pub(crate) fn told<'a>(command: &'a mut Command, function: &str, state: &Path) -> &'a mut Command {
    command.args(["--exact", ENTRY, "--nocapture"]).env(STATE, state).env(FUNCTION, function)
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

#[test]
fn a_process_of_its_own_does_what_it_is_told() {
    let Some(state) = std::env::var_os(STATE).map(PathBuf::from) else {
        let told =
            |function| told(&mut Command::new(this_program()), function, Path::new(".")).output();
        assert!(told("nothing").unwrap().status.success());
        assert!(!told("something unheard of").unwrap().status.success());
        return;
    };
    match std::env::var(FUNCTION).as_deref() {
        Ok("holds_a_run") => holds_a_run(&state),
        Ok("writes_until_the_disk_is_full") => writes_until_the_disk_is_full(&state),
        Ok("works_in_a_read_only_directory") => works_in_a_read_only_directory(&state),
        other => assert_eq!(other, Ok("nothing")),
    }
}

fn holds_a_run(state: &Path) {
    let journal = Store::at(state).create(&id("held"), NOW).unwrap();
    journal.append(&notice("held", 1, "x")).unwrap();
    io::stdout().write_all(b"\nready\n").unwrap();
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(journal.seq(), 1);
}

fn writes_until_the_disk_is_full(state: &Path) {
    let store = Store::at(state);
    let journal = store.create(&id("full"), NOW).unwrap();
    let error = (1..).find_map(|seq| journal.append(&notice("full", seq, "some text")).err());
    let error = error.unwrap();
    assert!(matches!(error.first(), JournalError::Full { action: "write", .. }), "{error:?}");
    assert!(std::error::Error::source(&error).is_some());
    assert!(
        error.to_string().contains("raise the limit (`ulimit -f`), then resume the run"),
        "{error}"
    );
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

fn works_in_a_read_only_directory(state: &Path) {
    let store = Store::at(state);
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

//! Programs as the operating system runs them: killed, stubborn, loud, and with children of their own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use convoke_core::{ErrorKind, ToolError};
use convoke_mcp::client::{ServerConfig, Servers, Surroundings};
use convoke_tool::{Process, Program, Spawner, UnconfinedSpawner};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::scripted::call;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/server.py");

/// Returns the interpreter, if there is one.
fn python() -> Option<PathBuf> {
    let places = ["/usr/bin/python3", "/usr/local/bin/python3", "/opt/homebrew/bin/python3"];
    let found = places.iter().map(PathBuf::from).find(|place| place.exists());
    if found.is_none() {
        convoke_testkit::skip("python3", "the server of this test is written in it");
    }
    found
}

fn servers(habit: &str, surroundings: Surroundings) -> Option<Servers> {
    let python = python()?;
    let command = python.to_str()?;
    let config = ServerConfig::program("s", command, [FIXTURE, habit]).env("OWN", "given");
    Some(Servers::new(vec![config], surroundings))
}

fn surroundings() -> Surroundings {
    let environment = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    Surroundings::new("/").spawner(Arc::new(UnconfinedSpawner)).environment(environment)
}

/// A server that holds a line to the test, and whose child holds another.
async fn holding(habit: &str) -> Option<(Servers, [TcpStream; 2])> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut surroundings = surroundings();
    surroundings.environment.insert("LIFELINE".to_owned(), port.to_string());
    let servers = servers(habit, surroundings)?;
    let accepting = async { [listener.accept().await, listener.accept().await] };
    let (held, lines) = tokio::join!(call(&servers, "hold"), accepting);
    assert_eq!(held.text(), "held");
    Some((servers, lines.map(|line| line.unwrap().0)))
}

/// Waits until whoever holds the other end is gone.
async fn gone(mut line: TcpStream) {
    let cut = tokio::time::timeout(Duration::from_secs(20), line.read(&mut [0])).await;
    assert!(matches!(cut.expect("it is still there"), Ok(0) | Err(_)));
}

/// A system that is slow to start programs: it goes on when it is told to.
#[derive(Debug)]
struct Sluggish {
    begun: Arc<Notify>,
    go_on: Mutex<Receiver<()>>,
}

#[async_trait]
impl Spawner for Sluggish {
    async fn spawn(&self, _: Program) -> Result<Box<dyn Process>, ToolError> {
        self.begun.notify_one();
        let told = self.go_on.lock().unwrap().recv_timeout(Duration::from_secs(20));
        Err(ToolError::failed(if told.is_ok() { "it went on" } else { "it held everybody up" }))
    }
}

/// Starting a program blocks the thread that does it, which must not be the one that runs are on.
#[tokio::test]
async fn other_work_goes_on_while_a_program_is_started() {
    let (tell, go_on) = std::sync::mpsc::channel();
    let begun = Arc::<Notify>::default();
    let spawner = Sluggish { begun: Arc::clone(&begun), go_on: Mutex::new(go_on) };
    let surroundings = Surroundings::new("/").spawner(Arc::new(spawner));
    let config = ServerConfig::program("s", "anything", Vec::<String>::new());
    let servers = Servers::new(vec![config], surroundings);
    servers.start_all();
    begun.notified().await;
    tell.send(()).unwrap();
    servers.settled().await;
    let state = servers.state("s").unwrap();
    assert!(state.reason().is_some_and(|why| why.contains("it went on")), "{state:?}");
}

#[tokio::test]
async fn a_program_gets_its_environment_and_nothing_else() {
    let Some(servers) = servers("", surroundings()) else { return };
    let said = call(&servers, "environment").await.text();
    assert!(said.contains("\"OWN\": \"given\"") && said.contains("\"PATH\""), "{said}");
    assert!(!said.contains("\"HOME\"") && said.ends_with(" /"), "{said}");
}

#[tokio::test]
async fn a_program_that_is_killed_in_a_call_is_started_again() {
    let Some(servers) = servers("", surroundings()) else { return };
    let before = call(&servers, "pid").await.text();
    let died = call(&servers, "die").await;
    let error = died.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("signal 9"), "{error}");
    assert!(error.message.contains("about to be killed"), "{error}");
    let after = call(&servers, "pid").await.text();
    assert_ne!(before, after);
}

#[tokio::test]
async fn a_stubborn_program_and_its_children_end_when_they_are_stopped() {
    let Some((servers, [own, child])) = holding("stubborn").await else { return };
    servers.stop().await;
    gone(own).await;
    gone(child).await;
}

#[tokio::test]
async fn programs_end_with_the_last_handle() {
    let Some((servers, [own, child])) = holding("stubborn").await else { return };
    drop(servers);
    gone(own).await;
    gone(child).await;
}

#[tokio::test]
async fn a_loud_program_is_not_held_up_and_its_log_is_bounded() {
    let logs = tempfile::tempdir().unwrap();
    let Some(servers) = servers("", surroundings().log_directory(logs.path())) else { return };
    assert_eq!(call(&servers, "flood").await.text(), "flooded");
    servers.stop().await;
    let length = std::fs::metadata(logs.path().join("s.log")).unwrap().len();
    assert!((1_000_000..1_100_000).contains(&length), "{length}");
}

#[tokio::test]
async fn a_huge_result_of_a_program_is_refused_and_it_works_afterwards() {
    let Some(servers) = servers("", surroundings()) else { return };
    let result = call(&servers, "huge").await;
    assert!(result.error().unwrap().message.contains("16777216 bytes"), "{}", result.text());
    assert!(call(&servers, "pid").await.success());
}

#[tokio::test]
async fn a_program_that_does_not_start_says_why() {
    let Some(broken) = servers("broken", surroundings()) else { return };
    let error = broken.start("s").await.unwrap_err();
    assert!(error.message.contains("status 7"), "{error}");
    assert!(error.message.contains("no module named nothing"), "{error}");
    let missing = ServerConfig::program("s", "/nowhere/at-all", Vec::<String>::new());
    let missing = Servers::new(vec![missing], surroundings());
    let error = missing.start("s").await.unwrap_err();
    assert!(error.message.contains("`/nowhere/at-all` not found"), "{error}");
}

/// Regression: of a stack trace only the last lines were told, and of these only the first few were shown.
#[tokio::test]
async fn the_line_that_says_why_a_program_does_not_start_comes_first() {
    let script = "echo \"Error: KEY is not set\" >&2
        for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo \"    at frame $i\" >&2; done
        exit 1";
    let config = ServerConfig::program("s", "/bin/sh", ["-c", script]);
    let servers = Servers::new(vec![config], surroundings());
    let error = servers.start("s").await.unwrap_err();
    let first =
        "could not be started: Error: KEY is not set (it exited with status 1); it complained: ";
    assert!(error.message.contains(first), "{error}");
    assert!(error.message.contains("at frame 3 | [… 4 more] | at frame 8"), "{error}");
    let setback = servers.status().remove(0).setback.unwrap();
    assert!(setback.why.starts_with("Error: KEY is not set ("), "{setback:?}");
}

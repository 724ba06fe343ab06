//! Nothing outlives us.
//!
//! Each program here leaves somebody behind who holds a pipe open. The pipe ends when the last of them
//! has ended, so nothing has to be polled.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use convoke_sandbox::{Backend, GuardedSpawner};
use convoke_tool::{Process, Spawner, UnconfinedSpawner};
use tokio::io::AsyncReadExt;

use crate::support::{DIRECTORY, Place, ended_by, open, run, variable};

/// Leaves processes behind in every way there is, all of which hold the pipe, then says it is ready.
const LEAVE_BEHIND: &str = "exec 3> ../pipe
    setsid sleep 4711 &
    (setsid sh -c 'trap \"\" TERM HUP INT; sleep 4711; sleep 4711' &)
    (trap '' TERM HUP; sleep 4711 &)
    nohup sleep 4711 > /dev/null 2>&1 &
    echo ready >&3
    sleep 4711";
const PATIENCE: Duration = Duration::from_secs(20);

/// Reads the pipe's first line. What is returned ends with the last who holds the pipe.
pub(crate) async fn when_ready(pipe: &Path) -> BufReader<std::fs::File> {
    let pipe = pipe.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let mut reader = BufReader::new(open(&pipe));
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        reader
    });
    tokio::time::timeout(PATIENCE, read).await.expect("it was never ready").unwrap()
}

pub(crate) async fn all_have_ended(mut pipe: BufReader<std::fs::File>) {
    let read = tokio::task::spawn_blocking(move || pipe.read_to_end(&mut Vec::new()));
    tokio::time::timeout(PATIENCE, read).await.expect("somebody lives on").unwrap().unwrap();
}

pub(crate) async fn with_pipe(backend: Backend) -> Option<Place> {
    Some(pipe_in(Place::new(backend)?).await)
}

/// Makes the pipe in a place.
pub(crate) async fn pipe_in(place: Place) -> Place {
    assert!(run(&UnconfinedSpawner, place.program(&["mkfifo", "../pipe"])).await.succeeded());
    place
}

async fn started(place: &Place) -> (Box<dyn Process>, BufReader<std::fs::File>) {
    let program = place.program(&["sh", "-c", LEAVE_BEHIND]);
    let process = place.spawner().spawn(program).await.unwrap();
    let pipe = when_ready(&place.path("pipe")).await;
    (process, pipe)
}

async fn everybody_ends_when_the_process_is_dropped(backend: Backend) {
    let Some(place) = with_pipe(backend).await else { return };
    let (process, pipe) = started(&place).await;
    drop(process);
    all_have_ended(pipe).await;
}

async fn everybody_ends_when_the_process_is_killed(backend: Backend) {
    let Some(place) = with_pipe(backend).await else { return };
    let (mut process, pipe) = started(&place).await;
    process.kill();
    all_have_ended(pipe).await;
    assert!(!process.wait().await.unwrap().success());
}

async fn everybody_ends_soon_after_the_leader(backend: Backend) {
    let Some(place) = with_pipe(backend).await else { return };
    let (mut process, pipe) = started(&place).await;
    process.terminate();
    let status = process.wait().await.unwrap();
    assert_eq!(ended_by(status), Some(15));
    all_have_ended(pipe).await;
}

async fn a_program_may_end_in_its_own_way_when_asked(backend: Backend) {
    let Some(place) = with_pipe(backend).await else { return };
    let line = "exec 3> ../pipe; trap 'echo bye; exit 3' TERM; echo ready >&3; while :; do sleep 0.01; done";
    let mut process = place.spawner().spawn(place.program(&["sh", "-c", line])).await.unwrap();
    let mut streams = process.take_streams().unwrap();
    let pipe = when_ready(&place.path("pipe")).await;
    process.terminate();
    let mut said = String::new();
    streams.stdout.read_to_string(&mut said).await.unwrap();
    assert_eq!((process.wait().await.unwrap().code(), said.as_str()), (Some(3), "bye\n"));
    all_have_ended(pipe).await;
}

/// Starts this very program a second time, as the parent of a confined one, and kills it.
async fn everybody_ends_when_we_are_killed(backend: Backend) {
    if let Some(directory) = variable(PARENT) {
        return as_the_parent(Path::new(&directory), backend).await;
    }
    let Some(place) = with_pipe(backend).await else { return };
    let this = std::env::current_exe().unwrap();
    let module = if backend == Backend::Landlock { "landlock" } else { "bubblewrap" };
    let test = format!("guard::{module}::everybody_ends_when_we_are_killed");
    let arguments = [this.to_str().unwrap(), &test, "--exact", "--nocapture"];
    let mut program = place.program(&arguments);
    program.environment.insert(PARENT.to_owned(), place.path("").display().to_string());
    let mut parent = UnconfinedSpawner.spawn(program).await.unwrap();
    let pipe = when_ready(&place.path("pipe")).await;
    // With SIGKILL, and its whole group.
    parent.kill();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&parent.wait().await.unwrap()),
        Some(9)
    );
    all_have_ended(pipe).await;
}

pub(crate) const PARENT: &str = "CONVOKE_TEST_PLACE";

/// What the second one does: it waits for a program that does not end.
async fn as_the_parent(directory: &Path, backend: Backend) {
    let place = Place::at(directory, backend);
    let program = place.program(&["sh", "-c", LEAVE_BEHIND]);
    let mut process = place.spawner().spawn(program).await.unwrap();
    process.wait().await.unwrap();
}

/// What is not confined ends with us all the same.
#[tokio::test]
async fn unconfined_programs_end_when_we_are_killed() {
    if let Some(directory) = variable(PARENT) {
        let place = Place::at(Path::new(&directory), Backend::Landlock);
        let program = place.program(&["sh", "-c", LEAVE_BEHIND]);
        GuardedSpawner.spawn(program).await.unwrap().wait().await.unwrap();
        return;
    }
    let Some(place) = with_pipe(Backend::Landlock).await else { return };
    let this = std::env::current_exe().unwrap();
    let test = "guard::unconfined_programs_end_when_we_are_killed";
    let mut program = place.program(&[this.to_str().unwrap(), test, "--exact", "--nocapture"]);
    program.environment.insert(PARENT.to_owned(), place.path("").display().to_string());
    let mut parent = UnconfinedSpawner.spawn(program).await.unwrap();
    let pipe = when_ready(&place.path("pipe")).await;
    parent.kill();
    parent.wait().await.unwrap();
    all_have_ended(pipe).await;
}

/// Root may read everything, so this is about any other user.
#[tokio::test]
async fn closed_memory_cannot_be_read_by_programs_that_are_not_confined() {
    const KEY: &str = "CONVOKE_TEST_KEY";
    if rustix::process::geteuid().is_root() {
        return;
    }
    let test = "guard::closed_memory_cannot_be_read_by_programs_that_are_not_confined";
    let Some(place) = Place::new(Backend::Landlock) else { return };
    if variable(KEY).is_some() {
        let us = std::process::id();
        let line = format!(
            "cat /proc/$PPID/environ /proc/{us}/environ; head -c 1 /proc/{us}/mem; ls /proc/{us}/fd; \
             cat /proc/self/environ > /dev/null && echo own"
        );
        let read = run(&GuardedSpawner, place.program(&["sh", "-c", &line])).await;
        assert!(read.stdout.contains("canary-key"), "it can be read before: {read:?}");
        convoke_sandbox::close_memory();
        let read = run(&GuardedSpawner, place.program(&["sh", "-c", &line])).await;
        assert_eq!(read.stdout, "own\n", "{read:?}");
        return;
    }
    let this = std::env::current_exe().unwrap();
    let mut program = place.program(&[this.to_str().unwrap(), test, "--exact", "--nocapture"]);
    program.environment.insert(KEY.to_owned(), "canary-key".to_owned());
    program.environment.extend(variable(DIRECTORY).map(|path| (DIRECTORY.to_owned(), path)));
    let ran = run(&UnconfinedSpawner, program).await;
    assert!(ran.succeeded(), "{ran:?}");
}

/// It may do what its user may: write beside its directory, and use the network.
#[tokio::test]
async fn unconfined_programs_are_not_confined() {
    let Some(place) = Place::new(Backend::Landlock) else { return };
    let line = "echo out > ../outside/new && cat < ../outside/new && grep -q NoNewPrivs:.0 /proc/self/status";
    let ran = run(&GuardedSpawner, place.program(&["sh", "-c", line])).await;
    assert!(ran.succeeded(), "{ran:?}");
}

on_each_backend!(
    everybody_ends_when_the_process_is_dropped,
    everybody_ends_when_the_process_is_killed,
    everybody_ends_soon_after_the_leader,
    a_program_may_end_in_its_own_way_when_asked,
    everybody_ends_when_we_are_killed,
);

//! Programs that start the next process and end, so fast that nobody can keep up with them one by one.

use std::os::fd::IntoRawFd;
use std::path::Path;

use convoke_sandbox::{Backend, GuardedSpawner};
use convoke_tool::{Program, ReachedLimit, Spawner, UnconfinedSpawner};

use crate::groups;
use crate::guard::{PARENT, all_have_ended, pipe_in, when_ready, with_pipe};
use crate::support::{Place, variable};

/// One test at a time: chains take all numbers of processes that a machine has.
pub(crate) static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
/// Names how many chains the second copy of this program starts.
const CHAINS: &str = "CONVOKE_TEST_CHAINS";
/// Says that the copy leaves its chains behind.
const LEAVE: &str = "CONVOKE_TEST_LEAVE";
const MANY: u32 = 150;
/// When chains end by themselves, so that a broken guard leaves nothing for good.
const SECONDS: i64 = 60;

/// What the copy does: each chain is a process that starts the next one, in a session of its own every time,
/// and ends. All of them hold the pipe.
#[test]
fn copy_of_this_program_starts_chains() {
    let Some(count) = variable(CHAINS) else { return };
    let mut pipe = std::fs::OpenOptions::new().write(true).open("../pipe").unwrap();
    let (start, started) = std::io::pipe().unwrap();
    let (start, started) = (start.into_raw_fd(), started.into_raw_fd());
    // SAFETY: takes numbers only; the children make system calls only.
    unsafe {
        let end = seconds() + SECONDS;
        for _ in 0..count.parse::<u32>().unwrap() {
            if fork() == 0 {
                // All begin when this end is closed everywhere.
                libc::close(started);
                libc::read(start, [0_u8; 1].as_mut_ptr().cast(), 1);
                while seconds() < end {
                    if fork() != 0 {
                        libc::_exit(0);
                    }
                    libc::setsid();
                }
                libc::_exit(0);
            }
        }
    }
    std::io::Write::write_all(&mut pipe, b"ready\n").unwrap();
    // SAFETY: takes numbers only, which nobody else uses; ends this process at once.
    unsafe {
        libc::close(started);
        if variable(LEAVE).is_some() {
            libc::_exit(0);
        }
    }
    loop {
        std::thread::park();
    }
}

/// The bare call: the library's would run handlers and be slower.
unsafe fn fork() -> i64 {
    // SAFETY: with these flags it is a plain fork.
    unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) }
}

fn seconds() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure, which is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec
}

/// Who starts chains.
#[derive(Clone, Copy, Debug)]
enum Starter {
    /// Confined, with processes of its own where that can be.
    Confined(Backend),
    /// Confined by Landlock among the processes of others.
    AmongOthers,
    /// Not confined, behind a guard.
    Guarded,
}

impl Starter {
    const ALL: [(&str, Self); 4] = [
        ("landlock", Self::Confined(Backend::Landlock)),
        ("bubblewrap", Self::Confined(Backend::Bubblewrap)),
        ("among_others", Self::AmongOthers),
        ("guarded", Self::Guarded),
    ];

    const fn backend(self) -> Backend {
        match self {
            Self::Confined(backend) => backend,
            Self::AmongOthers | Self::Guarded => Backend::Landlock,
        }
    }

    fn spawner(self, place: &mut Place) -> Box<dyn Spawner> {
        match self {
            Self::Guarded => return Box::new(GuardedSpawner),
            Self::AmongOthers => place.confinement.signals = true,
            Self::Confined(_) => {}
        }
        Box::new(place.spawner())
    }
}

fn program(place: &Place, starter: Starter) -> Program {
    // Without a limit of processes, more would leave no numbers for the rest of the machine.
    let count = if matches!(starter, Starter::Guarded) { MANY / 2 } else { MANY };
    let this = std::env::current_exe().unwrap();
    let test = "chains::copy_of_this_program_starts_chains";
    let mut program = place.program(&[this.to_str().unwrap(), test, "--exact", "--nocapture"]);
    program.environment.insert(CHAINS.to_owned(), count.to_string());
    program
}

/// A call that runs out of time is asked to end, then made to.
#[tokio::test]
#[ignore = "it takes all numbers of processes of the machine: run it alone"]
async fn chains_end_when_their_call_runs_out_of_time() {
    let _alone = ALONE.lock().await;
    for (_, starter) in Starter::ALL {
        let Some(mut place) = with_pipe(starter.backend()).await else { continue };
        let program = program(&place, starter);
        let mut process = starter.spawner(&mut place).spawn(program).await.unwrap();
        let pipe = when_ready(&place.path("pipe")).await;
        process.terminate();
        process.kill();
        all_have_ended(pipe).await;
        process.wait().await.unwrap();
    }
}

/// Starts this very program a second time, as the parent of chains, and kills it.
#[tokio::test]
#[ignore = "it takes all numbers of processes of the machine: run it alone"]
async fn chains_end_when_we_are_killed() {
    if let Some(directory) = variable(PARENT) {
        let name = variable(STARTER).unwrap();
        let (_, starter) = Starter::ALL.into_iter().find(|(other, _)| *other == name).unwrap();
        let mut place = Place::at(Path::new(&directory), starter.backend());
        let program = program(&place, starter);
        let mut process = starter.spawner(&mut place).spawn(program).await.unwrap();
        process.wait().await.unwrap();
        return;
    }
    let _alone = ALONE.lock().await;
    for (name, starter) in Starter::ALL {
        let Some(place) = with_pipe(starter.backend()).await else { continue };
        let this = std::env::current_exe().unwrap();
        let test = "chains::chains_end_when_we_are_killed";
        let words = [this.to_str().unwrap(), test, "--exact", "--nocapture", "--ignored"];
        let mut program = place.program(&words);
        program.environment.insert(PARENT.to_owned(), place.path("").display().to_string());
        program.environment.insert(STARTER.to_owned(), name.to_owned());
        let mut parent = UnconfinedSpawner.spawn(program).await.unwrap();
        let pipe = when_ready(&place.path("pipe")).await;
        parent.kill();
        parent.wait().await.unwrap();
        all_have_ended(pipe).await;
    }
}

const STARTER: &str = "CONVOKE_TEST_STARTER";

#[tokio::test]
#[ignore = "it takes all numbers of processes of the machine: run it alone"]
async fn chains_end_at_their_limit_of_processor_time() {
    let _alone = ALONE.lock().await;
    for (_, starter) in Starter::ALL {
        let Some(place) = groups::place(starter.backend()) else { continue };
        if matches!(starter, Starter::Guarded) {
            continue;
        }
        let mut place = pipe_in(place).await;
        let little = std::time::Duration::from_millis(500);
        place.confinement.limits.cpu = Some(little);
        // Processes that ended and are not collected yet count as well.
        place.confinement.limits.processes = Some(10_000);
        let program = program(&place, starter);
        let mut process = starter.spawner(&mut place).spawn(program).await.unwrap();
        let pipe = when_ready(&place.path("pipe")).await;
        all_have_ended(pipe).await;
        process.wait().await.unwrap();
        // Where numbers of processes run out first, that limit ends them as surely.
        let reached = process.reached();
        let is_limit = matches!(reached, Some(ReachedLimit::Cpu(_) | ReachedLimit::Processes(_)));
        assert!(is_limit, "{starter:?}: {reached:?}");
    }
}

/// The program itself ends at once, and leaves the chains behind.
#[tokio::test]
#[ignore = "it takes all numbers of processes of the machine: run it alone"]
async fn chains_that_are_left_behind_end_soon_after_the_program() {
    let _alone = ALONE.lock().await;
    for (_, starter) in Starter::ALL {
        let Some(mut place) = with_pipe(starter.backend()).await else { continue };
        let mut program = program(&place, starter);
        program.environment.insert(LEAVE.to_owned(), "yes".to_owned());
        let mut process = starter.spawner(&mut place).spawn(program).await.unwrap();
        let pipe = when_ready(&place.path("pipe")).await;
        process.wait().await.unwrap();
        all_have_ended(pipe).await;
    }
}

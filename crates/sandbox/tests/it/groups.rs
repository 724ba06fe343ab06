//! What a program and everything it starts may use together.

use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_sandbox::{Backend, ConfinedSpawner, Confinement, Preflight, Tried};
use convoke_testkit::skip;
use convoke_tool::{Process, ReachedLimit, Spawner, Streams, UnconfinedSpawner};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::{PATIENCE, Place, Ran, run, text, variable};

/// More than anything here takes.
const PLENTY: Duration = Duration::from_mins(10);

/// A place whose programs have a group; `None`, said and counted, where they cannot.
pub(crate) fn place(backend: Backend) -> Option<Place> {
    let mut place = Place::new(backend)?;
    place.confinement.limits.cpu = Some(PLENTY);
    usable(&place, |found| &found.group).then_some(place)
}

/// The same, where a group can hold memory and the number of processes as well.
fn with_controllers(backend: Backend) -> Option<Place> {
    let mut place = place(backend)?;
    place.confinement.limits.memory = Some(1 << 30);
    let both = usable(&place, |found| &found.group_memory)
        && usable(&place, |found| &found.group_processes);
    place.confinement.limits.memory = None;
    both.then_some(place)
}

fn usable(place: &Place, what: impl Fn(&Preflight) -> &Tried) -> bool {
    let found = Preflight::for_confinement(&place.confinement, place.backend);
    match what(&found) {
        Tried::Fails(why) => {
            skip("control groups", why);
            false
        }
        Tried::Works => true,
        Tried::Not => unreachable!("it was asked for"),
    }
}

/// Returns the directory of the group that a line of `/proc/self/cgroup` names.
fn directory(line: &str) -> PathBuf {
    let mounts = text(Path::new("/proc/self/mountinfo"));
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 ")).unwrap();
    let fields: Vec<_> = mount.split(' ').collect();
    let below = line.trim().strip_prefix("0::").unwrap();
    let below = Path::new(below).strip_prefix(fields[3]).unwrap();
    Path::new(fields[4]).join(below)
}

/// A program that waits in its group.
struct Waiting {
    process: Box<dyn Process>,
    streams: Streams,
    /// The group with its limits.
    outer: PathBuf,
}

/// Starts a program that says where it is, and waits for its input to end.
async fn waiting(place: &Place) -> Waiting {
    let program = place.program(&[
        "sh",
        "-c",
        "own=$(grep ^0:: /proc/self/cgroup); echo $own; read line; exit 3",
    ]);
    let mut process = place.spawner().spawn(program).await.unwrap();
    let mut streams = process.take_streams().unwrap();
    let mut line = String::new();
    BufReader::new(&mut streams.stdout).read_line(&mut line).await.unwrap();
    let inner = directory(&line);
    assert!(inner.is_dir(), "{}", inner.display());
    Waiting { process, streams, outer: inner.parent().unwrap().to_owned() }
}

/// Waits for a guard that nobody else waits for.
async fn is_removed(group: &Path) {
    let gone = async {
        while group.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, gone).await;
    assert!(waited.is_ok(), "{} is still there", group.display());
}

async fn a_program_alone_is_in_its_group_which_goes_with_it(backend: Backend) {
    let Some(place) = place(backend) else { return };
    let Waiting { mut process, mut streams, outer } = waiting(&place).await;
    let inside = text(&outer.join("program/cgroup.procs")).lines().count();
    // With bubblewrap two of its own, and nowhere the guard.
    assert_eq!(inside, if backend == Backend::Landlock { 1 } else { 3 });
    streams.stdin.write_all(b"go\n").await.unwrap();
    assert_eq!(process.wait().await.unwrap().code(), Some(3));
    assert!(!outer.exists(), "the guard removes it before it ends");
}

async fn a_group_goes_with_a_program_that_is_dropped(backend: Backend) {
    let Some(place) = place(backend) else { return };
    let Waiting { process, outer, .. } = waiting(&place).await;
    drop(process);
    is_removed(&outer).await;
}

async fn two_programs_have_two_groups(backend: Backend) {
    let Some(place) = place(backend) else { return };
    let (first, second) = (waiting(&place).await, waiting(&place).await);
    assert_ne!(first.outer, second.outer);
    drop(first);
    assert!(second.outer.join("program").is_dir());
}

async fn nobody_has_a_group_who_needs_none(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    let ran = place.shell("cat /proc/self/cgroup").await;
    assert_eq!(ran.stdout, text(Path::new("/proc/self/cgroup")), "{ran:?}");
}

/// Every process is far below the limit, and all together are above.
async fn processor_time_is_counted_together(backend: Backend) {
    let Some(mut place) = place(backend) else { return };
    let most = Duration::from_millis(400);
    place.confinement.limits.cpu = Some(most);
    let line = "while :; do sh -c 'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done' & wait; done";
    let ran = place.shell(line).await;
    assert_eq!(ran.ended_by(), Some(9), "{ran:?}");
    assert_eq!(ran.reached, Some(ReachedLimit::Cpu(most)), "{ran:?}");
}

async fn processor_time_below_the_limit_is_left_alone(backend: Backend) {
    let Some(place) = place(backend) else { return };
    let ran = place.shell("for i in 1 2 3; do sh -c : & done; wait; echo fine; exit 7").await;
    assert_eq!((ran.status.code(), ran.stdout.as_str()), (Some(7), "fine\n"), "{ran:?}");
    assert_eq!(ran.reached, None, "{ran:?}");
}

async fn everybody_in_a_group_ends_with_it(backend: Backend) {
    let Some(mut place) = place(backend) else { return };
    place.confinement.limits.processes = Some(100_000);
    let line = "grep ^0:: /proc/self/cgroup; while :; do setsid sleep 4711 & done";
    let mut process = place.spawner().spawn(place.program(&["sh", "-c", line])).await.unwrap();
    let mut streams = process.take_streams().unwrap();
    let mut said = String::new();
    BufReader::new(&mut streams.stdout).read_line(&mut said).await.unwrap();
    let outer = directory(&said).parent().unwrap().to_owned();
    drop(process);
    is_removed(&outer).await;
}

const PARENT: &str = "CONVOKE_TEST_PLACE";

/// Starts this very program a second time, as the parent of a confined one, and kills it.
async fn a_group_goes_also_when_we_are_killed(backend: Backend) {
    if let Some(directory) = variable(PARENT) {
        let mut place = Place::at(Path::new(&directory), backend);
        place.confinement.limits.cpu = Some(PLENTY);
        let mut waiting = waiting(&place).await;
        std::fs::write(place.path("project/group"), waiting.outer.to_str().unwrap()).unwrap();
        std::fs::rename(place.path("project/group"), place.path("project/ready")).unwrap();
        waiting.process.wait().await.unwrap();
        return;
    }
    let Some(place) = place(backend) else { return };
    let this = std::env::current_exe().unwrap();
    let module = if backend == Backend::Landlock { "landlock" } else { "bubblewrap" };
    let test = format!("groups::{module}::a_group_goes_also_when_we_are_killed");
    let mut program = place.program(&[this.to_str().unwrap(), &test, "--exact", "--nocapture"]);
    program.environment.insert(PARENT.to_owned(), place.path("").display().to_string());
    let mut parent = UnconfinedSpawner.spawn(program).await.unwrap();
    let ready = place.path("project/ready");
    let until = async {
        while !ready.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, until).await.expect("it was never ready");
    let outer = PathBuf::from(text(&ready));
    assert!(outer.is_dir());
    parent.kill();
    parent.wait().await.unwrap();
    is_removed(&outer).await;
}

/// Lines by which a program would get out, change its limits, or leave something that cannot be removed.
const ESCAPES: &[&str] = &[
    "echo 0 > $ABOVE/cgroup.procs",
    "echo $$ > $ABOVE/cgroup.procs",
    "echo 0 > $OUTER/cgroup.procs",
    "echo $$ > $ABOVE/cgroup.threads",
    "echo max > $OUTER/memory.max",
    "echo max > $OUTER/pids.max",
    "echo 9 > $OUTER/cgroup.max.descendants",
    "echo 1 > $ABOVE/cgroup.kill",
    "echo +memory > $OUTER/cgroup.subtree_control",
    "mkdir $OUTER/new",
    "mkdir $OUTER/program/new",
    "rmdir $OUTER/program",
    "mv $OUTER $ABOVE/convoke-other",
    "mount -o remount,rw /sys",
    "unshare -Urm sh -c 'mount -o remount,bind,rw / && echo 0 > $ABOVE/cgroup.procs'",
    "unshare -Urm sh -c 'mount -t cgroup2 none $TMPDIR && echo 0 > $TMPDIR/cgroup.procs'",
    "unshare -UrmC sh -c 'mount -t cgroup2 none $TMPDIR && mkdir $TMPDIR/new'",
    "unshare -UrmC sh -c 'mount -t cgroup2 none $TMPDIR && echo max > $TMPDIR/memory.max'",
    "unshare -UrmC sh -c 'mount -t cgroup2 none $TMPDIR && echo +memory > $TMPDIR/cgroup.subtree_control'",
];

async fn nobody_gets_out_of_a_group_or_changes_it(backend: Backend) {
    let Some(place) = place(backend) else { return };
    let prologue = "own=$(grep ^0:: /proc/self/cgroup); mount=$(grep ' - cgroup2 ' \
         /proc/self/mountinfo | head -n 1 | cut -d ' ' -f 5); OUTER=$mount$(dirname ${own#0::}); \
         ABOVE=$(dirname $OUTER); export OUTER ABOVE; test -r $OUTER/program/cgroup.procs || exit 9";
    for escape in ESCAPES {
        let line = format!(
            "{prologue}; ({escape}) 2> /dev/null && echo worked; \
             test \"$own\" = \"$(grep ^0:: /proc/self/cgroup)\" && ls $OUTER | grep -c ^program; \
             ls -d $OUTER/*/ $OUTER/program/*/ 2> /dev/null | wc -l"
        );
        let ran = place.shell(&line).await;
        assert_eq!(ran.stdout, "1\n1\n", "`{escape}`: {ran:?}");
    }
}

async fn a_program_that_cannot_be_started_leaves_no_group(backend: Backend) {
    let Some(place) = place(backend) else { return };
    let Waiting { process, outer, .. } = waiting(&place).await;
    drop(process);
    is_removed(&outer).await;
    let spawner = place.spawner();
    for command in ["/nowhere", "/etc/passwd"] {
        spawner.spawn(place.program(&[command])).await.err();
    }
    drop(spawner);
    let ours = format!("convoke-{}-", std::process::id());
    // Other tests run beside this one; only what nobody is in was forgotten.
    let forgotten = || {
        let groups = std::fs::read_dir(outer.parent().unwrap()).unwrap().flatten();
        groups
            .filter(|group| group.file_name().to_string_lossy().starts_with(&ours))
            .filter(|group| {
                let events = group.path().join("cgroup.events");
                std::fs::read_to_string(events).is_ok_and(|text| text.contains("populated 0"))
            })
            .map(|group| group.path())
            .collect::<Vec<_>>()
    };
    for group in forgotten() {
        is_removed(&group).await;
    }
}

#[test]
fn what_cannot_be_held_together_is_refused_with_another_way() {
    let confinement = Confinement::default();
    let found = Preflight::look();
    let mut memory = confinement.clone();
    memory.limits.memory = Some(1 << 30);
    let mut time = confinement;
    time.limits.cpu = Some(PLENTY);
    let cases =
        [(memory, found.group_memory, "memoryPerProcess"), (time, found.group, "cpuPerProcess")];
    for (confinement, tried, instead) in cases {
        if tried == Tried::Works {
            continue;
        }
        let refused = ConfinedSpawner::with_backend(confinement, Backend::Landlock).unwrap_err();
        if found.landlock >= 6 {
            assert!(refused.hint.contains(instead), "{refused}");
        }
    }
}

/// Four processes, each of which takes this many bytes and says so.
fn hungry(bytes: u64) -> String {
    format!(
        "import os, sys, time\n\
         for i in range(4):\n\
         \tif os.fork() == 0:\n\
         \t\tkept = bytearray({bytes})\n\
         \t\tos.write(1, b'.')\n\
         \t\ttime.sleep(1)\n\
         \t\tos._exit(0)\n\
         for i in range(4): os.wait()\n\
         print('survived')"
    )
}

async fn memory_is_counted_together(backend: Backend) {
    let Some(mut place) = with_controllers(backend) else { return };
    place.confinement.limits.cpu = None;
    place.confinement.limits.memory = Some(128 << 20);
    let fine = place.python(&hungry(8 << 20)).await;
    assert_eq!((fine.reached, fine.stdout.as_str()), (None, "....survived\n"), "{fine:?}");
    let ran = place.python(&hungry(64 << 20)).await;
    assert_eq!(ran.reached, Some(ReachedLimit::Memory(128 << 20)), "{ran:?}");
    assert!(!ran.succeeded() && !ran.stdout.contains("survived"), "{ran:?}");
}

async fn files_in_memory_count_as_memory(backend: Backend) {
    let Some(mut place) = with_controllers(backend) else { return };
    place.confinement.limits.memory = Some(64 << 20);
    let ran =
        place.shell("head -c 200000000 /dev/zero > /dev/shm/convoke-big.$$; echo survived").await;
    // Nobody is left to do it.
    for file in std::fs::read_dir("/dev/shm").unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("convoke-big.") {
            std::fs::remove_file(file.path()).ok();
        }
    }
    assert_eq!(ran.reached, Some(ReachedLimit::Memory(64 << 20)), "{ran:?}");
}

/// So little that not even bubblewrap could live with it.
async fn too_little_memory_is_told_as_well(backend: Backend) {
    let Some(mut place) = with_controllers(backend) else { return };
    place.confinement.limits.memory = Some(64 << 10);
    let ran: Result<Ran, _> = match place.spawner().spawn(place.program(&["true"])).await {
        Ok(mut process) => {
            let status = process.wait().await.unwrap();
            assert!(!status.success());
            Ok(Ran {
                status,
                stdout: String::new(),
                stderr: String::new(),
                reached: process.reached(),
            })
        }
        Err(error) => Err(error),
    };
    if let Ok(ran) = ran {
        assert_eq!(ran.reached, Some(ReachedLimit::Memory(64 << 10)), "{ran:?}");
    }
}

async fn the_kernel_refuses_a_process_too_many(backend: Backend) {
    let Some(mut place) = with_controllers(backend) else { return };
    place.confinement.limits.processes = Some(20);
    let line = "for i in $(seq 60); do sleep 4711 & done; echo survived";
    let ran = place.shell(line).await;
    assert_eq!((ran.succeeded(), ran.stdout.as_str()), (false, ""), "{ran:?}");
    assert_eq!(ran.reached, Some(ReachedLimit::Processes(20)), "{ran:?}");
    let fine = place.shell("for i in $(seq 10); do sleep 0.1 & done; wait; echo survived").await;
    assert_eq!((fine.reached, fine.stdout.as_str()), (None, "survived\n"), "{fine:?}");
}

async fn a_bomb_of_processes_stays_small(backend: Backend) {
    let Some(mut place) = with_controllers(backend) else { return };
    place.confinement.limits.processes = Some(50);
    place.confinement.limits.cpu = Some(Duration::from_secs(2));
    let program = place.program(&["bash", "-c", "b() { b | b & }; b; sleep 4711"]);
    let ran = run(&place.spawner(), program).await;
    assert!(!ran.succeeded(), "{ran:?}");
    assert!(
        matches!(ran.reached, Some(ReachedLimit::Processes(50) | ReachedLimit::Cpu(_))),
        "{ran:?}"
    );
}

on_each_backend!(
    a_program_alone_is_in_its_group_which_goes_with_it,
    a_group_goes_with_a_program_that_is_dropped,
    two_programs_have_two_groups,
    nobody_has_a_group_who_needs_none,
    processor_time_is_counted_together,
    processor_time_below_the_limit_is_left_alone,
    everybody_in_a_group_ends_with_it,
    a_group_goes_also_when_we_are_killed,
    nobody_gets_out_of_a_group_or_changes_it,
    a_program_that_cannot_be_started_leaves_no_group,
    memory_is_counted_together,
    files_in_memory_count_as_memory,
    too_little_memory_is_told_as_well,
    the_kernel_refuses_a_process_too_many,
    a_bomb_of_processes_stays_small,
);

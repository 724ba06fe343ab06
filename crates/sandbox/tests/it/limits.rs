//! What a program may use.

use std::time::Duration;

use convoke_sandbox::{Backend, Limits};
use convoke_tool::ReachedLimit;

use crate::support::Place;

async fn a_file_cannot_grow_over_its_limit(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    place.confinement.limits.file_size = Some(4096);
    let ran = place.shell("head -c 100000 /dev/zero > big").await;
    assert!(!ran.succeeded(), "{ran:?}");
    assert_eq!(ran.reached, Some(ReachedLimit::FileSize(4096)), "{ran:?}");
    assert_eq!(std::fs::metadata(place.path("project/big")).unwrap().len(), 4096);
}

async fn memory_over_the_limit_is_not_given(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    place.confinement.limits.memory_per_process = Some(256 << 20);
    let ran = place.python("print(len(bytearray(64 << 20)))\nbytearray(512 << 20)").await;
    assert_eq!(ran.stdout, "67108864\n");
    assert!(ran.stderr.contains("MemoryError"), "{ran:?}");
}

async fn a_program_that_only_computes_is_ended(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    place.confinement.limits.cpu_per_process = Some(Duration::from_secs(1));
    let ran = place.shell("while :; do :; done").await;
    assert!(ran.ended_by().is_some(), "{ran:?}");
    assert_eq!(ran.reached, Some(ReachedLimit::CpuPerProcess(Duration::from_secs(1))), "{ran:?}");
}

async fn too_many_processes_end_all_of_them(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    place.confinement =
        place.confinement.clone().limits(Limits { processes: Some(40), ..Limits::default() });
    // Some in sessions of their own, some below each other.
    let line = "for i in $(seq 60); do setsid sleep 4711 & done; wait; echo survived";
    let ran = place.shell(line).await;
    assert_eq!((ran.ended_by(), ran.stdout.as_str()), (Some(9), ""), "{ran:?}");
    assert_eq!(ran.reached, Some(ReachedLimit::Processes(40)), "{ran:?}");
}

async fn processes_that_threads_started_count_as_well(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    place.confinement.limits.processes = Some(40);
    let script = "import subprocess, threading\n\
        def start():\n\tfor i in range(60): subprocess.Popen(['sleep', '4711'])\n\
        \tthreading.Event().wait()\n\
        t = threading.Thread(target=start)\nt.start()\nt.join()\nprint('survived')";
    let ran = place.python(script).await;
    assert_eq!((ran.ended_by(), ran.stdout.as_str()), (Some(9), ""), "{ran:?}");
    assert_eq!(ran.reached, Some(ReachedLimit::Processes(40)), "{ran:?}");
}

async fn processes_below_the_limit_are_left_alone(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    place.confinement.limits.processes = Some(40);
    let ran = place.shell("for i in $(seq 10); do sleep 0.1 & done; wait; echo survived").await;
    assert_eq!(ran.stdout, "survived\n", "{ran:?}");
}

on_each_backend!(
    a_file_cannot_grow_over_its_limit,
    memory_over_the_limit_is_not_given,
    a_program_that_only_computes_is_ended,
    too_many_processes_end_all_of_them,
    processes_that_threads_started_count_as_well,
    processes_below_the_limit_are_left_alone,
);

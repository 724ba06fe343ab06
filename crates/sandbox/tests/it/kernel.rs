//! What belongs to the machine: files of the kernel, objects that all programs share, namespaces, scheduling.

use std::path::PathBuf;
use std::process::{Child, Command};

use convoke_sandbox::Backend;
use convoke_tool::UnconfinedSpawner;

use crate::support::{Place, run, text};

/// Opens every file below `/proc` and `/sys` for writing, writes nothing, and prints those that it could open
/// and the directories in which it could make another. Entries of processes are left out: in a confinement
/// they are the program's own.
const WALK: &str = "import os, sys\n\
    found, seen = [], 0\n\
    for top in ('/proc', '/sys'):\n\
    \tfor directory, below, files in os.walk(top):\n\
    \t\tif directory == '/proc':\n\
    \t\t\tbelow[:] = [name for name in below if not name.isdigit() and 'self' not in name]\n\
    \t\tfor name in files:\n\
    \t\t\tpath, seen = os.path.join(directory, name), seen + 1\n\
    \t\t\tfor how in (os.O_WRONLY, os.O_RDWR):\n\
    \t\t\t\ttry: os.close(os.open(path, how | os.O_NONBLOCK)); found.append(path)\n\
    \t\t\t\texcept OSError: pass\n\
    \t\tmade = os.path.join(directory, 'convoke-probe')\n\
    \t\ttry: os.mkdir(made); os.rmdir(made); found.append(made)\n\
    \t\texcept OSError: pass\n\
    print(seen, found)";

async fn no_file_of_the_kernel_can_be_written(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    let ran = place.python(WALK).await;
    let (seen, found) = ran.stdout.trim().split_once(' ').expect("it printed nothing");
    assert!(seen.parse::<u32>().unwrap() > 500, "too little was tried: {ran:?}");
    assert_eq!(found, "[]", "{ran:?}");
}

/// Even where a confinement says that everything may be written.
#[tokio::test]
async fn bubblewrap_opens_no_file_of_the_kernel_where_everything_may_be_written() {
    let Some(mut place) = Place::new(Backend::Bubblewrap) else { return };
    place.confinement.write = vec![PathBuf::from("/")];
    let ran = place.python(WALK).await;
    assert!(ran.stdout.trim().ends_with(" []"), "{ran:?}");
}

async fn kernel_settings_that_start_programs_stay_as_they_are(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    let settings = ["core_pattern", "modprobe", "hotplug", "poweroff_cmd"];
    let values =
        || settings.map(|name| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok());
    let before = values();
    for name in settings {
        let written = before[settings.iter().position(|other| *other == name).unwrap()].clone();
        // The value that is there already: what is tried must do no harm where it works.
        let Some(written) = written else { continue };
        let line = format!("printf '%s' '{}' > /proc/sys/kernel/{name}", written.trim());
        let ran = place.shell(&line).await;
        assert!(!ran.succeeded(), "`{line}`: {ran:?}");
    }
    assert_eq!(values(), before);
}

async fn memory_and_keys_of_the_machine_cannot_be_read(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    for file in ["kcore", "sysrq-trigger", "1/mem", "1/environ"] {
        let ran = place.shell(&format!("head -c 16 /proc/{file} | wc -c")).await;
        assert_eq!(ran.stdout.trim(), "0", "/proc/{file}: {ran:?}");
    }
}

/// Only a user namespace keeps root's programs from what asks for the user and not for a capability.
#[tokio::test]
async fn under_bubblewrap_nobody_is_in_the_user_namespace_of_the_machine() {
    let Some(place) = Place::new(Backend::Bubblewrap) else { return };
    let line = "readlink /proc/self/ns/user; cat /proc/self/uid_map";
    let ran = place.shell(line).await;
    let outside = run(&UnconfinedSpawner, place.program(&["sh", "-c", line])).await;
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (inside, outside) = (lines(&ran.stdout), lines(&outside.stdout));
    assert_ne!(inside[0], outside[0], "{ran:?}");
    assert_ne!(inside[1], outside[1], "{ran:?}");
}

/// Root often works in directories of other users, as in a container.
async fn root_still_works_on_files_of_other_users(backend: Backend) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let Some(place) = Place::new(backend) else { return };
    let other = Some(4711);
    std::os::unix::fs::chown(place.path("project"), other, other).unwrap();
    std::os::unix::fs::chown(place.path("project/file"), other, other).unwrap();
    let ran = place
        .shell("echo more >> file && touch new && chown 4711 new && stat -c %u new file")
        .await;
    assert_eq!(ran.stdout, "4711\n4711\n", "{ran:?}");
}

/// Attaches memory, queues and semaphores that were made outside, and prints those that it reached.
const SYSTEM_V: &str = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n\
    libc.shmat.restype = ctypes.c_void_p\n\
    for name, reach in (('shmget', lambda: libc.shmget(KEY, 0, 0)),\n\
    \t('shmat', lambda: libc.shmat(MEMORY, 0, 0) or 0),\n\
    \t('msgget', lambda: libc.msgget(KEY, 0)),\n\
    \t('msgsnd', lambda: libc.msgsnd(QUEUE, ctypes.create_string_buffer(b'\\x01' * 16), 4, 0o4000)),\n\
    \t('semget', lambda: libc.semget(KEY, 0, 0)),\n\
    \t('semctl', lambda: libc.semctl(SEMAPHORE, 0, 12))):\n\
    \tanswer = reach()\n\
    \tif answer not in (-1, 2**64 - 1): print('reached', name, answer)\n\
    print('done')";

async fn system_v_objects_of_others_stay_closed(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    let key = 0x000c_0000
        + i32::try_from(std::process::id() % 0xffff).unwrap() * 2
        + i32::from(backend == Backend::Landlock);
    let how = libc::IPC_CREAT | 0o666;
    // SAFETY: takes numbers only; the objects are removed below.
    let (memory, queue, semaphore) = unsafe {
        (libc::shmget(key, 4096, how), libc::msgget(key, how), libc::semget(key, 1, how))
    };
    assert!(memory >= 0 && queue >= 0 && semaphore >= 0, "nothing could be made to reach for");
    let script = SYSTEM_V
        .replace("KEY", &key.to_string())
        .replace("MEMORY", &memory.to_string())
        .replace("QUEUE", &queue.to_string())
        .replace("SEMAPHORE", &semaphore.to_string());
    let mut ran = Vec::new();
    // One that may signal others sees their processes, and has no namespaces of its own.
    for signals in [false, true] {
        place.confinement.signals = signals;
        ran.push(place.python(&script).await);
    }
    let reached = run(&UnconfinedSpawner, place.program(&["python3", "-c", &script])).await;
    // SAFETY: takes numbers only; nobody uses the objects any more.
    unsafe {
        libc::shmctl(memory, libc::IPC_RMID, std::ptr::null_mut());
        libc::msgctl(queue, libc::IPC_RMID, std::ptr::null_mut());
        libc::semctl(semaphore, 0, libc::IPC_RMID);
    }
    assert_eq!(reached.stdout.matches("reached").count(), 6, "{reached:?}");
    for ran in ran {
        assert_eq!(ran.stdout, "done\n", "{ran:?}");
    }
}

/// `unshare`, `clone`, `clone3` and `setns`, with every way to say which namespace.
const NAMESPACES: &str = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n\
    USER = 0x10000000\n\
    def tried(name, answer):\n\
    \tif answer == 0 and name.startswith('clone'): os._exit(0)\n\
    \tif answer >= 0: print('made by', name)\n\
    tried('unshare', libc.unshare(USER))\n\
    tried('unshare with others', libc.unshare(USER | 0x20000))\n\
    tried('unshare with high bits', libc.syscall(272, ctypes.c_ulong(USER | 1 << 40)))\n\
    tried('clone', libc.syscall(56, ctypes.c_ulong(USER | 17), 0, 0, 0, 0))\n\
    class Arguments(ctypes.Structure):\n\
    \t_fields_ = [(str(n), ctypes.c_uint64) for n in range(11)]\n\
    arguments = Arguments(USER, 0, 0, 0, 17)\n\
    tried('clone3', libc.syscall(435, ctypes.byref(arguments), 88))\n\
    tried('setns', libc.setns(os.open('/proc/self/ns/user', os.O_RDONLY), USER))\n\
    print('done')";

async fn no_user_namespace_can_be_made_or_entered(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    if cfg!(target_arch = "x86_64") {
        let ran = place.python(NAMESPACES).await;
        assert_eq!(ran.stdout, "done\n", "{ran:?}");
    }
    let ran = place.shell("unshare -U true || unshare -r true || exit 7").await;
    assert_eq!(ran.status.code(), Some(7), "{ran:?}");
    // Threads and processes are still made.
    let ran = place.python("import threading, subprocess\nt = threading.Thread(target=print, args=('ran',))\nt.start()\nt.join()\nsubprocess.run(['true'], check=True)").await;
    assert_eq!(ran.stdout, "ran\n", "{ran:?}");
}

/// Schedules a process in every way there is, and prints the ways that worked.
const SCHEDULING: &str = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n\
    OTHER = NUMBER\n\
    idle = os.sched_param(0)\n\
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))\n\
    os.sched_setaffinity(0, os.sched_getaffinity(0))\n\
    for name, call in (('setpriority', lambda: os.setpriority(os.PRIO_PROCESS, OTHER, 19)),\n\
    \t('setpriority of the user', lambda: os.setpriority(os.PRIO_USER, os.getuid() or 4711, 19)),\n\
    \t('affinity', lambda: os.sched_setaffinity(OTHER, {0})),\n\
    \t('scheduler', lambda: os.sched_setscheduler(OTHER, os.SCHED_IDLE, idle)),\n\
    \t('param', lambda: os.sched_setparam(OTHER, idle)),\n\
    \t('ioprio', lambda: libc.syscall(IOPRIO, 1, OTHER, 3 << 13) == 0 or 1 / 0)):\n\
    \ttry: call(); print(name)\n\
    \texcept (OSError, ZeroDivisionError): pass\n\
    print('done')";

/// A process of this user that only waits.
struct Other(Child);

impl Other {
    /// Returns its priority, its kind of scheduling and its processors.
    fn scheduling(&self) -> String {
        let file = |name: &str| text(&PathBuf::from(format!("/proc/{}/{name}", self.0.id())));
        let stat = file("stat");
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split(' ').collect();
        let status = file("status");
        let processors = status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap();
        format!("{} {} {} {processors}", fields[16], fields[17], fields[39])
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

async fn scheduling_of_other_processes_stays_as_it_is(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    let other = Other(Command::new("sleep").arg("4711").spawn().unwrap());
    let call = if cfg!(target_arch = "x86_64") { "251" } else { "30" };
    let script = SCHEDULING.replace("NUMBER", &other.0.id().to_string()).replace("IOPRIO", call);
    for signals in [false, true] {
        place.confinement.signals = signals;
        let before = other.scheduling();
        let ran = place.python(&script).await;
        assert_eq!(other.scheduling(), before, "{ran:?}");
        // In a namespace the priorities of a user are those of its own processes.
        let said = ran.stdout.replace("setpriority of the user\n", "");
        assert_eq!(said, "done\n", "{ran:?}");
    }
}

on_each_backend!(
    no_file_of_the_kernel_can_be_written,
    kernel_settings_that_start_programs_stay_as_they_are,
    memory_and_keys_of_the_machine_cannot_be_read,
    root_still_works_on_files_of_other_users,
    system_v_objects_of_others_stay_closed,
    no_user_namespace_can_be_made_or_entered,
    scheduling_of_other_processes_stays_as_it_is,
);

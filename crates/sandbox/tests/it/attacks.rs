//! Each of these would succeed without the confinement, and must not with it.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use convoke_sandbox::{Backend, ConfinedSpawner, Network};
use convoke_tool::UnconfinedSpawner;

use crate::support::{Place, SECRET, run, write};

/// A line of shell that shows the secret or changes the file outside, if nothing stops it.
const LINES: &[&str] = &[
    "cat $PLACE/home/.ssh/id_rsa",
    "cat < $PLACE/home/.ssh/id_rsa",
    "cat $PLACE/project/../home/.ssh/id_rsa",
    "cat /proc/self/root$PLACE/home/.ssh/id_rsa",
    "cat /proc/self/cwd/../home/.ssh/id_rsa",
    "cd $PLACE/home/.ssh && cat id_rsa",
    "ln -s $PLACE/home/.ssh/id_rsa way && cat way",
    "ln -s $PLACE/home/.ssh way && cat way/id_rsa",
    "ln $PLACE/home/.ssh/id_rsa copy && cat copy",
    "mv $PLACE/home/.ssh/id_rsa moved && cat moved",
    "mv $PLACE/home/.ssh moved && cat moved/id_rsa",
    "cp -r $PLACE/home/.ssh copied && cat copied/id_rsa",
    "tar cf - $PLACE/home/.ssh | cat",
    "setsid cat $PLACE/home/.ssh/id_rsa",
    "(cat $PLACE/home/.ssh/id_rsa &) ; wait",
    "echo changed > $PLACE/outside/file",
    "echo changed >> $PLACE/outside/file",
    "truncate -s 0 $PLACE/outside/file",
    "rm -rf $PLACE/outside",
    "mv $PLACE/outside $PLACE/project/outside",
    "ln -s $PLACE/outside/file way && echo changed > way",
    "ln $PLACE/outside/file way && echo changed > way",
    "touch $PLACE/outside/new",
    "mkdir $PLACE/outside/new",
    "cp file $PLACE/outside/new",
    "mknod disk b 254 0 && head -c 1 disk > /dev/null && touch $PLACE/outside/new",
    "mount -t tmpfs none $PLACE/outside",
    "echo changed > /proc/self/root$PLACE/outside/file",
];

async fn no_line_reads_the_secret_or_changes_what_is_outside(backend: Backend) {
    for line in LINES {
        let Some(place) = Place::new(backend) else { return };
        let ran = place.shell(line).await;
        assert!(!ran.stdout.contains(SECRET), "`{line}` showed the secret");
        assert_eq!(place.text("outside/file"), "untouched", "`{line}` changed a file outside");
        assert!(!place.path("outside/new").exists(), "`{line}` made something outside");
        assert_eq!(place.text("home/.ssh/id_rsa"), SECRET, "`{line}` changed the secret");
    }
}

/// With Landlock a home directory cannot be worked in, since what is hidden lies there.
#[tokio::test]
async fn no_line_reads_the_secret_where_the_home_directory_is_worked_in() {
    for line in LINES {
        let Some(mut place) = Place::new(Backend::Bubblewrap) else { return };
        place.confinement.write = vec![place.path("home")];
        std::fs::copy(place.path("project/file"), place.path("home/file")).unwrap();
        let mut program = place.program(&["sh", "-c", line]);
        program.working_directory = place.path("home");
        let ran = run(&place.spawner(), program).await;
        assert!(!ran.stdout.contains(SECRET), "`{line}` showed the secret");
        assert_eq!(place.text("outside/file"), "untouched", "`{line}` changed a file outside");
        assert!(!place.path("outside/new").exists(), "`{line}` made something outside");
        assert_eq!(place.text("home/.ssh/id_rsa"), SECRET, "`{line}` changed the secret");
    }
}

async fn the_same_lines_succeed_without_confinement(backend: Backend) {
    for line in [LINES[0], LINES[4], LINES[8]] {
        let Some(place) = Place::new(backend) else { return };
        let ran = run(&UnconfinedSpawner, place.program(&["sh", "-c", line])).await;
        assert!(ran.stdout.contains(SECRET), "`{line}` should work here: {ran:?}");
    }
}

async fn a_link_beside_the_secret_does_not_open_it(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    symlink(place.path("home/.ssh"), place.path("home/innocent")).unwrap();
    let ran = place.shell("cat $PLACE/home/innocent/id_rsa; cat $PLACE/home/notes").await;
    assert_eq!(ran.stdout, "nothing special");
}

async fn a_secret_behind_a_link_is_hidden_where_it_really_is(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    write(&place.path("elsewhere/key"), SECRET);
    symlink(place.path("elsewhere"), place.path("home/.keys")).unwrap();
    place.confinement = place.confinement.clone().hide(place.path("home/.keys"));
    let ran = place.shell("cat $PLACE/home/.keys/key $PLACE/elsewhere/key").await;
    assert_eq!(ran.stdout, "");
}

async fn a_secret_that_appears_later_is_hidden_too(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    let spawner = place.spawner();
    std::fs::create_dir(place.path("home/.aws")).unwrap();
    write(&place.path("home/.aws/credentials"), SECRET);
    let line = "cat $PLACE/home/.aws/credentials";
    let ran = run(&spawner, place.program(&["sh", "-c", line])).await;
    assert_eq!(ran.stdout, "");
}

async fn a_root_that_became_a_link_gives_nothing(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    std::fs::create_dir(place.path("project/nested")).unwrap();
    place.confinement.write.push(place.path("project/nested"));
    let spawner = place.spawner();
    let line = |line: &str| place.program(&["sh", "-c", line]);
    let ran = run(&spawner, line("rmdir nested && ln -s $PLACE/outside nested")).await;
    assert!(ran.succeeded(), "{ran:?}");
    let ran = run(&spawner, line("echo changed > $PLACE/outside/file")).await;
    assert!(!ran.succeeded(), "{ran:?}");
    assert_eq!(place.text("outside/file"), "untouched");
}

async fn work_inside_a_hidden_directory_is_refused(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    place.confinement.write.push(place.path("home/.ssh/work"));
    let refused = ConfinedSpawner::with_backend(place.confinement.clone(), backend).unwrap_err();
    assert!(refused.to_string().contains(".ssh` stays hidden"), "{refused}");
}

async fn nothing_of_ours_is_left_open(backend: Backend) {
    use std::os::fd::AsRawFd;
    let Some(place) = Place::new(backend) else { return };
    let secret = crate::support::open(&place.path("home/.ssh/id_rsa"));
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    let ran = place.shell(&format!("cat <&{} || ls /proc/self/fd", secret.as_raw_fd())).await;
    assert!(!ran.stdout.contains(SECRET), "{ran:?}");
}

async fn our_own_environment_and_memory_cannot_be_read(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    let us = std::process::id();
    for file in ["environ", "mem", "maps", "root/etc/hostname", "cwd/Cargo.toml"] {
        let ran = place.shell(&format!("head -c 1 /proc/{us}/{file}")).await;
        assert!(!ran.succeeded(), "/proc/{us}/{file}: {ran:?}");
    }
    // The guard is a copy of us, so it has the same memory. With bubblewrap the parent is its own.
    let ran = place.shell("head -c 1 /proc/$PPID/environ || head -c 1 /proc/$PPID/mem").await;
    assert_eq!(ran.stdout, "", "{ran:?}");
}

async fn nobody_outside_can_be_signalled(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    let us = std::process::id();
    let ran = place.shell(&format!("kill -0 {us}")).await;
    assert!(!ran.succeeded(), "{ran:?}");
    let ran = place.shell("kill -9 1 $PPID; sleep 0.01; exit 7").await;
    assert_eq!(ran.status.code(), Some(7), "it ended its guard: {ran:?}");
}

async fn nobody_outside_can_be_traced(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    let us = std::process::id();
    let script = format!(
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n\
         print(libc.ptrace(16, {us}, 0, 0), ctypes.get_errno())"
    );
    let ran = place.python(&script).await;
    assert!(ran.stdout.starts_with("-1 "), "{ran:?}");
}

async fn no_kind_of_socket_leads_out(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    let script = "import socket as s\n\
        kinds = [(s.AF_INET, s.SOCK_STREAM), (s.AF_INET, s.SOCK_DGRAM), (s.AF_INET6, s.SOCK_DGRAM),\n\
          (s.AF_INET, s.SOCK_RAW), (s.AF_UNIX, s.SOCK_STREAM), (s.AF_NETLINK, s.SOCK_RAW),\n\
          (s.AF_PACKET, s.SOCK_RAW), (s.AF_VSOCK, s.SOCK_STREAM)]\n\
        for family, kind in kinds:\n\
        \ttry:\n\t\ts.socket(family, kind)\n\t\tprint('open', family, kind)\n\
        \texcept PermissionError: pass\n\
        s.socketpair()\nprint('done')";
    assert_eq!(place.python(script).await.stdout, "done\n");
}

async fn with_the_network_allowed_local_services_stay_closed(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    place.confinement.network = Network::All;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "import socket as s\ns.create_connection(('127.0.0.1', {port})).close()\n\
         try: s.socket(s.AF_UNIX)\nexcept PermissionError: print('closed')"
    );
    let ran = place.python(&script).await;
    assert_eq!(ran.stdout, "closed\n", "{ran:?}");
}

/// A pair of datagram sockets can still be pointed at any socket that has a path; so can a pair of raw
/// ones, which the kernel turns into datagrams.
async fn pairs_of_datagram_sockets_do_not_reach_sockets_of_others(backend: Backend) {
    for network in [Network::None, Network::All] {
        let Some(mut place) = Place::new(backend) else { return };
        place.confinement.network = network;
        let log = UnixDatagram::bind(place.path("project/log")).unwrap();
        log.set_nonblocking(true).unwrap();
        let script = "import socket as s\n\
            def send(pair): pair[0].sendto(b'sent', 'log')\n\
            def connect(pair): pair[0].connect('log'); pair[0].send(b'connected')\n\
            for kind in (s.SOCK_DGRAM, s.SOCK_RAW, s.SOCK_DGRAM | s.SOCK_CLOEXEC | s.SOCK_NONBLOCK):\n\
            \tfor reach in (send, connect):\n\
            \t\ttry: reach(s.socketpair(s.AF_UNIX, kind)); print('reached', kind)\n\
            \t\texcept OSError: pass\n\
            for kind in (s.SOCK_STREAM, s.SOCK_SEQPACKET):\n\
            \ttry: s.socketpair(s.AF_UNIX, kind)[0].connect('log'); print('reached', kind)\n\
            \texcept OSError: pass\n\
            print('done')";
        let ran = place.python(script).await;
        let mut heard = [0; 16];
        let heard = log.recv(&mut heard).map(|length| heard[..length].to_vec());
        assert!(heard.is_err(), "a socket of others got a message: {heard:?}, {ran:?}");
        assert_eq!(ran.stdout, "done\n", "{ran:?}");
    }
}

async fn with_local_sockets_allowed_pairs_of_datagram_sockets_are_too(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    place.confinement.local_sockets = true;
    let log = UnixDatagram::bind(place.path("project/log")).unwrap();
    log.set_nonblocking(true).unwrap();
    let script = "import socket as s\n\
        s.socketpair(s.AF_UNIX, s.SOCK_DGRAM)[0].sendto(b'sent', 'log')";
    let ran = place.python(script).await;
    let mut heard = [0; 16];
    assert_eq!(log.recv(&mut heard).ok(), Some(4), "{ran:?}");
}

async fn limits_of_other_processes_cannot_be_changed(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    let mut other = std::process::Command::new("sleep").arg("4711").spawn().unwrap();
    let limits = || crate::support::text(Path::new(&format!("/proc/{}/limits", other.id())));
    let before = limits();
    let script = format!(
        "import resource as r\n\
         try: r.prlimit({}, r.RLIMIT_NOFILE, (7, 7)); print('changed')\n\
         except OSError as error: print(type(error).__name__)\n\
         r.setrlimit(r.RLIMIT_NOFILE, (64, 64)); print(r.getrlimit(r.RLIMIT_NOFILE))",
        other.id()
    );
    let ran = place.python(&script).await;
    let after = limits();
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(after, before, "{ran:?}");
    assert_eq!(ran.stdout, "PermissionError\n(64, 64)\n", "its own it may lower: {ran:?}");
}

async fn abstract_sockets_of_others_stay_closed(backend: Backend) {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    let Some(mut place) = Place::new(backend) else { return };
    place.confinement.local_sockets = true;
    let name = format!("convoke-test-{}-{backend:?}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let script = format!(
        "import socket as s\nc = s.socket(s.AF_UNIX)\n\
         try: c.connect('\\0{name}')\nexcept OSError: print('closed')"
    );
    assert_eq!(place.python(&script).await.stdout, "closed\n");
}

async fn sockets_cannot_be_had_through_another_door(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    // io_uring_setup, and `socket` by its second number.
    let script = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n\
        print(libc.syscall(425, 8, 0) < 0, libc.syscall(0x40000029, 2, 1, 0) < 0)";
    assert_eq!(place.python(script).await.stdout, "True True\n");
}

async fn there_is_no_terminal_and_no_disk(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    for line in [
        "echo hi > /dev/tty",
        "head -c 1 /dev/vda",
        "head -c 1 /dev/mem",
        "ls /dev/pts/0 && echo hi > /dev/pts/0",
    ] {
        let ran = place.shell(line).await;
        assert!(!ran.succeeded(), "`{line}`: {ran:?}");
    }
}

async fn root_keeps_only_what_concerns_files(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    let ran = place.shell("grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status").await;
    for set in ["CapEff", "CapBnd"] {
        let line = ran.stdout.lines().find(|line| line.starts_with(set)).unwrap();
        let bits = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
        assert_eq!(bits & !0b1_1011, 0, "{set}: {ran:?}");
    }
    assert!(ran.stdout.contains("NoNewPrivs:\t1"), "{ran:?}");
}

on_each_backend!(
    no_line_reads_the_secret_or_changes_what_is_outside,
    the_same_lines_succeed_without_confinement,
    a_link_beside_the_secret_does_not_open_it,
    a_secret_behind_a_link_is_hidden_where_it_really_is,
    a_secret_that_appears_later_is_hidden_too,
    a_root_that_became_a_link_gives_nothing,
    work_inside_a_hidden_directory_is_refused,
    nothing_of_ours_is_left_open,
    our_own_environment_and_memory_cannot_be_read,
    nobody_outside_can_be_signalled,
    nobody_outside_can_be_traced,
    no_kind_of_socket_leads_out,
    with_the_network_allowed_local_services_stay_closed,
    pairs_of_datagram_sockets_do_not_reach_sockets_of_others,
    with_local_sockets_allowed_pairs_of_datagram_sockets_are_too,
    limits_of_other_processes_cannot_be_changed,
    abstract_sockets_of_others_stay_closed,
    sockets_cannot_be_had_through_another_door,
    there_is_no_terminal_and_no_disk,
    root_keeps_only_what_concerns_files,
);

//! Processes of a program's own: namespaces for processes and for System V objects.
//!
//! In a PID namespace the guard is the first process, and the kernel ends all others with the first one:
//! no program can start new processes faster than they are ended. The namespace has a `/proc` of its own,
//! so that numbers of processes mean what programs think. Shared memory, semaphores and message queues of
//! other programs are out of reach.
//!
//! Root makes the namespaces with its own rights, any other user with a user namespace in which it is the
//! same user as before. Where neither works, programs are confined without: then the guard ends processes
//! one by one, and the filter on system calls refuses System V objects and the scheduling of other processes.
//!
//! The process that was forked stays outside, and ends as the program did.

use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::OnceLock;

use super::guard::{keep_only, leave};
use super::user_namespace::write;
use super::{fork, in_child, succeed, wait_for};

/// What a process needs to move into namespaces of its own, prepared.
#[derive(Debug)]
pub(super) struct OwnProcesses {
    /// Users and groups of a user namespace, as the kernel wants to read them; `None` for root.
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl OwnProcesses {
    /// Returns what is needed, or the reason why it does not work here. Tried out with the first call.
    pub(super) fn find() -> Result<&'static Self, &'static str> {
        static FOUND: OnceLock<Result<OwnProcesses, String>> = OnceLock::new();
        let found = FOUND.get_or_init(|| {
            let found = Self::of_this_user();
            found.try_out().map(|()| found).map_err(|error| error.to_string())
        });
        found.as_ref().map_err(String::as_str)
    }

    fn of_this_user() -> Self {
        let user = rustix::process::geteuid();
        let same = |id: u32| format!("{id} {id} 1").into_bytes();
        let groups = || same(rustix::process::getegid().as_raw());
        Self { identity: (!user.is_root()).then(|| (same(user.as_raw()), groups())) }
    }

    /// Has a process try to move, and its child to become the first of a namespace.
    fn try_out(&self) -> io::Result<()> {
        in_child(|| {
            self.unshare()?;
            // SAFETY: the closure makes system calls only.
            wait_for(unsafe { fork(mount)? })
        })
    }

    fn unshare(&self) -> io::Result<()> {
        let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC;
        let Some((users, groups)) = &self.identity else {
            // SAFETY: takes numbers only; what is shared is the process's own.
            succeed(unsafe { libc::unshare(flags) })?;
            return Ok(());
        };
        // SAFETY: as above.
        succeed(unsafe { libc::unshare(flags | libc::CLONE_NEWUSER) })?;
        become_same_user(users, groups)
    }

    /// Moves on into the namespaces as their first process, and returns where that has to write how the
    /// program ended. The calling process stays behind.
    ///
    /// # Safety
    ///
    /// The caller is a child between fork and exec, with one thread, which has blocked all signals.
    pub(super) unsafe fn enter(&self) -> io::Result<RawFd> {
        self.unshare()?;
        let mut pipe: [RawFd; 2] = [-1; 2];
        // SAFETY: the kernel writes two numbers, which are ours.
        succeed(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) })?;
        let [from_first, to_outside] = pipe;
        // SAFETY: with these flags it is a plain fork; both sides go on with system calls only.
        let first = succeed(unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) })?;
        if first > 0 {
            stay_behind(libc::pid_t::try_from(first).unwrap_or(0), from_first);
        }
        // SAFETY: takes numbers only.
        succeed(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) })?;
        mount()?;
        Ok(to_outside)
    }
}

/// Makes the calling process the same user in its new user namespace. Makes nothing but system calls.
pub(super) fn become_same_user(users: &[u8], groups: &[u8]) -> io::Result<()> {
    // Files below `/proc/self` are root's otherwise, where nothing of this process may be read.
    // SAFETY: takes numbers only.
    succeed(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) })?;
    write(c"/proc/self/setgroups", b"deny")?;
    write(c"/proc/self/uid_map", users)?;
    write(c"/proc/self/gid_map", groups)
}

/// Gives the first process of a namespace a `/proc` that shows this namespace.
fn mount() -> io::Result<()> {
    let none = ptr::null();
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: the texts end with a zero byte; the kernel only reads them. The mounts are the process's own.
    unsafe {
        let root = c"/".as_ptr();
        succeed(libc::mount(ptr::null(), root, ptr::null(), libc::MS_REC | libc::MS_SLAVE, none))?;
        let kind = c"proc".as_ptr();
        succeed(libc::mount(kind, c"/proc".as_ptr(), kind, flags, none))?;
    }
    Ok(())
}

/// Waits outside for the first process of a namespace, and ends as it says.
fn stay_behind(first: libc::pid_t, from_first: RawFd) -> ! {
    let from_first = keep_only(from_first, None);
    // How the first process ended says nothing that it has not written.
    wait_for(first).ok();
    let mut status = [0; 4];
    // SAFETY: the kernel writes at most four bytes, which are ours.
    let read = unsafe { libc::read(from_first, status.as_mut_ptr().cast(), status.len()) };
    leave(if read == 4 { libc::c_int::from_ne_bytes(status) } else { libc::SIGKILL })
}

//! The guard: a small process between us and the program, that ends everything the program started.
//!
//! It holds one end of a pair of sockets whose other end only we have. When we end, however that happens,
//! the kernel closes our end and the guard notices. It adopts whatever the program's descendants leave
//! behind, so a process that moved to a session of its own is still found and ended. The program cannot
//! reach the guard: it stands outside the confinement, and outside the program's control group, if there
//! is one. Which limit was passed when it ends everything, it tells us.
//!
//! No program can keep the guard busy: in each round it looks at the socket first, and collects a bounded
//! number of processes. Where the program has processes of its own, the guard is the first of them, and a
//! single call ends all others. Elsewhere it ends its children until there are none: of processes that start
//! the next one and end, all but those that run at this very moment end in each round.
//!
//! The guard is a copy of us that never becomes another program, made while other threads may have held
//! locks. It therefore takes no memory and calls nothing but the kernel.

mod listing;

use std::io;
use std::os::fd::RawFd;

use super::group::{Group, Watched};
use super::own_processes::OwnProcesses;
use super::succeed;
use listing::{Children, PathText, Tasks};

/// What we write to have the program asked to end. Closing our end ends it.
pub(crate) const TERMINATE: u8 = b't';

/// How long those whom the program left behind may take to end by themselves.
const LEFT_BEHIND_MILLISECONDS: i64 = 400;
const STEP_MILLISECONDS: i32 = 10;
/// How often the guard looks at what is used where that is limited.
const LOOK_MILLISECONDS: i32 = 20;
/// How many processes are collected before the guard looks at anything else.
const MOST_COLLECTED: u32 = 1024;
/// How many rounds of ending follow each other closely. Who lives on then waits for the kernel, not for us.
const CLOSE_ROUNDS: u32 = 1000;
const CHILDREN: &std::ffi::CStr = c"/proc/thread-self/children";
/// How deep a tree of processes is counted.
const DEEPEST: u32 = 32;

/// Tells whether the guard can find everything it has to end.
pub(crate) fn sees_children() -> bool {
    let mut children = Children::open(CHILDREN);
    children.is_open() && children.next().is_none_or(|child| child > 0)
}

/// Why the guard ended everything, or what was in the way of a program that ended: a byte that it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Reason {
    /// There were too many processes, or another was refused.
    Processes = b'p',
    /// They took too much memory together.
    Memory = b'm',
    /// They took too much processor time together.
    Time = b'c',
    /// Their group was taken away, so that nothing held its limits any more.
    Lost = b'l',
}

impl Reason {
    /// Returns what a guard has told.
    pub(super) fn told(byte: u8) -> Option<Self> {
        [Self::Processes, Self::Memory, Self::Time, Self::Lost]
            .into_iter()
            .find(|reason| *reason as u8 == byte)
    }
}

/// Splits the calling process in two: the guard, which never returns, and its child, which does.
///
/// # Safety
///
/// The caller is a child between fork and exec, with one thread, and `control` is an open socket.
pub(super) unsafe fn split(
    control: RawFd,
    watch: Watch,
    group: Option<&Group>,
    own: Option<&OwnProcesses>,
) -> io::Result<()> {
    // SAFETY: takes numbers only.
    succeed(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })?;
    // A session of its own, so that a signal to our group does not reach the guard.
    // SAFETY: takes nothing.
    succeed(unsafe { libc::setsid() })?;
    // Blocked before the fork, so that the child cannot end unnoticed.
    block_signals(true);
    // SAFETY: the caller promises what it needs, and signals are blocked.
    let outside = own.map(|own| unsafe { own.enter() }).transpose()?;
    // SAFETY: asks for a number.
    let guard = unsafe { libc::getpid() };
    // The bare call, since the library's `fork` would run handlers and take locks.
    // SAFETY: with these flags it is a plain fork; both sides go on with system calls only.
    let child = succeed(unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) })?;
    if child > 0 {
        let child = libc::pid_t::try_from(child).unwrap_or(0);
        Guard { child, control, outside, watch }.watch(group);
    }
    block_signals(false);
    // And one for the program: no terminal to read from or to type into, and a group to signal.
    // SAFETY: takes nothing.
    succeed(unsafe { libc::setsid() })?;
    // SAFETY: takes numbers only. A guard that is already gone cannot send the signal any more.
    unsafe {
        succeed(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
        if libc::getppid() != guard {
            libc::_exit(1);
        }
    }
    Ok(())
}

fn block_signals(block: bool) {
    // SAFETY: the set is ours, filled before it is used; changing the mask of this thread is all it does.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        if block {
            libc::sigfillset(&raw mut set);
        } else {
            libc::sigemptyset(&raw mut set);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// What the guard has to know about the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// How many processes there may be, if it is the guard that counts them.
    pub(super) processes: Option<u32>,
    /// Whether the guard's child only waits for the program, which is then one of its children.
    pub(super) wrapped: bool,
}

struct Guard {
    child: libc::pid_t,
    control: RawFd,
    /// Where the one that stays outside reads how the program ended, if the guard is the first process of a
    /// namespace.
    outside: Option<RawFd>,
    watch: Watch,
}

/// What the guard woke up for.
enum News {
    /// Asked to end everything, or nobody is left to ask.
    End,
    /// Somebody ended, or time has passed.
    Look,
}

/// What is left after processes were collected.
#[derive(PartialEq, Eq)]
enum Left {
    Nobody,
    /// Processes that have not ended.
    Some,
    /// Perhaps more that have ended.
    More,
}

impl Guard {
    fn watch(mut self, group: Option<&Group>) -> ! {
        self.let_go();
        let group = group.map(Watched::open);
        let group = group.as_ref();
        let ended = child_signals();
        let looks = self.watch.processes.is_some() || group.is_some() || ended < 0;
        let pause = if looks { LOOK_MILLISECONDS } else { -1 };
        let (mut status, mut reason, mut left) = (None, None, Left::Some);
        let mut look_at = now().saturating_add(LOOK_MILLISECONDS.into());
        while status.is_none() && reason.is_none() {
            let pause = if left == Left::More { 0 } else { pause };
            if matches!(self.wait(ended, pause), News::End) {
                break;
            }
            left = self.collect(&mut status);
            if looks && (status.is_some() || now() >= look_at) {
                reason = self.passed(group);
                look_at = now().saturating_add(LOOK_MILLISECONDS.into());
            }
        }
        if status.is_some() && reason.is_none() {
            reason = self.wait_for_those_left_behind(ended, group);
        }
        self.end_all(&mut status, group);
        let reason = reason.or_else(|| group?.stood_in_the_way());
        if let Some(group) = group {
            group.remove();
        }
        self.tell(reason);
        self.leave(status.unwrap_or(libc::SIGKILL))
    }

    fn tell(&self, reason: Option<Reason>) {
        if let Some(reason) = reason {
            let byte = reason as u8;
            // SAFETY: the kernel reads one byte, which is ours. Nobody may be there to hear it.
            unsafe { libc::send(self.control, (&raw const byte).cast(), 1, libc::MSG_NOSIGNAL) };
        }
    }

    /// Ends the guard the way the program ended, or has the one do so that stays outside.
    fn leave(&self, status: libc::c_int) -> ! {
        let Some(outside) = self.outside else { leave(status) };
        let bytes = status.to_ne_bytes();
        // SAFETY: the kernel reads the bytes, which are ours; then this process ends at once, and with it
        // all others of its namespace.
        unsafe {
            libc::write(outside, bytes.as_ptr().cast(), bytes.len());
            libc::_exit(0)
        }
    }

    /// Gives up what the copy brought along: streams that others wait on, and memory worth reading.
    fn let_go(&mut self) {
        self.control = keep_only(self.control, self.outside);
        self.outside = self.outside.map(|_| SECOND);
    }

    fn wait(&self, ended: RawFd, milliseconds: i32) -> News {
        let watch = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut watched = [watch(self.control), watch(ended)];
        // SAFETY: the kernel fills the two entries, which are ours.
        unsafe { libc::poll(watched.as_mut_ptr(), 2, milliseconds) };
        let [control, signals] = watched;
        let mut buffer = [0_u8; 128];
        if signals.revents != 0 {
            // SAFETY: the kernel writes at most the size of the buffer. What it says is not needed.
            unsafe { libc::read(ended, buffer.as_mut_ptr().cast(), buffer.len()) };
        }
        if control.revents != 0 {
            // SAFETY: the kernel writes at most the size of the buffer.
            let read =
                unsafe { libc::read(self.control, buffer.as_mut_ptr().cast(), buffer.len()) };
            if read <= 0 {
                return News::End;
            }
            // Nothing else is ever written.
            self.ask_to_end();
        }
        News::Look
    }

    /// Asks the program and its group to end. Whoever only waits for it is not asked: it would leave
    /// without the program.
    fn ask_to_end(&self) {
        // SAFETY: takes numbers only. Nobody in between has been collected, so each number is its own.
        let ask = |group: libc::pid_t| unsafe { libc::kill(-group, libc::SIGTERM) };
        if !self.watch.wrapped {
            ask(self.child);
            return;
        }
        let mut path = PathText::default();
        path.push(b"/proc/");
        path.number(self.child);
        path.push(b"/task/");
        path.number(self.child);
        path.push(b"/children");
        Children::open(path.as_text()).for_each(|group| {
            ask(group);
        });
    }

    /// Collects whoever has ended, up to a number.
    fn collect(&self, status: &mut Option<libc::c_int>) -> Left {
        for _ in 0..MOST_COLLECTED {
            let mut how = 0;
            // SAFETY: the kernel writes one number, which is ours.
            match unsafe { libc::waitpid(-1, &raw mut how, libc::WNOHANG) } {
                0 => return Left::Some,
                ended if ended == self.child => *status = Some(how),
                ended if ended < 0 => return Left::Nobody,
                _ => {}
            }
        }
        Left::More
    }

    /// Gives processes that outlive the program a little time; returns the limit that they pass.
    fn wait_for_those_left_behind(
        &self,
        ended: RawFd,
        group: Option<&Watched<'_>>,
    ) -> Option<Reason> {
        let last = now().saturating_add(LEFT_BEHIND_MILLISECONDS);
        let mut look_at = now().saturating_add(LOOK_MILLISECONDS.into());
        loop {
            let left = self.collect(&mut None);
            if left == Left::Nobody || now() >= last {
                return None;
            }
            if now() >= look_at {
                let passed = self.passed(group);
                if passed.is_some() {
                    return passed;
                }
                look_at = now().saturating_add(LOOK_MILLISECONDS.into());
            }
            let pause = if left == Left::More { 0 } else { STEP_MILLISECONDS };
            if matches!(self.wait(ended, pause), News::End) {
                return None;
            }
        }
    }

    /// Ends everybody, and comes back when nobody is left but processes of other users.
    fn end_all(&self, status: &mut Option<libc::c_int>, group: Option<&Watched<'_>>) {
        let mut rounds = 0_u32;
        loop {
            if let Some(group) = group {
                group.end_all();
            }
            let any = self.end_children();
            let left = self.collect(status);
            if left == Left::Nobody || !any {
                return;
            }
            rounds = rounds.saturating_add(1);
            let pause = match left {
                Left::More => 0,
                _ if rounds < CLOSE_ROUNDS => 1,
                _ => LOOK_MILLISECONDS,
            };
            // SAFETY: there is nothing to watch; it only waits.
            unsafe { libc::poll(std::ptr::null_mut(), 0, pause) };
        }
    }

    /// Ends all children; theirs become ours by that. Tells whether there are any that can be ended.
    fn end_children(&self) -> bool {
        if self.outside.is_some() {
            // SAFETY: takes numbers only. From here it reaches the processes of the namespace alone, and
            // none of them starts another one meanwhile.
            unsafe { libc::kill(-1, libc::SIGKILL) };
            return true;
        }
        let (mut ended, mut refused) = (0_u32, 0_u32);
        for child in Children::open(CHILDREN) {
            // SAFETY: takes numbers only. It is our child and not collected, so the number is its own.
            match succeed(unsafe { libc::kill(child, libc::SIGKILL) }) {
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => refused += 1,
                _ => ended += 1,
            }
        }
        ended > 0 || refused == 0
    }

    /// Tells which limit was passed.
    fn passed(&self, group: Option<&Watched<'_>>) -> Option<Reason> {
        let too_many = || self.too_many().then_some(Reason::Processes);
        group.and_then(Watched::passed).or_else(too_many)
    }

    fn too_many(&self) -> bool {
        self.watch.processes.is_some_and(|most| {
            if self.outside.is_some() {
                // All that are there, the guard among them.
                let most = usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1);
                return Tasks::open(c"/proc").take(most.saturating_add(1)).count() > most;
            }
            let mut left = most;
            Children::open(CHILDREN).any(|child| !count(child, &mut left, DEEPEST))
        })
    }
}

/// Counts a process and all below it off what is left. Tells whether that was enough.
fn count(process: libc::pid_t, left: &mut u32, deeper: u32) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    let Some(deeper) = deeper.checked_sub(1) else { return false };
    let mut path = PathText::default();
    path.push(b"/proc/");
    path.number(process);
    path.push(b"/task/");
    let tasks = path.length;
    // Each thread has children of its own.
    Tasks::open(path.as_text()).all(|task| {
        path.cut(tasks);
        path.number(task);
        path.push(b"/children");
        Children::open(path.as_text()).all(|child| count(child, left, deeper))
    })
}

/// Returns a descriptor that tells when a child ends, or a negative number.
fn child_signals() -> RawFd {
    // SAFETY: the set is ours, filled before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    }
}

/// The numbers of the descriptors that are kept.
const FIRST: RawFd = 0;
const SECOND: RawFd = 1;

/// Closes everything but these descriptors, and returns what the first of them becomes: the second becomes
/// the one behind it. Nothing of this process can be read by others from now on.
pub(super) fn keep_only(first: RawFd, second: Option<RawFd>) -> RawFd {
    // SAFETY: numbers and constant text only; no descriptor that is closed is used again. Both are above the
    // streams, whose places they take.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::prctl(libc::PR_SET_NAME, c"convoke-guard".as_ptr());
        libc::chdir(c"/".as_ptr());
        libc::dup2(first, FIRST);
        let kept = second.map_or(FIRST, |second| libc::dup2(second, SECOND));
        libc::syscall(libc::SYS_close_range, kept.unsigned_abs() + 1, u32::MAX, 0);
    }
    FIRST
}

/// Returns the time that has passed since some moment, in milliseconds.
fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure, which is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}

/// Ends this process the way the program ended, so that whoever waits for it learns how.
pub(super) fn leave(status: libc::c_int) -> ! {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        // SAFETY: numbers only; the default action of the signal ends this process, without a dump.
        unsafe {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            libc::signal(signal, libc::SIG_DFL);
            block_signals(false);
            libc::kill(libc::getpid(), signal);
            libc::_exit(128 + signal)
        }
    }
    // SAFETY: ends this process at once.
    unsafe { libc::_exit(libc::WEXITSTATUS(status)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_lists_children() {
        assert!(sees_children());
    }
}

//! The guard: a small process between us and the program, that ends everything the program started.
//!
//! It holds one end of a pair of sockets whose other end only we have. When we end, however that happens,
//! the kernel closes our end and the guard notices. It adopts whatever the program's descendants leave
//! behind, so a process that moved to a session of its own is still found and ended. The program cannot
//! reach the guard: it stands outside the confinement, and outside the program's control group, if there
//! is one. Which limit was passed when it ends everything, it tells us.
//!
//! The guard is a copy of us that never becomes another program, made while other threads may have held
//! locks. It therefore takes no memory and calls nothing but the kernel.

use std::io;
use std::os::fd::RawFd;

use super::group::{Group, Watched};
use super::succeed;

/// What we write to have the program asked to end. Closing our end ends it.
pub(crate) const TERMINATE: u8 = b't';

/// How long those whom the program left behind may take to end by themselves.
const LEFT_BEHIND_MILLISECONDS: i32 = 400;
const STEP_MILLISECONDS: i32 = 10;
/// How often the guard looks at what is used where that is limited.
const LOOK_MILLISECONDS: i32 = 20;
/// How often ending everything is tried before the guard gives up.
const ENDING_ROUNDS: u32 = 5_000;
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
pub(super) unsafe fn split(control: RawFd, watch: Watch, group: Option<&Group>) -> io::Result<()> {
    // SAFETY: takes numbers only.
    succeed(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })?;
    // A session of its own, so that a signal to our group does not reach the guard.
    // SAFETY: takes nothing.
    succeed(unsafe { libc::setsid() })?;
    // Blocked before the fork, so that the child cannot end unnoticed.
    block_signals(true);
    // SAFETY: asks for a number.
    let guard = unsafe { libc::getpid() };
    // The bare call, since the library's `fork` would run handlers and take locks.
    // SAFETY: with these flags it is a plain fork; both sides go on with system calls only.
    let child = succeed(unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) })?;
    if child > 0 {
        let child = libc::pid_t::try_from(child).unwrap_or(0);
        Guard { child, control, watch }.watch(group);
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
    watch: Watch,
}

/// What the guard woke up for.
enum News {
    /// Asked to end everything, or nobody is left to ask.
    End,
    /// Somebody ended, or time has passed.
    Look,
}

impl Guard {
    fn watch(&self, group: Option<&Group>) -> ! {
        self.let_go();
        let group = group.map(Watched::open);
        let group = group.as_ref();
        let ended = child_signals();
        let looks = self.watch.processes.is_some() || group.is_some() || ended < 0;
        let pause = if looks { LOOK_MILLISECONDS } else { -1 };
        let (mut status, mut reason) = (None, None);
        while status.is_none() && reason.is_none() {
            if matches!(self.wait(ended, pause), News::End) {
                break;
            }
            reason = self.passed(group);
            self.reap(&mut status);
        }
        if status.is_some() && reason.is_none() {
            self.wait_for_those_left_behind(ended, group);
        }
        self.end_all(&mut status, group);
        let reason = reason.or_else(|| group?.stood_in_the_way());
        if let Some(group) = group {
            group.remove();
        }
        self.tell(reason);
        leave(status.unwrap_or(libc::SIGKILL))
    }

    fn tell(&self, reason: Option<Reason>) {
        if let Some(reason) = reason {
            let byte = reason as u8;
            // SAFETY: the kernel reads one byte, which is ours. Nobody may be there to hear it.
            unsafe { libc::send(self.control, (&raw const byte).cast(), 1, libc::MSG_NOSIGNAL) };
        }
    }

    /// Gives up what the copy brought along: streams that others wait on, and memory worth reading.
    fn let_go(&self) {
        let control = self.control.unsigned_abs();
        // SAFETY: numbers and constant text only; no descriptor that is closed is used again.
        unsafe {
            libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
            libc::prctl(libc::PR_SET_NAME, c"convoke-guard".as_ptr());
            libc::chdir(c"/".as_ptr());
            if control > 0 {
                libc::syscall(libc::SYS_close_range, 0, control - 1, 0);
            }
            libc::syscall(libc::SYS_close_range, control + 1, u32::MAX, 0);
        }
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

    /// Collects whoever has ended. Tells whether anybody is left.
    fn reap(&self, status: &mut Option<libc::c_int>) -> bool {
        loop {
            let mut how = 0;
            // SAFETY: the kernel writes one number, which is ours.
            match unsafe { libc::waitpid(-1, &raw mut how, libc::WNOHANG) } {
                0 => return true,
                ended if ended == self.child => *status = Some(how),
                ended if ended < 0 => return false,
                _ => {}
            }
        }
    }

    fn wait_for_those_left_behind(&self, ended: RawFd, group: Option<&Watched<'_>>) {
        let mut waited = 0;
        let fine = || self.passed(group).is_none();
        while self.reap(&mut None) && waited < LEFT_BEHIND_MILLISECONDS && fine() {
            if matches!(self.wait(ended, STEP_MILLISECONDS), News::End) {
                return;
            }
            waited += STEP_MILLISECONDS;
        }
    }

    /// Ends all children. Theirs become ours by that, so it is repeated until there are none.
    fn end_all(&self, status: &mut Option<libc::c_int>, group: Option<&Watched<'_>>) {
        for _ in 0..ENDING_ROUNDS {
            if !self.reap(status) {
                return;
            }
            if let Some(group) = group {
                group.end_all();
            }
            for child in Children::open(CHILDREN) {
                // SAFETY: takes numbers only. It is our child and not collected, so the number is its own.
                unsafe { libc::kill(child, libc::SIGKILL) };
            }
            // SAFETY: there is nothing to watch; it only waits.
            unsafe { libc::poll(std::ptr::null_mut(), 0, 1) };
        }
    }

    /// Tells which limit was passed.
    fn passed(&self, group: Option<&Watched<'_>>) -> Option<Reason> {
        let too_many = || self.too_many().then_some(Reason::Processes);
        group.and_then(Watched::passed).or_else(too_many)
    }

    fn too_many(&self) -> bool {
        self.watch.processes.is_some_and(|most| {
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

/// A path, written without taking memory.
struct PathText {
    text: [u8; 64],
    length: usize,
}

impl Default for PathText {
    fn default() -> Self {
        Self { text: [0; 64], length: 0 }
    }
}

impl PathText {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(place) = self.text.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
    }

    fn cut(&mut self, length: usize) {
        self.length = length;
        self.text.iter_mut().skip(length).for_each(|byte| *byte = 0);
    }

    fn as_text(&self) -> &std::ffi::CStr {
        std::ffi::CStr::from_bytes_until_nul(&self.text).unwrap_or_default()
    }

    fn number(&mut self, number: libc::pid_t) {
        let mut divisor = 1_000_000_000;
        while divisor > 1 && number < divisor {
            divisor /= 10;
        }
        while divisor > 0 {
            let digit = u8::try_from(number / divisor % 10).unwrap_or(0);
            self.push(&[b'0' + digit]);
            divisor /= 10;
        }
    }
}

/// The numbers in a file of children, read piece by piece.
struct Children {
    file: RawFd,
    buffer: [u8; 1024],
    filled: usize,
    next: usize,
}

impl Children {
    fn open(path: &std::ffi::CStr) -> Self {
        // SAFETY: the text ends with a zero byte; the kernel only reads it.
        let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        Self { file, buffer: [0; 1024], filled: 0, next: 0 }
    }

    fn is_open(&self) -> bool {
        self.file >= 0
    }

    fn byte(&mut self) -> Option<u8> {
        if self.next == self.filled {
            // SAFETY: the kernel writes at most the size of the buffer.
            let read = unsafe {
                libc::read(self.file, self.buffer.as_mut_ptr().cast(), self.buffer.len())
            };
            self.filled = usize::try_from(read).unwrap_or(0);
            self.next = 0;
        }
        let byte = self.buffer.get(..self.filled)?.get(self.next).copied()?;
        self.next += 1;
        Some(byte)
    }
}

impl Iterator for Children {
    type Item = libc::pid_t;

    fn next(&mut self) -> Option<libc::pid_t> {
        let mut number = None;
        while let Some(byte) = self.byte() {
            match byte {
                b'0'..=b'9' => {
                    let digit = libc::pid_t::from(byte - b'0');
                    number = Some(number.unwrap_or(0) * 10 + digit);
                }
                _ if number.is_some() => break,
                _ => {}
            }
        }
        number
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        if self.is_open() {
            // SAFETY: it is ours, and not used again.
            unsafe { libc::close(self.file) };
        }
    }
}

/// The numbers among the names in a directory, read piece by piece.
struct Tasks {
    directory: RawFd,
    buffer: [u8; 1024],
    filled: usize,
    next: usize,
}

impl Tasks {
    /// Where the kernel's entries have their own length, and where their names begin.
    const LENGTH: usize = 16;
    const NAME: usize = 19;

    fn open(path: &std::ffi::CStr) -> Self {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the text ends with a zero byte; the kernel only reads it.
        let directory = unsafe { libc::open(path.as_ptr(), flags) };
        Self { directory, buffer: [0; 1024], filled: 0, next: 0 }
    }

    /// Returns the next entry as the kernel wrote it, from its beginning.
    fn entry(&mut self) -> Option<&[u8]> {
        if self.next >= self.filled {
            let (place, size) = (self.buffer.as_mut_ptr(), self.buffer.len());
            // SAFETY: the kernel writes at most the size of the buffer.
            let read = unsafe { libc::syscall(libc::SYS_getdents64, self.directory, place, size) };
            self.filled = usize::try_from(read).unwrap_or(0);
            self.next = 0;
        }
        let entry = self.buffer.get(self.next..self.filled)?;
        let length = [*entry.get(Self::LENGTH)?, *entry.get(Self::LENGTH + 1)?];
        self.next += usize::from(u16::from_ne_bytes(length)).max(1);
        Some(entry)
    }
}

impl Iterator for Tasks {
    type Item = libc::pid_t;

    fn next(&mut self) -> Option<libc::pid_t> {
        loop {
            let name = self.entry()?.get(Self::NAME..)?;
            let mut number = None;
            for byte in name.iter().take_while(|byte| byte.is_ascii_digit()) {
                number = Some(number.unwrap_or(0) * 10 + libc::pid_t::from(byte - b'0'));
            }
            if number.is_some() {
                return number;
            }
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        if self.directory >= 0 {
            // SAFETY: it is ours, and not used again.
            unsafe { libc::close(self.directory) };
        }
    }
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

/// Ends the guard the way the program ended, so that whoever waits for it learns how.
fn leave(status: libc::c_int) -> ! {
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
    fn paths_are_written_without_memory() {
        for number in [1, 9, 10, 4711, 4_194_304, i32::MAX] {
            let mut path = PathText::default();
            path.push(b"/proc/");
            path.number(number);
            let written = std::str::from_utf8(&path.text[..path.length]).unwrap();
            assert_eq!(written, format!("/proc/{number}"));
        }
    }

    #[test]
    fn the_threads_of_a_process_are_listed() {
        let process = libc::pid_t::try_from(std::process::id()).unwrap();
        let tasks: Vec<_> = Tasks::open(c"/proc/self/task").collect();
        assert!(tasks.contains(&process), "{process} in {tasks:?}");
        assert_eq!(Tasks::open(c"/nowhere").count(), 0);
    }

    #[test]
    fn the_kernel_lists_children() {
        assert!(sees_children());
    }
}

//! The user namespace that root's programs run in under bubblewrap.
//!
//! Root has no need of a user namespace to make the other ones, and without one its programs would be the
//! root of the machine: many files of the kernel ask for the user alone, not for a capability. In here the
//! capabilities hold for files and for nothing of the machine.
//!
//! Every user keeps the number that it has outside, so that root still works in directories of other users.
//! `bwrap --unshare-user` would know root alone. Nothing below this namespace can have one of its own.

use std::ffi::CString;
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};

use super::{fork, succeed, wait_for};

/// A map of every number. The namespace of the machine has it, and programs take a namespace with it for
/// the machine's; so one number less is mapped.
const ALL: u32 = u32::MAX;
const WORD: &[u8] = b".";

/// Returns the namespace, made with the first call.
pub(super) fn of_root() -> io::Result<BorrowedFd<'static>> {
    static MADE: OnceLock<Result<OwnedFd, String>> = OnceLock::new();
    match MADE.get_or_init(|| make().map_err(|error| error.to_string())) {
        Ok(made) => Ok(made.as_fd()),
        Err(why) => Err(io::Error::other(format!("root gets no user namespace: {why}"))),
    }
}

/// A child makes the namespace, we write its maps, the child closes it to further ones.
fn make() -> io::Result<OwnedFd> {
    let (from_child, to_us) = io::pipe()?;
    let (from_us, to_child) = io::pipe()?;
    let in_child = || {
        close(to_child.as_raw_fd());
        // SAFETY: takes numbers only; what is shared is the process's own.
        succeed(unsafe { libc::unshare(libc::CLONE_NEWUSER) })?;
        rustix::io::write(&to_us, WORD)?;
        heard(&from_us)?;
        write(c"/proc/sys/user/max_user_namespaces", b"0")?;
        rustix::io::write(&to_us, WORD)?;
        // Until the namespace is open.
        heard(&from_us)
    };
    // SAFETY: the closure makes system calls only.
    let child = unsafe { fork(in_child)? };
    drop((to_us, from_us));
    let opened = (|| {
        heard(&from_child)?;
        for kind in ["uid", "gid"] {
            let own = read(&format!("/proc/self/{kind}_map"))?;
            let path = CString::new(format!("/proc/{child}/{kind}_map"))?;
            write(&path, map(&own).as_bytes())?;
        }
        rustix::io::write(&to_child, WORD)?;
        heard(&from_child)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(format!("/proc/{child}/ns/user"), flags, Mode::empty())?)
    })();
    drop(to_child);
    match (wait_for(child), opened) {
        // The child knows better why there was nothing to hear.
        (Err(reason), Err(_)) if reason.raw_os_error() != Some(libc::EPIPE) => Err(reason),
        (_, opened) => opened,
    }
}

/// Waits for a word; an end without one is an error.
fn heard(pipe: impl AsFd) -> io::Result<()> {
    let mut word = [0; 1];
    match rustix::io::read(pipe, &mut word)? {
        0 => Err(io::Error::from_raw_os_error(libc::EPIPE)),
        _ => Ok(()),
    }
}

/// Returns a map in which every number that we know is itself.
fn map(own: &str) -> String {
    let mut map = String::new();
    for line in own.lines() {
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse::<u32>().ok());
        if let (Some(first), Some(_), Some(count)) =
            (numbers.next(), numbers.next(), numbers.next())
        {
            let count = if count == ALL { ALL - 1 } else { count };
            writeln!(map, "{first} {first} {count}").ok();
        }
    }
    map
}

fn read(path: &str) -> io::Result<String> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    io::read_to_string(std::fs::File::from(file))
}

fn close(file: RawFd) {
    // SAFETY: called in a child that does not use it again; the owner in our memory is another process's.
    unsafe { libc::close(file) };
}

/// Writes a file of the kernel in one piece. Makes nothing but system calls.
pub(super) fn write(path: &std::ffi::CStr, text: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, text)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_of_a_namespace_keeps_each_number_and_differs_from_that_of_the_machine() {
        assert_eq!(map("         0          0 4294967295\n"), "0 0 4294967294\n");
        assert_eq!(map("0 1000 1\n1 100000 65536\n"), "0 0 1\n1 1 65536\n");
        assert_eq!(map(""), "");
    }
}

//! A group as the guard sees it. Like all of the guard it takes no memory: paths were written before.

use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;

use super::Group;
use crate::linux::guard::Reason;
use crate::linux::succeed;

/// How long removing a group is tried: whoever was in it may still be on the way out.
const REMOVING_ROUNDS: u32 = 500;

/// A group with the files open that tell how it fares.
#[derive(Debug)]
pub(in crate::linux) struct Watched<'g> {
    group: &'g Group,
    time: RawFd,
    memory: Option<RawFd>,
    processes: Option<RawFd>,
}

impl<'g> Watched<'g> {
    pub(in crate::linux) fn open(group: &'g Group) -> Self {
        let open = |path: &CStr| open(path, libc::O_RDONLY);
        Self {
            group,
            time: open(&group.time),
            memory: group.memory.as_deref().map(open),
            processes: group.processes.as_deref().map(open),
        }
    }

    /// Tells whether everybody in it has to be ended, and why. A file that cannot be read any more means
    /// that the group, or a controller, was taken away: then a limit would hold no longer.
    pub(in crate::linux) fn passed(&self) -> Option<Reason> {
        let Some(used) = number(self.time, b"usage_usec ") else { return Some(Reason::Lost) };
        if self.group.microseconds.is_some_and(|most| used > most) {
            return Some(Reason::Time);
        }
        self.out_of_memory()
    }

    fn out_of_memory(&self) -> Option<Reason> {
        let events = self.memory?;
        // The first counts what the kernel ended for any reason, the second what was over this limit.
        match (number(events, b"oom_kill "), number(events, b"oom ")) {
            (Some(ended), Some(over)) => (ended > 0 && over > 0).then_some(Reason::Memory),
            _ => Some(Reason::Lost),
        }
    }

    /// Tells what stood in the way of those who have ended by now.
    pub(in crate::linux) fn stood_in_the_way(&self) -> Option<Reason> {
        let refused = || number(self.processes?, b"max ").filter(|times| *times > 0);
        self.out_of_memory().or_else(|| refused().map(|_| Reason::Processes))
    }

    /// Ends everybody in it at once, also those who are just being started. Older kernels cannot.
    pub(in crate::linux) fn end_all(&self) {
        write(&self.group.kill, b"1").ok();
    }

    /// Removes it, now that nobody is in it.
    pub(in crate::linux) fn remove(&self) {
        for _ in 0..REMOVING_ROUNDS {
            // SAFETY: the texts end with a zero byte; the kernel only reads them.
            let removed = unsafe {
                libc::rmdir(self.group.inner.as_ptr());
                libc::rmdir(self.group.outer.as_ptr())
            };
            if removed == 0 {
                return;
            }
            // SAFETY: there is nothing to watch; it only waits.
            unsafe { libc::poll(std::ptr::null_mut(), 0, 1) };
        }
    }
}

fn open(path: &CStr, how: libc::c_int) -> RawFd {
    // SAFETY: the text ends with a zero byte; the kernel only reads it.
    unsafe { libc::open(path.as_ptr(), how | libc::O_CLOEXEC) }
}

/// Writes a file of a group.
pub(super) fn write(path: &CStr, text: &[u8]) -> io::Result<()> {
    let file = open(path, libc::O_WRONLY);
    succeed(file)?;
    // SAFETY: the kernel reads the text, which is ours.
    let written = unsafe { libc::write(file, text.as_ptr().cast(), text.len()) };
    let result = if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: it is ours, and not used again.
    unsafe { libc::close(file) };
    result
}

/// Returns the number behind a word at the beginning of a line.
fn number(file: RawFd, word: &[u8]) -> Option<u64> {
    let mut buffer = [0_u8; 1024];
    // SAFETY: the kernel writes at most the size of the buffer.
    let read = unsafe { libc::pread(file, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    let text = buffer.get(..usize::try_from(read).ok()?)?;
    number_in(text, word)
}

fn number_in(text: &[u8], word: &[u8]) -> Option<u64> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(word))?;
    line.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_behind_whole_words() {
        let text = b"low 0\noom 12\noom_kill 3\noom_group_kill 1\n";
        let cases: [(&[u8], Option<u64>); 5] = [
            (b"oom ", Some(12)),
            (b"oom_kill ", Some(3)),
            (b"low ", Some(0)),
            (b"kill ", None),
            (b"max ", None),
        ];
        for (word, expected) in cases {
            assert_eq!(number_in(text, word), expected);
        }
        assert_eq!(number_in(b"max many\n", b"max "), None);
        assert_eq!(number(-1, b"oom "), None);
    }
}

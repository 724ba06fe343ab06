//! Lists of processes, as the kernel writes them, read without taking memory.

use std::os::fd::RawFd;

/// A path, written without taking memory.
pub(super) struct PathText {
    text: [u8; 64],
    pub(super) length: usize,
}

impl Default for PathText {
    fn default() -> Self {
        Self { text: [0; 64], length: 0 }
    }
}

impl PathText {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(place) = self.text.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
    }

    pub(super) fn cut(&mut self, length: usize) {
        self.length = length;
        self.text.iter_mut().skip(length).for_each(|byte| *byte = 0);
    }

    pub(super) fn as_text(&self) -> &std::ffi::CStr {
        std::ffi::CStr::from_bytes_until_nul(&self.text).unwrap_or_default()
    }

    pub(super) fn number(&mut self, number: libc::pid_t) {
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
pub(super) struct Children {
    file: RawFd,
    buffer: [u8; 1024],
    filled: usize,
    next: usize,
}

impl Children {
    pub(super) fn open(path: &std::ffi::CStr) -> Self {
        // SAFETY: the text ends with a zero byte; the kernel only reads it.
        let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        Self { file, buffer: [0; 1024], filled: 0, next: 0 }
    }

    pub(super) fn is_open(&self) -> bool {
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
pub(super) struct Tasks {
    directory: RawFd,
    buffer: [u8; 1024],
    filled: usize,
    next: usize,
}

impl Tasks {
    /// Where the kernel's entries have their own length, and where their names begin.
    const LENGTH: usize = 16;
    const NAME: usize = 19;

    pub(super) fn open(path: &std::ffi::CStr) -> Self {
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
}

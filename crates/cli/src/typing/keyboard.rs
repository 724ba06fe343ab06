//! The keyboard, key by key: the terminal neither echoes nor waits for the end of a line.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use tokio::sync::mpsc;

/// Wants pasted text to be marked as such, so that its line ends complete nothing.
const MARK_PASTES: &[u8] = b"\x1b[?2004h";
/// Wants it no longer.
const LEAVE_PASTES: &[u8] = b"\x1b[?2004l";

/// An open keyboard. When it is closed or dropped, the terminal is as it was before.
#[derive(Debug)]
pub(super) struct Keyboard {
    terminal: File,
    before: Termios,
    /// Dropping it stops the reader.
    stop: Option<PipeWriter>,
    reader: Option<JoinHandle<()>>,
    keys: mpsc::UnboundedReceiver<Vec<u8>>,
}

impl Keyboard {
    /// Opens the terminal on standard input, if there is one that can be set up.
    pub(super) fn open() -> Option<Self> {
        let terminal = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
        let reads = terminal.try_clone().ok()?;
        let before = tcgetattr(&terminal).ok()?;
        let (stopped, stop) = io::pipe().ok()?;
        let (sender, keys) = mpsc::unbounded_channel();
        tcsetattr(&terminal, OptionalActions::Now, &by_keys(&before)).ok()?;
        let reader = std::thread::spawn(move || read(reads, &stopped, &sender));
        let keyboard = Self { terminal, before, stop: Some(stop), reader: Some(reader), keys };
        keyboard.write(MARK_PASTES);
        Some(keyboard)
    }

    /// Waits for the next bytes. At the end of input there are none any more.
    pub(super) async fn next(&mut self) -> Vec<u8> {
        match self.keys.recv().await {
            Some(bytes) => bytes,
            None => std::future::pending().await,
        }
    }

    /// Closes it, and returns what was typed and not asked for yet.
    pub(super) fn close(mut self) -> Vec<u8> {
        self.give_back();
        std::iter::from_fn(|| self.keys.try_recv().ok()).flatten().collect()
    }

    fn give_back(&mut self) {
        drop(self.stop.take());
        let Some(reader) = self.reader.take() else { return };
        // A reader that broke has read all it could.
        drop(reader.join());
        self.write(LEAVE_PASTES);
        // A terminal that is gone needs nothing back.
        tcsetattr(&self.terminal, OptionalActions::Now, &self.before).ok();
    }

    /// A terminal that cannot be told marks nothing, and that is all.
    fn write(&self, bytes: &[u8]) {
        drop((&self.terminal).write_all(bytes));
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Signals and everything about output stay as they are; a stopped process would leave its terminal
/// like this, so it is not stopped.
fn by_keys(before: &Termios) -> Termios {
    let mut keys = before.clone();
    keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
    for (index, value) in [
        (SpecialCodeIndex::VMIN, 1),
        (SpecialCodeIndex::VTIME, 0),
        // Zero is no key.
        (SpecialCodeIndex::VSUSP, 0),
    ] {
        keys.special_codes[index] = value;
    }
    keys
}

fn read(mut terminal: File, stopped: &PipeReader, sender: &mpsc::UnboundedSender<Vec<u8>>) {
    loop {
        let mut waited =
            [PollFd::new(&terminal, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        let polled = poll(&mut waited, None);
        let [_, stop] = &waited;
        if !stop.revents().is_empty() {
            return;
        }
        match polled {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        let mut bytes = vec![0; 4096];
        match terminal.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(length) => bytes.truncate(length),
        }
        if sender.send(bytes).is_err() {
            return;
        }
    }
}

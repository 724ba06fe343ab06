//! A line that the person types, and what may come before it.

use std::fs;
use std::io::{self, BufRead, IsTerminal, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::files;

/// What the person gave.
#[derive(Debug)]
pub(in crate::commands) enum Said {
    /// A line; none at the end of input.
    Line(Option<String>),
    /// Other arguments.
    Edited(Value),
}

/// Something that is awaited from the terminal, also where standard input is something else. Who drops it
/// leaves what is typed to others.
#[derive(Debug)]
pub(in crate::commands) struct Awaited {
    said: JoinHandle<Said>,
    /// Dropping it ends the wait for a line.
    stop: Option<PipeWriter>,
}

impl Awaited {
    /// Begins to wait for a line; there is nothing to wait for where there is no terminal.
    pub(in crate::commands) fn line() -> Option<Self> {
        Self::line_after(|| None)
    }

    /// Does something that may take a while. If nothing comes of it, begins to wait for a line.
    pub(in crate::commands) fn line_after(
        first: impl FnOnce() -> Option<Said> + Send + 'static,
    ) -> Option<Self> {
        let (terminal, (stopped, stop)) = (keyboard()?, io::pipe().ok()?);
        let said = tokio::task::spawn_blocking(move || {
            first().unwrap_or_else(|| Said::Line(read_line(terminal, &stopped)))
        });
        Some(Self { said, stop: Some(stop) })
    }

    /// Gives up waiting for a line. Whatever has the terminal, a pager or an editor, keeps it until the person
    /// leaves it: what is typed there must not be taken for something else.
    pub(in crate::commands) fn give_up(&mut self) {
        self.stop = None;
    }

    /// Returns it.
    pub(in crate::commands) async fn next(&mut self) -> Said {
        (&mut self.said).await.unwrap_or(Said::Line(None))
    }
}

/// A terminal that does not show what is typed, until this is dropped.
#[derive(Debug)]
pub(in crate::commands) struct Unseen {
    terminal: fs::File,
    before: Termios,
}

impl Unseen {
    /// Begins, where there is a terminal that can be told so.
    pub(in crate::commands) fn begin() -> Option<Self> {
        let terminal = keyboard()?;
        let before = tcgetattr(&terminal).ok()?;
        let mut unseen = before.clone();
        unseen.local_modes.remove(LocalModes::ECHO);
        // The end of the line is seen. A stopped process would leave its terminal like this, so it is not stopped.
        unseen.local_modes.insert(LocalModes::ECHONL);
        unseen.special_codes[SpecialCodeIndex::VSUSP] = 0;
        tcsetattr(&terminal, OptionalActions::Now, &unseen).ok()?;
        Some(Self { terminal, before })
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        tcsetattr(&self.terminal, OptionalActions::Now, &self.before).ok();
    }
}

/// The terminal is ready when it has a whole line.
fn read_line(terminal: fs::File, stopped: &PipeReader) -> Option<String> {
    loop {
        let mut waited =
            [PollFd::new(&terminal, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        let polled = poll(&mut waited, None);
        let [_, stop] = &waited;
        match polled {
            _ if !stop.revents().is_empty() => return None,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
            Ok(_) => break,
        }
    }
    let mut line = String::new();
    let bytes = io::BufReader::new(terminal).read_line(&mut line).ok()?;
    (bytes > 0).then_some(line)
}

/// Returns where the person types: standard input, if that is a terminal. Not every system can wait for
/// the terminal under its general name.
fn keyboard() -> Option<fs::File> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return stdin.as_fd().try_clone_to_owned().ok().map(fs::File::from);
    }
    terminal()
}

/// Opens the terminal of the person, if there is one.
pub(in crate::commands) fn terminal() -> Option<fs::File> {
    files::open(Path::new("/dev/tty")).ok()
}

/// What was typed before a question is no answer to it.
pub(in crate::commands) fn forget_what_was_typed() {
    if let Some(terminal) = keyboard() {
        // A terminal that forgets nothing is asked all the same.
        rustix::termios::tcflush(&terminal, QueueSelector::IFlush).ok();
    }
}

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

/// Whether a line is seen while it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Typed {
    Seen,
    /// As a password is.
    Unseen,
}

/// Where the person types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::commands) enum Keys {
    /// Nowhere: nothing is awaited, and no terminal is touched.
    #[default]
    Nowhere,
    /// The terminal, also where standard input is something else.
    Terminal,
}

impl Keys {
    /// Opens where the person types: standard input, if that is a terminal. Not every system can wait for the
    /// terminal under its general name.
    fn open(self) -> Option<fs::File> {
        if self == Self::Nowhere {
            return None;
        }
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return stdin.as_fd().try_clone_to_owned().ok().map(fs::File::from);
        }
        terminal()
    }

    /// Begins to wait for a line; there is nothing to wait for where there is no terminal. Nobody else may have
    /// changed how the terminal works when this begins: it is left as it was found.
    pub(in crate::commands) fn line(self, typed: Typed) -> Option<Awaited> {
        let unseen = if typed == Typed::Unseen { Unseen::begin(self.open()?) } else { None };
        self.begin(unseen, || None)
    }

    /// Does something that may take a while. If nothing comes of it, begins to wait for a line.
    pub(in crate::commands) fn line_after(
        self,
        first: impl FnOnce() -> Option<Said> + Send + 'static,
    ) -> Option<Awaited> {
        self.begin(None, first)
    }

    fn begin(
        self,
        unseen: Option<Unseen>,
        first: impl FnOnce() -> Option<Said> + Send + 'static,
    ) -> Option<Awaited> {
        let (terminal, (stopped, stop)) = (self.open()?, io::pipe().ok()?);
        let said = tokio::task::spawn_blocking(move || {
            first().unwrap_or_else(|| Said::Line(read_line(terminal, &stopped)))
        });
        Some(Awaited { said, stop: Some(stop), unseen })
    }

    /// Forgets what was typed: before a question it is no answer to it.
    pub(in crate::commands) fn forget(self) {
        if let Some(terminal) = self.open() {
            // A terminal that forgets nothing is asked all the same.
            rustix::termios::tcflush(&terminal, QueueSelector::IFlush).ok();
        }
    }
}

/// Something that is awaited from the terminal. Who drops it leaves what is typed to others, and the terminal as it
/// was; only what was begun of a password is nobody's.
#[derive(Debug)]
pub(in crate::commands) struct Awaited {
    said: JoinHandle<Said>,
    /// Dropping it ends the wait for a line.
    stop: Option<PipeWriter>,
    unseen: Option<Unseen>,
}

impl Awaited {
    /// Gives up waiting for a line. Whatever has the terminal, a pager or an editor, keeps it until the person
    /// leaves it: what is typed there must not be taken for something else.
    pub(in crate::commands) fn give_up(&mut self) {
        if let Some(unseen) = &mut self.unseen {
            unseen.ends = OptionalActions::Flush;
        }
        self.stop = None;
    }

    /// Returns it.
    pub(in crate::commands) async fn next(&mut self) -> Said {
        (&mut self.said).await.unwrap_or(Said::Line(None))
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if !self.said.is_finished() {
            self.give_up();
        }
    }
}

/// A terminal that does not show what is typed, until this is dropped.
#[derive(Debug)]
struct Unseen {
    terminal: fs::File,
    before: Termios,
    /// What becomes of what was typed and not read.
    ends: OptionalActions,
}

impl Unseen {
    /// Begins, where the terminal can be told so.
    fn begin(terminal: fs::File) -> Option<Self> {
        let before = tcgetattr(&terminal).ok()?;
        let mut unseen = before.clone();
        unseen.local_modes.remove(LocalModes::ECHO);
        // The end of the line is seen. A stopped process would leave its terminal like this, so it is not stopped.
        unseen.local_modes.insert(LocalModes::ECHONL);
        unseen.special_codes[SpecialCodeIndex::VSUSP] = 0;
        tcsetattr(&terminal, OptionalActions::Now, &unseen).ok()?;
        Some(Self { terminal, before, ends: OptionalActions::Now })
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        tcsetattr(&self.terminal, self.ends, &self.before).ok();
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

/// Opens the terminal of the person, if there is one.
pub(in crate::commands) fn terminal() -> Option<fs::File> {
    files::open(Path::new("/dev/tty")).ok()
}

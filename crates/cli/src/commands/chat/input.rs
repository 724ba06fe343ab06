//! Where messages come from: an editor on a terminal, or plain lines.

mod editor;
mod lines;

use std::io;
use std::time::Duration;

use convoke_core::Cause;

pub(super) use self::editor::{Editor, History};
pub(super) use self::lines::Lines;
use super::prompt::Served;
use crate::failure::Failure;
use crate::signals::Signals;

/// How often it is looked whether the terminal is still there.
const LOOK: Duration = Duration::from_secs(2);

/// What came of waiting for a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A line, or several in one message.
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// There will be nothing more.
    End,
    /// The system wants the process to end.
    Stop(Cause),
}

/// A source of messages.
#[derive(Debug)]
pub(super) enum Input {
    /// A person at a terminal that can do something.
    Editor(Box<Editor>),
    /// A pipe, a file, or a terminal that only shows text.
    Lines(Lines),
}

impl Input {
    /// Waits for the next message. What is in the draft stands there already.
    pub(super) fn read(
        &mut self,
        draft: String,
        threads: &tokio::runtime::Runtime,
    ) -> Result<Heard, Failure> {
        threads.block_on(self.next(draft))
    }

    /// Learns what servers have, for whoever completes a line.
    pub(super) fn know(&mut self, served: Vec<Served>) {
        if let Self::Editor(editor) = self {
            editor.know(served);
        }
    }

    async fn next(&mut self, draft: String) -> Result<Heard, Failure> {
        let mut signals = Signals::listen()
            .map_err(|error| Failure::failed("signals cannot be heard").because(&error))?;
        let is_terminal = self.is_terminal();
        let cause = {
            let line = async {
                match self {
                    Self::Editor(editor) => editor.read(draft).await,
                    Self::Lines(lines) => lines.read().await,
                }
            };
            tokio::select! {
                biased;
                heard = line => return heard.map_err(|error| unreadable(&error)),
                cause = signals.next() => cause,
                () = hang_up(is_terminal) => Cause::Terminated,
            }
        };
        if let Self::Editor(editor) = self {
            // It gives the terminal back before anything else is done with it.
            editor.stop().await;
        }
        let asks_twice = cause == Cause::Interrupted && self.is_terminal();
        Ok(if asks_twice { Heard::Interrupt } else { Heard::Stop(cause) })
    }

    /// Tells whether a person types here.
    pub(super) const fn is_terminal(&self) -> bool {
        match self {
            Self::Editor(_) => true,
            Self::Lines(lines) => lines.is_terminal(),
        }
    }

    /// Tells whether the person may type while a run works.
    pub(super) const fn is_editor(&self) -> bool {
        matches!(self, Self::Editor(_))
    }
}

/// Waits until the terminal is gone. Reading from it would go on for ever, and not everybody is told by
/// a signal.
async fn hang_up(is_terminal: bool) {
    if !is_terminal {
        return std::future::pending().await;
    }
    let mut look = tokio::time::interval(LOOK);
    while rustix::termios::tcgetattr(io::stdin()).is_ok() {
        look.tick().await;
    }
}

fn unreadable(error: &io::Error) -> Failure {
    Failure::failed("messages cannot be read").because(error)
}

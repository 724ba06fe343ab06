//! Messages on standard input, one a line.

use std::io::{self, BufRead, IsTerminal, Read};

use tokio::task::JoinHandle;

use super::Heard;
use crate::files::MAX_INPUT_BYTES;
use crate::output::Stream;

/// Reads lines.
#[derive(Debug)]
pub(in super::super) struct Lines {
    /// A line that is awaited. It goes on being awaited when somebody stops to wait for it.
    awaited: Option<JoinHandle<io::Result<String>>>,
    /// Where the sign is shown that it is the person's turn, if there is one.
    prompt: Option<Stream>,
}

impl Lines {
    pub(in super::super) fn new(err: &Stream) -> Self {
        let is_terminal = io::stdin().is_terminal() && err.is_terminal();
        Self { awaited: None, prompt: is_terminal.then(|| err.clone()) }
    }

    pub(in super::super) const fn is_terminal(&self) -> bool {
        self.prompt.is_some()
    }

    pub(super) async fn read(&mut self) -> io::Result<Heard> {
        if let Some(err) = &self.prompt {
            err.text("> ");
            err.flush();
        }
        let awaited = self.awaited.get_or_insert_with(|| tokio::task::spawn_blocking(read_line));
        let line = awaited.await;
        self.awaited = None;
        let line = line.map_err(io::Error::other)??;
        Ok(if line.is_empty() { Heard::End } else { Heard::Line(line) })
    }
}

fn read_line() -> io::Result<String> {
    let mut line = String::new();
    let limit = MAX_INPUT_BYTES;
    let bytes = io::stdin().lock().take(limit + 1).read_line(&mut line)?;
    if bytes as u64 > limit {
        return Err(io::Error::other("a line is too long"));
    }
    Ok(line)
}

//! What the run is asked to do.

use std::fs;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::failure::Failure;
use crate::files;

/// How long something that is piped in may be silent before it is taken for nothing.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// What was asked.
#[derive(Debug)]
pub(in crate::commands) struct Prompt {
    /// The task.
    pub(in crate::commands) words: String,
    /// What was piped in beside it.
    pub(in crate::commands) input: Option<String>,
}

/// Returns the prompt: what was said, or what comes from standard input; and what was piped in beside it.
pub(in crate::commands) fn read(said: Option<&str>) -> Result<Prompt, Failure> {
    let (words, input) = match said {
        Some("-") => (from_stdin()?, None),
        Some(words) => (words.to_owned(), piped_in()?),
        None if io::stdin().is_terminal() => {
            return Err(Failure::usage("there is nothing to do").hint(
                "say what to do, as in: convoke run \"Which tests are slow?\"; or give it on \
                 standard input",
            ));
        }
        None => (from_stdin()?, None),
    };
    if words.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty"));
    }
    Ok(Prompt { words, input })
}

fn from_stdin() -> Result<String, Failure> {
    files::read_text(io::stdin().lock())
        .map_err(|error| Failure::usage("standard input cannot be read").because(&error))
}

/// Reads what is piped in. A pipe that somebody left open and says nothing on is not waited for.
fn piped_in() -> Result<Option<String>, Failure> {
    let stdin = io::stdin();
    if !is_file_or_pipe(stdin.as_fd()) || !speaks(stdin.as_fd()) {
        return Ok(None);
    }
    Ok(Some(from_stdin()?).filter(|text| !text.trim().is_empty()))
}

fn is_file_or_pipe(input: BorrowedFd<'_>) -> bool {
    let Ok(file) = input.try_clone_to_owned().map(fs::File::from) else { return false };
    let kind = file.metadata().map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_file() || kind.is_fifo())
}

fn speaks(input: BorrowedFd<'_>) -> bool {
    let mut wanted = [PollFd::from_borrowed_fd(input, PollFlags::IN)];
    poll(&mut wanted, Some(&PATIENCE)).is_ok_and(|ready| ready > 0)
}

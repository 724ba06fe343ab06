//! Everything that is printed goes through here.
//!
//! Writing never fails halfway through a command: a closed pipe (`convoke tools list | head -1`) makes
//! the stream silent and the command ends as it would have; any other error is kept and reported by
//! [`Output::finish`]. Colour, width and what a terminal can show are decided once, at the start.

mod stream;
mod style;
mod table;
mod text;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};

use crate::environment::Environment;

pub(crate) use stream::{Size, Stream};
pub(crate) use style::{Colour, Style};
pub(crate) use table::Table;
pub(crate) use text::{
    columns, cut, filled, filled_from_end, first_sentence, folded, harmless, spelled, word, wrap,
};

/// How much is said beside the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Warnings and summaries too.
    Usual,
    /// Nothing but the answer, errors, and what puts the answer in doubt.
    Quiet,
}

/// Standard output and standard error, and what they can show.
#[derive(Debug)]
pub(crate) struct Output {
    /// For the answer.
    pub(crate) out: Stream,
    /// For everything else.
    pub(crate) err: Stream,
    verbosity: Verbosity,
    /// What people were warned of.
    warned: BTreeSet<String>,
}

impl Output {
    /// The streams of this process.
    pub(crate) fn standard(
        colour: Colour,
        environment: &Environment,
        verbosity: Verbosity,
    ) -> Self {
        let colour = colour.or_from(environment);
        let stdout = io::stdout();
        let stderr = io::stderr();
        let (out_terminal, err_terminal) = (stdout.is_terminal(), stderr.is_terminal());
        let shows_unicode = environment.shows_unicode();
        let moves = !environment.is_dumb_terminal();
        Self {
            out: Stream::new(Box::new(io::BufWriter::new(stdout)))
                .colour(colour.applies(out_terminal))
                .terminal(out_terminal.then(|| width(&io::stdout())))
                .measured((out_terminal && moves).then_some(size_of_stdout as fn() -> Size))
                .unicode(shows_unicode),
            err: Stream::new(Box::new(stderr))
                .colour(colour.applies(err_terminal))
                .terminal(err_terminal.then(|| width(&io::stderr())))
                .measured((err_terminal && moves).then_some(size_of_stderr as fn() -> Size))
                .unicode(shows_unicode),
            verbosity,
            warned: BTreeSet::new(),
        }
    }

    /// Tells whether only the answer and errors are wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    /// Tells whether people were not warned of something yet. From now on they were.
    pub(crate) fn warns_first(&mut self, message: &str) -> bool {
        self.warned.insert(message.to_owned())
    }

    /// Writes a value as JSON, for programs.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.out.line(text),
            Err(error) => self.out.fail(error.into()),
        }
    }

    /// Writes a value as JSON on one line, for programs.
    pub(crate) fn json_line(&mut self, value: &impl serde::Serialize) {
        match serde_json::to_string(value) {
            Ok(text) => self.out.line(text),
            Err(error) => self.out.fail(error.into()),
        }
    }

    /// Hands over what was written, and says if some of it could not be.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.out.finish().and(self.err.finish())
    }

    /// Streams that keep what is written, without colour and terminal.
    #[cfg(test)]
    pub(crate) fn in_memory() -> Self {
        Self::of(Stream::in_memory(), Stream::in_memory())
    }

    /// These streams.
    #[cfg(test)]
    pub(crate) fn of(out: Stream, err: Stream) -> Self {
        Self { out, err, verbosity: Verbosity::Usual, warned: BTreeSet::new() }
    }
}

/// Returns how many columns a terminal has.
fn width(terminal: &impl std::os::fd::AsFd) -> usize {
    size(terminal).columns
}

/// Returns how large a terminal is, or how large they usually are.
fn size(terminal: &impl std::os::fd::AsFd) -> Size {
    let usual = Size::USUAL;
    rustix::termios::tcgetwinsize(terminal).map_or(usual, |size| {
        let or = |said: u16, usual| if said > 0 { said.into() } else { usual };
        Size { columns: or(size.ws_col, usual.columns), rows: or(size.ws_row, usual.rows) }
    })
}

fn size_of_stdout() -> Size {
    size(&io::stdout())
}

fn size_of_stderr() -> Size {
    size(&io::stderr())
}

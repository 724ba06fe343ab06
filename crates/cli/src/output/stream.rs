//! One stream of text, and what its other end can show.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use super::style::{Painted, Style};
use super::text::Printable;

/// How much room a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// From left to right.
    pub(crate) columns: usize,
    /// From top to bottom.
    pub(crate) rows: usize,
}

impl Size {
    /// What is assumed of a terminal that does not say.
    pub(super) const USUAL: Self = Self { columns: 80, rows: 24 };
}

/// A stream. Clones write to the same place.
#[derive(Clone)]
pub(crate) struct Stream {
    sink: Arc<Mutex<Sink>>,
    coloured: bool,
    width: Option<usize>,
    measure: Option<fn() -> Size>,
    unicode: bool,
}

struct Sink {
    writer: Box<dyn Write + Send>,
    state: io::Result<()>,
    #[cfg(test)]
    kept: Vec<u8>,
}

impl Stream {
    pub(super) fn new(writer: Box<dyn Write + Send>) -> Self {
        let sink = Sink {
            writer,
            state: Ok(()),
            #[cfg(test)]
            kept: Vec::new(),
        };
        Self {
            sink: Arc::new(Mutex::new(sink)),
            coloured: false,
            width: None,
            measure: None,
            unicode: false,
        }
    }

    pub(super) fn colour(mut self, coloured: bool) -> Self {
        self.coloured = coloured;
        self
    }

    pub(super) fn terminal(mut self, width: Option<usize>) -> Self {
        self.width = width;
        self
    }

    /// Says how large the terminal is at the moment. Only one that can move its cursor is measured.
    pub(super) fn measured(mut self, measure: Option<fn() -> Size>) -> Self {
        self.measure = measure;
        self
    }

    pub(super) fn unicode(mut self, unicode: bool) -> Self {
        self.unicode = unicode;
        self
    }

    /// Returns how many columns there are; nothing where it is not a terminal.
    pub(crate) const fn width(&self) -> Option<usize> {
        self.width
    }

    /// Returns how large the terminal is now, if it is one whose cursor can be moved. It may have
    /// changed since it was asked last.
    pub(crate) fn screen(&self) -> Option<Size> {
        self.measure.map(|measure| measure())
    }

    /// Returns how many columns there are now; nothing where it is not a terminal.
    pub(crate) fn width_now(&self) -> Option<usize> {
        self.screen().map(|size| size.columns).or(self.width)
    }

    /// Tells whether more than ASCII is shown.
    pub(crate) const fn shows_unicode(&self) -> bool {
        self.unicode
    }

    /// Tells whether a person looks at it.
    pub(crate) const fn is_terminal(&self) -> bool {
        self.width.is_some()
    }

    /// Tells whether colours are shown.
    pub(crate) const fn is_coloured(&self) -> bool {
        self.coloured
    }

    /// Returns what stands for text that was left out.
    pub(crate) const fn ellipsis(&self) -> &'static str {
        if self.unicode { "…" } else { "..." }
    }

    /// Writes text as it is.
    pub(crate) fn text(&self, text: impl Display) {
        self.with(|sink| sink.write(format_args!("{text}")));
    }

    /// Writes bytes of a program as they are.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        self.with(|sink| {
            if sink.state.is_ok() {
                let written = sink.writer.write_all(bytes);
                sink.note(written);
            }
        });
    }

    /// Writes a line.
    pub(crate) fn line(&self, text: impl Display) {
        self.with(|sink| sink.write(format_args!("{text}\n")));
    }

    /// Writes an empty line.
    pub(crate) fn gap(&self) {
        self.line("");
    }

    /// Tells whether nothing more can be written: whoever read it has gone, as a rule.
    pub(crate) fn is_gone(&self) -> bool {
        self.with(|sink| sink.state.is_err())
    }

    /// Hands over what was written so far.
    pub(crate) fn flush(&self) {
        self.with(|sink| {
            let flushed = sink.writer.flush();
            sink.note(flushed);
        });
    }

    /// Keeps an error, to be reported at the end.
    pub(crate) fn fail(&self, error: io::Error) {
        self.with(|sink| sink.note(Err(error)));
    }

    /// Hands over what was written, and says if some of it could not be. A reader that went away is
    /// not an error.
    pub(super) fn finish(&self) -> io::Result<()> {
        self.flush();
        self.with(|sink| match std::mem::replace(&mut sink.state, Ok(())) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                sink.state = Err(error);
                Ok(())
            }
            state => state,
        })
    }

    /// Returns a text that is coloured where the stream shows colours.
    pub(crate) fn paint<T: Display>(&self, style: Style, text: T) -> Painted<T> {
        Painted::new(style, text, self.coloured)
    }

    /// Returns a text from somewhere else: on a terminal its control characters are made visible, so
    /// that it cannot steer the terminal.
    pub(crate) const fn printable<'a>(&self, text: &'a str) -> Printable<'a> {
        Printable::new(text, self.is_terminal())
    }

    fn with<T>(&self, work: impl FnOnce(&mut Sink) -> T) -> T {
        work(&mut self.sink.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Sink {
    fn write(&mut self, text: fmt::Arguments<'_>) {
        if self.state.is_ok() {
            #[cfg(test)]
            self.kept.extend_from_slice(text.to_string().as_bytes());
            let written = self.writer.write_fmt(text);
            self.note(written);
        }
    }

    /// After the first error the stream is silent.
    fn note(&mut self, done: io::Result<()>) {
        if self.state.is_ok() {
            self.state = done;
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Stream")
            .field("coloured", &self.coloured)
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
impl Stream {
    /// A stream that keeps what is written.
    pub(crate) fn in_memory() -> Self {
        Self::new(Box::new(io::sink()))
    }

    /// The same on a coloured terminal of this width.
    pub(crate) fn on_terminal(width: usize) -> Self {
        Self::in_memory().terminal(Some(width)).colour(true).unicode(true)
    }

    /// The same without colour.
    pub(crate) fn without_colour(self) -> Self {
        self.colour(false)
    }

    /// The same on a terminal that shows nothing but ASCII.
    pub(crate) fn without_unicode(self) -> Self {
        self.unicode(false)
    }

    /// The same on a terminal whose cursor can be moved.
    pub(crate) fn with_screen(self, measure: fn() -> Size) -> Self {
        self.measured(Some(measure))
    }

    /// Returns what was written.
    pub(crate) fn contents(&self) -> String {
        self.with(|sink| String::from_utf8_lossy(&sink.kept).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_went_away_is_no_error_and_a_full_disk_is() {
        let gone = Stream::new(Box::new(Broken(io::ErrorKind::BrokenPipe)));
        gone.line("one");
        gone.line("two");
        assert!(gone.finish().is_ok());
        let full = Stream::new(Box::new(Broken(io::ErrorKind::StorageFull)));
        full.line("one");
        assert_eq!(full.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn terminals_are_not_steered_by_what_is_shown() {
        let text = "a\u{1b}[31mb\r\nc\td\u{7}";
        assert_eq!(Stream::in_memory().printable(text).to_string(), text);
        let shown = Stream::on_terminal(80).printable(text).to_string();
        assert_eq!(shown, "a\\u{1b}[31mb\nc\td\\u{7}");
    }
}

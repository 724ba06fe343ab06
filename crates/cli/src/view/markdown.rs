//! Markdown for a terminal.
//!
//! A text is cut into chunks at blank lines where nothing that comes later can change what stands
//! before, and each chunk is rendered by itself. That is what lets an answer appear while it is
//! written: [`MarkdownStream`] gives out the lines of a chunk as soon as it is complete and never
//! takes one back, and what it gives out is what [`render`] gives for the whole text.
//!
//! With colour, marks become styles; without, they stay, so that nothing is lost. Text is made harmless
//! before it is laid out. What cannot be laid out (a table in too few columns) is written plainly.

mod block;
mod inline;
mod stream;
mod table;
#[cfg(test)]
mod tests;

use crate::output::Stream;

pub(crate) use self::stream::MarkdownStream;

/// Longer lines are hard to read, however wide the terminal is.
const WIDEST_TEXT: usize = 100;
/// In fewer columns nothing can be laid out; lines are longer than the terminal then.
const NARROWEST_TEXT: usize = 20;
/// What is assumed where nobody says how wide the terminal is.
const USUAL_WIDTH: usize = 80;

/// Where a text is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    stream: &'a Stream,
    width: usize,
}

impl<'a> Page<'a> {
    /// A page as wide as the stream is now.
    pub(crate) fn of(stream: &'a Stream) -> Self {
        Self { stream, width: stream.width_now().unwrap_or(USUAL_WIDTH) }
    }

    /// Returns how many columns text has after a margin.
    fn room(&self, margin: usize) -> usize {
        self.width.min(WIDEST_TEXT).saturating_sub(margin).max(NARROWEST_TEXT)
    }
}

/// Returns the lines of a text.
pub(crate) fn render(text: &str, page: Page<'_>) -> Vec<String> {
    let mut stream = MarkdownStream::default();
    let mut lines = stream.push(text, page);
    lines.extend(stream.finish(page));
    lines
}

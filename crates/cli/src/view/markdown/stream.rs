//! Markdown that comes piece by piece.

use super::Page;
use super::block::{self, Definitions};

/// Beyond this much unfinished text, in bytes, the preview is not laid out.
const MAX_PREVIEW: usize = 32 * 1024;

/// Takes text as it comes and gives out the lines of every part that is complete.
///
/// A part ends at a blank line, outside of code, before a line that is not indented: whatever follows
/// cannot change it any more. Where parts end depends on the text alone, not on how it was split.
#[derive(Debug, Default)]
pub(crate) struct MarkdownStream {
    pending: String,
    /// Where the part begins that is not complete.
    start: usize,
    /// How far the text was looked at: whole lines.
    scanned: usize,
    after_blank: bool,
    fence: Option<Fence>,
    definitions: Definitions,
    /// Whether something was given out, so that a blank line comes first.
    gave: bool,
}

/// The fence that has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    letter: char,
    length: usize,
}

impl MarkdownStream {
    /// Adds text, and returns the lines that are complete now.
    pub(crate) fn push(&mut self, text: &str, page: Page<'_>) -> Vec<String> {
        self.pending.push_str(text);
        let mut lines = Vec::new();
        while let Some(rest) = self.pending.get(self.scanned..) {
            if self.after_blank && rest.starts_with(|letter: char| !letter.is_whitespace()) {
                lines.extend(self.give(self.scanned, page));
                continue;
            }
            let Some(end) = rest.find('\n') else { break };
            let line = rest.get(..end).unwrap_or_default();
            self.fence = Fence::after(self.fence, line);
            self.after_blank = self.fence.is_none() && line.trim().is_empty();
            self.scanned += end + 1;
        }
        self.pending.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        lines
    }

    /// Ends the text, and returns the lines that are left. What is pushed after that is another text.
    pub(crate) fn finish(&mut self, page: Page<'_>) -> Vec<String> {
        let lines = self.give(self.pending.len(), page);
        *self = Self::default();
        lines
    }

    /// Returns the lines of the part that is not complete, as they would be if the text ended here.
    pub(crate) fn preview(&self, page: Page<'_>) -> Vec<String> {
        if self.pending.trim().is_empty() || self.pending.len() > MAX_PREVIEW {
            return Vec::new();
        }
        block::render(&self.pending, page, &mut self.definitions.clone())
    }

    /// Tells whether there is text that was not finished.
    pub(crate) fn has_text(&self) -> bool {
        self.gave || !self.pending.is_empty()
    }

    /// Tells whether lines were given out since the text began.
    pub(crate) const fn gave_lines(&self) -> bool {
        self.gave
    }

    /// Lays out the part that ends here.
    fn give(&mut self, end: usize, page: Page<'_>) -> Vec<String> {
        let part = self.pending.get(self.start..end).unwrap_or_default();
        let mut lines = block::render(part, page, &mut self.definitions);
        self.start = end;
        self.after_blank = false;
        if self.gave && !lines.is_empty() {
            lines.insert(0, String::new());
        }
        self.gave |= !lines.is_empty();
        lines
    }
}

impl Fence {
    /// Returns the fence that is open after a line.
    fn after(open: Option<Self>, line: &str) -> Option<Self> {
        match open {
            Some(fence) if fence.is_closed_by(line) => None,
            Some(fence) => Some(fence),
            None => Self::opened_by(line),
        }
    }

    fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim_start_matches([' ', '\t', '>']);
        let rest = line.trim_start_matches(self.letter);
        let length = line.len() - rest.len();
        length >= self.length && rest.trim().is_empty()
    }

    /// A fence may stand in a list or a quotation. Taking something else for a fence is harmless: the
    /// part becomes longer, that is all.
    fn opened_by(line: &str) -> Option<Self> {
        let markers = |letter: char| letter.is_ascii_digit() || " \t>-*+.)".contains(letter);
        let line = line.trim_start_matches(markers);
        let letter = line.chars().next().filter(|letter| matches!(letter, '`' | '~'))?;
        let rest = line.trim_start_matches(letter);
        let length = line.len() - rest.len();
        (length >= 3 && !(letter == '`' && rest.contains('`'))).then_some(Self { letter, length })
    }
}

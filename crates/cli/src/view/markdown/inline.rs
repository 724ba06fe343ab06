//! Running text: words with styles, broken into lines.

use unicode_width::UnicodeWidthChar;

use crate::output::{Stream, Style, columns, harmless};

/// Punctuation that belongs to the letter before it, in scripts that are written without spaces.
const STICKS_TO_THE_LEFT: &str = "、。，．！？：；）］｝」』】〉》〕ー…";

/// A text that is being put together.
#[derive(Clone, Debug, Default)]
pub(super) struct Inline {
    words: Vec<Word>,
    open: Vec<Style>,
    before: Before,
}

/// What stands before a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    /// The word before it.
    #[default]
    Nothing,
    /// A space.
    Space,
    /// The end of a line.
    Break,
}

/// What stays together on a line.
#[derive(Clone, Debug)]
struct Word {
    before: Before,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    text: String,
    styles: Vec<Style>,
}

/// A line that is laid out.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(Vec<Piece>);

impl Inline {
    /// Adds text from somewhere else.
    pub(super) fn text(&mut self, text: &str) {
        for letter in harmless(text).chars() {
            if letter.is_whitespace() && letter != '\u{a0}' {
                self.space();
            } else {
                self.letter(letter);
            }
        }
    }

    /// Adds a space, unless there is one.
    pub(super) fn space(&mut self) {
        if self.before == Before::Nothing {
            self.before = Before::Space;
        }
    }

    /// Ends the line.
    pub(super) fn line_break(&mut self) {
        self.before = Before::Break;
    }

    /// What follows has this style as well.
    pub(super) fn begin(&mut self, style: Style) {
        self.open.push(style);
    }

    /// What follows has it no longer.
    pub(super) fn end(&mut self) {
        self.open.pop();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns what it says, without styles.
    pub(super) fn plain(&self) -> String {
        self.lines(usize::MAX, Long::Whole).iter().map(Line::plain).collect::<Vec<_>>().join(" ")
    }

    fn letter(&mut self, letter: char) {
        let before = std::mem::take(&mut self.before);
        let joins = before == Before::Nothing
            && self.words.last().is_some_and(|word| !word.breaks_before(letter));
        if !joins {
            self.words.push(Word { before, pieces: Vec::new() });
        }
        let Some(word) = self.words.last_mut() else { return };
        match word.pieces.last_mut() {
            Some(piece) if piece.styles == self.open => piece.text.push(letter),
            _ => word.pieces.push(Piece { text: letter.into(), styles: self.open.clone() }),
        }
    }

    /// Breaks it into lines of at most `width` columns.
    pub(super) fn lines(&self, width: usize, long: Long) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        let mut taken = 0;
        for word in self.words.iter().flat_map(|word| word.split(width, long)) {
            let space = usize::from(word.before == Before::Space);
            let needed = word.columns();
            let fits = taken + space + needed <= width || taken == 0;
            let goes_on = fits && word.before != Before::Break;
            if let Some(line) = lines.last_mut().filter(|_| goes_on) {
                taken += line.push(word);
            } else {
                let mut line = Line::default();
                line.push(Word { before: Before::Nothing, ..word });
                lines.push(line);
                taken = needed;
            }
        }
        lines
    }

    /// Returns how many columns it takes if it is not broken.
    pub(super) fn columns(&self) -> usize {
        self.lines(usize::MAX, Long::Whole).iter().map(Line::columns).max().unwrap_or_default()
    }
}

/// What happens to a word that is longer than a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Long {
    /// It stays whole, so that an address can be copied.
    Whole,
    /// It is broken anywhere.
    Broken,
}

impl Word {
    fn columns(&self) -> usize {
        self.pieces.iter().map(|piece| columns(&piece.text)).sum()
    }

    /// Tells whether a line may end between this word and a letter that follows it without a space:
    /// where scripts without spaces are written.
    fn breaks_before(&self, letter: char) -> bool {
        let last = self.pieces.last().and_then(|piece| piece.text.chars().next_back());
        let wide = |letter: char| letter.width() == Some(2);
        (wide(letter) || last.is_some_and(wide)) && !STICKS_TO_THE_LEFT.contains(letter)
    }

    fn split(&self, width: usize, long: Long) -> Vec<Self> {
        if long == Long::Whole || self.columns() <= width {
            return vec![self.clone()];
        }
        let mut parts = vec![Self { before: self.before, pieces: Vec::new() }];
        let mut taken = 0;
        for piece in &self.pieces {
            for letter in piece.text.chars() {
                let needed = letter.width().unwrap_or_default();
                if taken + needed > width && taken > 0 {
                    parts.push(Self { before: Before::Break, pieces: Vec::new() });
                    taken = 0;
                }
                taken += needed;
                let Some(part) = parts.last_mut() else { continue };
                match part.pieces.last_mut() {
                    Some(last) if last.styles == piece.styles => last.text.push(letter),
                    _ => {
                        let styles = piece.styles.clone();
                        part.pieces.push(Piece { text: letter.into(), styles });
                    }
                }
            }
        }
        parts
    }
}

impl Line {
    /// Adds a word and returns how many columns it took.
    fn push(&mut self, word: Word) -> usize {
        let before = self.columns();
        let next = word.pieces.first().map(|piece| piece.styles.clone()).unwrap_or_default();
        if word.before == Before::Space && !self.0.is_empty() {
            match self.0.last_mut() {
                Some(last) if last.styles == next => last.text.push(' '),
                _ => self.0.push(Piece { text: " ".into(), styles: Vec::new() }),
            }
        }
        for piece in word.pieces {
            match self.0.last_mut() {
                Some(last) if last.styles == piece.styles => last.text.push_str(&piece.text),
                _ => self.0.push(piece),
            }
        }
        self.columns() - before
    }

    pub(super) fn columns(&self) -> usize {
        self.0.iter().map(|piece| columns(&piece.text)).sum()
    }

    pub(super) fn plain(&self) -> String {
        self.0.iter().map(|piece| piece.text.as_str()).collect()
    }

    pub(super) fn paint(&self, stream: &Stream) -> String {
        let paint = |piece: &Piece| {
            piece
                .styles
                .iter()
                .rev()
                .fold(piece.text.clone(), |text, style| stream.paint(*style, text).to_string())
        };
        self.0.iter().map(paint).collect()
    }
}

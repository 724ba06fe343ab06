//! Hides secrets in a text that comes in pieces.
//!
//! The pieces that go out are, one after the other, what hiding the whole text would give. What may be
//! the beginning of a secret is held back until it is one or is none; that is never more than the longest
//! secret that is known, or the longest that a shape allows.

use super::escape::{self, Answer};
use super::shape::{self, End, LOOKS_BACK, Step};
use super::{Secrets, Span};

/// The columns of a dump are counted from the beginning of their line, unless it is longer.
const LONGEST_LINE: usize = 512;

/// Hides secrets in one text that comes in pieces.
#[derive(Clone, Debug)]
pub struct Masker {
    secrets: Secrets,
    known: Held,
    escaped: Held,
    shapes: Held,
}

/// What was taken in and may be needed.
#[derive(Clone, Default)]
struct Held {
    text: String,
    /// So much of it went out already.
    done: usize,
}

impl Masker {
    pub(super) fn new(secrets: Secrets) -> Self {
        Self { secrets, known: Held::default(), escaped: Held::default(), shapes: Held::default() }
    }

    /// Takes a piece and returns what can be shown by now.
    pub fn push(&mut self, piece: &str) -> String {
        self.advance(piece, End::Later)
    }

    /// Returns the rest: nothing more comes.
    pub fn finish(&mut self) -> String {
        self.advance("", End::Here)
    }

    fn advance(&mut self, piece: &str, end: End) -> String {
        let Self { secrets, known, escaped, shapes } = self;
        let (mut without_known, mut without_escaped) = (String::new(), String::new());
        let mut without_any = String::new();
        known.advance(piece, &mut without_known, |text, from| secrets.next_known(text, from, end));
        escaped.advance(&without_known, &mut without_escaped, |text, from| {
            secrets.next_escaped(text, from, end)
        });
        shapes.advance(&without_escaped, &mut without_any, |text, from| {
            secrets.next_shaped(text, from, end)
        });
        without_any
    }
}

impl Held {
    fn advance(&mut self, piece: &str, out: &mut String, next: impl Fn(&str, usize) -> Step<Span>) {
        self.text.push_str(piece);
        self.done = pass(&self.text, self.done, out, next);
        let keep = self.text.floor_char_boundary(self.done.saturating_sub(LOOKS_BACK));
        let line =
            self.text.get(..keep).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let keep = if keep - line <= LONGEST_LINE { line } else { keep };
        self.text.drain(..keep);
        self.done -= keep;
    }
}

/// Copies a text with names in the place of secrets, from a place on, and returns how far that goes.
pub(super) fn pass(
    text: &str,
    from: usize,
    out: &mut String,
    next: impl Fn(&str, usize) -> Step<Span>,
) -> usize {
    let mut done = from;
    loop {
        let (upto, name, go_on_at) = match next(text, done) {
            Step::Found(Span { start, end, name }) => (start, Some(name), end),
            Step::Open(at) => (at, None, at),
            Step::Clear => (text.len(), None, text.len()),
        };
        out.push_str(text.get(done..upto).unwrap_or_default());
        done = go_on_at;
        match name {
            Some(name) => out.push_str(&name),
            None => return done,
        }
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // It may be a secret.
        formatter.debug_struct("Held").field("done", &self.done).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Finds the first token with a known shape.
    pub(super) fn next_shaped(&self, text: &str, from: usize, end: End) -> Step<Span> {
        match shape::next(text, from, end) {
            Step::Clear => Step::Clear,
            Step::Open(at) => Step::Open(at),
            Step::Found(token) => {
                let (start, end) = (token.span.start, token.span.end);
                let value = text.get(token.span).unwrap_or_default();
                let name = self.0.found.name(token.kind, token.tag, value);
                Step::Found(Span { start, end, name })
            }
        }
    }

    /// Finds the first of the values that are known, in a form of its own or laid out in a dump.
    pub(super) fn next_known(&self, text: &str, from: usize, end: End) -> Step<Span> {
        let Some(known) = &self.0.known else { return Step::Clear };
        let open = match end {
            End::Here => None,
            End::Later => known.finder.find_beginning(text.as_bytes(), from, |_, _| true),
        };
        let mut place = from;
        while let Some(found) = known.finder.find(text.as_bytes(), place) {
            if open.is_some_and(|open| open <= found.start) {
                break;
            }
            match known.span(text, found, end) {
                Step::Found(span) => {
                    return Step::Found(Span { start: span.start.max(from), ..span });
                }
                Step::Open(at) => return Step::Open(at),
                Step::Clear => place = found.start + 1,
            }
        }
        open.map_or(Step::Clear, Step::Open)
    }

    /// Finds the first of the values that are known behind escapes.
    pub(super) fn next_escaped(&self, text: &str, from: usize, end: End) -> Step<Span> {
        let Some(known) = &self.0.known else { return Step::Clear };
        let is_form = |word| known.is_form(word);
        match escape::next(text, from, end, &known.finder, known.longest, is_form) {
            Answer::Clear => Step::Clear,
            Answer::Open(at) => Step::Open(at),
            Answer::Found(escaped) => {
                let name = known.encoded_name(escaped.word).to_owned();
                Step::Found(Span { start: escaped.span.start, end: escaped.span.end, name })
            }
        }
    }
}

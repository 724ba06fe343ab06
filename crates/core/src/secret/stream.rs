//! Hides secrets in a text that comes in pieces.
//!
//! The pieces that go out are, one after the other, what hiding the whole text would give. What may be
//! the beginning of a secret is held back until it is one or is none; that is never more than the longest
//! secret that is known, or the longest that a shape allows.

use super::shape::{self, End, LOOKS_BACK, Step};
use super::{Secrets, Span};

/// Hides secrets in one text that comes in pieces.
#[derive(Clone, Debug)]
pub struct Masker {
    secrets: Secrets,
    known: Held,
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
        Self { secrets, known: Held::default(), shapes: Held::default() }
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
        let Self { secrets, known, shapes } = self;
        let (mut without_known, mut without_any) = (String::new(), String::new());
        known.advance(piece, &mut without_known, |text, from| secrets.next_known(text, from, end));
        shapes.advance(&without_known, &mut without_any, |text, from| {
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

    /// Finds the first of the values that are known.
    pub(super) fn next_known(&self, text: &str, from: usize, end: End) -> Step<Span> {
        let Some(known) = &self.0.known else { return Step::Clear };
        let open = match end {
            End::Here => None,
            End::Later => known.finder.find_beginning(text, from, |_, _| true),
        };
        match known.finder.find(text, from) {
            Some(found) if open.is_none_or(|open| found.start < open) => {
                let name = known.name(found.word).to_owned();
                Step::Found(Span { start: found.start, end: found.end, name })
            }
            _ => open.map_or(Step::Clear, Step::Open),
        }
    }
}

//! What happens, on a terminal somebody watches.
//!
//! What ended is printed once and scrolls up like any other text. Below it stands a small region, drawn
//! again in place up to ten times a second: what the model says, what runs, and a line of numbers.
//! Nothing above the region is ever touched, the cursor is never hidden, and when the view ends, for
//! whatever reason, the region is gone and the next line is empty.
//!
//! What the model says is printed as it becomes complete, to standard output if that is the same
//! terminal. Where standard output goes elsewhere, remarks go to standard error, and the answer is left
//! to whoever ends the view.

mod footer;
mod lines;
mod region;
mod screen;
#[cfg(test)]
pub(super) mod terminal;

use std::time::Duration;

use convoke_core::{RunId, Timestamp};

use self::screen::{Cursor, Screen};
use super::Detail;
use super::look::Look;
use super::markdown::{MarkdownStream, Page, render};
use super::tree::{Entry, Said, Tree, Weight, Who, between};
use crate::output::{Size, Stream, Style};

/// How often the region is drawn, at most.
const FRAME: Duration = Duration::from_millis(100);
/// How many lines of unfinished text are shown.
const MAX_PREVIEW: usize = 6;

/// A view that is drawn again and again.
#[derive(Debug)]
pub(crate) struct Live {
    err: Stream,
    /// Where the model's words go, if a person sees them there.
    out: Option<Stream>,
    detail: Detail,
    /// What is printed with the next frame.
    above: Vec<Above>,
    words: MarkdownStream,
    /// What was printed last, so that different things are set apart.
    last: Option<Printed>,
    /// The subagent that was printed last.
    speaker: Option<RunId>,
    screen: Screen,
    drawn: Option<Timestamp>,
    is_paused: bool,
    /// What a person types meanwhile, if one may.
    typed: Option<Typed>,
}

/// What a person types while a run works.
#[derive(Debug, Default)]
pub(super) struct Typed {
    /// Messages that wait until the run listens.
    pub(super) waiting: Vec<String>,
    /// What is not complete yet.
    pub(super) draft: String,
}

/// A line that is to be printed, and where.
#[derive(Debug)]
enum Above {
    /// The model's own words.
    Out(String),
    /// Everything else.
    Err(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Printed {
    Words,
    Entries,
    /// What the person said.
    Message,
}

impl Live {
    /// Draws on `err`, and prints what the model says to `out`, if that is a terminal too.
    pub(crate) fn new(err: Stream, out: Option<Stream>, detail: Detail) -> Self {
        Self {
            err,
            out,
            detail,
            above: Vec::new(),
            words: MarkdownStream::default(),
            last: None,
            speaker: None,
            screen: Screen::default(),
            drawn: None,
            is_paused: false,
            typed: None,
        }
    }

    /// Shows what a person types, at once.
    pub(crate) fn typed(&mut self, waiting: Vec<String>, draft: &str) {
        self.typed = Some(Typed { waiting, draft: draft.to_owned() });
        self.drawn = None;
    }

    /// Prints a message of the person where the run took it in.
    pub(crate) fn heard(&mut self, message: &str) {
        self.end_words();
        if self.last.is_some() {
            self.above.push(Above::Err(String::new()));
        }
        self.last = Some(Printed::Message);
        self.above.extend(super::message::message(message, &self.err).into_iter().map(Above::Err));
    }

    /// Tells whether nothing was printed yet.
    pub(crate) const fn is_fresh(&self) -> bool {
        self.last.is_none()
    }

    /// Tells whether the model's words are shown while they come.
    pub(crate) const fn shows_words(&self) -> bool {
        self.out.is_some()
    }

    /// Takes in what there is to tell, as far as it is wanted.
    pub(crate) fn tell(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            let wanted = entry.weight >= Weight::Usual || self.detail == Detail::Verbose;
            match &entry.said {
                _ if !wanted => {}
                // They were shown while they came.
                Said::Words(_) if entry.who.depth == 0 && self.shows_words() => {}
                Said::Words(words) if entry.who.depth == 0 => {
                    let lines = render(words, Page::of(&self.err));
                    self.print(Printed::Words, lines.into_iter().map(Above::Err));
                }
                _ => self.tell_one(&entry),
            }
        }
    }

    fn tell_one(&mut self, entry: &Entry) {
        let mut lines = Vec::new();
        if self.changes_speaker(entry) {
            lines.push(lines::speaker(&entry.who, &self.err));
        }
        lines.extend(lines::lines(entry, self.detail, &self.err));
        self.print(Printed::Entries, lines.into_iter().map(Above::Err));
    }

    /// Tells whether it has to be said who speaks: several subagents may speak in turns.
    fn changes_speaker(&mut self, entry: &Entry) -> bool {
        let Who { run, depth, .. } = &entry.who;
        let speaker = (*depth > 0).then(|| run.clone());
        let names_itself = matches!(entry.said, Said::Begins { .. } | Said::Ends { .. });
        let changed = speaker.is_some() && speaker != self.speaker && !names_itself;
        self.speaker = speaker.filter(|_| !matches!(entry.said, Said::Ends { .. }));
        changed
    }

    /// The model goes on speaking.
    pub(crate) fn hear(&mut self, text: &str) {
        let Some(out) = &self.out else { return };
        let lines = self.words.push(text, Page::of(out));
        self.print_words(lines);
    }

    /// The model has spoken.
    pub(crate) fn end_words(&mut self) {
        let Some(out) = &self.out else { return };
        let lines = self.words.finish(Page::of(out));
        self.print_words(lines);
    }

    /// Tells whether the model is in the middle of saying something.
    pub(crate) fn hears(&self) -> bool {
        self.words.has_text()
    }

    fn print_words(&mut self, lines: Vec<String>) {
        self.print(Printed::Words, lines.into_iter().map(Above::Out));
    }

    fn print(&mut self, kind: Printed, lines: impl Iterator<Item = Above>) {
        let mut lines = lines.peekable();
        if lines.peek().is_none() {
            return;
        }
        if self.last.is_some_and(|last| last != kind) {
            self.above.push(Above::Err(String::new()));
        }
        self.last = Some(kind);
        if kind == Printed::Words {
            self.speaker = None;
        }
        self.above.extend(lines);
    }

    /// Draws what is new, unless that was done a moment ago.
    pub(crate) fn draw(&mut self, tree: &Tree, now: Timestamp) {
        let recent = |drawn: Timestamp| drawn <= now && between(drawn, now) < FRAME;
        if self.is_paused || self.drawn.is_some_and(recent) {
            return;
        }
        self.drawn = Some(now);
        let Some(size) = self.err.screen() else { return };
        let preview = self.preview(size);
        let footer = footer::footer(self.typed.as_ref(), size, &self.err);
        let cursor = if footer.is_empty() { Cursor::Below } else { Cursor::AtTheEnd };
        let room = Size { rows: size.rows.saturating_sub(footer.len()), ..size };
        let mut region = region::region(tree, now, room, &preview, self.detail, &self.err);
        region.extend(footer);
        self.print_above(size);
        self.err.text(self.screen.frame(&region, cursor, size));
        self.err.flush();
    }

    /// Takes the region away, so that somebody else can write to the terminal.
    pub(crate) fn pause(&mut self) {
        self.take_away();
        self.is_paused = true;
    }

    /// Draws again.
    pub(crate) fn go_on(&mut self) {
        self.is_paused = false;
        self.drawn = None;
    }

    /// Makes sure that what somebody else prints next is set apart from what happened.
    pub(crate) fn set_apart(&mut self) {
        self.clear();
        if self.last == Some(Printed::Entries) {
            self.err.gap();
            self.err.flush();
        }
        self.last = Some(Printed::Words);
    }

    /// Returns the signs of its terminal.
    pub(crate) const fn look(&self) -> Look {
        Look::of(&self.err)
    }

    /// Prints a last line, set apart from what is above it, and leaves.
    pub(crate) fn close(&mut self, summary: &str) {
        self.clear();
        if self.last.is_some() {
            self.err.gap();
        }
        self.err.line(self.err.paint(Style::Dim, summary));
        self.err.flush();
    }

    /// Prints everything there is and takes the region away.
    pub(crate) fn clear(&mut self) {
        self.end_words();
        self.take_away();
    }

    fn take_away(&mut self) {
        let Some(size) = self.err.screen() else { return };
        self.print_above(size);
        self.err.text(self.screen.erase(size));
        self.err.flush();
    }

    /// Prints what is to stand above the region, in its place.
    fn print_above(&mut self, size: Size) {
        if self.above.is_empty() {
            return;
        }
        let mut frame = self.screen.erase(size);
        for line in std::mem::take(&mut self.above) {
            match (line, &self.out) {
                (Above::Out(line), Some(out)) => {
                    self.err.text(std::mem::take(&mut frame));
                    self.err.flush();
                    out.line(line);
                    out.flush();
                }
                (Above::Out(line) | Above::Err(line), _) => {
                    frame.push_str(&line);
                    frame.push('\n');
                }
            }
        }
        self.err.text(frame);
    }

    /// Returns the last lines of what the model is saying.
    fn preview(&self, size: Size) -> Vec<String> {
        let Some(out) = &self.out else { return Vec::new() };
        let mut lines = self.words.preview(Page::of(out));
        let most = MAX_PREVIEW.min(size.rows / 2);
        lines.drain(..lines.len().saturating_sub(most));
        let apart = self.words.gave_lines() || self.last == Some(Printed::Entries);
        if apart && !lines.is_empty() {
            lines.insert(0, String::new());
        }
        lines
    }
}

/// Also where a run breaks off, the terminal is left clean.
impl Drop for Live {
    fn drop(&mut self) {
        if !self.is_paused {
            self.clear();
        }
    }
}

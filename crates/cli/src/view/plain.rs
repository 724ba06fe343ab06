//! What happens, one line each, where nobody watches a terminal: a log.

use super::Detail;
use super::amounts;
use super::brief::some_lines;
use super::diff::diff;
use super::ending::of_agent;
use super::look::{Look, Sign};
use super::tree::{CallEnd, End, Entry, Said, Weight};
use crate::output::{Stream, Style, first_sentence};

/// How many lines of an argument, a thought or a diff are shown.
const MAX_LINES: usize = 60;

/// Writes lines that stay.
#[derive(Debug)]
pub(crate) struct Plain {
    stream: Stream,
    detail: Detail,
}

impl Plain {
    pub(crate) const fn new(stream: Stream, detail: Detail) -> Self {
        Self { stream, detail }
    }

    /// Writes what there is to tell, as far as it is wanted.
    pub(crate) fn tell(&self, entries: &[Entry]) {
        let wanted = |entry: &&Entry| match self.detail {
            Detail::Quiet => entry.weight >= Weight::Warning,
            Detail::Usual => entry.weight >= Weight::Passing,
            Detail::Verbose => true,
        };
        entries.iter().filter(wanted).for_each(|entry| self.entry(entry));
    }

    /// Writes a last line.
    pub(crate) fn close(&self, summary: &str) {
        if self.detail != Detail::Quiet {
            self.stream.line(summary);
        }
    }

    fn entry(&self, entry: &Entry) {
        let who = match entry.who.depth {
            0 => String::new(),
            _ => format!("[{}] ", entry.who.label),
        };
        match &entry.said {
            Said::Call(call) => self.call(&who, call),
            Said::Begins { task } => self.stream.line(format_args!("{who}begins: {task}")),
            Said::Ends { cause, message, turns, usage, duration, .. } => {
                let how = of_agent(*cause);
                let facts = amounts::facts(*turns, usage, *duration, self.look());
                let message = message.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
                self.stream.line(format_args!("{who}{how}, {facts}{message}"));
            }
            Said::Words(words) => self.words(&who, words),
            Said::Note(note) => self.note(&who, entry.weight, note),
            Said::Block { title, text } => {
                self.note(&who, entry.weight, &format!("{title}:"));
                self.lines(some_lines(text, MAX_LINES, self.look()));
            }
            Said::Answered { usage, duration } => {
                let look = self.look();
                let time = amounts::time(*duration);
                let facts = look.joined([Some(amounts::usage(usage, look)), Some(time)]);
                self.stream.line(format_args!("{who}model answered: {facts}"));
            }
        }
    }

    fn call(&self, who: &str, call: &CallEnd) {
        let what = format!("{} {}", call.name, call.summary);
        let (what, more) = (what.trim_end(), self.look().sign(Sign::More));
        let (word, style) = match call.end {
            End::Ok => ("ok", Style::Good),
            End::Failed => ("failed", Style::Bad),
            End::Denied => ("denied", Style::Bad),
        };
        let word = self.stream.paint(style, word);
        let time = match call.end {
            End::Denied => String::new(),
            End::Ok | End::Failed => format!(" {}", amounts::time(call.duration)),
        };
        let remark = match (&call.remark, call.end) {
            (None, _) => String::new(),
            (Some(remark), End::Ok) => format!(" ({remark})"),
            (Some(remark), End::Failed | End::Denied) => format!(": {remark}"),
        };
        self.stream.line(format_args!("{who}{what} {more} {word}{time}{remark}"));
        if let (Some(text), Detail::Verbose) = (&call.diff, self.detail) {
            self.lines(diff(text, MAX_LINES, &self.stream));
        }
    }

    /// A log wants to know what is going on, not every word of it.
    fn words(&self, who: &str, words: &str) {
        match self.detail {
            Detail::Verbose => {
                self.stream.line(format_args!("{who}says:"));
                self.lines(some_lines(words.trim(), MAX_LINES, self.look()));
            }
            Detail::Quiet | Detail::Usual => {
                let sentence = super::brief::one_line(first_sentence(words), 200);
                self.stream.line(format_args!("{who}says: {sentence}"));
            }
        }
    }

    fn note(&self, who: &str, weight: Weight, note: &str) {
        match weight {
            Weight::Error => {
                self.stream.line(format_args!("{} {who}{note}", self.label(Style::Bad, "error:")));
            }
            Weight::Caution | Weight::Warning => {
                let label = self.label(Style::Warn, "warning:");
                self.stream.line(format_args!("{label} {who}{note}"));
            }
            Weight::Detail | Weight::Passing | Weight::Usual => {
                self.stream.line(format_args!("{who}{note}"));
            }
        }
    }

    fn label(&self, style: Style, label: &str) -> String {
        self.stream.paint(style, label).to_string()
    }

    fn lines(&self, lines: Vec<String>) {
        for line in lines {
            self.stream.line(format_args!("  {line}"));
        }
    }

    /// Returns the signs of its stream.
    pub(crate) const fn look(&self) -> Look {
        Look::of(&self.stream)
    }
}

//! A line of what happened.

use std::time::Duration;

use convoke::journal::timeline::Span;
use serde::Serialize;

use crate::output::{Stream, Style, harmless};
use crate::view::amounts;
use crate::view::brief::some_lines;
use crate::view::diff::diff;
use crate::view::look::{Look, Sign};

/// How many lines of an argument, a result or a change are shown.
const MOST_LINES: usize = 60;

/// Something that happened, ready to be shown. All of its texts are harmless.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The number of the event that began it; nothing for what is in no single event.
    pub(super) seq: Option<u64>,
    /// Which agent, in the order in which they appeared.
    pub(super) agent: usize,
    /// How far it stands to the right.
    pub(super) indent: usize,
    /// When.
    pub(super) span: Span,
    /// What its bar shows, if it has one.
    pub(super) bar: Option<Span>,
    /// What kind of thing it is, for programs.
    pub(super) kind: &'static str,
    /// How it went.
    pub(super) sign: Sign,
    /// The colour that says the same.
    pub(super) style: Option<Style>,
    /// What it is called.
    pub(super) name: String,
    /// What it is about; gives way where there is no room.
    pub(super) about: String,
    /// What it used, and how long it took.
    pub(super) facts: Vec<String>,
    /// The beginning of what was said; in full it is one of the details.
    pub(super) said: Option<String>,
    /// What else is worth a line.
    pub(super) notes: Vec<String>,
    /// What is only shown in full.
    pub(super) details: Vec<Detail>,
}

/// Something longer.
#[derive(Clone, Debug)]
pub(super) struct Detail {
    /// What it is.
    pub(super) title: &'static str,
    /// The text, as it came.
    pub(super) text: String,
    /// Whether it is a change.
    pub(super) is_diff: bool,
}

impl Row {
    /// Something of which nothing is said yet.
    pub(super) const fn new(
        kind: &'static str,
        seq: Option<u64>,
        agent: usize,
        span: Span,
    ) -> Self {
        Self {
            seq,
            agent,
            indent: 0,
            span,
            bar: None,
            kind,
            sign: Sign::Note,
            style: None,
            name: String::new(),
            about: String::new(),
            facts: Vec::new(),
            said: None,
            notes: Vec::new(),
            details: Vec::new(),
        }
    }

    /// It is called so.
    pub(super) fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// It is about this.
    pub(super) fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }

    /// It went so.
    pub(super) const fn went(mut self, sign: Sign, style: Option<Style>) -> Self {
        self.sign = sign;
        self.style = style;
        self
    }

    /// It took this long, or has not ended.
    pub(super) fn took(mut self, span: Span) -> Self {
        self.bar = Some(span);
        let open = if span.open { " and not finished" } else { "" };
        self.facts.push(format!("{}{open}", amounts::time(span.duration)));
        self
    }

    /// Something longer belongs to it.
    pub(super) fn detail(&mut self, title: &'static str, text: impl Into<String>) {
        let text = text.into();
        if !text.trim().is_empty() {
            self.details.push(Detail { title, text, is_diff: false });
        }
    }

    /// A change belongs to it.
    pub(super) fn change(&mut self, title: &'static str, text: &str) {
        self.details.push(Detail { title, text: text.to_owned(), is_diff: true });
    }
}

impl Detail {
    /// Returns its lines, no more than can be read.
    pub(super) fn lines(&self, stream: &Stream) -> Vec<String> {
        if self.is_diff {
            diff(&self.text, MOST_LINES, stream)
        } else {
            some_lines(self.text.trim_end(), MOST_LINES, Look::of(stream))
        }
    }

    /// Tells whether some of it is not shown.
    pub(super) fn is_cut(&self) -> bool {
        self.text.trim_end().lines().nth(MOST_LINES).is_some()
    }
}

/// A row as programs read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Told<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    agent: &'r str,
    kind: &'static str,
    /// From the first event on.
    offset_ms: u64,
    duration_ms: u64,
    /// Whether nothing says that it ended.
    open: bool,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<&'r str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'r [String],
}

impl<'r> Told<'r> {
    /// What a row says.
    pub(super) fn of(row: &'r Row, agent: &'r str) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let parts = [row.name.as_str(), row.about.as_str()];
        let text: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        Self {
            seq: row.seq,
            agent,
            kind: row.kind,
            offset_ms: millis(row.span.start),
            duration_ms: millis(row.span.duration),
            open: row.span.open,
            text: harmless(&text.join(" ")),
            said: row.said.as_deref(),
            notes: &row.notes,
        }
    }
}

//! Something to tell: what ended, or was worth a word.

use std::time::Duration;

use convoke_core::{Cause, RunId, Usage};

/// Something to tell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Who it is about.
    pub(crate) who: Who,
    /// How much it matters.
    pub(crate) weight: Weight,
    /// What.
    pub(crate) said: Said,
}

/// An agent, as people tell it from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    /// Its run.
    pub(crate) run: RunId,
    /// Its name, with a number where several have the same.
    pub(crate) label: String,
    /// How many agents are above it.
    pub(crate) depth: usize,
}

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// For those who want to know everything.
    Detail,
    /// Of interest while it lasts: where a live view shows it, nothing remains of it.
    Passing,
    /// For everybody.
    Usual,
    /// Worth a look while it lasts; the end of the run says what came of it.
    Caution,
    /// Also for those who want the answer alone: it puts the answer in doubt.
    Warning,
    /// Something went wrong.
    Error,
}

/// What there is to tell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    /// A call ended.
    Call(CallEnd),
    /// A subagent began.
    Begins {
        /// What it was asked to do.
        task: String,
    },
    /// A subagent ended.
    Ends {
        /// Why.
        cause: Cause,
        /// Whether it gave an answer all the same.
        recovered: bool,
        /// What went wrong, in words.
        message: Option<String>,
        /// How many turns it took.
        turns: u32,
        /// What it used.
        usage: Usage,
        /// How long it took.
        duration: Duration,
    },
    /// The model said something beside its calls, as Markdown.
    Words(String),
    /// A remark on one line.
    Note(String),
    /// A remark, and lines below it. These are as they came: they are made safe where they are shown.
    Block {
        /// What the lines are.
        title: String,
        /// The lines.
        text: String,
    },
    /// What one answer of a model used.
    Answered {
        /// What.
        usage: Usage,
        /// How long it took.
        duration: Duration,
    },
}

/// A call that ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallEnd {
    /// The tool.
    pub(crate) name: String,
    /// What it was about.
    pub(crate) summary: String,
    /// How it ended.
    pub(crate) end: End,
    /// How long it took.
    pub(crate) duration: Duration,
    /// What came of it, or what went wrong.
    pub(crate) remark: Option<String>,
    /// What it changed, as it came: it is made safe where it is shown.
    pub(crate) diff: Option<String>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It worked.
    Ok,
    /// It did not.
    Failed,
    /// It was not allowed.
    Denied,
}

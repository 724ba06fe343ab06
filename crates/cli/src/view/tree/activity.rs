//! What a model does at the moment.

use std::time::Duration;

use convoke_core::{Purpose, Timestamp};

use super::between;
use crate::view::amounts;
use crate::view::brief::one_line;

/// How much of a line that is being written is kept, in bytes.
const MAX_LINE: usize = 1024;

/// What a model does at the moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Activity {
    /// Nothing.
    #[default]
    None,
    /// It cannot be asked before other agents have given back what they set aside.
    AwaitsBudget,
    /// It was asked and has not said anything.
    Asked(Purpose),
    /// It thinks.
    Thinking(Tail),
    /// It writes an answer.
    Writing(Tail),
    /// It writes a call of a tool.
    Calling(String),
    /// It did not answer and is asked again.
    Retrying {
        /// When.
        at: Timestamp,
        /// Which attempt it will be.
        attempt: u32,
        /// Why.
        reason: String,
    },
}

impl Activity {
    /// Returns it in words, if the model does anything.
    pub(crate) fn words(&self, now: Timestamp) -> Option<String> {
        let words = match self {
            Self::None => return None,
            Self::AwaitsBudget => "waiting for budget that other agents hold".to_owned(),
            Self::Asked(Purpose::Main) => "waiting for the model".to_owned(),
            Self::Asked(Purpose::Grace) => "asked for a last answer".to_owned(),
            Self::Asked(Purpose::Compact) => "summing up the conversation".to_owned(),
            Self::Asked(Purpose::Reflect) => "looking back".to_owned(),
            Self::Asked(Purpose::Plan) => "making a plan".to_owned(),
            Self::Thinking(_) => "thinking".to_owned(),
            Self::Writing(_) => "writing".to_owned(),
            Self::Calling(tool) => format!("calling {tool}"),
            Self::Retrying { at, attempt, reason } => retry(between(now, *at), *attempt, reason),
        };
        Some(words)
    }

    /// Returns the end of what it thinks or writes.
    pub(crate) fn tail(&self) -> Option<&Tail> {
        match self {
            Self::Thinking(tail) | Self::Writing(tail) => Some(tail),
            _ => None,
        }
    }

    /// It thinks on.
    pub(super) fn think(&mut self, text: &str) {
        if !matches!(self, Self::Thinking(_)) {
            *self = Self::Thinking(Tail::default());
        }
        if let Self::Thinking(tail) = self {
            tail.push(text);
        }
    }

    /// It writes on.
    pub(super) fn write(&mut self, text: &str) {
        if !matches!(self, Self::Writing(_)) {
            *self = Self::Writing(Tail::default());
        }
        if let Self::Writing(tail) = self {
            tail.push(text);
        }
    }
}

/// Says that a model is asked again, or that it has to wait for the first time.
pub(super) fn retry(wait: Duration, attempt: u32, reason: &str) -> String {
    let wait = (!wait.is_zero() || attempt > 1).then(|| amounts::countdown(wait));
    match (attempt, wait) {
        // The first attempt has not been made yet: there is a rate limit to wait for.
        (..=1, Some(wait)) => format!("asked in {wait}: {reason}"),
        (_, None) => format!("asked later: {reason}"),
        (_, Some(wait)) => format!("asked again in {wait}: {reason} (attempt {attempt})"),
    }
}

/// The last line of a text that goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tail {
    whole: String,
    open: String,
}

impl Tail {
    /// Adds text.
    pub(crate) fn push(&mut self, text: &str) {
        for (index, piece) in text.split(['\n', '\r']).enumerate() {
            if index > 0 && !self.open.trim().is_empty() {
                self.whole = std::mem::take(&mut self.open);
            } else if index > 0 {
                self.open.clear();
            }
            let room = MAX_LINE.saturating_sub(self.open.len());
            self.open.extend(piece.chars().take(room));
        }
    }

    /// Returns the last line that says something, in at most `width` columns.
    pub(crate) fn line(&self, width: usize) -> String {
        let said = if self.open.trim().is_empty() { &self.whole } else { &self.open };
        one_line(said, width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_says_how_long_and_why() {
        let seconds = Duration::from_secs;
        assert_eq!(retry(seconds(3), 2, "busy"), "asked again in 3 s: busy (attempt 2)");
        assert_eq!(retry(seconds(0), 2, "cut"), "asked again in 0 s: cut (attempt 2)");
        assert_eq!(retry(seconds(9), 1, "rate limit"), "asked in 9 s: rate limit");
        assert_eq!(retry(seconds(0), 1, "others first"), "asked later: others first");
    }

    #[test]
    fn a_tail_is_the_last_line_that_says_something() {
        let mut tail = Tail::default();
        tail.push("one\ntwo");
        assert_eq!(tail.line(80), "two");
        tail.push(" and more\n\n");
        assert_eq!(tail.line(80), "two and more");
        tail.push("10 %\r20 %\r");
        assert_eq!(tail.line(80), "20 %");
        tail.push("\u{1b}[2Jlong text");
        assert_eq!(tail.line(12), "\\u{1b}[2J...");
    }

    #[test]
    fn a_tail_does_not_grow() {
        let mut tail = Tail::default();
        for _ in 0..1000 {
            tail.push(&"x".repeat(500));
        }
        assert!(tail.open.len() <= MAX_LINE);
    }
}

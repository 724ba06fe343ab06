//! What a program has said of itself, for whoever has to tell why it does not work: where it complained, and where
//! messages are expected.

use std::sync::{Arc, Mutex, PoisonError};

use super::lines::Notes;
use super::offer::cut;
use super::stderr::Complaints;

/// How much of the line that says why is told, and of each of the others.
const MAX_REASON_BYTES: usize = 400;
const MAX_SHOWN_LINE: usize = 100;

/// What a program has said, up to the moment when it is asked for.
#[derive(Clone, Debug)]
pub(super) struct LastWords {
    complaints: Complaints,
    notes: Arc<Notes>,
}

impl LastWords {
    pub(super) const fn new(complaints: Complaints, notes: Arc<Notes>) -> Self {
        Self { complaints, notes }
    }

    /// Says what happened, and what the program said itself: first the line that says why, since many a place has room
    /// for no more.
    pub(super) fn after(&self, what: &str, reason: Option<String>) -> String {
        let lines = self.complaints.lines();
        let is_all = reason.is_some() && lines.len() == 1;
        let mut why = match reason {
            Some(line) => format!("{} ({what})", cut(&line, MAX_REASON_BYTES)),
            None => what.to_owned(),
        };
        if let Some(said) = self.notes.nonsense() {
            why.push_str(&format!("; {said}"));
        }
        if !lines.is_empty() && !is_all {
            why.push_str("; it complained: ");
            why.push_str(&shortened(&lines, self.complaints.left_out()));
        }
        why
    }

    /// Says the same of a program that nobody waits for any longer: what it said last is what it waits for, if nothing
    /// else is.
    pub(super) fn too_late(&self, what: &str) -> String {
        let reason = self.complaints.reason().or_else(|| self.complaints.last_line());
        self.after(what, reason)
    }
}

/// What the program of a server has said that was started last.
#[derive(Debug, Default)]
pub(super) struct Heard(Mutex<Option<LastWords>>);

impl Heard {
    /// Listens to another program from now on.
    pub(super) fn listen(&self, words: LastWords) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
    }

    /// Says what happened, and what the program has said so far, if there is one.
    pub(super) fn too_late(&self, what: &str) -> String {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        words.map_or_else(|| what.to_owned(), |words| words.too_late(what))
    }
}

/// Returns the first lines and the last ones as one.
fn shortened(lines: &[String], left_out: usize) -> String {
    const FIRST: usize = 4;
    const LAST: usize = 8;
    let short = |line: &String| cut(line.trim(), MAX_SHOWN_LINE);
    if left_out == 0 && lines.len() <= FIRST + LAST {
        return lines.iter().map(short).collect::<Vec<_>>().join(" | ");
    }
    let between = left_out + lines.len().saturating_sub(FIRST + LAST);
    let first = lines.iter().take(FIRST).map(short);
    let last = lines.iter().skip(lines.len().saturating_sub(LAST)).map(short);
    let mark = std::iter::once(format!("[… {between} more]"));
    first.chain(mark).chain(last).collect::<Vec<_>>().join(" | ")
}

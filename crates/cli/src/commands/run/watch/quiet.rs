//! A question that comes while somebody types: what is typed on is no answer to it.

use std::time::Duration;

use tokio::time::Instant;

/// How long nobody may have pressed a key before the question is put.
const QUIET: Duration = Duration::from_secs(1);
/// How long after a key somebody may still be about to press the next.
const TYPING: Duration = Duration::from_secs(1);
/// How long nobody can have read a question that was put in the middle of a line, nor seen that it was.
const UNREAD: Duration = Duration::from_millis(500);

/// What has to pass before what is typed is the answer to a question. Until then it belongs to the draft.
#[derive(Debug)]
pub(super) struct Quiet {
    length: Duration,
    until: Instant,
}

impl Quiet {
    /// Begins before a question is put, if somebody types: there is a draft, or a key was pressed a moment ago. Who
    /// only looks on is asked at once.
    pub(super) fn before_asking(
        draft: &str,
        pressed: Option<Instant>,
        now: Instant,
    ) -> Option<Self> {
        let recently = pressed.is_some_and(|at| now.saturating_duration_since(at) < TYPING);
        (!draft.is_empty() || recently).then(|| Self::of(QUIET, now))
    }

    /// Begins after a question was put, if there is a draft that somebody may go on with all the same.
    pub(super) fn before_an_answer(draft: &str, now: Instant) -> Option<Self> {
        (!draft.is_empty()).then(|| Self::of(UNREAD, now))
    }

    fn of(length: Duration, now: Instant) -> Self {
        Self { length, until: now + length }
    }

    /// Begins anew: a key was pressed.
    pub(super) fn disturb(&mut self, now: Instant) {
        self.until = now + self.length;
    }

    /// Returns when it is over.
    pub(super) const fn until(&self) -> Instant {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_types_is_asked_after_a_pause_and_who_looks_on_at_once() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        assert!(Quiet::before_asking("", None, start).is_none());
        assert!(Quiet::before_asking("", Some(start), at(1_000)).is_none(), "that was long ago");
        assert!(Quiet::before_asking("and say ye", None, start).is_some());
        let mut quiet = Quiet::before_asking("", Some(start), at(100)).unwrap();
        assert_eq!(quiet.until(), at(1_100));
        quiet.disturb(at(900));
        assert_eq!(quiet.until(), at(1_900), "who looks for the next key still types");
    }

    #[test]
    fn what_goes_on_with_a_line_right_after_the_question_is_no_answer() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        assert!(Quiet::before_an_answer("", start).is_none(), "nothing goes on");
        let mut quiet = Quiet::before_an_answer("then you ma", start).unwrap();
        assert_eq!(quiet.until(), at(500));
        quiet.disturb(at(40));
        assert_eq!(quiet.until(), at(540));
    }
}

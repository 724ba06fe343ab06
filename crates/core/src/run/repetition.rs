//! Notices when nothing new happens: the same again, the same few things in turn, nothing that was not seen
//! before, or the same words.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The longest pattern that is recognised: A, A, A… or A, B, A, B… or A, B, C, A, B, C…
const LONGEST_PATTERN: usize = 3;
/// How many things that happened are remembered, to know what is new.
const MAX_SEEN: usize = 1_000;
/// The shortest text whose repetition means something.
const SHORTEST_TEXT: usize = 40;

/// What the last turns did, as fingerprints of calls and answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Repetition {
    recent: Vec<u64>,
    /// What was seen at all: calls with their answers.
    seen: BTreeSet<u64>,
    /// How many turns in a row gave nothing that had not been seen.
    stale: u32,
    /// What was said last, and how many turns in a row.
    words: (u64, u32),
    /// The tool that was called last.
    pub(super) tool_name: String,
    /// Whether the model was told.
    pub(super) told: bool,
}

impl Repetition {
    /// Notes what a turn did; `times` is how often something has to happen to count as repeated.
    pub(super) fn note(&mut self, fingerprint: u64, tool_name: &str, times: u32) {
        tool_name.clone_into(&mut self.tool_name);
        self.recent.push(fingerprint);
        let longest = LONGEST_PATTERN * (times as usize + 1);
        let surplus = self.recent.len().saturating_sub(longest);
        self.recent.drain(..surplus);
        let is_new = !self.seen.contains(&fingerprint);
        self.stale = if is_new { 0 } else { self.stale.saturating_add(1) };
        if is_new && self.seen.len() < MAX_SEEN {
            self.seen.insert(fingerprint);
        }
        if !self.repeats(times) {
            self.told = false;
        }
    }

    /// Notes what was said beside the calls of a turn.
    pub(super) fn note_words(&mut self, words: &str, fingerprint: u64) {
        if words.trim().len() < SHORTEST_TEXT {
            self.words = (0, 0);
        } else if self.words.0 == fingerprint {
            self.words.1 = self.words.1.saturating_add(1);
        } else {
            self.words = (fingerprint, 1);
        }
    }

    /// Tells whether the last turns are the same pattern, this many times, or brought nothing new for twice
    /// as long.
    pub(super) fn repeats(&self, times: u32) -> bool {
        let times = times.max(2);
        let twice = times.saturating_mul(2);
        let pattern =
            (1..=LONGEST_PATTERN).any(|length| self.ends_with_pattern(length, times as usize));
        pattern || self.stale >= twice || self.words.1 >= twice
    }

    fn ends_with_pattern(&self, length: usize, times: usize) -> bool {
        let Some(start) = self.recent.len().checked_sub(length * times) else { return false };
        let tail = self.recent.get(start..).unwrap_or_default();
        tail.iter().zip(tail.iter().skip(length)).all(|(one, next)| one == next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(turns: &[u64]) -> Repetition {
        let mut repetition = Repetition::default();
        for turn in turns {
            repetition.note(*turn, "ls", 3);
        }
        repetition
    }

    #[test]
    fn patterns_of_up_to_three_are_noticed() {
        for (turns, repeats) in [
            (&[1, 1][..], false),
            (&[1, 1, 1], true),
            (&[2, 1, 1, 1], true),
            (&[1, 1, 1, 2], false),
            (&[1, 2, 1, 2, 1], false),
            (&[1, 2, 1, 2, 1, 2], true),
            (&[1, 2, 3, 1, 2, 3, 1, 2, 3], true),
            (&[1, 2, 3, 4, 1, 2, 3, 4], false),
        ] {
            assert_eq!(after(turns).repeats(3), repeats, "{turns:?}");
        }
    }

    #[test]
    fn turns_that_bring_nothing_new_are_noticed_whatever_their_order() {
        assert!(!after(&[1, 2, 3, 4, 5, 4, 2, 5, 1, 3]).repeats(3));
        assert!(after(&[1, 2, 3, 4, 5, 4, 2, 5, 1, 3, 2]).repeats(3));
        assert!(!after(&[1, 2, 3, 4, 5, 4, 2, 5, 1, 3, 2, 6]).repeats(3), "6 is new");
    }

    #[test]
    fn the_same_words_with_ever_other_calls_are_noticed() {
        let long = "I will now look at the next file of the project.";
        let mut repetition = Repetition::default();
        for turn in 0..6 {
            assert!(!repetition.repeats(3), "{turn}");
            repetition.note(turn, "read_file", 3);
            repetition.note_words(long, 7);
        }
        assert!(repetition.repeats(3));
        repetition.note_words("ok", 8);
        assert!(!repetition.repeats(3), "short words mean nothing");
    }

    #[test]
    fn something_new_starts_the_count_again() {
        let mut repetition = after(&[1, 1, 1]);
        repetition.told = true;
        repetition.note(2, "ls", 3);
        assert!(!repetition.told);
        assert!(after(&[1; 100]).recent.len() <= 12, "what is remembered is bounded");
    }
}

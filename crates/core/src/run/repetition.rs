//! Notices when nothing new happens.

use serde::{Deserialize, Serialize};

/// The longest pattern that is recognised: A, A, A… or A, B, A, B… or A, B, C, A, B, C…
const LONGEST_PATTERN: usize = 3;

/// What the last turns did, as fingerprints of calls and answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Repetition {
    recent: Vec<u64>,
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
        if !self.repeats(times) {
            self.told = false;
        }
    }

    /// Tells whether the last turns are the same pattern, this many times.
    pub(super) fn repeats(&self, times: u32) -> bool {
        let times = times.max(2) as usize;
        (1..=LONGEST_PATTERN).any(|length| self.ends_with_pattern(length, times))
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
            (&[1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4], false),
        ] {
            assert_eq!(after(turns).repeats(3), repeats, "{turns:?}");
        }
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

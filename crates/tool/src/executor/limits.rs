//! How much a call may take, and which of several wishes about its time counts.

use std::collections::BTreeMap;
use std::time::Duration;

use convoke_core::{Category, Millis, ToolSpec};

use crate::approve::Unanswered;

/// The limits of one run's calls.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many calls run at once.
    pub max_concurrent: usize,
    /// How long a call may take where nothing else is said.
    pub timeout: Duration,
    /// How long calls of a family may take.
    pub category_timeouts: BTreeMap<Category, Duration>,
    /// How long calls of single tools may take.
    pub tool_timeouts: BTreeMap<String, Duration>,
    /// The longest that a tool may give itself from its arguments.
    pub longest_timeout: Duration,
    /// How long a call that was told to stop may take to return what it has.
    pub stop_grace: Duration,
    /// How long a tool may take to show what a call would change, before a person is asked.
    pub preview_timeout: Duration,
    /// How long an answer of a person is waited for.
    pub approval_timeout: Duration,
    /// What becomes of a question that nobody answers.
    pub unanswered: Unanswered,
    /// How many bytes of arguments a call may have.
    pub max_argument_bytes: usize,
    /// How many bytes of a result the model sees.
    pub max_output_bytes: usize,
    /// How many bytes of arguments or value one event carries.
    pub max_event_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_concurrent: 3,
            timeout: Duration::from_secs(30),
            category_timeouts: BTreeMap::from([
                (Category::Network, Duration::from_mins(1)),
                (Category::Agent, Duration::from_mins(5)),
            ]),
            tool_timeouts: BTreeMap::new(),
            longest_timeout: Duration::from_mins(10),
            stop_grace: Duration::from_secs(2),
            preview_timeout: Duration::from_secs(10),
            approval_timeout: Duration::from_hours(24),
            unanswered: Unanswered::Deny,
            max_argument_bytes: 4 * 1024 * 1024,
            max_output_bytes: 64 * 1024,
            max_event_bytes: 64 * 1024,
        }
    }
}

impl Limits {
    /// Returns how long a call may take. What is closest to the call counts: the caller's wish, then the
    /// setting for the tool, then what the tool says of this call or of itself, then its family's
    /// default, then the general one.
    pub fn timeout_of(
        &self,
        spec: &ToolSpec,
        by_caller: Option<Duration>,
        by_arguments: Option<Duration>,
    ) -> Duration {
        by_caller
            .or_else(|| self.tool_timeouts.get(&spec.name).copied())
            .or_else(|| by_arguments.map(|wanted| wanted.min(self.longest_timeout)))
            .or_else(|| spec.timeout_ms.map(Millis::get))
            .or_else(|| self.category_timeouts.get(&spec.category).copied())
            .unwrap_or(self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use convoke_core::Kind;

    use super::*;

    #[test]
    fn what_is_closest_to_the_call_counts() {
        let second = Duration::from_secs;
        let mut limits = Limits::default();
        let mut spec = ToolSpec::new("t", "", Kind::Fetch);
        assert_eq!(limits.timeout_of(&spec, None, None), second(30));
        spec.category = Category::Network;
        assert_eq!(limits.timeout_of(&spec, None, None), second(60));
        spec.timeout_ms = Some(Millis::new(second(7)));
        assert_eq!(limits.timeout_of(&spec, None, None), second(7));
        assert_eq!(limits.timeout_of(&spec, None, Some(second(8))), second(8));
        assert_eq!(limits.timeout_of(&spec, None, Some(second(9_999))), second(600));
        limits.tool_timeouts.insert("t".into(), second(5));
        assert_eq!(limits.timeout_of(&spec, None, Some(second(8))), second(5));
        assert_eq!(limits.timeout_of(&spec, Some(second(1)), Some(second(8))), second(1));
    }
}

//! What an agent may do: what its own policy allows, and those of all agents above it.

use std::cmp::Ordering;

use super::{Decision, Facts, Policy, Source};

/// A chain of policies from the first agent down. It only ever gets narrower: there is no way to take
/// a policy out.
#[derive(Clone, Debug)]
pub struct Authority {
    first: Policy,
    below: Vec<Policy>,
}

impl Authority {
    /// The authority of the first agent.
    pub const fn new(policy: Policy) -> Self {
        Self { first: policy, below: Vec::new() }
    }

    /// Returns the authority of a child with this policy of its own.
    #[must_use]
    pub fn child(&self, own: Policy) -> Self {
        let mut below = self.below.clone();
        below.push(own);
        Self { first: self.first.clone(), below }
    }

    /// Returns an authority with each policy changed. Not for others: they could widen it.
    pub(super) fn map(&self, change: impl Fn(&Policy) -> Policy) -> Self {
        Self { first: change(&self.first), below: self.below.iter().map(&change).collect() }
    }

    /// Decides about a call: the strictest of what the policies say. Where a rule of one says what the table of
    /// another says too, the rule is named.
    pub fn decide(&self, facts: &Facts<'_>) -> Decision {
        let below = self.below.iter().map(|policy| policy.decide(facts));
        below.fold(self.first.decide(facts), |first, second| {
            let says_more = matches!(
                (&first.source, &second.source),
                (Source::Kind(_) | Source::Mode { .. }, Source::Rule { .. })
            );
            match second.permission.cmp(&first.permission) {
                Ordering::Greater => second,
                Ordering::Equal if says_more => second,
                _ => first,
            }
        })
    }

    /// Returns the policies, from the first agent's down.
    pub fn policies(&self) -> impl Iterator<Item = &Policy> {
        std::iter::once(&self.first).chain(&self.below)
    }
}

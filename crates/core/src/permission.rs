//! Whether something may happen: without a question, after one, or not at all.
//!
//! Permissions are ordered by strictness: of two, the greater one allows less.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::Kind;

/// Whether a call may be made: `allow`, `ask` (a person decides) or `deny`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// It may.
    Allow,
    /// A person decides; where nobody can be asked, it may not.
    Ask,
    /// It may not.
    Deny,
}

impl Permission {
    /// Every value, from the loosest to the strictest.
    pub const ALL: &'static [Self] = &[Self::Allow, Self::Ask, Self::Deny];

    /// Returns the word this value has in a file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Returns the value a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.as_str() == word)
    }

    /// Returns what a kind of call gets where nobody said anything: looking and thinking are
    /// allowed, changing asks, running programs is denied.
    pub const fn default_for(kind: Kind) -> Self {
        match kind {
            Kind::Read | Kind::Search | Kind::Think | Kind::Agent => Self::Allow,
            Kind::Edit | Kind::Delete | Kind::Move | Kind::Fetch | Kind::Other => Self::Ask,
            Kind::Execute => Self::Deny,
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_ordered_by_strictness_and_keep_their_words() {
        assert!(Permission::Allow < Permission::Ask && Permission::Ask < Permission::Deny);
        for value in Permission::ALL {
            assert_eq!(Permission::from_word(value.as_str()), Some(*value));
            assert_eq!(serde_json::to_value(value).unwrap(), value.as_str());
        }
        assert_eq!(Permission::from_word("maybe"), None);
    }
}

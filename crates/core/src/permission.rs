//! Whether something may happen: without a question, after one, or not at all.
//!
//! Permissions are ordered by strictness: of two, the greater one allows less.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::Kind;
use crate::word::word_enum;

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

    /// Returns what a kind of call gets where nobody said anything: looking and thinking are allowed,
    /// everything else is asked about, which means no where nobody can be asked.
    pub const fn default_for(kind: Kind) -> Self {
        match kind {
            Kind::Read | Kind::Search | Kind::Think | Kind::Agent => Self::Allow,
            Kind::Edit | Kind::Delete | Kind::Move | Kind::Execute | Kind::Fetch | Kind::Other => {
                Self::Ask
            }
        }
    }
}

word_enum! {
    /// How freely a run may act. What the configuration denies stays denied in every mode.
    Mode {
        /// It may look, and nothing else.
        Plan = "plan",
        /// It may look; it asks before it changes anything, runs a program or leaves the machine.
        Default = "default",
        /// As `default`, but it may change files without asking.
        AutoEdit = "auto_edit",
        /// It may do anything without asking.
        Full = "full",
    }
}

impl Mode {
    /// Tells whether a run may do more in this mode than in another.
    pub fn is_freer_than(self, other: Self) -> bool {
        let place = |mode: Self| Self::ALL.iter().position(|one| *one == mode);
        place(self) > place(other)
    }

    /// Returns the permission of a kind of call in this mode, given what is configured for it.
    pub const fn permission(self, kind: Kind, configured: Permission) -> Permission {
        let changes = !kind.only_looks() && !matches!(kind, Kind::Agent);
        match (self, configured) {
            (Self::Plan, _) if changes => Permission::Deny,
            (Self::Full, Permission::Ask) => Permission::Allow,
            (Self::AutoEdit, Permission::Ask) if matches!(kind, Kind::Edit | Kind::Move) => {
                Permission::Allow
            }
            (_, configured) => configured,
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
    fn no_mode_allows_what_is_denied() {
        for mode in Mode::ALL {
            for kind in Kind::ALL {
                let denied = mode.permission(*kind, Permission::Deny);
                assert_eq!(denied, Permission::Deny, "{mode} {kind}");
            }
        }
    }

    #[test]
    fn modes_go_from_looking_to_anything() {
        use {Kind as K, Permission as P};
        let table = [
            (Mode::Plan, [P::Allow, P::Deny, P::Deny, P::Deny, P::Deny]),
            (Mode::Default, [P::Allow, P::Ask, P::Ask, P::Ask, P::Ask]),
            (Mode::AutoEdit, [P::Allow, P::Allow, P::Ask, P::Ask, P::Ask]),
            (Mode::Full, [P::Allow, P::Allow, P::Allow, P::Allow, P::Allow]),
        ];
        for (mode, expected) in table {
            let kinds = [K::Read, K::Edit, K::Delete, K::Execute, K::Fetch];
            let given = kinds.map(|kind| mode.permission(kind, Permission::default_for(kind)));
            assert_eq!(given, expected, "{mode}");
        }
        assert_eq!(Mode::Default.permission(K::Fetch, P::Allow), P::Allow);
        assert_eq!(Mode::Plan.permission(K::Fetch, P::Allow), P::Deny);
    }

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

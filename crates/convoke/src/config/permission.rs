//! What may happen without asking, with asking, and not at all.

use std::collections::BTreeMap;

use convoke_core::policy::{self, Policy, Rule, RuleError, RuleSpec, Scope};
use convoke_core::{Kind, Mode, Permission};
use convoke_tool::Unanswered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::origin::{Layer, Origin};
use super::schema::words;
use super::timeout::Timeout;

/// What may happen without asking, with asking, and not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct PolicyConfig {
    /// Permission by kind of call. A project's file can only make an entry stricter.
    #[schemars(extend("propertyNames" = words(Kind::ALL.iter().map(|kind| kind.as_str()))))]
    pub kinds: BTreeMap<Kind, Permission>,
    /// Rules on tools, commands, paths and hosts. What one denies stays denied, whatever others allow.
    /// A project's rules can only ask or deny.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleSpec>,
    /// What becomes of a question that nobody answers, because nobody is there or in time: `deny` tells the
    /// model that it may not, `park` ends the run until somebody has answered and it is resumed. What an MCP
    /// server asks in the middle of a call cannot wait like that and is cancelled.
    pub on_ask: OnAsk,
    /// How long an answer is waited for.
    pub approval_timeout: Timeout,
    /// Where the rules come from, in their order; the user where nobody said.
    #[serde(skip)]
    pub(crate) origins: Vec<Origin>,
}

impl PolicyConfig {
    /// Returns the permission of a kind; one that is not listed has its default.
    pub fn permission(&self, kind: Kind) -> Permission {
        self.kinds.get(&kind).copied().unwrap_or(Permission::default_for(kind))
    }

    /// Makes the policy of runs in a mode. `home` is what `~/` stands for in paths.
    pub fn policy(&self, mode: Mode, home: Option<&str>) -> Result<Policy, RuleError> {
        let (mut user, mut project) = (Vec::new(), Vec::new());
        for (index, spec) in self.rules.iter().enumerate() {
            let origin = self.origins.get(index);
            let place = origin.map(|origin| origin.place.to_string());
            let rule = Rule::new(spec.clone(), home, place)?;
            match origin.map(|origin| origin.layer) {
                Some(Layer::Project) => project.push(rule),
                _ => user.push(rule),
            }
        }
        let kinds = self.kinds.iter().map(|(kind, permission)| (*kind, *permission));
        let policy = Policy::new(mode).kinds(kinds);
        Ok(policy
            .layer(policy::Layer::new(Scope::User, user))
            .layer(policy::Layer::new(Scope::Project, project)))
    }
}

impl Default for PolicyConfig {
    fn default() -> Self {
        let defaults = Kind::ALL.iter().map(|kind| (*kind, Permission::default_for(*kind)));
        Self {
            kinds: defaults.collect(),
            rules: Vec::new(),
            on_ask: OnAsk::Deny,
            approval_timeout: Timeout::MAX,
            origins: Vec::new(),
        }
    }
}

/// What becomes of a question that nobody answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnAsk {
    /// The answer is no.
    #[default]
    Deny,
    /// The run ends and can be resumed.
    Park,
}

impl OnAsk {
    /// Returns the word of each value.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("deny", Self::Deny), ("park", Self::Park)];
}

impl From<OnAsk> for Unanswered {
    fn from(on_ask: OnAsk) -> Self {
        match on_ask {
            OnAsk::Deny => Self::Deny,
            OnAsk::Park => Self::Park,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_default() {
        let policy = PolicyConfig::default();
        assert_eq!(policy.kinds.len(), Kind::ALL.len());
        assert_eq!(policy.permission(Kind::Read), Permission::Allow);
        assert_eq!(policy.permission(Kind::Edit), Permission::Ask);
        let empty = PolicyConfig { kinds: BTreeMap::new(), ..PolicyConfig::default() };
        assert_eq!(empty.permission(Kind::Execute), Permission::Ask);
    }
}

//! What may happen without asking, with asking, and not at all.

use std::collections::BTreeMap;

use convoke_core::{Kind, Permission};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema::words;

/// What may happen without asking, with asking, and not at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct PolicyConfig {
    /// Permission by kind of call. A project's file can only make an entry stricter.
    #[schemars(extend("propertyNames" = words(Kind::ALL.iter().map(|kind| kind.as_str()))))]
    pub kinds: BTreeMap<Kind, Permission>,
}

impl PolicyConfig {
    /// Returns the permission of a kind; one that is not listed has its default.
    pub fn permission(&self, kind: Kind) -> Permission {
        self.kinds.get(&kind).copied().unwrap_or(Permission::default_for(kind))
    }
}

impl Default for PolicyConfig {
    fn default() -> Self {
        let defaults = Kind::ALL.iter().map(|kind| (*kind, Permission::default_for(*kind)));
        Self { kinds: defaults.collect() }
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
        let empty = PolicyConfig { kinds: BTreeMap::new() };
        assert_eq!(empty.permission(Kind::Execute), Permission::Ask);
    }
}

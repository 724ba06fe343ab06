//! What is different after a change.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Registered;

/// What is different after a change of the agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryChange {
    /// The version of the registry after it.
    pub version: u64,
    /// Those that are new.
    pub added: Vec<String>,
    /// Those that say something else.
    pub changed: Vec<Changed>,
    /// Those that are gone.
    pub removed: Vec<String>,
    /// How many are as they were.
    pub unchanged: usize,
}

/// An agent that says something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its name.
    pub name: String,
    /// What it is about, by the names of an [outline](crate::outline).
    pub fields: Vec<&'static str>,
}

impl RegistryChange {
    pub(super) fn between(
        before: &BTreeMap<String, Arc<Registered>>,
        after: &BTreeMap<String, Arc<Registered>>,
    ) -> Self {
        let mut change = Self::default();
        for (name, agent) in after {
            match before.get(name).map(|old| old.outline().differences(agent.outline())) {
                None => change.added.push(name.clone()),
                Some(fields) if fields.is_empty() => change.unchanged += 1,
                Some(fields) => change.changed.push(Changed { name: name.clone(), fields }),
            }
        }
        let gone = before.keys().filter(|name| !after.contains_key(*name));
        change.removed.extend(gone.cloned());
        change
    }

    /// Tells whether nothing is different.
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Says it in a line, as `added a; changed b (model); removed c; 4 unchanged`.
impl fmt::Display for RegistryChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.added.is_empty() {
            parts.push(format!("added {}", self.added.join(", ")));
        }
        if !self.changed.is_empty() {
            let shown = |one: &Changed| format!("{} ({})", one.name, one.fields.join(", "));
            let shown: Vec<String> = self.changed.iter().map(shown).collect();
            parts.push(format!("changed {}", shown.join(", ")));
        }
        if !self.removed.is_empty() {
            parts.push(format!("removed {}", self.removed.join(", ")));
        }
        parts.push(format!("{} unchanged", self.unchanged));
        formatter.write_str(&parts.join("; "))
    }
}

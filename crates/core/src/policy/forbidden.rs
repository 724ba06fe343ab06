//! Which paths a call must not see, where it looks for them itself.
//!
//! A search that is given a directory is allowed or denied as a whole. What lies below the directory and
//! is denied has to be left out by the tool, path by path, as it finds it. What a rule asks about is left
//! out too: nobody can be asked in the middle of a search. Only where the call itself was about it,
//! somebody was.

use std::path::Path;

use super::facts::{Facts, Part};
use super::pattern::Holds;
use super::{Authority, Policy, Rule, Scope};
use crate::permission::Permission;

/// Paths that a call must not see.
#[derive(Clone, Debug, Default)]
pub struct Forbidden(Vec<Rules>);

/// Rules, and the directory that their paths start from.
#[derive(Clone, Debug)]
struct Rules {
    rules: Vec<Rule>,
    directory: std::path::PathBuf,
}

impl Forbidden {
    /// Tells whether there is nothing to look for.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns these and others.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Tells whether a path is one of them; it has to be absolute, without `.` and `..`.
    pub fn has(&self, path: &Path) -> bool {
        let about = |set: &Rules| set.rules.iter().any(|rule| rule.is_about(path, &set.directory));
        self.0.iter().any(about)
    }
}

impl Authority {
    /// Returns what a call must not see of what lies below the paths it names.
    pub fn forbidden(&self, facts: &Facts<'_>) -> Forbidden {
        let parts = facts.parts();
        let rules = self.policies().flat_map(|policy| policy.forbidding(facts, &parts));
        let rules: Vec<Rule> = rules.cloned().collect();
        if rules.is_empty() {
            return Forbidden::default();
        }
        Forbidden(vec![Rules { rules, directory: facts.world.directory.clone() }])
    }

    /// Returns the paths that are denied to everybody, whatever is done with them: those that can be told
    /// without looking for them.
    pub fn denied_paths(&self, directory: &Path) -> Vec<std::path::PathBuf> {
        let rules = self.policies().flat_map(Policy::layers).flat_map(super::Layer::rules);
        let mut paths: Vec<_> = rules.filter_map(|rule| rule.denied_path(directory)).collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

impl Policy {
    fn forbidding<'a>(
        &'a self,
        facts: &'a Facts<'_>,
        parts: &'a [Part],
    ) -> impl Iterator<Item = &'a Rule> {
        let layers = self.layers().iter().filter(|layer| layer.scope() != Scope::Granted);
        layers.flat_map(super::Layer::rules).filter(move |rule| match rule.effect() {
            Permission::Allow => false,
            Permission::Deny => rule.is_on_paths_of(facts),
            Permission::Ask => {
                let was_asked = parts.iter().any(|part| rule.holds(facts, part) == Holds::Yes);
                rule.is_on_paths_of(facts) && !was_asked
            }
        })
    }
}

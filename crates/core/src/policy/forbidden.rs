//! Which paths a call must not see, where it looks for them itself.
//!
//! A search that is given a directory is allowed or denied as a whole. What lies below the directory and
//! is denied has to be left out by the tool, path by path, as it finds it. What a rule asks about is left
//! out too: nobody can be asked in the middle of a search. Only where the call itself was about it,
//! somebody was.

use std::cell::LazyCell;
use std::path::Path;

use super::facts::Facts;
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
        // What a call would do is worked out only where there is something to ask about it.
        let parts = LazyCell::new(|| facts.parts());
        let was_asked =
            |rule: &Rule| parts.iter().any(|part| rule.holds(facts, part) == Holds::Yes);
        let rules = self.policies().flat_map(|policy| policy.keeping_paths_from(facts));
        let rules = rules.filter(|rule| rule.effect() == Permission::Deny || !was_asked(rule));
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
    /// Returns the rules that deny paths to a call, or ask about them.
    fn keeping_paths_from(&self, facts: &Facts<'_>) -> impl Iterator<Item = &Rule> {
        let layers = self.layers().iter().filter(|layer| layer.scope() != Scope::Granted);
        let rules = layers.flat_map(super::Layer::rules);
        rules.filter(|rule| rule.effect() != Permission::Allow && rule.is_on_paths_of(facts))
    }
}

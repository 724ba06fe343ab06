//! A project's file can make things stricter, never looser, trusted or not.
//!
//! What the user allows is the user's file on top of what is built in. Against that, everything in
//! a project's file that would allow more is taken out, with a warning that says so. Variables and
//! flags are the user's own and are not looked at here.

use std::path::Path;

use convoke_core::{Kind, Money, Permission, WorkspaceKind};
use convoke_sandbox::AllowedHost;
use serde_json::Value;

use super::key::{Key, Segment};
use super::node::{Body, Field, Node};
use super::pattern::covers;
use super::problem::Problem;

mod paths;
mod servers;

/// From loose to strict.
const SANDBOX_MODES: &[&str] = &["off", "auto", "required"];
const SANDBOX_NETWORKS: &[&str] = &["all", "hosts", "none"];
/// The sections whose numbers a project may lower.
const LIMITS: &[&[&str]] = &[&["budget"], &["sandbox", "limits"], &["agents"]];
/// The lists to which a project may add, and nothing else.
const ADDED_TO: &[&[&str]] =
    &[&["tools", "exclude"], &["sandbox", "hidden"], &["agents", "exclude"]];
const NOT_LISTED: &str = "it is not in your own list";
const HINT: &str = "only your own file, variables and flags can allow more";

/// Takes out of a project's layer what would allow more than `allowed` does.
pub(crate) fn narrow(project: &mut Node, allowed: &Node, directory: &Path) -> Vec<Problem> {
    let mut narrowing = Narrowing { project, allowed, warnings: Vec::new() };
    narrowing.kinds();
    narrowing.rules();
    narrowing.hooks();
    narrowing.sandbox();
    narrowing.sandbox_backend();
    narrowing.sandbox_hosts();
    narrowing.sandbox_paths(directory);
    narrowing.workspace();
    narrowing.limits();
    narrowing.allowed_paths(directory);
    narrowing.private_hosts();
    narrowing.added_to();
    narrowing.enabled();
    narrowing.agents();
    narrowing.environment();
    narrowing.servers();
    narrowing.server_files(directory);
    narrowing.warnings
}

/// Takes directories out of a project's layer that are not there: with one of them no run can be made. Without
/// it less is allowed.
pub(crate) fn keep_directories(project: &mut Node, allowed: &Node) -> Vec<Problem> {
    let mut narrowing = Narrowing { project, allowed, warnings: Vec::new() };
    narrowing.retain_items(&Key::default().name("tools").name("allowedPaths"), |node| {
        (!Path::new(node.text()?).is_dir()).then_some("there is no such directory")
    });
    narrowing.warnings
}

struct Narrowing<'a> {
    project: &'a mut Node,
    allowed: &'a Node,
    warnings: Vec<Problem>,
}

impl Narrowing<'_> {
    fn kinds(&mut self) {
        let key = Key::default().name("policy").name("kinds");
        let allowed = self.allowed.get(&key);
        let Some(kinds) = self.project.map_mut(&key) else { return };
        kinds.retain(|name, Field { node, .. }| {
            let Some(wanted) = node.text().and_then(Permission::from_word) else { return false };
            let key = key.name(name);
            let limit = strictness(name, allowed);
            if wanted >= limit {
                return true;
            }
            let message = format!("`{wanted}` is ignored: a project cannot loosen your `{limit}`");
            let place = &node.origin.place;
            self.warnings.push(Problem::new(place, &key, message).with_hint(HINT));
            false
        });
    }

    fn sandbox(&mut self) {
        for (name, words) in [("mode", SANDBOX_MODES), ("network", SANDBOX_NETWORKS)] {
            let key = Key::default().name("sandbox").name(name);
            let place = |node: Option<&Node>| {
                let word = node.and_then(Node::text);
                words.iter().position(|known| Some(*known) == word)
            };
            // What is not a word of the list is reported as a mistake elsewhere.
            let Some(wanted) = place(self.project.get(&key)) else { continue };
            // Where the user wrote no word of the list either, the strictest counts.
            let limit = place(self.allowed.get(&key)).unwrap_or(words.len().saturating_sub(1));
            // Between all and none there is a list of hosts, which only the user has.
            let is_new_list = words.get(wanted) == Some(&"hosts") && wanted > limit;
            if (wanted < limit || is_new_list)
                && let Some(Field { node, .. }) = self.project.take(&key)
            {
                let own = words.get(limit).copied().unwrap_or_default();
                let written = as_written(&node);
                let message = if is_new_list {
                    format!("`{written}` is ignored: you have `{own}`, and no list of hosts")
                } else {
                    format!("`{written}` is ignored: a project cannot loosen your `{own}`")
                };
                let warning = Problem::new(&node.origin.place, &key, message);
                self.warnings.push(warning.with_hint(HINT));
            }
        }
    }

    /// Two workspaces that keep the user's files equally safe are the user's choice.
    fn workspace(&mut self) {
        let key = Key::default().name("agent").name("workspace");
        let kind = |node: Option<&Node>| node.and_then(Node::text)?.parse::<WorkspaceKind>().ok();
        // What is no such word is reported as a mistake elsewhere.
        let Some(wanted) = kind(self.project.get(&key)) else { return };
        let own = kind(self.allowed.get(&key)).unwrap_or(WorkspaceKind::Shared);
        if (wanted != own && !wanted.is_stricter_than(own))
            && let Some(Field { node, .. }) = self.project.take(&key)
        {
            let message = format!("`{wanted}` is ignored: a project cannot loosen your `{own}`");
            self.warnings.push(Problem::new(&node.origin.place, &key, message).with_hint(HINT));
        }
    }

    /// Takes out the rules that allow, and adds the user's, so that neither takes the other's away.
    fn rules(&mut self) {
        let key = Key::default().name("policy").name("rules");
        let effect = |rule: &Node| {
            let effect = rule.get(&Key::default().name("effect"))?;
            effect.text().and_then(Permission::from_word)
        };
        let own = match self.allowed.get(&key).map(|node| &node.body) {
            Some(Body::List(own)) => own.clone(),
            _ => Vec::new(),
        };
        let mut warnings = Vec::new();
        if let Some(rules) = self.items_mut(&key) {
            let mut index = 0;
            rules.retain(|rule| {
                let key = key.index(index);
                index += 1;
                if effect(rule) != Some(Permission::Allow) {
                    return true;
                }
                let message = "the rule is ignored: a project cannot allow what you did not";
                warnings.push(Problem::new(&rule.origin.place, &key, message).with_hint(HINT));
                false
            });
            rules.splice(0..0, own);
        }
        self.warnings.append(&mut warnings);
    }

    /// Puts the user's before the project's, which could else take away a guard.
    fn hooks(&mut self) {
        let key = Key::default().name("hooks");
        let own = match self.allowed.get(&key).map(|node| &node.body) {
            Some(Body::List(own)) => own.clone(),
            _ => return,
        };
        if let Some(hooks) = self.items_mut(&key) {
            hooks.splice(0..0, own);
        }
    }

    /// One that is not there would leave programs without a sandbox, with a question at most.
    fn sandbox_backend(&mut self) {
        let key = Key::default().name("sandbox").name("backend");
        if let Some(Field { node, .. }) = self.project.take(&key) {
            let message = format!("`{}` is ignored: the choice is yours", as_written(&node));
            self.warnings.push(Problem::new(&node.origin.place, &key, message).with_hint(HINT));
        }
    }

    fn sandbox_hosts(&mut self) {
        let key = Key::default().name("sandbox").name("hosts");
        let read = |text: &str| text.parse::<AllowedHost>().ok();
        let own: Vec<AllowedHost> =
            texts(self.allowed.get(&key)).iter().filter_map(|text| read(text)).collect();
        self.retain_items(&key, |node| {
            // What is not a host is reported as a mistake elsewhere.
            let host = read(node.text()?)?;
            (!own.iter().any(|known| known.includes(&host))).then_some(NOT_LISTED)
        });
    }

    /// Where the user lets programs read everything, any list is narrower.
    fn sandbox_paths(&mut self, directory: &Path) {
        for name in ["read", "write"] {
            let key = Key::default().name("sandbox").name(name);
            if let Some(own) = self.allowed.get(&key) {
                let bounds = paths::Bounds::new(Some(own), directory);
                self.retain_paths(&key, &bounds);
            }
        }
    }

    fn limits(&mut self) {
        for section in LIMITS {
            self.lower_only(&section.iter().fold(Key::default(), |key, name| key.name(name)));
        }
    }

    fn lower_only(&mut self, key: &Key) {
        let allowed = self.allowed.get(key);
        let Some(limits) = self.project.map_mut(key) else { return };
        limits.retain(|name, Field { node, .. }| {
            let own = allowed.and_then(|budget| budget.get(&Key::default().name(name)));
            let Some(own) = own.filter(|own| amount(node) > amount(own)) else { return true };
            let (wanted, limit) = (as_written(node), as_written(own));
            let message = format!("`{wanted}` is ignored: a project cannot raise your `{limit}`");
            let warning = Problem::new(&node.origin.place, &key.name(name), message);
            self.warnings.push(warning.with_hint(HINT));
            false
        });
    }

    fn allowed_paths(&mut self, directory: &Path) {
        let key = Key::default().name("tools").name("allowedPaths");
        let bounds = paths::Bounds::new(self.allowed.get(&key), directory);
        self.retain_paths(&key, &bounds);
    }

    fn retain_paths(&mut self, key: &Key, bounds: &paths::Bounds) {
        self.retain_items(key, |node| match bounds.admit(Path::new(node.text()?)) {
            Ok(real) => {
                node.set_text(real);
                None
            }
            Err(reason) => Some(reason),
        });
    }

    fn private_hosts(&mut self) {
        let http = Key::default().name("tools").name("http");
        let is_true = |node: Option<&Node>| node.map(Node::to_json) == Some(true.into());
        let switch = http.name("allowPrivate");
        if is_true(self.allowed.get(&switch)) {
            return;
        }
        if is_true(self.project.get(&switch))
            && let Some(Field { node, .. }) = self.project.take(&switch)
        {
            let message = "`true` is ignored: a project cannot open private addresses";
            let warning = Problem::new(&node.origin.place, &switch, message);
            self.warnings.push(warning.with_hint(HINT));
        }
        let hosts = http.name("allowedHosts");
        let own = texts(self.allowed.get(&hosts));
        self.retain_items(&hosts, |node| {
            let host = node.text()?;
            (!own.iter().any(|known| known == host)).then_some(NOT_LISTED)
        });
    }

    /// Adds what the user has to what the project has, so that neither takes the other's away.
    fn added_to(&mut self) {
        for list in ADDED_TO {
            self.add_own(&list.iter().fold(Key::default(), |key, name| key.name(name)));
        }
    }

    fn add_own(&mut self, key: &Key) {
        let present = texts(self.project.get(key));
        let Some(Body::List(own)) = self.allowed.get(key).map(|node| node.body.clone()) else {
            return;
        };
        if let Some(items) = self.items_mut(key) {
            let missing =
                own.into_iter().filter(|node| !present.iter().any(|p| node.text() == Some(p)));
            items.splice(0..0, missing.collect::<Vec<_>>());
        }
    }

    /// Keeps what the user's own list covers. Where the user has no list, the project chooses: what
    /// a tool may do is decided by permission, not by being offered.
    fn enabled(&mut self) {
        self.retain_covered(&Key::default().name("tools").name("enabled"));
    }

    fn retain_covered(&mut self, key: &Key) {
        let Some(own) = self.allowed.get(key) else { return };
        let own = texts(Some(own));
        self.retain_items(key, |node| {
            let pattern = node.text()?;
            (!own.iter().any(|wide| covers(wide, pattern))).then_some(NOT_LISTED)
        });
    }

    /// What the user switched off stays off: all agents, the way to reach them, or one of them.
    fn agents(&mut self) {
        let agents = Key::default().name("agents");
        self.retain_covered(&agents.name("allow"));
        let overrides = agents.name("overrides");
        let names: Vec<String> = match self.allowed.get(&overrides).map(|node| &node.body) {
            Some(Body::Map(fields)) => fields.keys().cloned().collect(),
            _ => Vec::new(),
        };
        let one = |name: &String| overrides.name(name).name("enabled");
        let switches = [agents.name("enabled"), agents.name("background")];
        for switch in switches.into_iter().chain(names.iter().map(one)) {
            self.keep_off(&switch, &false.into());
        }
        self.keep_off(&agents.name("delegation"), &"off".into());
    }

    /// Takes out what is not off, where the user has it off.
    fn keep_off(&mut self, key: &Key, off: &Value) {
        let is_off = |node: &Node| node.to_json() == *off;
        if self.allowed.get(key).is_some_and(is_off)
            && self.project.get(key).is_some_and(|node| !is_off(node))
            && let Some(Field { node, .. }) = self.project.take(key)
        {
            let written = as_written(&node);
            let message =
                format!("`{written}` is ignored: a project cannot switch on what you switched off");
            self.warnings.push(Problem::new(&node.origin.place, key, message).with_hint(HINT));
        }
    }

    /// Keeps what the user passes on to programs anyway.
    fn environment(&mut self) {
        let key = Key::default().name("tools").name("environment");
        let own = texts(self.allowed.get(&key));
        self.retain_items(&key, |node| {
            let name = node.text()?;
            // A name in full may be that of a credential, which a pattern does not pass on.
            let is_own = own.iter().any(|known| known == name);
            (!is_own).then_some(NOT_LISTED)
        });
    }

    fn items_mut(&mut self, key: &Key) -> Option<&mut Vec<Node>> {
        let (last, parents) = key.segments().split_last()?;
        let parent = parents.iter().fold(Key::default(), |key, step| key.with(step.clone()));
        let Segment::Name(name) = last else { return None };
        match &mut self.project.map_mut(&parent)?.get_mut(name)?.node.body {
            Body::List(items) => Some(items),
            _ => None,
        }
    }

    /// Drops the items of a list for which there is a reason, with a warning each.
    fn retain_items(
        &mut self,
        key: &Key,
        mut reason: impl FnMut(&mut Node) -> Option<&'static str>,
    ) {
        let mut warnings = Vec::new();
        if let Some(items) = self.items_mut(key) {
            items.retain_mut(|node| match reason(node) {
                None => true,
                Some(reason) => {
                    let written = node.written().unwrap_or_default();
                    let message = format!("`{written}` is ignored: {reason}");
                    let warning = Problem::new(&node.origin.place, key, message);
                    warnings.push(warning.with_hint(HINT));
                    false
                }
            });
        }
        self.warnings.append(&mut warnings);
    }
}

/// Returns what the user allows for a kind; for one that has no entry, what is built in.
fn strictness(kind: &str, allowed: Option<&Node>) -> Permission {
    let entry = allowed.and_then(|kinds| kinds.get(&Key::default().name(kind)));
    let written = entry.and_then(Node::text).and_then(Permission::from_word);
    let built_in = || kind.parse::<Kind>().map_or(Permission::Deny, Permission::default_for);
    written.unwrap_or_else(built_in)
}

/// Returns how much a limit is. A number and money compare alike: both are decimals.
fn amount(node: &Node) -> Option<Money> {
    let Body::Scalar(value) = &node.body else { return None };
    value.as_str().map_or_else(|| value.to_string().parse(), str::parse).ok()
}

/// Returns a plain value for messages, without what came from the environment.
fn as_written(node: &Node) -> String {
    node.written().map_or_else(|| node.to_json().to_string(), str::to_owned)
}

fn texts(node: Option<&Node>) -> Vec<String> {
    match node.map(|node| &node.body) {
        Some(Body::List(items)) => items.iter().filter_map(Node::text).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;

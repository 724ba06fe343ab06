//! How lists of MCP servers meet, and what holds when they have met.
//!
//! A list replaces the one below it, but for servers: those of a file come beside those below, and one of the
//! same name changes it, key by key, unless it is reached in another way. A project only ever uses less of a
//! server of the user's, which [`narrow`](super::narrow) sees to; were it to change anything else, the server
//! would be the project's.
//!
//! An item of the user's that says a name and `enabled: false`, and nothing else, is no server: it switches off
//! the one of that name, whoever wrote it down.
//!
//! A server whose variables are not set is left out, with a warning, whatever other files say about its name:
//! what one of them takes away from it must not come back because of that.

use std::collections::{BTreeMap, BTreeSet};

use super::interpolate;
use super::key::Key;
use super::node::{Body, Field, Node};
use super::origin::{Layer, Place};
use super::problem::Problem;

const LIST: &str = "mcpServers";

/// Puts the servers that are known below before those of a layer.
pub(super) fn keep(below: &Node, above: &mut Node) {
    let tools = Key::default().name("tools");
    let Some(Body::List(known)) = below.get(&tools.name(LIST)).map(|node| &node.body) else {
        return;
    };
    let list = above.map_mut(&tools).and_then(|tools| tools.get_mut(LIST));
    let Some(Body::List(own)) = list.map(|field| &mut field.node.body) else { return };
    let mut changes: Vec<Option<Node>> = std::mem::take(own).into_iter().map(Some).collect();
    for server in known {
        let is_it = |change: &&mut Option<Node>| {
            change.as_ref().and_then(name).is_some_and(|one| Some(one) == name(server))
        };
        let change = changes.iter_mut().find(is_it).and_then(Option::take);
        own.push(match change {
            Some(change) if is_reached(&change) => change,
            Some(change) => changed(server.clone(), change),
            None => server.clone(),
        });
    }
    own.extend(changes.into_iter().flatten());
}

/// The keys with which less of a server is used, or with which it may less, if what is behind them is less.
const LESS: &[&str] = &["name", "enabled", "timeout", "startTimeout", "include", "exclude"];
/// The keys with which a server may less if they are off.
pub(super) const GRANTS: &[&str] = &["trust", "sampling"];

/// Lays a change over a server. What a project wrote is never the user's.
fn changed(mut server: Node, change: Node) -> Node {
    let is_less = |(key, field): (&String, &Field)| {
        LESS.contains(&key.as_str())
            || (GRANTS.contains(&key.as_str()) && field.node.to_json() == false)
    };
    let only_less = matches!(&change.body, Body::Map(fields) if fields.iter().all(is_less));
    let origin = change.origin.clone();
    server.overlay(change);
    if origin.layer == Layer::Project && !only_less {
        server.origin = origin;
    }
    server
}

/// Takes servers out of a layer that ask for variables which are not set, and returns a warning for each. Their
/// names are kept: see [`leave_out`].
pub(super) fn take_unset(
    root: &mut Node,
    environment: &BTreeMap<String, String>,
    left_out: &mut BTreeSet<String>,
) -> Vec<Problem> {
    let tools = Key::default().name("tools");
    let list = root.map_mut(&tools).and_then(|tools| tools.get_mut(LIST));
    let Some(Body::List(servers)) = list.map(|field| &mut field.node.body) else {
        return Vec::new();
    };
    let mut warnings = Vec::new();
    let mut index = 0;
    servers.retain(|server| {
        let key = tools.name(LIST).index(index);
        index += 1;
        let Some((place, mistake)) = unset(server, environment) else { return true };
        let written = name(server).unwrap_or("?");
        let name = interpolate::replace(written, environment).map(|name| name.text);
        let name = name.unwrap_or_else(|_| written.to_owned());
        let message = format!("the MCP server `{name}` is left out: {mistake}");
        let hint = "set it, or write `${NAME:-text}`, which gives a default";
        warnings.push(Problem::new(&place, &key, message).with_hint(hint));
        left_out.insert(name);
        false
    });
    warnings
}

/// Takes out of the user's layer what only switches servers off, and keeps the names.
pub(super) fn take_switches(root: &mut Node, names: &mut BTreeSet<String>) {
    let tools = Key::default().name("tools");
    let list = root.map_mut(&tools).and_then(|tools| tools.get_mut(LIST));
    let Some(Body::List(servers)) = list.map(|field| &mut field.node.body) else { return };
    servers.retain(|server| match switched(server) {
        Some((name, is_on)) => {
            if !is_on {
                names.insert(name.to_owned());
            }
            false
        }
        None => true,
    });
}

/// Returns which server a switch is for, and whether it switches it on, which only a variable does.
fn switched(server: &Node) -> Option<(&str, bool)> {
    let Body::Map(fields) = &server.body else { return None };
    let enabled = &fields.get("enabled")?.node;
    let is_on = enabled.to_json().as_bool()?;
    let is_switch = fields.len() == 2 && (!is_on || enabled.template.is_some());
    name(server).filter(|_| is_switch).map(|name| (name, is_on))
}

/// Takes servers of these names out of all that the layers say together.
pub(super) fn leave_out(effective: &mut Node, names: &BTreeSet<String>) {
    let list = effective.map_mut(&Key::default().name("tools"));
    let list = list.and_then(|tools| tools.get_mut(LIST));
    if let Some(Body::List(servers)) = list.map(|field| &mut field.node.body) {
        servers.retain(|server| !name(server).is_some_and(|name| names.contains(name)));
    }
}

/// Returns the first text of a server in which a variable cannot be put, and why.
fn unset(node: &Node, environment: &BTreeMap<String, String>) -> Option<(Place, String)> {
    match &node.body {
        Body::Map(fields) => fields.values().find_map(|field| unset(&field.node, environment)),
        Body::List(items) => items.iter().find_map(|item| unset(item, environment)),
        Body::Scalar(_) => {
            let mistake = interpolate::replace(node.text()?, environment).err()?;
            Some((node.origin.place.clone(), mistake))
        }
    }
}

/// Says how servers are written here to whoever wrote them as other programs do: by name.
pub(super) fn as_list(key: &Key, node: &Node) -> Option<String> {
    let is_list = *key == Key::default().name("tools").name(LIST);
    let Body::Map(servers) = &node.body else { return None };
    let name = servers.keys().next().filter(|_| is_list)?;
    Some(format!(
        "here each is an item that says its name: `- name: {name}`, with its other keys below; \
         `convoke mcp import FILE` takes over a file of another program"
    ))
}

/// Says which servers cannot be reached, or in two ways.
pub(super) fn check(effective: &Node, problems: &mut Vec<Problem>) {
    let list = Key::default().name("tools").name(LIST);
    let Some(Body::List(servers)) = effective.get(&list).map(|node| &node.body) else { return };
    for (index, server) in servers.iter().enumerate() {
        let has = |key: &str| server.get(&Key::default().name(key)).is_some();
        let key = list.index(index);
        let mut wrong = |message: &str, hint: &str| {
            let problem = Problem::new(&server.origin.place, &key, message);
            problems.push(problem.with_hint(hint));
        };
        match (has("url"), has("command")) {
            (true, true) => wrong(
                "it has both `url` and `command`",
                "a server is a program that is started here, or one at an address",
            ),
            (false, false) => wrong(
                "it has neither `url` nor `command`",
                "write `command` for a program, with its `args`, or `url` for an address",
            ),
            (true, false) => {
                for key in ["args", "env", "cwd"].into_iter().filter(|key| has(key)) {
                    wrong(&format!("`{key}` is for programs, and this has a `url`"), "take it out");
                }
            }
            (false, true) => {
                for key in ["headers", "auth"].into_iter().filter(|key| has(key)) {
                    let message =
                        format!("`{key}` is for servers at a `url`, and this is a program");
                    wrong(&message, "take it out; a program gets what it needs by `env`");
                }
            }
        }
    }
}

pub(super) fn name(server: &Node) -> Option<&str> {
    server.get(&Key::default().name("name")).and_then(Node::text)
}

/// Tells whether it says how it is reached, which makes it a server of its own.
pub(super) fn is_reached(server: &Node) -> bool {
    ["url", "command"].iter().any(|key| server.get(&Key::default().name(key)).is_some())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::config::yaml;

    fn server(text: &str, layer: Layer) -> Node {
        let path: Arc<Path> = Path::new("convoke.yml").into();
        yaml::parse(text, &path, layer).unwrap()
    }

    #[test]
    fn only_what_says_nothing_else_is_a_switch() {
        for (text, off) in [
            ("{name: s, enabled: false}", Some(("s", false))),
            ("{name: s, enabled: true}", None),
            ("{name: s, enabled: false, command: x}", None),
            ("{enabled: false, command: x}", None),
        ] {
            assert_eq!(switched(&server(text, Layer::User)), off, "{text}");
        }
    }

    /// Nothing gets here that does more than use less; this is the wall behind that one.
    #[test]
    fn what_a_project_changes_is_never_the_users() {
        for (change, layer) in [
            ("{name: s, enabled: false, timeout: 5}", Layer::User),
            ("{name: s, exclude: [x], trust: false}", Layer::User),
            ("{name: s, args: [x]}", Layer::Project),
            ("{name: s, enabled: false, env: {A: x}}", Layer::Project),
            ("{name: s, trust: true}", Layer::Project),
            ("{name: s, sampling: 1}", Layer::Project),
        ] {
            let own = server("{name: s, command: x}", Layer::User);
            let changed = changed(own, server(change, Layer::Project));
            assert_eq!(changed.origin.layer, layer, "{change}");
        }
        let theirs = server("{name: s, command: x}", Layer::Project);
        let changed = changed(theirs, server("{name: s, trust: true}", Layer::Flags));
        assert_eq!(changed.origin.layer, Layer::Project, "a flag makes nothing the user's");
    }
}

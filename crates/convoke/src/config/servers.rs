//! How lists of MCP servers meet, and what holds when they have met.
//!
//! A list replaces the one below it, but for servers: those of a file come beside those below, and one of the
//! same name changes it, key by key, unless it is reached in another way.

use super::key::Key;
use super::node::{Body, Node};
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
            Some(change) => {
                let mut server = server.clone();
                server.overlay(change);
                server
            }
            None => server.clone(),
        });
    }
    own.extend(changes.into_iter().flatten());
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

fn name(server: &Node) -> Option<&str> {
    server.get(&Key::default().name("name")).and_then(Node::text)
}

fn is_reached(server: &Node) -> bool {
    ["url", "command"].iter().any(|key| server.get(&Key::default().name(key)).is_some())
}

//! What a schema cannot say about the entries of lists: names are unique, addresses can be reached, the parameters of
//! a command tool are a JSON Schema themselves, and rules hold for the examples they carry.

use std::collections::BTreeMap;

use convoke_core::policy::{Rule, RuleError, RuleSpec};
use convoke_mcp::client::address_problem;
use convoke_sandbox::AllowedHost;

use crate::config::discreet::address_without_keys;
use crate::config::hook::HookConfig;
use crate::config::key::Key;
use crate::config::node::{Body, Node};
use crate::config::problem::Problem;

const NAMED_LISTS: &[&str] = &["commands", "mcpServers"];

pub(super) fn check(root: &Node, problems: &mut Vec<Problem>) {
    let tools = Key::default().name("tools");
    for list in NAMED_LISTS {
        let key = tools.name(list);
        let Some(Body::List(items)) = root.get(&key).map(|node| &node.body) else { continue };
        unique_names(items, &key, problems);
        for (index, item) in items.iter().enumerate() {
            parameters(item, &key.index(index), problems);
            address(item, &key.index(index), problems);
        }
    }
    rules(root, problems);
    hooks(root, problems);
    hosts(root, problems);
}

/// What is over cannot be guarded.
fn hooks(root: &Node, problems: &mut Vec<Problem>) {
    let list = Key::default().name("hooks");
    let Some(Body::List(items)) = root.get(&list).map(|node| &node.body) else { return };
    for (index, item) in items.iter().enumerate() {
        let Ok(hook) = serde_json::from_value::<HookConfig>(item.to_json()) else { continue };
        let late = hook.on.iter().find(|moment| !moment.can_be_guarded());
        if let Some(moment) = late.filter(|_| hook.guard) {
            let node = item.get(&Key::default().name("guard")).unwrap_or(item);
            let message = format!("`{moment}` cannot be guarded: there is nothing left to refuse");
            let key = list.index(index).name("guard");
            let problem = Problem::new(&node.origin.place, &key, message);
            problems.push(problem.with_hint("make a hook of its own for it, without `guard`"));
        }
    }
}

fn hosts(root: &Node, problems: &mut Vec<Problem>) {
    let list = Key::default().name("sandbox").name("hosts");
    let Some(Body::List(items)) = root.get(&list).map(|node| &node.body) else { return };
    for (index, item) in items.iter().enumerate() {
        if let Some(Err(error)) = item.text().map(str::parse::<AllowedHost>) {
            let message = match &item.template {
                Some(written) => format!("what `{written}` stands for is not a host"),
                None => error.to_string(),
            };
            problems.push(Problem::new(&item.origin.place, &list.index(index), message));
        }
    }
}

fn rules(root: &Node, problems: &mut Vec<Problem>) {
    let list = Key::default().name("policy").name("rules");
    let Some(Body::List(items)) = root.get(&list).map(|node| &node.body) else { return };
    for (index, item) in items.iter().enumerate() {
        // What is not a rule at all is reported by the schema.
        let Ok(spec) = serde_json::from_value::<RuleSpec>(item.to_json()) else { continue };
        let errors = match Rule::new(spec, None, None) {
            Ok(rule) => rule.check_examples(),
            Err(error) => vec![error],
        };
        problems.extend(errors.iter().map(|error| mistake(item, &list.index(index), error)));
    }
}

fn mistake(rule: &Node, key: &Key, error: &RuleError) -> Problem {
    let named = Key::default().name(error.key);
    let (below, key) = match error.item {
        Some(item) => (named.index(item), key.name(error.key).index(item)),
        None => (named, key.name(error.key)),
    };
    let node = rule.get(&below).unwrap_or(rule);
    Problem::new(&node.origin.place, &key, &*error.message)
}

fn unique_names(items: &[Node], list: &Key, problems: &mut Vec<Problem>) {
    let mut seen = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let Some(node) = item.get(&Key::default().name("name")) else { continue };
        let Some(name) = node.text() else { continue };
        if let Some(first) = seen.insert(name, index) {
            let message = format!("the name is already taken by `{}`", list.index(first));
            let key = list.index(index).name("name");
            problems.push(Problem::new(&node.origin.place, &key, message));
        }
    }
}

/// What does not even begin as an address is reported by the schema.
fn address(item: &Node, key: &Key, problems: &mut Vec<Problem>) {
    let Some(node) = item.get(&Key::default().name("url")) else { return };
    let begins = |text: &&str| text.starts_with("http://") || text.starts_with("https://");
    if let Some(why) = node.text().filter(begins).and_then(address_problem) {
        let message = match &node.template {
            Some(written) => {
                let written = address_without_keys(written);
                format!("what `{written}` stands for is no address: {why}")
            }
            None => format!("this is no address of a server: {why}"),
        };
        problems.push(Problem::new(&node.origin.place, &key.name("url"), message));
    }
}

fn parameters(item: &Node, key: &Key, problems: &mut Vec<Problem>) {
    let Some(node) = item.get(&Key::default().name("parameters")) else { return };
    let Body::Map(_) = node.body else { return };
    if let Err(error) = jsonschema::validator_for(&node.to_json()) {
        let at = match error.instance_path().as_str() {
            "" => String::new(),
            pointer => format!(" at `{pointer}`"),
        };
        let message = format!("not a JSON Schema{at}: {}", error.masked());
        problems.push(Problem::new(&node.origin.place, &key.name("parameters"), message));
    }
}

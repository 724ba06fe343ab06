//! What a schema cannot say about the entries of lists: names are unique, and the parameters of a
//! command tool are a JSON Schema themselves.

use std::collections::BTreeMap;

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
        }
    }
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

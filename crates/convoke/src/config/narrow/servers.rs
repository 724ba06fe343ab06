//! A project may use less of the user's MCP servers, and has its own beside them.
//!
//! What a server of the user's runs, where it runs, what it is given and how far it is believed stays as the user
//! wrote it, also in a project that is trusted: it has the user's rights.

use std::path::Path;

use convoke_mcp::client::ServerConfig;
use serde_json::Value;

use super::{HINT, Narrowing, as_written, paths, texts};
use crate::config::key::Key;
use crate::config::node::{Body, Field, Node};
use crate::config::pattern::covers;
use crate::config::problem::Problem;
use crate::config::servers::{GRANTS, is_reached, name};

const OTHER_NAME: &str = "give it a name that none of your own has";

impl Narrowing<'_> {
    /// Leaves of an entry with the name of the user's what uses less, and leaves out one that would be another
    /// server.
    pub(super) fn servers(&mut self) {
        let list = Key::default().name("tools").name("mcpServers");
        let allowed = self.allowed;
        let Some(Body::List(own)) = allowed.get(&list).map(|node| &node.body) else { return };
        let mut warnings = Vec::new();
        if let Some(entries) = self.items_mut(&list) {
            let mut index = 0;
            entries.retain_mut(|entry| {
                let key = list.index(index);
                index += 1;
                let is_it = |one: &&Node| name(one).is_some() && name(one) == name(entry);
                let Some(own) = own.iter().find(is_it) else { return true };
                if is_reached(entry) {
                    let message = "the server is ignored: you have one of that name, which counts";
                    let warning = Problem::new(&entry.origin.place, &key, message);
                    warnings.push(warning.with_hint(OTHER_NAME));
                    return false;
                }
                Entry { own, key: &key, warnings: &mut warnings }.narrow(entry);
                true
            });
        }
        self.warnings.append(&mut warnings);
    }

    /// Keeps the files that lie in the project, behind those of the user.
    pub(super) fn server_files(&mut self, directory: &Path) {
        let list = Key::default().name("tools").name("mcpFiles");
        self.retain_paths(&list, &paths::Bounds::new(None, directory));
        let own = match self.allowed.get(&list).map(|node| &node.body) {
            Some(Body::List(own)) => own.clone(),
            _ => Vec::new(),
        };
        if let Some(files) = self.items_mut(&list) {
            files.retain(|file| !own.iter().any(|one| one.text() == file.text()));
            files.splice(0..0, own);
        }
    }
}

/// What a project says about a server of the user's.
struct Entry<'a> {
    own: &'a Node,
    key: &'a Key,
    warnings: &'a mut Vec<Problem>,
}

impl Entry<'_> {
    fn narrow(&mut self, entry: &mut Node) {
        let Some(fields) = entry.fields_mut() else { return };
        fields.retain(|name, field| self.keeps(name, field));
    }

    fn keeps(&mut self, name: &str, field: &mut Field) -> bool {
        match name {
            "name" => true,
            "enabled" => self.keeps_off(name, field, true),
            _ if GRANTS.contains(&name) => self.keeps_off(name, field, false),
            "timeout" | "startTimeout" => self.keeps_shorter(name, field),
            "exclude" => {
                self.add_own(name, &mut field.node);
                true
            }
            "include" => self.keeps_covered(name, &mut field.node),
            _ => {
                let message =
                    "ignored: a project cannot change how your server is reached, nor what it gets";
                self.warn(name, &field.node, message.to_owned());
                false
            }
        }
    }

    fn own(&self, name: &str) -> Option<&Node> {
        self.own.get(&Key::default().name(name))
    }

    fn warn(&mut self, name: &str, node: &Node, message: String) {
        let warning = Problem::new(&node.origin.place, &self.key.name(name), message);
        self.warnings.push(warning.with_hint(HINT));
    }

    /// Where the user has it on, it may be said once more.
    fn keeps_off(&mut self, name: &str, field: &Field, usual: bool) -> bool {
        let own = self.own(name).map_or(Value::Bool(usual), Node::to_json);
        let wanted = field.node.to_json();
        if wanted == false || wanted == own {
            return true;
        }
        let written = as_written(&field.node);
        let message =
            format!("`{written}` is ignored: a project cannot switch on what you did not");
        self.warn(name, &field.node, message);
        false
    }

    fn keeps_shorter(&mut self, name: &str, field: &Field) -> bool {
        let usual = ServerConfig::http("", "");
        let usual = if name == "timeout" { usual.timeout } else { usual.start_timeout };
        let own = self.own(name).and_then(|node| node.to_json().as_u64());
        let own = own.map_or(usual.as_millis(), u128::from);
        let wanted = field.node.to_json().as_u64().map(u128::from);
        if wanted.is_some_and(|wanted| wanted <= own) {
            return true;
        }
        let written = as_written(&field.node);
        let message = format!("`{written}` is ignored: a project cannot raise your `{own}`");
        self.warn(name, &field.node, message);
        false
    }

    fn add_own(&self, name: &str, node: &mut Node) {
        if let (Body::List(items), Some(Body::List(own))) =
            (&mut node.body, self.own(name).map(|node| &node.body))
        {
            items.splice(0..0, own.clone());
        }
    }

    /// An empty list stands for all tools, so a list of which nothing is left is none.
    fn keeps_covered(&mut self, name: &str, node: &mut Node) -> bool {
        let own = texts(self.own(name));
        let is_covered =
            |pattern: &str| own.is_empty() || own.iter().any(|wide| covers(wide, pattern));
        let mut ignored = Vec::new();
        if let Body::List(items) = &mut node.body {
            items.retain(|item| {
                let keeps = item.text().is_some_and(is_covered);
                if !keeps {
                    ignored.push(item.clone());
                }
                keeps
            });
        }
        let is_empty = matches!(&node.body, Body::List(items) if items.is_empty());
        if is_empty && ignored.is_empty() && !own.is_empty() {
            ignored.push(node.clone());
        }
        for item in ignored {
            let written = as_written(&item);
            let message = format!("`{written}` is ignored: it is not in your own list");
            self.warn(name, &item, message);
        }
        !is_empty
    }
}

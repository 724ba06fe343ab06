//! Changes the servers in a configuration file, and nothing else of it.
//!
//! The file is changed as text, so that comments and layout stay as somebody made them. Then it is read again: unless
//! it says what it said before and the change beside it, it is not written at all, and whoever asked is told what to
//! write by hand. The rest of the file may have mistakes, as long as it can be read; what is added may not.
//!
//! Only one process at a time changes a file: each reads what the one before it wrote. What an editor wrote meanwhile
//! is not overwritten either.

mod entry;
mod list;

use std::collections::BTreeMap;
use std::path::Path;

use convoke::config::{Loaded, Problem, Sources, VARIABLE_PREFIX, load, parse_file};
use convoke::mcp::client::{ImportedLogin, ServerConfig};
use convoke_core::Cause;
use serde_json::Value;

use self::list::ServerList;
use crate::failure::{Failure, headline};
use crate::files::{self, Held};

pub(super) use self::entry::variables;

/// A configuration file that is being changed.
#[derive(Debug)]
pub(super) struct Edit<'a> {
    path: &'a Path,
    before: Option<String>,
    text: String,
    reader: Reader,
    /// Keeps others from changing it meanwhile.
    held: Option<Held>,
}

impl<'a> Edit<'a> {
    /// Reads the file to change it; it need not be there. Who else wants to change it waits.
    pub(super) fn open(
        path: &'a Path,
        environment: BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let held = files::hold(path).map_err(|error| {
            let message = format!("{} cannot be changed now", path.display());
            Failure::new(Cause::State, message).because(&error)
        })?;
        Ok(Self { held: Some(held), ..Self::look(path, environment)? })
    }

    /// Reads the file only to see what would come of a change.
    pub(super) fn look(
        path: &'a Path,
        environment: BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let shown = path.display();
        let before = files::read_if_there(path).map_err(|error| {
            Failure::new(Cause::State, format!("{shown} cannot be read")).because(&error)
        })?;
        let reader = Reader::new(environment).map_err(|error| {
            Failure::new(Cause::State, "the change cannot be tried out").because(&error)
        })?;
        let text = before.clone().unwrap_or_default();
        let edit = Self { path, before, text, reader, held: None };
        edit.tree()?;
        Ok(edit)
    }

    /// Tells whether the file has a server of this name.
    pub(super) fn has(&self, name: &str) -> Result<bool, Failure> {
        Ok(servers_in(&self.tree()?).iter().any(|server| is_called(server, name)))
    }

    /// Adds a server at the end of the list.
    #[cfg(test)]
    fn add(&mut self, server: &ServerConfig) -> Result<(), Failure> {
        self.add_with(server, &ImportedLogin::default())
    }

    /// Adds a server at the end of the list, with how it is logged in to.
    pub(super) fn add_with(
        &mut self,
        server: &ServerConfig,
        login: &ImportedLogin,
    ) -> Result<(), Failure> {
        let lines = entry::lines(server, login);
        let alone = list::written(&lines);
        self.reader.check(&alone).map_err(|why| {
            Failure::usage(format!("the server `{}` cannot be used", server.name)).causes(why)
        })?;
        self.put(&lines)
    }

    /// Adds an item that switches off a server which is written elsewhere.
    pub(super) fn switch_off_elsewhere(&mut self, name: &str) -> Result<(), Failure> {
        self.put(&entry::switch(name))
    }

    /// Tells whether all that the file says of a server is that it is not used: its name, and that, and nothing else.
    pub(super) fn only_switches(&self, name: &str) -> Result<bool, Failure> {
        let is_off = |server: &Value| {
            let keys = server.as_object().map_or(0, serde_json::Map::len);
            keys == 2 && server.get("enabled") == Some(&Value::Bool(false))
        };
        let servers = servers_in(&self.tree()?);
        Ok(servers.iter().any(|server| is_called(server, name) && is_off(server)))
    }

    fn put(&mut self, lines: &[String]) -> Result<(), Failure> {
        let alone = list::written(lines);
        let added = servers_in(&self.parsed(&alone)?);
        let text = ServerList::of(&self.text).map(|list| list.with(lines));
        let by_hand = || format!("write this into it:\n{alone}");
        self.change(text, &by_hand, |servers| servers.extend(added))
    }

    /// Takes a server out of the list.
    pub(super) fn remove(&mut self, name: &str) -> Result<(), Failure> {
        let servers = servers_in(&self.tree()?);
        let place = servers.iter().position(|server| is_called(server, name));
        let text =
            place.and_then(|place| ServerList::of(&self.text)?.without(place, servers.len()));
        let by_hand = || format!("take `{name}` out of tools.mcpServers by hand");
        self.change(text, &by_hand, |servers| {
            if let Some(place) = place {
                servers.remove(place);
            }
        })
    }

    /// Says of a server that it is used, or not.
    pub(super) fn switch(&mut self, name: &str, on: Switch) -> Result<(), Failure> {
        let servers = servers_in(&self.tree()?);
        let place = servers.iter().position(|server| is_called(server, name));
        let line = (on == Switch::Off).then_some("enabled: false");
        let text = place.and_then(|place| {
            ServerList::of(&self.text)?.with_key(place, servers.len(), "enabled", line)
        });
        let by_hand = || match on {
            Switch::On => format!("take `enabled: false` of `{name}` out by hand"),
            Switch::Off => format!("write `enabled: false` to `{name}` by hand"),
        };
        self.change(text, &by_hand, |servers| {
            let server = place.and_then(|place| servers.get_mut(place)?.as_object_mut());
            match (server, on) {
                (Some(server), Switch::On) => drop(server.remove("enabled")),
                (Some(server), Switch::Off) => drop(server.insert("enabled".into(), false.into())),
                (None, _) => {}
            }
        })
    }

    /// Puts a server in the place of the one that has its name: both happens, or neither.
    pub(super) fn replace(
        &mut self,
        server: &ServerConfig,
        login: &ImportedLogin,
    ) -> Result<(), Failure> {
        let before = self.text.clone();
        let replaced = self.remove(&server.name).and_then(|()| self.add_with(server, login));
        if replaced.is_err() {
            self.text = before;
        }
        replaced
    }

    /// Takes a change over if it is the one that was meant.
    fn change(
        &mut self,
        text: Option<String>,
        by_hand: &dyn Fn() -> String,
        meant: impl FnOnce(&mut Vec<Value>),
    ) -> Result<(), Failure> {
        let before = self.tree()?;
        let mut servers = servers_in(&before);
        meant(&mut servers);
        let expected = with_servers(before, servers);
        let found = text.as_ref().and_then(|text| self.parsed(text).ok());
        match (text, found) {
            (Some(text), Some(found)) if found == expected => {
                self.text = text;
                Ok(())
            }
            _ => {
                let shown = self.path.display();
                let message = format!(
                    "the list of servers in {shown} is written so that it cannot be changed here"
                );
                Err(Failure::configuration(message).hint(by_hand()))
            }
        }
    }

    /// Writes the file, whole or not at all.
    pub(super) fn write(self) -> Result<(), Failure> {
        let Self { path, before, text, held: _held, .. } = self;
        if before.as_deref() == Some(text.as_str()) {
            return Ok(());
        }
        let shown = path.display();
        if files::read_if_there(path).ok() != Some(before) {
            let message = format!("{shown} was changed meanwhile, and is left as it is");
            return Err(Failure::new(Cause::State, message).hint("run the command again"));
        }
        files::rewrite(path, &text).map_err(|error| {
            Failure::new(Cause::State, format!("{shown} cannot be written")).because(&error)
        })
    }

    /// Reads the file as it is now.
    fn tree(&self) -> Result<Value, Failure> {
        self.parsed(&self.text)
    }

    fn parsed(&self, text: &str) -> Result<Value, Failure> {
        parse_file(text, self.path).map_err(|problem| {
            let shown = self.path.display();
            Failure::configuration(format!("{shown} cannot be read, and is left as it is"))
                .causes([headline(&problem)])
                .hint(format!("`convoke config check {shown}` says more"))
        })
    }

    #[cfg(test)]
    fn text(&self) -> &str {
        &self.text
    }
}

/// Whether a server is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
}

/// Returns the servers of a file.
fn servers_in(tree: &Value) -> Vec<Value> {
    tree.pointer("/tools/mcpServers").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Returns what a file says with other servers. Where there were none and are none, nothing is said of them.
fn with_servers(mut tree: Value, servers: Vec<Value>) -> Value {
    let tools = tree.as_object_mut().map(|tree| tree.entry("tools").or_insert(Value::Null));
    if let Some(tools) = tools {
        if tools.is_null() {
            *tools = Value::Object(serde_json::Map::new());
        }
        if let Some(tools) = tools.as_object_mut() {
            tools.insert("mcpServers".to_owned(), Value::Array(servers));
        }
    }
    tree
}

fn is_called(server: &Value, name: &str) -> bool {
    server.get("name").and_then(Value::as_str) == Some(name)
}

/// Returns the key of the only server of a list as the server itself has it.
fn own_key(key: &str) -> &str {
    let own = key.strip_prefix("tools.mcpServers[0]").unwrap_or(key);
    own.strip_prefix('.').unwrap_or(own)
}

/// Reads texts as the user's file would be read, always at the same place.
#[derive(Debug)]
struct Reader {
    directory: tempfile::TempDir,
    environment: BTreeMap<String, String>,
}

impl Reader {
    fn new(environment: BTreeMap<String, String>) -> std::io::Result<Self> {
        Ok(Self { directory: tempfile::tempdir()?, environment })
    }

    /// Says what is wrong with a file in which one server stands.
    fn check(&self, text: &str) -> Result<(), Vec<String>> {
        let loaded = self.read(text)?;
        if loaded.config.tools.mcp_servers.is_empty() {
            return Err(loaded.warnings().iter().map(|problem| problem.message.clone()).collect());
        }
        Ok(())
    }

    /// Variables that are not set have some value here: that they are missing is another matter.
    fn read(&self, text: &str) -> Result<Loaded, Vec<String>> {
        let file = self.directory.path().join("convoke.yml");
        files::write_private(&file, text).map_err(|error| vec![error.to_string()])?;
        let mut sources = Sources::new(self.directory.path());
        sources.project_directory = None;
        sources.environment.clone_from(&self.environment);
        // Settings of the environment are not the file's, even if the file has words for some of them.
        let named = variables(text);
        let is_setting = |name: &String| name.starts_with(VARIABLE_PREFIX);
        sources.environment.retain(|name, _| !is_setting(name) || named.contains(name));
        for name in named {
            sources.environment.entry(name).or_insert_with(|| "1".to_owned());
        }
        sources.user_file = Some(file);
        // The place is that of a file which nobody wrote; the key says enough.
        load(&sources).map_err(|error| {
            let said = |problem: &Problem| match problem.key.as_deref().map(own_key) {
                Some(key) if !key.is_empty() => format!("`{key}`: {}", problem.message),
                _ => problem.message.clone(),
            };
            error.problems().iter().map(said).collect()
        })
    }
}

#[cfg(test)]
mod tests;

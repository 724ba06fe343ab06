//! Changes the servers in a configuration file, and nothing else of it.
//!
//! The file is changed as text, so that comments and layout stay as somebody made them. Then it is read as the
//! configuration would be: unless it says what it said before and the change beside it, it is not written at all,
//! and whoever asked is told what to write by hand.

mod entry;
mod list;

use std::collections::BTreeMap;
use std::path::Path;

use convoke::config::{Config, McpServerConfig, Sources, VARIABLE_PREFIX, load};
use convoke::mcp::client::ServerConfig;
use convoke_core::Cause;

use self::list::ServerList;
use crate::failure::Failure;
use crate::files;

pub(super) use self::entry::variables;

/// A configuration file that is being changed.
#[derive(Debug)]
pub(super) struct Edit<'a> {
    path: &'a Path,
    before: Option<String>,
    text: String,
    reader: Reader,
}

impl<'a> Edit<'a> {
    /// Reads the file; it need not be there.
    pub(super) fn open(
        path: &'a Path,
        environment: BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let shown = path.display();
        let before = files::read_if_there(path)
            .map_err(|error| Failure::failed(format!("{shown} cannot be read")).because(&error))?;
        let reader = Reader::new(environment).map_err(|error| {
            Failure::new(Cause::State, "the change cannot be tried out").because(&error)
        })?;
        let text = before.clone().unwrap_or_default();
        let edit = Self { path, before, text, reader };
        edit.config()?;
        Ok(edit)
    }

    /// Tells whether the file has a server of this name.
    pub(super) fn has(&self, name: &str) -> Result<bool, Failure> {
        Ok(self.config()?.tools.mcp_servers.iter().any(|server| server.name == name))
    }

    /// Adds a server at the end of the list.
    pub(super) fn add(&mut self, server: &ServerConfig) -> Result<(), Failure> {
        let lines = entry::lines(server);
        let alone = list::written(&lines);
        let added = self.reader.read(&alone).map_err(|why| {
            Failure::usage(format!("the server `{}` cannot be used", server.name)).causes(why)
        })?;
        let text = ServerList::of(&self.text).map(|list| list.with(&lines));
        let by_hand = || format!("write this into it:\n{alone}");
        self.change(text, &by_hand, |servers| servers.extend(added.tools.mcp_servers))
    }

    /// Takes a server out of the list.
    pub(super) fn remove(&mut self, name: &str) -> Result<(), Failure> {
        let servers = self.config()?.tools.mcp_servers;
        let place = servers.iter().position(|server| server.name == name);
        let text =
            place.and_then(|place| ServerList::of(&self.text)?.without(place, servers.len()));
        let by_hand = || format!("take `{name}` out of tools.mcpServers by hand");
        self.change(text, &by_hand, |servers| servers.retain(|server| server.name != name))
    }

    /// Puts a server in the place of the one that has its name: both happens, or neither.
    pub(super) fn replace(&mut self, server: &ServerConfig) -> Result<(), Failure> {
        let before = self.text.clone();
        let replaced = self.remove(&server.name).and_then(|()| self.add(server));
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
        meant: impl FnOnce(&mut Vec<McpServerConfig>),
    ) -> Result<(), Failure> {
        let mut expected = self.config()?;
        meant(&mut expected.tools.mcp_servers);
        let found = text.as_ref().and_then(|text| self.reader.read(text).ok());
        match (text, found) {
            (Some(text), Some(found)) if says_the_same(&expected, &found) => {
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
        let Self { path, before, text, .. } = self;
        if before.as_deref() == Some(text.as_str()) {
            return Ok(());
        }
        files::rewrite(path, &text).map_err(|error| {
            Failure::failed(format!("{} cannot be written", path.display())).because(&error)
        })
    }

    /// Reads the file as it is now.
    fn config(&self) -> Result<Config, Failure> {
        self.reader.read(&self.text).map_err(|why| {
            let shown = self.path.display();
            Failure::configuration(format!("{shown} has mistakes, and is left as it is"))
                .causes(why)
                .hint(format!("`convoke config check {shown}` says more"))
        })
    }

    #[cfg(test)]
    fn text(&self) -> &str {
        &self.text
    }
}

fn says_the_same(expected: &Config, found: &Config) -> bool {
    let rest = |config: &Config| {
        let mut config = config.clone();
        config.tools.mcp_servers.clear();
        serde_json::to_value(config).ok()
    };
    expected.tools.mcp_servers == found.tools.mcp_servers && rest(expected) == rest(found)
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

    /// Variables that are not set have some value here: that they are missing is another matter.
    fn read(&self, text: &str) -> Result<Config, Vec<String>> {
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
        let place = self.directory.path().display().to_string();
        load(&sources).map(|loaded| loaded.config).map_err(|error| {
            let problems = error.problems().iter().map(crate::failure::headline);
            problems.map(|text| text.replace(&format!("{place}/"), "")).collect()
        })
    }
}

#[cfg(test)]
mod tests;

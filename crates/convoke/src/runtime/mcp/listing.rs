//! Which servers there are: those of the configuration, and those in files that other programs write.
//!
//! What is the user's goes first, so that no project takes the name of a server of the user's.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use convoke_mcp::client::{
    ImportedLogin, Revision, Sampling, ServerConfig, Severity, Transport, Trust, USER_HOME,
    WORKSPACE_FOLDER, WORKSPACE_FOLDER_NAME, address_problem, import,
};
use serde_json::json;

use super::{Around, ListedServer, PROJECT_SERVERS};
use crate::config::{
    Author, CommandWords, Config, EntryContent, McpAuthConfig, McpRevision, McpServerConfig,
    ProjectEntry, WORKSPACE, disk, interpolate,
};

/// Lists the servers, and says what there is to know about files they were not taken from.
pub(super) fn list(around: Around<'_>) -> Listed {
    let left_out = around.config.servers_left_out.clone();
    let (listed, warnings, unset) = (Vec::new(), Vec::new(), left_out.clone());
    let entries = Vec::new();
    let mut listing = Listing { around, listed, left_out, unset, warnings, entries };
    for (server, author) in around.config.servers_by_author() {
        let mut config = server_config(server);
        if let Transport::Program { cwd, .. } = &mut config.transport {
            *cwd = around.start(cwd.take(), author);
        }
        listing.add(config, author, None, server.auth.clone());
    }
    for (file, author) in around.config.server_files_by_author() {
        listing.file(file, author);
    }
    if let Some(project) = &around.places.project {
        let file = project.join(PROJECT_SERVERS);
        if disk::exists(&file) && !is_listed(&file, around.config) {
            listing.read(&file, Author::Project);
        }
    }
    listing.one_of_each_name();
    for server in &mut listing.listed {
        server.config.enabled &= !around.config.servers_switched_off.contains(&server.config.name);
    }
    let Listing { listed, warnings, unset, entries, .. } = listing;
    Listed { servers: listed, warnings, unset, entries }
}

/// The servers there are, and what there is to know about the others.
pub(super) struct Listed {
    pub(super) servers: Vec<ListedServer>,
    pub(super) warnings: Vec<String>,
    /// The names of those that are left out for a variable that they do not get.
    pub(super) unset: BTreeSet<String>,
    /// The servers of the project's own files, where each is trusted by itself.
    pub(super) entries: Vec<ProjectEntry>,
}

/// Tells whether somebody lists a file that is read anyway: its servers would be there twice.
fn is_listed(file: &Path, config: &Config) -> bool {
    disk::follow_links(file).is_some_and(|real| {
        let mut files = config.server_files_by_author();
        files.any(|(listed, _)| disk::follow_links(listed).as_ref() == Some(&real))
    })
}

impl Around<'_> {
    /// Tells whether what is worked in is trusted.
    pub(super) fn is_trusted(&self) -> bool {
        self.places.project.is_some()
    }

    /// Says where a program of the configuration starts; nowhere stands for the workspace.
    fn start(&self, said: Option<PathBuf>, author: Author) -> Option<PathBuf> {
        let workspace = self.context.working_directory();
        match said {
            Some(place) if place.is_absolute() => Some(place),
            Some(place) => {
                let below = place.strip_prefix(WORKSPACE).unwrap_or(&place);
                Some(workspace.join(below)).filter(|_| below != Path::new(""))
            }
            None if author == Author::User => Some(self.own_directory()),
            None => None,
        }
    }

    /// Returns a directory in which nothing lies that what is worked in could have put there.
    fn own_directory(&self) -> PathBuf {
        let root = Path::new("/");
        let mut places = self.home.filter(|home| home.is_dir()).into_iter().chain([root]);
        let own = places.find(|place| !self.folder.holds(place));
        own.or(self.home).unwrap_or(root).to_owned()
    }

    /// Returns what `${…}` stands for in a file of another program. A project gets what programs get, and no
    /// credentials.
    fn variables_for(&self, author: Author) -> BTreeMap<String, String> {
        let mut variables = match author {
            Author::User => self.variables.clone(),
            Author::Project => self.context.environment().inherited(),
        };
        let here = self.context.working_directory();
        let project = self.places.project.as_deref().filter(|project| here.starts_with(project));
        let folder = project.unwrap_or(here);
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let name = folder.file_name().unwrap_or_default();
        variables.insert(WORKSPACE_FOLDER.to_owned(), text(folder));
        variables.insert(WORKSPACE_FOLDER_NAME.to_owned(), text(Path::new(name)));
        variables.extend(self.home.map(|home| (USER_HOME.to_owned(), text(home))));
        variables
    }
}

struct Listing<'a> {
    around: Around<'a>,
    listed: Vec<ListedServer>,
    /// Servers that are left out and keep their names: what was said of their tools is not said of a project's.
    left_out: BTreeSet<String>,
    /// All that are left out, a project's as well.
    unset: BTreeSet<String>,
    warnings: Vec<String>,
    entries: Vec<ProjectEntry>,
}

impl Listing<'_> {
    fn add(
        &mut self,
        config: ServerConfig,
        author: Author,
        file: Option<PathBuf>,
        auth: Option<McpAuthConfig>,
    ) {
        self.listed.push(ListedServer { config, author, file, auth, confined: false });
    }

    /// Takes a file that somebody listed. One of the user's that lies where tools and programs write is what they
    /// make of it: the project's.
    fn file(&mut self, file: &Path, author: Author) {
        if author == Author::Project || !self.around.folder.holds(file) {
            return self.read(file, author);
        }
        let shown = file.display();
        if self.around.is_trusted() {
            self.warnings.push(format!(
                "{shown} lies where tools and programs write, so its MCP servers are used as the project's: \
                 confined, and not believed"
            ));
            self.read(file, Author::Project);
        } else {
            self.warnings.push(format!(
                "the MCP servers of {shown} are not used: it lies in a folder that is not trusted"
            ));
        }
    }

    /// Reads servers as other programs write them.
    fn read(&mut self, file: &Path, author: Author) {
        let shown = file.display();
        let text = match disk::read_file(file) {
            Ok(Some(text)) => text,
            unreadable => {
                let why =
                    unreadable.err().map_or("there is no such file".to_owned(), |one| one.message);
                return self
                    .warnings
                    .push(format!("the MCP servers of {shown} are not used: {why}"));
            }
        };
        let read = import(&text);
        for problem in read.problems {
            let word = match problem.severity {
                Severity::Warning => "",
                Severity::Error => " (left out)",
            };
            self.warnings.push(format!("{shown}: {problem}{word}"));
        }
        if author == Author::User {
            self.left_out.extend(read.left_out);
        }
        let given = self.around.variables_for(author);
        let variables = Variables { given: &given, set: self.around.variables };
        for mut config in read.servers {
            let login = read.logins.get(&config.name);
            if author == Author::Project && !self.is_trusted_entry(&config, login, file, &given) {
                continue;
            }
            let login = expanded(&mut config, variables).and_then(|()| auth(login, variables));
            let is_unset = login.is_err();
            match login.and_then(|auth| check_address(&config).map(|()| auth)) {
                Ok(auth) => {
                    self.keep_in_workspace(&mut config);
                    self.add(config, author, Some(file.to_owned()), auth);
                }
                Err(why) => {
                    let name = &config.name;
                    let warning = format!("{shown}: the MCP server `{name}` is left out: {why}");
                    self.warnings.push(warning);
                    if is_unset {
                        self.unset.insert(name.clone());
                    }
                    if author == Author::User {
                        self.left_out.insert(config.name);
                    }
                }
            }
        }
    }

    /// Tells whether the user has seen a server of the project's as it is now, and notes it either way.
    fn is_trusted_entry(
        &mut self,
        server: &ServerConfig,
        login: Option<&ImportedLogin>,
        file: &Path,
        variables: &BTreeMap<String, String>,
    ) -> bool {
        let Some(trust) = self.around.entry_trust else { return true };
        let real = disk::follow_links(file).unwrap_or_else(|| file.to_owned());
        let label = format!("MCP server `{}` of {}", server.name, trust.relative(&real).display());
        let ServerConfig { transport, enabled, include, exclude, .. } = server;
        let login = login.map(|login| (&login.client_id, login.redirect_port));
        let written = json!({
            "transport": transport, "enabled": enabled, "include": include, "exclude": exclude,
            "login": login,
        });
        let replaced = |text: &String| {
            interpolate::replace(text, variables).map_or_else(|_| text.clone(), |done| done.text)
        };
        let words = match transport {
            Transport::Program { command, args, env, cwd } => CommandWords {
                words: std::iter::once(command)
                    .chain(args)
                    .chain(env.values())
                    .map(replaced)
                    .collect(),
                directory: cwd
                    .as_ref()
                    .map(|cwd| replaced(&cwd.to_string_lossy().into_owned()).into()),
            },
            Transport::Http { .. } => CommandWords::default(),
        };
        let (file, server) = (file.to_owned(), Box::new(server.clone()));
        let content = EntryContent::Server { file, server };
        let entry = trust.entry(&label, &written, &words, content);
        let is_trusted = trust.admits(&entry);
        self.entries.push(entry);
        is_trusted
    }

    /// Programs start in the workspace, as those who write such files expect, or in what is relative to it.
    fn keep_in_workspace(&self, config: &mut ServerConfig) {
        let workspace = self.around.context.working_directory();
        if let Transport::Program { cwd, .. } = &mut config.transport {
            let place = cwd.take().map(|place| workspace.join(place));
            *cwd = place.filter(|place| place != workspace);
        }
    }

    fn one_of_each_name(&mut self) {
        self.listed.sort_by_key(|server| server.author == Author::Project);
        let mut names = HashSet::new();
        let left_out = &self.left_out;
        let warnings = &mut self.warnings;
        self.listed.retain(|ListedServer { config, file, author, .. }| {
            let is_taken = *author == Author::Project && left_out.contains(&config.name);
            let is_new = names.insert(config.name.clone()) && !is_taken;
            if !is_new {
                let name = &config.name;
                let whose = file.as_ref().map(|file| file.display().to_string());
                let whose = whose.unwrap_or_else(|| "the project's configuration".to_owned());
                let how = if is_taken { ", which is left out" } else { "" };
                warnings.push(format!(
                    "the MCP server `{name}` of {whose} is not used: there is another of that name{how}"
                ));
            }
            is_new
        });
        // One that is there is not left out, whatever a project says of that name.
        for ListedServer { config, .. } in &self.listed {
            self.unset.remove(&config.name);
        }
    }
}

/// The variables that may be put into what a file says.
#[derive(Clone, Copy)]
struct Variables<'a> {
    /// Those that the author of the file gets.
    given: &'a BTreeMap<String, String>,
    /// All that are set.
    set: &'a BTreeMap<String, String>,
}

impl Variables<'_> {
    /// Puts variables into a text. One that is set and not given is not taken for one that is not set: whoever
    /// wrote a default did not mean this.
    fn put_into(self, text: &mut String) -> Result<(), String> {
        let withheld = interpolate::names(text)
            .into_iter()
            .find(|name| self.set.contains_key(*name) && !self.given.contains_key(*name));
        if let Some(name) = withheld {
            return Err(format!(
                "the environment variable `{name}` is set, but it is not given to projects; \
                 `tools.environment: [{name}]` in your own file gives it to programs and to projects"
            ));
        }
        *text = interpolate::replace(text, self.given)?.text;
        Ok(())
    }
}

/// Puts variables into what a file says about a server.
fn expanded(config: &mut ServerConfig, variables: Variables<'_>) -> Result<(), String> {
    let expand = |text: &mut String| variables.put_into(text);
    match &mut config.transport {
        Transport::Program { command, args, env, cwd } => {
            expand(command)?;
            args.iter_mut().try_for_each(expand)?;
            if let Some(place) = cwd {
                let mut text = place.to_string_lossy().into_owned();
                expand(&mut text)?;
                *place = text.into();
            }
            env.values_mut().try_for_each(expand)
        }
        Transport::Http { url, headers } => {
            expand(url)?;
            headers.values_mut().try_for_each(expand)
        }
    }
}

/// Says how a server is logged in to, as a file of another program has it.
fn auth(
    login: Option<&ImportedLogin>,
    variables: Variables<'_>,
) -> Result<Option<McpAuthConfig>, String> {
    let Some(login) = login else { return Ok(None) };
    let mut auth = McpAuthConfig {
        client_id: login.client_id.clone(),
        redirect_port: login.redirect_port,
        ..McpAuthConfig::default()
    };
    if let Some(id) = &mut auth.client_id {
        variables.put_into(id)?;
    }
    Ok(Some(auth))
}

/// Says what is wrong with an address in which variables were put.
fn check_address(config: &ServerConfig) -> Result<(), String> {
    let Transport::Http { url, .. } = &config.transport else { return Ok(()) };
    match address_problem(url) {
        Some(why) => {
            Err(format!("what its `url` and the variables in it make is no address: {why}"))
        }
        None => Ok(()),
    }
}

/// Describes a server as the client wants it.
fn server_config(server: &McpServerConfig) -> ServerConfig {
    let reached = match (&server.command, &server.url) {
        (Some(command), _) => {
            let env = server.env.iter();
            let env = env.map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
            let (command, args) = (command.clone(), server.args.clone());
            Transport::Program { command, args, env, cwd: server.cwd.clone() }
        }
        (None, url) => {
            let headers = server.headers.iter();
            let headers = headers.map(|(name, value)| (name.clone(), value.expose().to_owned()));
            let url = url.clone().unwrap_or_default();
            Transport::Http { url, headers: headers.collect() }
        }
    };
    let mut config = ServerConfig::new(&server.name, reached);
    config.enabled = server.enabled;
    config.include.clone_from(&server.include);
    config.exclude.clone_from(&server.exclude);
    if let Some(timeout) = server.timeout {
        config.timeout = timeout.duration();
        config.longest_call = config.longest_call.max(timeout.duration());
    }
    if let Some(timeout) = server.start_timeout {
        config.start_timeout = timeout.duration();
    }
    if server.trust {
        config.trust = Trust::Annotations;
    }
    if server.sampling {
        config.sampling = Sampling::Granted;
    }
    config.revision = match server.revision {
        McpRevision::Auto => Revision::Auto,
        McpRevision::Handshake => Revision::Handshake,
        McpRevision::Stateless => Revision::Stateless,
    };
    config
}

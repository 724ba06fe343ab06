//! MCP servers of a runtime: which there are, who starts them, and when their tools are wanted.
//!
//! Those of the user run with the user's rights, behind a guard that ends them with us. Those of a project run
//! confined, as programs do; what they say about their tools is not believed, and they are given no model. Nothing
//! is started before it is needed, and no run waits for a server that it does not use.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use convoke_agent::{Consultation, Counsel, consult};
use convoke_core::{RunId, ToolError};
use convoke_journal::Store;
use convoke_mcp::client::{
    Authorization, Change, Revision, Sample, SampleRequest, Sampler, Sampling, ServerConfig,
    ServerState, Servers, Severity, Surroundings, Transport, Trust, import,
};
use convoke_sandbox::GuardedSpawner;
use convoke_tool::catalogue::{Arrivals, Source, SourceChange, Standing};
use convoke_tool::{Spawner, ToolContext, ToolRegistry};
use futures_util::stream::{self, BoxStream, StreamExt};

use super::login::kept_logins;
use crate::config::{
    Author, Config, McpAuthConfig, McpRevision, McpServerConfig, disk, interpolate,
};

/// The file in which other programs keep a project's servers.
pub const PROJECT_SERVERS: &str = ".mcp.json";
/// Where the messages of servers are kept, in the directory of a run.
const LOGS: &str = "mcp";
/// How long a run has to itself before programs are started beside it. Its first request has left by then.
const HEAD_START: Duration = Duration::from_millis(20);

/// What servers may use beside what runs do.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct McpPlaces {
    /// Where it is kept what servers offer, so that it is known before they are started.
    pub cache: Option<PathBuf>,
    /// Who tells remote servers who asks, in place of the logins that are kept.
    pub authorization: Option<Arc<dyn Authorization>>,
    /// Where logins to remote servers are kept. They are used and refreshed; nobody is asked to log in.
    pub logins: Option<PathBuf>,
    /// The directory whose `.mcp.json` is read: that of a project that is trusted.
    pub project: Option<PathBuf>,
}

impl fmt::Debug for McpPlaces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cache, project, logins, .. } = self;
        formatter
            .debug_struct("McpPlaces")
            .field("cache", cache)
            .field("project", project)
            .field("logins", logins)
            .finish_non_exhaustive()
    }
}

/// The servers of a runtime.
#[derive(Debug)]
pub struct McpServers {
    servers: Servers,
    registry: ToolRegistry,
    store: Option<Store>,
    attached: OnceLock<()>,
    warnings: Vec<String>,
    listed: Vec<ListedServer>,
}

/// A server as configured, with where it was.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListedServer {
    /// How it is reached.
    pub config: ServerConfig,
    /// Whose it is.
    pub author: Author,
    /// The file it is written in, if not the configuration.
    pub file: Option<PathBuf>,
    /// How it is told who asks, where more is needed than it says.
    pub auth: Option<McpAuthConfig>,
}

impl McpServers {
    /// Makes the servers of a configuration. What is known of them from earlier is in the registry then.
    pub(super) fn new(
        config: &Config,
        places: &McpPlaces,
        (context, variables): (&ToolContext, &BTreeMap<String, String>),
        confined: &Arc<dyn Spawner>,
        registry: &ToolRegistry,
        store: Option<&Store>,
    ) -> Option<Self> {
        let inherited = context.environment().inherited();
        let (mut listed, mut warnings) = (Vec::new(), Vec::new());
        for (server, author) in config.servers_by_author() {
            let (config, auth) = (server_config(server), server.auth.clone());
            listed.push(ListedServer { config, author, file: None, auth });
        }
        for file in &config.tools.mcp_files {
            let known = Variables { given: variables, set: variables };
            read_file(file, Author::User, known, &mut listed, &mut warnings);
        }
        if let Some(project) = &places.project {
            let file = project.join(PROJECT_SERVERS);
            if disk::exists(&file) {
                // It gets what programs get, and no credentials.
                let known = Variables { given: &inherited, set: variables };
                read_file(&file, Author::Project, known, &mut listed, &mut warnings);
            }
        }
        let mut names = HashSet::new();
        listed.retain(|server| {
            let is_new = names.insert(server.config.name.clone());
            if !is_new && let Some(file) = &server.file {
                let name = &server.config.name;
                warnings.push(format!(
                    "the MCP server `{name}` of {} is not used: there is another of that name",
                    file.display()
                ));
            }
            is_new
        });
        if listed.is_empty() && warnings.is_empty() {
            return None;
        }
        let mut surroundings = Surroundings::new(context.working_directory())
            .spawner(Arc::new(GuardedSpawner))
            .environment(inherited)
            .clock(Arc::clone(context.clock()));
        surroundings.authorization = match (&places.authorization, &places.logins) {
            (Some(own), _) => Some(Arc::clone(own)),
            (None, Some(place)) => Some(kept_logins(&listed, place, Arc::clone(context.clock()))),
            (None, None) => None,
        };
        surroundings.cache_directory.clone_from(&places.cache);
        for server in listed.iter_mut().filter(|server| server.author == Author::Project) {
            let name = server.config.name.clone();
            surroundings = surroundings.spawner_of(name, Arc::clone(confined));
            server.config.trust = Trust::Nothing;
            server.config.sampling = Sampling::Refused;
        }
        let configs = listed.iter().map(|server| server.config.clone()).collect();
        let servers = Servers::new(configs, surroundings);
        servers.introduce(registry);
        let (registry, store) = (registry.clone(), store.cloned());
        Some(Self { servers, registry, store, attached: OnceLock::new(), warnings, listed })
    }

    /// Returns the servers themselves.
    pub const fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Returns every server there is, and whose it is.
    pub fn listed(&self) -> &[ListedServer] {
        &self.listed
    }

    /// Returns what there is to know that stops nothing.
    pub fn warnings(&self) -> Vec<String> {
        let told = self.servers.warnings().into_iter().map(|warning| warning.message);
        self.warnings.iter().cloned().chain(told).collect()
    }

    /// Keeps the registry in step with the servers from now on. To be called where there is a runtime for
    /// tasks.
    pub fn attach(&self) {
        self.attached.get_or_init(|| self.servers.attach(&self.registry));
    }
}

#[async_trait]
impl Arrivals for McpServers {
    fn expect(&self, run: &RunId) {
        if let Some(directory) = self.store.as_ref().and_then(|store| store.directory(run).ok()) {
            self.servers.log_into(directory.join(LOGS));
        }
        self.attach();
        self.servers.start_unknown_after(HEAD_START);
    }

    fn sources(&self) -> Vec<Source> {
        let used = self.servers.status().into_iter().filter(|status| status.enabled);
        let source = used.map(|status| {
            let standing = match &status.state {
                _ if status.known => Standing::Here { count: status.tools },
                ServerState::Failed { why, .. } => Standing::Missing { reason: why.clone() },
                ServerState::Stopped => Standing::Missing { reason: "it was stopped".to_owned() },
                _ => Standing::Coming,
            };
            Source { name: status.name, standing }
        });
        source.collect()
    }

    async fn settled(&self) {
        self.servers.settled().await;
    }

    fn changes(&self) -> BoxStream<'static, SourceChange> {
        let next = |mut changes: convoke_mcp::client::Changes| async move {
            loop {
                if let Change::State { server, state } = changes.next().await? {
                    let reason = state.reason().map(str::to_owned);
                    let state = state.as_str().to_owned();
                    return Some((SourceChange { name: server, state, reason }, changes));
                }
            }
        };
        stream::unfold(self.servers.changes(), next).boxed()
    }
}

/// Has the model of the run answer that a call belongs to, where a server may ask for that.
#[derive(Debug)]
pub(super) struct RunModel;

#[async_trait]
impl Sampler for RunModel {
    async fn sample(
        &self,
        context: &ToolContext,
        request: SampleRequest,
    ) -> Result<Sample, ToolError> {
        let SampleRequest { server, system, messages, max_tokens, .. } = request;
        let asked = Consultation { who: server, system, messages, max_tokens };
        let Counsel { text, model } = consult(context, asked).await?;
        Ok(Sample { text, model })
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

/// Reads servers as other programs write them.
fn read_file(
    path: &Path,
    author: Author,
    variables: Variables<'_>,
    listed: &mut Vec<ListedServer>,
    warnings: &mut Vec<String>,
) {
    let text = match disk::read_file(path) {
        Ok(Some(text)) => text,
        unreadable => {
            let why =
                unreadable.err().map_or("there is no such file".to_owned(), |one| one.message);
            warnings.push(format!("the MCP servers of {} are not used: {why}", path.display()));
            return;
        }
    };
    let read = import(&text);
    for problem in read.problems {
        let word = match problem.severity {
            Severity::Warning => "",
            Severity::Error => " (left out)",
        };
        warnings.push(format!("{}: {problem}{word}", path.display()));
    }
    for mut config in read.servers {
        match expanded(&mut config, variables) {
            Ok(()) => {
                let file = Some(path.to_owned());
                listed.push(ListedServer { config, author, file, auth: None });
            }
            Err(why) => {
                let name = &config.name;
                let shown = path.display();
                warnings.push(format!("{shown}: the MCP server `{name}` is left out: {why}"));
            }
        }
    }
}

/// Puts variables into what a file says about a server.
fn expanded(config: &mut ServerConfig, variables: Variables<'_>) -> Result<(), String> {
    let expand = |text: &mut String| variables.put_into(text);
    match &mut config.transport {
        Transport::Program { command, args, env, cwd: _ } => {
            expand(command)?;
            args.iter_mut().try_for_each(expand)?;
            env.values_mut().try_for_each(expand)
        }
        Transport::Http { url, headers } => {
            expand(url)?;
            headers.values_mut().try_for_each(expand)
        }
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

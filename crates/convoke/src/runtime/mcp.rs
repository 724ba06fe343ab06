//! MCP servers of a runtime: which there are, who starts them, and when their tools are wanted.
//!
//! Those of the user run with the user's rights, behind a guard that ends them with us. Those of a project run
//! confined, as programs do; what they say about their tools is not believed, and they are given no model. Nothing
//! is started before it is needed, and no run waits for a server that it does not use.
//!
//! `listing` says which there are, `rights` with whose rights each runs.

mod listing;
mod rights;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use convoke_agent::{Consultation, Counsel, Saying, consult};
use convoke_core::{RunId, ToolError, ToolSpec};
use convoke_journal::Store;
use convoke_mcp::client::{
    Authorization, Change, Sample, SampleRequest, Sampler, Sampling, ServerConfig, ServerState,
    Servers, Surroundings, Transport, Trust, names_begin,
};
use convoke_sandbox::GuardedSpawner;
use convoke_tool::catalogue::{Arrivals, Instructions, Source, SourceChange, Standing};
use convoke_tool::{Spawner, Tool, ToolContext, ToolRegistry};
use futures_util::stream::{self, BoxStream, StreamExt};

use self::listing::Listed;
use self::rights::{Judged, Rights};
use super::login::kept_logins;
use super::tools::SERVER_TOOLS;
use crate::config::{Author, Config, EntryState, EntryTrust, McpAuthConfig, ProjectEntry};
use crate::written::Written;

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
    /// The directory whose `.mcp.json` is read: that of a project that is trusted. Where it is not said, what is
    /// worked in is not trusted.
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
    /// The names of servers of the user's that start in a folder that is not trusted.
    here: Vec<String>,
    /// The names of servers that are left out for a variable that they do not get.
    unset: BTreeSet<String>,
    listed: Vec<ListedServer>,
    /// The servers of the project's own files, where each is trusted by itself.
    entries: Vec<ProjectEntry>,
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
    /// Whether its program is confined as programs are: a project's is, and one of the user's that what is worked
    /// in has a say in.
    pub confined: bool,
}

/// What servers are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around<'a> {
    pub(super) config: &'a Config,
    pub(super) places: &'a McpPlaces,
    pub(super) context: &'a ToolContext,
    /// Variables of the user, credentials included.
    pub(super) variables: &'a BTreeMap<String, String>,
    pub(super) home: Option<&'a Path>,
    /// What belongs to what is worked in, and not to the user alone.
    pub(super) folder: &'a Written,
    /// Decides about each server of a trusted project; without it, all of them count.
    pub(super) entry_trust: Option<&'a EntryTrust>,
}

impl McpServers {
    /// Makes the servers of a configuration. What is known of them from earlier is in the registry then.
    pub(super) fn new(
        around: Around<'_>,
        confined: &Arc<dyn Spawner>,
        registry: &ToolRegistry,
        store: Option<&Store>,
    ) -> Option<Self> {
        let Around { places, context, .. } = around;
        let Listed { servers: mut listed, mut warnings, unset, entries } = listing::list(around);
        // Of one that is left out calls may be waiting.
        let is_silent = warnings.is_empty() && unset.is_empty() && entries.is_empty();
        if listed.is_empty() && is_silent {
            return None;
        }
        let mut surroundings = Surroundings::new(context.working_directory())
            .spawner(Arc::new(GuardedSpawner))
            .environment(context.environment().inherited())
            .clock(Arc::clone(context.clock()));
        surroundings.authorization = match (&places.authorization, &places.logins) {
            (Some(own), _) => Some(Arc::clone(own)),
            (None, Some(place)) => Some(kept_logins(&listed, place, Arc::clone(context.clock()))),
            (None, None) => None,
        };
        surroundings.cache_directory.clone_from(&places.cache);
        let Judged { rights, warnings: told, here } = rights::of(&listed, around);
        warnings.extend(told);
        for (server, rights) in listed.iter_mut().zip(rights) {
            let name = server.config.name.clone();
            surroundings = match rights {
                Rights::Users => continue,
                Rights::Programs => surroundings.spawner_of(name, Arc::clone(confined)),
                Rights::Asked(reach) => surroundings.reach_of(name, reach),
                Rights::None(why) => surroundings.refuse(name, why),
            };
            if let Transport::Program { cwd, .. } = &mut server.config.transport {
                server.confined = true;
                // What was learned of it with the user's rights is not known of what this folder makes of it.
                if server.author == Author::User {
                    cwd.get_or_insert_with(|| context.working_directory().to_owned());
                }
            }
            server.config.trust = Trust::Nothing;
            server.config.sampling = Sampling::Refused;
        }
        let configs = listed.iter().map(|server| server.config.clone()).collect();
        let servers = Servers::new(configs, surroundings);
        servers.introduce(registry);
        let (registry, store) = (registry.clone(), store.cloned());
        let attached = OnceLock::new();
        Some(Self { servers, registry, store, attached, warnings, here, unset, listed, entries })
    }

    /// Returns the servers themselves.
    pub const fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Returns every server there is, and whose it is.
    pub fn listed(&self) -> &[ListedServer] {
        &self.listed
    }

    /// Returns what the user's servers are given and nobody is to see, with what it is called: variables and
    /// headers, and of these what stands behind the word for how to use it (`Bearer`).
    pub(super) fn secrets(&self) -> impl Iterator<Item = (String, String)> {
        let own = self.listed.iter().filter(|server| server.author == Author::User);
        own.flat_map(|ListedServer { config, .. }| {
            let (kind, given) = match &config.transport {
                Transport::Program { env, .. } => ("env", env),
                Transport::Http { headers, .. } => ("headers", headers),
            };
            given.iter().flat_map(move |(name, value)| {
                let name = format!("tools.mcpServers.{}.{kind}.{name}", config.name);
                let token = value.split_once(' ').filter(|_| kind == "headers");
                let token = token.map(|(_, token)| (format!("{name} token"), token.to_owned()));
                std::iter::once((name, value.clone())).chain(token)
            })
        })
    }

    /// Returns what there is to know that stops nothing.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings
            .iter()
            .cloned()
            .chain(self.place_warning(|_| true))
            .chain(self.told())
            .collect()
    }

    /// Returns the same without what is of interest only to whoever uses or looks at certain servers: see
    /// [`place_warning`](Self::place_warning).
    pub fn common_warnings(&self) -> Vec<String> {
        self.warnings.iter().cloned().chain(self.told()).collect()
    }

    /// Says it of some servers where they are confined for the folder that they start in.
    pub fn place_warning(&self, concerns: impl Fn(&str) -> bool) -> Option<String> {
        let here = self.here.iter().filter(|name| concerns(name.as_str()));
        rights::untrusted(&here.map(String::as_str).collect::<Vec<_>>())
    }

    /// Returns what servers that are believed say about the use of their tools, as far as it is known. A run is told at
    /// its beginning, so that what it is told stays the same. What none of whose tools is of use to it is not told.
    pub(super) fn sayings(&self, is_of_use: impl Fn(&ToolSpec) -> bool) -> Vec<Saying> {
        let is_believed = |name: &str| {
            let mut configs = self.listed.iter().map(|listed| &listed.config);
            configs.any(|config| {
                config.name == name && config.enabled && config.trust == Trust::Annotations
            })
        };
        let tools = self.servers.tools();
        let is_used = |server: &str| {
            tools.iter().any(|tool| tool.server() == server && is_of_use(tool.spec()))
        };
        let believed = self.servers.status().into_iter().filter(|one| is_believed(&one.name));
        believed
            .filter_map(|status| {
                let words = status.instructions.filter(|words| !words.trim().is_empty())?;
                Some(Saying { server: status.name, words, bytes: status.instructions_bytes })
            })
            .filter(|saying| is_used(&saying.server))
            .collect()
    }

    /// Tells whether a server is left out for a variable that it does not get.
    pub fn is_left_out(&self, server: &str) -> bool {
        self.unset.contains(server)
    }

    /// Returns the servers of the project's own files, where each is trusted by itself.
    pub(super) fn entries(&self) -> &[ProjectEntry] {
        &self.entries
    }

    /// Returns the names of all that are.
    pub(super) const fn left_out(&self) -> &BTreeSet<String> {
        &self.unset
    }

    fn told(&self) -> impl Iterator<Item = String> {
        self.servers.warnings().into_iter().map(|warning| warning.message)
    }

    /// Has calls of tools that are not here wait for their servers, for as long as these last.
    pub(super) fn bring_what_is_called(self: &Arc<Self>) {
        let own = Arc::downgrade(self);
        self.registry.brought_by(SERVER_TOOLS, own);
    }

    /// Says why the server of a tool is not even asked, and what to do about it.
    fn not_used(&self, tool: &str) -> Option<String> {
        let off = self.listed.iter().map(|listed| &listed.config).filter(|config| !config.enabled);
        let off = off.map(|config| config.name.as_str()).find(|name| is_tool_of(tool, name));
        if let Some(name) = off {
            return Some(format!(
                "the MCP server `{name}` is switched off; `convoke mcp enable {name}` switches it on"
            ));
        }
        let unseen = self.entries.iter().filter(|entry| entry.state != EntryState::Trusted);
        let mut unseen = unseen.filter_map(ProjectEntry::server);
        if let Some(name) = unseen.find(|name| is_tool_of(tool, name)) {
            return Some(format!(
                "the MCP server `{name}` is left out: it is new or changed since you trusted this project; \
                 `convoke config trust` shows it"
            ));
        }
        let name = self.unset.iter().find(|name| is_tool_of(tool, name))?;
        Some(format!(
            "the MCP server `{name}` is left out, for a variable that it does not get; `convoke mcp get {name}` \
             says which"
        ))
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
        let used = self.servers.standing().into_iter().filter(|server| server.enabled);
        let source = used.map(|server| {
            let standing = match (server.tools, server.state) {
                (Some(count), _) => Standing::Here { count },
                (None, ServerState::Failed { why, .. }) => Standing::Missing { reason: why },
                (None, ServerState::Stopped) => {
                    Standing::Missing { reason: "it was stopped".to_owned() }
                }
                (None, _) => Standing::Coming,
            };
            Source { name: server.name, standing }
        });
        source.collect()
    }

    fn instructions(&self, tool: &str) -> Option<Instructions> {
        let (source, text) = self.servers.instructions_for(tool)?;
        Some(Instructions { source, text })
    }

    async fn settled(&self) {
        self.servers.settled().await;
        // Whoever waited finds what has come.
        self.servers.introduce(&self.registry);
    }

    async fn bring(&self, tool: &str) -> Result<(), ToolError> {
        let is_not_here = |why: &str| format!("Tool \"{tool}\" is not here: {why}");
        if let Some(why) = self.not_used(tool) {
            return Err(ToolError::unavailable(is_not_here(&why)));
        }
        let brought = self.servers.bring(tool).await;
        // Whoever waited finds what has come.
        self.servers.introduce(&self.registry);
        brought.map_err(|error| ToolError { message: is_not_here(&error.message), ..error })
    }

    fn changes(&self) -> BoxStream<'static, SourceChange> {
        let next = |mut changes: convoke_mcp::client::Changes| async move {
            loop {
                let change = match changes.next().await? {
                    Change::State { server, state } => SourceChange {
                        name: server,
                        reason: state.reason().map(str::to_owned),
                        state: state.as_str().to_owned(),
                    },
                    Change::Warning(warning) if warning.is_about_output() => {
                        SourceChange::warning(warning.server, warning.message)
                    }
                    _ => continue,
                };
                return Some((change, changes));
            }
        };
        stream::unfold(self.servers.changes(), next).boxed()
    }
}

/// Tells whether a name of a tool is one of this server's.
fn is_tool_of(tool: &str, server: &str) -> bool {
    tool.starts_with(&names_begin(server))
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

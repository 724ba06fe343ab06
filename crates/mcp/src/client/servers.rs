//! The handle of all servers.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use convoke_core::nearest::{did_you_mean, nearest};
use convoke_core::{Message, Part, Timestamp, ToolError};
use convoke_tool::{Tool, ToolRegistry};

use super::attach::{Attachment, desired};
use super::config::ServerConfig;
use super::failure::Failure;
use super::name::is_about;
use super::offer::{Prompt, Resource, ResourceTemplate};
use super::read::{get_prompt, read_resource};
use super::reading_tools::ReadingTools;
use super::server::Server;
use super::setback::Setback;
use super::state::{Changes, News, ServerState, Warning};
use super::stderr::Logs;
use super::surroundings::Surroundings;
use super::task::Background;
use super::tool::McpTool;

/// All servers as configured. Cheap to clone; clones are the same servers.
///
/// Nothing is started when this is made. A server is started when one of its tools is called, or by
/// [`start_all`](Self::start_all). When the last clone is dropped, every program ends; tools that are left
/// in a registry then say that their server is gone. Everything here runs on the runtime it is called
/// from.
///
/// ```
/// use convoke_mcp::client::{ServerConfig, ServerState, Servers, Surroundings};
///
/// let files = ServerConfig::program("files", "mcp-server-filesystem", ["/srv/data"]);
/// let servers = Servers::new(vec![files], Surroundings::new("/"));
/// assert_eq!(servers.state("files"), Some(ServerState::Configured));
/// assert!(servers.tools().is_empty());
/// ```
#[derive(Clone)]
pub struct Servers(Arc<Inner>);

struct Inner {
    servers: Arc<[Arc<Server>]>,
    reading: Arc<ReadingTools>,
    surroundings: Arc<Surroundings>,
    news: Arc<News>,
    attached: Mutex<Vec<(Attachment, Background)>>,
    /// Starts those that are not known, in a moment.
    soon: Mutex<Option<Background>>,
}

/// How it stands with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStanding {
    /// What it is called here.
    pub name: String,
    /// Whether it is used at all.
    pub enabled: bool,
    /// What it is doing.
    pub state: ServerState,
    /// How many of its tools can be called, if it is known what it offers.
    pub tools: Option<usize>,
}

/// What is known of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// What it is called here.
    pub name: String,
    /// What it is doing.
    pub state: ServerState,
    /// Whether it is used at all.
    pub enabled: bool,
    /// The revision of the protocol it was last spoken to in.
    pub revision: Option<String>,
    /// What it calls itself, with its version.
    pub software: Option<String>,
    /// What it says about its use, or the beginning of it. It is the server's text.
    pub instructions: Option<String>,
    /// How many bytes all of that has.
    pub instructions_bytes: usize,
    /// Whether it is known what it offers, from now or from earlier.
    pub known: bool,
    /// When it was asked for what is known of it.
    pub asked: Option<Timestamp>,
    /// How many of its tools can be called.
    pub tools: usize,
    /// How many things can be read from it, families of them included.
    pub resources: usize,
    /// How many prompts it has.
    pub prompts: usize,
    /// Tools that it lists and that cannot be called, with the reason.
    pub unusable: BTreeMap<String, String>,
    /// How many of the tools that it lists are not wanted, by what is configured.
    pub unwanted: usize,
    /// How the last try to start it failed, here or in another process; nothing, if it worked.
    pub setback: Option<Setback>,
    /// What else there is to know of it: what was cut from its lists, or left out of them.
    pub warnings: Vec<String>,
}

impl Servers {
    /// Makes the handle. Reads what is known from earlier runs, and starts nothing.
    pub fn new(configs: Vec<ServerConfig>, surroundings: Surroundings) -> Self {
        // Clones of surroundings may be those of other servers, whose runs are others.
        let logs = Arc::new(Logs::at(surroundings.log_directory.clone()));
        let surroundings = Arc::new(Surroundings { logs, ..surroundings });
        let news = Arc::new(News::default());
        let mut names = HashSet::new();
        let mut servers = Vec::new();
        for config in configs {
            if !names.insert(config.name.clone()) {
                let name = &config.name;
                let what = format!(
                    "MCP server `{name}` is configured more than once; the first one counts"
                );
                news.warn(name, "duplicate", what);
                continue;
            }
            servers.push(Server::new(config, Arc::clone(&surroundings), Arc::clone(&news)));
        }
        let servers = servers.into();
        let reading = Arc::new(ReadingTools::new(&servers));
        let (attached, soon) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { servers, reading, surroundings, news, attached, soon }))
    }

    /// Begins to start all servers, each on its own, and returns at once.
    pub fn start_all(&self) {
        for server in self.0.servers.iter() {
            server.begin();
        }
    }

    /// Begins to start those servers of which nothing is known from earlier, or nothing that still holds: for as
    /// long as the server said, or for a day. Returns at once; what is known can be used meanwhile.
    pub fn start_unknown(&self) {
        renew(&self.0.servers);
    }

    /// Does the same after a pause, so that what is more urgent comes first, or as soon as somebody waits for
    /// servers to be [settled](Self::settled).
    pub fn start_unknown_after(&self, pause: Duration) {
        let servers = Arc::clone(&self.0.servers);
        let soon = Background::spawn(async move {
            tokio::time::sleep(pause).await;
            renew(&servers);
        });
        *self.0.soon() = Some(soon);
    }

    /// Begins to start those servers of which nothing is known from earlier and that one of these names of tools
    /// is about, or patterns such as `mcp__files__*`, and returns at once. A pattern that covers all servers is
    /// about none of them.
    pub fn start_unknown_of(&self, tools: &[String]) {
        let unknown = self.0.servers.iter().filter(|server| !server.is_known());
        for server in unknown {
            if tools.iter().any(|tool| is_about(tool, server.name())) {
                server.begin();
            }
        }
    }

    /// Waits until no server is being started of which nothing is known.
    pub async fn settled(&self) {
        if self.0.soon().take().is_some() {
            self.start_unknown();
        }
        let mut generation = self.0.news.generation();
        let starts =
            |server: &Arc<Server>| !server.is_known() && server.state() == ServerState::Starting;
        while self.0.servers.iter().any(starts) {
            if generation.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits for the server of a tool, named as models know it, until it is known what that server offers: it is started
    /// if need be, within the time it has for that. The error says why it does not offer anything now; where no server
    /// has such tools, there is nothing to wait for.
    pub async fn bring(&self, tool: &str) -> Result<(), ToolError> {
        let mut servers = self.0.servers.iter();
        let Some(server) = servers.find(|server| is_about(tool, server.name())) else {
            return Ok(());
        };
        let is_used = server.config.enabled && server.state() != ServerState::Stopped;
        if !is_used || !server.is_known() {
            let started = server.connection().await;
            started.map_err(|failure| failure.about(server.name()))?;
        }
        self.0.bring_in_step();
        Ok(())
    }

    /// Keeps what programs write to their standard error from now on here, also those that run already, unless
    /// their surroundings have a place for that.
    pub fn log_into(&self, directory: PathBuf) {
        if self.0.surroundings.log_directory.is_none() {
            self.0.surroundings.logs.move_to(directory);
        }
    }

    /// Starts one server and waits until it is ready, or says why it is not.
    pub async fn start(&self, server: &str) -> Result<(), ToolError> {
        let server = self.find(server)?;
        server.begin();
        let ready = server.connection().await;
        ready.map_err(|failure| failure.about(server.name()))?;
        self.0.bring_in_step();
        Ok(())
    }

    /// Ends all servers, each as gently as it allows. They stay so until they are started again.
    pub async fn stop(&self) {
        drop(self.0.soon().take());
        let ending = self.0.servers.iter().map(|server| server.stop());
        futures_util::future::join_all(ending).await;
    }

    /// Ends one server. It stays so until it is started again.
    pub async fn stop_one(&self, server: &str) -> Result<(), ToolError> {
        self.find(server)?.stop().await;
        Ok(())
    }

    /// Returns what a server is doing; nothing, if there is none of that name.
    pub fn state(&self, server: &str) -> Option<ServerState> {
        self.find(server).ok().map(|server| server.state())
    }

    /// Returns in short how it stands with all servers, in the order they were configured.
    pub fn standing(&self) -> Vec<ServerStanding> {
        let standing = |server: &Arc<Server>| {
            let tools = server.is_known().then(|| server.offer().tools.len());
            let (name, enabled) = (server.name().to_owned(), server.config.enabled);
            ServerStanding { name, enabled, state: server.state(), tools }
        };
        self.0.servers.iter().map(standing).collect()
    }

    /// Returns what is known of all servers, in the order they were configured.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.0.servers.iter().map(|server| status(server)).collect()
    }

    /// Follows what happens from now on.
    pub fn changes(&self) -> Changes {
        self.0.news.follow()
    }

    /// Returns what there is to know that stops nothing.
    pub fn warnings(&self) -> Vec<Warning> {
        self.0.news.warnings()
    }

    /// Returns the tools of all servers, known from earlier or listed by now.
    pub fn tools(&self) -> Vec<McpTool> {
        let tools = self.0.servers.iter().flat_map(|server| server.offer().tools.clone());
        tools.map(|tool| McpTool::clone(&tool)).collect()
    }

    /// Returns what the server of a tool, named as models know it, says of its use, and what the server is called
    /// here. It is the server's text.
    pub fn instructions_for(&self, tool: &str) -> Option<(String, String)> {
        let has = |server: &&Arc<Server>| {
            server.offer().tools.iter().any(|known| known.spec().name == tool)
        };
        let server = self.0.servers.iter().find(has)?;
        let said = server.offer().manifest.facts.instructions.clone();
        let said = said.filter(|said| !said.trim().is_empty())?;
        Some((server.name().to_owned(), said))
    }

    /// Returns everything that models can be given: the tools, and those that read resources and prompts
    /// if there are any to read.
    pub fn all_tools(&self) -> Vec<Arc<dyn Tool>> {
        desired(&self.0.servers, &self.0.reading)
    }

    /// Puts what is known into a registry, once.
    pub fn introduce(&self, registry: &ToolRegistry) {
        self.attachment(registry).bring_in_step();
    }

    /// Puts all tools into a registry, now and whenever they change, as a group that comes and goes. A name that
    /// somebody else has taken is left to them, with a warning. This lasts for as long as the servers do.
    pub fn attach(&self, registry: &ToolRegistry) {
        let generation = self.0.news.generation();
        let attachment = self.attachment(registry);
        attachment.bring_in_step();
        let following = Background::spawn(attachment.clone().follow(generation));
        self.0.attached().push((attachment, following));
    }

    /// Returns what can be read from a server. Starts it if need be.
    pub async fn list_resources(&self, server: &str) -> Result<Vec<Resource>, ToolError> {
        let server = self.ready(server).await?;
        Ok(server.offer().manifest.resources.clone())
    }

    /// Returns the families of what can be read from a server. Starts it if need be.
    pub async fn list_resource_templates(
        &self,
        server: &str,
    ) -> Result<Vec<ResourceTemplate>, ToolError> {
        let server = self.ready(server).await?;
        Ok(server.offer().manifest.templates.clone())
    }

    /// Reads something from a server.
    pub async fn read_resource(&self, server: &str, uri: &str) -> Result<Vec<Part>, ToolError> {
        read_resource(self.find(server)?, uri, None).await
    }

    /// Returns the prompts of a server. Starts it if need be.
    pub async fn list_prompts(&self, server: &str) -> Result<Vec<Prompt>, ToolError> {
        let server = self.ready(server).await?;
        Ok(server.offer().manifest.prompts.clone())
    }

    /// Has a server fill in a prompt.
    pub async fn get_prompt(
        &self,
        server: &str,
        name: &str,
        arguments: BTreeMap<String, String>,
    ) -> Result<Vec<Message>, ToolError> {
        get_prompt(self.find(server)?, name, arguments, None).await
    }

    /// Returns what is known of what can be read from a server, and starts nothing.
    pub fn known_resources(&self, server: &str) -> (Vec<Resource>, Vec<ResourceTemplate>) {
        self.find(server).map_or_else(
            |_| Default::default(),
            |server| {
                let offer = server.offer();
                (offer.manifest.resources.clone(), offer.manifest.templates.clone())
            },
        )
    }

    /// Returns what is known of the prompts of a server, and starts nothing.
    pub fn known_prompts(&self, server: &str) -> Vec<Prompt> {
        self.find(server)
            .map_or_else(|_| Vec::new(), |server| server.offer().manifest.prompts.clone())
    }

    /// Forgets how the last try to start a server failed: what it failed for was put right.
    pub async fn forget_setback(&self, server: &str) {
        if let Ok(server) = self.find(server) {
            server.remember(None).await;
        }
    }

    /// Takes note that somebody signed out of a server, for whoever asks later.
    pub async fn signed_out(&self, server: &str) {
        if let Ok(server) = self.find(server) {
            let why = "somebody signed out of it".to_owned();
            server.remember(Some(&Failure::Unauthorized(why))).await;
        }
    }

    /// Takes note that nobody waited any longer for a server to be ready, for whoever asks later. Returns that, with what
    /// the server has said so far.
    pub async fn not_waited_for(&self, server: &str) -> String {
        const LATE: &str = "it was not ready in time";
        let Ok(server) = self.find(server) else { return LATE.to_owned() };
        let failure = Failure::NotStarted(server.too_late(LATE));
        server.remember(Some(&failure)).await;
        failure.reason(server.name())
    }

    /// Starts one server, if need be, and reads all that it offers.
    pub async fn look(&self, server: &str) -> Result<ServerStatus, ToolError> {
        self.ready(server).await.map(|server| status(server))
    }

    fn attachment(&self, registry: &ToolRegistry) -> Attachment {
        let (servers, news) = (Arc::clone(&self.0.servers), Arc::clone(&self.0.news));
        Attachment::new(registry.clone(), servers, Arc::clone(&self.0.reading), news)
    }

    async fn ready(&self, server: &str) -> Result<&Arc<Server>, ToolError> {
        let server = self.find(server)?;
        let listed = server.listed().await;
        listed.map_err(|failure| failure.about(server.name()))?;
        self.0.bring_in_step();
        Ok(server)
    }

    fn find(&self, name: &str) -> Result<&Arc<Server>, ToolError> {
        find(&self.0.servers, name)
    }
}

impl Inner {
    /// Registries that follow the servers do so in their own time. Whoever waited for a server finds its tools there.
    fn bring_in_step(&self) {
        for (attachment, _) in &*self.attached() {
            attachment.bring_in_step();
        }
    }

    fn attached(&self) -> MutexGuard<'_, Vec<(Attachment, Background)>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn soon(&self) -> MutexGuard<'_, Option<Background>> {
        self.soon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn renew(servers: &[Arc<Server>]) {
    for server in servers {
        server.renew();
    }
}

/// Returns the server of that name.
pub(super) fn find<'a>(
    servers: &'a [Arc<Server>],
    name: &str,
) -> Result<&'a Arc<Server>, ToolError> {
    let found = servers.iter().find(|server| server.name() == name);
    found.ok_or_else(|| {
        let close = nearest(name, servers.iter().map(|server| server.name()));
        ToolError::not_found(format!("there is no MCP server `{name}`{}", did_you_mean(&close)))
    })
}

fn status(server: &Server) -> ServerStatus {
    let offer = server.offer();
    let facts = &offer.manifest.facts;
    let unusable = |entry: &super::offer::ToolEntry| {
        let why = entry.unusable.clone()?;
        server.config.takes(&entry.name).then(|| (entry.name.clone(), why))
    };
    let manifest = &offer.manifest;
    let is_known = manifest.is_known();
    ServerStatus {
        name: server.name().to_owned(),
        state: server.state(),
        enabled: server.config.enabled,
        revision: Some(facts.revision.clone()).filter(|revision| !revision.is_empty()),
        software: facts.name.as_ref().map(|name| match &facts.version {
            Some(version) => format!("{name} {version}"),
            None => name.clone(),
        }),
        instructions: facts.instructions.clone(),
        // What was remembered by an earlier version has only its text.
        instructions_bytes: facts
            .instructions_bytes
            .max(facts.instructions.as_ref().map_or(0, String::len)),
        known: server.is_known(),
        asked: is_known.then_some(manifest.at),
        tools: offer.tools.len(),
        resources: manifest.resources.len() + manifest.templates.len(),
        prompts: manifest.prompts.len(),
        unusable: manifest.tools.iter().filter_map(unusable).collect(),
        unwanted: manifest.tools.iter().filter(|tool| !server.config.takes(&tool.name)).count(),
        setback: server.setback(),
        warnings: server.warnings(),
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for server in self.servers.iter() {
            // Nobody waits: a program that does not end by itself is killed with what watches over it.
            drop(server.leave());
        }
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states = self.0.servers.iter().map(|server| (server.name(), server.state()));
        formatter.debug_map().entries(states).finish()
    }
}

//! Makes a runtime of what a program and a configuration say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use convoke_agent::files::{AgentDirectory, ProjectTrust};
use convoke_agent::{AgentDefinition, Journals};
use convoke_core::policy::Authority;
use convoke_core::{Mode, TaskId, WorkspaceKind};
use convoke_journal::Store;
use convoke_mcp::client::SamplerHandle;
use convoke_tool::{
    Clock, Hook, Hooks, IntoTool, Selection, Spawner, SystemClock, Tool, ToolRegistry, ToolView,
};

use super::agents::Agents;
use super::mcp::{Around, McpPlaces, McpServers, RunModel};
use super::place::{Ground, Setup};
use super::tools::{command_tool, hooks_of, is_pattern, limits, names, offered, settings};
use super::{Runtime, RuntimeError};
use crate::config::{Config, EntryTrust};
use crate::workspace::{Workspace, Workspaces};
use crate::written::Written;

/// Makes a [`Runtime`].
#[derive(Debug)]
#[must_use]
pub struct RuntimeBuilder {
    working_directory: PathBuf,
    config: Config,
    task: TaskId,
    variables: BTreeMap<String, String>,
    clock: Arc<dyn Clock>,
    spawner: Option<Arc<dyn Spawner>>,
    mode: Mode,
    home: Option<PathBuf>,
    store: Option<Store>,
    hidden: Vec<PathBuf>,
    hooks: Hooks,
    tools: Vec<ToolHandle>,
    workspace: Option<Workspace>,
    workspaces: Option<Workspaces>,
    agents: Vec<AgentDefinition>,
    agent_directories: Vec<AgentDirectory>,
    trust: ProjectTrust,
    mcp: McpPlaces,
    entry_trust: Option<EntryTrust>,
}

/// A tool that has not been registered yet.
struct ToolHandle(Arc<dyn Tool>);

impl std::fmt::Debug for ToolHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0.spec().name)
    }
}

impl RuntimeBuilder {
    pub(super) fn new(working_directory: PathBuf) -> Self {
        Self {
            working_directory,
            config: Config::default(),
            task: TaskId::new("task"),
            variables: BTreeMap::new(),
            clock: Arc::new(SystemClock),
            spawner: None,
            mode: Mode::Default,
            home: None,
            store: None,
            hidden: Vec::new(),
            hooks: Hooks::default(),
            tools: Vec::new(),
            workspace: None,
            workspaces: None,
            agents: Vec::new(),
            agent_directories: Vec::new(),
            trust: ProjectTrust::Untrusted,
            mcp: McpPlaces::default(),
            entry_trust: None,
        }
    }

    /// Lets MCP servers use these places.
    pub fn mcp(mut self, places: McpPlaces) -> Self {
        self.mcp = places;
        self
    }

    /// Leaves out MCP servers and agents of a trusted project that the user has not seen as they are now.
    /// Without it, all of them count.
    pub fn entry_trust(mut self, trust: Option<EntryTrust>) -> Self {
        self.entry_trust = trust;
        self
    }

    /// Uses this configuration.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Lets somebody have a say, after the hooks of the configuration.
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks = self.hooks.and(hook);
        self
    }

    /// Works for this task.
    pub fn task(mut self, task: impl Into<TaskId>) -> Self {
        self.task = task.into();
        self
    }

    /// Lets runs act this freely.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Says where the user's home directory is: notes for agents are not looked for there.
    pub fn home(mut self, home: Option<PathBuf>) -> Self {
        self.home = home;
        self
    }

    /// Keeps every run here, so that it can be seen, resumed and forked. Without a store, a run is gone
    /// when its process is.
    pub fn store(mut self, store: Option<Store>) -> Self {
        self.store = store;
        self
    }

    /// Keeps these paths from tools and programs, besides the store and where credentials usually are.
    pub fn hide(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.hidden.extend(paths);
        self
    }

    /// Gives tools and programs these environment variables. Keys and addresses of models are looked
    /// for here as well.
    pub fn environment(mut self, variables: BTreeMap<String, String>) -> Self {
        self.variables = variables;
        self
    }

    /// Takes the time from here.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Starts programs with this. Without one, they start confined as `sandbox` says if
    /// `policy.kinds.execute` lets them run at all, and not otherwise.
    pub fn spawner(mut self, spawner: Arc<dyn Spawner>) -> Self {
        self.spawner = Some(spawner);
        self
    }

    /// Works in this workspace, in place of the working directory. A runtime with files of its own is for
    /// the one run they were made for.
    pub fn workspace(mut self, workspace: Option<Workspace>) -> Self {
        self.workspace = workspace;
        self
    }

    /// Makes the workspaces of agents here, for those that want files of their own.
    pub fn workspaces(mut self, workspaces: Option<Workspaces>) -> Self {
        self.workspaces = workspaces;
        self
    }

    /// Adds an agent that runs can call, in the place of any other of its name.
    pub fn agent<T>(mut self, definition: AgentDefinition<T>) -> Self {
        self.agents.push(definition.untyped());
        self
    }

    /// Reads agents from these directories, beside those of the configuration: the project's only if the
    /// project is trusted. They are read when agents are first needed.
    pub fn agent_directories(
        mut self,
        directories: Vec<AgentDirectory>,
        trust: ProjectTrust,
    ) -> Self {
        (self.agent_directories, self.trust) = (directories, trust);
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl IntoTool) -> Self {
        self.tools.push(ToolHandle(tool.into_tool()));
        self
    }

    /// Makes the runtime.
    pub fn build(self) -> Result<Runtime, RuntimeError> {
        let workspace =
            self.workspace.filter(|workspace| workspace.kind() != WorkspaceKind::Shared);
        let config = Arc::new(self.config);
        let mut hidden = self.hidden;
        hidden.extend(self.store.as_ref().map(|store| store.root().to_owned()));
        let store = self.store.clone();
        let journals = self.store.map(|store| Journals::new(store, Arc::clone(&self.clock)));
        let setup = Setup {
            config: Arc::clone(&config),
            task: self.task,
            variables: self.variables,
            clock: self.clock,
            spawner: self.spawner,
            mode: self.mode,
            home: self.home,
            hidden,
            aside: store.as_ref().map(|store| store.root().join("kept")),
            is_trusted: self.trust == ProjectTrust::Trusted,
        };
        let allowed = config.tools.allowed_paths.clone();
        let footing = setup.footing(None, &self.working_directory)?;
        let ground = setup.ground(self.working_directory, allowed, workspace.as_ref(), footing)?;
        let Ground { context, programs, permissions, policy, variables } = ground;
        let (registry, built_in) = registry(&config, self.tools)?;
        let confined = programs.of_project_hooks(context.spawner());
        let samples = config.tools.mcp_servers.iter().any(|server| server.sampling);
        let context = if samples {
            context.with_extension(Arc::new(SamplerHandle(Arc::new(RunModel))))
        } else {
            context
        };
        let folder = Written::by(&config, &context).and(context.working_directory());
        let around = Around {
            config: &config,
            places: &self.mcp,
            context: &context,
            variables: &variables,
            home: setup.home.as_deref(),
            folder: &folder,
            entry_trust: self.entry_trust.as_ref(),
        };
        let mcp = McpServers::new(around, &confined, &registry, store.as_ref()).map(Arc::new);
        mcp.iter().for_each(McpServers::bring_what_is_called);
        let all = ToolView::of(registry.clone());
        // What a server may bring is excluded before it is there.
        let means_something =
            |name: &&String| is_pattern(name) || registry.has(name) || registry.may_come(name);
        let exclude = config.tools.exclude.iter().filter(means_something);
        let callable = all.select(&Selection::all().without(exclude.clone()))?;
        let offered = callable.select(&offered(&config.tools, &callable, &built_in))?;
        let limits = limits(&config);
        let hooks = hooks_of(&config, &context, &confined)?.and_all(&self.hooks);
        let mut directories = self.agent_directories;
        directories.extend(config.agents.directories.iter().map(AgentDirectory::extra));
        let agents = Agents::new(self.agents, directories, self.trust, self.entry_trust)?;
        Ok(Runtime {
            setup: Arc::new(setup),
            config,
            variables: Arc::new(variables),
            transport: Arc::default(),
            registry,
            callable,
            offered,
            context,
            limits,
            permissions,
            authority: Authority::new(policy),
            hooks,
            journals,
            programs,
            workspace,
            workspaces: self.workspaces,
            agents: Arc::new(agents),
            mcp,
        })
    }
}

/// Registers all tools there are, and names those that are built in.
fn registry(
    config: &Config,
    tools: Vec<ToolHandle>,
) -> Result<(ToolRegistry, BTreeSet<String>), RuntimeError> {
    let registry = ToolRegistry::new();
    registry.register_many(convoke_builtin::tools(&settings(&config.tools)))?;
    let built_in = names(&registry);
    registry.register_many(
        config.tools.commands.iter().map(|command| command_tool(command).into_tool()),
    )?;
    registry.register_many(tools.into_iter().map(|tool| tool.0))?;
    Ok((registry, built_in))
}

//! Wires a configuration to tools, roots, limits and permission.
//!
//! A [`Runtime`] holds what a run needs and no run of its own: make as many executors from it as there
//! are runs. It adds nothing to what the crates below decide.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use convoke_agent::{AgentBuilder, AgentExecutor, Journals, Surroundings, prompts};
use convoke_builtin::network::HttpSettings;
use convoke_builtin::web_search::{SearchEngine, WebSearchSettings};
use convoke_builtin::{OFFERED_BY_DEFAULT, Settings};
use convoke_core::policy::{self, Authority, Policy, Rule, RuleError, RuleSpec};
use convoke_core::{
    AgentPath, Category, Kind, Millis, Mode, ModelFacts, Permission, Secrets, TaskId, ToolError,
    ToolSpec, WorkspaceKind,
};
use convoke_journal::Store;
use convoke_model::{
    Catalogue, Model, ModelError, ProviderModel, RetryPolicy, Timeouts, Transport,
};
use convoke_sandbox::secrets_of;
use convoke_tool::{
    Clock, CommandTool, ExecutorBuilder, Hook, Hooks, IntoTool, Limits, ReadCache, RegistryError,
    RootError, Roots, Selection, SessionEnvironment, Spawner, SystemClock, Tool, ToolContext,
    ToolExecutor, ToolRegistry, ToolView, UnconfinedSpawner, ViewError, looks_like_credential,
};
use serde_json::Value;

use crate::authorize::PolicyAuthorizer;
use crate::config::{
    Author, CommandConfig, Config, HookConfig, SandboxConfig, ToolsConfig, WebSearchProvider,
};
use crate::hooks::{self, CommandHook, HookError};
use crate::models::{ModelChoiceError, ModelSources, Network, Resolved};
use crate::notes;
use crate::origin::{Origin, OriginWorkspace};
use crate::programs::{self, Programs};
use crate::protect;
use crate::workspace::Workspace;

/// How many bytes of unchanged files are remembered.
const READ_CACHE_BYTES: usize = 64 * 1024 * 1024;

/// A runtime that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The working directory cannot be used.
    #[error("the working directory `{}` cannot be used", path.display())]
    WorkingDirectory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An allowed path cannot be opened (`tools.allowedPaths`).
    #[error(transparent)]
    Root(#[from] RootError),
    /// A tool cannot be registered.
    #[error(transparent)]
    Tool(#[from] RegistryError),
    /// The choice of tools names what does not exist (`tools.enabled`, `tools.exclude`).
    #[error(transparent)]
    View(#[from] ViewError),
    /// A rule cannot be used (`policy.rules`).
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A hook cannot be used (`hooks`).
    #[error(transparent)]
    Hook(#[from] HookError),
}

impl RuntimeError {
    /// Returns the setting that cannot be used, where one is to blame.
    pub const fn setting(&self) -> Option<&'static str> {
        match self {
            Self::WorkingDirectory { .. } => None,
            Self::Root(_) => Some("tools.allowedPaths"),
            Self::Tool(_) => Some("tools.commands"),
            Self::View(_) => Some("tools.enabled"),
            Self::Rule(_) => Some("policy.rules"),
            Self::Hook(_) => Some("hooks"),
        }
    }
}

/// A model that cannot be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelSetupError {
    /// It cannot be said which one is meant.
    #[error(transparent)]
    Choice(#[from] ModelChoiceError),
    /// Its provider's address or headers cannot be used.
    #[error("{}", .0.message)]
    Provider(ModelError),
}

/// Tools, roots, limits, permission and models, ready for runs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Runtime {
    config: Arc<Config>,
    variables: Arc<BTreeMap<String, String>>,
    home: Option<PathBuf>,
    /// Made with the first model: what is never asked needs no connections.
    transport: Arc<OnceLock<Transport>>,
    registry: ToolRegistry,
    callable: ToolView,
    offered: ToolView,
    context: ToolContext,
    limits: Limits,
    permissions: BTreeMap<Kind, Permission>,
    authority: Authority,
    hooks: Hooks,
    mode: Mode,
    journals: Option<Journals>,
    programs: Programs,
    workspace: Option<Workspace>,
}

impl Runtime {
    /// Starts a runtime that works in this directory, with the built-in configuration.
    pub fn builder(working_directory: impl Into<PathBuf>) -> RuntimeBuilder {
        RuntimeBuilder {
            working_directory: working_directory.into(),
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
        }
    }

    /// Returns where runs are kept; nothing, if they are not.
    pub const fn journals(&self) -> Option<&Journals> {
        self.journals.as_ref()
    }

    /// Returns every tool there is.
    pub const fn registry(&self) -> &ToolRegistry {
        &self.registry
    }

    /// Returns the tools that may be called: all but those that are excluded.
    pub const fn callable(&self) -> &ToolView {
        &self.callable
    }

    /// Returns the tools a model is offered.
    pub const fn offered(&self) -> &ToolView {
        &self.offered
    }

    /// Returns what calls may use.
    pub const fn context(&self) -> &ToolContext {
        &self.context
    }

    /// Returns the limits of a run's calls.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns how long a call of a tool may take, as far as its arguments do not decide.
    pub fn timeout_of(&self, spec: &ToolSpec) -> Duration {
        self.limits.timeout_of(spec, None, None)
    }

    /// Returns the permission of each kind of call.
    pub const fn permissions(&self) -> &BTreeMap<Kind, Permission> {
        &self.permissions
    }

    /// Returns the workspace, where it is not simply the working directory.
    pub const fn workspace(&self) -> Option<&Workspace> {
        self.workspace.as_ref()
    }

    /// Returns how programs are started.
    pub const fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Returns what the main agent may do.
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Finds a model by name: `provider/model`, an alias, or none for the one to ask where nobody says.
    pub fn model<'a>(
        &self,
        name: impl Into<Option<&'a str>>,
    ) -> Result<Arc<dyn Model>, ModelSetupError> {
        let resolved = self.models().resolve(name.into())?;
        self.connect(&resolved)
    }

    /// Returns how models are chosen here.
    pub fn models(&self) -> ModelSources<'_> {
        ModelSources::new(&self.config, &self.variables)
    }

    /// Makes a model that was chosen ready to be asked. Nothing is opened yet.
    pub fn connect(&self, resolved: &Resolved) -> Result<Arc<dyn Model>, ModelSetupError> {
        let facts = self.facts(resolved);
        let provider = resolved.provider.clone();
        let model = ProviderModel::new(
            resolved.name.model(),
            facts,
            provider,
            self.transport(&resolved.network).clone(),
        );
        Ok(Arc::new(model.map_err(ModelSetupError::Provider)?))
    }

    /// Returns what is known about a model.
    pub fn facts(&self, resolved: &Resolved) -> ModelFacts {
        resolved.facts_over(Catalogue::new().facts(&resolved.name))
    }

    /// Returns the connections all models share.
    pub fn transport(&self, network: &Network) -> &Transport {
        self.transport.get_or_init(|| {
            // Reading a long prompt takes longer than any pause in the middle of an answer.
            let timeouts = Timeouts {
                first_byte: network.idle_timeout.saturating_mul(5),
                idle: network.idle_timeout,
                ..Timeouts::default()
            };
            let retry = RetryPolicy {
                max_attempts: network.retries.saturating_add(1),
                ..RetryPolicy::default()
            };
            Transport::builder()
                .proxy(network.proxies.clone())
                .timeouts(timeouts)
                .retry(retry)
                .build()
        })
    }

    /// Starts the main agent: this model, the offered tools, the configured limits, and instructions that
    /// say where it works and what the project's `AGENTS.md` files say.
    pub fn main_agent(&self, model: Arc<dyn Model>) -> AgentBuilder {
        self.main_agent_with(model, |tools| tools)
    }

    /// Starts the main agent with a tool pipeline that was changed: with somebody to ask, for instance.
    pub fn main_agent_with(
        &self,
        model: Arc<dyn Model>,
        change: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> AgentBuilder {
        let settings = self.config.run_settings(*model.facts());
        let tools = change(self.executor().view(self.offered.clone()));
        let agent = AgentExecutor::with_model(model, tools)
            .model_settings(self.config.model.settings())
            .run_settings(settings)
            .origin(self.origin().to_json())
            .secrets(self.secrets())
            .system(self.surroundings().with(prompts::SYSTEM));
        let agent = match self.workspace.as_ref().filter(|workspace| workspace.kind().is_own()) {
            Some(workspace) => agent.workplace(Arc::new(workspace.clone())),
            None => agent,
        };
        match &self.journals {
            Some(journals) => agent.keeper(Arc::new(journals.clone())),
            None => agent,
        }
    }

    /// Returns what nobody is to see: what variables hold that look like credentials, and what the
    /// configuration marks as secret.
    pub fn secrets(&self) -> Secrets {
        let variables = self.variables.iter().filter(|(name, _)| looks_like_credential(name));
        let variables = variables.map(|(name, value)| (name.clone(), value.clone()));
        Secrets::new(variables.chain(self.config.secrets()))
    }

    fn origin(&self) -> Origin {
        Origin {
            working_directory: match &self.workspace {
                Some(workspace) => workspace.start().to_owned(),
                None => self.context.working_directory().to_owned(),
            },
            workspace: self.workspace.as_ref().map(|workspace| OriginWorkspace {
                kind: workspace.kind(),
                path: workspace.root().unwrap_or(workspace.start()).to_owned(),
            }),
            mode: self.mode,
            on_ask: self.config.policy.on_ask,
            sandbox: Some(self.programs.word().to_owned()),
            tools: self.config.tools.enabled.clone(),
        }
    }

    /// Returns what the main agent is told about where it works.
    pub fn surroundings(&self) -> Surroundings {
        let directory = self.context.working_directory();
        let mut surroundings = Surroundings::default();
        surroundings.working_directory = directory.display().to_string();
        std::env::consts::OS.clone_into(&mut surroundings.platform);
        surroundings.date = self.context.clock().now().date();
        surroundings.workspace = self.workspace.as_ref().and_then(described);
        let notes = notes::find(directory, self.home.as_deref());
        surroundings.notes = notes.told;
        surroundings.unread = notes.unread;
        surroundings
    }

    /// Starts an executor over the tools that may be called.
    pub fn executor(&self) -> ExecutorBuilder {
        ToolExecutor::builder(self.callable.clone(), self.context.clone())
            .limits(self.limits.clone())
            .authorizer(self.authorizer())
            .hooks(self.hooks.clone())
    }

    /// Says what the policy decides about a call, and which rule decides. Nothing is called.
    pub fn judge(
        &self,
        tool: &dyn Tool,
        arguments: &Value,
        agent: &AgentPath,
    ) -> Result<policy::Decision, ToolError> {
        let spec = tool.spec();
        let computed = tool.prepare(arguments.clone())?.effects();
        let effects = computed.unwrap_or_else(|| spec.effects.apply(arguments));
        let agent = agent.as_str();
        Ok(self.authorizer().judge(spec, arguments, &effects, agent, &self.context))
    }

    /// Says why a call would be refused whatever the policy decides: it names a path outside the allowed
    /// ones. Nothing is called.
    pub fn outside(
        &self,
        tool: &dyn Tool,
        arguments: &Value,
    ) -> Result<Option<ToolError>, ToolError> {
        let computed = tool.prepare(arguments.clone())?.effects();
        let effects = computed.unwrap_or_else(|| tool.spec().effects.apply(arguments));
        Ok(effects.paths().find_map(|(_, path)| self.context.locate(path).err()))
    }

    fn authorizer(&self) -> PolicyAuthorizer {
        PolicyAuthorizer::new(self.authority.clone(), self.home.clone())
    }
}

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
}

/// A tool that has not been registered yet.
struct ToolHandle(Arc<dyn Tool>);

impl std::fmt::Debug for ToolHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0.spec().name)
    }
}

impl RuntimeBuilder {
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

    /// Adds a tool.
    pub fn tool(mut self, tool: impl IntoTool) -> Self {
        self.tools.push(ToolHandle(tool.into_tool()));
        self
    }

    /// Makes the runtime.
    pub fn build(self) -> Result<Runtime, RuntimeError> {
        let Self {
            working_directory,
            config,
            task,
            variables,
            clock,
            spawner,
            mode,
            home,
            store,
            mut hidden,
            hooks,
            tools,
            workspace,
        } = self;
        let workspace = workspace.filter(|workspace| workspace.kind() != WorkspaceKind::Shared);
        let place = Place::of(workspace.as_ref(), working_directory, &config.tools, variables)?;
        let Place { working_directory, roots, writable, untouched, variables } = place;
        hidden.extend(store.as_ref().map(|store| store.root().to_owned()));
        let mut kept_from_tools = secrets_of(home.as_deref());
        kept_from_tools.extend(hidden.iter().chain(&config.sandbox.hidden).cloned());
        let journals = store.map(|store| Journals::new(store, Arc::clone(&clock)));
        let written = config.policy.policy(mode, home.as_deref().and_then(Path::to_str))?;
        let mut permissions = permissions(&config, mode);
        let is_readonly = workspace.as_ref().map(Workspace::kind) == Some(WorkspaceKind::Readonly);
        if is_readonly {
            for kind in WRITES {
                permissions.insert(*kind, Permission::Deny);
            }
        }
        let (programs, spawner) = match spawner {
            Some(spawner) => (Programs::Given, spawner),
            None => Programs::choose(
                &sandbox(&config, is_readonly),
                permissions.get(&Kind::Execute).copied(),
                programs::confinement(
                    writable,
                    variables.get("TMPDIR"),
                    home.as_deref(),
                    hidden,
                    &untouched,
                ),
                denied_inside(&written, &roots, &working_directory),
            ),
        };
        permissions.entry(Kind::Execute).and_modify(|execute| *execute = programs.limit(*execute));
        let policy = with_built_in_rules(written, &programs, is_readonly)?;
        let registry = ToolRegistry::new();
        registry.register_many(convoke_builtin::tools(&settings(&config.tools)))?;
        let built_in = names(&registry);
        registry.register_many(
            config.tools.commands.iter().map(|command| command_tool(command).into_tool()),
        )?;
        registry.register_many(tools.into_iter().map(|tool| tool.0))?;
        let all = ToolView::of(registry.clone());
        let exclude =
            config.tools.exclude.iter().filter(|name| is_pattern(name) || registry.has(name));
        let callable = all.select(&Selection::all().without(exclude.clone()))?;
        let offered = callable.select(&offered(&config.tools, &callable, &built_in))?;
        let context = ToolContext::builder(task)
            .roots(Roots::open(roots)?.hiding(kept_from_tools))
            .working_directory(working_directory)
            .environment(
                SessionEnvironment::new(variables.clone())
                    .granting(config.tools.environment.clone()),
            )
            .clock(clock)
            .spawner(Arc::clone(&spawner))
            .read_cache(if config.tools.read_cache {
                ReadCache::new(READ_CACHE_BYTES)
            } else {
                ReadCache::off()
            })
            .build();
        let limits = limits(&config);
        let confined = programs.of_project_hooks(&spawner);
        let hooks = hooks_of(&config, &context, &confined)?.and_all(&hooks);
        Ok(Runtime {
            config: Arc::new(config),
            variables: Arc::new(variables),
            home,
            transport: Arc::default(),
            registry,
            callable,
            offered,
            context,
            limits,
            permissions,
            authority: Authority::new(policy),
            hooks,
            mode,
            journals,
            programs,
            workspace,
        })
    }
}

/// Adds the rules that hold whatever is written.
fn with_built_in_rules(
    written: Policy,
    programs: &Programs,
    is_readonly: bool,
) -> Result<Policy, RuleError> {
    let protected = protect::layer(&written)?;
    let mut policy = written.layer(protected);
    if programs.limit(Permission::Allow) != Permission::Allow {
        policy = policy.layer(ask_before_programs());
    }
    if is_readonly {
        policy = policy.layer(nothing_is_written()?);
    }
    Ok(policy)
}

/// Where programs cannot be confined, whatever starts one is asked about, whatever else is allowed.
fn ask_before_programs() -> policy::Layer {
    let reason = "programs cannot be confined here";
    let rule = Rule::on_programs(Permission::Ask, reason, "sandbox".to_owned());
    policy::Layer::new(policy::Scope::User, vec![rule])
}

/// Returns what rules deny to everybody of what programs may otherwise write. A rule on a place elsewhere
/// is not taken: programs may need it to start at all.
fn denied_inside(policy: &Policy, roots: &[PathBuf], working_directory: &Path) -> Vec<PathBuf> {
    let inside = |path: &PathBuf| roots.iter().any(|root| path.starts_with(root) && path != root);
    let denied = Authority::new(policy.clone()).denied_paths(working_directory);
    denied.into_iter().filter(inside).collect()
}

/// Kinds of calls that change files.
const WRITES: &[Kind] = &[Kind::Edit, Kind::Delete, Kind::Move];

/// In a workspace that is only looked at, no tool writes, whatever else is allowed. Programs are held by the
/// sandbox: they may write temporary files, which no rule could tell from others.
fn nothing_is_written() -> Result<policy::Layer, RuleError> {
    let deny = |kind: &Kind, category: &Category| {
        let mut deny = RuleSpec::new(Permission::Deny);
        (deny.kind, deny.category) = (Some(*kind), Some(*category));
        deny.reason = Some("the workspace is `readonly`: nothing is changed here".to_owned());
        Rule::new(deny, None, Some("workspace".to_owned()))
    };
    let writers = Category::ALL.iter().filter(|category| {
        !matches!(category, Category::Code | Category::System | Category::Agent)
    });
    let rules = writers.flat_map(|category| WRITES.iter().map(move |kind| deny(kind, category)));
    Ok(policy::Layer::new(policy::Scope::User, rules.collect::<Result<_, _>>()?))
}

/// Directories that programs may write elsewhere are not part of what is only looked at.
fn sandbox(config: &Config, is_readonly: bool) -> SandboxConfig {
    let mut sandbox = config.sandbox.clone();
    if is_readonly {
        sandbox.write.clear();
    }
    sandbox
}

/// Where a runtime works, and what may be written there.
struct Place {
    working_directory: PathBuf,
    roots: Vec<PathBuf>,
    /// Where programs may write.
    writable: Vec<PathBuf>,
    /// Where they must not, whatever else they may.
    untouched: Vec<PathBuf>,
    variables: BTreeMap<String, String>,
}

impl Place {
    fn of(
        workspace: Option<&Workspace>,
        working_directory: PathBuf,
        tools: &ToolsConfig,
        mut variables: BTreeMap<String, String>,
    ) -> Result<Self, RuntimeError> {
        let wanted = workspace.map_or(working_directory, Workspace::working_directory);
        let working_directory = wanted
            .canonicalize()
            .map_err(|source| RuntimeError::WorkingDirectory { path: wanted, source })?;
        let roots = match workspace.and_then(|it| it.root().map(|root| (it, root))) {
            // What was allowed elsewhere is not part of the workspace.
            Some((own, root)) => match &tools.allowed_paths {
                Some(paths) => paths.iter().filter_map(|path| own.own_path(path)).collect(),
                None => vec![root.to_owned()],
            },
            None => root_paths(tools, &working_directory),
        };
        let mut untouched = workspace.map(Workspace::untouched).unwrap_or_default();
        let mut writable = match workspace {
            Some(workspace) if workspace.kind() == WorkspaceKind::Readonly => {
                untouched.extend(roots.iter().cloned());
                Vec::new()
            }
            Some(workspace) => [roots.clone(), workspace.writable()].concat(),
            None => roots.clone(),
        };
        if let Some(workspace) = workspace
            && programs::needs_own_temporary(variables.get("TMPDIR"), &untouched)
        {
            let own = workspace.temporary().map_err(|source| RuntimeError::WorkingDirectory {
                path: working_directory.clone(),
                source,
            })?;
            writable.push(own.clone());
            variables.insert("TMPDIR".to_owned(), own.to_string_lossy().into_owned());
        }
        Ok(Self { working_directory, roots, writable, untouched, variables })
    }
}

/// Says what a model has to know about its workspace.
fn described(workspace: &Workspace) -> Option<String> {
    let said = match workspace.kind() {
        WorkspaceKind::Shared => return None,
        WorkspaceKind::Readonly => "read-only; files cannot be changed",
        WorkspaceKind::Worktree => {
            "a git worktree of your own; your user decides later what is taken over, so do not merge or push"
        }
        WorkspaceKind::Copy => {
            "a copy of your own, without git; your user decides later what is taken over"
        }
    };
    Some(said.to_owned())
}

fn permissions(config: &Config, mode: Mode) -> BTreeMap<Kind, Permission> {
    let decide = |kind: &Kind| (*kind, mode.permission(*kind, config.policy.permission(*kind)));
    Kind::ALL.iter().map(decide).collect()
}

fn settings(tools: &ToolsConfig) -> Settings {
    let http = &tools.http;
    let search = &tools.web_search;
    Settings {
        max_read_bytes: tools.max_read_bytes,
        http: HttpSettings {
            allow_private: http.allow_private,
            allowed_hosts: http.allowed_hosts.clone(),
            max_redirects: http.max_redirects,
            max_body_bytes: http.max_body_bytes,
            ..HttpSettings::default()
        },
        web_search: WebSearchSettings {
            provider: search.provider.map(engine),
            api_key: search.api_key.as_ref().map(|key| key.expose().to_owned()),
            engine_id: search.engine_id.clone(),
            base_url: search.base_url.clone(),
            max_results: search.max_results,
        },
    }
}

const fn engine(provider: WebSearchProvider) -> SearchEngine {
    match provider {
        WebSearchProvider::Tavily => SearchEngine::Tavily,
        WebSearchProvider::Google => SearchEngine::Google,
        WebSearchProvider::Bing => SearchEngine::Bing,
        WebSearchProvider::Duckduckgo => SearchEngine::DuckDuckGo,
    }
}

fn root_paths(tools: &ToolsConfig, working_directory: &Path) -> Vec<PathBuf> {
    match &tools.allowed_paths {
        Some(paths) => paths.clone(),
        None => vec![working_directory.to_owned()],
    }
}

/// What a model is offered: what the configuration names, or the default set and every tool that was
/// added beside the built-in ones.
fn offered(tools: &ToolsConfig, callable: &ToolView, built_in: &BTreeSet<String>) -> Selection {
    if let Some(names) = &tools.enabled {
        return Selection::only(names.clone());
    }
    let names = callable.list().into_iter().map(|tool| tool.spec().name.clone());
    Selection::only(
        names
            .filter(|name| OFFERED_BY_DEFAULT.contains(&name.as_str()) || !built_in.contains(name)),
    )
}

fn names(registry: &ToolRegistry) -> BTreeSet<String> {
    registry.list().iter().map(|tool| tool.spec().name.clone()).collect()
}

fn is_pattern(name: &str) -> bool {
    name.contains('*') || name.starts_with("category:")
}

/// Makes the hooks of a configuration. The user's run with the user's rights, a project's as programs do.
fn hooks_of(
    config: &Config,
    context: &ToolContext,
    confined: &Arc<dyn Spawner>,
) -> Result<Hooks, HookError> {
    let directory = context.working_directory();
    let variables = context.environment().inherited();
    let written: Vec<PathBuf> =
        context.roots().paths().map(Path::to_owned).chain(config.sandbox.write.clone()).collect();
    let hook = |(hook, author): (&HookConfig, Author)| -> Result<Arc<dyn Hook>, HookError> {
        hooks::refuse_if_written(hook, author, &written, directory, variables.get("PATH"))?;
        let spawner: Arc<dyn Spawner> = match author {
            Author::User => Arc::new(UnconfinedSpawner),
            Author::Project => Arc::clone(confined),
        };
        Ok(Arc::new(CommandHook::new(hook.clone(), directory, variables.clone(), spawner)))
    };
    Ok(Hooks::new(config.hooks_by_author().map(hook).collect::<Result<Vec<_>, _>>()?))
}

fn limits(config: &Config) -> Limits {
    let (tools, policy) = (&config.tools, &config.policy);
    let mut limits = Limits {
        approval_timeout: policy.approval_timeout.duration(),
        unanswered: policy.on_ask.into(),
        max_concurrent: tools.max_concurrent,
        timeout: tools.timeout.duration(),
        max_argument_bytes: tools.max_argument_bytes,
        max_output_bytes: tools.max_output_bytes,
        ..Limits::default()
    };
    let by_category = tools.timeouts.category.iter();
    limits
        .category_timeouts
        .extend(by_category.map(|(category, timeout)| (*category, timeout.duration())));
    let by_tool = tools.timeouts.tool.iter();
    limits.tool_timeouts.extend(by_tool.map(|(name, timeout)| (name.clone(), timeout.duration())));
    limits
}

fn command_tool(config: &CommandConfig) -> CommandTool {
    let mut spec = ToolSpec::new(&config.name, &config.description, config.kind);
    spec.category = config.category;
    spec.parameters = config.parameters.clone().into();
    spec.effects = config.effects.clone();
    spec.timeout_ms = config.timeout.map(|timeout| Millis::new(timeout.duration()));
    let variables =
        config.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
    let tool = CommandTool::new(spec, config.command.clone()).environment(variables.collect());
    match &config.working_directory {
        Some(directory) => tool.working_directory(directory),
        None => tool,
    }
}

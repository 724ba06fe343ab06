//! Wires a configuration to tools, roots, limits and permission.
//!
//! A [`Runtime`] holds what a run needs and no run of its own: make as many executors from it as there
//! are runs. It adds nothing to what the crates below decide.
//!
//! | module | owns |
//! | --- | --- |
//! | `build` | making a runtime |
//! | `place` | where a run works, and what its calls and programs may use there |
//! | `rules` | what holds beside what the user wrote |
//! | `tools` | tools, limits and hooks of a configuration |
//! | `mcp` | MCP servers and when they start |
//! | `models` | finding and connecting models |
//! | `agents` | the agents that runs can call |
//! | `supply` | what those agents need: models, policies, places |
//! | `known` | finding one of them by its name, also one that is switched off |
//! | `review` | what there is to say about one in this configuration |
//! | `servers` | tools of servers that agents name |
//! | `standing` | what one may do, and what would be decided about its calls |
//! | `direct` | running one of them by itself |
//! | `login` | telling remote MCP servers who asks |
//! | `serve` | tools and agents as an MCP server |
//! | `error` | what can go wrong before there is a runtime |

mod agents;
mod build;
mod direct;
mod error;
mod known;
mod login;
mod mcp;
mod models;
mod place;
mod review;
mod rules;
mod serve;
mod servers;
mod standing;
mod supply;
mod tools;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use convoke_agent::{AgentBuilder, AgentExecutor, Journals, ManyTools, Surroundings, prompts};
use convoke_core::policy::Authority;
use convoke_core::{Kind, Permission, Secrets, ToolSpec};
use convoke_model::{Model, Transport};
use convoke_tool::catalogue::Arrivals;
use convoke_tool::{
    ExecutorBuilder, Hooks, Limits, ToolContext, ToolExecutor, ToolRegistry, ToolView,
    looks_like_credential,
};

pub use self::build::RuntimeBuilder;
pub use self::direct::AgentCallError;
pub use self::error::{ModelSetupError, RuntimeError};
pub use self::known::{AgentOff, KnownAgent, NotOffered};
pub use self::login::LoginError;
pub use self::mcp::{ListedServer, McpPlaces, McpServers, PROJECT_SERVERS};
pub use self::review::{CutLimit, Remark, replaces_shipped};
pub use self::serve::Serving;
pub use self::standing::{Refusal, Standing};

use self::agents::Agents;
use self::place::{Footing, Setup, described};
use crate::authorize::PolicyAuthorizer;
use crate::config::Config;
use crate::notes;
use crate::origin::{Origin, OriginWorkspace};
use crate::programs::Programs;
use crate::workspace::{Workspace, Workspaces};

/// Tools, roots, limits, permission and models, ready for runs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Runtime {
    setup: Arc<Setup>,
    config: Arc<Config>,
    variables: Arc<BTreeMap<String, String>>,
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
    journals: Option<Journals>,
    programs: Programs,
    workspace: Option<Workspace>,
    workspaces: Option<Workspaces>,
    agents: Arc<Agents>,
    mcp: Option<Arc<McpServers>>,
}

impl Runtime {
    /// Starts a runtime that works in this directory, with the built-in configuration.
    pub fn builder(working_directory: impl Into<PathBuf>) -> RuntimeBuilder {
        RuntimeBuilder::new(working_directory.into())
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
        let agent = agent.many_tools(Some(self.many_tools()));
        let agent = if self.calls_agents() {
            agent.team(self.team().clone()).ceiling(self.ceiling().clone())
        } else {
            agent
        };
        let agent = match self.workspace.as_ref().filter(|workspace| workspace.kind().is_own()) {
            Some(workspace) => agent.workplace(Arc::new(workspace.clone())),
            None => agent,
        };
        match &self.journals {
            Some(journals) => agent.keeper(Arc::new(journals.clone())),
            None => agent,
        }
    }

    /// Returns the MCP servers, if there are any.
    pub fn mcp(&self) -> Option<&Arc<McpServers>> {
        self.mcp.as_ref()
    }

    /// Tells whether an MCP server is left out for a variable that it does not get.
    pub fn is_server_left_out(&self, name: &str) -> bool {
        let by_file = self.mcp.as_ref().is_some_and(|servers| servers.is_left_out(name));
        by_file || self.config.servers_left_out.contains(name)
    }

    /// Returns the names of the MCP servers that are left out for a variable that they do not get.
    pub fn servers_left_out(&self) -> impl Iterator<Item = &str> {
        let names = match &self.mcp {
            Some(servers) => servers.left_out(),
            None => &self.config.servers_left_out,
        };
        names.iter().map(String::as_str)
    }

    /// Returns the names of MCP servers that the user switched off and that are not here: those of another project,
    /// or ones that are gone.
    pub fn servers_switched_off_elsewhere(&self) -> impl Iterator<Item = &str> {
        let off = self.config.servers_switched_off.iter().map(String::as_str);
        off.filter(move |name| {
            let mut listed = self.mcp.iter().flat_map(|servers| servers.listed());
            !listed.any(|listed| listed.config.name == **name) && !self.is_server_left_out(name)
        })
    }

    /// Returns how much a model is told of tools that are not built in.
    fn many_tools(&self) -> ManyTools {
        let many = ManyTools::up_to(self.config.tools.max_listed_tokens);
        match &self.mcp {
            Some(servers) => many.and(Arc::clone(servers) as Arc<dyn Arrivals>),
            None => many,
        }
    }

    /// Returns what nobody is to see: what variables hold that look like credentials, what the
    /// configuration marks as secret, and what MCP servers of the user's are given.
    pub fn secrets(&self) -> Secrets {
        let variables = self.variables.iter().filter(|(name, _)| looks_like_credential(name));
        let variables = variables.map(|(name, value)| (name.clone(), value.clone()));
        let servers = self.mcp.iter().flat_map(|servers| servers.secrets());
        Secrets::new(variables.chain(self.config.secrets()).chain(servers))
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
            mode: self.setup.mode,
            on_ask: self.config.policy.on_ask,
            sandbox: Some(self.programs.word().to_owned()),
            tools: self.config.tools.enabled.clone(),
            agent: None,
            served: false,
        }
    }

    /// Returns what the main agent is told about where it works.
    pub fn surroundings(&self) -> Surroundings {
        let mut surroundings = self.surroundings_of(&self.context);
        let is_of_use = |spec: &ToolSpec| {
            self.offered.would_show(spec) && self.permission_of(spec) != Permission::Deny
        };
        let servers = self.mcp.as_ref();
        surroundings.servers =
            servers.map(|servers| servers.sayings(is_of_use)).unwrap_or_default();
        surroundings
    }

    /// Returns what an agent is told that works in this context.
    fn surroundings_of(&self, context: &ToolContext) -> Surroundings {
        let directory = context.working_directory();
        let mut surroundings = Surroundings::default();
        surroundings.working_directory = directory.display().to_string();
        std::env::consts::OS.clone_into(&mut surroundings.platform);
        surroundings.date = context.clock().now().date();
        surroundings.workspace = described(Footing::kind(context));
        let notes = notes::find(directory, self.setup.home.as_deref());
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

    fn authorizer(&self) -> PolicyAuthorizer {
        PolicyAuthorizer::new(self.authority.clone(), self.setup.home.clone())
    }
}

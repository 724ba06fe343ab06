//! The agents that can be called, and how a model reaches them.
//!
//! A [`Team`] knows the registry, how models call agents, and how large a tree may get. What this crate
//! cannot make itself (a model by its name, a place to work, an agent's own policy) comes from a
//! [`Supplier`].

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use convoke_core::policy::wildcard;
use convoke_core::{RunId, WorkspaceKind};
use convoke_model::Model;
use convoke_tool::{Authorizer, Tool, ToolContext};

use crate::agent_tool::AgentTool;
use crate::background::BackgroundTool;
use crate::definition::PolicyConfig;
use crate::delegate::DelegateTool;
use crate::manner::Manner;
use crate::registry::{AgentRegistry, Registered};
use crate::tree::TreeLimits;
use crate::workplace::Workplace;

/// How a model reaches agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delegation {
    /// One tool with the name of the agent and what it is to do.
    #[default]
    Delegate,
    /// One tool whose schema has a branch for each agent.
    Union,
    /// One tool for each agent.
    PerAgent,
    /// Not at all.
    Off,
}

impl Delegation {
    /// Every value, with its word.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("delegate", Self::Delegate),
        ("union", Self::Union),
        ("per_agent", Self::PerAgent),
        ("off", Self::Off),
    ];

    /// Returns its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delegate => "delegate",
            Self::Union => "union",
            Self::PerAgent => "per_agent",
            Self::Off => "off",
        }
    }
}

/// A place for an agent to work in.
#[derive(Clone, Debug)]
pub struct Premises {
    /// What its calls may use.
    pub context: ToolContext,
    /// What holds there beside what its caller may do.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// Tells what it changed, where it has files of its own.
    pub workplace: Option<Arc<dyn Workplace>>,
}

/// Makes what an agent needs.
#[async_trait]
pub trait Supplier: Send + Sync + Debug {
    /// Finds a model by its name or an alias.
    fn model(&self, name: &str) -> Result<Arc<dyn Model>, String>;

    /// Makes what decides by the mode and the rules of an agent's own policy; nothing, where it has none.
    fn authorizer(&self, policy: &PolicyConfig) -> Result<Option<Arc<dyn Authorizer>>, String>;

    /// Makes a place of its own for a run, or finds the one it had. It begins with the files its caller works
    /// with, and may touch none that its caller may not.
    async fn premises(
        &self,
        kind: WorkspaceKind,
        run: &RunId,
        caller: &ToolContext,
    ) -> Result<Premises, String>;

    /// Adds to an agent's instructions what it has to know about where it works.
    fn situate(&self, instructions: &str, place: &ToolContext) -> String {
        let _ = place;
        instructions.to_owned()
    }
}

/// Makes nothing: agents work with the model of their caller, where their caller works.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSupplier;

#[async_trait]
impl Supplier for NoSupplier {
    fn model(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        Err(format!("there is no model `{name}` here"))
    }

    fn authorizer(&self, policy: &PolicyConfig) -> Result<Option<Arc<dyn Authorizer>>, String> {
        if policy.mode.is_none() && policy.rules.is_empty() {
            return Ok(None);
        }
        Err("policies of agents are not supported here".to_owned())
    }

    async fn premises(
        &self,
        kind: WorkspaceKind,
        _: &RunId,
        _: &ToolContext,
    ) -> Result<Premises, String> {
        Err(format!("there are no workspaces here, and so none of the kind `{kind}`"))
    }
}

/// The agents that can be called, and how. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Team(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    registry: AgentRegistry,
    supplier: Arc<dyn Supplier>,
    delegation: Delegation,
    limits: TreeLimits,
    background: bool,
    /// Those that the first agent may call; all, where absent.
    allow: Option<Vec<String>>,
    exclude: Vec<String>,
}

/// Which agents an agent may call.
#[derive(Clone, Debug, Default)]
pub(crate) enum Granted {
    /// All that the team lets the first agent call.
    #[default]
    All,
    /// These.
    Only(Arc<[String]>),
}

impl Team {
    /// Makes a team of the agents of a registry.
    pub fn builder(registry: AgentRegistry) -> TeamBuilder {
        TeamBuilder(Parts {
            registry,
            supplier: Arc::new(NoSupplier),
            delegation: Delegation::default(),
            limits: TreeLimits::default(),
            background: false,
            allow: None,
            exclude: Vec::new(),
        })
    }

    /// Returns the agents there are.
    pub fn registry(&self) -> &AgentRegistry {
        &self.0.registry
    }

    /// Returns how a model reaches them.
    pub fn delegation(&self) -> Delegation {
        self.0.delegation
    }

    /// Returns how large a tree may get.
    pub fn limits(&self) -> &TreeLimits {
        &self.0.limits
    }

    pub(crate) fn supplier(&self) -> &dyn Supplier {
        self.0.supplier.as_ref()
    }

    /// Returns the agents that the first agent may call, sorted by name.
    pub fn offered(&self) -> Vec<Arc<Registered>> {
        self.callable(&Granted::All, &[])
    }

    /// Returns the agents that an agent may call that was granted these, at the end of this line of agents: the
    /// names from the first one's child down to itself. What it may call is the same in every run.
    pub fn callable_by(&self, granted: &[String], lineage: &[String]) -> Vec<Arc<Registered>> {
        self.callable(&Granted::Only(granted.into()), lineage)
    }

    /// Returns the tools by which the first agent calls others; or one that was granted these, at the end of this
    /// line of agents.
    pub fn tools_of(&self, granted: Option<&[String]>, lineage: &[String]) -> Vec<Arc<dyn Tool>> {
        let granted = granted.map_or(Granted::All, |names| Granted::Only(names.into()));
        self.tools(&granted, lineage, |_| false).0
    }

    /// Returns the agents that one further down may call: those it was granted, and none of those that led
    /// to it. `lineage` are the names of the agents from the first one's child down to itself.
    pub(crate) fn callable(&self, granted: &Granted, lineage: &[String]) -> Vec<Arc<Registered>> {
        let depth = u32::try_from(lineage.len()).unwrap_or(u32::MAX);
        if self.0.delegation == Delegation::Off || depth >= self.0.limits.max_depth {
            return Vec::new();
        }
        let all = self.0.registry.list().into_iter();
        all.filter(|agent| self.may_call(granted, lineage, &agent.name)).collect()
    }

    /// Tells whether any of these agents may work while its caller goes on: because all may, or because one
    /// always does. Only then is a model told about it, which it pays for with every request.
    pub(crate) fn works_in_background(&self, agents: &[Arc<Registered>]) -> bool {
        let in_background = |agent: &Arc<Registered>| agent.run.background;
        match self.0.delegation {
            Delegation::Off => false,
            _ => self.0.background || agents.iter().any(in_background),
        }
    }

    fn may_call(&self, granted: &Granted, lineage: &[String], name: &str) -> bool {
        let is = |pattern: &String| wildcard(pattern, name);
        let is_granted = match granted {
            Granted::All => self.0.allow.as_ref().is_none_or(|allow| allow.iter().any(is)),
            Granted::Only(names) => names.iter().any(|granted| granted == name),
        };
        is_granted && !self.0.exclude.iter().any(is) && !lineage.iter().any(|above| above == name)
    }

    /// Returns the tools by which an agent calls others. Those whose names are taken are left out, and
    /// named.
    pub(crate) fn tools(
        &self,
        granted: &Granted,
        lineage: &[String],
        taken: impl Fn(&str) -> bool,
    ) -> (Vec<Arc<dyn Tool>>, Vec<String>) {
        let agents = self.callable(granted, lineage);
        if agents.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let mut tools: Vec<Arc<dyn Tool>> = match self.0.delegation {
            Delegation::Off => Vec::new(),
            Delegation::Delegate | Delegation::Union => {
                vec![Arc::new(DelegateTool::new(self.clone(), granted.clone(), lineage))]
            }
            Delegation::PerAgent => {
                let manner = Manner { background: self.works_in_background(&agents) };
                let tool =
                    |agent| -> Arc<dyn Tool> { Arc::new(AgentTool::for_runs(agent, manner)) };
                agents.iter().cloned().map(tool).collect()
            }
        };
        if self.works_in_background(&agents) {
            tools.push(Arc::new(BackgroundTool::new()));
        }
        let (left_out, tools) = tools.into_iter().partition(|tool| taken(&tool.spec().name));
        let left_out: Vec<Arc<dyn Tool>> = left_out;
        (tools, left_out.iter().map(|tool| tool.spec().name.clone()).collect())
    }
}

/// Makes a [`Team`].
#[derive(Debug)]
#[must_use]
pub struct TeamBuilder(Parts);

impl TeamBuilder {
    /// Gets models, policies and places from here.
    pub fn supplier(mut self, supplier: impl Supplier + 'static) -> Self {
        self.0.supplier = Arc::new(supplier);
        self
    }

    /// Lets models reach agents in this way.
    pub fn delegation(mut self, delegation: Delegation) -> Self {
        self.0.delegation = delegation;
        self
    }

    /// Lets a tree get this large.
    pub fn limits(mut self, limits: TreeLimits) -> Self {
        self.0.limits = limits;
        self
    }

    /// Lets models call any agent in the background. Those whose definitions say so always work there.
    pub fn background(mut self, offered: bool) -> Self {
        self.0.background = offered;
        self
    }

    /// Lets the first agent call these only: names, or patterns with `*`.
    pub fn allow<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.0.allow = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Lets nobody call these: names, or patterns with `*`.
    pub fn exclude<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.0.exclude = names.into_iter().map(Into::into).collect();
        self
    }

    /// Makes the team.
    pub fn build(self) -> Team {
        Team(Arc::new(self.0))
    }
}

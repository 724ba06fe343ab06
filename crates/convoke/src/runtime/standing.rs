//! What an agent may do where it is called: the one place that says so to people.
//!
//! `main/reviewer/helper` may do what the main agent may, what the reviewer may and what the helper may, with the
//! tools that are left on the way down. Whoever shows what holds for an agent and whoever judges one of its calls
//! start from the same [`Standing`].

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use convoke_agent::check::MAIN;
use convoke_agent::definition::AgentDefinition;
use convoke_agent::registry::Registered;
use convoke_agent::{AgentTool, CommandLimit};
use convoke_core::policy::{self, Authority, RuleError};
use convoke_core::{
    AgentPath, Category, Effects, Kind, Permission, Resource, ToolError, ToolSpec, WorkspaceKind,
};
use convoke_mcp::client::names_begin;
use convoke_tool::{Tool, ToolView};
use serde_json::Value;

use super::rules::WRITES;
use super::{AgentCallError, KnownAgent, Runtime};
use crate::authorize::PolicyAuthorizer;

/// What an agent may do, where it is.
#[derive(Clone)]
pub struct Standing {
    path: AgentPath,
    agents: Vec<Arc<Registered>>,
    authority: Authority,
    /// What it has, or why it cannot be started: it asks for what the one above it does not have.
    tools: Result<ToolView, String>,
    /// Those it may call.
    callable: Vec<Arc<Registered>>,
    /// By what it calls them.
    calls: Vec<Arc<dyn Tool>>,
    notes: Vec<String>,
}

impl fmt::Debug for Standing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Standing").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Why a call would be refused whatever rules say.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// What refuses it.
    pub by: String,
    /// Why.
    pub reason: String,
}

impl Standing {
    /// Returns where the agent is, as `main/reviewer`.
    pub const fn path(&self) -> &AgentPath {
        &self.path
    }

    /// Returns what all policies on the way down to it say.
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Returns the only commands it may run, where there are only some: each list narrows those before it.
    pub fn commands(&self) -> impl Iterator<Item = &[String]> {
        self.agents.iter().filter_map(|agent| agent.policy.commands.as_deref())
    }

    /// Returns what there is to know about the agents on the way down to it: those that are switched off, or that
    /// the main agent is not offered.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the names of the agents on the way down to it, itself included, without the main agent.
    fn lineage(&self) -> Vec<String> {
        self.agents.iter().map(|agent| agent.name.clone()).collect()
    }

    /// Says why an agent cannot be called from here, if it cannot.
    fn cannot_call(&self, name: &str, max_depth: u32) -> Option<String> {
        let caller = self.agents.last()?;
        if self.agents.iter().any(|above| above.name == name) {
            return Some("it is on the way there already".to_owned());
        }
        if !caller.agents.iter().any(|granted| granted == name) {
            return Some(format!("`agents` of `{}` does not name it", caller.name));
        }
        let is_too_deep = u32::try_from(self.agents.len()).is_ok_and(|depth| depth >= max_depth);
        is_too_deep.then(|| format!("`agents.maxDepth` is {max_depth}"))
    }
}

impl Runtime {
    /// Finds out what an agent may do, by its name or by its path below the main agent. On a path, each has to be
    /// one that the one before it may call. It need not be switched on, which is noted.
    pub fn standing(&self, path: &str) -> Result<Standing, AgentCallError> {
        let names = match path.strip_prefix(MAIN) {
            Some("") => None,
            Some(below) if below.starts_with('/') => below.strip_prefix('/'),
            _ => Some(path),
        };
        let mut standing = Standing {
            path: AgentPath::default(),
            agents: Vec::new(),
            authority: self.authority.clone(),
            tools: Ok(self.offered.clone()),
            callable: Vec::new(),
            calls: Vec::new(),
            notes: Vec::new(),
        };
        for name in names.into_iter().flat_map(|names| names.split('/')) {
            let KnownAgent { agent, off, .. } = self.known_agent(name)?;
            if let Some(why) = standing.cannot_call(name, self.config.agents.max_depth) {
                let (caller, name) = (standing.path.to_string(), name.to_owned());
                return Err(AgentCallError::NotCallable { caller, name, why });
            }
            let not_offered = || self.not_offered(name).filter(|_| standing.agents.is_empty());
            let note = match off {
                Some(off) => Some(format!("the agent `{name}` is switched off: {off}")),
                None => not_offered().map(|why| {
                    format!("the agent `{name}` is not offered to the main agent: {why}")
                }),
            };
            standing.authority = self.narrowed(&standing.authority, &agent)?;
            standing.tools = self.tools_there(&standing, &agent);
            standing.path = standing.path.child(name);
            standing.agents.push(agent);
            standing.notes.extend(note);
        }
        let lineage = standing.lineage();
        let team = self.team();
        match standing.agents.last() {
            None if !self.calls_agents() => {}
            None => {
                standing.callable = team.offered();
                standing.calls = team.tools_of(None, &[]);
            }
            Some(agent) => {
                let granted = agent.agents.as_slice();
                standing.calls = team.tools_of(Some(granted), &lineage);
                standing.callable = team.callable_by(granted, &lineage);
            }
        }
        Ok(standing)
    }

    /// Returns the tools that an agent has below another, or why it cannot be started there.
    fn tools_there(&self, above: &Standing, agent: &Registered) -> Result<ToolView, String> {
        let view = above.tools.as_ref().map_err(Clone::clone)?;
        let ceiling = if above.agents.is_empty() { self.ceiling() } else { view };
        let (path, name) = (&above.path, &agent.name);
        match agent.tools_missing(ceiling).first() {
            Some(tool) => Err(format!(
                "`{path}` does not have the tool `{tool}`, without which `{name}` cannot be started"
            )),
            None => agent
                .tools_below(view, ceiling)
                .map_err(|why| format!("`{name}` cannot be started below `{path}`: {why}")),
        }
    }

    /// Returns what an agent may do below the main one: what that may, its own policy allows, and the place it
    /// works in.
    pub fn authority_below(&self, agent: &AgentDefinition) -> Result<Authority, AgentCallError> {
        self.narrowed(&self.authority, agent)
    }

    /// Adds what an agent says about itself: its policy, and that it changes nothing.
    fn narrowed(
        &self,
        above: &Authority,
        agent: &AgentDefinition,
    ) -> Result<Authority, AgentCallError> {
        let wrong = |error: RuleError| AgentCallError::Rules { agent: agent.name.clone(), error };
        let own = self.own_policy(&agent.policy, Some(&agent.name)).map_err(wrong)?;
        let mut authority = own.map_or_else(|| above.clone(), |own| above.child(own));
        if agent.run.workspace == Some(WorkspaceKind::Readonly) {
            let home = self.setup.home.as_deref().and_then(Path::to_str);
            let written = self.config.policy.policy(self.setup.mode, home).map_err(wrong)?;
            let nothing = WRITES.iter().map(|kind| (*kind, Permission::Deny));
            authority = authority.child(written.kinds(nothing));
        }
        Ok(authority)
    }

    /// Finds a tool that an agent could be asked about: one that may be called, one by which the agent calls others,
    /// or an agent as a tool.
    pub fn tool_at(&self, name: &str, standing: &Standing) -> Option<Arc<dyn Tool>> {
        let by_call = || standing.calls.iter().find(|tool| tool.spec().name == name).cloned();
        let as_tool = || -> Option<Arc<dyn Tool>> {
            Some(Arc::new(AgentTool::new(self.known_agent(name).ok()?.agent)))
        };
        self.callable.get(name).or_else(by_call).or_else(as_tool)
    }

    /// Says what the policy decides about a call of an agent, and which rule decides. Nothing is called.
    pub fn judge(
        &self,
        tool: &dyn Tool,
        arguments: &Value,
        standing: &Standing,
    ) -> Result<policy::Decision, ToolError> {
        let effects = effects(tool, arguments)?;
        let decides = PolicyAuthorizer::new(standing.authority.clone(), self.setup.home.clone());
        let agent = standing.path.as_str();
        Ok(decides.judge(tool.spec(), arguments, &effects, agent, &self.context))
    }

    /// Says what the policy decides about a call of the main agent as long as it names nothing: by the rules on
    /// the tool and by its kind, as [`judge`](Self::judge) does. What is denied here is denied whatever the
    /// arguments are; rules on commands, files and hosts may be stricter about some of them.
    pub fn permission_of(&self, spec: &ToolSpec) -> Permission {
        let arguments = Value::Object(serde_json::Map::new());
        self.decide_for_main(spec, &arguments, &Effects::NONE).permission
    }

    /// Says why nothing may be read from an MCP server, where a rule on all of its tools denies them: it holds for
    /// what a person has read into a conversation as for what a model reads.
    pub fn denies_reading(&self, server: &str) -> Option<String> {
        let mut spec = ToolSpec::new("mcp_read_resource", "", Kind::Read);
        spec.category = Category::Mcp;
        let reads = vec![Resource::Server(names_begin(server))];
        let effects = Effects { reads, writes: Vec::new() };
        let arguments = serde_json::json!({ "server": server });
        let decision = self.decide_for_main(&spec, &arguments, &effects);
        let is_rule = matches!(decision.source, policy::Source::Rule { .. });
        (is_rule && decision.permission == Permission::Deny).then_some(decision.reason)
    }

    fn decide_for_main(
        &self,
        spec: &ToolSpec,
        arguments: &Value,
        effects: &Effects,
    ) -> policy::Decision {
        let agent = AgentPath::default();
        self.authorizer().judge(spec, arguments, effects, agent.as_str(), &self.context)
    }

    /// Says why a call would be refused whatever rules say: the agent does not have the tool, may run only other
    /// commands, or the call names a path outside the allowed ones. Nothing is called.
    pub fn refusal(
        &self,
        tool: &dyn Tool,
        arguments: &Value,
        standing: &Standing,
    ) -> Result<Option<Refusal>, ToolError> {
        let spec = tool.spec();
        if let Some(reason) = self.not_had(spec, standing) {
            return Ok(Some(Refusal { by: "the tools of the agent".to_owned(), reason }));
        }
        let effects = effects(tool, arguments)?;
        if let Some(error) = effects.paths().find_map(|(_, path)| self.context.locate(path).err()) {
            let by = "the allowed paths (tools.allowedPaths)".to_owned();
            return Ok(Some(Refusal { by, reason: error.message }));
        }
        let mut limits =
            standing.agents.iter().filter_map(|agent| CommandLimit::of(&agent.policy).ok()?);
        let refused = limits.find_map(|limit| limit.refuses(spec, arguments));
        Ok(refused.map(|reason| Refusal { by: CommandLimit::RULE.to_owned(), reason }))
    }
}

impl Runtime {
    /// Says why an agent does not have a tool, if it does not. What the main agent is not offered is another
    /// question: others may have it, and so may whoever calls tools by hand.
    fn not_had(&self, spec: &ToolSpec, standing: &Standing) -> Option<String> {
        let (path, name) = (&standing.path, &spec.name);
        let tools = match &standing.tools {
            Err(why) => return Some(why.clone()),
            Ok(tools) => tools,
        };
        if spec.category == Category::Agent && self.callable.get(name).is_none() {
            let calls = standing.calls.iter().any(|tool| tool.spec().name == *name);
            let is_callable = standing.callable.iter().any(|agent| agent.name == *name);
            return (!calls && !is_callable)
                .then(|| format!("`{path}` cannot call the agent `{name}`"));
        }
        let is_missing = !standing.agents.is_empty() && tools.get(name).is_none();
        is_missing.then(|| format!("`{path}` does not have the tool `{name}`"))
    }

    /// Says of a tool that the main agent is not offered it, where that is so: a run does not find it then.
    pub fn not_offered_tool(&self, name: &str) -> Option<String> {
        if self.callable.get(name).is_none() || self.offered.get(name).is_some() {
            return None;
        }
        let why = match self.config.tools.enabled {
            Some(_) => "`tools.enabled` does not have it",
            None => "it is not one of those that are offered unless `tools.enabled` says so",
        };
        Some(format!("the main agent is not offered `{name}`, and its runs do not find it: {why}"))
    }
}

fn effects(tool: &dyn Tool, arguments: &Value) -> Result<Effects, ToolError> {
    let computed = tool.prepare(arguments.clone())?.effects();
    Ok(computed.unwrap_or_else(|| tool.spec().effects.apply(arguments)))
}

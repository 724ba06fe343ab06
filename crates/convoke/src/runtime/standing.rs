//! What an agent may do where it is called: the one place that says so to people.
//!
//! `main/reviewer/helper` may do what the main agent may, what the reviewer may and what the helper may, with the
//! tools that are left on the way down. Whoever shows what holds for an agent and whoever judges one of its calls
//! start from the same [`Standing`].

use std::path::Path;
use std::sync::Arc;

use convoke_agent::CommandLimit;
use convoke_agent::check::MAIN;
use convoke_agent::registry::Registered;
use convoke_core::policy::{self, Authority, RuleError};
use convoke_core::{AgentPath, Effects, Permission, ToolError, WorkspaceKind};
use convoke_tool::{Tool, ToolView};
use serde_json::Value;

use super::rules::WRITES;
use super::{AgentCallError, Runtime};
use crate::authorize::PolicyAuthorizer;

/// What an agent may do, where it is.
#[derive(Clone, Debug)]
pub struct Standing {
    path: AgentPath,
    agents: Vec<Arc<Registered>>,
    authority: Authority,
    /// What it has; nothing, where it cannot have what it asks for.
    tools: Option<ToolView>,
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
}

impl Runtime {
    /// Finds out what an agent may do, by its name or by its path below the main agent. It need not be switched
    /// on.
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
            tools: None,
        };
        for name in names.into_iter().flat_map(|names| names.split('/')) {
            let agent = self.known_agent(name)?.agent;
            standing.authority = self.narrowed(&standing.authority, &agent)?;
            standing.tools = match (&standing.tools, standing.agents.is_empty()) {
                (_, true) => self.tools_of(&agent).ok(),
                (Some(view), false) => agent.tools_below(view, view).ok(),
                (None, false) => None,
            };
            standing.path = standing.path.child(name);
            standing.agents.push(agent);
        }
        Ok(standing)
    }

    /// Adds what an agent says about itself: its policy, and that it changes nothing.
    fn narrowed(&self, above: &Authority, agent: &Registered) -> Result<Authority, AgentCallError> {
        let wrong = |error: RuleError| AgentCallError::Rules { agent: agent.name.clone(), error };
        let own = self.own_policy(&agent.policy).map_err(wrong)?;
        let mut authority = own.map_or_else(|| above.clone(), |own| above.child(own));
        if agent.run.workspace == Some(WorkspaceKind::Readonly) {
            let home = self.setup.home.as_deref().and_then(Path::to_str);
            let written = self.config.policy.policy(self.setup.mode, home).map_err(wrong)?;
            let nothing = WRITES.iter().map(|kind| (*kind, Permission::Deny));
            authority = authority.child(written.kinds(nothing));
        }
        Ok(authority)
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

    /// Says why a call would be refused whatever rules say: the agent does not have the tool, may run only other
    /// commands, or the call names a path outside the allowed ones. Nothing is called.
    pub fn refusal(
        &self,
        tool: &dyn Tool,
        arguments: &Value,
        standing: &Standing,
    ) -> Result<Option<Refusal>, ToolError> {
        let spec = tool.spec();
        let path = &standing.path;
        if standing.tools.as_ref().is_some_and(|tools| tools.get(&spec.name).is_none()) {
            let reason = format!("`{path}` does not have the tool `{}`", spec.name);
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

fn effects(tool: &dyn Tool, arguments: &Value) -> Result<Effects, ToolError> {
    let computed = tool.prepare(arguments.clone())?.effects();
    Ok(computed.unwrap_or_else(|| tool.spec().effects.apply(arguments)))
}

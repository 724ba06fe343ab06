//! Tools and agents side by side, for whoever looks something up by name.

use std::sync::Arc;

use convoke_tool::{Tool, ToolView};

use crate::agent_tool::AgentTool;
use crate::team::Team;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// A tool that does its work itself.
    Function,
    /// An agent.
    Agent,
}

/// Tools and agents. A name that both have is the tool's.
#[derive(Clone, Debug)]
pub struct Toolbox {
    tools: ToolView,
    team: Option<Team>,
}

impl Toolbox {
    /// Puts tools and agents side by side.
    pub const fn new(tools: ToolView, team: Option<Team>) -> Self {
        Self { tools, team }
    }

    /// Returns the tools.
    pub const fn tools(&self) -> &ToolView {
        &self.tools
    }

    /// Returns the agents.
    pub const fn team(&self) -> Option<&Team> {
        self.team.as_ref()
    }

    /// Finds a tool, or an agent as a tool.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.get(name).or_else(|| {
            let agent =
                self.team.as_ref()?.offered().into_iter().find(|agent| agent.name == name)?;
            Some(Arc::new(AgentTool::new(agent)))
        })
    }

    /// Says what a name stands for; nothing, if for nothing.
    pub fn kind_of(&self, name: &str) -> Option<ToolKind> {
        if self.tools.get(name).is_some() {
            return Some(ToolKind::Function);
        }
        self.get(name).map(|_| ToolKind::Agent)
    }

    /// Returns all tools, then all agents as tools, each sorted by name.
    pub fn all(&self) -> Vec<Arc<dyn Tool>> {
        let mut all = self.tools.list();
        let agents = self.team.iter().flat_map(Team::offered);
        let agents = agents.filter(|agent| self.tools.get(&agent.name).is_none());
        all.extend(agents.map(|agent| -> Arc<dyn Tool> { Arc::new(AgentTool::new(agent)) }));
        all
    }
}

//! What a model is told of: its tools, those by which it calls agents, and, where there are many or some come
//! later, those by which it looks for the others.
//!
//! What a run was told of when it began never changes: the provider remembers a conversation only as long as it
//! begins with the same bytes. So tools that come later are found and called through two that were there from
//! the beginning.

use std::fmt;
use std::sync::{Arc, PoisonError};

use convoke_core::{Category, Declaration, ToolSpec, USE_TOOL};
use convoke_tool::catalogue::{Arrivals, TOOL_SEARCH, ToolSearch, UseTool, tokens};
use convoke_tool::{Shown, Tool, ToolView};

use crate::agent_tool::AgentTool;
use crate::background::BACKGROUND_AGENTS;
use crate::delegate::DELEGATE_TO_AGENT;
use crate::executor::Agent;
use crate::manner::Manner;

/// How much a model is told of tools beside the built-in ones.
#[derive(Clone)]
#[non_exhaustive]
pub struct ManyTools {
    /// About how many tokens that may take. Where it would take more, the model has to look for them.
    pub max_tokens: usize,
    /// Tools that may not be here yet.
    pub arrivals: Option<Arc<dyn Arrivals>>,
}

impl ManyTools {
    /// Tells of tools up to about so many tokens.
    pub const fn up_to(max_tokens: usize) -> Self {
        Self { max_tokens, arrivals: None }
    }

    /// Looks for these as well.
    #[must_use]
    pub fn and(mut self, arrivals: Arc<dyn Arrivals>) -> Self {
        self.arrivals = Some(arrivals);
        self
    }

    /// Tells whether there may be tools later that are not here now, for whoever has this view. A server that
    /// is known may have more by the time it is used.
    pub(crate) fn expects(&self, view: &ToolView) -> bool {
        let sources = self.arrivals.as_ref().map(|arrivals| arrivals.sources()).unwrap_or_default();
        !sources.is_empty() && view.may_grow()
    }
}

impl fmt::Debug for ManyTools {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ManyTools")
            .field("max_tokens", &self.max_tokens)
            .finish_non_exhaustive()
    }
}

/// What a model is told of, as long as the tools and agents there are stay the same.
#[derive(Debug)]
pub(crate) struct Offer {
    /// Of the agents and of the tools.
    version: (u64, u64),
    /// What it may call, if that is more than its own tools.
    pub(crate) view: Option<ToolView>,
    pub(crate) declarations: Arc<[Declaration]>,
    /// Those that cannot be offered, since a tool has their name.
    pub(crate) left_out: Vec<String>,
}

impl Agent {
    /// Returns what the model is told of. It is made again when the agents or tools there are change. An agent
    /// further down is made for one run, so the way that led to it is always the same.
    pub(crate) fn offer(&self, lineage: &[String]) -> Arc<Offer> {
        let agents = self.team.as_ref().map(|team| team.registry().version()).unwrap_or_default();
        let version = (agents, self.tools.shown().registry().generation());
        let mut kept = self.offer.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(offer) if offer.version == version => Arc::clone(offer),
            _ => Arc::clone(kept.insert(Arc::new(self.make_offer(lineage, version)))),
        }
    }

    fn make_offer(&self, lineage: &[String], version: (u64, u64)) -> Offer {
        let shown = self.tools.shown();
        let taken = |name: &str| shown.get(name).is_some();
        let (tools, mut left_out) = match &self.team {
            Some(team) => team.tools(&self.granted, lineage, taken),
            None => Default::default(),
        };
        let mut view = (!tools.is_empty()).then(|| shown.and(tools));
        let with_agents = view.clone().unwrap_or_else(|| shown.clone());
        let all = with_agents.shown();
        let mut told = match &self.many_tools {
            Some(many) if !taken(TOOL_SEARCH) && !taken(USE_TOOL) => {
                let search = self.search(&with_agents, lineage, many);
                let told = many.told(&all, &with_agents, &search);
                view = Some(search);
                told
            }
            many => {
                let names = [TOOL_SEARCH, USE_TOOL].into_iter();
                let names = names.filter(|name| many.is_some() && taken(name));
                left_out.extend(names.map(str::to_owned));
                declared(all.iter())
            }
        };
        told.extend(self.completes.clone());
        Offer { version, view, declarations: told.into(), left_out }
    }

    /// Returns a view with the tools that find others, and with agents as tools, so that they are found too.
    fn search(&self, view: &ToolView, lineage: &[String], many: &ManyTools) -> ToolView {
        let agents = self.team.iter().flat_map(|team| {
            let agents = team.callable(&self.granted, lineage);
            let manner = Manner { background: team.works_in_background(&agents) };
            agents.into_iter().map(move |agent| (agent, manner))
        });
        let agents = agents.filter(|(agent, _)| view.get(&agent.name).is_none());
        let tool =
            |(agent, manner)| -> Arc<dyn Tool> { Arc::new(AgentTool::for_runs(agent, manner)) };
        let all = view.and(agents.map(tool));
        let search: Arc<dyn Tool> = Arc::new(ToolSearch::new(all.clone(), many.arrivals.clone()));
        all.and([search, Arc::new(UseTool::new())])
    }
}

impl ManyTools {
    /// Returns what the model is told of these tools: all of them, or as many as may be told, and how to find the
    /// others. Those that come from elsewhere are the first to be left out.
    fn told(&self, all: &[Shown], view: &ToolView, search: &ToolView) -> Vec<Declaration> {
        let mut tiers = [Tier::Foreign, Tier::Own].into_iter();
        let told_up_to = tiers.find(|tier| self.has_room(all, *tier)).unwrap_or(Tier::Always);
        if told_up_to == Tier::Foreign && !self.expects(view) {
            return declared(all.iter());
        }
        let mut told = declared(all.iter().filter(|tool| Tier::of(tool.spec()) <= told_up_to));
        let found = [TOOL_SEARCH, USE_TOOL].into_iter().filter_map(|name| search.get(name));
        told.extend(found.map(|tool| tool.declaration()));
        told.sort_by(|one, other| one.name.cmp(&other.name));
        told
    }

    /// Tells whether the tools up to a tier may be told of. Of too many, no more are looked at than it takes to
    /// know that.
    fn has_room(&self, all: &[Shown], up_to: Tier) -> bool {
        let counted = all.iter().filter(|tool| {
            let tier = Tier::of(tool.spec());
            tier > Tier::Always && tier <= up_to
        });
        let mut costs = counted.map(|tool| tokens(tool.declaration()));
        costs.try_fold(self.max_tokens, usize::checked_sub).is_some()
    }
}

/// In which order tools are left out, the last first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    /// Those that are built in, and the one by which agents are called, a model is always told of.
    Always,
    /// Those that the user or the program made.
    Own,
    /// Those of servers, and agents as tools.
    Foreign,
}

impl Tier {
    fn of(spec: &ToolSpec) -> Self {
        match spec.category {
            Category::Mcp => Self::Foreign,
            Category::Agent if ![DELEGATE_TO_AGENT, BACKGROUND_AGENTS].contains(&&*spec.name) => {
                Self::Foreign
            }
            Category::Custom => Self::Own,
            _ => Self::Always,
        }
    }
}

fn declared<'a>(tools: impl Iterator<Item = &'a Shown>) -> Vec<Declaration> {
    tools.map(|tool| Declaration::clone(tool.declaration())).collect()
}

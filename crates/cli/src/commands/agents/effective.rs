//! What an agent has and may do below the main agent: the less of both.

use convoke::agent::AgentDefinition;
use convoke::agent::check::MAIN;
use convoke::{AgentCallError, CutLimit, Runtime};
use convoke_core::policy::{Authority, Layer, Policy, Rule, Scope};
use convoke_core::{AgentPath, Budget, Kind, Permission, WorkspaceKind};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::view::amounts;

/// What an agent has and may do below the main agent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Effective {
    /// The names of its tools.
    pub(super) tools: Vec<String>,
    /// Tools that it asks for and that there are not: with one of these it cannot be started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) missing: Vec<String>,
    /// Why it cannot be started, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unusable: Option<String>,
    /// Why its model cannot be asked here, if it cannot: there is no key for it, for instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) no_model: Option<String>,
    /// What its kinds of calls get where no rule on some of them says otherwise.
    pub(super) kinds: Map<String, Value>,
    /// How many rules of its own there are on some calls of a kind: on paths, commands, tools.
    pub(super) own_rules: usize,
    /// The only commands it may run; any that is allowed, where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commands: Option<Vec<String>>,
    /// The agents that it can call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) agents: Vec<String>,
    /// Agents that it names and cannot call, with why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) not_callable: Vec<String>,
    /// Where it works, if not where its caller does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workspace: Option<WorkspaceKind>,
    /// Whether its caller goes on while it works.
    pub(super) background: bool,
    /// What it may use, of a run that has used nothing yet.
    pub(super) budget: Budget,
    /// What of its limits it does not get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) cut: Vec<String>,
    #[serde(skip)]
    permissions: Vec<(Kind, Permission)>,
}

impl Effective {
    /// Finds it out.
    pub(super) fn of(agent: &AgentDefinition, runtime: &Runtime) -> Self {
        let missing = runtime.tools_missing(agent);
        let view = runtime.tools_of(agent);
        let names = |view: &convoke::tools::ToolView| {
            view.list().iter().map(|tool| tool.spec().name.clone()).collect()
        };
        let authority = runtime.authority_below(agent);
        let model = agent.model.model.as_deref().map(|name| runtime.models().resolve(Some(name)));
        let unusable = match (&view, &authority) {
            (Err(why), _) => Some(why.clone()),
            (_, Err(error)) => Some(error.to_string()),
            _ => None,
        };
        let no_model = model.and_then(Result::err);
        let no_model = no_model.map(|error| format!("its model: {error} ({})", error.hint()));
        let (permissions, own_rules) = match &authority {
            Ok(authority) => (permissions(agent, authority), own_rules(authority)),
            Err(_) => (Vec::new(), 0),
        };
        let (agents, not_callable) = callable(agent, runtime);
        Self {
            tools: view.as_ref().map(names).unwrap_or_default(),
            missing,
            unusable,
            no_model,
            kinds: permissions.iter().map(|(kind, what)| (kind.to_string(), json!(what))).collect(),
            own_rules,
            commands: agent.policy.commands.clone(),
            agents,
            not_callable,
            workspace: agent.run.workspace,
            background: agent.run.background,
            budget: runtime.budget_of(agent),
            cut: runtime.cut_limits(agent).iter().map(cut).collect(),
            permissions,
        }
    }

    /// Returns it in lines: what it is about, and what holds.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let tools = match self.tools.as_slice() {
            [] => "none".to_owned(),
            tools => tools.join(", "),
        };
        let mut lines = vec![("tools", tools)];
        for permission in [Permission::Allow, Permission::Ask, Permission::Deny] {
            let kinds = self.permissions.iter().filter(|(_, what)| *what == permission);
            let kinds: Vec<String> = kinds.map(|(kind, _)| kind.to_string()).collect();
            if !kinds.is_empty() {
                lines.push((permission.as_str(), kinds.join(", ")));
            }
        }
        if self.own_rules > 0 {
            lines.push(("and", amounts::count(self.own_rules as u64, "rule") + " of its own"));
        }
        if let Some(commands) = &self.commands {
            let only = if commands.is_empty() { "none".to_owned() } else { commands.join(", ") };
            lines.push(("commands", format!("only {only}")));
        }
        if !self.agents.is_empty() {
            lines.push(("agents", self.agents.join(", ")));
        }
        if !self.not_callable.is_empty() {
            lines.push(("not callable", self.not_callable.join(", ")));
        }
        lines.extend(self.workspace.map(|kind| ("workspace", kind.to_string())));
        if self.background {
            lines.push(("background", "its caller goes on while it works".to_owned()));
        }
        lines.push(("budget", budget(&self.budget)));
        lines
    }
}

/// Returns the agents that an agent below the main one can call, and those it names and cannot, with why.
fn callable(agent: &AgentDefinition, runtime: &Runtime) -> (Vec<String>, Vec<String>) {
    let team = runtime.team();
    let line = [agent.name.clone()];
    let called = team.callable_by(&agent.agents, &line);
    let called: Vec<String> = called.iter().map(|one| one.name.clone()).collect();
    let depth = team.limits().max_depth;
    let why = |name: &String| match runtime.find_agent(name) {
        _ if *name == agent.name => "itself".to_owned(),
        _ if name == MAIN => "nobody can".to_owned(),
        Err(AgentCallError::SwitchedOff { .. }) => "switched off".to_owned(),
        Err(_) => "there is none".to_owned(),
        Ok(_) if depth <= 1 => format!("agents.maxDepth is {depth}"),
        Ok(_) => match runtime.not_offered(name) {
            Some(why) => why.to_string(),
            None => "agents.exclude".to_owned(),
        },
    };
    let others = agent.agents.iter().filter(|name| !called.contains(name));
    let others = others.map(|name| format!("{name} ({})", why(name))).collect();
    (called, others)
}

/// Returns what each kind of calls gets: what the strictest on the way down says about all of them.
fn permissions(agent: &AgentDefinition, authority: &Authority) -> Vec<(Kind, Permission)> {
    let path = AgentPath::default().child(&agent.name);
    let runs_nothing = agent.policy.commands.as_ref().is_some_and(Vec::is_empty);
    let strictest = |kind: &Kind| {
        let said = authority.policies().map(|policy| policy.whole_kind(*kind, path.as_str()));
        let is_none = runs_nothing && *kind == Kind::Execute;
        said.chain(is_none.then_some(Permission::Deny)).max()
    };
    Kind::ALL.iter().filter_map(|kind| Some((*kind, strictest(kind)?))).collect()
}

/// Returns how many of the agent's own rules are on some calls only.
fn own_rules(authority: &Authority) -> usize {
    let layers = authority.policies().flat_map(Policy::layers);
    let own = layers.filter(|layer| layer.scope() == Scope::Agent).flat_map(Layer::rules);
    let on_a_kind = |rule: &&Rule| {
        let agent = rule.spec().agent.as_deref().unwrap_or_default();
        Kind::ALL.iter().any(|kind| rule.covers_kind(*kind, agent))
    };
    own.filter(|rule| !on_a_kind(rule)).count()
}

fn cut(limit: &CutLimit) -> String {
    let key = limit.keys.first().copied().unwrap_or_default();
    format!("{key}: {limit}")
}

fn budget(budget: &Budget) -> String {
    let mut parts =
        vec![amounts::count(budget.turns.into(), "turn"), amounts::time(budget.time_ms.get())];
    parts.extend(budget.tokens.map(|tokens| format!("{} tokens", amounts::tokens(tokens))));
    parts.extend(budget.cost.map(amounts::money));
    parts.extend(budget.tool_calls.map(|calls| amounts::count(calls.into(), "call")));
    parts.join(", ")
}

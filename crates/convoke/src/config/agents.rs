//! The `agents` section: the agents a run may call, and what is different about each of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use convoke_agent::definition::Inherit;
use convoke_agent::{AgentOverride, Delegation, TreeLimits};
use convoke_core::run::OnStuck;
use convoke_core::{Mode, WorkspaceKind};
use convoke_model::Effort;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Dollars;
use super::timeout::Timeout;

/// Agents that a run may call, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct AgentsConfig {
    /// Whether a run may call agents. A project's file can switch it off, and not on.
    pub enabled: bool,
    /// How a model reaches agents: `delegate` is one tool that takes the name of the agent, `union` one tool
    /// with the inputs of each agent in its schema, `per_agent` one tool for each, `off` none. What models
    /// are told about tools is paid for with every request; `delegate` is the shortest. A project's file
    /// cannot undo `off`.
    pub delegation: DelegationWord,
    /// How many levels of agents there may be below the first. A project's file can only lower it.
    #[schemars(range(min = 1, max = 16))]
    pub max_depth: u32,
    /// How many agents of one run work at once; more than that wait. A project's file can only lower it.
    #[schemars(range(min = 1, max = 1024))]
    pub max_parallel: u32,
    /// How many agents one run may call in all. A project's file can only lower it.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_total: u32,
    /// Whether models may call any agent in the background, and look after it there. They are told how with
    /// every request. Agents whose files say `background` always work there.
    pub background: bool,
    /// Names of the agents that the first agent may call, with `*` for any text; all, without the key. A
    /// project's file can only narrow the user's list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Names of agents that nobody may call, with `*` for any text. A project's file adds to the user's list.
    pub exclude: Vec<String>,
    /// Directories with files of agents, beside the usual ones, relative to the directory of the file that
    /// lists them. One that is called as another tool calls its own, `.claude/agents` for instance, is read
    /// as that tool writes it.
    #[schemars(extend("items" = { "type": "string", "format": "path", "minLength": 1 }))]
    pub directories: Vec<PathBuf>,
    /// What is different about agents, by name. `test_generator` and `document_generator`, which come with
    /// Convoke, change files, and are there once `enabled` is `true` here.
    #[schemars(extend("propertyNames" = { "pattern": "^[A-Za-z0-9_-]{1,64}$" }))]
    pub overrides: BTreeMap<String, AgentOverrideConfig>,
}

impl Default for AgentsConfig {
    fn default() -> Self {
        let limits = TreeLimits::default();
        Self {
            enabled: true,
            delegation: DelegationWord::Delegate,
            max_depth: limits.max_depth,
            max_parallel: u32::try_from(limits.max_parallel).unwrap_or(u32::MAX),
            max_total: limits.max_agents,
            background: false,
            allow: None,
            exclude: Vec::new(),
            directories: Vec::new(),
            overrides: BTreeMap::new(),
        }
    }
}

impl AgentsConfig {
    /// Returns how models reach agents.
    pub const fn delegation(&self) -> Delegation {
        match self.delegation {
            _ if !self.enabled => Delegation::Off,
            DelegationWord::Delegate => Delegation::Delegate,
            DelegationWord::Union => Delegation::Union,
            DelegationWord::PerAgent => Delegation::PerAgent,
            DelegationWord::Off => Delegation::Off,
        }
    }

    /// Returns how large a tree of agents may get.
    pub fn limits(&self) -> TreeLimits {
        let mut limits = TreeLimits::default();
        limits.max_depth = self.max_depth;
        limits.max_parallel = usize::try_from(self.max_parallel).unwrap_or(usize::MAX);
        limits.max_agents = self.max_total;
        limits
    }

    /// Returns what is different about agents, by name.
    pub fn overrides(&self) -> BTreeMap<String, AgentOverride> {
        let overrides = self.overrides.iter();
        overrides.map(|(name, config)| (name.clone(), config.into())).collect()
    }
}

/// How models reach agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DelegationWord {
    /// By one tool that takes the name of the agent.
    #[default]
    Delegate,
    /// By one tool with the inputs of each agent.
    Union,
    /// By one tool for each agent.
    PerAgent,
    /// Not at all.
    Off,
}

/// What is different about an agent. What is not set is as its definition has it; a limit that is more than
/// the caller has left is cut down to that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct AgentOverrideConfig {
    /// Whether it is there. A project's file can switch an agent off, and none on that the user switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub display_name: Option<String>,
    /// What it is good for: models choose by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub description: Option<String>,
    /// Its standing instructions; `$${name}` is where an input goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub system_prompt: Option<String>,
    /// The model that works for it: `provider/model`, or an alias; the caller's where nobody says.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub model: Option<String>,
    /// How much chance there is in an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// Only the likeliest words that make up this share are considered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// How many tokens its model may think: -1 lets it decide, 0 switches thinking off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1, max = 10_000_000))]
    pub thinking_budget: Option<i64>,
    /// How hard its model thinks, where its provider takes a word instead of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<Effort>,
    /// How many times its model may answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_turns: Option<u32>,
    /// How long it may work, as `10m` or in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<Timeout>,
    /// How many tokens it may use, its own agents included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub max_tokens: Option<u64>,
    /// How many US dollars it may cost, its own agents included, as a decimal in quotes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Dollars>,
    /// How many calls of tools it may make.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_tool_calls: Option<u32>,
    /// The tools it has, with `*` for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The tools it does not have all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<Vec<String>>,
    /// The agents it may call in turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// How freely it acts: never more freely than its caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// What it knows of its caller's conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextWord>,
    /// Where it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceKind>,
    /// Whether its caller goes on while it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
    /// Whether it is left alone when the process that ran it is lost, and not taken up again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most_once: Option<bool>,
    /// What happens when it stops making progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_stuck: Option<OnStuck>,
}

/// What an agent knows of its caller's conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextWord {
    /// Nothing.
    Fresh,
    /// Its task, and what was said last.
    Brief,
    /// All of it.
    Fork,
}

impl From<ContextWord> for Inherit {
    fn from(word: ContextWord) -> Self {
        match word {
            ContextWord::Fresh => Self::Fresh,
            ContextWord::Brief => Self::Brief,
            ContextWord::Fork => Self::Fork,
        }
    }
}

impl From<&AgentOverrideConfig> for AgentOverride {
    fn from(config: &AgentOverrideConfig) -> Self {
        Self {
            enabled: config.enabled,
            display_name: config.display_name.clone(),
            description: config.description.clone(),
            system_prompt: config.system_prompt.clone(),
            model: config.model.clone(),
            temperature: config.temperature,
            top_p: config.top_p,
            thinking_budget: config.thinking_budget,
            reasoning_effort: config.reasoning_effort,
            max_turns: config.max_turns,
            max_time: config.max_time.map(Timeout::duration),
            max_tokens: config.max_tokens,
            max_cost: config.max_cost.map(Dollars::money),
            max_tool_calls: config.max_tool_calls,
            tools: config.tools.clone(),
            exclude_tools: config.exclude.clone(),
            agents: config.agents.clone(),
            mode: config.mode,
            context: config.context.map(Inherit::from),
            workspace: config.workspace,
            background: config.background,
            at_most_once: config.at_most_once,
            on_stuck: config.on_stuck,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_is_what_a_tree_has() {
        let config = AgentsConfig::default();
        assert_eq!(config.limits(), TreeLimits::default());
        assert_eq!(config.delegation(), Delegation::Delegate);
        let off = AgentsConfig { enabled: false, ..config };
        assert_eq!(off.delegation(), Delegation::Off);
    }

    /// A key that was forgotten on the way would be accepted and do nothing.
    #[test]
    fn everything_that_can_be_written_about_an_agent_reaches_it() {
        let config: AgentOverrideConfig = serde_json::from_value(serde_json::json!({
            "enabled": true, "displayName": "d", "description": "e", "systemPrompt": "s",
            "model": "a/b", "temperature": 0.5, "topP": 0.5, "thinkingBudget": 5,
            "reasoningEffort": "low", "maxTurns": 5, "maxTime": 5000, "maxTokens": 5,
            "maxCost": "0.5", "maxToolCalls": 5, "tools": ["t"], "exclude": ["x"],
            "agents": ["a"], "mode": "plan", "context": "brief", "workspace": "copy",
            "background": true, "atMostOnce": true, "onStuck": "ask",
        }))
        .unwrap();
        let written = serde_json::to_value(&config).unwrap();
        let known = schemars::schema_for!(AgentOverrideConfig).to_value();
        let known = known["properties"].as_object().unwrap();
        assert_eq!(written.as_object().unwrap().len(), known.len(), "this test names all keys");
        let shown = format!("{:?}", AgentOverride::from(&config));
        assert!(!shown.contains("None"), "{shown}");
    }
}

//! What settings change about an agent. Whatever they do not name stays as it is.

use std::time::Duration;

use convoke_core::run::OnStuck;
use convoke_core::{Mode, Money, WorkspaceKind};
use convoke_model::request::Effort;

use crate::definition::{AgentDefinition, Inherit, ToolChoice};

/// What settings change about an agent; what is absent stays as its definition has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentOverride {
    /// Whether it is there at all.
    pub enabled: Option<bool>,
    /// Its name for people.
    pub display_name: Option<String>,
    /// What it is good for.
    pub description: Option<String>,
    /// Its standing instructions.
    pub system_prompt: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// How much chance there is in answers.
    pub temperature: Option<f64>,
    /// Only the likeliest words that make up this share are considered.
    pub top_p: Option<f64>,
    /// How many tokens it may think.
    pub thinking_budget: Option<i64>,
    /// How hard it thinks.
    pub reasoning_effort: Option<Effort>,
    /// How many turns it may take.
    pub max_turns: Option<u32>,
    /// How long it may work.
    pub max_time: Option<Duration>,
    /// How many tokens it may use.
    pub max_tokens: Option<u64>,
    /// How much it may cost.
    pub max_cost: Option<Money>,
    /// How many calls of tools it may make.
    pub max_tool_calls: Option<u32>,
    /// The tools it has.
    pub tools: Option<Vec<String>>,
    /// The tools it does not have all the same.
    pub exclude_tools: Option<Vec<String>>,
    /// The agents it may call.
    pub agents: Option<Vec<String>>,
    /// How freely it acts.
    pub mode: Option<Mode>,
    /// What it knows of the conversation of its caller.
    pub context: Option<Inherit>,
    /// Where it works.
    pub workspace: Option<WorkspaceKind>,
    /// Whether its caller goes on while it works.
    pub background: Option<bool>,
    /// Whether it is left alone when its process was lost.
    pub at_most_once: Option<bool>,
    /// What happens when it stops making progress.
    pub on_stuck: Option<OnStuck>,
}

impl AgentOverride {
    /// Tells whether it changes anything about an agent that is there.
    pub(super) fn changes(&self) -> bool {
        *self != Self { enabled: self.enabled, ..Self::default() }
    }

    /// Returns a definition with what is set here in its place.
    #[must_use]
    pub fn apply(&self, definition: &AgentDefinition) -> AgentDefinition {
        let mut changed = definition.clone();
        set_some(&mut changed.display_name, self.display_name.as_ref());
        set(&mut changed.description, self.description.as_ref());
        set_some(&mut changed.prompt.system_prompt, self.system_prompt.as_ref());
        set_some(&mut changed.model.model, self.model.as_ref());
        let settings = &mut changed.model.settings;
        set_some(&mut settings.temperature, self.temperature.as_ref());
        set_some(&mut settings.top_p, self.top_p.as_ref());
        set_some(&mut settings.thinking_budget, self.thinking_budget.as_ref());
        set_some(&mut settings.reasoning_effort, self.reasoning_effort.as_ref());
        let run = &mut changed.run;
        set_some(&mut run.max_turns, self.max_turns.as_ref());
        set_some(&mut run.max_time, self.max_time.as_ref());
        set_some(&mut run.max_tokens, self.max_tokens.as_ref());
        set_some(&mut run.max_cost, self.max_cost.as_ref());
        set_some(&mut run.max_tool_calls, self.max_tool_calls.as_ref());
        set(&mut run.context, self.context.as_ref());
        set_some(&mut run.workspace, self.workspace.as_ref());
        set(&mut run.background, self.background.as_ref());
        set(&mut run.at_most_once, self.at_most_once.as_ref());
        set_some(&mut run.on_stuck, self.on_stuck.as_ref());
        if let Some(names) = &self.tools {
            // A tool that only this agent has, or has in words of its own, stays that under its name.
            let own = definition.tools.allow.as_deref().unwrap_or_default();
            let choice = |name: &String| {
                let kept = own.iter().find(|choice| choice.name() == name).cloned();
                kept.unwrap_or_else(|| ToolChoice::Named(name.clone()))
            };
            changed.tools.allow = Some(names.iter().map(choice).collect());
        }
        set(&mut changed.tools.exclude, self.exclude_tools.as_ref());
        set(&mut changed.agents, self.agents.as_ref());
        set_some(&mut changed.policy.mode, self.mode.as_ref());
        changed
    }
}

fn set<T: Clone>(place: &mut T, value: Option<&T>) {
    if let Some(value) = value {
        place.clone_from(value);
    }
}

fn set_some<T: Clone>(place: &mut Option<T>, value: Option<&T>) {
    if value.is_some() {
        *place = value.cloned();
    }
}

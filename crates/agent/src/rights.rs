//! What an agent may do by its definition, as it is recorded with a run of it.
//!
//! The file of an agent may have been changed when such a run is taken up again. The run may then do what both
//! allow: the definition as it was when the run began, and as it is now.

use convoke_core::policy::{RuleSpec, wildcard};
use convoke_core::{Mode, WorkspaceKind};
use serde::{Deserialize, Serialize};

use crate::definition::{AgentDefinition, PolicyConfig, ToolChoice, ToolConfig};

/// What an agent may do by its definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct AgentRights {
    /// How freely it acts; as its caller, where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Its own rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleSpec>,
    /// The only commands it may run; any that is allowed, where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<String>>,
    /// The only tools it has, as names and patterns; those of its caller, where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Tools that it does not have all the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_tools: Vec<String>,
    /// The agents it may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Where it works; where its caller does, where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceKind>,
}

impl AgentRights {
    /// Returns those of a definition.
    pub fn of<T>(definition: &AgentDefinition<T>) -> Self {
        let names = |choices: &Vec<ToolChoice>| {
            choices.iter().map(|choice| choice.name().to_owned()).collect()
        };
        Self {
            mode: definition.policy.mode,
            rules: definition.policy.rules.clone(),
            commands: definition.policy.commands.clone(),
            tools: definition.tools.allow.as_ref().map(names),
            exclude_tools: definition.tools.exclude.clone(),
            agents: definition.agents.clone(),
            workspace: definition.run.workspace,
        }
    }

    /// Returns what of it is kept by whoever decides about calls.
    pub(crate) fn policy(&self) -> PolicyConfig {
        let (rules, commands) = (self.rules.clone(), self.commands.clone());
        PolicyConfig { mode: self.mode, rules, commands }
    }

    /// Takes from a definition what these do not have: tools, agents, a looser place to work in. Its policy stays
    /// as it is, and these have one of their own.
    pub(crate) fn limit(&self, definition: &AgentDefinition) -> AgentDefinition {
        let mut limited = definition.clone();
        limited.tools = self.tools_within(&definition.tools);
        limited.agents.retain(|name| self.agents.contains(name));
        limited.run.workspace = match (self.workspace, definition.run.workspace) {
            (Some(then), Some(now)) if now.is_stricter_than(then) => Some(now),
            (then, now) => then.or(now),
        };
        limited
    }

    fn tools_within(&self, now: &ToolConfig) -> ToolConfig {
        let is_then = |name: &str| {
            self.tools.as_ref().is_none_or(|then| then.iter().any(|one| wildcard(one, name)))
        };
        let allow = match (&now.allow, &self.tools) {
            (Some(now), then) => {
                let kept = now.iter().filter(|choice| is_then(choice.name())).cloned();
                // What is a part now of what a pattern meant then, and the other way round.
                let is_now =
                    |name: &&String| now.iter().any(|choice| wildcard(choice.name(), name));
                let is_kept = |name: &&String| now.iter().any(|choice| choice.name() == *name);
                let parts = then.iter().flatten().filter(|name| is_now(name) && !is_kept(name));
                Some(kept.chain(parts.cloned().map(ToolChoice::Named)).collect())
            }
            (None, then) => {
                then.as_ref().map(|then| then.iter().cloned().map(ToolChoice::Named).collect())
            }
        };
        let mut exclude = now.exclude.clone();
        exclude.extend(self.exclude_tools.iter().filter(|one| !now.exclude.contains(one)).cloned());
        ToolConfig { allow, exclude }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(tools: Option<&[&str]>) -> AgentDefinition {
        let mut agent = AgentDefinition::new("a", "d");
        if let Some(tools) = tools {
            agent.tools = ToolConfig::only(tools.iter().copied());
        }
        agent
    }

    #[test]
    fn tools_are_those_of_both() {
        for (then, now, both) in [
            (None, None, None),
            (Some(&["grep"][..]), None, Some(&["grep"][..])),
            (None, Some(&["grep"][..]), Some(&["grep"][..])),
            (Some(&["grep", "ls"][..]), Some(&["ls", "run_command"][..]), Some(&["ls"][..])),
            (Some(&["mcp__*"][..]), Some(&["mcp__a__*"][..]), Some(&["mcp__a__*"][..])),
            (Some(&["mcp__a__x"][..]), Some(&["mcp__*"][..]), Some(&["mcp__a__x"][..])),
            (Some(&["grep"][..]), Some(&["run_command"][..]), Some(&[][..])),
        ] {
            let limited = AgentRights::of(&agent(then)).limit(&agent(now));
            let names: Option<Vec<String>> = AgentRights::of(&limited).tools;
            let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
            let both = both.map(owned);
            assert_eq!(names, both, "{then:?} {now:?}");
        }
        let mut then = agent(None);
        then.tools.exclude = vec!["run_command".to_owned()];
        assert_eq!(AgentRights::of(&then).limit(&agent(None)).tools.exclude, ["run_command"]);
    }

    #[test]
    fn agents_and_places_are_the_narrower() {
        use WorkspaceKind::{Copy, Readonly, Worktree};
        let placed = |kind| {
            let mut agent = agent(None);
            agent.run.workspace = kind;
            agent
        };
        for (then, now, both) in [
            (Some(Worktree), None, Some(Worktree)),
            (Some(Worktree), Some(Copy), Some(Worktree)),
            (Some(Worktree), Some(Readonly), Some(Readonly)),
            (Some(Readonly), Some(Worktree), Some(Readonly)),
            (None, Some(Worktree), Some(Worktree)),
        ] {
            let limited = AgentRights::of(&placed(then)).limit(&placed(now));
            assert_eq!(limited.run.workspace, both, "{then:?} {now:?}");
        }
        let calling = |names: &[&str]| {
            let mut agent = agent(None);
            agent.agents = names.iter().map(ToString::to_string).collect();
            agent
        };
        let limited = AgentRights::of(&calling(&["x", "y"])).limit(&calling(&["y", "z"]));
        assert_eq!(limited.agents, ["y"]);
    }

    #[test]
    fn what_is_recorded_is_read_again() {
        let mut agent = agent(Some(&["grep"]));
        agent.policy.mode = Some(Mode::Plan);
        agent.policy.commands = Some(vec!["git diff *".to_owned()]);
        let rights = AgentRights::of(&agent);
        let text = serde_json::to_string(&rights).unwrap();
        assert_eq!(text, r#"{"mode":"plan","commands":["git diff *"],"tools":["grep"]}"#);
        assert_eq!(serde_json::from_str::<AgentRights>(&text).unwrap(), rights);
    }
}

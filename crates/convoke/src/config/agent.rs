//! The `agent` section: how a run goes about its task.

use convoke_core::run::OnStuck;
use convoke_core::{ReflectionMode, RunSettings, Strategy, WorkspaceKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct AgentConfig {
    /// Whether a run starts at once or makes a plan first.
    pub strategy: Strategy,
    /// When a run looks back: never, after a turn in which a call failed, or after every turn with
    /// calls. Without the key, one that plans looks back after failures, and any other never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reflection: Option<ReflectionMode>,
    /// Where a run works: `shared` is the directory it was started in, `readonly` the same without the
    /// right to change anything, `worktree` a git worktree of its own, `copy` a copy of the directory.
    /// A project's file can only choose a stricter one: `readonly` before `worktree` and `copy`, these
    /// before `shared`.
    pub workspace: WorkspaceKind,
    /// How many times in a row the same may happen before the model is told.
    #[schemars(range(min = 2, max = 100))]
    pub max_repeats: u32,
    /// What happens when a run makes no progress although it was told: `restart` lets it go on from a summary
    /// of what it did and ends it if that does not help, `ask` asks a person then, `end` ends it at once.
    pub on_stuck: OnStuck,
    /// How often a run that makes no progress is helped, in whatever way, before it ends.
    #[schemars(range(min = 0, max = 100))]
    pub max_rescues: u32,
    /// At how much of the model's window the conversation is summed up, in percent.
    #[schemars(range(min = 10, max = 95))]
    pub compact_at: u8,
    /// Another spelling of `tools.maxConcurrent`. Where one layer sets both, the smaller counts.
    ///
    /// A loaded configuration carries the value in `tools.maxConcurrent` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub max_concurrent_tools: Option<usize>,
}

impl Default for AgentConfig {
    fn default() -> Self {
        let run = RunSettings::default();
        Self {
            strategy: run.strategy,
            reflection: None,
            workspace: WorkspaceKind::Shared,
            max_repeats: run.max_repeats,
            on_stuck: run.on_stuck,
            max_rescues: run.max_rescues,
            compact_at: run.compact_at_percent,
            max_concurrent_tools: None,
        }
    }
}

//! What a run knows about its task beside the conversation: the plan, what was done, what was learned,
//! and which files it touched.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::effect::{Access, Effects};
use crate::event::{PlanStep, Reflection};
use crate::id::{CallId, TaskId};
use crate::time::Millis;

/// How many paths of each sort are remembered.
const MAX_PATHS: usize = 200;
/// How many actions are remembered; the oldest are forgotten first.
const MAX_ACTIONS: usize = 1_000;

/// The task of a run and what came of it so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskContext {
    /// The task's name.
    pub task_id: TaskId,
    /// What is to be reached.
    pub goal: String,
    /// The plan that counts now; empty without one.
    pub plan: Vec<PlanStep>,
    /// The calls that ended, oldest first.
    pub actions_done: Vec<ActionResult>,
    /// What looking back gave.
    pub reflections: Vec<Reflection>,
    /// The files that were touched.
    pub ledger: Ledger,
}

/// A call that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionResult {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool_name: String,
    /// Whether it worked.
    pub success: bool,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took.
    pub duration_ms: Millis,
}

/// Facts that outlive the conversation they come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ledger {
    /// Files that were read.
    pub read: BTreeSet<String>,
    /// Files that were written, moved or deleted.
    pub changed: BTreeSet<String>,
}

impl Ledger {
    /// Takes in what another one knows, as far as there is room.
    pub fn take_in(&mut self, other: &Self) {
        for (own, more) in [(&mut self.read, &other.read), (&mut self.changed, &other.changed)] {
            let room = MAX_PATHS.saturating_sub(own.len());
            let new: Vec<String> = more.difference(own).take(room).cloned().collect();
            own.extend(new);
        }
    }

    pub(super) fn note(&mut self, effects: &Effects) {
        for (access, path) in effects.paths() {
            let paths = match access {
                Access::Read => &mut self.read,
                Access::Write => &mut self.changed,
            };
            if paths.len() < MAX_PATHS {
                paths.insert(path.to_owned());
            }
        }
    }
}

impl TaskContext {
    pub(super) fn new(task_id: TaskId, goal: String) -> Self {
        Self {
            task_id,
            goal,
            plan: Vec::new(),
            actions_done: Vec::new(),
            reflections: Vec::new(),
            ledger: Ledger::default(),
        }
    }

    pub(super) fn did(&mut self, action: ActionResult) {
        if self.actions_done.len() == MAX_ACTIONS {
            self.actions_done.remove(0);
        }
        self.actions_done.push(action);
    }
}

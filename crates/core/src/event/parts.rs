//! What bodies of events are made of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is done for a run that makes no progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rescue {
    /// It is told.
    #[default]
    Nudge,
    /// It goes on from a summary of what it did.
    Restart,
}

/// A file as a tool call last saw or left it. The model is not told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileSeen {
    /// The absolute path, links resolved.
    pub path: String,
    /// The hash of the whole content; none where the call left no file there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The name under which the run keeps the content that the call replaced or deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
}

/// News from a running call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// Output so far unseen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How much is done, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
}

/// What a person is asked for in the middle of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Wanted {
    /// The fields of a form.
    Form {
        /// A JSON Schema of a flat object.
        schema: Value,
    },
    /// A visit to a page. What is entered there does not pass through here.
    Visit {
        /// Its address.
        url: String,
    },
}

/// What a look back found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reflection {
    /// What to do now.
    pub verdict: Verdict,
    /// How things stand.
    pub assessment: String,
    /// What was learned.
    #[serde(default)]
    pub lessons: Vec<String>,
    /// What to look at next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_focus: Option<String>,
    /// The failures that led to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_failures: Vec<ToolFailure>,
}

/// What a look back decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Accept what there is.
    Complete,
    /// Go on.
    Continue,
    /// Make another plan.
    Replan,
}

/// A failure, seen in retrospect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolFailure {
    /// Which tool.
    pub tool_name: String,
    /// Why it failed.
    pub error: String,
    /// What might work instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// Its name within the plan.
    pub id: String,
    /// What kind of step it is.
    pub action_type: ActionType,
    /// The tool or agent it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// With what.
    #[serde(default)]
    pub params: Value,
    /// The steps that come first.
    #[serde(default)]
    pub depends_on: Vec<String>,
}

/// What a step of a plan does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionType {
    /// Calls a tool.
    ToolCall,
    /// Says something.
    Respond,
    /// Hands work to another agent.
    Delegate,
}

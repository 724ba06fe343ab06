//! What has to be known to make the agent of a recorded run again.

use std::path::PathBuf;

use convoke_core::{Event, EventBody, Mode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a run was started, and how freely it could act. It is recorded with the run; the configuration
/// that holds when the run is resumed counts beside it, so a rule that was added meanwhile is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Origin {
    /// The directory it works in.
    pub working_directory: PathBuf,
    /// How freely it may act.
    pub mode: Mode,
    /// The tools it was given, where somebody chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

impl Origin {
    /// Finds it among the events of a run. A run that was not started by a runtime has none.
    pub fn of(events: &[Event]) -> Option<Self> {
        let origin = events.iter().find_map(|event| match &event.body {
            EventBody::RunStarted { origin, .. } => Some(origin),
            _ => None,
        })?;
        serde_json::from_value(origin.clone()).ok()
    }

    /// A path that is no text cannot be written; then there is none.
    pub(crate) fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

//! What has to be known to make the agent of a recorded run again.

use std::path::{Path, PathBuf};

use convoke_agent::AgentRights;
use convoke_core::policy::wildcard;
use convoke_core::{Event, EventBody, Mode, WorkspaceKind};
use convoke_journal::is_same_directory;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::OnAsk;

/// Where a run was started, and how freely it could act. It is recorded with the run; the configuration
/// that holds when the run is resumed counts beside it: what is forbidden since then stays forbidden.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Origin {
    /// The directory it was started in, and works in unless it has files of its own.
    pub working_directory: PathBuf,
    /// How freely it may act.
    pub mode: Mode,
    /// What becomes of its questions that nobody answers.
    #[serde(default)]
    pub on_ask: OnAsk,
    /// How its programs are confined, in a word: for whoever looks later, not for whoever resumes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The tools it was given, where somebody chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Where it works, if not with its user's files as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<OriginWorkspace>,
    /// The agent that works, if it is not the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<OriginAgent>,
    /// Whether it is no agent's work, but the calls that clients of a server made. It cannot go on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub served: bool,
}

/// An agent that somebody started by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OriginAgent {
    /// Its name.
    pub name: String,
    /// What went in.
    pub inputs: Map<String, Value>,
    /// What its definition let it do when the run began. A definition that was changed since gives it no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<AgentRights>,
}

/// The workspace of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OriginWorkspace {
    /// What kind it is.
    pub kind: WorkspaceKind,
    /// Its root.
    pub path: PathBuf,
}

/// The ways in which a run that is resumed would act otherwise than one that is started at the same place: its user
/// has to agree first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResumeDifference {
    /// The directory of the run, if it is another.
    pub directory: Option<PathBuf>,
    /// The mode of the run, if it is freer.
    pub mode: Option<Mode>,
}

impl ResumeDifference {
    /// Tells whether there is nothing to agree to.
    pub const fn is_none(&self) -> bool {
        self.directory.is_none() && self.mode.is_none()
    }
}

impl Origin {
    /// Compares the directory and the mode of a run with the present ones. `directory` has no links.
    pub fn compare(&self, directory: &Path, mode: Mode) -> ResumeDifference {
        let own = &self.working_directory;
        ResumeDifference {
            directory: (!is_same_directory(own, directory)).then(|| own.clone()),
            mode: Some(self.mode).filter(|own| own.is_freer_than(mode)),
        }
    }

    /// Finds the last one among the events of a run. A run that was not started by a runtime has none.
    pub fn of(events: &[Event]) -> Option<Self> {
        // Agents that it called are recorded beside it, and have origins of their own.
        let own = events.iter().rev().filter(|event| event.parent.is_none());
        let origin = own.into_iter().find_map(|event| match &event.body {
            EventBody::RunStarted { origin, .. } | EventBody::RunResumed { origin, .. } => {
                Some(origin).filter(|origin| !origin.is_null())
            }
            _ => None,
        })?;
        serde_json::from_value(origin.clone()).ok()
    }

    /// Returns the tools of the run that are still on offer, where somebody chose then or chooses now.
    pub fn tools_within(&self, present: Option<&[String]>) -> Option<Vec<String>> {
        match (&self.tools, present) {
            (Some(then), Some(now)) => {
                let offered = |name: &&String| now.iter().any(|pattern| wildcard(pattern, name));
                Some(then.iter().filter(offered).cloned().collect())
            }
            (then, now) => then.clone().or_else(|| now.map(<[String]>::to_vec)),
        }
    }

    /// A path that is no text cannot be written; then there is none.
    pub(crate) fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_away_since_stays_away() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let origin = |tools: Option<&[&str]>| Origin {
            working_directory: "/p".into(),
            mode: Mode::Default,
            on_ask: OnAsk::Deny,
            sandbox: None,
            tools: tools.map(names),
            workspace: None,
            agent: None,
            served: false,
        };
        let chosen = origin(Some(&["read_file", "run_command", "grep"]));
        let now = names(&["read_*", "grep"]);
        assert_eq!(chosen.tools_within(Some(&now)), Some(names(&["read_file", "grep"])));
        assert_eq!(chosen.tools_within(None), chosen.tools);
        assert_eq!(origin(None).tools_within(Some(&now)), Some(now));
        assert_eq!(origin(None).tools_within(None), None);
    }
}

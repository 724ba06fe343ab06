//! Everything that happens, as one ordered stream.
//!
//! A **durable** event has a sequence number without gaps within a tree of runs and is what a journal
//! keeps. An **ephemeral** one (a delta, progress) says which durable event it follows and its place
//! after it; it is streamed and not kept. Whatever a user is told is in this stream.

mod body;
mod parts;
mod read;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::body::EventBody;
pub use self::parts::{
    ActionType, FileSeen, PlanStep, Progress, Reflection, Rescue, ToolFailure, Verdict, Wanted,
};
use crate::id::{AgentPath, CallId, RunId};
use crate::time::Timestamp;

/// The version of the envelope and of all bodies.
pub const VERSION: u32 = 1;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Event {
    /// Version of the format.
    pub v: u32,
    /// Its place in the stream.
    #[serde(flatten)]
    pub position: Position,
    /// When, in milliseconds since the epoch.
    pub ts: Timestamp,
    /// The run it belongs to.
    pub run: RunId,
    /// The run that started that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// The agent that acts.
    pub agent: AgentPath,
    /// The tool call it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The known secrets that a tool came across in it, by the names that stand for them there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub secrets: BTreeSet<String>,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

/// The place of an event in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Position {
    /// Kept: numbered from 1, without gaps.
    Durable {
        /// The number.
        seq: u64,
    },
    /// Streamed only.
    Ephemeral {
        /// The durable event it follows.
        after: u64,
        /// Its place after that, from 0.
        index: u64,
    },
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn event(position: Position, body: EventBody) -> Event {
        Event {
            v: VERSION,
            position,
            ts: Timestamp::from_millis(7),
            run: RunId::new("r"),
            parent: None,
            agent: AgentPath::default(),
            call: Some(CallId::new("c")),
            secrets: BTreeSet::new(),
            body,
        }
    }

    #[test]
    fn the_envelope_is_flat_and_comes_back_the_same() {
        let requested = event(
            Position::Durable { seq: 3 },
            EventBody::ToolCallRequested {
                tool_name: "grep".into(),
                params: Arc::new(json!({ "pattern": "x" })),
            },
        );
        let json = serde_json::to_value(&requested).unwrap();
        assert_eq!(
            json,
            json!({
                "v": 1, "seq": 3, "ts": 7, "run": "r", "agent": "main", "call": "c",
                "type": "tool_call_requested",
                "data": { "toolName": "grep", "params": { "pattern": "x" } },
            })
        );
        assert_eq!(serde_json::from_value::<Event>(json).unwrap(), requested);
    }

    #[test]
    fn progress_follows_a_durable_event() {
        let progress = event(
            Position::Ephemeral { after: 3, index: 0 },
            EventBody::ToolCallProgress {
                tool_name: "run_command".into(),
                update: Progress { text: Some("line\n".into()), ..Progress::default() },
            },
        );
        assert!(!progress.body.is_durable());
        let json = serde_json::to_value(&progress).unwrap();
        assert_eq!((&json["after"], &json["index"]), (&json!(3), &json!(0)));
        assert_eq!(json["data"], json!({ "toolName": "run_command", "text": "line\n" }));
        assert_eq!(serde_json::from_value::<Event>(json).unwrap(), progress);
    }
}

//! The event names and payloads of the mission's documents, derived from our events.
//!
//! Two older spellings exist: `TOOL_CALL_REQUESTED` and its kin for every tool call, and the activity
//! of subagents (`TOOL_CALL_START`, `TOOL_CALL_END`, `THOUGHT_CHUNK`, `ERROR`). Both are views; nothing
//! in the runtime reads them.

use serde_json::{Value, json};

use crate::event::{Event, EventBody};

/// Returns the event as `{type, payload}` in the spelling for all tool calls, if it has one.
pub fn tool_event(event: &Event) -> Option<Value> {
    let (name, payload) = match &event.body {
        EventBody::ToolCallRequested { tool_name, params } => {
            ("TOOL_CALL_REQUESTED", json!({ "toolName": tool_name, "params": params }))
        }
        EventBody::ToolCallCompleted { tool_name, result, duration_ms, .. } => (
            "TOOL_CALL_COMPLETED",
            json!({ "toolName": tool_name, "result": result, "durationMs": duration_ms }),
        ),
        EventBody::ToolCallFailed { tool_name, error, duration_ms, .. }
        | EventBody::ToolCallDenied { tool_name, error, duration_ms, .. } => (
            "TOOL_CALL_FAILED",
            json!({ "toolName": tool_name, "error": error.message, "durationMs": duration_ms }),
        ),
        _ => return None,
    };
    Some(json!({ "type": name, "payload": payload }))
}

/// Returns the event as a subagent's activity, if it is one: events of the root agent are not.
pub fn subagent_activity(event: &Event) -> Option<Value> {
    if event.agent.is_root() {
        return None;
    }
    let (kind, data) = match &event.body {
        EventBody::ToolCallRequested { tool_name, params } => {
            ("TOOL_CALL_START", json!({ "name": tool_name, "args": params }))
        }
        EventBody::ToolCallCompleted { tool_name, result, .. } => {
            ("TOOL_CALL_END", json!({ "name": tool_name, "output": result }))
        }
        EventBody::ToolCallFailed { tool_name, error, .. }
        | EventBody::ToolCallDenied { tool_name, error, .. } => {
            ("ERROR", json!({ "name": tool_name, "error": error.message, "context": "tool_call" }))
        }
        EventBody::ModelThought { text } => ("THOUGHT_CHUNK", json!({ "text": text })),
        EventBody::Error { message } => ("ERROR", json!({ "error": message })),
        _ => return None,
    };
    let name = event.agent.as_str().rsplit('/').next();
    Some(json!({ "isSubagentActivityEvent": true, "agentName": name, "type": kind, "data": data }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::error::ToolError;
    use crate::event::{Position, VERSION};
    use crate::id::{AgentPath, RunId};
    use crate::time::{Millis, Timestamp};

    fn event(agent: AgentPath, body: EventBody) -> Event {
        Event {
            v: VERSION,
            position: Position::Durable { seq: 1 },
            ts: Timestamp::default(),
            run: RunId::new("r"),
            parent: None,
            agent,
            call: None,
            secrets: std::collections::BTreeSet::new(),
            body,
        }
    }

    fn failed() -> EventBody {
        EventBody::ToolCallFailed {
            tool_name: "sleep".into(),
            error: ToolError::timeout(Duration::from_secs(1)),
            content: Vec::new(),
            duration_ms: Millis::new(Duration::from_millis(1001)),
            files: Vec::new(),
        }
    }

    #[test]
    fn tool_calls_have_the_mission_shape() {
        let main = AgentPath::default();
        let completed = EventBody::ToolCallCompleted {
            tool_name: "ls".into(),
            result: Arc::new(json!([1])),
            content: Vec::new(),
            display: None,
            duration_ms: Millis::new(Duration::from_millis(5)),
            files: Vec::new(),
        };
        assert_eq!(
            tool_event(&event(main.clone(), completed)).unwrap(),
            json!({
                "type": "TOOL_CALL_COMPLETED",
                "payload": { "toolName": "ls", "result": [1], "durationMs": 5 },
            })
        );
        assert_eq!(
            tool_event(&event(main.clone(), failed())).unwrap()["payload"]["error"],
            "Tool execution timed out after 1000ms"
        );
        assert_eq!(tool_event(&event(main, EventBody::TurnStarted { turn: 1 })), None);
    }

    #[test]
    fn only_subagents_have_activity() {
        let main = AgentPath::default();
        assert_eq!(subagent_activity(&event(main.clone(), failed())), None);
        let activity = subagent_activity(&event(main.child("digger"), failed())).unwrap();
        assert_eq!(activity["agentName"], "digger");
        assert_eq!(activity["type"], "ERROR");
        assert_eq!(activity["isSubagentActivityEvent"], true);
    }
}

//! What a run did to the environment of its session, to be done again in another process.
//!
//! A session's environment ends with its process. The journal has the calls that changed it, so whoever takes
//! the run up sets the variables anew. A value that held a secret was recorded without it and stays unknown:
//! the model is told, once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use convoke_core::{CallId, Event, EventBody, Message, Part, Role, RunId};
use serde_json::Value;

use crate::executor::Agent;
use crate::prompts;

/// The calls of a tree of runs that worked, and may have changed its session.
#[derive(Debug, Default)]
pub(crate) struct Session {
    begun: HashMap<(RunId, CallId), Call>,
    worked: Vec<Call>,
    /// Agents with files of their own have a session of their own, too.
    apart: HashSet<RunId>,
    /// About how many of them the model knows what did not come back.
    told: usize,
}

#[derive(Debug)]
struct Call {
    tool: String,
    arguments: Arc<Value>,
}

impl Session {
    /// Takes in an event.
    pub(crate) fn take(&mut self, event: &Event) {
        match &event.body {
            EventBody::WorkspacePrepared { .. } if event.parent.is_some() => {
                self.apart.insert(event.run.clone());
            }
            // Whoever such an agent calls works in its session.
            EventBody::RunStarted { .. }
                if event.parent.as_ref().is_some_and(|caller| self.apart.contains(caller)) =>
            {
                self.apart.insert(event.run.clone());
            }
            EventBody::UserMessage { message } => {
                let is_note = |part: &Part| part.as_text().is_some_and(prompts::is_forgotten);
                if message.parts.iter().any(is_note) {
                    self.told = self.worked.len();
                }
            }
            body => {
                let Some(call) = &event.call else { return };
                self.take_call((event.run.clone(), call.clone()), body);
            }
        }
    }

    fn take_call(&mut self, call: (RunId, CallId), body: &EventBody) {
        match body {
            EventBody::ToolCallRequested { tool_name, params } => {
                let begun = Call { tool: tool_name.clone(), arguments: Arc::clone(params) };
                self.begun.insert(call, begun);
            }
            // Who lets a call happen may change it.
            EventBody::ApprovalAnswered { arguments: Some(arguments), .. }
            | EventBody::HookActed { arguments: Some(arguments), .. } => {
                if let Some(begun) = self.begun.get_mut(&call) {
                    begun.arguments = Arc::clone(arguments);
                }
            }
            EventBody::ToolCallCompleted { .. } if !self.apart.contains(&call.0) => {
                self.worked.extend(self.begun.remove(&call));
            }
            body if body.ends_call() => drop(self.begun.remove(&call)),
            _ => {}
        }
    }

    /// Sets the variables that these calls set, as they were in the end. Returns the names of those that are not
    /// known any more, and of which the model does not know it.
    pub(crate) fn bring_back(&self, agent: &Agent) -> Vec<String> {
        let mut last = BTreeMap::new();
        for (index, call) in self.worked.iter().enumerate() {
            let tool =
                agent.tools.shown().get(&call.tool).or_else(|| agent.ceiling.get(&call.tool));
            if let Some((name, value)) = tool.and_then(|tool| tool.variable(&call.arguments)) {
                last.insert(name, (index, value));
            }
        }
        let mut forgotten = Vec::new();
        for (name, (index, value)) in last {
            agent.secrets.recall(&Message::text(Role::User, value.as_str()));
            if agent.secrets.named_in(&Value::String(value.clone())).is_none() {
                agent.context.environment().set(name, value);
            } else if index >= self.told {
                forgotten.push(name);
            }
        }
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use convoke_core::event::VERSION;
    use convoke_core::{AgentPath, Position, Timestamp};
    use serde_json::json;

    use super::*;

    fn event(run: &str, caller: Option<&str>, kind: &str, data: &Value) -> Event {
        Event {
            v: VERSION,
            position: Position::Durable { seq: 1 },
            ts: Timestamp::default(),
            run: RunId::new(run),
            parent: caller.map(RunId::new),
            agent: AgentPath::default(),
            call: kind.starts_with("tool_call").then(|| CallId::new("c")),
            secrets: std::collections::BTreeSet::new(),
            body: serde_json::from_value(json!({ "type": kind, "data": data })).unwrap(),
        }
    }

    /// Also one that has no files of its own, and works with those of an agent that has.
    #[test]
    fn what_agents_with_files_of_their_own_set_is_not_set_for_all() {
        let started = json!({
            "task": "t", "prompt": "p",
        });
        let place = json!({ "kind": "worktree", "path": "/w" });
        let requested = json!({ "toolName": "set_env", "params": { "key": "A", "value": "b" } });
        let completed = json!({
            "toolName": "set_env", "result": "set", "content": [], "durationMs": 1,
        });
        for (is_apart, worked) in [(true, 1), (false, 3)] {
            let mut session = Session::default();
            for (run, caller) in [("r", None), ("r-a", Some("r")), ("r-a-b", Some("r-a"))] {
                session.take(&event(run, caller, "run_started", &started));
                if is_apart && run == "r-a" {
                    session.take(&event(run, caller, "workspace_prepared", &place));
                }
            }
            for (run, caller) in [("r", None), ("r-a", Some("r")), ("r-a-b", Some("r-a"))] {
                session.take(&event(run, caller, "tool_call_requested", &requested));
                session.take(&event(run, caller, "tool_call_completed", &completed));
            }
            assert_eq!(session.worked.len(), worked, "{is_apart}");
        }
    }
}

//! Runs as a journal keeps them, made by hand: every moment in them is known.

use convoke::journal::{Journal, Store};
use convoke_core::{Event, RunId, Timestamp};
use serde_json::{Value, json};

use crate::support::Scene;

/// When the runs of these tests begin: 2026-03-01, 09:30 UTC.
pub(crate) const BEGIN: i64 = 1_772_357_400_000;

/// The store in which the commands of a scene keep runs.
pub(crate) fn store(scene: &Scene) -> Store {
    Store::at(scene.root().join("home/.local/state/convoke"))
}

/// A run in the making.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    run: String,
    begin: i64,
    events: Vec<Event>,
}

impl Story {
    pub(crate) fn new(run: &str) -> Self {
        Self { run: run.to_owned(), begin: BEGIN, events: Vec::new() }
    }

    /// It begins so many milliseconds later.
    pub(crate) fn later(mut self, millis: i64) -> Self {
        self.begin += millis;
        self
    }

    /// Something that the main agent did, so many milliseconds after the beginning.
    pub(crate) fn main(self, at: i64, kind: &str, data: &Value) -> Self {
        self.add(at, &json!({}), kind, data)
    }

    /// Something about a call of the main agent.
    pub(crate) fn call(self, at: i64, call: &str, kind: &str, data: &Value) -> Self {
        self.add(at, &json!({ "call": call }), kind, data)
    }

    /// Something that a subagent did.
    pub(crate) fn child(self, at: i64, name: &str, kind: &str, data: &Value) -> Self {
        let run = format!("{}-{name}", self.run);
        let who = json!({ "run": run, "parent": self.run, "agent": format!("main/{name}") });
        self.add(at, &who, kind, data)
    }

    fn add(mut self, at: i64, more: &Value, kind: &str, data: &Value) -> Self {
        let mut event = json!({
            "v": 1, "seq": self.events.len() + 1, "ts": self.begin + at, "run": self.run,
            "agent": "main", "type": kind, "data": data,
        });
        let more = more.as_object().cloned().unwrap_or_default();
        event.as_object_mut().unwrap().extend(more);
        self.events.push(serde_json::from_value(event).unwrap());
        self
    }

    /// The first event.
    pub(crate) fn started(self, prompt: &str, directory: &str) -> Self {
        let origin = json!({ "workingDirectory": directory, "mode": "default" });
        let data = json!({
            "task": "t", "model": "example/large", "prompt": prompt, "origin": origin,
        });
        self.main(0, "run_started", &data)
    }

    /// The model is asked, and answers after a second.
    pub(crate) fn says(self, at: i64, turn: u32, text: &str) -> Self {
        let request = json!({ "model": "example/large", "purpose": "main" });
        let usage = json!({ "inputTokens": 1200, "outputTokens": 80, "cost": "0.0123" });
        let message = json!({ "role": "assistant", "parts": [{ "type": "text", "text": text }] });
        let answer =
            json!({ "purpose": "main", "message": message, "usage": usage, "stop": "done" });
        self.main(at, "turn_started", &json!({ "turn": turn }))
            .main(at, "model_request", &request)
            .main(at + 1000, "model_response", &answer)
    }

    /// A tool is called and works.
    pub(crate) fn works(
        self,
        at: i64,
        call: &str,
        tool: &str,
        params: &Value,
        millis: i64,
    ) -> Self {
        let result = json!({
            "toolName": tool, "result": null, "durationMs": millis,
            "content": [{ "type": "text", "text": "one\ntwo\nthree\n" }],
        });
        self.requested(at, call, tool, params).starts(at, call, tool).call(
            at + millis,
            call,
            "tool_call_completed",
            &result,
        )
    }

    pub(crate) fn requested(self, at: i64, call: &str, tool: &str, params: &Value) -> Self {
        self.call(at, call, "tool_call_requested", &json!({ "toolName": tool, "params": params }))
    }

    pub(crate) fn starts(self, at: i64, call: &str, tool: &str) -> Self {
        let data = json!({ "toolName": tool, "description": "does it", "effects": {} });
        self.call(at, call, "tool_call_started", &data)
    }

    /// The last event.
    pub(crate) fn ends(self, at: i64, cause: &str, status: &str, answer: Option<&str>) -> Self {
        let usage = json!({ "inputTokens": 2400, "outputTokens": 160, "cost": "0.0246" });
        let outcome = json!({ "status": status, "cause": cause, "recovered": false });
        let data = json!({ "outcome": outcome, "usage": usage, "answer": answer });
        self.main(at, "run_ended", &data)
    }

    /// Writes it into the store of a scene.
    pub(crate) fn keep(self, scene: &Scene) -> Self {
        let run = RunId::new(self.run.as_str());
        let created = self.events.first().map_or(Timestamp::from_millis(BEGIN), |first| first.ts);
        let journal = store(scene).create(&run, created).unwrap();
        for event in &self.events {
            journal.append(event).unwrap();
        }
        self
    }

    /// How many events it has.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }
}

/// A run with everything in it that can be shown.
pub(crate) fn rich(run: &str) -> Story {
    let usage = json!({ "inputTokens": 900, "outputTokens": 50, "cost": "0.004" });
    let ended = json!({
        "outcome": { "status": "completed", "cause": "goal", "recovered": false },
        "usage": usage, "answer": "The parser takes the tag as it is.",
    });
    let told =
        json!({ "child": format!("{run}-digger"), "outcome": ended["outcome"], "usage": usage });
    let diff = "--- a/v.rs\n+++ b/v.rs\n@@ -1 +1 @@\n-old\n+new\n";
    let asked = json!({
        "toolName": "edit_file", "kind": "edit", "description": "Change v.rs in 1 place",
        "preview": { "format": "diff", "text": diff }, "reason": "kind edit",
    });
    let edited = json!({
        "toolName": "edit_file", "result": null, "durationMs": 8,
        "content": [{ "type": "text", "text": "Changed `v.rs` in 1 place." }],
        "display": { "format": "diff", "text": diff },
    });
    let denied = json!({
        "toolName": "run_command", "durationMs": 0,
        "error": { "kind": "permission", "message": "the policy says no: programs are not run here" },
    });
    let failed = json!({
        "toolName": "run_command", "durationMs": 3100,
        "error": { "kind": "failed", "message": "the command ended with exit status: 101" },
    });
    let retry = json!({ "attempt": 2, "delayMs": 1000, "reason": "429 Too Many Requests" });
    Story::new(run)
        .started("The release job fails since the last tag.\nFind out why, and fix it.", "/somewhere")
        .says(10, 1, "I'll look at the parser, and run the tests.")
        .works(1100, "c1", "read_file", &json!({ "path": "src/version.rs" }), 6)
        .requested(1110, "c2", "run_command", &json!({ "command": "cargo test -p release" }))
        .starts(1110, "c2", "run_command")
        .call(4210, "c2", "tool_call_failed", &failed)
        .main(4211, "turn_ended", &json!({ "turn": 1 }))
        .main(4220, "plan", &json!({ "steps": [
            { "id": "s1", "actionType": "tool_call", "tool": "edit_file", "params": { "path": "v.rs" } },
        ] }))
        .says(4300, 2, "`parse` does not expect the `v`. Somebody else looks why.")
        .requested(5400, "c3", "edit_file", &json!({ "path": "v.rs" }))
        .call(5400, "c3", "approval_asked", &asked)
        .call(9600, "c3", "approval_answered",
              &json!({ "toolName": "edit_file", "approved": true, "message": "Yes, with a comment." }))
        .starts(9600, "c3", "edit_file")
        .call(9608, "c3", "tool_call_completed", &edited)
        .requested(9610, "c4", "run_command", &json!({ "command": "rm -rf /" }))
        .call(9611, "c4", "tool_call_denied", &denied)
        .requested(9612, "c5", "delegate", &json!({ "agent_name": "digger" }))
        .starts(9612, "c5", "delegate")
        .call(9612, "c5", "agent_spawned", &json!({ "child": format!("{run}-digger"), "name": "digger" }))
        .child(9613, "digger", "run_started", &json!({ "task": "t", "model": "example/small", "prompt": "Dig." }))
        .child(9620, "digger", "turn_started", &json!({ "turn": 1 }))
        .child(9620, "digger", "model_request", &json!({ "model": "example/small", "purpose": "main" }))
        .child(10_620, "digger", "model_response", &json!({
            "purpose": "main", "usage": usage, "stop": "done",
            "message": { "role": "assistant", "parts": [{ "type": "text", "text": "I found it." }] },
        }))
        .child(10_700, "digger", "run_ended", &ended)
        .call(10_701, "c5", "agent_ended", &told)
        .call(10_702, "c5", "tool_call_completed", &json!({
            "toolName": "delegate", "result": null, "durationMs": 1090, "content": [],
        }))
        .main(10_710, "warning", &json!({ "message": "AGENTS.md was cut\u{1b}[2J" }))
        .main(10_711, "compaction", &json!({ "before": 20_000, "after": 4_000, "keptFrom": 5, "summary": "short" }))
        .main(10_712, "turn_ended", &json!({ "turn": 2 }))
        .main(7_210_712, "run_resumed", &json!({}))
        .main(7_210_720, "turn_started", &json!({ "turn": 3 }))
        .main(7_210_720, "model_request", &json!({ "model": "example/large", "purpose": "main" }))
        .main(7_210_800, "model_retry", &retry)
        .main(7_213_000, "model_response", &json!({
            "purpose": "main", "usage": usage, "stop": "done",
            "message": { "role": "assistant", "parts": [{ "type": "text", "text": "**Fixed.**" }] },
        }))
        .main(7_213_001, "turn_ended", &json!({ "turn": 3 }))
        .ends(7_213_002, "goal", "completed", Some("**Fixed.**"))
}

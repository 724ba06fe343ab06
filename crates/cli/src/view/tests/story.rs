//! Events as a run would give them, written as JSON so that they stay what a journal holds.

#![expect(clippy::needless_pass_by_value, reason = "`json!` reads best where it is given away")]

use convoke_core::Event;
use serde_json::{Value, json};

/// What the run answers.
pub(super) const ANSWER: &str = "\
## What I did

Two things were wrong, and **both** are fixed:

- the parser took `0` for *nothing*
- a test expected that

Run `cargo test` to see.
";

#[derive(Clone, Debug, Default)]
pub(super) struct Story {
    pub(super) events: Vec<Event>,
    durable: u64,
    ephemeral: u64,
}

impl Story {
    /// An event of the main agent.
    pub(super) fn main(self, ts: i64, call: Option<&str>, kind: &str, data: Value) -> Self {
        self.add(ts, ("r-1", "main", None), call, kind, data)
    }

    /// An event of a subagent of the main agent.
    pub(super) fn child(
        self,
        ts: i64,
        run: &str,
        name: &str,
        call: Option<&str>,
        kind: &str,
        data: Value,
    ) -> Self {
        self.add(ts, (run, &format!("main/{name}"), Some("r-1")), call, kind, data)
    }

    fn add(
        mut self,
        ts: i64,
        (run, agent, parent): (&str, &str, Option<&str>),
        call: Option<&str>,
        kind: &str,
        data: Value,
    ) -> Self {
        let mut event = json!({
            "v": 1, "ts": ts, "run": run, "agent": agent, "type": kind, "data": data,
        });
        let streamed = ["model_delta", "model_thought", "model_tool_call", "tool_call_progress"];
        if streamed.contains(&kind) {
            event["after"] = self.durable.into();
            event["index"] = self.ephemeral.into();
            self.ephemeral += 1;
        } else {
            self.durable += 1;
            self.ephemeral = 0;
            event["seq"] = self.durable.into();
        }
        for (name, value) in [("parent", parent), ("call", call)] {
            if let Some(value) = value {
                event[name] = value.into();
            }
        }
        self.events.push(serde_json::from_value(event).expect("an event"));
        self
    }

    pub(super) fn started(self) -> Self {
        self.main(
            0,
            None,
            "run_started",
            json!({
                "task": "t", "model": "acme/large", "prompt": "Fix the parser.",
            }),
        )
    }

    pub(super) fn requests(self, ts: i64, call: &str, tool: &str, params: Value) -> Self {
        self.main(
            ts,
            Some(call),
            "tool_call_requested",
            json!({ "toolName": tool, "params": params }),
        )
    }

    /// The model answers with these words and calls.
    pub(super) fn answers(self, ts: i64, words: &str, calls: &[(&str, &str, Value)]) -> Self {
        let mut parts = vec![json!({ "type": "text", "text": words })];
        parts.extend(calls.iter().map(|(id, name, arguments)| {
            json!({ "type": "tool_call", "id": id, "name": name, "arguments": arguments })
        }));
        self.responds(ts, parts)
    }

    fn responds(self, ts: i64, parts: Vec<Value>) -> Self {
        self.main(ts, None, "model_response", json!({
            "purpose": "main", "stop": "done", "message": { "role": "assistant", "parts": parts },
            "usage": usage(4000, 200, "0.0101"),
        }))
    }

    pub(super) fn asks(self, ts: i64, turn: u32) -> Self {
        self.main(ts, None, "turn_started", json!({ "turn": turn })).main(
            ts,
            None,
            "model_request",
            json!({ "model": "acme/large", "purpose": "main", "estimate": 4000 }),
        )
    }

    /// A call that works.
    pub(super) fn works(self, ts: i64, call: &str, tool: &str, params: Value, text: &str) -> Self {
        self.requests(ts, call, tool, params)
            .main(ts, Some(call), "tool_call_started", begun(tool))
            .main(
                ts + 2,
                Some(call),
                "tool_call_completed",
                json!({
                    "toolName": tool, "result": text, "content": [{ "type": "text", "text": text }],
                    "durationMs": 2,
                }),
            )
    }

    pub(super) fn ended(self, ts: i64, cause: &str, answer: Option<Value>) -> Self {
        self.main(
            ts,
            None,
            "run_ended",
            json!({
                "outcome": { "status": "completed", "cause": cause }, "answer": answer,
                "usage": usage(0, 0, "0"),
            }),
        )
    }
}

pub(super) fn begun(tool: &str) -> Value {
    json!({ "toolName": tool, "description": format!("runs {tool}"), "effects": {} })
}

pub(super) fn usage(input: u64, output: u64, cost: &str) -> Value {
    json!({ "inputTokens": input, "cachedTokens": input / 2, "outputTokens": output, "cost": cost })
}

/// A run in which nearly everything happens.
pub(super) fn run() -> Vec<Event> {
    let story = Story::default().started().main(10, None, "plan", json!({ "steps": [
        { "id": "s1", "actionType": "tool_call", "tool": "read_file", "params": { "path": "src/parser.rs" } },
        { "id": "s2", "actionType": "delegate", "tool": "investigator", "dependsOn": ["s1"] },
        { "id": "s3", "actionType": "respond" },
    ]}));
    let story = looking(story);
    let story = delegating(story);
    let story = acting(story);
    answering(story).events
}

fn looking(story: Story) -> Story {
    let command = json!({ "command": "cargo test\n  --workspace" });
    story
        .asks(100, 1)
        .main(300, None, "model_thought", json!({ "text": "The tests come first." }))
        .main(400, None, "model_delta", json!({ "text": "I read the sources " }))
        .main(450, None, "model_delta", json!({ "text": "first. Then the tests.\n" }))
        .responds(
            900,
            vec![
                json!({ "type": "thought", "text": "The tests come first." }),
                json!({ "type": "text", "text": "I read the sources first. Then the tests.\n" }),
                json!({ "type": "tool_call", "id": "c1", "name": "read_file" }),
            ],
        )
        .main(
            900,
            Some("c1"),
            "policy_decision",
            json!({
                "toolName": "read_file", "decision": "allow", "rule": "reading is allowed",
            }),
        )
        .works(900, "c1", "read_file", json!({ "path": "src/parser.rs" }), "a\nb\nc\n")
        .works(
            901,
            "c2",
            "grep",
            json!({ "pattern": "fn main", "path": "src" }),
            "src/main.rs:1: fn main()",
        )
        .requests(910, "c3", "run_command", command)
        .main(910, Some("c3"), "tool_call_started", begun("run_command"))
        .main(
            1500,
            Some("c3"),
            "tool_call_progress",
            json!({
                "toolName": "run_command", "text": "   Compiling parser v0.1.0\n",
            }),
        )
        .main(
            9110,
            Some("c3"),
            "tool_call_failed",
            json!({
                "toolName": "run_command", "durationMs": 8200,
                "error": { "kind": "failed", "message": "the command ended with exit status: 101" },
            }),
        )
        .main(9200, None, "turn_ended", json!({ "turn": 1 }))
        .main(
            9300,
            None,
            "reflection",
            json!({
                "verdict": "replan", "assessment": "The tests fail. One of them is wrong.",
            }),
        )
}

fn delegating(story: Story) -> Story {
    let task = json!({ "agent_name": "investigator", "task": "find out why" });
    let grep = |found: &str| {
        json!({
            "toolName": "grep", "result": found, "durationMs": 14,
            "content": [{ "type": "text", "text": found }],
        })
    };
    let outcome = |cause: &str, status: &str| json!({ "status": status, "cause": cause });
    story
        .asks(9400, 2)
        .main(9500, None, "model_retry", json!({ "attempt": 2, "delayMs": 3000, "reason": "overloaded" }))
        .answers(13_000, "", &[("c4", "delegate", task.clone()), ("c5", "delegate", task.clone())])
        .requests(13_000, "c4", "delegate", task.clone())
        .requests(13_000, "c5", "delegate", task)
        .main(13_000, Some("c4"), "tool_call_started", begun("delegate"))
        .main(13_000, Some("c4"), "agent_spawned", json!({ "child": "k-1", "name": "investigator" }))
        .child(13_010, "k-1", "investigator", None, "run_started", json!({
            "task": "t", "prompt": "Find out why the parser takes 0 for nothing.",
        }))
        .main(13_020, Some("c5"), "agent_spawned", json!({ "child": "k-2", "name": "investigator" }))
        .child(13_020, "k-2", "investigator", None, "run_started", json!({
            "task": "t", "prompt": "Find the test that expects it.",
        }))
        .child(13_030, "k-1", "investigator", None, "turn_started", json!({ "turn": 1 }))
        .child(13_100, "k-2", "investigator", Some("g2"), "tool_call_requested", json!({
            "toolName": "grep", "params": { "pattern": "nothing", "path": "tests" },
        }))
        .child(13_114, "k-2", "investigator", Some("g2"), "tool_call_completed", grep("tests/a.rs:3: x"))
        .child(13_200, "k-1", "investigator", Some("g1"), "tool_call_requested", json!({
            "toolName": "grep", "params": { "pattern": "== 0" },
        }))
        .child(13_214, "k-1", "investigator", Some("g1"), "tool_call_completed", grep("one\ntwo"))
        .child(14_000, "k-1", "investigator", None, "run_ended", json!({
            "outcome": outcome("goal", "completed"), "answer": "x", "usage": usage(1000, 100, "0.002"),
        }))
        .main(14_000, Some("c4"), "agent_ended", json!({
            "child": "k-1", "outcome": outcome("goal", "completed"), "usage": usage(1000, 100, "0.002"),
        }))
        .main(14_000, Some("c4"), "tool_call_completed", json!({
            "toolName": "delegate", "result": "x", "durationMs": 1000,
        }))
        .main(15_000, Some("c5"), "agent_ended", json!({
            "child": "k-2", "outcome": outcome("loop", "stuck"), "usage": usage(2000, 100, "0.003"),
        }))
        .main(15_000, Some("c5"), "tool_call_failed", json!({
            "toolName": "delegate", "durationMs": 2000,
            "error": { "kind": "failed", "message": "the agent got stuck" },
        }))
}

fn acting(story: Story) -> Story {
    let diff = "--- a/src/parser.rs\n+++ b/src/parser.rs\n@@ -1,2 +1,2 @@\n-    if n == 0 {\n+    if n < 0 {\n     }\n";
    story
        .asks(15_100, 3)
        .requests(15_200, "c6", "edit_file", json!({ "path": "src/parser.rs", "old_string": "==" }))
        .main(15_200, Some("c6"), "approval_asked", json!({
            "toolName": "edit_file", "kind": "edit", "description": "edits", "reason": "it changes files",
        }))
        .main(18_000, Some("c6"), "approval_answered", json!({ "toolName": "edit_file", "approved": true }))
        .main(18_000, Some("c6"), "tool_call_started", begun("edit_file"))
        .main(18_003, Some("c6"), "tool_call_completed", json!({
            "toolName": "edit_file", "result": {}, "content": [{ "type": "text", "text": "edited" }],
            "display": { "format": "diff", "text": diff }, "durationMs": 3,
        }))
        .requests(18_100, "c7", "delete_file", json!({ "path": "/etc/passwd" }))
        .main(18_100, Some("c7"), "tool_call_denied", json!({
            "toolName": "delete_file", "durationMs": 0,
            "error": { "kind": "permission", "message": "Permission denied: `/etc/passwd` lies outside" },
        }))
        .main(18_200, None, "compaction", json!({
            "before": 84_000, "after": 12_400, "keptFrom": 5, "summary": "…",
        }))
        .main(18_300, None, "loop_detected", json!({
            "toolName": "grep", "times": 3, "message": "you repeat yourself",
        }))
        .main(18_400, None, "budget_warning", json!({ "budget": "turns", "used": 0.8, "message": "hurry" }))
        .main(18_500, None, "warning", json!({ "message": "the file `AGENTS.md` is very long" }))
        .main(18_500, None, "error", json!({ "message": "the disk is nearly full" }))
        .main(18_500, None, "mcp_server_state", json!({
            "server": "files", "state": "failed", "reason": "it ended",
        }))
}

fn answering(story: Story) -> Story {
    let mut story = story.asks(18_600, 4);
    for (index, piece) in ANSWER.split_inclusive(' ').enumerate() {
        let ts = 18_700 + 40 * i64::try_from(index).expect("few pieces");
        story = story.main(ts, None, "model_delta", json!({ "text": piece }));
    }
    story.answers(21_000, ANSWER, &[]).main(21_000, None, "turn_ended", json!({ "turn": 4 })).main(
        21_010,
        None,
        "run_ended",
        json!({
            "outcome": { "status": "completed", "cause": "goal" }, "answer": ANSWER,
            "usage": usage(15_000, 800, "0.0353"),
        }),
    )
}

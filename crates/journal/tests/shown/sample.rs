//! Runs as they happen, made by hand: with everything in them that a view has to show.

use std::sync::Arc;
use std::time::Duration;

use convoke_core::event::{ActionType, PlanStep, Progress, Reflection, ToolFailure, Verdict};
use convoke_core::policy::RuleSpec;
use convoke_core::{
    AgentPath, CallId, Cause, Declaration, Display, DisplayFormat, Effects, Event, EventBody, Kind,
    Limit, Message, Millis, Outcome, Part, Permission, Position, Purpose, Resource, Role, RunId,
    RunSettings, StopReason, TaskId, Timestamp, ToolCall, ToolError, Usage,
};
use serde_json::{Value, json};

/// When the runs of these tests begin: 2026-03-01, 09:30 UTC.
pub(crate) const BEGIN: i64 = 1_772_357_400_000;

/// A stream in the making.
pub(crate) struct Stream {
    pub(crate) events: Vec<Event>,
    now: i64,
    seq: u64,
    index: u64,
    run: RunId,
    parent: Option<RunId>,
    agent: AgentPath,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Self {
            events: Vec::new(),
            now: BEGIN,
            seq: 0,
            index: 0,
            run: RunId::new("r-20260301-7f3a"),
            parent: None,
            agent: AgentPath::default(),
        }
    }

    /// Time passes.
    pub(crate) fn wait(&mut self, millis: i64) -> &mut Self {
        self.now += millis;
        self
    }

    pub(crate) fn put(&mut self, body: EventBody) -> &mut Self {
        self.record(None, body)
    }

    pub(crate) fn about(&mut self, call: &str, body: EventBody) -> &mut Self {
        self.record(Some(CallId::new(call)), body)
    }

    fn record(&mut self, call: Option<CallId>, body: EventBody) -> &mut Self {
        let position = if body.is_durable() {
            self.seq += 1;
            self.index = 0;
            Position::Durable { seq: self.seq }
        } else {
            self.index += 1;
            Position::Ephemeral { after: self.seq, index: self.index - 1 }
        };
        self.events.push(Event {
            v: convoke_core::event::VERSION,
            position,
            ts: Timestamp::from_millis(self.now),
            run: self.run.clone(),
            parent: self.parent.clone(),
            agent: self.agent.clone(),
            call,
            secrets: std::collections::BTreeSet::new(),
            body,
        });
        self
    }

    /// What follows happens in another run, which the present one started.
    pub(crate) fn enter(&mut self, run: &str, name: &str) -> &mut Self {
        self.parent = Some(std::mem::replace(&mut self.run, RunId::new(run)));
        self.agent = self.agent.child(name);
        self
    }

    /// What follows happens in the main run again.
    pub(crate) fn leave(&mut self) -> &mut Self {
        if let Some(parent) = self.parent.take() {
            self.run = parent;
        }
        self.agent = AgentPath::default();
        self
    }

    pub(crate) fn start(&mut self, prompt: &str, tools: &[&str]) -> &mut Self {
        let tools: Arc<[Declaration]> = tools
            .iter()
            .map(|name| Declaration {
                name: (*name).into(),
                description: String::new(),
                parameters: json!({ "type": "object" }).into(),
            })
            .collect();
        self.put(EventBody::RunStarted {
            origin: Value::Null,
            task: TaskId::new("task"),
            model: "example/large".into(),
            prompt: prompt.into(),
            attachments: Vec::new(),
            history: Vec::new(),
            system: Arc::from("You work on the user's task with the tools you are given."),
            tools,
            settings: RunSettings::default(),
        })
    }

    pub(crate) fn ask(&mut self, purpose: Purpose) -> &mut Self {
        self.put(EventBody::ModelRequest {
            model: "example/large".into(),
            purpose,
            notice: None,
            estimate: 4_000,
            reserved: None,
        })
    }

    pub(crate) fn answer(&mut self, purpose: Purpose, parts: Vec<Part>, usage: Usage) -> &mut Self {
        self.put(EventBody::ModelResponse {
            purpose,
            message: Message { role: Role::Assistant, parts },
            usage,
            stop: StopReason::Done,
            dropped_calls: 0,
        })
    }

    pub(crate) fn request(&mut self, call: &str, tool: &str, params: Value) -> &mut Self {
        let tool_name = tool.to_owned();
        self.about(call, EventBody::ToolCallRequested { tool_name, params: Arc::new(params) })
    }

    pub(crate) fn decide(
        &mut self,
        call: &str,
        tool: &str,
        decision: &str,
        rule: &str,
    ) -> &mut Self {
        let (tool_name, decision, rule) = (tool.into(), decision.into(), rule.into());
        self.about(call, EventBody::PolicyDecision { tool_name, decision, rule })
    }

    pub(crate) fn begin(
        &mut self,
        call: &str,
        tool: &str,
        description: &str,
        effects: Effects,
    ) -> &mut Self {
        let (tool_name, description) = (tool.to_owned(), description.to_owned());
        self.about(
            call,
            EventBody::ToolCallStarted {
                repeat: convoke_core::Repeat::Pure,
                tool_name,
                description,
                effects,
            },
        )
    }

    pub(crate) fn complete(
        &mut self,
        call: &str,
        tool: &str,
        text: &str,
        display: Option<Display>,
        millis: u64,
    ) -> &mut Self {
        self.about(
            call,
            EventBody::ToolCallCompleted {
                tool_name: tool.into(),
                result: Arc::new(json!({ "text": text })),
                content: vec![Part::text(text)],
                display,
                duration_ms: millis_of(millis),
                files: Vec::new(),
            },
        )
    }

    pub(crate) fn fail(
        &mut self,
        call: &str,
        tool: &str,
        error: ToolError,
        output: &str,
        millis: u64,
    ) -> &mut Self {
        let content =
            vec![Part::text(format!("Error ({}): {error}", error.kind)), Part::text(output)];
        let (tool_name, duration_ms) = (tool.to_owned(), millis_of(millis));
        self.about(
            call,
            EventBody::ToolCallFailed { tool_name, error, content, duration_ms, files: Vec::new() },
        )
    }

    pub(crate) fn deny(&mut self, call: &str, tool: &str, error: ToolError) -> &mut Self {
        let content = vec![Part::text(format!("Error ({}): {error}", error.kind))];
        let (tool_name, duration_ms) = (tool.to_owned(), Millis::default());
        self.about(call, EventBody::ToolCallDenied { tool_name, error, content, duration_ms })
    }

    pub(crate) fn turn(&mut self, turn: u32) -> &mut Self {
        self.put(EventBody::TurnStarted { turn })
    }

    pub(crate) fn turned(&mut self, turn: u32) -> &mut Self {
        self.put(EventBody::TurnEnded { turn })
    }

    pub(crate) fn end(
        &mut self,
        outcome: Outcome,
        answer: Option<Value>,
        usage: Usage,
    ) -> &mut Self {
        self.put(EventBody::RunEnded { outcome, answer, usage })
    }
}

pub(crate) fn millis_of(millis: u64) -> Millis {
    Millis::new(Duration::from_millis(millis))
}

pub(crate) fn usage(input: u64, cached: u64, output: u64, cost: &str) -> Usage {
    Usage {
        input_tokens: input,
        cached_tokens: cached,
        output_tokens: output,
        cost: Some(cost.parse().unwrap()),
        ..Usage::default()
    }
}

fn call(id: &str, name: &str, arguments: Value) -> Part {
    Part::ToolCall(ToolCall::new(id, name, arguments))
}

fn reads(path: &str) -> Effects {
    Effects { reads: vec![Resource::Path(path.into())], writes: Vec::new() }
}

const DIFF: &str = "\
--- a/src/version.rs
+++ b/src/version.rs
@@ -8,7 +8,8 @@
 /// Reads a version as `1.2.3`.
 pub fn parse(text: &str) -> Result<Version, Error> {
-    let mut parts = text.split('.');
+    // A tag has a `v` in front.
+    let mut parts = text.trim_start_matches('v').split('.');
     let major = number(parts.next())?;
     let minor = number(parts.next())?;
";

const TEST_OUTPUT: &str = "\
running 3 tests
test version::orders ... ok
test version::parses_plain ... ok
test version::parses_tag ... FAILED

failures:

---- version::parses_tag stdout ----
assertion failed: parse(\"v1.4.0\").is_ok()

test result: FAILED. 2 passed; 1 failed";

const ANSWER: &str = "\
**The release job works again.** The tag `v1.4.0` was read as a version with its `v`.

- `parse` in `src/version.rs` drops a leading `v`.
- All 3 tests pass.

```sh
cargo test -p release
```

I did not touch `Cargo.lock`: that was not allowed.";

/// A run that reaches its goal, with some trouble on the way.
pub(crate) fn fixed() -> Vec<Event> {
    let mut stream = Stream::new();
    look_around(&mut stream);
    repair(&mut stream);
    delegate(&mut stream);
    finish(&mut stream);
    stream.events
}

/// The same, and then somebody asked for more, which was not allowed and then could not be answered.
pub(crate) fn continued() -> Vec<Event> {
    let mut stream = Stream::new();
    look_around(&mut stream);
    repair(&mut stream);
    delegate(&mut stream);
    finish(&mut stream);
    ask_for_more(&mut stream);
    stream.events
}

fn look_around(stream: &mut Stream) {
    let tools = ["read_file", "grep", "edit_file", "write_file", "run_command", "delegate"];
    stream.start("The release job fails since the last tag.\nFind out why, and fix it.", &tools);
    stream.wait(3).put(EventBody::McpServerState {
        server: "tracker".into(),
        state: "ready".into(),
        reason: None,
    });
    stream.turn(1).wait(4).ask(Purpose::Main).wait(820);
    stream.put(EventBody::ModelRetry {
        attempt: 2,
        delay_ms: millis_of(1_000),
        reason: "429 Too Many Requests".into(),
        usage: Usage::default(),
    });
    stream.wait(1_900).put(EventBody::ModelThought { text: "The tag has a v.".into() });
    stream.wait(700).put(EventBody::ModelDelta { text: "I'll look at".into() });
    stream.put(EventBody::ModelToolCall { tool_name: "read_file".into() });
    let parts = vec![
        Part::Thought {
            text: "The tag has a `v` in front. Perhaps the parser does not know that.".into(),
        },
        Part::text("I'll look at the parser, at its callers, and run the tests.\n"),
        call("c1", "read_file", json!({ "path": "src/version.rs" })),
        call("c2", "grep", json!({ "pattern": "parse\\(", "path": "src" })),
        call("c3", "run_command", json!({ "command": "cargo test -p release" })),
    ];
    stream.wait(600).answer(Purpose::Main, parts, usage(4_180, 0, 212, "0.0157"));
    stream.put(EventBody::Usage(usage(4_180, 0, 212, "0.0157")));
    stream.wait(2).request("c1", "read_file", json!({ "path": "src/version.rs" }));
    stream.decide("c1", "read_file", "allow", "kind read");
    stream.request("c2", "grep", json!({ "pattern": "parse\\(", "path": "src" }));
    stream.decide("c2", "grep", "allow", "kind search");
    stream.request("c3", "run_command", json!({ "command": "cargo test -p release" }));
    stream.decide("c3", "run_command", "allow", "rule 2 of the project");
    stream.wait(1).begin(
        "c1",
        "read_file",
        "read_file path=\"src/version.rs\"",
        reads("src/version.rs"),
    );
    stream.begin("c2", "grep", "grep pattern=\"parse\\(\" path=\"src\"", reads("src"));
    stream.begin("c3", "run_command", "cargo test -p release", Effects::NONE);
    stream.wait(6).complete("c1", "read_file", "/// Reads a version as `1.2.3`.\npub fn parse(text: &str) -> Result<Version, Error> {\n    let mut parts = text.split('.');\n", None, 6);
    stream.wait(35).complete(
        "c2",
        "grep",
        "src/main.rs:41: parse(&tag)\nsrc/version.rs:9: pub fn parse(text: &str)\n",
        None,
        41,
    );
    stream.wait(2_000).about(
        "c3",
        EventBody::ToolCallProgress {
            tool_name: "run_command".into(),
            update: Progress { text: Some("running 3 tests\n".into()), fraction: None },
        },
    );
    let error = ToolError::failed("the command ended with exit status: 101");
    stream.wait(1_100).fail("c3", "run_command", error, TEST_OUTPUT, 3_140);
    stream.wait(2).turned(1);
}

fn repair(stream: &mut Stream) {
    let edit = json!({
        "path": "src/version.rs",
        "old_string": "text.split('.')",
        "new_string": "text.trim_start_matches('v').split('.')",
    });
    stream.turn(2).wait(2).ask(Purpose::Main).wait(2_300);
    let parts = vec![
        Part::text("`parse` does not expect the `v` of a tag. I'll make it drop one.\n"),
        call("c4", "edit_file", edit.clone()),
    ];
    stream.answer(Purpose::Main, parts, usage(5_020, 4_180, 148, "0.0061"));
    stream.request("c4", "edit_file", edit).decide("c4", "edit_file", "ask", "kind edit");
    let diff = Display { format: DisplayFormat::Diff, text: DIFF.into() };
    stream.about(
        "c4",
        EventBody::ApprovalAsked {
            tool_name: "edit_file".into(),
            kind: Kind::Edit,
            description: "Change src/version.rs in 1 place".into(),
            arguments: Arc::default(),
            preview: Some(diff.clone()),
            reason: "edits are asked about".into(),
            rules: vec![RuleSpec::tool(Permission::Allow, "edit_file")],
            until: None,
            fingerprint: String::new(),
        },
    );
    stream.wait(4_200).about(
        "c4",
        EventBody::ApprovalAnswered {
            tool_name: "edit_file".into(),
            approved: true,
            message: Some("Yes, and say why in a comment.".into()),
            by: Some("terminal".into()),
            arguments: None,
            rules: vec![RuleSpec::tool(Permission::Allow, "edit_file")],
        },
    );
    let writes =
        Effects { reads: Vec::new(), writes: vec![Resource::Path("src/version.rs".into())] };
    stream.wait(1).begin("c4", "edit_file", "Change src/version.rs in 1 place", writes);
    stream.wait(8).complete(
        "c4",
        "edit_file",
        "Changed `src/version.rs` in 1 place.",
        Some(diff),
        8,
    );
    stream.turned(2);
}

fn delegate(stream: &mut Stream) {
    let task = json!({ "agent_name": "investigator", "task": "Who else reads tags?" });
    stream.turn(3).ask(Purpose::Main).wait(1_450);
    let parts = vec![call("c5", "delegate", task.clone())];
    stream.answer(Purpose::Main, parts, usage(5_400, 5_020, 64, "0.0027"));
    stream.request("c5", "delegate", task).decide("c5", "delegate", "allow", "kind agent");
    stream.begin("c5", "delegate", "investigator: Who else reads tags?", Effects::NONE);
    let child = "r-20260301-7f3a.1";
    let spawned = EventBody::AgentSpawned {
        child: RunId::new(child),
        name: "investigator".into(),
        inputs: serde_json::Map::default(),
        background: false,
        continued: false,
    };
    stream.about("c5", spawned);
    stream
        .wait(3)
        .enter(child, "investigator")
        .start("Who else reads tags?", &["grep", "read_file", "complete_task"]);
    stream.turn(1).ask(Purpose::Main).wait(900);
    let parts = vec![call("d1", "grep", json!({ "pattern": "git describe", "path": "." }))];
    stream.answer(Purpose::Main, parts, usage(1_200, 0, 40, "0.0042"));
    stream.request("d1", "grep", json!({ "pattern": "git describe", "path": "." }));
    stream.begin("d1", "grep", "grep pattern=\"git describe\"", reads("."));
    stream.wait(60).complete("d1", "grep", "ci/release.sh:12: git describe --tags\n", None, 58);
    stream.turned(1).turn(2).ask(Purpose::Main).wait(1_100);
    let done = json!({ "result": "Only ci/release.sh, which hands the tag to parse." });
    stream.answer(
        Purpose::Main,
        vec![call("d2", "complete_task", done.clone())],
        usage(1_320, 1_200, 52, "0.0012"),
    );
    stream.request("d2", "complete_task", done.clone());
    stream.complete("d2", "complete_task", "Done.", None, 0).turned(2);
    stream.end(Cause::Goal.into(), Some(done), usage(2_520, 1_200, 92, "0.0054"));
    stream.leave().about(
        "c5",
        EventBody::AgentEnded {
            child: RunId::new(child),
            outcome: Cause::Goal.into(),
            usage: usage(2_520, 1_200, 92, "0.0054"),
            message: None,
        },
    );
    stream.wait(1).complete(
        "c5",
        "delegate",
        "Only ci/release.sh, which hands the tag to parse.",
        None,
        2_075,
    );
    stream.turned(3);
}

fn finish(stream: &mut Stream) {
    stream.ask(Purpose::Compact).wait(1_200);
    let summary = "The parser now drops a leading `v`. Left to do: run the tests.";
    stream.answer(Purpose::Compact, vec![Part::text(summary)], usage(5_900, 5_400, 90, "0.0034"));
    stream.put(EventBody::Compaction {
        before: 5_990,
        after: 1_240,
        kept_from: 6,
        summary: Some(summary.into()),
    });
    stream.turn(4).ask(Purpose::Main).wait(1_000);
    let write = json!({ "path": "Cargo.lock", "content": "" });
    stream.answer(
        Purpose::Main,
        vec![
            call("c6", "write_file", write.clone()),
            call("c7", "run_command", json!({ "command": "cargo test -p release" })),
        ],
        usage(1_500, 0, 70, "0.0055"),
    );
    stream.request("c6", "write_file", write).decide(
        "c6",
        "write_file",
        "deny",
        "rule 4 of the project",
    );
    stream.deny("c6", "write_file", ToolError::permission("Cargo.lock is not to be written"));
    stream.request("c7", "run_command", json!({ "command": "cargo test -p release" }));
    stream.decide("c7", "run_command", "allow", "rule 2 of the project");
    stream.begin("c7", "run_command", "cargo test -p release", Effects::NONE);
    stream.wait(2_600).complete(
        "c7",
        "run_command",
        "running 3 tests\n\u{1b}[32mtest result: ok\u{1b}[0m. 3 passed; 0 failed",
        None,
        2_598,
    );
    stream.turned(4).ask(Purpose::Reflect).wait(700);
    stream.answer(
        Purpose::Reflect,
        vec![Part::text("{\"verdict\":\"complete\"}")],
        usage(1_700, 1_500, 60, "0.0015"),
    );
    stream.put(EventBody::Reflection(Reflection {
        verdict: Verdict::Complete,
        assessment: "The tests pass. The lock file did not have to change.".into(),
        lessons: vec!["Tags have a `v` in front.".into()],
        next_focus: None,
        tool_failures: vec![ToolFailure {
            tool_name: "write_file".into(),
            error: "Permission denied".into(),
            suggestion: Some("Leave Cargo.lock alone.".into()),
        }],
    }));
    stream.put(EventBody::BudgetWarning {
        budget: Limit::Turns,
        used: 0.8,
        message: "One turn is left.".into(),
    });
    stream.turn(5).ask(Purpose::Main).wait(1_800);
    stream.answer(Purpose::Main, vec![Part::text(ANSWER)], usage(1_900, 1_700, 120, "0.0031"));
    stream.turned(5);
    stream.end(Cause::Goal.into(), Some(json!(ANSWER)), usage(28_120, 19_000, 856, "0.0434"));
}

fn ask_for_more(stream: &mut Stream) {
    let message = Message::text(Role::User, "Thank you. Now publish it.");
    stream.wait(95_000).put(EventBody::UserMessage { message });
    stream.put(EventBody::Plan {
        steps: vec![
            PlanStep {
                id: "s1".into(),
                action_type: ActionType::ToolCall,
                tool: Some("run_command".into()),
                params: json!({ "command": "cargo publish" }),
                depends_on: Vec::new(),
            },
            PlanStep {
                id: "s2".into(),
                action_type: ActionType::Respond,
                tool: None,
                params: Value::Null,
                depends_on: vec!["s1".into()],
            },
        ],
    });
    stream.turn(6).ask(Purpose::Main).wait(900);
    let publish = json!({ "command": "cargo publish" });
    stream.answer(
        Purpose::Main,
        vec![call("c8", "run_command", publish.clone())],
        usage(2_100, 1_900, 30, "0.0012"),
    );
    stream.request("c8", "run_command", publish).decide("c8", "run_command", "ask", "kind execute");
    stream.about(
        "c8",
        EventBody::ApprovalAsked {
            tool_name: "run_command".into(),
            kind: Kind::Execute,
            description: "cargo publish".into(),
            arguments: Arc::default(),
            preview: None,
            reason: "commands are asked about".into(),
            rules: Vec::new(),
            until: None,
            fingerprint: String::new(),
        },
    );
    stream.wait(3_000).about(
        "c8",
        EventBody::ApprovalAnswered {
            tool_name: "run_command".into(),
            approved: false,
            message: Some("Not from this machine.".into()),
            by: Some("terminal".into()),
            arguments: None,
            rules: Vec::new(),
        },
    );
    stream.deny("c8", "run_command", ToolError::permission("Not from this machine."));
    stream.turned(6).turn(7).ask(Purpose::Main).wait(400);
    stream.put(EventBody::ModelFailed {
        status: None,
        purpose: Purpose::Main,
        cause: Cause::ModelUnavailable,
        error: "overloaded".into(),
        message: "529: Overloaded".into(),
        hint: Some("Try again later, or choose another model.".into()),
        partial: Some("I will not".into()),
        usage: Usage::default(),
    });
    stream.turned(7);
    let outcome =
        Outcome::from(Cause::ModelUnavailable).because("The model did not answer: 529: Overloaded");
    stream.end(outcome, None, usage(30_220, 20_900, 886, "0.0446"));
}

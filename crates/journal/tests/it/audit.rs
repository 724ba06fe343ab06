//! Who did what, as it is folded from events.

use convoke_core::{Event, RunId, ToolError};
use convoke_journal::audit::{Act, Began, Call, Outcome, entries};
use serde_json::{Value, json};

/// Makes events of `(run, agent, call, type, data)`.
fn events(parts: &[(&str, &str, &str, &str, Value)]) -> Vec<Event> {
    let event = |(index, (run, agent, call, kind, data)): (usize, &(&str, _, &str, _, Value))| {
        let event = json!({
            "v": 1, "seq": index + 1, "ts": 1000 + index, "run": run, "agent": agent,
            "call": (!call.is_empty()).then_some(call),
            "parent": (*run != "r").then_some("r"),
            "type": kind, "data": data,
        });
        serde_json::from_value(event).unwrap()
    };
    parts.iter().enumerate().map(event).collect()
}

fn requested(tool: &str) -> Value {
    json!({ "toolName": tool, "params": { "path": "a" } })
}

fn decided(decision: &str) -> Value {
    json!({ "toolName": "t", "decision": decision, "rule": format!("the rule to {decision}") })
}

fn calls(events: &[Event]) -> Vec<(u64, String, Call)> {
    let call = |entry: convoke_journal::audit::Entry| match entry.act {
        Act::Call(call) => Some((entry.seq, entry.agent.as_str().to_owned(), *call)),
        _ => None,
    };
    entries(&RunId::new("r"), events).into_iter().filter_map(call).collect()
}

#[test]
fn each_call_has_its_decision_its_rule_and_its_end() {
    let error = ToolError::permission("not here");
    let started = json!({ "toolName": "t", "description": "does it", "effects": {} });
    let events = events(&[
        ("r", "main", "a", "tool_call_requested", requested("read_file")),
        ("c", "main/digger", "a", "tool_call_requested", requested("grep")),
        ("r", "main", "a", "policy_decision", decided("allow")),
        ("c", "main/digger", "a", "policy_decision", decided("deny")),
        ("r", "main", "a", "tool_call_started", started),
        (
            "c",
            "main/digger",
            "a",
            "tool_call_denied",
            json!({ "toolName": "grep", "error": error, "durationMs": 1 }),
        ),
        (
            "r",
            "main",
            "a",
            "tool_call_completed",
            json!({ "toolName": "read_file", "result": 1, "durationMs": 7 }),
        ),
        ("r", "main", "b", "tool_call_requested", requested("ls")),
    ]);
    let mut calls = calls(&events);
    assert_eq!(calls.iter().map(|(seq, ..)| *seq).collect::<Vec<_>>(), [1, 2, 8]);
    let (ls, (_, digger, grep)) = (calls.remove(2).2, calls.remove(1));
    let (_, main, read) = calls.remove(0);
    assert_eq!((main.as_str(), digger.as_str()), ("main", "main/digger"));
    assert_eq!((read.tool.as_str(), read.outcome), ("read_file", Outcome::Completed));
    assert_eq!((read.decision.as_deref(), read.what.as_deref()), (Some("allow"), Some("does it")));
    assert_eq!(read.duration_ms.unwrap().get().as_millis(), 7);
    assert_eq!((grep.outcome, grep.rule.as_deref()), (Outcome::Denied, Some("the rule to deny")));
    assert!(grep.error.unwrap().message.contains("not here"));
    assert_eq!((ls.outcome, ls.decision), (Outcome::Unfinished, None));
}

#[test]
fn who_was_asked_and_what_was_said_is_kept() {
    let asked = json!({
        "toolName": "t", "kind": "edit", "description": "changes a file", "reason": "edits are asked",
    });
    let answered = json!({ "toolName": "t", "approved": true, "message": "go on" });
    let events = events(&[
        ("r", "main", "a", "tool_call_requested", requested("edit_file")),
        ("r", "main", "a", "policy_decision", decided("ask")),
        ("r", "main", "a", "approval_asked", asked),
        ("r", "main", "a", "approval_answered", answered),
    ]);
    let open = calls(&events[..3]).pop().unwrap().2.approval.unwrap();
    assert_eq!((open.reason.as_str(), open.answer), ("edits are asked", None));
    let answer = calls(&events).pop().unwrap().2.approval.unwrap().answer.unwrap();
    assert!(answer.approved && answer.message.as_deref() == Some("go on"));
    assert_eq!(answer.at.as_millis(), 1003);
}

#[test]
fn rights_are_told_when_a_run_gets_them() {
    let started = json!({ "task": "t", "prompt": "p", "origin": { "mode": "plan" } });
    let resumed = json!({ "origin": { "mode": "full" } });
    let unchanged = json!({});
    let events = events(&[
        ("r", "main", "", "run_started", started),
        ("r", "main", "", "run_resumed", unchanged),
        ("r", "main", "", "run_resumed", resumed),
    ]);
    let told: Vec<Value> = entries(&RunId::new("r"), &events)
        .iter()
        .map(|entry| serde_json::to_value(entry).unwrap())
        .collect();
    assert_eq!(
        told,
        [
            json!({
                "ts": 1000, "run": "r", "seq": 1, "agent": "main", "agentLabel": "main", "type": "rights",
                "event": Began::Started, "origin": { "mode": "plan" },
            }),
            // It goes on with the rights it had.
            json!({
                "ts": 1001, "run": "r", "seq": 2, "agent": "main", "agentLabel": "main", "type": "rights",
                "event": Began::Resumed, "origin": { "mode": "plan" },
            }),
            json!({
                "ts": 1002, "run": "r", "seq": 3, "agent": "main", "agentLabel": "main", "type": "rights",
                "event": Began::Resumed, "origin": { "mode": "full" },
            }),
        ]
    );
}

#[test]
fn what_ran_is_told_apart_from_what_was_asked_for() {
    let changed = json!({
        "hook": "linter", "moment": "before_tool", "action": "changed",
        "arguments": { "path": "b" },
    });
    let asked = json!({
        "toolName": "t", "kind": "edit", "description": "changes a file", "reason": "asked",
    });
    let answered = json!({ "toolName": "t", "approved": true, "arguments": { "path": "c" } });
    let events = events(&[
        ("r", "main", "a", "tool_call_requested", requested("edit_file")),
        ("r", "main", "a", "hook_acted", changed),
        ("r", "main", "a", "approval_asked", asked),
        ("r", "main", "a", "approval_answered", answered),
    ]);
    let at = |count: usize| {
        let call = calls(&events[..count]).pop().unwrap().2;
        (call.arguments["path"].clone(), call.asked.map(|asked| asked["path"].clone()))
    };
    assert_eq!(at(1), (json!("a"), None));
    assert_eq!(at(2), (json!("b"), Some(json!("a"))));
    assert_eq!(at(4), (json!("c"), Some(json!("a"))));
}

#[test]
fn a_hook_that_refused_is_named() {
    let denied = |message: &str| {
        let error = ToolError::permission(message);
        json!({ "toolName": "t", "error": error, "durationMs": 1 })
    };
    let hook = |action: &str| json!({ "hook": "guard", "moment": "before_tool", "action": action });
    let refused = |action: &str, message: &str| {
        let events = events(&[
            ("r", "main", "a", "tool_call_requested", requested("rm")),
            ("r", "main", "a", "hook_acted", hook(action)),
            ("r", "main", "a", "tool_call_denied", denied(message)),
        ]);
        let call = calls(&events).pop().unwrap().2;
        call.refused_by().map(|hooked| (hooked.hook.clone(), hooked.action.clone()))
    };
    let by = |action: &str| Some(("guard".to_owned(), action.to_owned()));
    assert_eq!(refused("denied", "the hook `guard` refused it: no"), by("denied"));
    assert_eq!(refused("failed", "the hook `guard` that guards it failed: lost"), by("failed"));
    assert_eq!(refused("failed", "the policy says no"), None, "it only watched");
    assert_eq!(refused("changed", "the policy says no"), None);
}

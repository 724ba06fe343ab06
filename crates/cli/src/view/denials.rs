//! Calls that no mode would have let through.
//!
//! A mode only changes what is asked about because of the kind of a call. What a rule, an agent's own mode or its
//! commands say no to stays so in every mode, and nobody is told to try another.

use std::collections::BTreeMap;

use convoke_core::hook::Moment;
use convoke_core::{CallId, Event, EventBody, Mode, RunId};

use super::tree::Totals;

/// Counts the calls that were denied in a way that no mode changes.
#[derive(Debug, Default)]
pub(super) struct Denials {
    /// How freely the run acts, where it says so.
    mode: Option<Mode>,
    /// Calls that were decided about, and whether a mode has a say in it.
    decided: BTreeMap<(RunId, CallId), bool>,
    for_good: u32,
}

impl Denials {
    /// Takes in an event.
    pub(super) fn fold(&mut self, event: &Event) {
        if let EventBody::RunStarted { origin, .. } = &event.body
            && self.mode.is_none()
        {
            self.mode = origin.get("mode").and_then(|mode| mode.as_str()?.parse().ok());
        }
        let Some(call) = &event.call else { return };
        let call = (event.run.clone(), call.clone());
        match &event.body {
            EventBody::PolicyDecision { rule, .. } => {
                self.decided.insert(call, rule.starts_with("kind "));
            }
            EventBody::ToolCallDenied { error, .. } => {
                if let Some(by_kind) = self.decided.remove(&call) {
                    self.for_good += u32::from(!by_kind || self.is_for_good(&error.message));
                }
            }
            // What a person or a hook said no to is counted elsewhere.
            EventBody::ApprovalAnswered { approved: false, by: Some(_), .. } => {
                self.decided.remove(&call);
            }
            EventBody::HookActed { moment: Moment::BeforeTool, action, .. }
                if action == "denied" =>
            {
                self.decided.remove(&call);
            }
            body if body.ends_call() => {
                self.decided.remove(&call);
            }
            _ => {}
        }
    }

    /// Tells whether the table says no whatever the mode of the run is: because it denies, because an agent has a
    /// mode of its own, or because there is no freer one.
    fn is_for_good(&self, reason: &str) -> bool {
        let named = reason.split("in mode `").nth(1).and_then(|rest| rest.split('`').next());
        let of_agent = match (named.and_then(|mode| mode.parse::<Mode>().ok()), self.mode) {
            (Some(named), Some(own)) => named != own,
            _ => false,
        };
        of_agent || self.mode == Some(Mode::Full) || reason.ends_with("are not allowed here")
    }

    /// Returns totals in which these calls are among those that no mode changes.
    pub(super) fn counted_in(&self, totals: &Totals) -> Totals {
        let refused = totals.refused.saturating_add(self.for_good);
        Totals { refused, ..totals.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(call: Option<&str>, kind: &str, data: &Value) -> Event {
        let mut event = json!({
            "v": 1, "seq": 1, "ts": 0, "run": "r", "agent": "main", "type": kind, "data": data,
        });
        if let Some(call) = call {
            event["call"] = call.into();
        }
        serde_json::from_value(event).unwrap()
    }

    fn refused(mode: &str, rule: &str, why: &str, between: Option<Event>) -> u32 {
        let mut denials = Denials::default();
        let start = json!({ "task": "t", "prompt": "p", "origin": { "mode": mode } });
        denials.fold(&event(None, "run_started", &start));
        let decision = json!({ "toolName": "x", "decision": "ask", "rule": rule });
        denials.fold(&event(Some("c"), "policy_decision", &decision));
        if let Some(between) = between {
            denials.fold(&between);
        }
        let error = json!({ "kind": "permission", "message": format!("Permission denied: {why}") });
        let denied = json!({ "toolName": "x", "error": error, "durationMs": 0 });
        denials.fold(&event(Some("c"), "tool_call_denied", &denied));
        denials.counted_in(&Totals::default()).refused
    }

    #[test]
    fn only_what_the_table_says_about_a_kind_can_be_another_modes() {
        for (mode, rule, why, expected) in [
            ("default", "kind edit", "tools of kind `edit` need a person's consent", 0),
            ("plan", "kind edit", "tools of kind `edit` are not allowed in mode `plan`", 0),
            ("default", "kind edit", "tools of kind `edit` are not allowed in mode `plan`", 1),
            ("default", "kind edit", "tools of kind `edit` are not allowed here", 1),
            ("full", "kind edit", "tools of kind `edit` need a person's consent", 1),
            ("default", "user rule 1 (convoke.yml:3)", "no", 1),
            ("default", "the commands of the agent", "this agent may not run commands", 1),
            ("default", "a command that cannot be read", "no", 1),
        ] {
            assert_eq!(refused(mode, rule, why, None), expected, "{mode}: {rule}: {why}");
        }
    }

    #[test]
    fn what_a_person_said_no_to_is_not_counted_twice() {
        let no = json!({ "toolName": "x", "approved": false, "by": "ann" });
        let no = event(Some("c"), "approval_answered", &no);
        assert_eq!(refused("default", "user rule 1", "no", Some(no)), 0);
    }
}

//! Calls that no mode would have let through.
//!
//! A mode only changes what is asked about because of the kind of a call. What a rule, an agent's own mode or its
//! commands say no to stays so in every mode, and nobody is told to try another. Which of these it was is told by
//! the rule that decided: what a denial says is whatever somebody wrote.

use std::collections::BTreeMap;

use convoke_core::hook::Moment;
use convoke_core::{CallId, Event, EventBody, Mode, RunId};

use super::tree::Totals;

/// Counts the calls that were denied in a way that no mode changes.
#[derive(Debug, Default)]
pub(super) struct Denials {
    /// How freely the run acts, where it says so.
    mode: Option<Mode>,
    /// Calls that were decided about, and whether another mode could decide otherwise.
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
            EventBody::PolicyDecision { decision, rule, .. } => {
                self.decided.insert(call, self.could_be_otherwise(decision, rule));
            }
            EventBody::ToolCallDenied { .. } => {
                if let Some(otherwise) = self.decided.remove(&call) {
                    self.for_good += u32::from(!otherwise);
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

    /// Tells whether another mode of the run could decide otherwise: the table decided by the kind of the call, it
    /// does not deny that kind, no agent has a mode of its own, and there is a freer mode.
    fn could_be_otherwise(&self, decision: &str, rule: &str) -> bool {
        let Some(kind) = rule.strip_prefix("kind ") else { return false };
        let named = kind.split_once(" in mode ").map(|(_, mode)| mode.parse::<Mode>().ok());
        let by_table = match named {
            Some(named) => self.mode.is_none() || named == self.mode,
            None => decision != "deny",
        };
        by_table && self.mode != Some(Mode::Full)
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

    fn refused(mode: &str, decision: &str, rule: &str, between: Option<Event>) -> u32 {
        let mut denials = Denials::default();
        let start = json!({ "task": "t", "prompt": "p", "origin": { "mode": mode } });
        denials.fold(&event(None, "run_started", &start));
        let decision = json!({ "toolName": "x", "decision": decision, "rule": rule });
        denials.fold(&event(Some("c"), "policy_decision", &decision));
        if let Some(between) = between {
            denials.fold(&between);
        }
        // Whatever somebody wrote.
        let why = "Permission denied: tools of kind `edit` are not allowed here";
        let error = json!({ "kind": "permission", "message": why });
        let denied = json!({ "toolName": "x", "error": error, "durationMs": 0 });
        denials.fold(&event(Some("c"), "tool_call_denied", &denied));
        denials.counted_in(&Totals::default()).refused
    }

    #[test]
    fn only_what_the_table_says_about_a_kind_can_be_another_modes() {
        for (mode, decision, rule, expected) in [
            ("default", "ask", "kind edit", 0),
            ("plan", "deny", "kind edit in mode plan", 0),
            ("default", "deny", "kind edit in mode plan", 1),
            ("default", "deny", "kind edit", 1),
            ("plan", "deny", "kind edit", 1),
            ("full", "ask", "kind edit", 1),
            ("default", "deny", "user rule 1 (convoke.yml:3)", 1),
            ("default", "deny", "the commands of the agent", 1),
            ("default", "ask", "a command that cannot be read", 1),
        ] {
            assert_eq!(refused(mode, decision, rule, None), expected, "{mode}: {decision}: {rule}");
        }
    }

    #[test]
    fn what_a_person_said_no_to_is_not_counted_twice() {
        let no = json!({ "toolName": "x", "approved": false, "by": "ann" });
        let no = event(Some("c"), "approval_answered", &no);
        assert_eq!(refused("default", "deny", "user rule 1", Some(no)), 0);
    }
}

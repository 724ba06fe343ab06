//! Tools that were asked for, and what came of it.

use std::time::Duration;

use convoke_core::{CallId, Event, EventBody, Millis, Part};
use serde_json::Value;

use super::{Fold, Place, closed};
use crate::timeline::{AgentIndex, Approval, Call, CallState, ItemKind};

/// The arguments of a call of which the beginning is not known.
static UNKNOWN: Value = Value::Null;

impl<'e> Fold<'e> {
    /// Takes in an event about a call, and tells whether it is one that has a place.
    pub(super) fn call_event(&mut self, agent: AgentIndex, event: &'e Event) -> bool {
        match &event.body {
            EventBody::ToolCallRequested { tool_name, params } => {
                self.interrupt_call(agent, event.call.as_ref());
                self.add_call(agent, event, tool_name, params);
                true
            }
            EventBody::ToolCallStarted { tool_name, description, effects, .. } => {
                let now = self.now;
                self.count(agent, event.call.as_ref());
                self.for_open_call(agent, event, tool_name, |call| {
                    call.began.get_or_insert(now);
                    call.description = Some(description);
                    call.effects = Some(effects);
                    call.state = CallState::Running;
                })
            }
            EventBody::ToolCallProgress { tool_name, update } => {
                self.for_open_call(agent, event, tool_name, |call| {
                    call.progress.push_str(update.text.as_deref().unwrap_or_default());
                    call.fraction = update.fraction.or(call.fraction);
                })
            }
            EventBody::ToolCallCompleted {
                tool_name,
                result,
                content,
                display,
                duration_ms,
                ..
            } => {
                let state = CallState::Completed(result);
                self.finish_call(agent, event, tool_name, state, content, *duration_ms)
                    && self.for_call(agent, event, |call| call.display = display.as_ref())
            }
            EventBody::ToolCallFailed { tool_name, error, content, duration_ms, .. } => {
                let state = CallState::Failed(error);
                self.finish_call(agent, event, tool_name, state, content, *duration_ms)
            }
            EventBody::ToolCallDenied { tool_name, error, content, duration_ms } => {
                let state = CallState::Denied(error);
                self.finish_call(agent, event, tool_name, state, content, *duration_ms)
            }
            _ => self.permission_event(agent, event),
        }
    }

    fn permission_event(&mut self, agent: AgentIndex, event: &'e Event) -> bool {
        let (now, opening) = (self.now, self.opening());
        let known = self.call(agent, event.call.as_ref());
        match &event.body {
            EventBody::PolicyDecision { tool_name, decision, rule } => {
                known.is_none_or(|call| call.decision.is_none())
                    && self.for_open_call(agent, event, tool_name, |call| {
                        call.decision = Some((decision, rule));
                    })
            }
            EventBody::ApprovalAsked {
                tool_name,
                kind,
                description,
                preview,
                reason,
                rules,
                until,
                ..
            } => {
                // A person who changes the arguments is shown the call anew.
                let is_new = |call: &mut Call<'_>| {
                    call.approval.is_none() || call.state == CallState::Waiting
                };
                known.is_none_or(is_new)
                    && self.for_open_call(agent, event, tool_name, |call| {
                        call.state = CallState::Waiting;
                        call.approval = Some(Approval {
                            span: opening,
                            kind: *kind,
                            description,
                            reason,
                            preview: preview.as_ref(),
                            rules,
                            until: *until,
                            approved: None,
                            words: None,
                            by: None,
                            changed: None,
                            granted: &[],
                        });
                    })
            }
            EventBody::ApprovalAnswered { approved, message, by, arguments, rules, .. } => {
                let Some(call) = known.filter(|call| call.state == CallState::Waiting) else {
                    return false;
                };
                call.state = CallState::Requested;
                if let Some(changed) = arguments {
                    call.arguments = changed;
                }
                if let Some(approval) = &mut call.approval {
                    approval.approved = Some(*approved);
                    approval.words = message.as_deref();
                    approval.by = by.as_deref();
                    approval.changed = arguments.as_deref();
                    approval.granted = rules;
                    approval.span = closed(approval.span, now);
                }
                true
            }
            EventBody::HookActed { arguments: Some(changed), .. } => {
                if let Some(call) = known {
                    call.arguments = changed;
                }
                // What the hook did is told beside it.
                false
            }
            EventBody::ToolCallDeferred { tool_name, reason } => {
                let state = CallState::Deferred(reason);
                let deferred =
                    self.for_open_call(agent, event, tool_name, |call| call.state = state);
                self.close_call(agent, event.call.as_ref(), self.now);
                deferred
            }
            // What it waits for is told where it is asked.
            EventBody::AgentWaits { .. } => true,
            _ => false,
        }
    }

    /// Changes a call that is open. One that was not heard of begins now; one that has ended is left
    /// alone, and false is returned.
    fn for_open_call(
        &mut self,
        agent: AgentIndex,
        event: &'e Event,
        tool: &'e str,
        change: impl FnOnce(&mut Call<'e>),
    ) -> bool {
        let id = event.call.as_ref();
        if self.call(agent, id).is_none() {
            self.add_call(agent, event, tool, &UNKNOWN);
        }
        let call = self.call(agent, id).filter(|call| call.state.is_open());
        call.map(change).is_some()
    }

    fn for_call(
        &mut self,
        agent: AgentIndex,
        event: &'e Event,
        change: impl FnOnce(&mut Call<'e>),
    ) -> bool {
        self.call(agent, event.call.as_ref()).map(change).is_some()
    }

    fn finish_call(
        &mut self,
        agent: AgentIndex,
        event: &'e Event,
        tool: &'e str,
        state: CallState<'e>,
        content: &'e [Part],
        took: Millis,
    ) -> bool {
        let finished = self.for_open_call(agent, event, tool, |call| {
            call.state = state;
            call.content = content;
            call.took = Some(took.get());
        });
        if finished {
            self.close_call(agent, event.call.as_ref(), self.now);
            if let (Some(under_way), Some(id)) = (self.under_way.get_mut(agent.0), &event.call) {
                under_way.begun.remove(id);
            }
        }
        finished
    }

    fn add_call(
        &mut self,
        agent: AgentIndex,
        event: &'e Event,
        tool: &'e str,
        arguments: &'e Value,
    ) {
        let id = event.call.as_ref();
        let place = self.begin(agent, event, ItemKind::Call(Call::new(id, tool, arguments)));
        if let Some(under_way) = self.under_way.get_mut(agent.0) {
            under_way.calls.insert(id, place);
        }
    }

    /// A call begins: for the first time, or after whoever ran it was lost.
    fn count(&mut self, agent: AgentIndex, id: Option<&'e CallId>) {
        let begun = self.under_way.get_mut(agent.0).map(|agent| &mut agent.begun);
        let again = begun.zip(id).is_some_and(|(begun, id)| !begun.insert(id));
        if let Some(agent) = self.agent(agent).filter(|_| !again) {
            agent.calls = agent.calls.saturating_add(1);
        }
    }

    /// A call of that name is asked for again: the one before will not be answered.
    fn interrupt_call(&mut self, agent: AgentIndex, id: Option<&'e CallId>) {
        if let Some(call) = self.call(agent, id).filter(|call| call.state.is_open()) {
            call.state = CallState::Interrupted;
            self.close_call(agent, id, self.before);
        }
    }

    /// The run is over: calls that are open will not be answered.
    pub(super) fn interrupt_calls(&mut self, agent: AgentIndex) {
        let under_way = self.under_way.get(agent.0);
        let ids: Vec<_> = under_way.iter().flat_map(|agent| agent.calls.keys().copied()).collect();
        for id in ids {
            if let Some(call) = self.call(agent, id).filter(|call| call.state.is_open()) {
                call.state = CallState::Interrupted;
                self.close_call(agent, id, self.now);
            }
        }
    }

    fn close_call(&mut self, agent: AgentIndex, id: Option<&'e CallId>, at: Duration) {
        let under_way = self.under_way.get(agent.0);
        let Some(place) = under_way.and_then(|agent| agent.calls.get(&id)).copied() else { return };
        self.close(agent, place, at);
        if let Some(approval) = self.call(agent, id).and_then(|call| call.approval.as_mut())
            && approval.span.open
        {
            approval.span = closed(approval.span, at);
        }
    }

    /// Returns the last call of that name.
    pub(super) fn call(
        &mut self,
        agent: AgentIndex,
        id: Option<&'e CallId>,
    ) -> Option<&mut Call<'e>> {
        let place: Place = *self.under_way.get(agent.0)?.calls.get(&id)?;
        match &mut self.item(agent, place)?.kind {
            ItemKind::Call(call) => Some(call),
            _ => None,
        }
    }
}

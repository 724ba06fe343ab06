//! Where hooks have their say about a call: before anybody is asked or anything runs, and when it is over.

use std::sync::Arc;

use convoke_core::hook::Moment;
use convoke_core::{CallOutcome, ErrorKind, EventBody, ToolCall, ToolError, ToolResult};

use super::ToolExecutor;
use super::end::for_event;
use super::prepare::{Decided, PreparedCall, settled};
use crate::approve::Question;
use crate::hook::Said;

/// Whether a person has consented to just these arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Person {
    NotAsked,
    Consented,
}

impl ToolExecutor {
    /// Lets hooks refuse a call that may run, have a person asked about it, or change its arguments. A changed
    /// call is checked and decided about from the start, so a hook cannot allow what policy does not.
    pub(super) async fn hooked(&self, decided: Decided) -> Decided {
        if self.0.hooks.is_empty() {
            return decided;
        }
        let asked = async {
            let decided = self.asked_hooks(decided, Person::NotAsked).await;
            if let Decided::Answered(result) = &decided {
                self.tell_of(result).await;
            }
            decided
        };
        Box::pin(asked).await
    }

    pub(super) async fn asked_hooks(&self, decided: Decided, person: Person) -> Decided {
        let (prepared, asks) = match decided {
            Decided::Answered(_) | Decided::Deferred(_) => return decided,
            Decided::Ready(prepared) => (prepared, false),
            Decided::Ask(prepared) => (prepared, true),
        };
        let again = |prepared| if asks { Decided::Ask(prepared) } else { Decided::Ready(prepared) };
        let Some(arguments) = prepared.arguments.clone() else { return again(prepared) };
        let requested = EventBody::ToolCallRequested {
            tool_name: prepared.ticket.tool_name().to_owned(),
            params: Arc::clone(&arguments),
        };
        let call = prepared.ticket.call().clone();
        let asked = self.0.hooks.ask(Moment::BeforeTool, Some(&call), &requested, &self.0.recorder);
        let said = tokio::select! {
            biased;
            () = self.0.context.cancelled() => return prepared.ticket.stopped(None).into(),
            said = asked => said,
        };
        let Said { changed, asks } = match said {
            Ok(said) => said,
            Err(reason) => {
                return Decided::Answered(prepared.ticket.denied(ToolError::permission(reason)));
            }
        };
        // Whoever wrote these very arguments need not be asked about them.
        let asks = asks.filter(|_| changed.is_some() || person == Person::NotAsked);
        let decided = match changed {
            None => again(prepared),
            Some(arguments) => {
                let name = prepared.ticket.tool_name().to_owned();
                self.decide_again(prepared, ToolCall::new(call, name, arguments))
            }
        };
        match (decided, asks) {
            (Decided::Ready(prepared) | Decided::Ask(prepared), Some(reason)) => {
                Decided::Ask(self.asked_by_hooks(prepared, reason))
            }
            (decided, _) => decided,
        }
    }

    /// Makes a call one that a person is asked about. No rule is proposed: hooks would ask all the same.
    fn asked_by_hooks(&self, mut prepared: PreparedCall, reason: String) -> PreparedCall {
        let question = match prepared.question.take() {
            Some(question) => Question {
                reason: format!("{}; {reason}", question.reason),
                rules: Vec::new(),
                ..question
            },
            None => Question {
                call: prepared.ticket.call().clone(),
                agent: self.0.recorder.agent().clone(),
                run: self.0.recorder.run().clone(),
                tool_name: prepared.ticket.tool_name().to_owned(),
                kind: prepared.kind,
                arguments: prepared.arguments.clone().unwrap_or_default(),
                description: prepared.description.clone(),
                preview: None,
                reason,
                rules: Vec::new(),
                until: self.0.context.clock().now().after(self.0.limits.approval_timeout),
                fingerprint: String::new(),
                inquiry: None,
            },
        };
        prepared.question = Some(question);
        prepared.ticket.only_a_person_answers();
        prepared
    }

    fn decide_again(&self, prepared: PreparedCall, call: ToolCall) -> Decided {
        let PreparedCall { mut ticket, options, .. } = prepared;
        let shown = for_event(&call.arguments, self.0.limits.max_event_bytes);
        ticket.note(format!("A hook changed the arguments of this call to: {shown}"));
        settled(self.decide(ticket, call, options))
    }

    /// Tells hooks what came of a call.
    pub(super) async fn tell_of(&self, result: &ToolResult) {
        if !self.0.hooks.is_empty() {
            Box::pin(self.tell_hooks_of(result)).await;
        }
    }

    async fn tell_hooks_of(&self, result: &ToolResult) {
        let (tool_name, content) = (result.tool_name.clone(), result.llm_content.clone());
        let duration_ms = result.duration;
        let body = match &result.outcome {
            CallOutcome::Completed(value) => EventBody::ToolCallCompleted {
                tool_name,
                result: for_event(value, self.0.limits.max_event_bytes),
                content,
                display: result.return_display.clone(),
                duration_ms,
                files: Vec::new(),
            },
            CallOutcome::Failed { error, .. } if error.kind == ErrorKind::Permission => {
                let error = error.clone();
                EventBody::ToolCallDenied { tool_name, error, content, duration_ms }
            }
            CallOutcome::Failed { error, .. } => {
                let error = error.clone();
                EventBody::ToolCallFailed {
                    tool_name,
                    error,
                    content,
                    duration_ms,
                    files: Vec::new(),
                }
            }
        };
        let call = &result.call;
        // They watch: there is nothing left to decide.
        drop(self.0.hooks.tell(Moment::AfterTool, Some(call), &body, &self.0.recorder).await);
    }
}

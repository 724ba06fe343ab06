//! Between the halves: a person is asked, and nothing is held meanwhile.

use std::sync::{Arc, PoisonError};

use convoke_core::hook::Moment;
use convoke_core::{EventBody, ToolCall, ToolError, ToolResult};

use super::ToolExecutor;
use super::end::for_event;
use super::prepare::PreparedCall;
use crate::approve::{Answer, Consent, Objection, Question, Unanswered};
use crate::task::Contained;

/// How a question ended.
enum Heard {
    Answer(Answer),
    /// Nobody answered in time.
    Silence,
    /// The run was stopped.
    Stopped,
}

impl ToolExecutor {
    /// Asks about a call and waits for the answer, holding nothing.
    pub async fn ask(&self, mut prepared: PreparedCall) -> Result<PreparedCall, Box<ToolResult>> {
        let Some(mut question) = prepared.question.take() else { return Ok(prepared) };
        question.preview = prepared.invocation.preview(&self.0.context).await;
        let asked = self.asked(&question);
        if let Err(error) = prepared.ticket.record(asked.clone()) {
            return Err(prepared.ticket.failed(error, None));
        }
        let (hooks, call) = (&self.0.hooks, &question.call);
        let told = hooks.tell(Moment::Approval, Some(call), &asked, &self.0.recorder).await;
        if let Err(reason) = told {
            let objection = Objection { message: Some(reason.clone()), by: Some("a hook".into()) };
            return Err(refused(prepared, objection, reason));
        }
        let reason = question.reason.clone();
        let nobody = match self.put(question.clone()).await {
            Heard::Answer(Answer::Yes(consent)) => {
                return self.consented(prepared, question, consent);
            }
            Heard::Answer(Answer::No(objection)) => return Err(objected(prepared, objection)),
            Heard::Stopped => {
                let stopped = ToolError::cancelled("the run was stopped");
                return Err(prepared.ticket.failed(stopped, None));
            }
            Heard::Answer(Answer::Nobody) => format!("{reason}, and nobody can be asked here"),
            Heard::Silence => format!("{reason}, and nobody answered in time"),
        };
        Err(match self.0.limits.unanswered {
            Unanswered::Park => prepared.ticket.deferred(nobody),
            Unanswered::Deny => {
                refused(prepared, Objection { message: Some(nobody.clone()), by: None }, nobody)
            }
        })
    }

    fn asked(&self, question: &Question) -> EventBody {
        EventBody::ApprovalAsked {
            tool_name: question.tool_name.clone(),
            kind: question.kind,
            description: question.description.clone(),
            arguments: for_event(&question.arguments, self.0.limits.max_event_bytes),
            preview: question.preview.clone(),
            reason: question.reason.clone(),
            rules: question.rules.clone(),
            until: Some(question.until),
        }
    }

    async fn put(&self, question: Question) -> Heard {
        let approver = Arc::clone(&self.0.approver);
        let asked = Contained::spawn(async move { approver.ask(question).await });
        tokio::select! {
            biased;
            () = self.0.context.cancelled() => Heard::Stopped,
            // An approver that breaks down is nobody.
            answer = asked => Heard::Answer(answer.unwrap_or(Answer::Nobody)),
            () = tokio::time::sleep(self.0.limits.approval_timeout) => Heard::Silence,
        }
    }

    /// Somebody said yes. Other arguments make it another call: it is checked and decided about like any,
    /// only that nobody has to be asked once more.
    fn consented(
        &self,
        prepared: PreparedCall,
        question: Question,
        consent: Consent,
    ) -> Result<PreparedCall, Box<ToolResult>> {
        let Consent { arguments, rules, by } = consent;
        let changed = arguments.filter(|arguments| *arguments != *question.arguments);
        let limit = self.0.limits.max_event_bytes;
        let answered = EventBody::ApprovalAnswered {
            tool_name: question.tool_name.clone(),
            approved: true,
            message: None,
            by,
            arguments: changed.as_ref().map(|arguments| for_event(arguments, limit)),
            rules: rules.clone(),
        };
        if let Err(error) = prepared.ticket.record(answered) {
            return Err(prepared.ticket.failed(error, None));
        }
        self.0.granted.lock().unwrap_or_else(PoisonError::into_inner).extend(rules);
        let Some(arguments) = changed else { return Ok(prepared) };

        let PreparedCall { mut ticket, options, .. } = prepared;
        ticket.note(format!(
            "The user changed the arguments before it ran. It ran with: {}",
            for_event(&arguments, limit)
        ));
        let call = ToolCall::new(question.call, question.tool_name, arguments);
        match self.decide(ticket, call, options) {
            Ok((prepared, _)) => Ok(prepared),
            Err((ticket, error)) => Err(ticket.answered(error)),
        }
    }
}

fn objected(prepared: PreparedCall, objection: Objection) -> Box<ToolResult> {
    let said = objection.message.as_ref().map(|said| format!(": {said}")).unwrap_or_default();
    refused(prepared, objection, format!("the user said no{said}"))
}

fn refused(prepared: PreparedCall, objection: Objection, told: String) -> Box<ToolResult> {
    let ticket = prepared.ticket;
    let answered = EventBody::ApprovalAnswered {
        tool_name: ticket.tool_name().to_owned(),
        approved: false,
        message: objection.message,
        by: objection.by,
        arguments: None,
        rules: Vec::new(),
    };
    match ticket.record(answered) {
        Err(error) => ticket.failed(error, None),
        Ok(()) => ticket.denied(ToolError::permission(told)),
    }
}

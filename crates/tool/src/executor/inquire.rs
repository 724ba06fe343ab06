//! In the middle of a call: a person is asked what it has to know.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use convoke_core::{AgentPath, CallId, Effects, Endpoint, EventBody, Kind, Resource, ToolCall};
use serde_json::Value;
use tokio::sync::Mutex;

use super::ToolExecutor;
use super::ask::Heard;
use super::end::for_event;
use super::prepare::decide_contained;
use crate::approve::{Answer, Consent, Objection, Question};
use crate::authorize::{Decision, Request};
use crate::environment::looks_like_credential;
use crate::form::Form;
use crate::inquire::{Inquirer, Inquiry};
use crate::record::RecordError;
use crate::registry::Entry;

/// Asks for one call.
pub(super) struct Asking {
    executor: ToolExecutor,
    tool_name: String,
    entry: Option<Arc<Entry>>,
    arguments: Arc<Value>,
    /// An answer names its call, so a call has one question at a time.
    turn: Mutex<()>,
}

impl Asking {
    pub(super) fn of(
        executor: ToolExecutor,
        tool_name: String,
        entry: Option<Arc<Entry>>,
        arguments: Arc<Value>,
    ) -> Self {
        Self { executor, tool_name, entry, arguments, turn: Mutex::default() }
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Asking").field("tool_name", &self.tool_name).finish_non_exhaustive()
    }
}

#[async_trait]
impl Inquirer for Asking {
    async fn inquire(&self, call: &CallId, inquiry: Inquiry) -> Answer {
        let _turn = self.turn.lock().await;
        // What cannot be recorded has not been asked; the run ends for that reason.
        let answered = self.executor.inquire(call, &self.tool_name, inquiry).await;
        answered.unwrap_or(Answer::Nobody)
    }

    fn decide_host(&self, call: &CallId, host: &Endpoint) -> Decision {
        let executor = &self.executor.0;
        let Some(entry) = &self.entry else {
            let (rule, reason) = ("no tool".to_owned(), "its tool is gone".to_owned());
            return Decision::Deny { rule, reason };
        };
        let effects = Effects { reads: vec![Resource::Host(host.to_string())], writes: Vec::new() };
        let granted = executor.granted.0.borrow().clone();
        let request = Request {
            call: &ToolCall::new(call.clone(), &self.tool_name, Value::clone(&self.arguments)),
            spec: entry.tool.spec(),
            effects: &effects,
            description: &format!("go on to {host}"),
            agent: executor.recorder.agent(),
            linked: &[],
            granted: &granted,
            context: &executor.context,
        };
        decide_contained(executor.authorizer.as_ref(), &request).0
    }

    fn tool_name(&self) -> &str {
        &self.tool_name
    }

    fn agent(&self) -> &AgentPath {
        self.executor.0.recorder.agent()
    }
}

impl ToolExecutor {
    /// Puts what a call has to know to a person, and records question and answer. A form that nobody could fill
    /// in is put to nobody.
    async fn inquire(
        &self,
        call: &CallId,
        tool_name: &str,
        mut inquiry: Inquiry,
    ) -> Result<Answer, RecordError> {
        let Ok(form) = Form::wanted(&inquiry.wanted) else { return Ok(Answer::Nobody) };
        let secrets = self.0.recorder.secrets();
        for said in std::iter::once(&mut inquiry.message).chain(&mut inquiry.problem) {
            *said = secrets.hide(said).into_owned();
            self.0.entered.hide_in_text(call, said);
        }
        let blank =
            form.as_ref().map_or_else(|| Value::Object(serde_json::Map::new()), Form::blank);
        let inquiry = Arc::new(inquiry);
        let mut question = Question {
            call: call.clone(),
            agent: self.0.recorder.agent().clone(),
            run: self.0.recorder.run().clone(),
            tool_name: tool_name.to_owned(),
            kind: Kind::Think,
            arguments: Arc::new(blank),
            description: inquiry.in_words(),
            preview: None,
            reason: inquiry.whole_reason(),
            rules: Vec::new(),
            until: self.0.context.clock().now().after(self.0.limits.approval_timeout),
            fingerprint: String::new(),
            inquiry: Some(Arc::clone(&inquiry)),
        };
        self.make_showable(&mut question, &[]);
        let asked = EventBody::InquiryAsked {
            tool_name: tool_name.to_owned(),
            who: inquiry.who.clone(),
            message: inquiry.message.clone(),
            wanted: inquiry.wanted.clone(),
            problem: inquiry.problem.clone(),
            reason: inquiry.whole_reason(),
            until: Some(question.until),
            fingerprint: question.fingerprint.clone(),
        };
        self.0.recorder.record(Some(call), asked.clone())?;
        let (answer, silence) = match self.put_freely(&question, &asked).await {
            Heard::Answer(answer) => (answer, "nobody can be asked here"),
            Heard::Silence => (Answer::Nobody, "nobody answered in time"),
            Heard::Stopped => (Answer::Nobody, "the run was stopped before anybody answered"),
        };
        // A yes without anything is one to what was shown.
        let answer = match answer {
            Answer::Yes(Consent { arguments, rules, by }) => {
                let arguments = arguments.or_else(|| Some(Value::clone(&question.arguments)));
                Answer::Yes(Consent { arguments, rules, by })
            }
            other => other,
        };
        if let Answer::Yes(Consent { arguments: Some(Value::Object(fields)), .. }) = &answer {
            for (name, value) in fields.iter().filter(|(name, _)| is_secret(name, form.as_ref())) {
                self.0.entered.keep(call, name, value);
            }
        }
        let limit = self.0.limits.max_event_bytes;
        let (accepted, values, message, by) = match &answer {
            Answer::Yes(Consent { arguments, by, .. }) => {
                let values = arguments.as_ref();
                let values = values.map(|values| without_credentials(values, form.as_ref()));
                let values = values.map(|values| for_event(&values, limit));
                (true, values, None, by.clone())
            }
            Answer::No(Objection { message, by }) => (false, None, message.clone(), by.clone()),
            Answer::Change(_) | Answer::Nobody => (false, None, Some(silence.to_owned()), None),
        };
        let (tool_name, who) = (tool_name.to_owned(), inquiry.who.clone());
        let answered = EventBody::InquiryAnswered { tool_name, who, accepted, values, message, by };
        self.0.recorder.record(Some(call), answered)?;
        Ok(answer)
    }
}

/// Tells whether what stands in a field is a password, or a key.
fn is_secret(name: &str, form: Option<&Form>) -> bool {
    form.map_or_else(|| looks_like_credential(name), |form| form.hides(name))
}

/// Returns what was entered without what nobody but the server should ever read.
fn without_credentials(values: &Value, form: Option<&Form>) -> Value {
    let Value::Object(fields) = values else { return values.clone() };
    let shown = |(name, value): (&String, &Value)| {
        let hides = is_secret(name, form) && !matches!(value, Value::Null | Value::Bool(_));
        let value = if hides { format!("[secret {name}]").into() } else { value.clone() };
        (name.clone(), value)
    };
    Value::Object(fields.iter().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Journals, audits and exports are read by others.
    #[test]
    fn a_password_that_was_entered_is_not_recorded() {
        let entered =
            json!({ "password": "MyPassw0rd", "api_token": 7, "user": "ada", "token": null });
        let kept = json!({
            "password": "[secret password]", "api_token": "[secret api_token]", "user": "ada", "token": null,
        });
        assert_eq!(without_credentials(&entered, None), kept);
        assert_eq!(without_credentials(&json!("text"), None), json!("text"));
        let schema = json!({ "properties": {
            "pass": { "type": "string", "title": "Password" }, "user": { "type": "string" } } });
        let form = Form::of(&schema).unwrap();
        let entered = json!({ "pass": "MyPassw0rd", "user": "ada" });
        let kept = json!({ "pass": "[secret pass]", "user": "ada" });
        assert_eq!(without_credentials(&entered, Some(&form)), kept);
    }
}

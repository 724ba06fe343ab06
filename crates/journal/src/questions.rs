//! The questions of a run that nobody has answered yet.

use convoke_core::event::Wanted;
use convoke_core::policy::RuleSpec;
use convoke_core::{AgentPath, CallId, Display, Event, EventBody, Kind, RunId, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::names::Names;

/// An inquiry has no arguments.
static NO_ARGUMENTS: Value = Value::Null;

/// A call that waits for a person's answer: whether it may run, or, where it inquires, what it has to know.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenQuestion<'e> {
    /// The call; it names the question, too.
    pub call: &'e CallId,
    /// The run that makes it: the one that was started, or one below it.
    pub run: &'e RunId,
    /// Which agent asks.
    pub agent: &'e AgentPath,
    /// The same, numbered where several agents of the run have that name.
    pub agent_label: String,
    /// About which tool.
    pub tool_name: &'e str,
    /// What kind of act it is.
    pub kind: Kind,
    /// With which arguments.
    pub arguments: &'e Value,
    /// What it would do, in words.
    pub description: &'e str,
    /// What it would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<&'e Display>,
    /// Why it is asked.
    pub reason: &'e str,
    /// The rules that would allow it from now on.
    pub rules: &'e [RuleSpec],
    /// Since when.
    pub asked: Timestamp,
    /// Stands for all that was shown.
    pub fingerprint: &'e str,
    /// When nobody is waited for any more, unless the run is parked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// What a call that runs has to know. It can be answered only while somebody works on the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inquiry: Option<OpenInquiry<'e>>,
}

/// What a call that runs has to know.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenInquiry<'e> {
    /// Who asks.
    pub who: &'e str,
    /// What is wanted.
    pub wanted: &'e Wanted,
    /// What was wrong with the last answer, if this is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<&'e str>,
}

/// Finds the questions that are open after these events, the oldest first.
pub fn open_questions(events: &[Event]) -> Vec<OpenQuestion<'_>> {
    let mut open: Vec<OpenQuestion<'_>> = Vec::new();
    let mut names = Names::default();
    for event in events {
        let name = names.of(event);
        // The calls that inquired are lost, or are made again and ask again: those of agents as well, if the whole
        // tree is taken up.
        if let EventBody::RunResumed { redirected, .. } = event.body {
            let is_root = event.parent.is_none();
            if redirected && is_root {
                open.clear();
            }
            let lost = |run: &RunId| is_root || *run == event.run;
            open.retain(|question| question.inquiry.is_none() || !lost(question.run));
        }
        let Some(call) = &event.call else { continue };
        let concerns = |open: &OpenQuestion<'_>| open.call == call && *open.run == event.run;
        match &event.body {
            EventBody::ApprovalAsked {
                tool_name,
                kind,
                description,
                arguments,
                preview,
                reason,
                rules,
                until,
                fingerprint,
            } => {
                let before = open.iter().position(concerns).map(|index| open.remove(index));
                open.push(OpenQuestion {
                    call,
                    run: &event.run,
                    agent: &event.agent,
                    agent_label: name.to_owned(),
                    tool_name,
                    kind: *kind,
                    arguments,
                    description,
                    preview: preview.as_ref(),
                    reason,
                    rules,
                    // A question that is asked again is still the same question.
                    asked: before.map_or(event.ts, |before| before.asked),
                    until: *until,
                    fingerprint,
                    inquiry: None,
                });
            }
            EventBody::InquiryAsked {
                tool_name,
                who,
                message,
                wanted,
                problem,
                reason,
                until,
                fingerprint,
            } => open.push(OpenQuestion {
                call,
                run: &event.run,
                agent: &event.agent,
                agent_label: name.to_owned(),
                tool_name,
                kind: Kind::Think,
                arguments: &NO_ARGUMENTS,
                description: message,
                preview: None,
                reason,
                rules: &[],
                asked: event.ts,
                until: *until,
                fingerprint,
                inquiry: Some(OpenInquiry { who, wanted, problem: problem.as_deref() }),
            }),
            EventBody::InquiryAnswered { .. } | EventBody::ApprovalAnswered { .. } => {
                open.retain(|question| !concerns(question));
            }
            body if body.ends_call() => open.retain(|question| !concerns(question)),
            _ => {}
        }
    }
    open
}

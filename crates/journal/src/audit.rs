//! Who did what, and what allowed it: the tool calls of a run, each with its decision and its end.
//!
//! It is a fold over recorded events and nothing else, so it says what was recorded, also about a run
//! that went wrong, was interrupted or is still at work. Beside the calls it has what changes the rights
//! of a run: its start and each time it was resumed.

use std::collections::HashMap;
use std::sync::Arc;

use convoke_core::policy::RuleSpec;
use convoke_core::{
    AgentPath, CallId, Event, EventBody, Millis, Position, RunId, Timestamp, ToolError,
};
use serde::Serialize;
use serde_json::Value;

use crate::names::Names;

/// One act of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// When it began, in milliseconds since 1970.
    pub ts: Timestamp,
    /// The run in whose journal it stands.
    pub run: RunId,
    /// The number of the event with which it began.
    pub seq: u64,
    /// Who acted.
    pub agent: AgentPath,
    /// The same, numbered where several agents of the run have that name.
    pub agent_label: String,
    /// What it was.
    #[serde(flatten)]
    pub act: Act,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Act {
    /// A tool was called.
    Call(Box<Call>),
    /// A run was started or resumed with these rights.
    Rights(Rights),
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// Its id.
    pub call: CallId,
    /// Which tool.
    pub tool: String,
    /// What it does, in words, where it came so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// With what it ran, or would have run.
    pub arguments: Arc<Value>,
    /// What was asked for, where a hook or a person changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Arc<Value>>,
    /// What was decided: `allow`, `ask` or `deny`. Nothing, if it failed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What was asked about it, and answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// What hooks did about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hooked>,
    /// What it asked people for while it ran, and what it was told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inquiries: Vec<Inquired>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it did not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Millis>,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It worked.
    Completed,
    /// It did not work.
    Failed,
    /// It was not allowed.
    Denied,
    /// Its end was not recorded: it is under way, or whoever worked on it was lost.
    Unfinished,
}

impl Outcome {
    /// Returns it as one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Unfinished => "unfinished",
        }
    }
}

/// A question about a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// When it was asked.
    pub asked: Timestamp,
    /// Why.
    pub reason: String,
    /// What was answered; nothing, if nobody has answered yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

/// What a call asked a person for while it ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inquired {
    /// When.
    pub asked: Timestamp,
    /// Who asked.
    pub who: String,
    /// In which words.
    pub message: String,
    /// What was answered: the arguments of a yes are what it was told. Nothing, if nobody has answered yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// When it was given.
    pub at: Timestamp,
    /// Whether it was a yes.
    pub approved: bool,
    /// Who answered, if anybody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What else was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The arguments it was allowed with, where they were changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Arc<Value>>,
    /// What was allowed for the rest of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleSpec>,
}

/// What a hook did about a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hooked {
    /// Which hook.
    pub hook: String,
    /// `denied`, `changed` or `failed`.
    pub action: String,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The arguments as it left them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Arc<Value>>,
}

/// What a run may do.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rights {
    /// Whether it began or went on.
    pub event: Began,
    /// What whoever started it noted: the directory, the mode, the tools.
    pub origin: Value,
}

/// How a run came to have its rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Began {
    /// It was started.
    Started,
    /// It was resumed.
    Resumed,
}

/// Returns everything that was done in a run, in the order in which it began.
pub fn entries(run: &RunId, events: &[Event]) -> Vec<Entry> {
    let mut fold = Fold {
        run,
        entries: Vec::new(),
        calls: HashMap::new(),
        names: Names::default(),
        origins: HashMap::new(),
    };
    for event in events {
        fold.names.of(event);
        fold.take(event);
    }
    fold.entries
}

struct Fold<'e> {
    run: &'e RunId,
    entries: Vec<Entry>,
    /// Where the calls are that have not ended. Two agents may use the same id.
    calls: HashMap<(&'e RunId, &'e CallId), usize>,
    names: Names<'e>,
    /// What was noted last for each run.
    origins: HashMap<&'e RunId, &'e Value>,
}

impl<'e> Fold<'e> {
    fn take(&mut self, event: &'e Event) {
        match &event.body {
            // One that has none of its own has those of whoever started it.
            EventBody::RunStarted { origin, .. } if !origin.is_null() => {
                self.rights(event, Began::Started, origin);
            }
            // It goes on with the rights it had, unless others are noted.
            EventBody::RunResumed { origin, .. } => {
                let before = self.origins.get(&event.run).copied();
                let origin = if origin.is_null() { before.unwrap_or(origin) } else { origin };
                self.rights(event, Began::Resumed, origin);
            }
            EventBody::ToolCallRequested { tool_name, params } => {
                let Some(call) = &event.call else { return };
                // One that waited for an answer goes on, and one whose process was lost is made again: it is the
                // same call, with one end.
                if self.call(event).is_some() {
                    return;
                }
                self.calls.insert((&event.run, call), self.entries.len());
                let act = Act::Call(Box::new(Call {
                    call: call.clone(),
                    tool: tool_name.clone(),
                    what: None,
                    arguments: Arc::clone(params),
                    asked: None,
                    decision: None,
                    rule: None,
                    approval: None,
                    hooks: Vec::new(),
                    inquiries: Vec::new(),
                    outcome: Outcome::Unfinished,
                    error: None,
                    duration_ms: None,
                }));
                self.add(event, act);
            }
            body => {
                let Some(call) = self.call(event) else { return };
                call.take(event.ts, body);
                if let (true, Some(id)) = (body.ends_call(), &event.call) {
                    self.calls.remove(&(&event.run, id));
                }
            }
        }
    }

    fn rights(&mut self, event: &'e Event, began: Began, origin: &'e Value) {
        self.origins.insert(&event.run, origin);
        self.add(event, Act::Rights(Rights { event: began, origin: origin.clone() }));
    }

    fn add(&mut self, event: &'e Event, act: Act) {
        let seq = match event.position {
            Position::Durable { seq } | Position::Ephemeral { after: seq, .. } => seq,
        };
        let (run, agent) = (self.run.clone(), event.agent.clone());
        let agent_label = self.names.of(event).to_owned();
        self.entries.push(Entry { ts: event.ts, run, seq, agent, agent_label, act });
    }

    fn call(&mut self, event: &'e Event) -> Option<&mut Call> {
        let index = self.calls.get(&(&event.run, event.call.as_ref()?))?;
        match &mut self.entries.get_mut(*index)?.act {
            Act::Call(call) => Some(call),
            Act::Rights(_) => None,
        }
    }
}

impl Call {
    fn take(&mut self, at: Timestamp, body: &EventBody) {
        match body {
            EventBody::PolicyDecision { decision, rule, .. } => {
                self.decision = Some(decision.clone());
                self.rule = Some(rule.clone());
            }
            EventBody::ApprovalAsked { description, reason, .. } => {
                self.what = Some(description.clone());
                let before = self.approval.take().map(|approval| approval.asked);
                let asked = before.unwrap_or(at);
                self.approval = Some(Approval { asked, reason: reason.clone(), answer: None });
            }
            EventBody::ApprovalAnswered { approved, message, by, arguments, rules, .. } => {
                if let Some(approval) = &mut self.approval {
                    approval.answer = Some(Answer {
                        at,
                        approved: *approved,
                        by: by.clone(),
                        message: message.clone(),
                        arguments: arguments.clone(),
                        rules: rules.clone(),
                    });
                }
                self.change(arguments.as_ref());
            }
            EventBody::InquiryAsked { who, message, .. } => self.inquiries.push(Inquired {
                asked: at,
                who: who.clone(),
                message: message.clone(),
                answer: None,
            }),
            EventBody::InquiryAnswered { accepted, values, message, by, .. } => {
                if let Some(inquired) = self.inquiries.last_mut() {
                    inquired.answer = Some(Answer {
                        at,
                        approved: *accepted,
                        by: by.clone(),
                        message: message.clone(),
                        arguments: values.clone(),
                        rules: Vec::new(),
                    });
                }
            }
            EventBody::HookActed { hook, action, message, arguments, .. } => {
                self.hooks.push(Hooked {
                    hook: hook.clone(),
                    action: action.clone(),
                    message: message.clone(),
                    arguments: arguments.clone(),
                });
                self.change(arguments.as_ref());
            }
            EventBody::ToolCallStarted { description, .. } => {
                self.what = Some(description.clone());
            }
            EventBody::ToolCallCompleted { duration_ms, .. } => {
                self.end(Outcome::Completed, None, *duration_ms);
            }
            EventBody::ToolCallFailed { error, duration_ms, .. } => {
                self.end(Outcome::Failed, Some(error), *duration_ms);
            }
            EventBody::ToolCallDenied { error, duration_ms, .. } => {
                self.end(Outcome::Denied, Some(error), *duration_ms);
            }
            _ => {}
        }
    }

    /// Somebody changed the arguments. What was asked for first is kept.
    fn change(&mut self, arguments: Option<&Arc<Value>>) {
        if let Some(arguments) = arguments {
            let before = std::mem::replace(&mut self.arguments, Arc::clone(arguments));
            self.asked.get_or_insert(before);
        }
    }

    /// Returns the hook that refused it, and how: by its word, or because it failed.
    pub fn refused_by(&self) -> Option<&Hooked> {
        let last = self.hooks.last().filter(|_| self.outcome == Outcome::Denied)?;
        let refuses = match last.action.as_str() {
            "denied" => true,
            // Only one that guards refuses by failing, and then nobody decides after it.
            "failed" => {
                let name = format!("`{}`", last.hook);
                self.error.as_ref().is_some_and(|error| error.message.contains(&name))
            }
            _ => false,
        };
        refuses.then_some(last)
    }

    fn end(&mut self, outcome: Outcome, error: Option<&ToolError>, duration: Millis) {
        self.outcome = outcome;
        self.error = error.cloned();
        self.duration_ms = Some(duration);
    }
}

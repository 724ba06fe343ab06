//! Doing a recorded run again, offline: every step is decided anew and compared with what was recorded.
//!
//! What came from outside (answers of the model, results of tools, words of people, the time) is taken
//! from the record. Everything the runtime made of it has to come out the same, or the first difference
//! is named.

use std::collections::VecDeque;
use std::fmt;

use convoke_core::run::Told;
use convoke_core::{
    CallId, Effect, Event, EventBody, Limit, Position, Purpose, Run, RunId, Timestamp, ToolCall,
    USE_TOOL,
};

use convoke_tool::recorded_name;
use serde_json::Value;

use crate::completion::Completion;
use crate::settle::{Settled, request, settled};

/// How much of an event is shown, in characters.
const MAX_SHOWN: usize = 600;

/// A run that came out the same.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Replayed {
    /// The run, as it was at the end of the record.
    pub run: Run,
    /// How many events the record has.
    pub events: usize,
    /// How many of them were decided again.
    pub decided: usize,
}

/// The first step that came out differently.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Difference {
    /// The number of the event.
    pub seq: u64,
    /// What was recorded.
    pub recorded: EventBody,
    /// What would happen now; nothing, if the run would wait.
    pub decided: Option<EventBody>,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |body: &EventBody| {
            let text = serde_json::to_string(body).unwrap_or_default();
            match text.char_indices().nth(MAX_SHOWN) {
                Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
                None => text,
            }
        };
        let decided = self.decided.as_ref().map_or_else(|| "nothing".to_owned(), shown);
        write!(
            formatter,
            "event {} came out differently\n  recorded: {}\n  now:      {decided}",
            self.seq,
            shown(&self.recorded)
        )
    }
}

impl std::error::Error for Difference {}

/// Does a run again. Events of other runs are passed over.
///
/// # Errors
///
/// Returns the first event that came out differently.
pub fn replay(id: &RunId, events: &[Event]) -> Result<Replayed, Box<Difference>> {
    let run = Run::new(id.clone());
    let mut again = Again { run, completion: None, due: VecDeque::new(), decided: 0 };
    let mut before = Timestamp::default();
    for event in events.iter().filter(|event| event.run == *id) {
        again.step(event, before)?;
        before = event.ts;
    }
    Ok(Replayed { run: again.run, events: events.len(), decided: again.decided })
}

struct Again {
    run: Run,
    /// What answers are held against.
    completion: Option<Completion>,
    /// What is recorded next, as far as that is settled.
    due: VecDeque<Settled>,
    decided: usize,
}

impl Again {
    fn step(&mut self, event: &Event, before: Timestamp) -> Result<(), Box<Difference>> {
        if !self.comes_from_outside(event) {
            // The step was decided between the event before and this one.
            let expected = [event.ts, before].map(|now| self.expected(event, now));
            let mut matching = expected.iter().filter(|due| same(due.front(), event));
            let Some(due) = matching.next() else {
                let [decided, _] = expected;
                return Err(Box::new(Difference {
                    seq: seq(event),
                    recorded: event.body.clone(),
                    decided: decided.into_iter().next().map(|(_, body)| body),
                }));
            };
            self.due = due.iter().skip(1).cloned().collect();
            self.decided += 1;
        }
        match &event.body {
            EventBody::RunStarted { settings, .. } => {
                self.completion = Completion::new(settings.output.clone()).ok();
            }
            // Whoever was in the middle of something is gone.
            EventBody::RunResumed { .. } => self.due.clear(),
            _ => {}
        }
        self.run.apply(event);
        Ok(())
    }

    /// Returns what this run would record now, beginning with what is compared with this event.
    fn expected(&self, event: &Event, now: Timestamp) -> VecDeque<Settled> {
        if !self.due.is_empty() {
            return self.due.clone();
        }
        if let EventBody::Usage(_) = event.body {
            return VecDeque::from([(None, EventBody::Usage(*self.run.spent()))]);
        }
        let effect = self.run.decide(now);
        let asked = |purpose: Purpose| VecDeque::from([(None, request(&self.run, purpose))]);
        match &effect {
            Effect::CallModel { purpose, .. } => asked(*purpose),
            Effect::Compact { .. } => asked(Purpose::Compact),
            // They are prepared in order, but may be asked about and run in any.
            Effect::CallTools(calls) => {
                let call = calls.iter().find(|call| Some(&call.id) == event.call.as_ref());
                let requested = call.map(|call| {
                    let call = as_recorded(call.clone(), event);
                    let (tool_name, params) = (call.name, call.arguments.into());
                    let body = EventBody::ToolCallRequested { tool_name, params };
                    (Some(call.id), body)
                });
                requested.into_iter().collect()
            }
            effect => settled(effect, &self.run, self.completion.as_ref()).into(),
        }
    }

    /// Tells whether an event is something the runtime learned, and not something it did.
    fn comes_from_outside(&self, event: &Event) -> bool {
        let is_due = |call: &Option<CallId>| {
            self.due.front().is_some_and(|(due, body)| due == call && body.ends_call())
        };
        match &event.body {
            EventBody::RunStarted { .. }
            | EventBody::RunResumed { .. }
            | EventBody::RunForked { .. }
            | EventBody::UserMessage { .. }
            | EventBody::RunCancelled { .. }
            | EventBody::ModelResponse { .. }
            | EventBody::ModelFailed { .. }
            | EventBody::ModelRetry { .. }
            | EventBody::ToolCallStarted { .. }
            | EventBody::PolicyDecision { .. }
            | EventBody::ApprovalAsked { .. }
            | EventBody::ApprovalAnswered { .. }
            | EventBody::InquiryAsked { .. }
            | EventBody::InquiryAnswered { .. }
            | EventBody::ToolCallDeferred { .. }
            | EventBody::HookActed { .. }
            | EventBody::WorkspacePrepared { .. }
            | EventBody::WorkspaceChanged(_)
            | EventBody::AgentSpawned { .. }
            | EventBody::AgentWaits { .. }
            | EventBody::AgentEnded { .. }
            | EventBody::McpServerState { .. }
            | EventBody::Warning { .. }
            | EventBody::Error { .. } => true,
            body if body.ends_call() => !is_due(&event.call),
            // The time was up while something was under way, or while others had what the model was to be asked with.
            EventBody::BudgetExceeded { budget: Limit::Time, of: None, .. } => {
                let waits = |effect| {
                    matches!(
                        effect,
                        Effect::CallTools(_) | Effect::AwaitAgents | Effect::CallModel { .. }
                    )
                };
                self.run.asking().is_some() || waits(self.run.decide(event.ts))
            }
            // What became of agents that worked on their own is told whoever takes the run up.
            EventBody::Notice { .. } => {
                let expected = self.run.decide(event.ts);
                !matches!(expected, Effect::Tell(ref told) if is_remark(told))
            }
            // Whether there is anything left for the whole tree is known to its ledger alone.
            EventBody::BudgetExceeded { of: Some(_), .. } => true,
            _ => false,
        }
    }
}

/// Tells whether something the model is told is recorded as a notice.
const fn is_remark(told: &Told) -> bool {
    matches!(told, Told::YouWereCutOff | Told::CallCompleteTask | Told::CallsWereDropped { .. })
}

/// Tells whether an event is the one that was expected. How much of the time is used depends on the moment
/// of looking, and what is too long for an event is cut in the record.
fn same(expected: Option<&Settled>, event: &Event) -> bool {
    let Some((call, body)) = expected else { return false };
    if *call != event.call {
        return false;
    }
    match (body, &event.body) {
        (
            EventBody::BudgetWarning { budget: Limit::Time, .. },
            EventBody::BudgetWarning { budget: Limit::Time, .. },
        ) => true,
        (
            EventBody::ToolCallRequested { tool_name: expected, params: given },
            EventBody::ToolCallRequested { tool_name, params },
        ) => {
            let is_cut = params.get("truncated") == Some(&Value::Bool(true));
            let is_called = expected == tool_name || recorded_name(expected) == *tool_name;
            (is_called && given == params) || (is_cut && expected.starts_with(tool_name))
        }
        (
            EventBody::ModelRequest { model, purpose, notice, estimate, reserved: _ },
            EventBody::ModelRequest {
                model: same_model,
                purpose: same_purpose,
                notice: same_notice,
                estimate: same_estimate,
                reserved: _,
            },
        ) => {
            (model, purpose, notice, estimate)
                == (same_model, same_purpose, same_notice, same_estimate)
        }
        (expected, recorded) => expected == recorded,
    }
}

const fn seq(event: &Event) -> u64 {
    match event.position {
        Position::Durable { seq } => seq,
        Position::Ephemeral { after, .. } => after,
    }
}

/// A call through [`USE_TOOL`] is recorded as the call that is meant, if that tool was there.
fn as_recorded(call: ToolCall, event: &Event) -> ToolCall {
    match &event.body {
        EventBody::ToolCallRequested { tool_name, .. } if tool_name != USE_TOOL => call.meant(),
        _ => call,
    }
}

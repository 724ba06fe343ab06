//! The calls of one answer of the model, and the answers to them.
//!
//! Calls are answered in the order in which they finish; the model gets the answers in the order in
//! which it asked. Each call is answered once: a second answer is ignored.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::COMPLETE_TASK;
use crate::id::CallId;
use crate::message::{Message, Part, Role, ToolCall};
use crate::spec::Repeat;

/// Calls under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Batch {
    calls: Vec<Slot>,
    /// Whether `complete_task` is a completion here, and not just some name.
    completes: bool,
    /// Whether nothing but completing the task was on offer.
    pub(super) only_completion: bool,
    /// Whether the answer was cut off, so that its last call is not whole.
    cut_off: bool,
    /// The calls that were not allowed, or whose agents were not allowed what they wanted.
    refused: BTreeSet<CallId>,
    /// The calls that began in the run that this one is a copy of.
    #[serde(default)]
    elsewhere: BTreeSet<CallId>,
    /// The calls that are not made any more, since the user continued in another way.
    #[serde(default)]
    abandoned: BTreeSet<CallId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Slot {
    call: ToolCall,
    /// Whether it began, and what happens if it begins again.
    begun: Option<Repeat>,
    /// Whether it began, nobody will ever know how it ended, and it must not begin again.
    lost: bool,
    /// Whether it waits: somebody was asked about it and nobody answered, or its agent was stopped with the run.
    parked: bool,
    /// Whether it waited, and is not made any more.
    given_up: bool,
    /// Whether it counts as a call that was made.
    counted: bool,
    /// What stands for the question about it that is open.
    asked: String,
    /// The user's consents to it. There are several where changed arguments were asked about again.
    approvals: Vec<Approval>,
    answer: Option<Given>,
}

/// The user's consent to a call, as the call was shown. It holds until the call has an answer, in any process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// What stood for all that was shown: the consent is to just that.
    pub fingerprint: String,
    /// The arguments to run it with, where the user changed them.
    pub arguments: Option<Arc<Value>>,
    /// Who consented.
    pub by: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Given {
    content: Vec<Part>,
    is_error: bool,
}

impl Batch {
    pub(super) fn new(
        calls: Vec<ToolCall>,
        completes: bool,
        only_completion: bool,
        cut_off: bool,
    ) -> Self {
        let slot = |call| Slot {
            call,
            begun: None,
            lost: false,
            parked: false,
            given_up: false,
            counted: false,
            asked: String::new(),
            approvals: Vec::new(),
            answer: None,
        };
        let calls = calls.into_iter().map(slot).collect();
        let (refused, elsewhere) = (BTreeSet::new(), BTreeSet::new());
        let abandoned = BTreeSet::new();
        Self { calls, completes, only_completion, cut_off, refused, elsewhere, abandoned }
    }

    /// Makes calls of it that were answered, some of them with a refusal; those in `again` are open.
    pub(super) fn reopened(
        calls: Vec<ToolCall>,
        answers: Vec<Part>,
        again: &[CallId],
        mut refused: BTreeSet<CallId>,
        completes: bool,
    ) -> Self {
        let mut batch = Self::new(calls, completes, false, false);
        refused.retain(|call| !again.contains(call));
        batch.refused = refused;
        for part in answers {
            let Part::ToolResult { call, content, is_error } = part else { continue };
            let Some(slot) = batch.open(&call) else { continue };
            if !again.contains(&call) {
                slot.answer = Some(Given { content, is_error });
            }
        }
        batch
    }

    /// Answers a call; tells whether there was such a call without an answer.
    pub(super) fn answer(&mut self, id: &CallId, content: &[Part], is_error: bool) -> bool {
        let Some(slot) = self.open(id) else { return false };
        slot.answer = Some(Given { content: content.to_vec(), is_error });
        true
    }

    /// A call was not allowed; tells whether there was such a call without an answer.
    pub(super) fn refuse(&mut self, id: &CallId) -> bool {
        self.open(id).is_some() && self.refused.insert(id.clone())
    }

    /// Returns the calls that were not allowed.
    pub(super) const fn refused(&self) -> &BTreeSet<CallId> {
        &self.refused
    }

    /// Tells whether what was wanted was not allowed: some of it, and nothing else was done beside it. There is
    /// nothing to tell where nothing was allowed or refused. In which order calls were made or ended does not
    /// matter.
    pub(super) fn was_denied(&self) -> Option<bool> {
        let mut calls = self.calls.iter().filter(|slot| !self.is_completion(&slot.call.name));
        let is_done = |slot: &Slot| slot.answer.as_ref().is_some_and(|answer| !answer.is_error);
        if calls.clone().any(is_done) {
            return Some(false);
        }
        calls.any(|slot| self.refused.contains(&slot.call.id)).then_some(true)
    }

    /// A call begins; tells whether it was counted before.
    pub(super) fn begin(&mut self, id: &CallId, repeat: Repeat) -> bool {
        self.open(id).is_some_and(|slot| {
            slot.begun = Some(repeat);
            std::mem::replace(&mut slot.counted, true)
        })
    }

    /// The user is asked about a call.
    pub(super) fn ask(&mut self, id: &CallId, fingerprint: &str) {
        if let Some(slot) = self.open(id) {
            fingerprint.clone_into(&mut slot.asked);
        }
    }

    /// The user consents to a call as it was shown.
    pub(super) fn approve(
        &mut self,
        id: &CallId,
        arguments: Option<&Arc<Value>>,
        by: Option<&str>,
    ) {
        let Some(slot) = self.open(id).filter(|slot| !slot.asked.is_empty()) else { return };
        let (fingerprint, by) = (std::mem::take(&mut slot.asked), by.map(str::to_owned));
        slot.approvals.push(Approval { fingerprint, arguments: arguments.cloned(), by });
    }

    /// Returns the consent to a call that was shown like this.
    pub(super) fn approval(&self, id: &CallId, fingerprint: &str) -> Option<&Approval> {
        self.approvals(id).iter().find(|approval| approval.fingerprint == fingerprint)
    }

    /// Returns the arguments that a person last gave a call and approved.
    pub(super) fn changed_arguments(&self, id: &CallId) -> Option<&Value> {
        self.approvals(id).iter().rev().find_map(|approval| approval.arguments.as_deref())
    }

    /// Tells whether the user consented to a call, however it was shown.
    pub(super) fn is_approved(&self, id: &CallId) -> bool {
        !self.approvals(id).is_empty()
    }

    fn approvals(&self, id: &CallId) -> &[Approval] {
        let mut open = self.calls.iter().filter(|slot| slot.answer.is_none());
        open.find(|slot| slot.call.id == *id).map_or(&[], |slot| &slot.approvals)
    }

    /// Whoever made the calls is gone. Those that are under way and would do harm if they were made a
    /// second time are lost.
    pub(super) fn lose_unsafe(&mut self) {
        for slot in self.calls.iter_mut().filter(|slot| slot.answer.is_none()) {
            // What waits for a person is not under way: it will be found where it was left.
            slot.lost |= slot.begun == Some(Repeat::Unsafe) && !slot.parked;
        }
    }

    /// Calls that are under way go on in another run, of which this one is a copy.
    pub(super) fn leave_behind(&mut self) {
        let under_way =
            |slot: &&Slot| slot.answer.is_none() && slot.begun.is_some() && !slot.parked;
        self.elsewhere.extend(self.calls.iter().filter(under_way).map(|slot| slot.call.id.clone()));
        // The consents were to the calls of the other run.
        self.calls.iter_mut().for_each(|slot| slot.approvals.clear());
    }

    /// Tells whether a call began in the run that this one is a copy of.
    pub(super) fn is_elsewhere(&self, id: &CallId) -> bool {
        self.elsewhere.contains(id)
    }

    /// None of the calls without an answer is made any more.
    pub(super) fn abandon(&mut self) {
        self.abandoned = self.unanswered().map(|call| call.id.clone()).collect();
    }

    /// Returns the calls that are not made any more, and have no answer yet.
    pub(super) fn abandoned_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.unanswered().filter(|call| self.abandoned.contains(&call.id))
    }

    /// Returns the calls that are lost and have no answer yet.
    pub(super) fn lost_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let lost = |slot: &&Slot| slot.lost && slot.answer.is_none();
        self.calls.iter().filter(lost).map(|slot| &slot.call)
    }

    /// Nobody answered whether a call may be made: it waits.
    pub(super) fn park(&mut self, id: &CallId) {
        if let Some(slot) = self.open(id) {
            slot.parked = true;
        }
    }

    /// There may be somebody now who answers.
    pub(super) fn ask_again(&mut self) {
        for slot in self.calls.iter_mut().filter(|slot| slot.parked) {
            // It is found where it was left, whoever was lost meanwhile.
            (slot.parked, slot.begun) = (false, None);
        }
    }

    /// There is something else to do than what waits or has not begun.
    pub(super) fn give_up(&mut self) {
        for slot in self.calls.iter_mut().filter(|slot| !slot.lost) {
            slot.given_up = true;
        }
    }

    /// Returns the calls that were given up and have no answer yet.
    pub(super) fn given_up(&self) -> impl Iterator<Item = &ToolCall> {
        let given_up = |slot: &&Slot| slot.given_up && slot.answer.is_none();
        self.calls.iter().filter(given_up).map(|slot| &slot.call)
    }

    /// Tells whether a call waits for somebody's answer.
    pub(super) fn is_parked(&self, id: &CallId) -> bool {
        self.calls.iter().any(|slot| slot.call.id == *id && slot.parked && slot.answer.is_none())
    }

    fn open(&mut self, id: &CallId) -> Option<&mut Slot> {
        self.calls.iter_mut().find(|slot| slot.call.id == *id && slot.answer.is_none())
    }

    /// Tells whether a call of this name says that the task is done.
    pub(super) fn is_completion(&self, name: &str) -> bool {
        self.completes && name == COMPLETE_TASK
    }

    pub(super) fn is_answered(&self) -> bool {
        self.calls.iter().all(|slot| slot.answer.is_some())
    }

    /// Returns the calls of tools that have no answer yet.
    pub(super) fn open_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.unanswered().filter(|call| !self.is_completion(&call.name))
    }

    /// Returns the calls that are made when somebody takes the run up again: those that would do harm are not.
    pub(super) fn calls_to_make(&self) -> impl Iterator<Item = &ToolCall> {
        let is_made = |slot: &&Slot| {
            slot.answer.is_none()
                && !self.abandoned.contains(&slot.call.id)
                && !slot.lost
                && (slot.parked || slot.begun != Some(Repeat::Unsafe))
        };
        let calls = self.calls.iter().filter(is_made).map(|slot| &slot.call);
        calls.filter(|call| !self.is_completion(&call.name))
    }

    /// Returns the completions that have no answer yet.
    pub(super) fn open_completions(&self) -> impl Iterator<Item = &ToolCall> {
        self.unanswered().filter(|call| self.is_completion(&call.name))
    }

    fn unanswered(&self) -> impl Iterator<Item = &ToolCall> {
        self.calls.iter().filter(|slot| slot.answer.is_none()).map(|slot| &slot.call)
    }

    /// Returns the call that is not whole, if it has no answer yet.
    pub(super) fn broken_call(&self) -> Option<&ToolCall> {
        let last = self.calls.last().filter(|slot| self.cut_off && slot.answer.is_none());
        last.map(|slot| &slot.call)
    }

    /// Returns the tool of a call that failed.
    pub(super) fn failed_tool(&self) -> Option<&str> {
        let failed = |slot: &&Slot| {
            !self.is_completion(&slot.call.name)
                && slot.answer.as_ref().is_some_and(|answer| answer.is_error)
        };
        self.calls.iter().find(failed).map(|slot| slot.call.name.as_str())
    }

    /// Returns what was called and what came back, as one number: equal if both are equal. The names that the call gave
    /// to what it made, such as an agent, are new each time and count for nothing.
    pub(super) fn fingerprint(&self, made: impl Fn(&CallId) -> Vec<String>) -> u64 {
        self.calls.iter().fold(FNV_START, |hash, slot| {
            let hash = fnv(hash, &slot.call.name);
            let hash = fnv(hash, &slot.call.arguments.to_string());
            let made = made(&slot.call.id);
            let answer = slot.answer.iter().flat_map(|answer| &answer.content);
            answer.fold(hash, |hash, part| match part {
                Part::Text { text } => fnv(hash, &without(text, &made)),
                other => fnv(hash, &without(&format!("{other:?}"), &made)),
            })
        })
    }

    /// Returns the name of the first tool that was called.
    pub(super) fn first_tool(&self) -> &str {
        self.calls.first().map_or("", |slot| slot.call.name.as_str())
    }

    /// Returns the answers as one message, in the order of the calls.
    pub(super) fn into_message(self) -> Message {
        let answers = self.calls.into_iter().filter_map(|slot| {
            let Given { content, is_error } = slot.answer?;
            Some(Part::ToolResult { call: slot.call.id, content, is_error })
        });
        Message { role: Role::Tool, parts: answers.collect() }
    }
}

/// Returns a text as a number: equal if the texts are.
pub(super) fn fingerprint(text: &str) -> u64 {
    fnv(FNV_START, text)
}

/// Returns a text without these names.
fn without<'t>(text: &'t str, names: &[String]) -> Cow<'t, str> {
    let present = names.iter().filter(|name| !name.is_empty());
    present.fold(Cow::Borrowed(text), |text, name| {
        if text.contains(name.as_str()) {
            Cow::Owned(text.replace(name.as_str(), ""))
        } else {
            text
        }
    })
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, with an end mark: a hash that is the same in every process.
fn fnv(hash: u64, text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    step(text.bytes().fold(hash, step), 0xff)
}

//! A run is taken up again: after a lost process, after its end, or where its agents found no model.

use super::super::batch::Batch;
use super::super::conversation::Unheard;
use super::super::{
    Before, Denied, Due, ForkState, Phase, Purpose, Repetition, Run, Stopwatch, Turn,
};
use crate::event::{Event, EventBody};
use crate::id::{CallId, RunId};
use crate::message::{Message, Role};
use crate::time::Timestamp;

impl Run {
    /// Somebody takes the run up again, perhaps with another model or other limits.
    pub(super) fn go_on(&mut self, event: &Event) {
        let EventBody::RunResumed {
            model,
            settings,
            lost,
            anything_else,
            redirected,
            again,
            origin: _,
        } = &event.body
        else {
            return;
        };
        self.spent += *lost;
        self.loss_is_charged |= !lost.is_empty();
        if let Some(model) = model {
            self.model.clone_from(model);
        }
        if let Some(settings) = settings {
            self.settings.clone_from(settings);
            // Other limits: whether one is reached is to be seen anew.
            (self.exceeded, self.grace) = (None, None);
            if self.phase == Phase::Asking(Purpose::Grace) {
                self.phase = Phase::Ready;
            }
        }
        if *redirected {
            self.redirect();
        }
        self.resume(event.ts, *anything_else, *redirected);
        self.reopen(again);
    }

    /// The user continues a copy in another way than the original: what was open where it was cut is not repeated. Its
    /// calls are answered without being made, the answer that the model was asked for is not waited for, and its
    /// turn ends.
    fn redirect(&mut self) {
        self.fork = ForkState::Redirected;
        self.turn.answered |= self.turn.open;
        self.children.abandon();
        self.due.remove(&Due::Reflect);
        match &mut self.phase {
            Phase::Calling(batch) => batch.abandon(),
            // A summary or a plan that the model has made is kept.
            Phase::Concluding(..) | Phase::New | Phase::Ended => {}
            phase @ (Phase::Ready | Phase::Asking(_) | Phase::Checking(_)) => *phase = Phase::Ready,
        }
    }

    /// What was under way goes on or is made again; a run that begins anew gets its turns, its time and its calls anew.
    fn resume(&mut self, now: Timestamp, anything_else: bool, redirected: bool) {
        let begins_anew = redirected || self.begins_anew(anything_else);
        (self.cancelled, self.failure, self.outcome) = (None, None, None);
        if let Phase::Calling(batch) = &mut self.phase {
            batch.lose_unsafe();
            if anything_else && begins_anew {
                batch.give_up();
            }
            batch.ask_again();
        }
        let open: Vec<CallId> = match &self.phase {
            Phase::Calling(batch) => batch.open_calls().map(|call| call.id.clone()).collect(),
            _ => Vec::new(),
        };
        self.children.resume(anything_else, |call| open.contains(call));
        if !begins_anew {
            return;
        }
        if !matches!(self.phase, Phase::Calling(_)) {
            self.phase = Phase::Ready;
            self.turn = Turn { open: false, answered: false, ..self.turn };
        }
        self.before = Before { turns: self.turn.number, tool_calls: self.tool_calls };
        self.clock = Stopwatch::start(now);
        self.warned.clear();
        self.due.retain(|due| matches!(due, Due::Plan | Due::Reflect | Due::Shorten));
        (self.repetition, self.rescues, self.restarted) = (Repetition::default(), 0, false);
        self.compaction_refused_at = None;
        self.compacted_in = None;
        (self.exceeded, self.grace) = (None, None);
        (self.answer, self.last_words) = (None, None);
        self.pieces.clear();
        (self.denied, self.reminded) = (Denied::default(), false);
        self.refused.clear();
        self.dropped_calls = 0;
    }

    /// Agents that found no model go on. The model has not heard of the answers to their calls, and not of the ends of
    /// those in the background; all that is taken back.
    fn reopen(&mut self, agents: &[RunId]) {
        if agents.is_empty() || self.phase != Phase::Ready {
            return;
        }
        for told in self.children.go_on_aside(agents) {
            let said = Message::text(Role::User, told);
            self.inbox.retain(|message| *message != said);
            self.conversation.take_back_word(&said);
        }
        let is_waited_for = |id: &&RunId| !self.children.is_in_background(id);
        let waited_for: Vec<RunId> = agents.iter().filter(is_waited_for).cloned().collect();
        if waited_for.is_empty() {
            return;
        }
        let Some(Unheard { calls, answers, later }) = self.conversation.take_back() else { return };
        let again = self.children.go_on(&waited_for);
        let refused = std::mem::take(&mut self.refused_last);
        let batch = Batch::reopened(calls, answers, &again, refused, self.completes_by_call());
        // Whether there is something to look back at is seen when all are answered.
        self.due.remove(&Due::Reflect);
        let is_answered = batch.is_answered();
        self.phase = Phase::Calling(batch);
        if is_answered {
            self.close_batch();
        }
        let said_since = std::mem::replace(&mut self.inbox, later);
        self.inbox.extend(said_since);
    }
}

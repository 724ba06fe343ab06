//! Folds events into a run. What an event means never changes: old journals have to give the same run.

mod looked_back;
mod taken_up;

use serde_json::Value;

use super::batch::{Batch, fingerprint};
use super::conversation::{Conversation, text_tokens};
use super::{
    ActionResult, Aside, COMPLETE_TASK, Due, Ending, Exceeded, Failure, ForkState, Limit, Phase,
    Purpose, ReflectionMode, Repetition, Reserved, Run, Strategy, TaskContext, Told, Turn,
};
use crate::event::{Event, EventBody, FileSeen, Rescue};
use crate::id::{CallId, RunId};
use crate::message::{Message, Part, Role, StopReason};
use crate::outcome::{Cause, Outcome, Status};
use crate::spec::Declaration;
use crate::time::{Millis, Timestamp};
use crate::usage::Usage;

impl Run {
    /// Folds one event into the run. Events of other runs change nothing, but that the run they belong to is a copy.
    pub fn apply(&mut self, event: &Event) {
        let over = self.outcome.is_some();
        let resumed = matches!(event.body, EventBody::RunResumed { .. });
        // Agents that the run called are copied with it.
        if let (EventBody::RunForked { .. }, Phase::Calling(batch)) = (&event.body, &mut self.phase)
        {
            batch.leave_behind();
        }
        if event.run == self.id && matches!(event.body, EventBody::RunForked { .. }) {
            self.fork = ForkState::New;
        }
        if event.run != self.id || (over && !resumed) {
            return;
        }
        self.count_time(event);
        self.fold(event);
        if self.fork == ForkState::Redirected && self.phase == Phase::Ready {
            self.hear();
        }
    }

    /// Counts the time since the last event. Before a run begins, and while no process works on it, no time
    /// counts.
    fn count_time(&mut self, event: &Event) {
        match event.body {
            EventBody::RunStarted { .. }
            | EventBody::RunResumed { .. }
            | EventBody::RunForked { .. } => self.clock.resume(event.ts),
            _ => self.clock.tick(event.ts),
        }
    }

    fn fold(&mut self, event: &Event) {
        match &event.body {
            EventBody::RunStarted { .. } => self.start(event),
            EventBody::RunResumed { .. } => self.go_on(event),
            EventBody::RunForked { .. } => {}
            EventBody::UserMessage { message } => {
                self.inbox.push(message.clone());
                if self.fork == ForkState::New {
                    self.fork = ForkState::None;
                }
            }
            EventBody::RunCancelled { cause } => {
                self.cancelled.get_or_insert(*cause);
            }
            EventBody::RunEnded { outcome, .. } => {
                self.outcome = Some(outcome.clone());
                // What waits for the user, or was stopped, is found where it was left.
                if !matches!(outcome.status, Status::Parked | Status::Cancelled) {
                    self.phase = Phase::Ended;
                    self.questions.clear();
                }
            }
            EventBody::TurnStarted { turn } => self.start_turn(*turn),
            EventBody::TurnEnded { .. } => self.end_turn(),
            EventBody::ModelRequest { purpose, notice, estimate, reserved, .. } => {
                self.request = Reserved { input: *estimate, total: *reserved };
                self.ask_model(*purpose, notice.as_deref());
            }
            EventBody::ModelResponse { purpose, message, usage, stop, dropped_calls } => {
                self.spent += *usage;
                self.phase = Phase::Ready;
                if purpose.is_turn() {
                    self.turn.answered = true;
                    self.dropped_calls = *dropped_calls;
                    self.conversation.answered(message.clone(), usage);
                    self.heed(*purpose, message, *stop);
                } else {
                    self.phase = Phase::Concluding(*purpose, message.words());
                }
            }
            EventBody::ModelFailed { purpose, cause, message, hint, partial, usage, .. } => {
                self.spent += *usage;
                if let Some(partial) = partial {
                    self.last_words = Some(partial.clone());
                }
                if self.is_interrupted() {
                    // It is asked again by the process that resumes the run.
                    self.loss_is_charged = true;
                } else if (*purpose, *cause) == (Purpose::Compact, Cause::ContextWindow) {
                    // Even the part that was to be summed up is too long: it is dropped.
                    self.phase = Phase::Concluding(*purpose, String::new());
                } else {
                    self.phase = Phase::Ready;
                    self.turn.answered |= self.turn.open;
                    self.fail_model(*cause, message, hint.as_deref());
                }
            }
            EventBody::AnswerChecked { value, problems } => self.check(value, problems),
            EventBody::Compaction { kept_from, summary, .. } => {
                self.compact(*kept_from, summary.as_deref());
            }
            EventBody::Reflection(reflection) => self.reflect(reflection),
            EventBody::Plan { steps } => self.plan(steps),
            EventBody::Notice { message } => {
                self.remarked();
                self.notices.push(message.clone());
            }
            EventBody::LoopDetected { message, rescue, .. } => self.help(*rescue, message),
            EventBody::BudgetWarning { budget, message, .. } => {
                self.warned.insert(*budget);
                self.notices.push(message.clone());
            }
            EventBody::BudgetExceeded { budget, of, why } => {
                self.exceed(*budget, of.as_ref(), why.as_deref());
            }
            EventBody::ModelRetry { usage, .. } => self.spent += *usage,
            EventBody::AgentSpawned { child, name, background, .. } => {
                self.children.spawn(child, name, event.call.as_ref(), *background);
            }
            EventBody::AgentEnded { child, outcome, usage, message } => {
                self.spent += *usage;
                self.end_agent(child, outcome, *usage, message.as_deref());
            }
            body => {
                if let Some(call) = &event.call {
                    self.apply_to_call(call, body, event.ts);
                }
            }
        }
    }

    fn end_agent(&mut self, child: &RunId, outcome: &Outcome, usage: Usage, message: Option<&str>) {
        let how = (self.cancelled.is_some(), message.is_some());
        self.children.end(child, outcome, usage, how);
        // What one of its agents was not allowed to do, it did not do either. One that it waits for says so by the
        // answer to its call.
        if self.children.is_in_background(child) {
            self.denied.aside.refused |= outcome.status == Status::Denied;
            self.denied.aside.done |= outcome.status == Status::Completed;
        }
        if let Some(message) = message {
            let no_model = |failure: &Failure| failure.cause == Cause::ModelUnavailable;
            let found_none = self.failure.as_ref().is_some_and(no_model);
            self.children.tell(child, message, found_none);
            self.inbox.push(Message::text(Role::User, message));
        }
    }

    fn apply_to_call(&mut self, call: &CallId, body: &EventBody, now: Timestamp) {
        match body {
            EventBody::ApprovalAsked { fingerprint, .. } => {
                self.clock.ask(call);
                self.questions.entry(call.clone()).or_insert(now);
                if let Phase::Calling(batch) = &mut self.phase {
                    batch.ask(call, fingerprint);
                }
            }
            EventBody::ApprovalAnswered { rules, approved, message, arguments, by, .. } => {
                self.clock.answer(call);
                self.questions.remove(call);
                self.granted.extend_from_slice(rules);
                if let (true, Phase::Calling(batch)) = (*approved, &mut self.phase) {
                    batch.approve(call, arguments.as_ref(), by.as_deref());
                }
                if *call == self.rescue_call() {
                    self.hear_about_rescue(*approved, message.as_deref());
                }
            }
            EventBody::InquiryAsked { .. } => {
                self.clock.pause(call);
                self.questions.entry(call.clone()).or_insert(now);
            }
            EventBody::InquiryAnswered { .. } => {
                self.clock.go_on(call);
                self.questions.remove(call);
            }
            EventBody::AgentWaits { waits: true, .. } => self.clock.pause(call),
            EventBody::AgentWaits { waits: false, .. } => self.clock.go_on(call),
            EventBody::ToolCallDeferred { .. } => {
                self.clock.end(call);
                if let Phase::Calling(batch) = &mut self.phase {
                    batch.park(call);
                }
            }
            EventBody::ToolCallStarted { effects, repeat, .. } => {
                self.clock.begin(call);
                let begun_before = match &mut self.phase {
                    Phase::Calling(batch) => batch.begin(call, *repeat),
                    _ => false,
                };
                self.tool_calls += u32::from(!begun_before);
                if let Some(task) = &mut self.task {
                    task.ledger.note(effects);
                }
            }
            EventBody::ToolCallCompleted {
                tool_name, result, content, duration_ms, files, ..
            } => {
                self.over_with(call);
                self.see(files);
                let value = (tool_name == COMPLETE_TASK).then_some(&**result);
                self.answer_call(call, tool_name, Ok(value), content, *duration_ms);
            }
            EventBody::ToolCallFailed { tool_name, error, content, duration_ms, .. }
            | EventBody::ToolCallDenied { tool_name, error, content, duration_ms } => {
                self.over_with(call);
                if let EventBody::ToolCallFailed { files, .. } = body {
                    self.see(files);
                }
                if matches!(body, EventBody::ToolCallDenied { .. })
                    || self.children.was_denied(call)
                {
                    self.refuse(call, tool_name);
                }
                let said = error.message.as_str();
                self.answer_call(call, tool_name, Err(said), content, *duration_ms);
            }
            _ => {}
        }
    }

    /// A limit is reached. Where one was before, a last answer was wanted and is not to be had: how the run ends is for
    /// the first one to say.
    fn exceed(&mut self, limit: Limit, of: Option<&RunId>, why: Option<&str>) {
        if let Some(exceeded) = &mut self.exceeded {
            exceeded.is_final = true;
            return;
        }
        let of = of.filter(|of| **of != self.id).cloned();
        let why = why.map(str::to_owned);
        self.exceeded = Some(Exceeded { limit, of, why, is_final: false });
    }

    /// The model is told what there was to say about its last answer.
    fn remarked(&mut self) {
        match self.remark() {
            Some(Told::YouWereCutOff) => {
                self.due.remove(&Due::SayCutOff);
            }
            Some(Told::CallCompleteTask) => {
                self.due.remove(&Due::Remind);
            }
            _ => self.dropped_calls = 0,
        }
    }

    /// A call was not allowed.
    fn refuse(&mut self, call: &CallId, tool_name: &str) {
        let Phase::Calling(batch) = &mut self.phase else { return };
        if batch.refuse(call) {
            *self.refused.entry(tool_name.to_owned()).or_default() += 1;
        }
    }

    /// It makes no progress, and something is done about it.
    fn help(&mut self, rescue: Rescue, message: &str) {
        self.rescues += 1;
        match rescue {
            Rescue::Nudge => self.repetition.told = true,
            Rescue::Restart => {
                (self.repetition, self.restarted) = (Repetition::default(), true);
                self.due.insert(Due::StartOver);
            }
        }
        self.notices.push(message.to_owned());
    }

    /// A person was asked whether a run goes on that makes no progress.
    fn hear_about_rescue(&mut self, approved: bool, message: Option<&str>) {
        if approved {
            self.rescues += 1;
            (self.repetition, self.restarted) = (Repetition::default(), false);
            self.notices.extend(message.map(str::to_owned));
        } else {
            let message = message.unwrap_or("it made no progress, and was not to go on").to_owned();
            self.failure = Some(Failure { cause: Cause::Loop, message });
        }
    }

    /// Notes the content of files as a call last saw or left it.
    fn see(&mut self, files: &[FileSeen]) {
        for FileSeen { path, hash, .. } in files {
            match hash {
                Some(hash) => self.files.insert(path.clone(), hash.clone()),
                None => self.files.remove(path),
            };
        }
    }

    /// A call is over: nobody has to be asked about it any more.
    fn over_with(&mut self, call: &CallId) {
        self.clock.end(call);
        self.questions.remove(call);
    }

    fn start(&mut self, event: &Event) {
        let EventBody::RunStarted {
            task,
            model,
            prompt,
            attachments,
            history,
            system,
            tools,
            settings,
            origin: _,
        } = &event.body
        else {
            return;
        };
        let mut parts = attachments.clone();
        parts.push(Part::text(prompt));
        let overhead = text_tokens(system) + tools.iter().map(declaration_tokens).sum::<u64>();
        self.phase = Phase::Ready;
        self.settings = settings.clone();
        self.model.clone_from(model);
        self.system.clone_from(system);
        self.tools.clone_from(tools);
        let prompt_message = Message { role: Role::User, parts };
        self.conversation = Conversation::new(history.clone(), prompt_message, overhead);
        self.task = Some(TaskContext::new(task.clone(), prompt.clone()));
        if settings.strategy == Strategy::Planned {
            self.due.insert(Due::Plan);
        }
    }

    /// A turn begins: what the user and the runtime had to say since the last one is said.
    fn start_turn(&mut self, number: u32) {
        self.turn = Turn { number, open: true, answered: false };
        self.answer = None;
        self.denied.hear();
        let notices = std::mem::take(&mut self.notices);
        if !notices.is_empty() {
            self.conversation.push(Message::text(Role::User, notices.join("\n\n")));
        }
        self.fork = ForkState::None;
        self.hear();
    }

    /// The messages of the user enter the conversation.
    fn hear(&mut self) {
        if !self.inbox.is_empty() {
            // There is something new to do.
            self.due.remove(&Due::WrapUp);
            self.due.remove(&Due::Finish);
            self.due.remove(&Due::Remind);
        }
        for message in std::mem::take(&mut self.inbox) {
            self.conversation.push(message);
        }
    }

    /// A turn that is over asks for nothing any more.
    fn end_turn(&mut self) {
        self.turn.open = false;
        if let Phase::Asking(_) = self.phase {
            self.phase = Phase::Ready;
        }
    }

    fn ask_model(&mut self, purpose: Purpose, notice: Option<&str>) {
        self.phase = Phase::Asking(purpose);
        self.loss_is_charged = false;
        if purpose != Purpose::Grace || self.grace.is_some() {
            return;
        }
        self.grace = Some(self.grace_cause());
        self.due.remove(&Due::Finish);
        self.due.remove(&Due::Remind);
        if let Some(notice) = notice {
            self.conversation.push(Message::text(Role::User, notice));
        }
    }

    /// The model said something that belongs to the conversation.
    fn heed(&mut self, purpose: Purpose, message: &Message, stop: StopReason) {
        let words = message.words();
        let says_something = !words.trim().is_empty();
        if says_something {
            self.last_words = Some(words.clone());
        }
        let calls: Vec<_> = message.calls().cloned().collect();
        self.repetition.note_words(&words, fingerprint(&words));
        if !calls.is_empty() {
            self.pieces.clear();
            let completes = self.completes_by_call();
            let only_completion = purpose == Purpose::Grace || self.only_answers();
            // What was not taken is gone whole.
            let cut_off = stop == StopReason::Length && self.dropped_calls == 0;
            self.phase = Phase::Calling(Batch::new(calls, completes, only_completion, cut_off));
            return;
        }
        // A last answer that is refused does not hide why it was the last.
        if stop == StopReason::Refused && self.grace.is_none() {
            let message = if says_something { words } else { "it gave no reason".to_owned() };
            let message = format!("the model would not answer: {message}");
            self.failure = Some(Failure { cause: Cause::Error, message });
            return;
        }
        let cut_off = stop == StopReason::Length && purpose == Purpose::Main;
        let all = std::mem::take(&mut self.pieces) + &words;
        match self.settings.ending {
            _ if cut_off => {
                self.repetition.note(fingerprint(&words), "", self.settings.max_repeats);
                self.pieces = all;
                self.due.insert(Due::SayCutOff);
            }
            Ending::Text if says_something => self.answer = Some(Value::String(all)),
            Ending::Structured | Ending::StructuredOrCall if says_something => {
                self.phase = Phase::Checking(all);
            }
            _ => {
                let reminds = purpose == Purpose::Main && self.can_be_reminded();
                self.reminded |= reminds;
                self.due.insert(if reminds { Due::Remind } else { Due::Finish });
            }
        }
    }

    /// Tells whether there is a turn for it to do better, once.
    fn can_be_reminded(&self) -> bool {
        self.settings.ending == Ending::CompleteTask
            && !self.reminded
            && !self.only_answers()
            && self.turns_used() < self.settings.budget.working_turns()
    }

    fn fail_model(&mut self, cause: Cause, message: &str, hint: Option<&str>) {
        // What was tried last does not hide why it had to be tried.
        if self.cancelled.is_some() || self.grace.is_some() {
            return;
        }
        match cause {
            Cause::Timeout => {
                if self.exceeded.is_none() {
                    self.exceed(Limit::TurnTime, None, None);
                }
            }
            Cause::ContextWindow if !self.due.contains(&Due::Shorten) => {
                self.due.insert(Due::Shorten);
                // The turn is asked again when the conversation is shorter.
                self.turn.answered = false;
            }
            cause => {
                let message = match hint {
                    Some(hint) => format!("{message} ({hint})"),
                    None => message.to_owned(),
                };
                self.failure.get_or_insert(Failure { cause, message });
            }
        }
    }

    fn answer_call(
        &mut self,
        call: &CallId,
        tool_name: &str,
        outcome: Result<Option<&Value>, &str>,
        content: &[Part],
        duration_ms: Millis,
    ) {
        let Phase::Calling(batch) = &mut self.phase else { return };
        if !batch.answer(call, content, outcome.is_err()) {
            return;
        }
        if batch.is_completion(tool_name) {
            if let Ok(Some(value)) = outcome {
                self.answer = Some(value.clone());
            }
        } else if let Some(task) = &mut self.task {
            task.did(ActionResult {
                call: call.clone(),
                tool_name: tool_name.to_owned(),
                success: outcome.is_ok(),
                error: outcome.err().map(str::to_owned),
                duration_ms,
            });
        }
        if batch.is_answered() {
            self.close_batch();
        }
    }

    /// All calls are answered: the answers enter the conversation together.
    fn close_batch(&mut self) {
        let Phase::Calling(batch) = std::mem::replace(&mut self.phase, Phase::Ready) else {
            return;
        };
        let fingerprint = batch.fingerprint(|call| self.children.names(&self.id, call));
        self.repetition.note(fingerprint, batch.first_tool(), self.settings.max_repeats);
        self.refused_last.clone_from(batch.refused());
        if let Some(denied) = batch.was_denied() {
            self.denied.last = denied;
            self.denied.heard = Aside::default();
        }
        let look_back = match self.settings.reflection {
            ReflectionMode::Off => false,
            ReflectionMode::OnFailure => batch.failed_tool().is_some(),
            ReflectionMode::Always => true,
        };
        if look_back && self.answer.is_none() && self.fork != ForkState::Redirected {
            self.due.insert(Due::Reflect);
        }
        self.conversation.push(batch.into_message());
    }

    fn check(&mut self, value: &Value, problems: &[String]) {
        self.phase = Phase::Ready;
        if problems.is_empty() {
            self.answer = Some(value.clone());
            return;
        }
        self.repetition.note(fingerprint(&value.to_string()), "", self.settings.max_repeats);
        self.notices.push(problems.join("\n"));
    }
}

fn declaration_tokens(tool: &Declaration) -> u64 {
    text_tokens(&tool.name)
        + text_tokens(&tool.description)
        + text_tokens(tool.parameters.text().get())
}

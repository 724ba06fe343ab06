//! One use of the model: its answer as it comes, until it is whole, fails, or there is no time left.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use convoke_core::hook::Moment;
use convoke_core::ledger::Wish;
use convoke_core::run::{COMPLETE_TASK, estimate};
use convoke_core::{Cause, Ending, EventBody, Limit, Message, Millis, Purpose, Role, Usage};
use convoke_model::{
    Answer, Chunk, ModelError, ModelErrorKind, ModelStream, OutputSchema, Request, ToolChoice,
};
use convoke_tool::cut_middle;
use futures_util::StreamExt;

use crate::drive::{Driver, Unrecorded, out_of_time, sleep_for};
use crate::prompts;
use crate::settle::request;
use crate::tree::{SetAside, Shortage};

/// The longest answer that is set aside where nobody knows how long a model's answers get.
const UNKNOWN_MAX_OUTPUT: u64 = 8_192;

/// How often a model is asked again whose answer broke off after something of it was said.
const MAX_BROKEN: u32 = 2;
/// How long to wait before it is asked again; every time twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest of these waits.
const LAST_WAIT: Duration = Duration::from_secs(30);

/// Returns how long to wait after so many answers that broke off, and one more.
fn pause_after(broken: u32) -> Duration {
    FIRST_WAIT.saturating_mul(2_u32.saturating_pow(broken)).min(LAST_WAIT)
}

/// The longest answer that is taken, words and thoughts together, in bytes: about two million tokens, which no model
/// gives. An endless one is cut here, before it fills the memory.
const MAX_ANSWER: u64 = 8 * 1024 * 1024;
/// How much of an answer is kept that was not whole, in bytes.
const MAX_PARTIAL: usize = 256 * 1024;

/// Stands before a thought where somebody watches an agent they called.
const THOUGHT_MARK: &str = "🤖💭 ";

/// What one request is.
pub(crate) struct Question {
    pub(crate) purpose: Purpose,
    pub(crate) max_output: Option<u64>,
    pub(crate) with_tools: bool,
    /// How much of the conversation is sent; all of it, unless it is summed up.
    pub(crate) messages: Option<usize>,
}

/// What came of an answer so far.
#[derive(Default)]
struct Heard {
    words: String,
    /// How much came of all kinds.
    bytes: u64,
    /// Whether the last piece was a thought.
    thinks: bool,
}

/// Why there is no answer.
enum NoAnswer {
    Failed(ModelError),
    OutOfTime(Limit),
    Cancelled(Cause),
    /// A hook did not let it be asked.
    Refused(String),
}

impl Driver {
    /// Asks, and records the answer or that there is none.
    pub(crate) async fn ask(&self, question: Question) -> Result<(), Unrecorded> {
        let purpose = question.purpose;
        let (mut request, estimate) = {
            let run = self.state.lock();
            (request(&run, purpose), run.context_tokens())
        };
        let Some(set_aside) = self.set_aside(&question, estimate).await? else { return Ok(()) };
        let mut question = question;
        if let Some(set_aside) = &set_aside {
            question.max_output = set_aside.max_output().or(question.max_output);
            if let EventBody::ModelRequest { reserved, .. } = &mut request {
                *reserved = Some(set_aside.tokens());
            }
        }
        self.record(request.clone())?;
        let mut heard = Heard::default();
        let answered = match self.allowed(&request).await {
            Ok(()) => self.answer(&question, &mut heard, estimate).await,
            Err(why) => Err(why),
        };
        match answered {
            Ok(answer) => {
                self.broken.store(0, Ordering::Relaxed);
                self.answered(purpose, answer)
            }
            Err(NoAnswer::Failed(error)) if self.may_ask_again(purpose, &error, &heard) => {
                let delay = self.announce_another(&error, &heard, estimate)?;
                // What this took is counted; what the next takes is set aside anew.
                drop(set_aside);
                self.wait(delay).await;
                Ok(())
            }
            Err(why) => self.unanswered(purpose, why, heard, estimate),
        }
    }

    /// Tells whether to ask again. Until something of an answer was said, the model does that by itself; after that,
    /// what was said is replaced by what comes then. A server of this machine is not asked again by the model, since it
    /// most likely does not run; where something was answered before, it is probably being started. Who wants no repeats
    /// gets none, and nothing comes after a last answer: there has to be time for it.
    fn may_ask_again(&self, purpose: Purpose, error: &ModelError, heard: &Heard) -> bool {
        let broken = self.broken.load(Ordering::Relaxed);
        let retries = self.agent.model.retries();
        let run = self.state.lock();
        let left = run.time_left_for(purpose, self.now());
        if purpose == Purpose::Grace && left.is_some_and(|left| left <= pause_after(broken)) {
            return false;
        }
        if heard.bytes > 0 {
            return error.repeatable && broken < MAX_BROKEN.min(retries);
        }
        error.not_running && broken < retries && !run.spent().is_empty()
    }

    /// Says that the model is asked again, and returns after how long. The run then decides to ask as ever, within
    /// its limits.
    fn announce_another(
        &self,
        error: &ModelError,
        heard: &Heard,
        estimate: u64,
    ) -> Result<Duration, Unrecorded> {
        let broken = self.broken.fetch_add(1, Ordering::Relaxed);
        let delay = pause_after(broken);
        let begun = heard.bytes > 0;
        let reason =
            if begun { format!("{error}; what was said is replaced") } else { error.to_string() };
        let received = error.received_bytes.max(heard.bytes);
        let usage = self.broken_off(error.accepted || begun, received, estimate);
        let (attempt, delay_ms) = (broken.saturating_add(2), Millis::new(delay));
        self.record(EventBody::ModelRetry { attempt, delay_ms, reason, usage })?;
        Ok(delay)
    }

    /// Waits, unless the run is to stop or has no time left.
    async fn wait(&self, delay: Duration) {
        let left = self.state.lock().time_left(self.now());
        tokio::select! {
            biased;
            _ = self.control.cancelled() => {}
            () = sleep_for(left) => {}
            () = tokio::time::sleep(delay) => {}
        }
    }

    /// Sets aside what an answer takes, with everybody further up. Returns nothing if it cannot be asked for,
    /// which is recorded; and nothing inside where nobody is limited.
    async fn set_aside(
        &self,
        question: &Question,
        estimate: u64,
    ) -> Result<Option<Option<SetAside<'_>>>, Unrecorded> {
        let (tree, run) = (&self.member.tree, self.recorder.run());
        if tree.is_free(run) {
            return Ok(Some(None));
        }
        let facts = self.agent.model.facts();
        let wish = Wish {
            input: estimate,
            output: [
                question.max_output,
                self.agent.model_settings.max_output_tokens,
                facts.max_output,
            ]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(UNKNOWN_MAX_OUTPUT),
            price: facts.price,
        };
        let left = self.state.lock().time_left_for(question.purpose, self.now());
        let waits = || {
            let tokens = wish.input.saturating_add(wish.output);
            // What cannot be recorded closes the stream, which the next durable event reports.
            drop(self.record(EventBody::BudgetAwaited { tokens }));
        };
        let refused = tokio::select! {
            biased;
            reserved = tree.reserve(run, &wish, waits) => match reserved {
                Ok(set_aside) => return Ok(Some(Some(set_aside))),
                Err(Shortage { limit, of, why }) => {
                    let why = why.filter(|_| of != *run);
                    EventBody::BudgetExceeded { budget: limit, of: Some(of), why }
                }
            },
            cause = self.control.cancelled() => EventBody::RunCancelled { cause },
            () = sleep_for(left) => out_of_time(),
        };
        self.record(refused)?;
        Ok(None)
    }

    /// Lets hooks have their say before the model is asked.
    async fn allowed(&self, request: &EventBody) -> Result<(), NoAnswer> {
        let hooks = self.tools.hooks();
        tokio::select! {
            biased;
            told = hooks.tell(Moment::BeforeModel, None, request, &self.recorder) => {
                told.map_err(NoAnswer::Refused)
            }
            cause = self.control.cancelled() => Err(NoAnswer::Cancelled(cause)),
        }
    }

    /// Waits for the whole answer, handing out its pieces.
    async fn answer(
        &self,
        question: &Question,
        heard: &mut Heard,
        estimate: u64,
    ) -> Result<Answer, NoAnswer> {
        let mut stream = self.open(question);
        // One timer and one waiter for the whole answer, which may come in a thousand pieces.
        let (patience, limit) = self.patience();
        let mut deadline = pin!(tokio::time::sleep(patience));
        let mut cancelled = pin!(self.control.cancelled());
        loop {
            let chunk = tokio::select! {
                biased;
                cause = &mut cancelled => return Err(NoAnswer::Cancelled(cause)),
                () = &mut deadline => return Err(NoAnswer::OutOfTime(limit)),
                chunk = stream.next() => chunk,
            };
            match chunk {
                Some(Ok(Chunk::End(answer))) => return Ok(answer),
                Some(Ok(chunk)) => {
                    self.hand_out(chunk, heard, estimate);
                    if heard.bytes > MAX_ANSWER {
                        return Err(NoAnswer::Failed(self.endless()));
                    }
                }
                Some(Err(error)) => return Err(NoAnswer::Failed(error)),
                None => {
                    let provider = self.agent.model.name().provider().to_owned();
                    let message = "the answer ended before it was whole";
                    return Err(NoAnswer::Failed(ModelError::new(
                        ModelErrorKind::Cut,
                        provider,
                        message,
                    )));
                }
            }
        }
    }

    /// Says that an answer was cut. It is not asked for again: the next one would be as long.
    fn endless(&self) -> ModelError {
        let provider = self.agent.model.name().provider().to_owned();
        let megabytes = MAX_ANSWER / (1024 * 1024);
        let message = format!("the answer was cut: it is longer than {megabytes} MB");
        ModelError::new(ModelErrorKind::Malformed, provider, message)
    }

    /// Returns how long an answer may take, and which limit that is.
    fn patience(&self) -> (Duration, Limit) {
        let run = self.state.lock();
        let turn = run.settings().budget.turn_time_ms.get();
        match run.time_left(self.now()) {
            Some(left) if left <= turn => (left, Limit::Time),
            _ => (turn, Limit::TurnTime),
        }
    }

    fn open(&self, question: &Question) -> ModelStream {
        let run = self.state.lock();
        let all = run.messages();
        let aside = match question.purpose {
            Purpose::Main | Purpose::Grace => None,
            Purpose::Compact => Some(prompts::COMPACT),
            Purpose::Reflect => Some(prompts::REFLECT),
            Purpose::Plan => Some(prompts::PLAN),
        };
        let with_aside = aside.map(|text| {
            let sent = question.messages.and_then(|end| all.get(..end)).unwrap_or(all);
            let mut messages = sent.to_vec();
            messages.push(Message::text(Role::User, text.trim_end()));
            messages
        });
        let structured = run.settings().ending == Ending::Structured && question.purpose.is_turn();
        let output = self
            .completion
            .spec()
            .filter(|_| structured)
            .map(|spec| OutputSchema { name: spec.name.clone(), schema: spec.schema.clone() });
        let tool_choice = match question {
            _ if run.tools().is_empty() => ToolChoice::Auto,
            Question { with_tools: true, .. } => ToolChoice::Auto,
            Question { purpose, .. } if purpose.is_turn() && run.completes_by_call() => {
                ToolChoice::Only(COMPLETE_TASK)
            }
            _ => ToolChoice::None,
        };
        self.agent.model.stream(&Request {
            system: run.system(),
            tools: run.tools(),
            tool_choice,
            messages: with_aside.as_deref().unwrap_or(all),
            settings: &self.agent.model_settings,
            max_output_tokens: match (
                question.max_output,
                self.agent.model_settings.max_output_tokens,
            ) {
                (Some(room), Some(wish)) => Some(room.min(wish)),
                (room, wish) => room.or(wish),
            },
            output: output.as_ref(),
        })
    }

    fn hand_out(&self, chunk: Chunk, heard: &mut Heard, estimate: u64) {
        let thought_before = std::mem::take(&mut heard.thinks);
        let body = match chunk {
            Chunk::Text(text) => {
                heard.bytes += text.len() as u64;
                heard.words.push_str(&text);
                EventBody::ModelDelta { text }
            }
            Chunk::Thought(text) => {
                heard.bytes += text.len() as u64;
                heard.thinks = true;
                if let Some(caller) = &self.caller {
                    let mark = if thought_before { "" } else { THOUGHT_MARK };
                    caller.progress.text(format!("{mark}{text}"));
                }
                EventBody::ModelThought { text }
            }
            Chunk::ToolCall { name } => EventBody::ModelToolCall { tool_name: name },
            Chunk::Retry(retry) => EventBody::ModelRetry {
                attempt: retry.attempt,
                delay_ms: Millis::new(retry.delay),
                reason: retry.reason,
                usage: self.broken_off(retry.accepted, retry.received_bytes, estimate),
            },
            _ => return,
        };
        // What cannot be recorded closes the stream, which the next durable event reports.
        drop(self.record(body));
    }

    fn answered(&self, purpose: Purpose, answer: Answer) -> Result<(), Unrecorded> {
        let Answer { mut message, usage, stop, .. } = answer;
        let usage = self.priced(self.known(usage, &message));
        let dropped_calls = message.drop_calls_after(self.agent.model.facts().calls_taken());
        self.state.lock().name_calls(&mut message);
        self.record(EventBody::ModelResponse { purpose, message, usage, stop, dropped_calls })?;
        let total = *self.state.lock().spent();
        self.record(EventBody::Usage(total))
    }

    /// A provider that does not say what an answer used has not given it for nothing.
    fn known(&self, usage: Usage, message: &Message) -> Usage {
        if !usage.is_empty() {
            return usage;
        }
        let input_tokens = self.state.lock().context_tokens();
        Usage { input_tokens, output_tokens: estimate(message), estimated: true, ..usage }
    }

    fn priced(&self, mut usage: Usage) -> Usage {
        usage.cost = self.agent.model.facts().price.map(|price| price.of(&usage));
        usage
    }

    /// What an attempt that broke off is taken to have used: nothing if it was never accepted, and what
    /// was sent and received otherwise.
    fn broken_off(&self, accepted: bool, bytes: u64, estimate: u64) -> Usage {
        if !accepted && bytes == 0 {
            return Usage::default();
        }
        self.priced(Usage {
            input_tokens: estimate,
            output_tokens: bytes.div_ceil(4),
            estimated: true,
            ..Usage::default()
        })
    }

    fn unanswered(
        &self,
        purpose: Purpose,
        why: NoAnswer,
        heard: Heard,
        estimate: u64,
    ) -> Result<(), Unrecorded> {
        let begun = self.broken_off(true, heard.bytes, estimate);
        let status = match &why {
            NoAnswer::Failed(error) => error.status,
            NoAnswer::OutOfTime(_) | NoAnswer::Cancelled(_) | NoAnswer::Refused(_) => None,
        };
        let (cause, error, message, hint, usage) = match why {
            NoAnswer::Cancelled(cause) => {
                self.record(EventBody::RunCancelled { cause })?;
                (cause, "cancelled", "the run was stopped".to_owned(), None, begun)
            }
            NoAnswer::Refused(reason) => {
                let usage = Usage::default();
                (Cause::Denied, "hook", format!("the model was not asked: {reason}"), None, usage)
            }
            NoAnswer::OutOfTime(limit) => {
                if limit == Limit::Time && purpose != Purpose::Grace {
                    self.record(out_of_time())?;
                }
                let message = "the answer did not come in time".to_owned();
                (Cause::Timeout, "timeout", message, None, begun)
            }
            NoAnswer::Failed(error) => {
                let cause = match error.kind {
                    ModelErrorKind::ContextTooLong => Cause::ContextWindow,
                    ModelErrorKind::NotRecorded => Cause::Error,
                    _ => Cause::ModelUnavailable,
                };
                let received = error.received_bytes.max(heard.bytes);
                let usage = self.broken_off(error.accepted, received, estimate);
                (cause, error.kind.as_str(), error.to_string(), error.hint, usage)
            }
        };
        self.record(EventBody::ModelFailed {
            purpose,
            cause,
            error: error.to_owned(),
            message,
            status,
            hint,
            partial: (!heard.words.trim().is_empty())
                .then(|| cut_middle(&heard.words, MAX_PARTIAL).unwrap_or(heard.words)),
            usage,
        })
    }
}

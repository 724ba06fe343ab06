//! A model that says what a test tells it.
//!
//! ```
//! use convoke_model::{ScriptedModel, Turn};
//! use serde_json::json;
//!
//! let model = ScriptedModel::new([
//!     Turn::call("read_file", json!({ "path": "x" })),
//!     Turn::thought("that was easy").and_text("done"),
//! ]);
//! ```
//!
//! It is as deterministic as its script: turns are used up in the order requests are made, and the ids of
//! calls follow from the conversation, so that they are never the same twice in one.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use convoke_core::{Message, ModelFacts, Part, Role, ToolCall, Usage};
use futures_util::{StreamExt, stream};
use serde_json::Value;

use crate::error::{ModelError, ModelErrorKind};
use crate::model::{Answer, Chunk, Model, ModelStream, StopReason};
use crate::name::ModelName;
use crate::request::Request;
use crate::retry::RetryPolicy;
use crate::snapshot::RequestSnapshot;

/// One answer of a script: what is said, in order, and how it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    steps: Vec<Step>,
    usage: Usage,
    stop: StopReason,
    chunk_chars: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Text(String),
    Thought(String),
    Call { name: String, arguments: Value },
    Part(Part),
    Wait(Duration),
    Fail(ModelError),
}

impl Turn {
    /// Says nothing, until something is added.
    pub fn empty() -> Self {
        Self {
            steps: Vec::new(),
            usage: Usage::default(),
            stop: StopReason::Done,
            chunk_chars: usize::MAX,
        }
    }

    /// Says a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::empty().and_text(text)
    }

    /// Thinks.
    pub fn thought(text: impl Into<String>) -> Self {
        Self::empty().and_thought(text)
    }

    /// Asks for a tool.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::empty().and_call(name, arguments)
    }

    /// Waits, on tokio's clock.
    pub fn wait(duration: Duration) -> Self {
        Self::empty().and_wait(duration)
    }

    /// Fails.
    pub fn error(error: ModelError) -> Self {
        Self::empty().and_error(error)
    }

    /// Then says a text.
    #[must_use]
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.and(Step::Text(text.into()))
    }

    /// Then thinks.
    #[must_use]
    pub fn and_thought(self, text: impl Into<String>) -> Self {
        self.and(Step::Thought(text.into()))
    }

    /// Then asks for a tool.
    #[must_use]
    pub fn and_call(self, name: impl Into<String>, arguments: Value) -> Self {
        self.and(Step::Call { name: name.into(), arguments })
    }

    /// Then adds a part to the message without showing it: a signature, for instance.
    #[must_use]
    pub fn and_part(self, part: Part) -> Self {
        self.and(Step::Part(part))
    }

    /// Then waits, on tokio's clock.
    #[must_use]
    pub fn and_wait(self, duration: Duration) -> Self {
        self.and(Step::Wait(duration))
    }

    /// Then fails; what follows is not reached.
    #[must_use]
    pub fn and_error(self, error: ModelError) -> Self {
        self.and(Step::Fail(error))
    }

    /// Sets what the answer used.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets how many tokens the answer took in and gave back.
    #[must_use]
    pub fn tokens(self, input_tokens: u64, output_tokens: u64) -> Self {
        self.usage(Usage { input_tokens, output_tokens, ..Usage::default() })
    }

    /// Sets why the answer ended.
    #[must_use]
    pub fn stop(mut self, stop: StopReason) -> Self {
        self.stop = stop;
        self
    }

    /// Hands out texts and thoughts in chunks of this many characters, instead of whole.
    #[must_use]
    pub fn in_chunks_of(mut self, chars: usize) -> Self {
        self.chunk_chars = chars.max(1);
        self
    }

    fn and(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Returns what is shown or done, in order, and the whole answer.
    fn play(self, calls_so_far: usize) -> Vec<Event> {
        let (mut events, mut parts) = (Vec::new(), Vec::new());
        let mut calls = calls_so_far;
        for step in self.steps {
            match step {
                Step::Text(text) => {
                    let pieces = pieces(&text, self.chunk_chars);
                    events.extend(pieces.map(|piece| Event::Show(Chunk::Text(piece))));
                    parts.push(Part::Text { text });
                }
                Step::Thought(text) => {
                    let pieces = pieces(&text, self.chunk_chars);
                    events.extend(pieces.map(|piece| Event::Show(Chunk::Thought(piece))));
                    parts.push(Part::Thought { text });
                }
                Step::Call { name, arguments } => {
                    calls += 1;
                    events.push(Event::Show(Chunk::ToolCall { name: name.clone() }));
                    let id = format!("call_{calls}");
                    parts.push(Part::ToolCall(ToolCall::new(id, name, arguments)));
                }
                Step::Part(part) => parts.push(part),
                Step::Wait(duration) => events.push(Event::Wait(duration)),
                Step::Fail(error) => {
                    events.push(Event::Fail(error));
                    return events;
                }
            }
        }
        let message = Message { role: Role::Assistant, parts };
        let answer = Answer { message, usage: self.usage, stop: self.stop };
        events.push(Event::Show(Chunk::End(answer)));
        events
    }
}

#[derive(Debug)]
enum Event {
    Show(Chunk),
    Wait(Duration),
    Fail(ModelError),
}

fn pieces(text: &str, chars: usize) -> impl Iterator<Item = String> + use<> {
    let mut rest = text.to_owned();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(chars).map_or(rest.len(), |(end, _)| end);
        let tail = rest.split_off(end);
        Some(std::mem::replace(&mut rest, tail))
    })
}

/// A model that says what a test tells it, and remembers what it was asked.
pub struct ScriptedModel {
    name: ModelName,
    facts: ModelFacts,
    script: Script,
    remembers: bool,
    retries: u32,
    requests: Mutex<Vec<RequestSnapshot>>,
}

enum Script {
    Turns(Mutex<VecDeque<Turn>>),
    Function(Box<dyn Fn(&RequestSnapshot) -> Turn + Send + Sync>),
}

impl ScriptedModel {
    /// Makes a model that gives these answers, one after the other. A request after the last one fails
    /// with [`ModelErrorKind::NotRecorded`].
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::with_script(Script::Turns(Mutex::new(turns.into_iter().collect())))
    }

    /// Makes a model whose answers follow from the requests.
    pub fn from_fn(answer: impl Fn(&RequestSnapshot) -> Turn + Send + Sync + 'static) -> Self {
        Self::with_script(Script::Function(Box::new(answer)))
    }

    fn with_script(script: Script) -> Self {
        Self {
            name: ModelName::new("scripted", "model"),
            facts: ModelFacts::default(),
            script,
            remembers: true,
            retries: RetryPolicy::default().max_attempts.saturating_sub(1),
            requests: Mutex::default(),
        }
    }

    /// Gives the model another name than `scripted/model`.
    #[must_use]
    pub fn named(mut self, name: ModelName) -> Self {
        self.name = name;
        self
    }

    /// Gives the model a window, a longest answer, a price.
    #[must_use]
    pub fn with_facts(mut self, facts: ModelFacts) -> Self {
        self.facts = facts;
        self
    }

    /// Says how many times a request is made again that failed. The model itself never does it.
    #[must_use]
    pub const fn with_retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Makes the model forget what it was asked, where thousands of them or of requests would fill the
    /// memory.
    #[must_use]
    pub fn forgetful(mut self) -> Self {
        self.remembers = false;
        self
    }

    /// Returns what the model was asked so far.
    pub fn requests(&self) -> Vec<RequestSnapshot> {
        lock(&self.requests).clone()
    }

    /// Returns how many turns of a list are left; none of a function.
    pub fn remaining(&self) -> usize {
        match &self.script {
            Script::Turns(turns) => lock(turns).len(),
            Script::Function(_) => 0,
        }
    }

    fn next_turn(&self, request: &Request<'_>) -> Turn {
        let turn = match &self.script {
            Script::Turns(turns) => {
                if self.remembers {
                    lock(&self.requests).push(RequestSnapshot::of(request));
                }
                lock(turns).pop_front()
            }
            Script::Function(answer) => {
                let snapshot = RequestSnapshot::of(request);
                let turn = answer(&snapshot);
                if self.remembers {
                    lock(&self.requests).push(snapshot);
                }
                Some(turn)
            }
        };
        turn.unwrap_or_else(|| {
            Turn::error(
                ModelError::new(
                    ModelErrorKind::NotRecorded,
                    self.name.provider(),
                    "the script has no turn left for this request",
                )
                .hint("add a turn to the script"),
            )
        })
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ScriptedModel")
            .field("name", &self.name)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn retries(&self) -> u32 {
        self.retries
    }

    fn stream(&self, request: &Request<'_>) -> ModelStream {
        let parts = request.messages.iter().flat_map(|message| &message.parts);
        let calls = parts.filter(|part| matches!(part, Part::ToolCall(_))).count();
        let events = self.next_turn(request).play(calls);
        Box::pin(stream::iter(events).filter_map(|event| async {
            match event {
                Event::Show(chunk) => Some(Ok(chunk)),
                Event::Fail(error) => Some(Err(error)),
                Event::Wait(duration) => {
                    tokio::time::sleep(duration).await;
                    None
                }
            }
        }))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;

    async fn ask(model: &ScriptedModel, messages: &[Message]) -> Vec<Result<Chunk, ModelError>> {
        model.stream(&Request::new(messages)).collect().await
    }

    fn answer(items: &[Result<Chunk, ModelError>]) -> &Answer {
        match items.last() {
            Some(Ok(Chunk::End(answer))) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn turns_are_given_in_order_and_requests_are_kept() {
        let model = ScriptedModel::new([
            Turn::call("read_file", json!({ "path": "x" })),
            Turn::thought("hm").and_text("done").tokens(7, 2).in_chunks_of(3),
        ]);
        let mut messages = vec![Message::text(Role::User, "go")];
        let items = ask(&model, &messages).await;
        assert_eq!(items[0], Ok(Chunk::ToolCall { name: "read_file".to_owned() }));
        let first = answer(&items);
        let call = ToolCall::new("call_1", "read_file", json!({ "path": "x" }));
        assert_eq!(first.message.parts, [Part::ToolCall(call)]);

        messages.push(first.message.clone());
        let items = ask(&model, &messages).await;
        let shown: Vec<_> = items[..3].iter().map(|item| item.clone().unwrap()).collect();
        assert_eq!(
            shown,
            [
                Chunk::Thought("hm".to_owned()),
                Chunk::Text("don".to_owned()),
                Chunk::Text("e".to_owned()),
            ]
        );
        assert_eq!(answer(&items).usage.input_tokens, 7);
        let requests = model.requests();
        assert_eq!((requests.len(), requests[1].messages.len()), (2, 2));
        assert_eq!(model.remaining(), 0);
    }

    #[tokio::test]
    async fn ids_go_on_where_the_conversation_is() {
        let model = ScriptedModel::from_fn(|_| Turn::call("a", json!({})).and_call("b", json!({})));
        let said = answer(&ask(&model, &[]).await).message.clone();
        let more = answer(&ask(&model, &[said]).await).message.clone();
        let ids = more.parts.iter().map(|part| match part {
            Part::ToolCall(call) => call.id.as_str(),
            other => panic!("{other:?}"),
        });
        assert_eq!(ids.collect::<Vec<_>>(), ["call_3", "call_4"]);
    }

    #[tokio::test]
    async fn a_script_that_has_run_out_says_so() {
        let model = ScriptedModel::new([]);
        let items = ask(&model, &[]).await;
        let error = items[0].as_ref().unwrap_err();
        assert_eq!((error.kind, error.repeatable), (ModelErrorKind::NotRecorded, false));
        assert_eq!(error.message, "the script has no turn left for this request");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_and_errors_come_where_they_are_put() {
        let error = ModelError::new(ModelErrorKind::Cut, "scripted", "cut");
        let turn = Turn::text("a").and_wait(Duration::from_secs(9)).and_error(error.clone());
        let model = ScriptedModel::new([turn]).forgetful();
        let start = Instant::now();
        let items = ask(&model, &[]).await;
        assert_eq!(items, [Ok(Chunk::Text("a".to_owned())), Err(error)]);
        assert_eq!(start.elapsed(), Duration::from_secs(9));
        assert_eq!(model.requests(), []);
    }

    #[tokio::test]
    async fn a_function_sees_the_request() {
        let model =
            ScriptedModel::from_fn(|request| Turn::text(request.messages.len().to_string()));
        let items = ask(&model, &[Message::text(Role::User, "hi")]).await;
        assert_eq!(items[0], Ok(Chunk::Text("1".to_owned())));
    }
}

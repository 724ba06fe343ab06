//! Replaying: an answer for every request that was recorded, an explanation for every other.

use std::fmt;
use std::io::BufRead;
use std::sync::{Mutex, MutexGuard, PoisonError};

use convoke_core::{ModelFacts, Part};
use futures_util::stream;
use serde_json::{Map, Value};

use super::difference::first_difference;
use super::messages::{Messages, NodeId};
use super::placeholder::Placeholders;
use super::{CassetteError, FIELDS, Header, KeptError, KeptRequest, VERSION};
use crate::error::{ModelError, ModelErrorKind};
use crate::model::{Answer, Chunk, Model, ModelStream};
use crate::name::ModelName;
use crate::request::Request;

/// A model that gives the answers of a recording, each once.
///
/// A request gets the first answer not used yet whose request equals it, so runs in parallel may ask in
/// any order. A request that equals none fails with [`ModelErrorKind::NotRecorded`], and the error names the
/// first difference from the nearest recorded one.
pub struct Replay {
    name: ModelName,
    facts: ModelFacts,
    placeholders: Placeholders,
    messages: Messages,
    exchanges: Vec<Exchange>,
    used: Mutex<Vec<bool>>,
}

#[derive(Debug)]
struct Exchange {
    fields: Vec<Value>,
    /// The last message of the request.
    last: Option<NodeId>,
    outcome: Result<Answer, ModelError>,
}

impl Replay {
    /// Reads a recording to its end. Each placeholder is a value and the name that stands for it.
    pub fn open(
        reader: impl BufRead,
        placeholders: Vec<(String, &'static str)>,
    ) -> Result<Self, CassetteError> {
        let mut lines = reader.lines().enumerate().map(|(place, line)| {
            let line = line.map_err(|error| wrong(place, error.to_string()))?;
            let value: Map<String, Value> = serde_json::from_str(&line)
                .map_err(|error| wrong(place, format!("not a JSON object ({error})")))?;
            Ok((place, value))
        });
        let (place, header) =
            lines.next().unwrap_or_else(|| Err(wrong(0, "the recording is empty")))?;
        let header: Header = serde_json::from_value(Value::Object(header)).map_err(|error| {
            wrong(place, format!("not the first line of a recording ({error})"))
        })?;
        if header.cassette != VERSION {
            let version = header.cassette;
            return Err(wrong(place, format!("version {version} is not known, only {VERSION}")));
        }
        let mut replay = Self {
            name: header.model.parse().map_err(|error| wrong(place, format!("{error}")))?,
            facts: header.facts,
            placeholders: Placeholders::new(placeholders),
            messages: Messages::default(),
            exchanges: Vec::new(),
            used: Mutex::default(),
        };
        for line in lines {
            let (place, line) = line?;
            let exchange = replay.read(line).map_err(|message| wrong(place, message))?;
            replay.exchanges.push(exchange);
        }
        replay.used = Mutex::new(vec![false; replay.exchanges.len()]);
        Ok(replay)
    }

    /// Returns how many exchanges have not been used yet.
    pub fn remaining(&self) -> usize {
        self.used().iter().filter(|used| !**used).count()
    }

    /// Returns the lines of the recording, from 1, whose exchanges have not been used yet.
    pub fn unused_lines(&self) -> Vec<usize> {
        let used = self.used();
        // The first line is the heading.
        used.iter().zip(2..).filter(|(used, _)| !**used).map(|(_, line)| line).collect()
    }

    fn used(&self) -> MutexGuard<'_, Vec<bool>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&mut self, mut line: Map<String, Value>) -> Result<Exchange, String> {
        let Some(Value::Object(mut request)) = line.remove("request") else {
            return Err("there is no request".to_owned());
        };
        let before = self.exchanges.last().map(|exchange| exchange.fields.as_slice());
        let fields = FIELDS.iter().enumerate().map(|(place, name)| {
            request
                .remove(*name)
                .or_else(|| before.and_then(|before| before.get(place).cloned()))
                .ok_or_else(|| format!("the request has no `{name}`, nor has one before it"))
        });
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        let mut last = match request.remove("follows") {
            Some(number) => Some(self.numbered(&number).ok_or_else(|| {
                format!("the request follows message {number}, which is not there")
            })?),
            None => None,
        };
        let Some(Value::Array(messages)) = request.remove("messages") else {
            return Err("the request has no messages".to_owned());
        };
        for message in messages {
            last = Some(self.messages.add(last, message));
        }
        let outcome = self.read_outcome(line, last)?;
        Ok(Exchange { fields, last, outcome })
    }

    fn numbered(&self, number: &Value) -> Option<NodeId> {
        self.messages.numbered(usize::try_from(number.as_u64()?).ok()?)
    }

    fn read_outcome(
        &mut self,
        mut line: Map<String, Value>,
        last: Option<NodeId>,
    ) -> Result<Result<Answer, ModelError>, String> {
        if let Some(mut answer) = line.remove("answer") {
            let message = answer.get("message").cloned().unwrap_or_default();
            self.messages.add(last, message);
            self.placeholders.restore(&mut answer);
            let answer = serde_json::from_value(answer);
            return answer.map(Ok).map_err(|error| format!("the answer is not one ({error})"));
        }
        let mut error = line.remove("error").ok_or("there is neither an answer nor an error")?;
        self.placeholders.restore(&mut error);
        let error: KeptError = serde_json::from_value(error)
            .map_err(|error| format!("the error is not one ({error})"))?;
        Ok(Err(error.into_error(self.name.provider())))
    }

    fn answer(&self, request: &KeptRequest) -> Result<&Answer, ModelError> {
        let walked = self.messages.walk(&request.messages);
        let mut used = self.used();
        if walked.len() == request.messages.len() {
            let last = walked.last().copied();
            for (exchange, used) in self.exchanges.iter().zip(used.iter_mut()) {
                if !*used && exchange.last == last && exchange.fields == request.fields {
                    *used = true;
                    return exchange.outcome.as_ref().map_err(Clone::clone);
                }
            }
        }
        let unused =
            self.exchanges.iter().zip(used.iter()).filter(|(_, used)| !**used).map(|(one, _)| one);
        Err(self.explain(request, &walked, unused))
    }

    /// Names the first difference from the unused exchange that shares the longest beginning.
    fn explain<'a>(
        &self,
        request: &KeptRequest,
        walked: &[NodeId],
        unused: impl Iterator<Item = &'a Exchange>,
    ) -> ModelError {
        let shared = |exchange: &Exchange| {
            let conversation = self.messages.conversation(exchange.last);
            conversation.iter().zip(walked).take_while(|((id, _), known)| id == *known).count()
        };
        let nearest = unused
            .map(|exchange| (shared(exchange), exchange))
            .reduce(|best, next| if next.0 > best.0 { next } else { best });
        let message = match nearest {
            None => format!(
                "this request was not recorded: all {} recorded exchanges have been used",
                self.exchanges.len()
            ),
            Some((_, exchange)) => match self.difference(request, exchange) {
                Some(difference) => format!(
                    "this request was not recorded; the nearest one differs at {}: expected {}, got {}",
                    difference.path, difference.expected, difference.got
                ),
                // Cannot be: a request without a difference was found before.
                None => "this request was not recorded".to_owned(),
            },
        };
        ModelError::new(ModelErrorKind::NotRecorded, self.name.provider(), message)
            .hint("record it again with --record")
    }

    fn difference(
        &self,
        request: &KeptRequest,
        exchange: &Exchange,
    ) -> Option<super::difference::Difference> {
        let fields = FIELDS.iter().zip(exchange.fields.iter().zip(&request.fields));
        let mut fields =
            fields.filter_map(|(name, (one, other))| first_difference(name, one, other));
        fields.next().or_else(|| {
            let conversation = self.messages.conversation(exchange.last);
            let expected = conversation.into_iter().map(|(_, message)| message.clone()).collect();
            let got = Value::Array(request.messages.clone());
            first_difference("messages", &Value::Array(expected), &got)
        })
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Replay")
            .field("name", &self.name)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

impl Model for Replay {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn stream(&self, request: &Request<'_>) -> ModelStream {
        let kept = KeptRequest::of(request, &self.placeholders);
        Box::pin(stream::iter(match self.answer(&kept) {
            Ok(answer) => chunks(answer),
            Err(error) => vec![Err(error)],
        }))
    }
}

/// Hands out an answer part by part, and then whole.
fn chunks(answer: &Answer) -> Vec<Result<Chunk, ModelError>> {
    let parts = answer.message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(Chunk::Text(text.clone())),
        Part::Thought { text } => Some(Chunk::Thought(text.clone())),
        Part::ToolCall(call) => Some(Chunk::ToolCall { name: call.name.clone() }),
        _ => None,
    });
    parts.chain([Chunk::End(answer.clone())]).map(Ok).collect()
}

fn wrong(place: usize, message: impl Into<String>) -> CassetteError {
    CassetteError { line: place + 1, message: message.into() }
}

//! Requests as they arrived.

use std::fmt;
use std::sync::OnceLock;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::time::Instant;

use crate::wire::{Wire, gemini_model};

/// One request.
#[derive(Debug)]
pub struct Seen {
    /// The wire it speaks, if it is a request to a model.
    pub wire: Option<Wire>,
    /// `GET` or `POST`.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// What follows the question mark.
    pub query: String,
    /// The headers in their order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, with any chunks put together.
    pub body: Vec<u8>,
    /// When it was complete.
    pub at: Instant,
    json: OnceLock<Value>,
    gist: OnceLock<Option<Gist>>,
}

impl Seen {
    pub(crate) fn new(
        method: String,
        target: &str,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            wire: Wire::of(&method, path),
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            body,
            at: Instant::now(),
            json: OnceLock::new(),
            gist: OnceLock::new(),
        }
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the body as JSON, or null if it is something else.
    pub fn json(&self) -> &Value {
        self.json.get_or_init(|| serde_json::from_slice(&self.body).unwrap_or_default())
    }

    /// Returns the model that is asked for.
    pub fn model(&self) -> &str {
        let named = self.gist().and_then(|gist| gist.model.as_deref());
        gemini_model(&self.path).or(named).unwrap_or_default()
    }

    /// Returns how many turns the model has had in the conversation that is sent along.
    pub fn turns(&self) -> usize {
        self.gist().map_or(0, |gist| gist.messages.0 + gist.contents.0 + gist.input.0)
    }

    pub(crate) fn include_usage(&self) -> bool {
        self.gist().is_some_and(|gist| gist.stream_options.include_usage)
    }

    /// Says what is wrong with a request to a model, if it is not one that this server answers.
    pub(crate) fn complaint(&self) -> Option<&'static str> {
        let Some(gist) = self.gist() else {
            return Some("the body is not a JSON object");
        };
        match self.wire {
            Some(Wire::Gemini) if !self.query.split('&').any(|pair| pair == "alt=sse") => {
                Some("the test server only streams: ask with ?alt=sse")
            }
            Some(Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Anthropic) if !gist.stream => {
                Some("the test server only streams: ask with \"stream\": true")
            }
            _ => None,
        }
    }

    fn gist(&self) -> Option<&Gist> {
        self.gist.get_or_init(|| serde_json::from_slice(&self.body).ok()).as_ref()
    }
}

/// The little that the server itself wants to know. The rest of the body is skipped, which is much
/// cheaper than to build it.
#[derive(Debug, Deserialize)]
struct Gist {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    stream_options: StreamOptions,
    #[serde(default)]
    messages: Turns,
    #[serde(default)]
    contents: Turns,
    #[serde(default)]
    input: Turns,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

/// How many times the model speaks in a list. What it says in one breath counts once: a turn in
/// Responses is several items.
#[derive(Debug, Default)]
struct Turns(usize);

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    role: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
}

impl Item {
    fn is_the_models(&self) -> bool {
        matches!(self.role.as_deref(), Some("assistant" | "model"))
            || matches!(self.kind.as_deref(), Some("function_call" | "reasoning"))
    }
}

impl<'de> Deserialize<'de> for Turns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TurnVisitor)
    }
}

struct TurnVisitor;

impl<'de> Visitor<'de> for TurnVisitor {
    type Value = Turns;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a conversation")
    }

    fn visit_str<E>(self, _: &str) -> Result<Turns, E> {
        Ok(Turns(0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Turns, A::Error> {
        let mut turns = 0;
        let mut speaking = false;
        while let Some(item) = items.next_element::<Item>()? {
            let is_the_models = item.is_the_models();
            turns += usize::from(is_the_models && !speaking);
            speaking = is_the_models;
        }
        Ok(Turns(turns))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(target: &str, body: &Value) -> Seen {
        Seen::new("POST".into(), target, Vec::new(), body.to_string().into_bytes())
    }

    #[test]
    fn turns_are_counted_in_every_wire() {
        let user = json!({ "role": "user", "content": [{ "role": "assistant" }] });
        let assistant = json!({ "role": "assistant", "content": null });
        let tool = json!({ "role": "tool", "content": "x" });
        let chat = json!({ "messages": [user, assistant, tool, tool, assistant, user] });
        assert_eq!(seen("/v1/chat/completions", &chat).turns(), 2);
        assert_eq!(
            seen("/v1/messages", &json!({ "messages": [user, assistant, user] })).turns(),
            1
        );

        let model = json!({ "role": "model", "parts": [] });
        let gemini = json!({ "contents": [user, model, user, model] });
        let gemini = seen("/v1beta/models/g:streamGenerateContent?alt=sse", &gemini);
        assert_eq!((gemini.turns(), gemini.model(), gemini.complaint()), (2, "g", None));

        let thought = json!({ "type": "reasoning", "summary": [] });
        let call = json!({ "type": "function_call", "call_id": "c" });
        let output = json!({ "type": "function_call_output", "call_id": "c" });
        let input = json!([user, thought, call, call, output, output, assistant]);
        assert_eq!(seen("/v1/responses", &json!({ "input": input })).turns(), 2);
        assert_eq!(seen("/v1/responses", &json!({ "input": "hello" })).turns(), 0);
    }

    #[test]
    fn what_is_not_a_request_for_a_stream_is_complained_about() {
        let chat = "/v1/chat/completions";
        assert!(seen(chat, &json!({ "model": "m" })).complaint().unwrap().contains("stream"));
        assert_eq!(seen(chat, &json!({ "model": "m", "stream": true })).complaint(), None);
        assert!(seen(chat, &json!([1])).complaint().unwrap().contains("JSON"));
        let gemini = seen("/v1/models/g:streamGenerateContent", &json!({}));
        assert!(gemini.complaint().unwrap().contains("alt=sse"));
    }
}

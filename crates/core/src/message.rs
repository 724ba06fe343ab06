//! The conversation between a model, its tools and its user.
//!
//! A message is a role and parts. Parts that only one provider understands (signed thoughts, for
//! instance) are kept opaque, with that provider's name, so that they survive a journal, a compaction
//! and a change of model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::CallId;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Standing instructions.
    System,
    /// The person, or the agent that delegated.
    User,
    /// The model.
    Assistant,
    /// Results of tool calls.
    Tool,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// It had said everything, or waits for its calls.
    Done,
    /// Its answer reached the maximum length.
    Length,
    /// It, or its provider, would not answer.
    Refused,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// Makes a message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, parts: vec![Part::text(text)] }
    }

    /// Returns the tools it asks for.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Leaves out all calls after the first `count`; returns how many those were.
    pub fn drop_calls_after(&mut self, count: u32) -> u32 {
        let (mut taken, mut dropped) = (0, 0);
        self.parts.retain(|part| match part {
            Part::ToolCall(_) if taken == count => {
                dropped += 1;
                false
            }
            Part::ToolCall(_) => {
                taken += 1;
                true
            }
            _ => true,
        });
        dropped
    }

    /// Returns what it says in words.
    pub fn words(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect()
    }
}

/// A piece of a message or of a tool's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// The model's thinking, where the provider shows it.
    Thought {
        /// The text of the thought.
        text: String,
    },
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// The answer to a call.
    ToolResult {
        /// The call that is answered.
        call: CallId,
        /// What the model sees.
        content: Vec<Part>,
        /// Whether the call failed.
        #[serde(default)]
        is_error: bool,
    },
    /// Bytes with a media type: an image, a document, a sound.
    Media {
        /// The media type, as `image/png`.
        mime: String,
        /// The bytes in base64.
        data: String,
    },
    /// A pointer to something that can be read elsewhere.
    Link {
        /// Where it is.
        uri: String,
        /// What to call it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// Something only one provider understands; it goes back to that provider unchanged.
    Opaque {
        /// Whose it is.
        provider: String,
        /// The part as the provider sent it.
        data: Value,
    },
}

impl Part {
    /// Makes a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns the text of a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }
}

/// A request for one tool, as the model or a caller makes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Names the call, so that its answer can be matched.
    pub id: CallId,
    /// The tool wanted.
    pub name: String,
    /// Its arguments: an object, if the caller behaves.
    #[serde(default)]
    pub arguments: Value,
}

impl ToolCall {
    /// Makes a call.
    pub fn new(id: impl Into<CallId>, name: impl Into<String>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments }
    }

    /// Returns the call that is meant: a call of [`USE_TOOL`] stands for one of the tool it names. One that names
    /// no other tool, or says more than that and its arguments, stands for itself: nothing that was said may be lost.
    #[must_use]
    pub fn meant(mut self) -> Self {
        let Value::Object(given) = &mut self.arguments else { return self };
        let name = given.get("name").and_then(Value::as_str).filter(|name| *name != USE_TOOL);
        let (true, Some(name)) = (self.name == USE_TOOL, name.map(str::to_owned)) else {
            return self;
        };
        let rest: Vec<&String> = given.keys().filter(|key| *key != "name").collect();
        let key = match rest.as_slice() {
            [] => ARGS.to_owned(),
            // What it is called by the protocol that most of these tools come from.
            [key] if [ARGS, "arguments"].contains(&key.as_str()) => (*key).clone(),
            _ => return self,
        };
        let arguments = match given.get_mut(&key).map(Value::take) {
            None | Some(Value::Null) => Value::Object(Map::new()),
            // Some models write objects as texts.
            Some(Value::String(text)) => match serde_json::from_str(&text) {
                Ok(Value::Object(arguments)) => Value::Object(arguments),
                _ => Value::String(text),
            },
            Some(arguments) => arguments,
        };
        Self { name, arguments, ..self }
    }
}

/// What the arguments of the other tool are called in a call of [`USE_TOOL`].
const ARGS: &str = "args";

/// The tool through which tools are called that the model was not told of.
pub const USE_TOOL: &str = "use_tool";

/// How the names begin by which models know the tools of MCP servers.
pub const SERVER_TOOL_PREFIX: &str = "mcp__";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_of_another_tool_is_that_call_unless_something_would_be_lost() {
        let meant = |arguments: Value| {
            let call = ToolCall::new("c", USE_TOOL, arguments).meant();
            (call.name, call.arguments)
        };
        let other = |arguments: Value| ("t".to_owned(), arguments);
        assert_eq!(meant(json!({ "name": "t" })), other(json!({})));
        assert_eq!(meant(json!({ "name": "t", "args": { "x": 1 } })), other(json!({ "x": 1 })));
        assert_eq!(meant(json!({ "name": "t", "args": "{\"x\":1}" })), other(json!({ "x": 1 })));
        assert_eq!(
            meant(json!({ "name": "t", "arguments": { "x": 1 } })),
            other(json!({ "x": 1 }))
        );
        for unclear in [
            json!({ "name": "t", "argz": { "x": 1 } }),
            json!({ "name": "t", "args": {}, "arguments": { "x": 1 } }),
            json!({ "name": "t", "x": 1 }),
            json!({ "name": USE_TOOL, "args": {} }),
            json!({ "args": {} }),
        ] {
            assert_eq!(meant(unclear.clone()), (USE_TOOL.to_owned(), unclear));
        }
    }
}

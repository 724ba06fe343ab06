//! A request that can be kept: what [`Request`] borrows, owned.

use convoke_core::{Declaration, Message};
use serde::{Deserialize, Serialize};

use crate::request::{OutputSchema, Request, Settings, ToolChoice};

/// A request that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestSnapshot {
    /// The standing instructions.
    pub system: String,
    /// The tools that could be asked for.
    pub tools: Vec<Declaration>,
    /// Which of them could or had to be asked for.
    pub tool_choice: SnapshotChoice,
    /// How to answer.
    pub settings: Settings,
    /// The longest answer wanted.
    pub max_output_tokens: Option<u64>,
    /// The shape of the answer.
    pub output: Option<OutputSchema>,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
}

/// Whether a model could ask for tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotChoice {
    /// As it liked.
    #[default]
    Auto,
    /// It could not.
    None,
    /// It had to ask for this one.
    Only(String),
}

impl RequestSnapshot {
    /// Keeps a request.
    pub fn of(request: &Request<'_>) -> Self {
        Self {
            system: request.system.to_owned(),
            tools: request.tools.to_vec(),
            tool_choice: match request.tool_choice {
                ToolChoice::Auto => SnapshotChoice::Auto,
                ToolChoice::None => SnapshotChoice::None,
                ToolChoice::Only(name) => SnapshotChoice::Only(name.to_owned()),
            },
            settings: request.settings.clone(),
            max_output_tokens: request.max_output_tokens,
            output: request.output.cloned(),
            messages: request.messages.to_vec(),
        }
    }

    /// Returns the request, to make it again.
    pub fn request(&self) -> Request<'_> {
        Request {
            system: &self.system,
            tools: &self.tools,
            tool_choice: match &self.tool_choice {
                SnapshotChoice::Auto => ToolChoice::Auto,
                SnapshotChoice::None => ToolChoice::None,
                SnapshotChoice::Only(name) => ToolChoice::Only(name),
            },
            messages: &self.messages,
            settings: &self.settings,
            max_output_tokens: self.max_output_tokens,
            output: self.output.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use convoke_core::Role;

    use super::*;

    #[test]
    fn a_request_survives_being_kept() {
        let messages = [Message::text(Role::User, "hi")];
        let request = Request {
            system: "be brief",
            tool_choice: ToolChoice::Only("ls"),
            max_output_tokens: Some(5),
            ..Request::new(&messages)
        };
        let kept = RequestSnapshot::of(&request);
        assert_eq!(RequestSnapshot::of(&kept.request()), kept);
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<RequestSnapshot>(&text).unwrap(), kept);
    }
}

//! Messages and parts of messages, for the tests of wires.

use convoke_core::{Declaration, Message, Part, Role, ToolCall};
use serde_json::{Value, json};

pub(super) fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

pub(super) fn assistant(parts: Vec<Part>) -> Message {
    Message { role: Role::Assistant, parts }
}

pub(super) fn result(call: &str, content: Vec<Part>, is_error: bool) -> Message {
    let part = Part::ToolResult { call: call.into(), content, is_error };
    Message { role: Role::Tool, parts: vec![part] }
}

pub(super) fn call(id: &str, name: &str) -> Part {
    Part::ToolCall(ToolCall::new(id, name, json!({ "path": "." })))
}

pub(super) fn opaque(provider: &str, data: Value) -> Part {
    Part::Opaque { provider: provider.into(), data }
}

pub(super) fn png() -> Part {
    Part::Media { mime: "image/png".into(), data: "iVBO".into() }
}

pub(super) fn ls() -> Vec<Declaration> {
    vec![Declaration {
        name: "ls".into(),
        description: "Lists.".into(),
        parameters: json!({ "type": "object" }).into(),
    }]
}

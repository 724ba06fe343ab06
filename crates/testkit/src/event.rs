//! Server-sent events.

use serde_json::Value;

/// What an event carries, so that a fault can be put where it hurts in every wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Beginnings, ends, pings, usage.
    Frame,
    /// Some of a thought.
    Thought,
    /// Some of the text.
    Text,
    /// Some of a call's arguments.
    Call,
}

/// One event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    name: Option<String>,
    pub(crate) data: String,
    pub(crate) piece: Piece,
}

impl Event {
    /// Makes an event without a name.
    pub(crate) fn unnamed(data: &impl ToString, piece: Piece) -> Self {
        Self { name: None, data: data.to_string(), piece }
    }

    /// Makes an event with the name that its data has as `type`.
    pub(crate) fn typed(data: &Value, piece: Piece) -> Self {
        let name = data.get("type").and_then(Value::as_str).map(str::to_owned);
        Self { name, data: data.to_string(), piece }
    }

    /// Makes this event one that breaks off in the middle of its JSON.
    pub(crate) fn garbled(mut self) -> Self {
        let half = (0..=self.data.len() / 2).rev().find(|at| self.data.is_char_boundary(*at));
        self.data.truncate(half.unwrap_or(0));
        self
    }

    /// Writes the event.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let name = self.name.as_ref().map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {}\n\n", self.data).into_bytes()
    }
}

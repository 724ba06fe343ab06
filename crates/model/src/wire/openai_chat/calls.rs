//! Puts calls together from the pieces in which they come.
//!
//! OpenAI numbers the calls, names each once and then sends its arguments bit by bit. Servers that speak
//! its wire leave out numbers or ids, number every call zero, send a call whole, or repeat its name
//! in each piece.

use convoke_core::ToolCall;
use serde_json::Value;

use crate::wire::openai::{arguments, text};

#[derive(Default)]
pub(super) struct Calls(Vec<Partial>);

/// A call, or a piece of one.
#[derive(Default)]
pub(super) struct Partial {
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// Where a piece went.
pub(super) struct Placed {
    /// Which call it belongs to, counted from zero.
    pub(super) position: usize,
    /// Whether it is the first piece of that call.
    pub(super) is_new: bool,
    /// The name of the call, if this piece brought it.
    pub(super) named: Option<String>,
}

impl Calls {
    /// Takes one piece.
    pub(super) fn add(&mut self, piece: Partial) -> Placed {
        let Some(position) = self.position_of(&piece) else {
            let named = Some(piece.name.clone()).filter(|name| !name.is_empty());
            self.0.push(piece);
            return Placed { position: self.0.len() - 1, is_new: true, named };
        };
        let named = self.0.get_mut(position).and_then(|call| call.append(piece));
        Placed { position, is_new: false, named }
    }

    /// Returns how many bytes of names and arguments have come.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|call| call.name.len() + call.arguments.len()).sum()
    }

    /// Returns the finished call at a position.
    pub(super) fn call(&self, position: usize) -> Option<ToolCall> {
        let call = self.0.get(position)?;
        Some(ToolCall::new(call.id.as_str(), call.name.as_str(), arguments::read(&call.arguments)))
    }

    /// Finds the call a piece continues. The latest one that fits counts.
    fn position_of(&self, piece: &Partial) -> Option<usize> {
        let fits = |call: &Partial| match (piece.index, piece.id.as_str()) {
            (Some(_), _) => call.index == piece.index,
            (None, "") => true,
            (None, id) => call.id == id,
        };
        let position = self.0.iter().rposition(fits)?;
        let call = self.0.get(position)?;
        (!piece.starts_anew_after(call)).then_some(position)
    }
}

impl Partial {
    /// Reads one entry of `tool_calls`.
    pub(super) fn read(entry: &Value) -> Self {
        let function = entry.get("function").unwrap_or(&Value::Null);
        Self {
            index: entry.get("index").and_then(Value::as_u64),
            id: text(entry, "id").to_owned(),
            name: text(function, "name").to_owned(),
            arguments: arguments::raw(function.get("arguments")),
        }
    }

    /// Tells whether a piece is a call of its own although it looks like more of an earlier one: it
    /// brings a name, and the earlier one needs nothing more.
    fn starts_anew_after(&self, call: &Self) -> bool {
        if self.name.is_empty() || call.name.is_empty() {
            return false;
        }
        let is_whole = arguments::is_whole(&call.arguments);
        let other_id = !self.id.is_empty() && !call.id.is_empty() && self.id != call.id;
        let unnumbered = self.index.is_none() && self.id.is_empty();
        (other_id && (is_whole || call.arguments.is_empty()))
            || (is_whole && (unnumbered || self.name != call.name))
    }

    /// Takes what a piece brings; returns the name if it was not known before.
    fn append(&mut self, piece: Self) -> Option<String> {
        self.arguments.push_str(&piece.arguments);
        if self.id.is_empty() {
            self.id = piece.id;
        }
        if !self.name.is_empty() || piece.name.is_empty() {
            return None;
        }
        self.name = piece.name;
        Some(self.name.clone())
    }
}

//! The items of an answer, put together from whatever a server sends about them.
//!
//! OpenAI announces an item, streams it, sends it whole, and sends all of them whole at the end. Other
//! servers leave out any of that, and the numbers or ids by which it belongs together. What comes whole
//! counts more than what was streamed.

use convoke_core::{Part, ToolCall};
use serde_json::{Value, json};

use super::PROVIDER;
use crate::model::Chunk;
use crate::wire::openai::{arguments, text};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Call,
    /// What we did not ask for.
    #[default]
    Other,
}

impl Kind {
    pub(super) fn of(item: &Value) -> Self {
        match text(item, "type") {
            "message" => Self::Message,
            "reasoning" => Self::Reasoning,
            "function_call" => Self::Call,
            _ => Self::Other,
        }
    }
}

/// What an event says about the item it belongs to.
#[derive(Default)]
pub(super) struct Reference<'a> {
    pub(super) kind: Kind,
    pub(super) index: Option<u64>,
    pub(super) id: &'a str,
    pub(super) call_id: &'a str,
}

impl<'a> Reference<'a> {
    /// Reads it from an event about a part of an item.
    pub(super) fn of_delta(kind: Kind, event: &'a Value) -> Self {
        let index = event.get("output_index").and_then(Value::as_u64);
        Self { kind, index, id: text(event, "item_id"), call_id: text(event, "call_id") }
    }

    /// Reads it from an item.
    pub(super) fn of_item(item: &'a Value, index: Option<u64>) -> Self {
        let kind = Kind::of(item);
        Self { kind, index, id: text(item, "id"), call_id: text(item, "call_id") }
    }
}

#[derive(Default)]
pub(super) struct Items(Vec<Item>);

#[derive(Default)]
pub(super) struct Item {
    kind: Kind,
    index: Option<u64>,
    id: String,
    call_id: String,
    /// The tool of a call.
    name: String,
    /// What a message says, the summary of a reasoning, or the arguments of a call.
    text: String,
    /// Whether a message is commentary or the final answer.
    phase: String,
    /// A reasoning item to be sent back.
    sealed: Option<Value>,
    refused: bool,
    announced: bool,
    settled: bool,
}

impl Items {
    /// Returns an item that is announced.
    pub(super) fn announced(&mut self, reference: &Reference<'_>) -> Option<&mut Item> {
        let position = self.find(reference);
        self.at(position, reference)
    }

    /// Returns the item an event goes on with: the one it names, or else the one still open.
    pub(super) fn current(&mut self, reference: &Reference<'_>) -> Option<&mut Item> {
        let is_open = |item: &Item| {
            item.kind == reference.kind
                && !item.settled
                && (item.id.is_empty() || reference.id.is_empty())
                && (item.index.is_none() || reference.index.is_none())
        };
        let position = self.find(reference).or_else(|| self.0.iter().rposition(is_open));
        self.at(position, reference)
    }

    /// Returns the item at a position of the whole answer.
    pub(super) fn placed(
        &mut self,
        position: usize,
        reference: &Reference<'_>,
    ) -> Option<&mut Item> {
        let same_place = |item: &&Item| item.kind == reference.kind;
        let by_place = || self.0.get(position).filter(same_place).map(|_| position);
        let position = self.find(reference).or_else(by_place);
        self.at(position, reference)
    }

    pub(super) fn refused(&self) -> bool {
        self.0.iter().any(|item| item.refused)
    }

    /// Returns how many bytes of names and arguments have come.
    pub(super) fn call_bytes(&self) -> usize {
        let calls = self.0.iter().filter(|item| item.kind == Kind::Call);
        calls.map(|item| item.name.len() + item.text.len()).sum()
    }

    /// Returns what was said, in order.
    pub(super) fn into_parts(mut self) -> Vec<Part> {
        if self.0.iter().all(|item| item.index.is_some()) {
            self.0.sort_by_key(|item| item.index);
        }
        self.0.into_iter().flat_map(Item::into_parts).collect()
    }

    /// An id says more than a number: some servers number every item zero. Others invent a new id for
    /// each event, but not the id of a call.
    fn find(&self, reference: &Reference<'_>) -> Option<usize> {
        let Reference { kind, index, id, call_id } = *reference;
        let same_call = |item: &Item| !call_id.is_empty() && item.call_id == call_id;
        let same_id = |item: &Item| !id.is_empty() && (item.id == id || item.call_id == id);
        let other_call = |item: &Item| {
            !call_id.is_empty() && !item.call_id.is_empty() && item.call_id != call_id
        };
        let by_id = |item: &Item| item.kind == kind && (same_call(item) || same_id(item));
        let by_index = |item: &Item| {
            item.kind == kind && index.is_some() && item.index == index && !other_call(item)
        };
        let items = || self.0.iter();
        items().rposition(by_id).or_else(|| items().rposition(by_index))
    }

    fn at(&mut self, position: Option<usize>, reference: &Reference<'_>) -> Option<&mut Item> {
        let position = position.unwrap_or_else(|| {
            self.0.push(Item { kind: reference.kind, ..Item::default() });
            self.0.len() - 1
        });
        let item = self.0.get_mut(position)?;
        item.index = item.index.or(reference.index);
        keep(&mut item.id, reference.id);
        keep(&mut item.call_id, reference.call_id);
        Some(item)
    }
}

impl Item {
    /// Takes what an announcement says.
    pub(super) fn announce(&mut self, item: &Value, chunks: &mut Vec<Chunk>) {
        keep(&mut self.name, text(item, "name"));
        keep(&mut self.phase, text(item, "phase"));
        if self.kind == Kind::Call && !self.announced && !self.name.is_empty() {
            self.announced = true;
            chunks.push(Chunk::ToolCall { name: self.name.clone() });
        }
    }

    /// Takes a piece.
    pub(super) fn append(&mut self, more: &str, chunks: &mut Vec<Chunk>) {
        self.text.push_str(more);
        self.show(more, chunks);
    }

    /// Takes a piece in which the model refuses.
    pub(super) fn refuse(&mut self, more: &str, chunks: &mut Vec<Chunk>) {
        self.refused = true;
        self.append(more, chunks);
    }

    /// Starts another part of a summary.
    pub(super) fn new_paragraph(&mut self, chunks: &mut Vec<Chunk>) {
        if !self.text.is_empty() {
            self.append("\n\n", chunks);
        }
    }

    /// Takes the whole item. What has not been shown of it is shown now.
    pub(super) fn settle(&mut self, item: &Value, chunks: &mut Vec<Chunk>) {
        self.announce(item, chunks);
        self.settled = true;
        match self.kind {
            Kind::Message => {
                self.refused |= texts(item, "content", "refusal").any(|text| !text.is_empty());
                let parts = item.get("content").and_then(Value::as_array).into_iter().flatten();
                let said = parts.map(|part| {
                    let refusal = text(part, "refusal");
                    if refusal.is_empty() { text(part, "text") } else { refusal }
                });
                self.settle_text(&said.collect::<String>(), chunks);
            }
            Kind::Reasoning => {
                let summary = texts(item, "summary", "text").collect::<Vec<_>>().join("\n\n");
                let content = texts(item, "content", "text").collect::<Vec<_>>().join("\n\n");
                let thought = if summary.is_empty() { content } else { summary };
                self.settle_text(&thought, chunks);
                self.sealed = sealed(item).or(self.sealed.take());
            }
            Kind::Call => self.settle_text(&arguments::raw(item.get("arguments")), chunks),
            Kind::Other => {}
        }
    }

    /// Takes the whole text, unless there is none.
    pub(super) fn settle_text(&mut self, whole: &str, chunks: &mut Vec<Chunk>) {
        if whole.is_empty() {
            return;
        }
        if let Some(rest) = whole.strip_prefix(&self.text) {
            self.show(rest, chunks);
        }
        whole.clone_into(&mut self.text);
    }

    fn show(&self, more: &str, chunks: &mut Vec<Chunk>) {
        match self.kind {
            _ if more.is_empty() => {}
            Kind::Message => chunks.push(Chunk::Text(more.to_owned())),
            Kind::Reasoning => chunks.push(Chunk::Thought(more.to_owned())),
            Kind::Call | Kind::Other => {}
        }
    }

    fn into_parts(self) -> Vec<Part> {
        let opaque = |data| Part::Opaque { provider: PROVIDER.to_owned(), data };
        match self.kind {
            Kind::Call => {
                let arguments = arguments::read(&self.text);
                vec![Part::ToolCall(ToolCall::new(self.call_id, self.name, arguments))]
            }
            Kind::Reasoning => {
                let thought = Some(self.text).filter(|text| !text.is_empty());
                let thought = thought.map(|text| Part::Thought { text });
                self.sealed.map(opaque).into_iter().chain(thought).collect()
            }
            Kind::Message if !self.text.is_empty() => {
                let phase = Some(self.phase).filter(|phase| !phase.is_empty());
                let phase = phase.map(|phase| opaque(json!({"type": "message", "phase": phase})));
                phase.into_iter().chain([Part::Text { text: self.text }]).collect()
            }
            Kind::Message | Kind::Other => Vec::new(),
        }
    }
}

/// Returns what of a reasoning item is sent back; nothing, if the model could not read it.
fn sealed(item: &Value) -> Option<Value> {
    if text(item, "encrypted_content").is_empty() {
        return None;
    }
    let mut kept = json!({
        "type": "reasoning",
        "summary": item.get("summary").cloned().unwrap_or_else(|| json!([])),
        "encrypted_content": item.get("encrypted_content"),
    });
    let is_said = |value: &&Value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => false,
    };
    for key in ["id", "content"] {
        if let (Some(value), Some(kept)) = (item.get(key).filter(is_said), kept.as_object_mut()) {
            kept.insert(key.to_owned(), value.clone());
        }
    }
    Some(kept)
}

/// Returns the texts under `key` of the parts in a list.
fn texts<'a>(item: &'a Value, list: &str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let parts = item.get(list).and_then(Value::as_array).into_iter().flatten();
    parts.map(move |part| text(part, key))
}

/// The first word about a thing counts.
fn keep(kept: &mut String, said: &str) {
    if kept.is_empty() {
        said.clone_into(kept);
    }
}

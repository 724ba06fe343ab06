//! Texts that are shown piece by piece, without the secrets in them.
//!
//! A secret may be cut in two by the pieces it comes in. So each text has a masker of its own, which holds
//! back what may be the beginning of one. What was held back is shown before the event that ends the text.

use convoke_core::event::Progress;
use convoke_core::secret::Masker;
use convoke_core::{CallId, EventBody, Secrets};

/// The texts of one run that are under way.
#[derive(Debug, Default)]
pub(super) struct Texts(Vec<Text>);

#[derive(Debug)]
struct Text {
    kind: Kind,
    call: Option<CallId>,
    masker: Masker,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Answer,
    Thought,
    Output { tool_name: String },
}

/// A piece of a text, and the call it belongs to.
pub(super) type Piece = (Option<CallId>, EventBody);

impl Texts {
    /// Takes an event that is only streamed, and returns what can be shown of it by now.
    pub(super) fn take(
        &mut self,
        secrets: &Secrets,
        call: Option<&CallId>,
        body: EventBody,
    ) -> Option<EventBody> {
        match body {
            EventBody::ModelDelta { text } => self
                .hear(secrets, None, Kind::Answer, &text)
                .map(|text| EventBody::ModelDelta { text }),
            EventBody::ModelThought { text } => self
                .hear(secrets, None, Kind::Thought, &text)
                .map(|text| EventBody::ModelThought { text }),
            EventBody::ToolCallProgress { tool_name, update } => {
                let Some(text) = update.text else {
                    return Some(EventBody::ToolCallProgress { tool_name, update });
                };
                let kind = Kind::Output { tool_name: tool_name.clone() };
                let shown = self.hear(secrets, call, kind, &text);
                // How much is done is told at once.
                let is_news = shown.is_some() || update.fraction.is_some();
                let update = Progress { text: shown, ..update };
                is_news.then_some(EventBody::ToolCallProgress { tool_name, update })
            }
            // What cannot be told without a secret is left out.
            other => secrets.hide_in(other).ok(),
        }
    }

    /// Returns what can be shown after a piece of a text, unless that is nothing.
    fn hear(
        &mut self,
        secrets: &Secrets,
        call: Option<&CallId>,
        kind: Kind,
        piece: &str,
    ) -> Option<String> {
        let is_it = |text: &Text| text.call.as_ref() == call && text.kind == kind;
        let known = self.0.iter().position(is_it);
        let shown = if let Some(text) = known.and_then(|index| self.0.get_mut(index)) {
            text.masker.push(piece)
        } else {
            let mut masker = secrets.masker();
            let shown = masker.push(piece);
            self.0.push(Text { kind, call: call.cloned(), masker });
            shown
        };
        (!shown.is_empty()).then_some(shown)
    }

    /// Ends the texts that an event ends, and returns what was held back of them.
    pub(super) fn ended_by(&mut self, call: Option<&CallId>, body: &EventBody) -> Vec<Piece> {
        let ends: &dyn Fn(&Text) -> bool = match body {
            EventBody::RunEnded { .. } => &|_| true,
            EventBody::ModelResponse { .. }
            | EventBody::ModelFailed { .. }
            | EventBody::ModelRetry { .. } => &|text| text.call.is_none(),
            body if body.ends_call() => &|text| text.call.is_some() && text.call.as_ref() == call,
            _ => return Vec::new(),
        };
        let ended = self.0.extract_if(.., |text| ends(text));
        let rest = ended.filter_map(|mut text| {
            let rest = text.masker.finish();
            (!rest.is_empty()).then(|| (text.call, text.kind.event(rest)))
        });
        rest.collect()
    }
}

impl Kind {
    fn event(self, text: String) -> EventBody {
        match self {
            Self::Answer => EventBody::ModelDelta { text },
            Self::Thought => EventBody::ModelThought { text },
            Self::Output { tool_name } => {
                let update = Progress { text: Some(text), fraction: None };
                EventBody::ToolCallProgress { tool_name, update }
            }
        }
    }
}

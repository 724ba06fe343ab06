//! What models were asked, and what they said.

use std::time::Duration;

use convoke_core::{Event, EventBody, Message, Part, Purpose, Usage};

use super::{Fold, Place};
use crate::timeline::{AgentIndex, ItemKind, ModelCall, ModelFailure, ModelState, Retry};

impl<'e> Fold<'e> {
    /// Takes in an event about a model, and tells whether it is one that has a place.
    pub(super) fn model_event(&mut self, agent: AgentIndex, event: &'e Event) -> bool {
        match &event.body {
            EventBody::ModelRequest { model, purpose, notice, estimate, reserved: _ } => {
                self.interrupt_model(agent, self.before);
                let place = self.add_model(agent, event, ModelCall::new(model, *purpose));
                if let Some(asked) = self.model_at(agent, place) {
                    asked.notice = notice.as_deref();
                    asked.estimate = *estimate;
                }
            }
            EventBody::ModelDelta { text } => {
                let Some(model) = self.model(agent) else { return false };
                model.words.push_str(text);
            }
            EventBody::ModelThought { text } => {
                let Some(model) = self.model(agent) else { return false };
                model.thoughts.push_str(text);
            }
            EventBody::ModelToolCall { tool_name } => {
                let Some(model) = self.model(agent) else { return false };
                model.begun.push(tool_name);
            }
            EventBody::ModelRetry { attempt, delay_ms, reason, usage } => {
                self.use_up(agent, *usage);
                let (at, attempt, delay) = (self.now, *attempt, delay_ms.get());
                let Some(model) = self.model(agent) else { return false };
                model.usage += *usage;
                model.retries.push(Retry { at, attempt, delay, reason });
                // What a broken attempt had said so far is said again by the next one.
                model.words.clear();
                model.thoughts.clear();
                model.begun.clear();
            }
            EventBody::ModelResponse { purpose, message, usage, stop, .. } => {
                self.finish_model(agent, event, *purpose, *usage, |model| {
                    answer(model, message);
                    model.state = ModelState::Answered(*stop);
                });
            }
            EventBody::ModelFailed {
                purpose, cause, error, message, hint, partial, usage, ..
            } => {
                self.finish_model(agent, event, *purpose, *usage, |model| {
                    if let Some(partial) = partial {
                        model.words.clone_from(partial);
                    }
                    let hint = hint.as_deref();
                    let failure = ModelFailure { cause: *cause, error, message, hint };
                    model.state = ModelState::Failed(failure);
                });
            }
            _ => return false,
        }
        true
    }

    /// The model that was asked is done. If none is known to have been asked, it was asked just now.
    fn finish_model(
        &mut self,
        agent: AgentIndex,
        event: &'e Event,
        purpose: Purpose,
        usage: Usage,
        finish: impl FnOnce(&mut ModelCall<'e>),
    ) {
        self.use_up(agent, usage);
        let name = self.timeline.agent(agent).map_or("", |agent| agent.model);
        let place = match self.under_way.get(agent.0).and_then(|agent| agent.model) {
            Some(place) => place,
            None => self.add_model(agent, event, ModelCall::new(name, purpose)),
        };
        if let Some(model) = self.model_at(agent, place) {
            model.usage += usage;
            finish(model);
        }
        self.close(agent, place, self.now);
        if let Some(under_way) = self.under_way.get_mut(agent.0) {
            under_way.model = None;
            under_way.last_model = Some(place);
        }
    }

    /// Returns what the model said last.
    pub(super) fn last_words(&mut self, agent: AgentIndex) -> Option<&str> {
        let place = self.under_way.get(agent.0)?.last_model?;
        self.model_at(agent, place).map(|model| model.words.as_str())
    }

    fn add_model(&mut self, agent: AgentIndex, event: &'e Event, model: ModelCall<'e>) -> Place {
        let place = self.begin(agent, event, ItemKind::Model(model));
        if let Some(under_way) = self.under_way.get_mut(agent.0) {
            under_way.model = Some(place);
        }
        place
    }

    fn use_up(&mut self, agent: AgentIndex, usage: Usage) {
        if let Some(turn) = self.turn(agent) {
            turn.usage += usage;
        }
        if let Some(agent) = self.agent(agent) {
            agent.usage += usage;
        }
    }

    /// The run goes on without the answer that is awaited.
    pub(super) fn interrupt_model(&mut self, agent: AgentIndex, at: Duration) {
        let under_way = self.under_way.get_mut(agent.0);
        let Some(place) = under_way.and_then(|under_way| under_way.model.take()) else { return };
        if let Some(model) = self.model_at(agent, place) {
            model.state = ModelState::Interrupted;
        }
        self.close(agent, place, at);
    }

    /// Returns the model that is being asked.
    fn model(&mut self, agent: AgentIndex) -> Option<&mut ModelCall<'e>> {
        let place = self.under_way.get(agent.0)?.model?;
        self.model_at(agent, place)
    }

    fn model_at(&mut self, agent: AgentIndex, place: Place) -> Option<&mut ModelCall<'e>> {
        match &mut self.item(agent, place)?.kind {
            ItemKind::Model(model) => Some(model),
            _ => None,
        }
    }
}

/// The whole message takes the place of its pieces.
fn answer<'e>(model: &mut ModelCall<'e>, message: &'e Message) {
    model.words = message.words();
    let thoughts = message.parts.iter().filter_map(|part| match part {
        Part::Thought { text } => Some(text.as_str()),
        _ => None,
    });
    let thoughts = thoughts.collect::<Vec<_>>().join("\n\n");
    if !thoughts.is_empty() {
        model.thoughts = thoughts;
    }
    model.message = Some(message);
}

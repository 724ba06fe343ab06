//! The conversation of a run: its messages, about how many tokens they are, and where it can be cut.

use serde::{Deserialize, Serialize};

use crate::id::CallId;
use crate::message::{Message, Part, Role, ToolCall};
use crate::usage::Usage;

/// What an image or a document counts as, where nobody knows better.
const MEDIA_TOKENS: u64 = 1_000;

/// The messages so far, oldest first. The task is never cut.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Conversation {
    pub(super) messages: Vec<Message>,
    /// Which message is the task. What comes before it is an earlier conversation.
    task: usize,
    /// About how many tokens a request with all of this takes in, instructions and tools included.
    pub(super) tokens: u64,
}

/// Calls with answers that the model has not heard of, and what was said after those.
pub(super) struct Unheard {
    pub(super) calls: Vec<ToolCall>,
    pub(super) answers: Vec<Part>,
    pub(super) later: Vec<Message>,
}

impl Conversation {
    /// Starts with an earlier conversation and the task. `overhead` is what instructions and tools take.
    pub(super) fn new(mut messages: Vec<Message>, task: Message, overhead: u64) -> Self {
        let place = messages.len();
        messages.push(task);
        let tokens = overhead + messages.iter().map(estimate).sum::<u64>();
        Self { task: place, messages, tokens }
    }

    pub(super) fn push(&mut self, message: Message) {
        self.tokens += estimate(&message);
        self.messages.push(message);
    }

    /// The model answered, and said how much it took in: from here on we know better.
    pub(super) fn answered(&mut self, message: Message, usage: &Usage) {
        self.push(message);
        if usage.input_tokens > 0 {
            self.tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        }
    }

    /// Returns where the answers to the last calls are, if the model has said nothing since.
    fn unheard(&self) -> Option<usize> {
        let is_answer = |message: &&Message| message.role == Role::Tool;
        let last = self.messages.iter().rposition(|message| message.role != Role::User)?;
        self.messages.get(last).filter(is_answer).map(|_| last)
    }

    /// Returns the calls whose answers say that they failed, if the model has not heard of them.
    pub(super) fn failed_unheard(&self) -> impl Iterator<Item = &CallId> {
        let answers = self.unheard().and_then(|place| self.messages.get(place));
        let parts = answers.into_iter().flat_map(|message| &message.parts);
        parts.filter_map(|part| match part {
            Part::ToolResult { call, is_error: true, .. } => Some(call),
            _ => None,
        })
    }

    /// Takes back the answers to the last calls, and what was said after them, if the model has not heard of them.
    pub(super) fn take_back(&mut self) -> Option<Unheard> {
        let place = self.unheard()?;
        let asked = place.checked_sub(1).and_then(|before| self.messages.get(before))?;
        let calls = asked.calls().cloned().collect();
        let later = self.messages.split_off(place + 1);
        let answers = self.messages.pop()?;
        let taken = estimate(&answers) + later.iter().map(estimate).sum::<u64>();
        self.tokens = self.tokens.saturating_sub(taken);
        Some(Unheard { calls, answers: answers.parts, later })
    }

    /// Returns what was said to the model since it last said something, or had answers to its calls.
    pub(super) fn said_last(&self) -> &[Message] {
        self.messages.get(self.last_words_from()..).unwrap_or_default()
    }

    /// Takes something back that was said to the model, if it has not heard it.
    pub(super) fn take_back_word(&mut self, said: &Message) {
        let last = self.messages.split_off(self.last_words_from());
        for message in last {
            if message == *said {
                self.tokens = self.tokens.saturating_sub(estimate(said));
            } else {
                self.messages.push(message);
            }
        }
    }

    /// Returns where that begins which was said last. The task is no part of it.
    fn last_words_from(&self) -> usize {
        let heard = self.messages.iter().rposition(|message| message.role != Role::User);
        let after = heard.map_or(0, |last| last + 1).max(self.task + 1);
        after.min(self.messages.len())
    }

    /// Finds where the conversation can be cut so that about `keep` tokens stay: before a message that
    /// is not an answer to the one before it. Returns nothing if that would replace nothing.
    pub(super) fn cut(&self, keep: u64) -> Option<usize> {
        let mut kept = 0;
        // An earlier conversation can be cut as soon as there is a task.
        let mut cut = (self.task > 0).then_some(self.messages.len());
        for (index, message) in self.messages.iter().enumerate().skip(self.task + 1).rev() {
            kept += estimate(message);
            if kept > keep && cut.is_some() {
                break;
            }
            if message.role != Role::Tool {
                cut = Some(index);
            }
        }
        cut.filter(|cut| *cut > 1)
    }

    /// Returns about how many tokens a request with everything before `kept_from` takes in.
    pub(super) fn tokens_before(&self, kept_from: usize) -> u64 {
        let kept = self.messages.iter().skip(kept_from).map(estimate).sum::<u64>();
        self.tokens.saturating_sub(kept)
    }

    /// Returns about how many tokens there would be if everything before `kept_from`, but for the task,
    /// were replaced by `summary`.
    pub(super) fn after_compaction(&self, kept_from: usize, summary: &str) -> u64 {
        let older = self.messages.iter().take(kept_from).enumerate();
        let replaced = older.filter(|(index, _)| *index != self.task);
        let replaced = replaced.map(|(_, message)| estimate(message)).sum::<u64>();
        self.tokens.saturating_sub(replaced) + text_tokens(summary)
    }

    /// Replaces everything before `kept_from` but for the task.
    pub(super) fn compact(&mut self, kept_from: usize, summary: &str) {
        if kept_from <= self.task || kept_from > self.messages.len() {
            return;
        }
        self.tokens = self.after_compaction(kept_from, summary);
        let kept = self.messages.split_off(kept_from);
        let task = self.messages.swap_remove(self.task);
        self.messages = vec![task, Message::text(Role::User, summary)];
        self.messages.extend(kept);
        self.task = 0;
    }
}

/// Returns about how many tokens a message is.
pub fn estimate(message: &Message) -> u64 {
    message.parts.iter().map(part_tokens).sum::<u64>() + 4
}

/// About how many tokens a text is: four bytes each, which errs by some percent for code and prose.
pub(super) fn text_tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

fn part_tokens(part: &Part) -> u64 {
    match part {
        Part::Text { text } | Part::Thought { text } => text_tokens(text),
        Part::ToolCall(call) => {
            text_tokens(&call.name) + text_tokens(&call.arguments.to_string()) + 8
        }
        Part::ToolResult { content, .. } => content.iter().map(part_tokens).sum::<u64>() + 8,
        Part::Media { .. } => MEDIA_TOKENS,
        Part::Link { uri, .. } => text_tokens(uri),
        Part::Opaque { data, .. } => text_tokens(&data.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::id::CallId;
    use crate::message::ToolCall;

    fn call(id: &str) -> Message {
        let call = ToolCall::new(id, "read_file", json!({ "path": "x" }));
        Message { role: Role::Assistant, parts: vec![Part::ToolCall(call)] }
    }

    fn answer(id: &str, text: &str) -> Message {
        let content = vec![Part::text(text)];
        let part = Part::ToolResult { call: CallId::new(id), content, is_error: false };
        Message { role: Role::Tool, parts: vec![part] }
    }

    #[test]
    fn a_cut_never_parts_a_call_from_its_answer() {
        let mut talk = Conversation::new(Vec::new(), Message::text(Role::User, "task"), 100);
        for index in 0..6 {
            talk.push(call(&index.to_string()));
            talk.push(answer(&index.to_string(), &"x".repeat(4_000)));
        }
        for keep in [0, 1, 500, 1_100, 2_500, 4_000] {
            let cut = talk.cut(keep).unwrap();
            assert_eq!(talk.messages[cut].role, Role::Assistant, "keeping {keep}");
        }
        assert_eq!(talk.cut(0), Some(11), "the last pair is always kept");
        assert_eq!(talk.cut(1_000_000), None, "all of it may stay");
    }

    #[test]
    fn an_earlier_conversation_is_summed_up_and_the_task_stays() {
        let earlier = vec![call("a"), answer("a", &"x".repeat(40_000))];
        let mut talk = Conversation::new(earlier, Message::text(Role::User, "task"), 0);
        assert_eq!(talk.cut(100), Some(3));
        talk.compact(3, "short");
        let words: Vec<String> = talk.messages.iter().map(Message::words).collect();
        assert_eq!(words, ["task", "short"]);
        assert_eq!(talk.cut(0), None, "there is nothing more to cut");
    }

    #[test]
    fn compaction_keeps_the_task_and_the_end() {
        let mut talk = Conversation::new(Vec::new(), Message::text(Role::User, "task"), 0);
        for index in 0..4 {
            talk.push(call(&index.to_string()));
            talk.push(answer(&index.to_string(), &"x".repeat(400)));
        }
        let before = talk.tokens;
        let expected = talk.after_compaction(7, "short");
        talk.compact(7, "short");
        assert_eq!(talk.tokens, expected);
        assert!(talk.tokens < before);
        let roles: Vec<Role> = talk.messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::User, Role::Assistant, Role::Tool]);
        assert_eq!(talk.messages[1].words(), "short");
    }
}

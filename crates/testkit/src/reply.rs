//! What a model answers, whatever the wire.

use convoke_core::Usage;
use serde_json::Value;

/// One answer of a model.
#[derive(Clone, Debug)]
pub struct Reply {
    /// What it says, in order.
    pub parts: Vec<Say>,
    /// What it used.
    pub usage: Usage,
    /// Why it stopped.
    pub stop: Stop,
    /// How many characters come at once.
    pub fragment: usize,
}

/// A piece of an answer.
#[derive(Clone, Debug)]
pub enum Say {
    /// Text.
    Text(String),
    /// A thought. Anthropic signs it, Responses sends the signature as encrypted content, Gemini puts it
    /// on the call that follows, or on the end; chat completions have no place for it.
    Thought {
        /// What is thought; may be empty.
        text: String,
        /// The provider's mark, which has to come back unchanged.
        signature: Option<String>,
    },
    /// A thought that only the provider can read. Wires that cannot say this leave it out.
    Redacted(String),
    /// A refusal in words. `OpenAI` sends these apart from text, the others as text.
    Refusal(String),
    /// A call of a tool.
    Call {
        /// The call's id. Without one, a provider that has ids makes one up; Gemini sends none.
        id: Option<String>,
        /// The tool.
        name: String,
        /// The arguments as the model wrote them; they need not be JSON. Gemini, which sends an object,
        /// says that the call was malformed if they are not.
        arguments: String,
    },
}

/// Why a model stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// It has said everything, or waits for its calls.
    #[default]
    Done,
    /// The answer is as long as it may be.
    Length,
    /// The provider's filter ended it. A reply without parts is a prompt that was blocked.
    Refused,
}

impl Default for Reply {
    /// Says nothing, and has used a hundred tokens to read and twenty to write.
    fn default() -> Self {
        let usage = Usage { input_tokens: 100, output_tokens: 20, ..Usage::default() };
        Self { parts: Vec::new(), usage, stop: Stop::Done, fragment: 16 }
    }
}

impl Reply {
    /// Makes a reply of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().say(Say::Text(text.into()))
    }

    /// Adds a piece.
    #[must_use]
    pub fn say(mut self, piece: Say) -> Self {
        self.parts.push(piece);
        self
    }

    /// Adds a thought with a signature.
    #[must_use]
    pub fn thought(self, text: impl Into<String>, signature: impl Into<String>) -> Self {
        self.say(Say::Thought { text: text.into(), signature: Some(signature.into()) })
    }

    /// Adds a call; its id is made up.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "`json!` is what every caller writes")]
    pub fn call(self, name: impl Into<String>, arguments: Value) -> Self {
        self.say(Say::Call { id: None, name: name.into(), arguments: arguments.to_string() })
    }

    /// Sets what was used.
    #[must_use]
    pub const fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets why it stops.
    #[must_use]
    pub const fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Sets how many characters of a text, a thought or arguments come in one event.
    #[must_use]
    pub const fn fragments_of(mut self, characters: usize) -> Self {
        self.fragment = characters;
        self
    }

    /// Tells whether there is a call.
    pub(crate) fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Say::Call { .. }))
    }

    /// Cuts a text into what comes at once.
    pub(crate) fn fragments<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let mut rest = text;
        let mut fragments = Vec::new();
        while !rest.is_empty() {
            let end =
                rest.char_indices().nth(self.fragment.max(1)).map_or(rest.len(), |(at, _)| at);
            let (fragment, after) = rest.split_at(end);
            fragments.push(fragment);
            rest = after;
        }
        fragments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_counted_in_characters() {
        let reply = Reply::default().fragments_of(2);
        assert_eq!(reply.fragments("añ€😀x"), ["añ", "€😀", "x"]);
        assert!(reply.fragments("").is_empty());
        assert_eq!(reply.fragments_of(0).fragments("ab"), ["a", "b"]);
    }
}

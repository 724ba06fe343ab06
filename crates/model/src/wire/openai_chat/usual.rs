//! The short way for what most events are: a piece of text or of calls, with nothing else to look at.
//!
//! An answer comes in hundreds of them. As a tree of JSON values each costs a score of allocations; here
//! it costs those of its text. Whatever does not fit these types goes the long way, which understands
//! everything; so nothing is read here that would be read differently there.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::calls::Partial;

/// What a piece brings.
pub(super) struct Usual {
    pub(super) content: String,
    pub(super) calls: Vec<Partial>,
}

/// Reads an event, if it is a usual one.
pub(super) fn read(data: &str) -> Option<Usual> {
    let event: Event = serde_json::from_str(data).ok()?;
    let Event { choices: [choice], error: None, usage: None, x_groq: None } = event else {
        return None;
    };
    let Choice { delta, message: None, finish_reason: None } = choice else { return None };
    let Delta {
        content,
        tool_calls,
        reasoning_content: None,
        reasoning: None,
        refusal: None,
        function_call: None,
    } = delta
    else {
        return None;
    };
    let calls = tool_calls.unwrap_or_default().into_iter().map(Call::into_partial).collect();
    Some(Usual { content: content.unwrap_or_default(), calls })
}

#[derive(Deserialize)]
struct Event {
    choices: [Choice; 1],
    error: Option<IgnoredAny>,
    usage: Option<IgnoredAny>,
    x_groq: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Delta,
    message: Option<IgnoredAny>,
    finish_reason: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    tool_calls: Option<Vec<Call>>,
    reasoning_content: Option<IgnoredAny>,
    reasoning: Option<IgnoredAny>,
    refusal: Option<IgnoredAny>,
    function_call: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<String>,
}

impl Call {
    fn into_partial(self) -> Partial {
        let Self { index, id, function: Function { name, arguments } } = self;
        Partial {
            index,
            id: id.unwrap_or_default(),
            name: name.unwrap_or_default(),
            arguments: arguments.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pieces_of_text_and_calls_are_usual() {
        let text = r#"{"id":"x","choices":[{"index":0,"delta":{"content":"a\nb","refusal":null},
            "logprobs":null,"finish_reason":null}],"usage":null}"#;
        assert_eq!(read(text).map(|usual| usual.content).as_deref(), Some("a\nb"));
        let call =
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{"}}]}}]}"#;
        let calls = read(call).unwrap().calls;
        assert_eq!((calls[0].index, calls[0].arguments.as_str()), (Some(1), "{"));
        for other in [
            r#"{"error":{"message":"no"}}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"hm"}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}"#,
            r#"{"choices":[{"message":{"content":"whole"}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"path":"x"}}}]}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","content":"b"}}]}"#,
            "nonsense",
        ] {
            assert!(read(other).is_none(), "{other}");
        }
    }
}

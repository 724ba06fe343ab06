use convoke_core::{Message, ModelFacts, Part, Role, ToolCall, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::OpenAiChat;
use crate::error::ModelErrorKind;
use crate::model::{Chunk, StopReason};
use crate::request::{Effort, OutputSchema, Request, Settings, ToolChoice};
use crate::wire::Wire;
use crate::wire::openai::samples;

fn body(model: &str, request: &Request<'_>) -> String {
    String::from_utf8(OpenAiChat.encode(model, &ModelFacts::default(), request).body).unwrap()
}

#[test]
fn a_request_has_exactly_these_bytes() {
    let messages = samples::conversation("openai_chat");
    let tools = samples::tools();
    let settings = Settings {
        temperature: Some(0.5),
        top_p: Some(1.0),
        thinking_budget: Some(0),
        reasoning_effort: Some(Effort::Low),
        max_output_tokens: Some(7),
    };
    let output = OutputSchema { name: "cat".into(), schema: json!({"type": "object"}) };
    let request = Request {
        system: "Be brief.",
        tools: &tools,
        tool_choice: ToolChoice::Only("look"),
        settings: &settings,
        max_output_tokens: Some(100),
        output: Some(&output),
        ..Request::new(&messages)
    };
    let expected = [
        r#"{"model":"gpt-5","#,
        r#""tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object"}}}],"#,
        r#""messages":[{"role":"system","content":"Be brief."},"#,
        r#"{"role":"user","content":[{"type":"text","text":"What is \"this\"?\n"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]},"#,
        r#"{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":\"a\",\"deep\":true}"}},"#,
        r#"{"id":"c2","type":"function","function":{"name":"look","arguments":"{}"}},"#,
        r#"{"id":"c3","type":"function","function":{"name":"look","arguments":"\"{\\\"at\""}}]},"#,
        r#"{"role":"tool","tool_call_id":"c1","content":"A cat:"},"#,
        r#"{"role":"tool","tool_call_id":"c2","content":"Error (not_found): no\ncat"},"#,
        r#"{"role":"tool","tool_call_id":"c3","content":"The result is in the next message."},"#,
        r#"{"role":"user","content":[{"type":"text","text":"From the result of call c1:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},"#,
        r#"{"type":"text","text":"From the result of call c3:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]},"#,
        r#"{"role":"assistant","content":"A cat."},"#,
        r#"{"role":"user","content":"And?\n\nA: https://a.b"}],"#,
        r#""tool_choice":{"type":"function","function":{"name":"look"}},"#,
        r#""max_completion_tokens":100,"temperature":0.5,"top_p":1.0,"reasoning_effort":"low","#,
        r#""response_format":{"type":"json_schema","json_schema":{"name":"cat","schema":{"type":"object"},"strict":false}},"#,
        r#""stream":true,"stream_options":{"include_usage":true}}"#,
    ];
    assert_eq!(body("gpt-5", &request), expected.concat());
    assert_eq!(
        OpenAiChat.encode("gpt-5", &ModelFacts::default(), &request).path,
        "chat/completions"
    );
}

#[test]
fn nothing_is_sent_that_is_not_set_and_names_stay() {
    let messages = [Message::text(Role::User, "hi")];
    for name in ["qwen-max", "mistral-medium", "gpt-5.1-codex-max", "ns::x-high", "a/b:c"] {
        let expected = format!(
            r#"{{"model":"{name}","messages":[{{"role":"user","content":"hi"}}],"stream":true,"stream_options":{{"include_usage":true}}}}"#
        );
        assert_eq!(body(name, &Request::new(&messages)), expected);
    }
}

#[test]
fn the_longest_answer_has_the_name_the_server_knows() {
    let messages = [Message::text(Role::User, "hi")];
    let request = Request { max_output_tokens: Some(9), ..Request::new(&messages) };
    for (model, openai) in [("gpt-4o", true), ("o3", true), ("gpt-oss:20b", false), ("qwen", false)]
    {
        let body: Value = serde_json::from_str(&body(model, &request)).unwrap();
        let expected = if openai { (json!(9), Value::Null) } else { (Value::Null, json!(9)) };
        let sent = (body["max_completion_tokens"].clone(), body["max_tokens"].clone());
        assert_eq!(sent, expected, "{model}");
    }
}

#[test]
fn tools_can_be_forbidden_and_schemas_can_be_strict() {
    let messages = [Message::text(Role::User, "hi")];
    let schema = json!({
        "type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"], "additionalProperties": false,
    });
    let output = OutputSchema { name: "x".into(), schema };
    let tools = samples::tools();
    let request = Request {
        tools: &tools,
        tool_choice: ToolChoice::None,
        output: Some(&output),
        ..Request::new(&messages)
    };
    let body: Value = serde_json::from_str(&body("m", &request)).unwrap();
    assert_eq!(body["tool_choice"], "none");
    assert_eq!(body["response_format"]["json_schema"]["strict"], true);
    assert_eq!(body["response_format"]["json_schema"]["schema"], output.schema);
}

#[test]
fn thoughts_go_back_only_with_calls_and_only_to_whom_wants_them() {
    let thought = || Part::Thought { text: "hm".into() };
    let messages = [
        Message { role: Role::Assistant, parts: vec![thought(), Part::text("a")] },
        Message {
            role: Role::Assistant,
            parts: vec![thought(), Part::ToolCall(ToolCall::new("c", "f", json!({})))],
        },
        Message { role: Role::Assistant, parts: vec![thought()] },
    ];
    let call =
        r#""tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let request = Request::new(&messages);
    let plain = format!(
        r#""messages":[{{"role":"assistant","content":"a"}},{{"role":"assistant","content":null,{call}]"#
    );
    assert!(body("gpt-5", &request).contains(&plain), "{}", body("gpt-5", &request));
    let with = format!(
        r#""messages":[{{"role":"assistant","content":"a"}},{{"role":"assistant","content":null,"reasoning_content":"hm",{call}]"#
    );
    assert!(body("deepseek-chat", &request).contains(&with));
}

#[test]
fn what_cannot_be_shown_is_named_and_documents_are_sent() {
    let media = |mime: &str| Part::Media { mime: mime.into(), data: "eA==".into() };
    let messages =
        [Message { role: Role::User, parts: vec![media("audio/wav"), media("application/pdf")] }];
    let expected = r#"[{"role":"user","content":[{"type":"text","text":"[audio/wav that cannot be shown here]"},{"type":"file","file":{"filename":"document.pdf","file_data":"data:application/pdf;base64,eA=="}}]}]"#;
    assert!(body("gpt-4o", &Request::new(&messages)).contains(expected));
}

#[test]
fn a_longer_conversation_starts_with_the_shorter_one() {
    samples::assert_prefixes(&OpenAiChat, "messages", &samples::conversation("openai_chat"));
}

fn delta(delta: &Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta}]}).to_string()
}

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

#[test]
fn an_answer_is_read() {
    let events = [
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}"#,
        r#"{"choices":[{"index":0,"delta":{"reasoning_content":"let "}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"reasoning_content":"me","reasoning":"me"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"He"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"llo"},"finish_reason":""}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":5}}}"#,
        "[DONE]",
        "never read",
    ];
    let (chunks, answer) = samples::decode(&OpenAiChat, events);
    let answer = answer.unwrap();
    assert_eq!(
        chunks,
        [
            Chunk::Thought("let ".into()),
            Chunk::Thought("me".into()),
            Chunk::Text("He".into()),
            Chunk::Text("llo".into()),
            Chunk::ToolCall { name: "f".into() },
        ]
    );
    assert_eq!(
        answer.message.parts,
        [
            Part::Thought { text: "let me".into() },
            Part::text("Hello"),
            Part::ToolCall(ToolCall::new("c1", "f", json!({"a": 1}))),
        ]
    );
    assert_eq!(answer.stop, StopReason::Done);
    let usage = Usage {
        input_tokens: 100,
        cached_tokens: 64,
        output_tokens: 20,
        thought_tokens: 5,
        ..Usage::default()
    };
    assert_eq!(answer.usage, usage);
}

/// A name for the case, the entries of `tool_calls` by event, and the calls: id, name, arguments.
type CallCase = (&'static str, Vec<Value>, Vec<(&'static str, &'static str, Value)>);

fn numbered_calls() -> Vec<CallCase> {
    vec![
        (
            "two calls at once, in pieces",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]),
                json!([{"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}}]),
                json!([{"index": 1, "function": {"arguments": "{\"x\":"}}]),
                json!([{"index": 0, "function": {"arguments": "{}"}}]),
                json!([{"index": 1, "function": {"arguments": "2}"}}]),
            ],
            vec![("a", "f", json!({})), ("b", "g", json!({"x": 2}))],
        ),
        (
            "arguments as objects, no type, no id",
            vec![json!([{"index": 0, "function": {"name": "f", "arguments": {"x": [1]}}}])],
            vec![("", "f", json!({"x": [1]}))],
        ),
        (
            "id and name in every piece",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\""}}]),
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ":1}"}}]),
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]),
            ],
            vec![("a", "f", json!({"x": 1}))],
        ),
        (
            "a new id in every piece",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]),
                json!([{"index": 0, "id": "b", "function": {"arguments": "{\"x\":"}}]),
                json!([{"index": 0, "id": "c", "function": {"arguments": "1}"}}]),
            ],
            vec![("a", "f", json!({"x": 1}))],
        ),
        (
            "every call is number zero",
            vec![
                json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]),
                json!([{"index": 0, "id": "b", "function": {"name": "f", "arguments": "{}"}}]),
            ],
            vec![("a", "f", json!({})), ("b", "f", json!({}))],
        ),
        (
            "no arguments at all",
            vec![json!([{"index": 0, "id": "a", "function": {"name": "f"}}])],
            vec![("a", "f", json!({}))],
        ),
        (
            "arguments that are not JSON",
            vec![json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x"}}])],
            vec![("a", "f", json!("{\"x"))],
        ),
        (
            "the name comes later",
            vec![
                json!([{"index": 0, "id": "a"}]),
                json!([{"index": 0, "function": {"name": "f", "arguments": "{}"}}]),
            ],
            vec![("a", "f", json!({}))],
        ),
    ]
}

fn unnumbered_calls() -> Vec<CallCase> {
    vec![
        (
            "whole calls in one event, without numbers",
            vec![json!([
                {"id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}},
                {"id": "b", "function": {"name": "f", "arguments": "{\"x\":2}"}},
            ])],
            vec![("a", "f", json!({"x": 1})), ("b", "f", json!({"x": 2}))],
        ),
        (
            "whole calls without numbers and ids",
            vec![
                json!([{"function": {"name": "f", "arguments": "{\"x\":1}"}}]),
                json!([{"function": {"name": "f", "arguments": "{\"x\":2}"}}]),
            ],
            vec![("", "f", json!({"x": 1})), ("", "f", json!({"x": 2}))],
        ),
        (
            "pieces without numbers, joined by id",
            vec![
                json!([{"id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}]),
                json!([{"id": "b", "function": {"name": "g", "arguments": "{\"y\":"}}]),
                json!([{"id": "a", "function": {"arguments": "1}"}}]),
                json!([{"id": "b", "function": {"arguments": "2}"}}]),
            ],
            vec![("a", "f", json!({"x": 1})), ("b", "g", json!({"y": 2}))],
        ),
        (
            "pieces without numbers, and the id only once",
            vec![
                json!([{"id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}]),
                json!([{"function": {"arguments": "1}"}}]),
            ],
            vec![("a", "f", json!({"x": 1}))],
        ),
    ]
}

#[test]
fn calls_are_put_together_however_they_come() {
    for (case, entries, expected) in numbered_calls().into_iter().chain(unnumbered_calls()) {
        let mut events: Vec<_> =
            entries.iter().map(|calls| delta(&json!({ "tool_calls": calls }))).collect();
        events.push(STOP.to_owned());
        let (chunks, answer) = samples::decode(&OpenAiChat, events.iter().map(String::as_str));
        let calls: Vec<_> = expected
            .iter()
            .map(|(id, name, value)| Part::ToolCall(ToolCall::new(*id, *name, value.clone())))
            .collect();
        assert_eq!(answer.unwrap().message.parts, calls, "{case}");
        let names: Vec<_> =
            expected.iter().map(|(_, name, _)| Chunk::ToolCall { name: (*name).into() }).collect();
        assert_eq!(chunks, names, "{case}");
    }
}

#[test]
fn an_old_function_call_is_a_call() {
    let events = [
        delta(&json!({"function_call": {"name": "f", "arguments": "{\"a\""}})),
        delta(&json!({"function_call": {"arguments": ":1}"}})),
        r#"{"choices":[{"delta":{},"finish_reason":"function_call"}]}"#.to_owned(),
    ];
    let (_, answer) = samples::decode(&OpenAiChat, events.iter().map(String::as_str));
    let call = Part::ToolCall(ToolCall::new("", "f", json!({"a": 1})));
    assert_eq!(answer.unwrap().message.parts, [call]);
}

#[test]
fn thoughts_in_a_list_and_whole_messages_are_read() {
    let listed = json!({"content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "yes"},
    ]});
    let expected = [Part::Thought { text: "hm".into() }, Part::text("yes")];
    let (_, answer) = samples::decode(&OpenAiChat, [delta(&listed).as_str(), STOP]);
    assert_eq!(answer.unwrap().message.parts, expected);

    let whole =
        r#"{"choices":[{"message":{"reasoning":"hm","content":"yes"},"finish_reason":"stop"}]}"#;
    let (_, answer) = samples::decode(&OpenAiChat, [whole]);
    assert_eq!(answer.unwrap().message.parts, expected);
}

#[test]
fn reasons_to_stop() {
    let table = [
        ("stop", StopReason::Done),
        ("tool_calls", StopReason::Done),
        ("function_call", StopReason::Done),
        ("eos", StopReason::Done),
        ("length", StopReason::Length),
        ("content_filter", StopReason::Refused),
    ];
    for (reason, stop) in table {
        let event = json!({"choices": [{"delta": {}, "finish_reason": reason}]}).to_string();
        let (_, answer) = samples::decode(&OpenAiChat, [event.as_str()]);
        assert_eq!(answer.unwrap().stop, stop, "{reason}");
    }
    let refusal = delta(&json!({"content": null, "refusal": "I will not."}));
    let (chunks, answer) = samples::decode(&OpenAiChat, [refusal.as_str(), STOP, "[DONE]"]);
    let answer = answer.unwrap();
    assert_eq!(chunks, [Chunk::Text("I will not.".into())]);
    assert_eq!(
        (answer.stop, answer.message.parts),
        (StopReason::Refused, vec![Part::text("I will not.")])
    );
}

#[test]
fn an_answer_is_complete_after_a_reason_or_the_last_event() {
    let text = delta(&json!({"content": "a"}));
    let (_, answer) = samples::decode(&OpenAiChat, [text.as_str()]);
    assert_eq!(answer.unwrap_err().kind, ModelErrorKind::Cut);
    let (_, answer) = samples::decode(&OpenAiChat, [text.as_str(), "[DONE]"]);
    assert_eq!(answer.unwrap().stop, StopReason::Done);
    let (_, answer) = samples::decode(&OpenAiChat, ["[DONE]"]);
    assert_eq!(answer.unwrap_err().kind, ModelErrorKind::Malformed);
}

#[test]
fn what_was_used_is_counted_the_same_for_everybody() {
    let table = [
        (
            json!({"usage": {"prompt_tokens": 10, "completion_tokens": 3, "prompt_cache_hit_tokens": 8}}),
            (10, 8, 3, 0),
        ),
        (
            // Thoughts are in the total only.
            json!({"usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 18, "completion_tokens_details": {"reasoning_tokens": 5}}}),
            (10, 0, 8, 5),
        ),
        (json!({"x_groq": {"usage": {"prompt_tokens": 1, "completion_tokens": 2}}}), (1, 0, 2, 0)),
        (json!({"usage": {"prompt_tokens": null, "completion_tokens": "many"}}), (0, 0, 0, 0)),
        (json!({}), (0, 0, 0, 0)),
    ];
    for (event, expected) in table {
        let (_, answer) = samples::decode(&OpenAiChat, [STOP, event.to_string().as_str()]);
        let usage = answer.unwrap().usage;
        let counted =
            (usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.thought_tokens);
        assert_eq!(counted, expected, "{event}");
    }
}

#[test]
fn an_error_in_the_middle_is_a_complaint() {
    let text = delta(&json!({"content": "a"}));
    let table = [
        (r#"{"error":{"message":"slow","code":429}}"#, ModelErrorKind::RateLimited, "slow"),
        (r#"{"error":"boom"}"#, ModelErrorKind::Server, "boom"),
        (
            r#"{"choices":[{"delta":{},"finish_reason":"error"}],"error":{"code":502,"message":"gone"}}"#,
            ModelErrorKind::Server,
            "gone",
        ),
        (
            r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#,
            ModelErrorKind::Server,
            "the provider ended its answer with an error",
        ),
        ("<html>", ModelErrorKind::Malformed, "an event cannot be read: <html>"),
        ("7", ModelErrorKind::Malformed, "an event cannot be read: 7"),
    ];
    for (event, kind, message) in table {
        let (chunks, answer) = samples::decode(&OpenAiChat, [text.as_str(), event]);
        let complaint = answer.unwrap_err();
        assert_eq!((complaint.kind, complaint.message.as_str()), (kind, message), "{event}");
        assert_eq!(chunks, [Chunk::Text("a".into())]);
    }
    let mut decoder = OpenAiChat.decoder();
    let named = decoder.event(Some("error"), r#"{"message":"x"}"#, &mut Vec::new());
    assert_eq!(named.unwrap_err().message, "x");
}

const WORDS: &[&str] = &[
    "choices",
    "delta",
    "message",
    "content",
    "reasoning",
    "reasoning_content",
    "tool_calls",
    "index",
    "id",
    "function",
    "name",
    "arguments",
    "finish_reason",
    "usage",
    "prompt_tokens",
    "total_tokens",
    "refusal",
    "thinking",
    "text",
    "function_call",
    "error",
    "x_groq",
];

proptest! {
    #[test]
    fn requests_grow_at_the_end(messages in samples::any_messages()) {
        samples::assert_prefixes(&OpenAiChat, "messages", &messages);
    }

    #[test]
    fn no_event_makes_it_panic(
        events in prop::collection::vec(samples::any_json(WORDS), 0..6),
        choices in prop::collection::vec(samples::any_json(WORDS), 0..6),
        deltas in prop::collection::vec(samples::any_json(WORDS), 0..6),
        garbage in ".{0,20}",
    ) {
        let wrapped = choices.into_iter().map(|choice| json!({"choices": [choice]}));
        let deltas = deltas.into_iter().map(|delta| json!({"choices": [{"delta": delta}]}));
        let calls = events.clone().into_iter()
            .map(|call| json!({"choices": [{"delta": {"tool_calls": [call]}}]}));
        let mut decoder = OpenAiChat.decoder();
        let mut chunks = Vec::new();
        for event in events.clone().into_iter().chain(wrapped).chain(deltas).chain(calls) {
            drop(decoder.event(None, &event.to_string(), &mut chunks));
        }
        drop(decoder.event(Some("error"), &garbage, &mut chunks));
        drop(decoder.event(None, "[DONE]", &mut chunks));
        prop_assert!(decoder.is_complete());
        drop(decoder.finish());
        OpenAiChat.error(500, garbage.as_bytes());
    }
}

#[test]
fn what_was_used_is_zero_where_nobody_said_it_and_may_come_last() {
    let (_, answer) = samples::decode(&OpenAiChat, [STOP, "[DONE]"]);
    assert_eq!(answer.unwrap().usage, Usage::default());
    let late = r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}"#;
    let usage = samples::decode(&OpenAiChat, [STOP, late]).1.unwrap().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (7, 3));
}

#[test]
fn calls_are_counted_as_they_come() {
    let mut decoder = OpenAiChat.decoder();
    let function = json!({"name": "ls", "arguments": "{\"pa"});
    let call = delta(&json!({"tool_calls": [{"index": 0, "id": "a", "function": function}]}));
    for event in [call.as_str(), STOP] {
        decoder.event(None, event, &mut Vec::new()).unwrap();
    }
    assert_eq!((decoder.call_bytes(), decoder.is_complete(), decoder.is_over()), (6, true, false));
    decoder.event(None, "[DONE]", &mut Vec::new()).unwrap();
    assert!(decoder.is_over());
}

/// Proxies keep what they have to know about a call in its id; OpenAI refuses more than 40 characters.
#[test]
fn long_ids_are_cut_for_openai_alone() {
    let id = format!("call_{}", "x".repeat(60));
    let result = Part::ToolResult { call: id.as_str().into(), content: vec![], is_error: false };
    let messages = [
        Message {
            role: Role::Assistant,
            parts: vec![Part::ToolCall(ToolCall::new(id.as_str(), "f", json!({})))],
        },
        Message { role: Role::Tool, parts: vec![result] },
    ];
    for (model, length) in [("gpt-5", 40), ("deepseek-chat", id.len())] {
        let body: Value = serde_json::from_str(&body(model, &Request::new(&messages))).unwrap();
        let sent = body["messages"][0]["tool_calls"][0]["id"].as_str().unwrap();
        assert_eq!(sent.len(), length, "{model}");
        assert_eq!(body["messages"][1]["tool_call_id"], sent);
    }
}

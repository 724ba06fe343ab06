use convoke_core::{Message, ModelFacts, Part, Role, ToolCall, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::OpenAiResponses;
use crate::error::ModelErrorKind;
use crate::model::{Answer, Chunk, StopReason};
use crate::request::{Effort, OutputSchema, Request, Settings, ToolChoice};
use crate::wire::openai::samples;
use crate::wire::{Complaint, Wire};

fn body(model: &str, request: &Request<'_>) -> String {
    String::from_utf8(OpenAiResponses.encode(model, &ModelFacts::default(), request).body).unwrap()
}

fn decode(events: &[Value]) -> (Vec<Chunk>, Result<Answer, Complaint>) {
    let events: Vec<_> = events.iter().map(Value::to_string).collect();
    samples::decode(&OpenAiResponses, events.iter().map(String::as_str))
}

fn completed(output: &Value) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output}})
}

#[test]
fn a_request_has_exactly_these_bytes() {
    let messages = samples::conversation("openai_responses");
    let tools = samples::tools();
    let settings = Settings {
        temperature: Some(0.5),
        top_p: Some(1.0),
        thinking_budget: Some(0),
        reasoning_effort: Some(Effort::Xhigh),
        max_output_tokens: Some(7),
    };
    let output = OutputSchema { name: "cat".into(), schema: json!({"type": "object"}) };
    let request = Request {
        system: "Be brief.",
        tools: &tools,
        tool_choice: ToolChoice::Only("look"),
        settings: &settings,
        max_output_tokens: None,
        output: Some(&output),
        ..Request::new(&messages)
    };
    let expected = [
        r#"{"model":"gpt-5","instructions":"Be brief.","#,
        r#""tools":[{"type":"function","name":"look","description":"Looks.","parameters":{"type":"object"},"strict":false}],"#,
        r#""input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"What is \"this\"?\n"},{"type":"input_image","image_url":"data:image/png;base64,aGk="}]},"#,
        r#"{"encrypted_content":"sEcReT","id":"rs_1","summary":[],"type":"reasoning"},"#,
        r#"{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look."}]},"#,
        r#"{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\":\"a\",\"deep\":true}"},"#,
        r#"{"type":"function_call","call_id":"c2","name":"look","arguments":"{}"},"#,
        r#"{"type":"function_call","call_id":"c3","name":"look","arguments":"\"{\\\"at\""},"#,
        r#"{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"A cat:"},{"type":"input_image","image_url":"data:image/png;base64,aGk="}]},"#,
        r#"{"type":"function_call_output","call_id":"c2","output":"Error (not_found): no\ncat"},"#,
        r#"{"type":"function_call_output","call_id":"c3","output":[{"type":"input_image","image_url":"data:image/png;base64,aGk="}]},"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"A cat."}]},"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"And?"},{"type":"input_text","text":"A: https://a.b"}]}],"#,
        r#""tool_choice":{"type":"function","name":"look"},"#,
        r#""max_output_tokens":7,"temperature":0.5,"top_p":1.0,"reasoning":{"effort":"xhigh","summary":"auto"},"#,
        r#""text":{"format":{"type":"json_schema","name":"cat","schema":{"type":"object"},"strict":false}},"#,
        r#""include":["reasoning.encrypted_content"],"store":false,"stream":true}"#,
    ];
    assert_eq!(body("gpt-5", &request), expected.concat());
    assert_eq!(OpenAiResponses.encode("gpt-5", &ModelFacts::default(), &request).path, "responses");
}

#[test]
fn nothing_is_sent_that_is_not_set_and_names_stay() {
    let messages = [Message::text(Role::User, "hi")];
    let table = [
        ("qwen-max", ""),
        ("mistral-medium", ""),
        ("gpt-4.1", ""),
        ("gpt-5.1-codex-max", r#""include":["reasoning.encrypted_content"],"#),
    ];
    for (name, include) in table {
        let expected = format!(
            r#"{{"model":"{name}","input":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":"hi"}}]}}],{include}"store":false,"stream":true}}"#
        );
        assert_eq!(body(name, &Request::new(&messages)), expected);
    }
}

#[test]
fn reasoning_is_sent_only_to_models_that_reason_and_never_alone() {
    let sealed = |secret: &str| Part::Opaque {
        provider: "openai_responses".into(),
        data: json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": secret}),
    };
    let led_somewhere = [Message {
        role: Role::Assistant,
        parts: vec![sealed("a"), sealed(""), sealed("b"), Part::text("x")],
    }];
    let sent = body("gpt-5", &Request::new(&led_somewhere));
    let position = |text: &str| sent.find(text).unwrap_or_else(|| panic!("{text} in {sent}"));
    assert!(position(r#""encrypted_content":"a""#) < position(r#""encrypted_content":"b""#));
    assert!(position(r#""encrypted_content":"b""#) < position("output_text"));
    assert_eq!(sent.matches(r#""type":"reasoning""#).count(), 2);
    assert!(!body("gpt-4.1", &Request::new(&led_somewhere)).contains("encrypted"));

    let led_nowhere = [Message { role: Role::Assistant, parts: vec![sealed("a")] }];
    assert!(body("gpt-5", &Request::new(&led_nowhere)).contains(r#""input":[]"#));
}

#[test]
fn a_longer_conversation_starts_with_the_shorter_one() {
    let messages = samples::conversation("openai_responses");
    samples::assert_prefixes(&OpenAiResponses, "input", &messages);
}

/// What OpenAI sends for a thought, a comment and two calls.
fn rich_stream() -> Vec<Value> {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "sEcReT",
        "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}]});
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "phase": "commentary",
        "content": [{"type": "output_text", "text": "I look.", "annotations": []}]});
    let call = |number: u64, arguments: &str| {
        json!({"type": "function_call", "id": format!("fc_{number}"),
        "call_id": format!("call_{number}"), "name": "look", "arguments": arguments})
    };
    let event = |kind: &str, index: u64, id: &str, delta: &str| json!({"type": format!("response.{kind}"), "output_index": index, "item_id": id, "delta": delta});
    let item = |kind: &str, index: u64, item: &Value| json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item});
    vec![
        json!({"type": "response.created", "response": {"id": "resp_1", "error": null, "status": "in_progress"}}),
        item(
            "added",
            0,
            &json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "early"}),
        ),
        event("reasoning_summary_part.added", 0, "rs_1", ""),
        event("reasoning_summary_text.delta", 0, "rs_1", "First."),
        event("reasoning_summary_part.added", 0, "rs_1", ""),
        event("reasoning_summary_text.delta", 0, "rs_1", "Then."),
        item("done", 0, &reasoning),
        item(
            "added",
            1,
            &json!({"type": "message", "id": "msg_1", "content": [], "phase": "commentary"}),
        ),
        event("output_text.delta", 1, "msg_1", "I "),
        event("output_text.delta", 1, "msg_1", "look."),
        item("done", 1, &message),
        item("added", 2, &call(1, "")),
        event("function_call_arguments.delta", 2, "fc_1", "{\"at\":"),
        event("function_call_arguments.delta", 2, "fc_1", "1}"),
        json!({"type": "response.function_call_arguments.done", "output_index": 2, "item_id": "fc_1", "arguments": "{\"at\":1}"}),
        item("done", 2, &call(1, "{\"at\":1}")),
        item("added", 3, &call(2, "")),
        item("done", 3, &call(2, "{}")),
        json!({"type": "response.completed", "response": {"status": "completed", "error": null, "incomplete_details": null,
            "output": [reasoning, message, call(1, "{\"at\":1}"), call(2, "{}")],
            "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64},
                "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 120}}}),
    ]
}

fn rich_parts() -> Vec<Part> {
    let opaque = |data| Part::Opaque { provider: "openai_responses".into(), data };
    vec![
        opaque(json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "sEcReT",
            "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}]})),
        Part::Thought { text: "First.\n\nThen.".into() },
        opaque(json!({"type": "message", "phase": "commentary"})),
        Part::text("I look."),
        Part::ToolCall(ToolCall::new("call_1", "look", json!({"at": 1}))),
        Part::ToolCall(ToolCall::new("call_2", "look", json!({}))),
    ]
}

fn rich_chunks() -> Vec<Chunk> {
    let look = || Chunk::ToolCall { name: "look".into() };
    vec![
        Chunk::Thought("First.".into()),
        Chunk::Thought("\n\n".into()),
        Chunk::Thought("Then.".into()),
        Chunk::Text("I ".into()),
        Chunk::Text("look.".into()),
        look(),
        look(),
    ]
}

#[test]
fn an_answer_is_read() {
    let (chunks, answer) = decode(&rich_stream());
    let answer = answer.unwrap();
    assert_eq!(chunks, rich_chunks());
    assert_eq!(answer.message.parts, rich_parts());
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

#[test]
fn reasoning_goes_back_as_it_came() {
    let (_, answer) = decode(&rich_stream());
    let messages = [answer.unwrap().message];
    let sent: Value = serde_json::from_str(&body("gpt-5", &Request::new(&messages))).unwrap();
    let expected = json!([
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "sEcReT",
            "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}]},
        {"type": "message", "role": "assistant", "phase": "commentary",
            "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{\"at\":1}"},
        {"type": "function_call", "call_id": "call_2", "name": "look", "arguments": "{}"},
    ]);
    assert_eq!(sent["input"], expected);
}

/// Every event is told in more than one way, so any of them may be missing.
#[test]
fn an_answer_is_the_same_whatever_a_server_leaves_out() {
    let all = rich_stream();
    let without = |names: &[&str]| -> Vec<Value> {
        let kept = |event: &&Value| !names.iter().any(|name| event["type"] == *name);
        all.iter().filter(kept).cloned().collect()
    };
    let changed = |change: &dyn Fn(&mut Value)| -> Vec<Value> {
        let mut events = all.clone();
        events.iter_mut().for_each(change);
        events
    };
    let remove = |event: &mut Value, key: &str| {
        event.as_object_mut().unwrap().remove(key);
    };
    let mut random_ids = 0;
    let mut events_with_random_ids = all.clone();
    for event in &mut events_with_random_ids {
        for pointer in ["/item_id", "/item/id"] {
            if let Some(id) = event.pointer_mut(pointer) {
                random_ids += 1;
                if id.as_str().is_some_and(|id| !id.starts_with("rs_")) {
                    *id = json!(format!("random_{random_ids}"));
                }
            }
        }
    }
    let table = [
        ("nothing announced", without(&["response.output_item.added"])),
        ("no items when they are done", without(&["response.output_item.done"])),
        (
            "no pieces",
            without(&[
                "response.output_text.delta",
                "response.reasoning_summary_text.delta",
                "response.reasoning_summary_part.added",
                "response.function_call_arguments.delta",
                "response.function_call_arguments.done",
            ]),
        ),
        ("only the end", vec![all.last().unwrap().clone()]),
        ("no numbers", changed(&|event| remove(event, "output_index"))),
        ("no ids of items in pieces", changed(&|event| remove(event, "item_id"))),
        ("another id in each event", events_with_random_ids),
        ("nothing at the end", {
            changed(&|event| {
                if let Some(response) = event.get_mut("response") {
                    remove(response, "status");
                    response["output"] = json!([]);
                }
            })
        }),
        ("every item is number zero", {
            changed(&|event| {
                if event.get("output_index").is_some() {
                    event["output_index"] = json!(0);
                }
            })
        }),
    ];
    for (case, events) in table {
        let (chunks, answer) = decode(&events);
        assert_eq!(answer.unwrap().message.parts, rich_parts(), "{case}");
        let joined = |chunks: &[Chunk]| {
            let text = |chunk: &Chunk| match chunk {
                Chunk::Text(text) | Chunk::Thought(text) => text.clone(),
                Chunk::ToolCall { name } => format!("<{name}>"),
                _ => String::new(),
            };
            chunks.iter().map(text).collect::<String>()
        };
        assert_eq!(joined(&chunks), joined(&rich_chunks()), "{case}");
    }
}

/// llama.cpp numbers nothing, gives calls no id but a call id, and says everything again at the end.
#[test]
fn an_answer_of_llama_cpp_is_read() {
    let call = |id: &str, arguments: &str| {
        json!({"type": "function_call", "call_id": id, "name": "f",
        "arguments": arguments, "status": "completed"})
    };
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "",
        "content": [{"type": "reasoning_text", "text": "hm"}]});
    let events = [
        json!({"type": "response.created", "response": {"status": "in_progress"}}),
        json!({"type": "response.output_item.added", "item": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": ""}}),
        json!({"type": "response.reasoning_text.delta", "delta": "hm", "item_id": "rs_1"}),
        json!({"type": "response.output_item.added", "item": call("fc_a", "")}),
        json!({"type": "response.function_call_arguments.delta", "delta": "{\"x\":", "item_id": "fc_a"}),
        json!({"type": "response.function_call_arguments.delta", "delta": "1}", "item_id": "fc_a"}),
        json!({"type": "response.output_item.added", "item": call("fc_b", "")}),
        json!({"type": "response.function_call_arguments.delta", "delta": "{}", "item_id": "fc_b"}),
        json!({"type": "response.output_item.done", "item": reasoning}),
        json!({"type": "response.output_item.done", "item": call("fc_a", "{\"x\":1}")}),
        json!({"type": "response.output_item.done", "item": call("fc_b", "{}")}),
        json!({"type": "response.completed", "response": {"status": "completed",
            "output": [reasoning, call("fc_a", "{\"x\":1}"), call("fc_b", "{}")],
            "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}}}),
    ];
    let (chunks, answer) = decode(&events);
    let answer = answer.unwrap();
    assert_eq!(
        answer.message.parts,
        [
            Part::Thought { text: "hm".into() },
            Part::ToolCall(ToolCall::new("fc_a", "f", json!({"x": 1}))),
            Part::ToolCall(ToolCall::new("fc_b", "f", json!({}))),
        ]
    );
    let named = || Chunk::ToolCall { name: "f".into() };
    assert_eq!(chunks, [Chunk::Thought("hm".into()), named(), named()]);
    assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (3, 2));
}

#[test]
fn reasons_to_stop() {
    let incomplete = |reason: &str| {
        json!({"type": "response.incomplete", "response": {"status": "incomplete",
        "incomplete_details": {"reason": reason}}})
    };
    let table = [
        (completed(&json!([])), StopReason::Done),
        (incomplete("max_output_tokens"), StopReason::Length),
        (incomplete("content_filter"), StopReason::Refused),
        (json!({"type": "response.incomplete"}), StopReason::Length),
        (json!({"type": "response.completed"}), StopReason::Done),
    ];
    for (event, stop) in table {
        let (_, answer) = decode(std::slice::from_ref(&event));
        assert_eq!(answer.unwrap().stop, stop, "{event}");
    }
}

#[test]
fn a_refusal_is_shown_and_said() {
    let refusal =
        json!([{"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}]);
    let streamed =
        json!({"type": "response.refusal.delta", "output_index": 0, "delta": "I will not."});
    for events in [vec![streamed, completed(&json!([]))], vec![completed(&refusal)]] {
        let (chunks, answer) = decode(&events);
        let answer = answer.unwrap();
        assert_eq!(chunks, [Chunk::Text("I will not.".into())]);
        assert_eq!(answer.stop, StopReason::Refused);
        assert_eq!(answer.message.parts, [Part::text("I will not.")]);
    }
}

#[test]
fn arguments_that_are_not_json_are_kept() {
    for (raw, value) in [("", json!({})), ("{\"a", json!("{\"a"))] {
        let output =
            json!([{"type": "function_call", "call_id": "c", "name": "f", "arguments": raw}]);
        let (_, answer) = decode(&[completed(&output)]);
        let call = Part::ToolCall(ToolCall::new("c", "f", value));
        assert_eq!(answer.unwrap().message.parts, [call]);
    }
}

#[test]
fn an_answer_without_its_last_event_is_cut() {
    let mut events = rich_stream();
    events.pop();
    assert_eq!(decode(&events).1.unwrap_err().kind, ModelErrorKind::Cut);
    let (_, answer) = samples::decode(&OpenAiResponses, ["[DONE]"]);
    assert_eq!(answer.unwrap_err().kind, ModelErrorKind::Cut);
}

#[test]
fn an_error_in_the_middle_is_a_complaint() {
    let failed = |code: &str| {
        json!({"type": "response.failed", "response": {"status": "failed",
        "error": {"code": code, "message": "x"}}})
    };
    let table = [
        (failed("rate_limit_exceeded"), ModelErrorKind::RateLimited, "x"),
        (failed("server_error"), ModelErrorKind::Server, "x"),
        (failed("context_length_exceeded"), ModelErrorKind::ContextTooLong, "x"),
        (failed("insufficient_quota"), ModelErrorKind::Quota, "x"),
        (failed("invalid_prompt"), ModelErrorKind::Rejected, "x"),
        (
            json!({"type": "response.failed"}),
            ModelErrorKind::Server,
            "the provider gave up on the answer",
        ),
        (
            json!({"type": "response.completed", "response": {"status": "failed", "error": {"message": "x"}}}),
            ModelErrorKind::Server,
            "x",
        ),
        (
            json!({"type": "error", "code": "server_error", "message": "x", "param": null}),
            ModelErrorKind::Server,
            "x",
        ),
        (
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}),
            ModelErrorKind::Rejected,
            "x",
        ),
        (json!({"error": {"code": 503, "message": "x"}}), ModelErrorKind::Server, "x"),
    ];
    let text = json!({"type": "response.output_text.delta", "delta": "a"});
    for (event, kind, message) in table {
        let (chunks, answer) = decode(&[text.clone(), event.clone()]);
        let complaint = answer.unwrap_err();
        assert_eq!((complaint.kind, complaint.message.as_str()), (kind, message), "{event}");
        assert_eq!(chunks, [Chunk::Text("a".into())]);
    }
    let (_, answer) = samples::decode(&OpenAiResponses, ["<html>"]);
    assert_eq!(answer.unwrap_err().kind, ModelErrorKind::Malformed);
}

const WORDS: &[&str] = &[
    "type",
    "item",
    "item_id",
    "id",
    "call_id",
    "output_index",
    "delta",
    "response",
    "output",
    "status",
    "content",
    "summary",
    "text",
    "refusal",
    "arguments",
    "name",
    "phase",
    "error",
    "code",
    "message",
    "reasoning",
    "function_call",
    "encrypted_content",
    "usage",
    "incomplete",
    "incomplete_details",
    "reason",
];

const EVENTS: &[&str] = &[
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_text.delta",
    "response.reasoning_summary_part.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
    "response.unknown",
];

proptest! {
    #[test]
    fn requests_grow_at_the_end(messages in samples::any_messages()) {
        samples::assert_prefixes(&OpenAiResponses, "input", &messages);
    }

    #[test]
    fn no_event_makes_it_panic(
        events in prop::collection::vec(
            (prop::sample::select(EVENTS), samples::any_json(WORDS), samples::any_json(WORDS)), 0..12),
        garbage in ".{0,20}",
    ) {
        let mut decoder = OpenAiResponses.decoder();
        let mut chunks = Vec::new();
        for (name, event, item) in events {
            drop(decoder.event(Some(name), &event.to_string(), &mut chunks));
            let whole = json!({"type": name, "item": item, "response": {"output": [item]}});
            drop(decoder.event(None, &whole.to_string(), &mut chunks));
        }
        drop(decoder.event(None, &garbage, &mut chunks));
        if decoder.is_complete() {
            prop_assert!(decoder.finish().is_ok());
        } else {
            prop_assert!(decoder.finish().is_err());
        }
        OpenAiResponses.error(500, garbage.as_bytes());
    }
}

#[test]
fn what_was_used_is_zero_where_nobody_said_it() {
    let mut event = completed(&json!([]));
    assert_eq!(decode(&[event.clone()]).1.unwrap().usage, Usage::default());
    event["response"]["usage"] = Value::Null;
    assert_eq!(decode(&[event]).1.unwrap().usage, Usage::default());
}

#[test]
fn calls_are_counted_as_they_come() {
    let mut decoder = OpenAiResponses.decoder();
    let item = json!({"type": "function_call", "id": "i", "call_id": "c", "name": "ls"});
    for event in [
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "i", "delta": "{\"pa"}),
    ] {
        decoder.event(None, &event.to_string(), &mut Vec::new()).unwrap();
    }
    assert_eq!((decoder.call_bytes(), decoder.is_over()), (2 + 4, false));
    decoder.event(None, &completed(&json!([])).to_string(), &mut Vec::new()).unwrap();
    assert!(decoder.is_over());
}

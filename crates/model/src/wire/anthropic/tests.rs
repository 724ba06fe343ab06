use convoke_core::{Message, ModelFacts, Part, Role, ToolCall, Usage};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::error::ModelErrorKind as Kind;
use crate::model::{Answer, Chunk, StopReason};
use crate::request::{Effort, OutputSchema, Settings, ToolChoice};
use crate::wire::samples::{assistant, call, ls, opaque, png, result, user};

fn body(request: &Request<'_>) -> String {
    let outgoing = Anthropic.encode("claude-max", &ModelFacts::default(), request);
    assert_eq!(outgoing.path, "v1/messages");
    String::from_utf8(outgoing.body).unwrap()
}

/// Cuts the conversation out of a body.
fn messages(body: &str) -> &str {
    let start = body.find("\"messages\":").unwrap() + "\"messages\":".len();
    &body[start..body.find(",\"max_tokens\":").unwrap()]
}

fn decode(events: &[Value]) -> (Vec<Chunk>, Result<Answer, Complaint>) {
    let mut decoder = Anthropic.decoder();
    let mut chunks = Vec::new();
    for event in events {
        assert!(!decoder.is_complete());
        let name = event["type"].as_str();
        if let Err(complaint) = decoder.event(name, &event.to_string(), &mut chunks) {
            return (chunks, Err(complaint));
        }
    }
    (chunks, decoder.finish())
}

fn start() -> Value {
    json!({ "type": "message_start", "message": { "id": "msg_1", "usage": {
        "input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000,
        "output_tokens": 1 } } })
}

fn block(index: u64, block: &Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn ending(reason: &str) -> [Value; 2] {
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    let usage = json!({ "output_tokens": 42, "output_tokens_details": { "thinking_tokens": 30 } });
    [
        json!({ "type": "message_delta", "delta": delta, "usage": usage }),
        json!({ "type": "message_stop" }),
    ]
}

#[test]
fn a_rich_request_has_exactly_these_bytes() {
    let thought = json!({ "type": "thinking", "thinking": "Hm.", "signature": "c2ln" });
    let conversation = [
        user("List it."),
        assistant(vec![
            opaque("anthropic", thought),
            Part::Thought { text: "Hm.".into() },
            opaque("gemini", json!({ "thoughtSignature": "x" })),
            Part::text("Looking."),
            call("toolu_1", "ls"),
            call("toolu_2", "shot"),
        ]),
        result("toolu_1", vec![Part::text("no such path")], true),
        result("toolu_2", vec![Part::text("here"), png()], false),
        Message {
            role: Role::User,
            parts: vec![
                Part::text("And this?"),
                Part::Media { mime: "application/pdf".into(), data: "JVBE".into() },
                Part::Link { uri: "file:///a".into(), title: Some("A".into()) },
            ],
        },
    ];
    let settings = Settings {
        temperature: Some(1.0),
        top_p: Some(0.95),
        thinking_budget: Some(2048),
        reasoning_effort: Some(Effort::High),
        max_output_tokens: Some(9000),
    };
    let output = OutputSchema { name: "report".into(), schema: json!({ "type": "object" }) };
    let tools = ls();
    let request = Request {
        system: "Be brief.",
        tools: &tools,
        tool_choice: ToolChoice::None,
        settings: &settings,
        output: Some(&output),
        ..Request::new(&conversation)
    };
    let expected = concat!(
        r#"{"model":"claude-max","#,
        r#""system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"#,
        r#""tools":[{"name":"ls","description":"Lists.","input_schema":{"type":"object"}}],"#,
        r#""messages":["#,
        r#"{"role":"user","content":[{"type":"text","text":"List it."}]},"#,
        r#"{"role":"assistant","content":["#,
        r#"{"signature":"c2ln","thinking":"Hm.","type":"thinking"},"#,
        r#"{"type":"text","text":"Looking."},"#,
        r#"{"type":"tool_use","id":"toolu_1","name":"ls","input":{"path":"."}},"#,
        r#"{"type":"tool_use","id":"toolu_2","name":"shot","input":{"path":"."}}]},"#,
        r#"{"role":"user","content":["#,
        r#"{"type":"tool_result","tool_use_id":"toolu_1","#,
        r#""content":[{"type":"text","text":"no such path"}],"is_error":true},"#,
        r#"{"type":"tool_result","tool_use_id":"toolu_2","content":[{"type":"text","text":"here"},"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]},"#,
        r#"{"type":"text","text":"And this?"},"#,
        r#"{"type":"document","source":"#,
        r#"{"type":"base64","media_type":"application/pdf","data":"JVBE"}},"#,
        r#"{"type":"text","text":"A: file:///a"}]}],"#,
        r#""max_tokens":9000,"tool_choice":{"type":"none"},"temperature":1.0,"top_p":0.95,"#,
        r#""thinking":{"type":"enabled","budget_tokens":2048},"#,
        r#""output_config":{"effort":"high","#,
        r#""format":{"type":"json_schema","schema":{"type":"object"}}},"#,
        r#""cache_control":{"type":"ephemeral"},"stream":true}"#,
    );
    assert_eq!(body(&request), expected);
}

#[test]
fn nothing_is_sent_that_nobody_set() {
    let conversation = [user("Hello")];
    let expected = concat!(
        r#"{"model":"claude-max","#,
        r#""messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}],"#,
        r#""max_tokens":8192,"cache_control":{"type":"ephemeral"},"stream":true}"#,
    );
    let request = Request::new(&conversation);
    assert_eq!(body(&request), expected);
    let forced_to_nothing = Request { tool_choice: ToolChoice::Only("ls"), ..request };
    assert_eq!(body(&forced_to_nothing), expected, "a choice needs tools");
}

#[test]
fn the_longest_answer_is_the_models_own_where_nobody_said_one() {
    for (known, budget, wanted, max_tokens) in [
        (None, None, None, 8_192),
        (Some(4_096), None, None, 4_096),
        (Some(64_000), None, None, 32_000),
        (Some(64_000), None, Some(50_000), 50_000),
        (Some(64_000), Some(-1), None, 32_000),
        (Some(64_000), Some(16_000), None, 48_000),
        (Some(64_000), Some(48_000), None, 64_000),
    ] {
        let settings =
            Settings { thinking_budget: budget, max_output_tokens: wanted, ..Settings::UNSET };
        let facts = ModelFacts { max_output: known, ..ModelFacts::default() };
        let conversation = [user("Hello")];
        let request = Request { settings: &settings, ..Request::new(&conversation) };
        let body = Anthropic.encode("claude", &facts, &request).body;
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["max_tokens"], max_tokens, "{known:?} {budget:?} {wanted:?}");
    }
}

#[test]
fn what_was_used_is_zero_where_nobody_said_it() {
    let events = [
        json!({ "type": "message_start", "message": { "id": "msg_1" } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
        json!({ "type": "message_stop" }),
    ];
    assert_eq!(decode(&events).1.unwrap().usage, Usage::default());
}

#[test]
fn calls_are_counted_as_they_come() {
    let mut decoder = Anthropic.decoder();
    let call = json!({ "type": "tool_use", "id": "a", "name": "ls", "input": {} });
    for event in [
        start(),
        block(0, &call),
        delta(0, &json!({ "type": "input_json_delta", "partial_json": "{\"pa" })),
    ] {
        decoder.event(None, &event.to_string(), &mut Vec::new()).unwrap();
    }
    assert_eq!((decoder.call_bytes(), decoder.is_over()), (2 + 4, false));
    decoder.event(None, r#"{"type":"message_stop"}"#, &mut Vec::new()).unwrap();
    assert!(decoder.is_over());
}

#[test]
fn thinking_fits_into_the_answer() {
    let off = Some(json!({ "type": "disabled" }));
    let adaptive = Some(json!({ "type": "adaptive" }));
    let enabled = |tokens| Some(json!({ "type": "enabled", "budget_tokens": tokens }));
    let auto = ToolChoice::Auto;
    let only = ToolChoice::Only("ls");
    for (budget, effort, max, choice, max_tokens, thinking) in [
        (None, None, None, auto, 8192, None),
        (None, Some(Effort::Low), None, auto, 8192, None),
        (None, Some(Effort::None), None, auto, 8192, off.clone()),
        (Some(0), None, None, auto, 8192, off.clone()),
        (Some(-1), None, Some(500), auto, 500, adaptive.clone()),
        (Some(-7), Some(Effort::High), None, auto, 8192, adaptive),
        (Some(20_000), None, None, auto, 28_192, enabled(20_000)),
        (Some(20_000), None, Some(30_000), auto, 30_000, enabled(20_000)),
        (Some(20_000), None, Some(20_000), auto, 20_000, enabled(10_000)),
        (Some(20_000), None, Some(2_000), auto, 2_000, off.clone()),
        (Some(5), None, Some(2_000), auto, 2_000, enabled(5)),
        (Some(20_000), None, None, only, 8192, off.clone()),
        (Some(-1), None, None, only, 8192, off),
        (None, None, None, only, 8192, None),
    ] {
        let settings = Settings {
            thinking_budget: budget,
            reasoning_effort: effort,
            max_output_tokens: max,
            ..Settings::UNSET
        };
        let (conversation, tools) = ([user("Hello")], ls());
        let request = Request {
            tools: &tools,
            tool_choice: choice,
            settings: &settings,
            ..Request::new(&conversation)
        };
        let body: Value = serde_json::from_str(&body(&request)).unwrap();
        let case = format!("{budget:?} {effort:?} {max:?} {choice:?}");
        assert_eq!(body["max_tokens"], max_tokens, "{case}");
        assert_eq!(body.get("thinking").cloned(), thinking, "{case}");
    }
}

#[test]
fn efforts_have_their_words() {
    for (effort, word) in [
        (Effort::None, None),
        (Effort::Minimal, Some("low")),
        (Effort::Low, Some("low")),
        (Effort::Medium, Some("medium")),
        (Effort::High, Some("high")),
        (Effort::Xhigh, Some("xhigh")),
    ] {
        let settings = Settings { reasoning_effort: Some(effort), ..Settings::UNSET };
        let conversation = [user("Hello")];
        let request = Request { settings: &settings, ..Request::new(&conversation) };
        let body: Value = serde_json::from_str(&body(&request)).unwrap();
        assert_eq!(body["output_config"]["effort"].as_str(), word, "{effort:?}");
    }
}

#[test]
fn a_longer_conversation_starts_with_the_bytes_of_the_shorter_one() {
    let signed = json!({ "type": "thinking", "thinking": "Hm.", "signature": "c2ln" });
    let mut conversation = vec![user("One"), Message::text(Role::System, "Two")];
    let steps = [
        vec![
            assistant(vec![
                opaque("anthropic", signed),
                Part::Thought { text: "Hm.".into() },
                call("a", "ls"),
                call("b", "ls"),
            ]),
            result("a", vec![Part::text("x"), png()], false),
            result("b", vec![], true),
        ],
        vec![user("By the way")],
        vec![assistant(vec![Part::Thought { text: "unsigned".into() }]), user("Well?")],
        vec![assistant(vec![Part::text("Done.")]), user("Thanks")],
    ];
    let (settings, tools) = (Settings::UNSET, ls());
    let mut previous: Option<String> = None;
    for (max, step) in steps.into_iter().enumerate() {
        conversation.extend(step);
        let request = Request {
            system: "Be brief.",
            tools: &tools,
            settings: &settings,
            // A budget that shrinks, and a choice that changes, must not touch the prefix.
            tool_choice: if max % 2 == 0 { ToolChoice::Auto } else { ToolChoice::Only("ls") },
            max_output_tokens: Some(1000 - max as u64),
            ..Request::new(&conversation)
        };
        let body = body(&request);
        assert_eq!(body, self::body(&request), "the same request, the same bytes");
        if let Some(previous) = previous {
            let end = previous.find(",\"max_tokens\":").unwrap();
            let open = previous[..end].strip_suffix("]}]").unwrap();
            assert!(body.starts_with(open), "{open}\n{body}");
        }
        previous = Some(body);
    }
}

#[test]
fn results_come_first_in_one_turn() {
    let conversation = [
        user("Go"),
        assistant(vec![call("a", "ls"), call("b", "ls")]),
        result("a", vec![Part::text("1")], false),
        user("Hurry"),
        result("b", vec![Part::text("2")], false),
    ];
    let body: Value = serde_json::from_str(&body(&Request::new(&conversation))).unwrap();
    let turns = body["messages"].as_array().unwrap();
    let types: Vec<_> =
        turns[2]["content"].as_array().unwrap().iter().map(|b| &b["type"]).collect();
    assert_eq!(turns.len(), 3);
    assert_eq!(types, ["tool_result", "tool_result", "text"]);
}

#[test]
fn parts_that_the_provider_would_refuse_are_made_acceptable() {
    let audio = Part::Media { mime: "audio/wav".into(), data: "AAAA".into() };
    let unread = ToolCall::new("call#ls#0", "ls", json!("{\"path\":"));
    let conversation = [
        user("Go"),
        assistant(vec![Part::text(" \n"), Part::ToolCall(unread)]),
        result("call#ls#0", vec![Part::text("")], true),
        assistant(vec![opaque("openai", json!({ "type": "reasoning" })), Part::text("")]),
        result("b", vec![Part::text("")], false),
        Message { role: Role::User, parts: vec![audio] },
    ];
    let expected = concat!(
        r#"[{"role":"user","content":[{"type":"text","text":"Go"}]},"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"call_23ls_230","name":"ls","#,
        r#""input":{"arguments":"{\"path\":"}}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_23ls_230","#,
        r#""content":[{"type":"text","text":"the tool failed and said nothing"}],"is_error":true},"#,
        r#"{"type":"tool_result","tool_use_id":"b"},"#,
        r#"{"type":"text","text":"[audio/wav, which this model cannot read]"}]}]"#,
    );
    assert_eq!(messages(&body(&Request::new(&conversation))), expected);
}

#[test]
fn an_answer_is_read_shown_and_sent_back() {
    let mut events = vec![
        start(),
        json!({ "type": "ping" }),
        block(0, &json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, &json!({ "type": "thinking_delta", "thinking": "Let me " })),
        delta(0, &json!({ "type": "thinking_delta", "thinking": "see." })),
        delta(0, &json!({ "type": "signature_delta", "signature": "c2ln" })),
        json!({ "type": "content_block_stop", "index": 0 }),
        block(1, &json!({ "type": "redacted_thinking", "data": "ZGFyaw" })),
        block(2, &json!({ "type": "text", "text": "" })),
        delta(2, &json!({ "type": "text_delta", "text": "Loo" })),
        delta(2, &json!({ "type": "text_delta", "text": "king." })),
        block(3, &json!({ "type": "tool_use", "id": "toolu_1", "name": "ls", "input": {} })),
        delta(3, &json!({ "type": "input_json_delta", "partial_json": "" })),
        delta(3, &json!({ "type": "input_json_delta", "partial_json": "{\"path\"" })),
        delta(3, &json!({ "type": "input_json_delta", "partial_json": ":\"src\"}" })),
        block(4, &json!({ "type": "tool_use", "id": "toolu_2", "name": "now", "input": {} })),
        block(5, &json!({ "type": "tool_use", "id": "toolu_3", "name": "cat", "input": {} })),
        delta(5, &json!({ "type": "input_json_delta", "partial_json": "{\"path\":" })),
        block(6, &json!({ "type": "tool_use", "name": "all", "input": { "at": "once" } })),
        block(7, &json!({ "type": "server_tool_use", "id": "x", "name": "web_search" })),
        delta(7, &json!({ "type": "input_json_delta", "partial_json": "{}" })),
        delta(2, &json!({ "type": "citations_delta", "citation": {} })),
        json!({ "type": "brand_new", "index": "odd" }),
    ];
    events.extend(ending("tool_use"));
    let (chunks, answer) = decode(&events);
    let answer = answer.unwrap();

    let name = |name: &str| Chunk::ToolCall { name: name.into() };
    assert_eq!(
        chunks,
        [
            Chunk::Thought("Let me ".into()),
            Chunk::Thought("see.".into()),
            Chunk::Text("Loo".into()),
            Chunk::Text("king.".into()),
            name("ls"),
            name("now"),
            name("cat"),
            name("all"),
        ]
    );
    let signed = json!({ "type": "thinking", "thinking": "Let me see.", "signature": "c2ln" });
    assert_eq!(
        answer.message.parts,
        [
            opaque("anthropic", signed),
            Part::Thought { text: "Let me see.".into() },
            opaque("anthropic", json!({ "type": "redacted_thinking", "data": "ZGFyaw" })),
            Part::text("Looking."),
            Part::ToolCall(ToolCall::new("toolu_1", "ls", json!({ "path": "src" }))),
            Part::ToolCall(ToolCall::new("toolu_2", "now", json!({}))),
            Part::ToolCall(ToolCall::new("toolu_3", "cat", json!("{\"path\":"))),
            Part::ToolCall(ToolCall::new("", "all", json!({ "at": "once" }))),
        ]
    );
    assert_eq!(answer.stop, StopReason::Done);
    let usage = Usage {
        input_tokens: 3210,
        cached_tokens: 3000,
        cache_write_tokens: 200,
        output_tokens: 42,
        thought_tokens: 30,
        estimated: false,
        cost: None,
    };
    assert_eq!(answer.usage, usage);

    let conversation = [user("Go"), answer.message];
    let sent = body(&Request::new(&conversation));
    let expected = concat!(
        r#"{"role":"assistant","content":["#,
        r#"{"signature":"c2ln","thinking":"Let me see.","type":"thinking"},"#,
        r#"{"data":"ZGFyaw","type":"redacted_thinking"},"#,
        r#"{"type":"text","text":"Looking."},"#,
        r#"{"type":"tool_use","id":"toolu_1","name":"ls","input":{"path":"src"}},"#,
    );
    assert!(messages(&sent).contains(expected), "{sent}");
}

#[test]
fn a_signature_without_words_survives_and_words_without_one_do_not_return() {
    let mut events = vec![
        block(0, &json!({ "type": "thinking", "thinking": "" })),
        delta(0, &json!({ "type": "signature_delta", "signature": "c2ln" })),
        block(1, &json!({ "type": "thinking", "thinking": "loud" })),
        block(2, &json!({ "type": "text", "text": "Yes" })),
    ];
    events.extend(ending("end_turn"));
    let message = decode(&events).1.unwrap().message;
    let signed = json!({ "type": "thinking", "thinking": "", "signature": "c2ln" });
    let loud = Part::Thought { text: "loud".into() };
    assert_eq!(message.parts, [opaque("anthropic", signed), loud, Part::text("Yes")]);
    let sent = body(&Request::new(&[message]));
    assert!(sent.contains("c2ln") && !sent.contains("loud"), "{sent}");
}

#[test]
fn every_ending_is_understood() {
    for (reason, stop) in [
        ("end_turn", StopReason::Done),
        ("stop_sequence", StopReason::Done),
        ("tool_use", StopReason::Done),
        ("pause_turn", StopReason::Done),
        ("something_new", StopReason::Done),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Refused),
    ] {
        assert_eq!(decode(&ending(reason)).1.unwrap().stop, stop, "{reason}");
    }
}

#[test]
fn only_the_end_marker_makes_an_answer_whole() {
    let [last, stop] = ending("end_turn");
    let text = block(0, &json!({ "type": "text", "text": "Hel" }));
    assert_eq!(decode(&[]).1.unwrap_err().kind, ModelErrorKind::Cut);
    let (_, cut) = decode(&[start(), text.clone(), last.clone()]);
    assert_eq!(cut.unwrap_err().kind, ModelErrorKind::Cut);
    assert!(decode(&[start(), text, last, stop]).1.is_ok());
}

#[test]
fn errors_in_the_middle_are_complaints() {
    for (word, kind) in [
        ("overloaded_error", ModelErrorKind::Server),
        ("api_error", ModelErrorKind::Server),
        ("never_seen", ModelErrorKind::Server),
        ("rate_limit_error", ModelErrorKind::RateLimited),
        ("invalid_request_error", ModelErrorKind::Rejected),
    ] {
        let error = json!({ "type": "error", "error": { "type": word, "message": "Sorry" } });
        let complaint = decode(&[start(), error]).1.unwrap_err();
        assert_eq!(complaint, Complaint::new(kind, "Sorry"), "{word}");
    }
}

#[test]
fn nonsense_is_quoted() {
    let mut decoder = Anthropic.decoder();
    let long = format!("<html>{}", "x".repeat(5000));
    let complaint = decoder.event(None, &long, &mut Vec::new()).unwrap_err();
    assert_eq!(complaint.kind, ModelErrorKind::Malformed);
    assert!(complaint.message.contains("<html>xxx"), "{}", complaint.message);
    assert!(complaint.message.chars().count() < 500);
    let text = format!("\"{}\"", "x".repeat(5000));
    let complaint = decoder.event(None, &text, &mut Vec::new()).unwrap_err();
    assert!(complaint.message.chars().count() < 500, "the reason quotes too");
    let stray = delta(9, &json!({ "type": "text_delta", "text": "?" }));
    assert_eq!(decode(&[stray]).1.unwrap_err().kind, ModelErrorKind::Malformed);
    assert_eq!(decoder.event(None, "  ", &mut Vec::new()), Ok(()));
}

#[test]
fn error_bodies_say_what_they_mean() {
    let body = |word: &str, message: &str| {
        json!({ "type": "error", "error": { "type": word, "message": message } }).to_string()
    };
    let invalid = |message: &str| body("invalid_request_error", message);
    for (status, body, kind, words) in [
        (401, body("authentication_error", "invalid x-api-key"), Kind::Authentication, "x-api-key"),
        (403, body("permission_error", "not yours"), Kind::Authentication, "not yours"),
        (404, body("not_found_error", "model: nope"), Kind::NotFound, "nope"),
        (429, body("rate_limit_error", "slow down"), Kind::RateLimited, "slow"),
        (413, body("request_too_large", "32 MB"), Kind::ContextTooLong, "32 MB"),
        (413, "<html>413</html>".into(), Kind::ContextTooLong, "413"),
        (500, body("api_error", "oops"), Kind::Server, "oops"),
        (529, body("overloaded_error", "Overloaded"), Kind::Server, "Overloaded"),
        (529, String::new(), Kind::Server, ""),
        (402, body("billing_error", "pay"), Kind::Quota, "pay"),
        (400, invalid("Your credit balance is too low to access"), Kind::Quota, "credit"),
        (400, invalid("prompt is too long: 9 tokens > 8 maximum"), Kind::ContextTooLong, "9"),
        (
            400,
            invalid("input length and `max_tokens` exceed context limit: 1 + 2 > 2"),
            Kind::ContextTooLong,
            "exceed",
        ),
        (400, invalid("max_tokens: required"), Kind::Rejected, "required"),
        (400, body("exceed_context_size_error", "too big"), Kind::ContextTooLong, "too big"),
        (502, "\n<html>\n<title>Bad Gateway</title>".into(), Kind::Server, "Bad Gateway"),
        (400, r#"{"error":"just words"}"#.into(), Kind::Rejected, "just words"),
        (418, r#"{"error":{"message":5}}"#.into(), Kind::Rejected, "message"),
    ] {
        let complaint = Anthropic.error(status, body.as_bytes());
        assert_eq!(complaint.kind, kind, "{status} {body}");
        assert!(complaint.message.contains(words), "{status} {body}: {}", complaint.message);
    }
    let long = Anthropic.error(400, invalid(&"x".repeat(9000)).as_bytes());
    assert!(long.message.chars().count() <= 501);
}

#[test]
fn the_key_goes_into_a_header() {
    let version = ("anthropic-version", "2023-06-01".to_owned());
    assert_eq!(Anthropic.headers(None), vec![version.clone()]);
    assert_eq!(Anthropic.headers(Some("k")), [("x-api-key", "k".to_owned()), version]);
}

/// Events that are almost right, so that the reader gets past the JSON.
fn almost() -> impl Strategy<Value = String> {
    let types = proptest::sample::select(vec![
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
        "text_delta",
        "input_json_delta",
        "tool_use",
        "",
    ]);
    (types.clone(), types, any::<u64>(), ".{0,9}").prop_map(|(event, inner, index, text)| {
        let inner = json!({ "type": inner, "text": text, "partial_json": text, "name": text,
            "usage": { "input_tokens": index, "cache_read_input_tokens": index },
            "message": text, "stop_reason": text });
        json!({ "type": event, "index": index % 2, "content_block": inner, "delta": inner,
            "message": inner, "error": inner, "usage": { "output_tokens": index } })
        .to_string()
    })
}

proptest! {
    #[test]
    fn no_events_make_it_panic(events in prop::collection::vec(prop_oneof![".*", almost()], 0..12)) {
        let mut decoder = Anthropic.decoder();
        let mut chunks = Vec::new();
        for event in &events {
            if let Err(complaint) = decoder.event(None, event, &mut chunks) {
                prop_assert!(complaint.message.chars().count() <= 600);
            }
        }
        let is_complete = decoder.is_complete();
        prop_assert_eq!(decoder.finish().is_ok(), is_complete);
    }

    #[test]
    fn no_body_makes_it_panic(status: u16, body: Vec<u8>) {
        prop_assert!(Anthropic.error(status, &body).message.chars().count() <= 501);
    }
}

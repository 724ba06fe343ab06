use convoke_core::{Message, ModelFacts, Part, Role, ToolCall, Usage};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::error::ModelErrorKind as Kind;
use crate::model::{Answer, Chunk, StopReason};
use crate::request::{Effort, OutputSchema, Settings, ToolChoice};
use crate::wire::samples::{assistant, call, ls, opaque, png, result, user};

fn body(model: &str, request: &Request<'_>) -> String {
    String::from_utf8(Gemini.encode(model, &ModelFacts::default(), request).body).unwrap()
}

/// Returns the contents of a conversation.
fn contents(model: &str, conversation: &[Message]) -> Value {
    let body: Value = serde_json::from_str(&body(model, &Request::new(conversation))).unwrap();
    body["contents"].clone()
}

fn decode(events: &[Value]) -> (Vec<Chunk>, Result<Answer, Complaint>) {
    let mut decoder = Gemini.decoder();
    let mut chunks = Vec::new();
    for event in events {
        if let Err(complaint) = decoder.event(None, &event.to_string(), &mut chunks) {
            return (chunks, Err(complaint));
        }
    }
    (chunks, decoder.finish())
}

/// An event with these parts.
fn parts(parts: &Value) -> Value {
    json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }] })
}

fn finish(reason: &str) -> Value {
    json!({ "candidates": [{ "finishReason": reason }] })
}

#[test]
fn a_rich_request_has_exactly_these_bytes() {
    let conversation = [
        user("List it."),
        assistant(vec![
            Part::Thought { text: "Hm.".into() },
            opaque("gemini", json!({ "thoughtSignature": "dGV4dA" })),
            Part::text("Looking."),
            opaque("gemini", json!({ "thoughtSignature": "Y2FsbA", "id": "f1" })),
            call("ours-1", "ls"),
            opaque("anthropic", json!({ "type": "thinking" })),
            call("ours-2", "shot"),
        ]),
        result("ours-1", vec![Part::text("no such"), Part::text("path")], true),
        result("ours-2", vec![Part::text("here"), png()], false),
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
        temperature: Some(0.5),
        top_p: Some(0.95),
        thinking_budget: None,
        reasoning_effort: Some(Effort::Low),
        max_output_tokens: Some(9000),
    };
    let output = OutputSchema { name: "report".into(), schema: json!({ "type": "object" }) };
    let tools = ls();
    let request = Request {
        system: "Be brief.",
        tools: &tools,
        tool_choice: ToolChoice::Only("ls"),
        settings: &settings,
        max_output_tokens: Some(700),
        output: Some(&output),
        ..Request::new(&conversation)
    };
    let expected = concat!(
        r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"#,
        r#""tools":[{"functionDeclarations":[{"name":"ls","description":"Lists.","#,
        r#""parametersJsonSchema":{"type":"object"}}]}],"#,
        r#""contents":["#,
        r#"{"role":"user","parts":[{"text":"List it."}]},"#,
        r#"{"role":"model","parts":["#,
        r#"{"text":"Looking.","thoughtSignature":"dGV4dA"},"#,
        r#"{"functionCall":{"id":"f1","name":"ls","args":{"path":"."}},"#,
        r#""thoughtSignature":"Y2FsbA"},"#,
        r#"{"functionCall":{"name":"shot","args":{"path":"."}}}]},"#,
        r#"{"role":"user","parts":["#,
        r#"{"functionResponse":{"id":"f1","name":"ls","response":{"error":"no such\npath"}}},"#,
        r#"{"functionResponse":{"name":"shot","response":{"output":"here"},"#,
        r#""parts":[{"inlineData":{"mimeType":"image/png","data":"iVBO"}}]}}]},"#,
        r#"{"role":"user","parts":[{"text":"And this?"},"#,
        r#"{"inlineData":{"mimeType":"application/pdf","data":"JVBE"}},"#,
        r#"{"text":"A: file:///a"}]}],"#,
        r#""toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["ls"]}},"#,
        r#""generationConfig":{"temperature":0.5,"topP":0.95,"maxOutputTokens":700,"#,
        r#""responseMimeType":"application/json","responseJsonSchema":{"type":"object"},"#,
        r#""thinkingConfig":{"thinkingLevel":"low","includeThoughts":true}}}"#,
    );
    assert_eq!(body("gemini-3-pro", &request), expected);
}

#[test]
fn nothing_is_sent_that_nobody_set() {
    let conversation = [user("Hello")];
    let request = Request::new(&conversation);
    let expected = r#"{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}"#;
    assert_eq!(body("gemini-2.5-pro", &request), expected);
    let forced_to_nothing = Request { tool_choice: ToolChoice::Only("ls"), ..request };
    assert_eq!(body("gemini-3-pro", &forced_to_nothing), expected, "a choice needs tools");
}

#[test]
fn calls_can_be_forbidden_without_taking_the_tools_away() {
    let (conversation, tools) = ([user("Hello")], ls());
    let request =
        Request { tools: &tools, tool_choice: ToolChoice::None, ..Request::new(&conversation) };
    let body: Value = serde_json::from_str(&body("gemini-2.5-pro", &request)).unwrap();
    assert_eq!(body["toolConfig"], json!({ "functionCallingConfig": { "mode": "NONE" } }));
    assert_eq!(body["tools"][0]["functionDeclarations"][0]["name"], "ls");
}

#[test]
fn thinking_is_a_number_or_a_word() {
    let early = "gemini-2.5-flash";
    let third = "gemini-3-flash";
    let unsaid = "gemini-flash-latest";
    let budget = |n: i64| json!({ "thinkingBudget": n, "includeThoughts": true });
    let level = |word: &str| json!({ "thinkingLevel": word, "includeThoughts": true });
    for (model, number, effort, expected) in [
        (early, Some(-1), None, budget(-1)),
        (early, Some(-5), None, budget(-1)),
        (early, Some(1024), Some(Effort::High), budget(1024)),
        (early, Some(0), None, json!({ "thinkingBudget": 0 })),
        (early, None, Some(Effort::None), json!({ "thinkingBudget": 0 })),
        (early, None, Some(Effort::Medium), budget(8192)),
        (early, None, Some(Effort::Xhigh), budget(24_576)),
        (unsaid, None, Some(Effort::Medium), level("medium")),
        (unsaid, Some(7), Some(Effort::Medium), budget(7)),
        (third, Some(1024), None, budget(1024)),
        (third, Some(1024), Some(Effort::Xhigh), level("high")),
        (third, Some(0), Some(Effort::None), json!({ "thinkingLevel": "minimal" })),
        (third, None, Some(Effort::Minimal), level("minimal")),
    ] {
        let settings =
            Settings { thinking_budget: number, reasoning_effort: effort, ..Settings::UNSET };
        let conversation = [user("Hello")];
        let request = Request { settings: &settings, ..Request::new(&conversation) };
        let body: Value = serde_json::from_str(&body(model, &request)).unwrap();
        let config = &body["generationConfig"]["thinkingConfig"];
        assert_eq!(*config, expected, "{model} {number:?} {effort:?}");
    }
}

#[test]
fn a_longer_conversation_starts_with_the_bytes_of_the_shorter_one() {
    let opening = vec![user("One"), Message::text(Role::System, "Two")];
    let steps = [
        vec![
            assistant(vec![
                Part::Thought { text: "Hm.".into() },
                opaque("gemini", json!({ "thoughtSignature": "c2ln" })),
                call("a", "ls"),
                call("b", "shot"),
            ]),
            result("a", vec![Part::text("x"), png()], false),
            result("b", vec![], true),
        ],
        vec![user("By the way")],
        vec![assistant(vec![Part::Thought { text: "only".into() }]), user("Well?")],
        vec![assistant(vec![call("a", "cat")]), result("a", vec![png()], false)],
        vec![assistant(vec![Part::text("Done.")]), user("Thanks")],
    ];
    let tools = ls();
    for model in ["gemini-2.5-pro", "gemini-3-pro"] {
        let mut conversation = opening.clone();
        let mut previous: Option<String> = None;
        for (max, step) in steps.iter().enumerate() {
            conversation.extend(step.iter().cloned());
            let request = Request {
                system: "Be brief.",
                tools: &tools,
                // A budget that shrinks, and a choice that changes, must not touch the prefix.
                tool_choice: if max % 2 == 0 { ToolChoice::Auto } else { ToolChoice::Only("ls") },
                max_output_tokens: Some(1000 - max as u64),
                ..Request::new(&conversation)
            };
            let body = body(model, &request);
            assert_eq!(body, self::body(model, &request), "the same request, the same bytes");
            if let Some(previous) = previous {
                let end =
                    previous.find(",\"toolConfig\"").or(previous.find(",\"generationConfig\""));
                let open = previous[..end.unwrap()].strip_suffix(']').unwrap();
                assert!(body.starts_with(open), "{open}\n{body}");
            }
            previous = Some(body);
        }
    }
}

#[test]
fn two_calls_in_separate_events_without_ids_stay_two_and_in_order() {
    let call = |city: &str| {
        parts(&json!([{ "functionCall": { "name": "weather", "args": { "city": city } } }]))
    };
    let mut first = call("Oslo");
    first["candidates"][0]["content"]["parts"][0]["thoughtSignature"] = json!("c2ln");
    let (chunks, answer) = decode(&[first, call("Rome"), finish("STOP")]);
    let mut message = answer.unwrap().message;
    assert_eq!(chunks, vec![Chunk::ToolCall { name: "weather".into() }; 2]);
    assert_eq!(
        message.parts,
        [
            opaque("gemini", json!({ "thoughtSignature": "c2ln" })),
            Part::ToolCall(ToolCall::new("", "weather", json!({ "city": "Oslo" }))),
            Part::ToolCall(ToolCall::new("", "weather", json!({ "city": "Rome" }))),
        ]
    );

    // The runtime gives them ids of its own, which the provider never sees.
    for (index, part) in message.parts.iter_mut().enumerate() {
        if let Part::ToolCall(call) = part {
            call.id = format!("ours-{index}").into();
        }
    }
    let conversation = [
        user("Weather?"),
        message,
        result("ours-1", vec![Part::text("rain")], false),
        result("ours-2", vec![Part::text("sun")], false),
    ];
    let expected = json!([
        { "role": "user", "parts": [{ "text": "Weather?" }] },
        { "role": "model", "parts": [
            { "functionCall": { "name": "weather", "args": { "city": "Oslo" } },
              "thoughtSignature": "c2ln" },
            { "functionCall": { "name": "weather", "args": { "city": "Rome" } } },
        ] },
        { "role": "user", "parts": [
            { "functionResponse": { "name": "weather", "response": { "output": "rain" } } },
            { "functionResponse": { "name": "weather", "response": { "output": "sun" } } },
        ] },
    ]);
    assert_eq!(contents("gemini-3-pro", &conversation), expected);
}

#[test]
fn an_id_that_the_provider_gave_goes_back_to_it() {
    let event = parts(&json!([{ "functionCall": { "id": "f7", "name": "now" } }]));
    let mut message = decode(&[event, finish("STOP")]).1.unwrap().message;
    let expected = [
        opaque("gemini", json!({ "id": "f7" })),
        Part::ToolCall(ToolCall::new("f7", "now", json!({}))),
    ];
    assert_eq!(message.parts, expected);
    if let Some(Part::ToolCall(call)) = message.parts.last_mut() {
        call.id = "ours".into();
    }
    let conversation = [user("?"), message, result("ours", vec![Part::text("noon")], false)];
    let contents = contents("gemini-2.5-pro", &conversation);
    assert_eq!(
        contents[1]["parts"][0],
        json!({ "functionCall": { "id": "f7", "name": "now", "args": {} } })
    );
    let response = json!({ "id": "f7", "name": "now", "response": { "output": "noon" } });
    assert_eq!(contents[2]["parts"], json!([{ "functionResponse": response }]));
}

#[test]
fn signatures_stay_with_the_parts_they_came_with() {
    let events = [
        parts(&json!([{ "text": "Let me ", "thought": true }])),
        parts(&json!([{ "text": "see.", "thought": true }])),
        parts(&json!([{ "text": "signed", "thought": true, "thoughtSignature": "dGhpbms" }])),
        parts(&json!([{ "text": "Hel" }])),
        parts(&json!([{ "text": "lo" }, { "text": "" }])),
        parts(&json!([{ "text": " there", "thoughtSignature": "b25l" }])),
        parts(&json!([{ "text": "." }])),
        parts(&json!([{ "text": "", "thoughtSignature": "dHdv" }])),
        parts(&json!([{ "executableCode": { "code": "1" } }])),
        json!({ "modelVersion": "gemini-3-pro", "somethingNew": [1] }),
        finish("STOP"),
    ];
    let (chunks, answer) = decode(&events);
    let message = answer.unwrap().message;
    assert_eq!(
        chunks,
        [
            Chunk::Thought("Let me ".into()),
            Chunk::Thought("see.".into()),
            Chunk::Thought("signed".into()),
            Chunk::Text("Hel".into()),
            Chunk::Text("lo".into()),
            Chunk::Text(" there".into()),
            Chunk::Text(".".into()),
        ]
    );
    let signature = |text: &str| opaque("gemini", json!({ "thoughtSignature": text }));
    assert_eq!(
        message.parts,
        [
            Part::Thought { text: "Let me see.".into() },
            signature("dGhpbms"),
            Part::Thought { text: "signed".into() },
            Part::text("Hello"),
            signature("b25l"),
            Part::text(" there"),
            Part::text("."),
            signature("dHdv"),
            Part::text(""),
        ]
    );
    let expected = json!([
        { "text": "Hello" },
        { "text": " there", "thoughtSignature": "b25l" },
        { "text": "." },
        { "text": "", "thoughtSignature": "dHdv" },
    ]);
    assert_eq!(contents("gemini-3-pro", &[user("Hi"), message])[1]["parts"], expected);
}

#[test]
fn calls_of_other_models_get_the_documented_signature_where_one_is_wanted() {
    let conversation = [
        user("Go"),
        assistant(vec![
            opaque("anthropic", json!({ "type": "thinking", "signature": "c2ln" })),
            call("a", "ls"),
            call("b", "ls"),
        ]),
    ];
    for (model, wanted) in [
        ("gemini-3-pro", true),
        ("gemini-3.5-flash", true),
        ("models/gemini-3-pro", true),
        ("gemini-12-pro", true),
        ("gemini-2.5-pro", false),
        ("gemini-pro-latest", false),
        ("gemma-3-27b", false),
        ("tunedModels/mine", false),
    ] {
        let contents = contents(model, &conversation);
        let signature = |index: usize| contents[1]["parts"][index]["thoughtSignature"].as_str();
        let expected = wanted.then_some("skip_thought_signature_validator");
        assert_eq!((signature(0), signature(1)), (expected, None), "{model}");
        assert_eq!(contents[1]["parts"].as_array().unwrap().len(), 2, "{model}");
    }
}

#[test]
fn early_models_get_media_of_results_in_a_content_of_their_own() {
    let conversation = [
        user("Go"),
        assistant(vec![call("a", "shot"), call("b", "ls")]),
        result("a", vec![Part::text("here"), png()], false),
        result("b", vec![Part::text("x")], false),
    ];
    let expected = json!([
        { "role": "user", "parts": [
            { "functionResponse": { "name": "shot", "response": { "output": "here" } } },
            { "functionResponse": { "name": "ls", "response": { "output": "x" } } },
        ] },
        { "role": "user", "parts": [
            { "text": "Part of the answer of shot:" },
            { "inlineData": { "mimeType": "image/png", "data": "iVBO" } },
        ] },
    ]);
    let contents = contents("gemini-2.5-pro", &conversation);
    assert_eq!(contents.as_array().unwrap()[2..], *expected.as_array().unwrap());
}

#[test]
fn a_result_finds_the_last_call_with_its_id_and_unread_arguments_are_wrapped() {
    let conversation = [
        assistant(vec![call("0", "ls")]),
        result("0", vec![Part::text("x")], false),
        assistant(vec![Part::ToolCall(ToolCall::new("0", "cat", json!("{\"path\":")))]),
        result("0", vec![Part::text("y")], false),
        result("lost", vec![Part::text("z")], false),
    ];
    let contents = contents("gemini-2.5-pro", &conversation);
    assert_eq!(contents[1]["parts"][0]["functionResponse"]["name"], "ls");
    let args = &contents[2]["parts"][0]["functionCall"]["args"];
    assert_eq!(*args, json!({ "arguments": "{\"path\":" }));
    assert_eq!(contents[3]["parts"][0]["functionResponse"]["name"], "cat");
    assert_eq!(contents[3]["parts"][1]["functionResponse"]["name"], "lost");
}

#[test]
fn a_picture_is_an_answer_too() {
    let blob = json!({ "mimeType": "image/png", "data": "iVBO" });
    let event = parts(&json!([{ "inlineData": blob, "thoughtSignature": "c2ln" }]));
    let message = decode(&[event, finish("STOP")]).1.unwrap().message;
    assert_eq!(message.parts, [opaque("gemini", json!({ "thoughtSignature": "c2ln" })), png()]);
    let sent = contents("gemini-3-pro", &[user("Draw"), message]);
    assert_eq!(sent[1]["parts"], json!([{ "inlineData": blob, "thoughtSignature": "c2ln" }]));
}

#[test]
fn usage_is_summed_and_the_last_counts() {
    let early = json!({ "usageMetadata": { "promptTokenCount": 100, "candidatesTokenCount": 1 } });
    let last = json!({ "candidates": [{ "finishReason": "STOP" }], "usageMetadata": {
        "promptTokenCount": 100, "cachedContentTokenCount": 80, "toolUsePromptTokenCount": 5,
        "candidatesTokenCount": 20, "thoughtsTokenCount": 30, "totalTokenCount": 155 } });
    let usage = Usage {
        input_tokens: 105,
        cached_tokens: 80,
        cache_write_tokens: 0,
        output_tokens: 50,
        thought_tokens: 30,
        estimated: false,
        cost: None,
    };
    assert_eq!(decode(&[early, last]).1.unwrap().usage, usage);
}

#[test]
fn every_ending_is_understood() {
    use ModelErrorKind::{Malformed, Rejected};
    for (reason, stop) in [
        ("STOP", Ok(StopReason::Done)),
        ("MAX_TOKENS", Ok(StopReason::Length)),
        ("SAFETY", Ok(StopReason::Refused)),
        ("RECITATION", Ok(StopReason::Refused)),
        ("LANGUAGE", Ok(StopReason::Refused)),
        ("OTHER", Ok(StopReason::Refused)),
        ("BLOCKLIST", Ok(StopReason::Refused)),
        ("PROHIBITED_CONTENT", Ok(StopReason::Refused)),
        ("SPII", Ok(StopReason::Refused)),
        ("IMAGE_SAFETY", Ok(StopReason::Refused)),
        ("IMAGE_PROHIBITED_CONTENT", Ok(StopReason::Refused)),
        ("IMAGE_RECITATION", Ok(StopReason::Refused)),
        ("IMAGE_OTHER", Ok(StopReason::Refused)),
        ("NO_IMAGE", Ok(StopReason::Refused)),
        ("SOMETHING_NEW", Ok(StopReason::Refused)),
        ("MALFORMED_FUNCTION_CALL", Err(Malformed)),
        ("MALFORMED_RESPONSE", Err(Malformed)),
        ("UNEXPECTED_TOOL_CALL", Err(Malformed)),
        ("TOO_MANY_TOOL_CALLS", Err(Malformed)),
        ("MISSING_THOUGHT_SIGNATURE", Err(Rejected)),
    ] {
        let answer = decode(&[finish(reason)]).1;
        let result = answer.map(|answer| answer.stop).map_err(|complaint| {
            assert!(complaint.message.contains(reason), "{}", complaint.message);
            complaint.kind
        });
        assert_eq!(result, stop, "{reason}");
    }
    let mut event = finish("MALFORMED_FUNCTION_CALL");
    event["candidates"][0]["finishMessage"] = json!("print(ls(");
    assert!(decode(&[event]).1.unwrap_err().message.ends_with(": print(ls("));
}

/// What a model wrote badly once it may write well when asked again.
#[test]
fn a_malformed_call_is_worth_a_repeat() {
    for (reason, repeatable) in [
        ("MALFORMED_FUNCTION_CALL", true),
        ("MALFORMED_RESPONSE", true),
        ("UNEXPECTED_TOOL_CALL", true),
        ("TOO_MANY_TOOL_CALLS", false),
        ("MISSING_THOUGHT_SIGNATURE", false),
    ] {
        assert_eq!(decode(&[finish(reason)]).1.unwrap_err().repeatable, repeatable, "{reason}");
    }
}

#[test]
fn what_was_used_is_zero_where_nobody_said_it_and_may_come_last() {
    assert_eq!(decode(&[finish("STOP")]).1.unwrap().usage, Usage::default());
    let late = json!({ "usageMetadata": { "promptTokenCount": 7, "candidatesTokenCount": 3 } });
    let usage = decode(&[finish("STOP"), late]).1.unwrap().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (7, 3));
}

#[test]
fn calls_are_counted_as_they_come() {
    let mut decoder = Gemini.decoder();
    let call = json!([{ "text": "Hm." }, { "functionCall": { "name": "ls", "args": { "a": 1 } } }]);
    for event in [parts(&call), finish("STOP")] {
        decoder.event(None, &event.to_string(), &mut Vec::new()).unwrap();
    }
    assert_eq!((decoder.call_bytes(), decoder.is_over()), (2 + 7, false));
}

#[test]
fn a_blocked_prompt_is_a_refusal() {
    let event = json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" },
        "usageMetadata": { "promptTokenCount": 7 } });
    let answer = decode(&[event]).1.unwrap();
    assert_eq!((answer.stop, answer.usage.input_tokens), (StopReason::Refused, 7));
    assert!(answer.message.parts.is_empty());
    let harmless = json!({ "promptFeedback": { "safetyRatings": [] } });
    assert_eq!(decode(&[harmless]).1.unwrap_err().kind, ModelErrorKind::Cut);
}

#[test]
fn only_a_reason_to_finish_makes_an_answer_whole() {
    let mut decoder = Gemini.decoder();
    let text = parts(&json!([{ "text": "Hel" }])).to_string();
    decoder.event(None, &text, &mut Vec::new()).unwrap();
    assert!(!decoder.is_complete());
    assert_eq!(decoder.finish().unwrap_err().kind, ModelErrorKind::Cut);

    // Some servers give the reason with every event; what follows still belongs to the answer.
    let mut event = parts(&json!([{ "text": "Hel" }]));
    event["candidates"][0]["finishReason"] = json!("STOP");
    let answer = decode(&[event.clone(), event]).1.unwrap();
    assert_eq!(answer.message.parts, [Part::text("HelHel")]);
}

#[test]
fn errors_in_the_middle_and_nonsense_are_complaints() {
    let error =
        json!({ "error": { "code": 503, "message": "overloaded", "status": "UNAVAILABLE" } });
    let complaint = decode(&[error]).1.unwrap_err();
    let expected = Complaint::new(ModelErrorKind::Server, "overloaded");
    assert_eq!(complaint, expected);

    let mut decoder = Gemini.decoder();
    let long = format!("<html>{}", "x".repeat(5000));
    let complaint = decoder.event(None, &long, &mut Vec::new()).unwrap_err();
    assert_eq!(complaint.kind, ModelErrorKind::Malformed);
    assert!(complaint.message.contains("<html>xxx"), "{}", complaint.message);
    assert!(complaint.message.chars().count() < 500);
    let text = format!("\"{}\"", "x".repeat(5000));
    let complaint = decoder.event(None, &text, &mut Vec::new()).unwrap_err();
    assert!(complaint.message.chars().count() < 500, "the reason quotes too");
    assert_eq!(decoder.event(None, "", &mut Vec::new()), Ok(()));
}

#[test]
fn error_bodies_say_what_they_mean() {
    let body = |code: u16, message: &str, details: Value| {
        json!({ "error": { "code": code, "message": message, "details": details } }).to_string()
    };
    let quota = |id: &str| json!([{ "violations": [{ "quotaId": id }] }, { "retryDelay": "9s" }]);
    let none = || json!([]);
    let wrong_key = || json!([{ "reason": "API_KEY_INVALID" }]);
    let too_long = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
    let no_plan = "Quota exceeded for metric: requests, limit: 0, model: gemini-3-pro";
    let per_minute = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier";
    let per_day = "GenerateRequestsPerDayPerProjectPerModel-FreeTier";
    for (status, body, kind, words) in [
        (400, body(400, "API key not valid.", wrong_key()), Kind::Authentication, "not valid"),
        (403, body(403, "denied", none()), Kind::Authentication, "denied"),
        (404, body(404, "models/nope is not found", none()), Kind::NotFound, "nope"),
        (400, body(400, too_long, none()), Kind::ContextTooLong, "input token count"),
        (400, body(400, "Unknown name", none()), Kind::Rejected, "Unknown name"),
        (429, body(429, "quota", quota(per_minute)), Kind::RateLimited, "quota"),
        (429, body(429, "limit: 0.5 or limit: 05", none()), Kind::RateLimited, "limit"),
        (429, body(429, "quota", quota(per_day)), Kind::Quota, "quota"),
        (429, body(429, no_plan, none()), Kind::Quota, "limit: 0"),
        (500, body(500, "internal", none()), Kind::Server, "internal"),
        (503, format!("[{}]", body(503, "busy", none())), Kind::Server, "busy"),
        (502, "\n<html>\n<title>Bad Gateway</title>".into(), Kind::Server, "Bad Gateway"),
        (400, r#"{"error":"just words"}"#.into(), Kind::Rejected, "just words"),
        (400, r#"{"error":{"message":"m","code":"400"}}"#.into(), Kind::Rejected, "m"),
        (429, String::new(), Kind::RateLimited, ""),
    ] {
        let complaint = Gemini.error(status, body.as_bytes());
        assert_eq!(complaint.kind, kind, "{status} {body}");
        assert!(complaint.message.contains(words), "{status} {body}: {}", complaint.message);
    }
    let long = Gemini.error(400, body(400, &"x".repeat(9000), none()).as_bytes());
    assert!(long.message.chars().count() <= 501);
}

#[test]
fn names_of_models_are_never_rewritten() {
    let conversation = [user("Hello")];
    for (model, expected) in [
        ("gemini-2.5-pro", "models/gemini-2.5-pro"),
        ("qwen-max", "models/qwen-max"),
        ("qwen2.5:7b", "models/qwen2.5:7b"),
        ("models/gemini-2.5-pro", "models/gemini-2.5-pro"),
        ("tunedModels/mine-1", "tunedModels/mine-1"),
        ("a b?c#d%e/ü", "models/a%20b%3Fc%23d%25e/%C3%BC"),
    ] {
        let path = Gemini.encode(model, &ModelFacts::default(), &Request::new(&conversation)).path;
        assert_eq!(path, format!("v1beta/{expected}:streamGenerateContent?alt=sse"));
    }
}

#[test]
fn the_key_goes_into_a_header() {
    assert!(Gemini.headers(None).is_empty());
    assert_eq!(Gemini.headers(Some("k")), [("x-goog-api-key", "k".to_owned())]);
}

/// Events that are almost right, so that the reader gets past the JSON.
fn almost() -> impl Strategy<Value = String> {
    (any::<u64>(), any::<bool>(), ".{0,9}", ".{0,3}").prop_map(|(count, flag, text, signature)| {
        let call = flag.then(|| json!({ "name": text, "args": text, "id": signature }));
        json!({ "candidates": [{ "content": { "parts": [
                { "text": text, "thought": flag, "thoughtSignature": signature },
                { "functionCall": call, "thoughtSignature": signature } ] },
                "finishReason": flag.then_some(&text) }],
            "usageMetadata": { "promptTokenCount": count, "toolUsePromptTokenCount": count,
                "candidatesTokenCount": count, "thoughtsTokenCount": count } })
        .to_string()
    })
}

proptest! {
    #[test]
    fn no_events_make_it_panic(events in prop::collection::vec(prop_oneof![".*", almost()], 0..12)) {
        let mut decoder = Gemini.decoder();
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
        prop_assert!(Gemini.error(status, &body).message.chars().count() <= 501);
    }
}

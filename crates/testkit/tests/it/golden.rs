//! One rich reply in every wire, compared with files that a person can read.
#![expect(clippy::disallowed_methods, reason = "a stream that differs is written beside")]

use std::path::Path;

use convoke_core::Usage;
use convoke_testkit::{ModelServer, Reply, Say, Stop, Wire};
use serde_json::{Value, json};

use crate::client::{Client, read_events};

fn rich_reply() -> Reply {
    let usage = Usage {
        input_tokens: 1200,
        cached_tokens: 1000,
        cache_write_tokens: 50,
        output_tokens: 80,
        thought_tokens: 30,
        estimated: false,
        cost: None,
    };
    Reply::default()
        .thought("Two files will do.", "c2lnbmVk")
        .say(Say::Text("I'll read both: ä, €, 😀.".into()))
        .call("read_file", json!({ "path": "src/main.rs" }))
        .say(Say::Call { id: Some("given".into()), name: "ls".into(), arguments: "{}".into() })
        .usage(usage)
        .fragments_of(12)
}

async fn answer(wire: Wire, reply: Reply) -> String {
    let server = ModelServer::start(reply).await.unwrap();
    let answer = Client::connect(&server).await.ask(wire).await.unwrap();
    assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert!(answer.is_whole);
    answer.body
}

async fn events(wire: Wire, reply: Reply) -> Vec<(Option<String>, Value)> {
    parsed(&answer(wire, reply).await)
}

/// Keys may come in any order, so events are compared by what they mean.
fn parsed(text: &str) -> Vec<(Option<String>, Value)> {
    let events = read_events(text).into_iter();
    let data = |data: String| serde_json::from_str(&data).unwrap_or(Value::String(data));
    events.map(|(name, text)| (name, data(text))).collect()
}

async fn check(wire: Wire, name: &str, golden: &str) {
    let body = answer(wire, rich_reply()).await;
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if parsed(&body) != parsed(golden) {
        std::fs::write(&path, &body).unwrap();
    }
    let written = path.display();
    assert_eq!(parsed(&body), parsed(golden), "{name} differs; the new stream is in {written}");
}

#[tokio::test]
async fn chat() {
    let golden = include_str!("../golden/openai_chat.txt");
    check(Wire::OpenAiChat, "openai_chat.txt", golden).await;
}

#[tokio::test]
async fn responses() {
    let golden = include_str!("../golden/openai_responses.txt");
    check(Wire::OpenAiResponses, "openai_responses.txt", golden).await;
}

#[tokio::test]
async fn anthropic() {
    let golden = include_str!("../golden/anthropic.txt");
    check(Wire::Anthropic, "anthropic.txt", golden).await;
}

#[tokio::test]
async fn gemini() {
    let golden = include_str!("../golden/gemini.txt");
    check(Wire::Gemini, "gemini.txt", golden).await;
}

/// Returns the word with which a wire says why it stopped.
async fn stop_word(wire: Wire, reply: Reply) -> String {
    let events = events(wire, reply).await;
    let word = |(_, data): &(_, Value)| -> Option<String> {
        let place = match wire {
            Wire::OpenAiChat => "/choices/0/finish_reason",
            Wire::OpenAiResponses => "/response/status",
            Wire::Anthropic => "/delta/stop_reason",
            Wire::Gemini => "/candidates/0/finishReason",
        };
        data.pointer(place)?.as_str().map(str::to_owned)
    };
    events.iter().rev().find_map(word).unwrap()
}

#[tokio::test]
async fn every_wire_says_why_it_stopped() {
    let call = || Reply::default().call("ls", json!({}));
    let cases = [
        (Reply::text("x"), ["stop", "completed", "end_turn", "STOP"]),
        (call(), ["tool_calls", "completed", "tool_use", "STOP"]),
        (Reply::text("x").stop(Stop::Length), ["length", "incomplete", "max_tokens", "MAX_TOKENS"]),
        (
            Reply::text("x").stop(Stop::Refused),
            ["content_filter", "incomplete", "refusal", "SAFETY"],
        ),
    ];
    for (reply, words) in cases {
        for (wire, word) in Wire::ALL.into_iter().zip(words) {
            assert_eq!(stop_word(wire, reply.clone()).await, word, "{wire:?}");
        }
    }
}

#[tokio::test]
async fn gemini_blocks_a_prompt_and_reports_a_malformed_call() {
    let blocked = events(Wire::Gemini, Reply::default().stop(Stop::Refused)).await;
    assert_eq!(blocked.len(), 1);
    assert_eq!(blocked[0].1["promptFeedback"]["blockReason"], "PROHIBITED_CONTENT");
    let broken = Say::Call { id: None, name: "ls".into(), arguments: "{\"path\":".into() };
    let word = stop_word(Wire::Gemini, Reply::default().say(broken)).await;
    assert_eq!(word, "MALFORMED_FUNCTION_CALL");
}

#[tokio::test]
async fn gemini_signs_the_end_of_a_text() {
    let events =
        events(Wire::Gemini, Reply::default().thought("Hm.", "c2ln").say(Say::Text("Yes.".into())))
            .await;
    let parts: Vec<Value> = events
        .iter()
        .map(|(_, data)| data["candidates"][0]["content"]["parts"][0].clone())
        .collect();
    assert_eq!(
        parts,
        [
            json!({ "text": "Hm.", "thought": true }),
            json!({ "text": "Yes." }),
            json!({ "text": "", "thoughtSignature": "c2ln" }),
        ]
    );
}

#[tokio::test]
async fn arguments_may_be_anything() {
    let broken = "{\"path\": \"unterminated";
    let reply =
        Reply::default().say(Say::Call { id: None, name: "ls".into(), arguments: broken.into() });
    for (wire, place) in [
        (Wire::OpenAiChat, "/choices/0/delta/tool_calls/0/function/arguments"),
        (Wire::OpenAiResponses, "/delta"),
        (Wire::Anthropic, "/delta/partial_json"),
    ] {
        let events = events(wire, reply.clone().fragments_of(5)).await;
        let pieces = events.iter().filter_map(|(_, data)| data.pointer(place)?.as_str());
        assert_eq!(pieces.collect::<String>(), broken, "{wire:?}");
    }
}

#[tokio::test]
async fn refusals_and_redacted_thoughts_have_their_own_shapes() {
    let reply =
        Reply::default().say(Say::Redacted("b3BhcXVl".into())).say(Say::Refusal("No.".into()));
    let text_of = |events: Vec<(Option<String>, Value)>| {
        events.iter().map(|(_, data)| data.to_string()).collect::<String>()
    };
    let chat = text_of(events(Wire::OpenAiChat, reply.clone()).await);
    assert!(chat.contains(r#""refusal":"No.""#), "{chat}");
    let responses = events(Wire::OpenAiResponses, reply.clone()).await;
    assert!(responses.iter().any(|(name, _)| name.as_deref() == Some("response.refusal.done")));
    assert!(text_of(responses).contains(r#""encrypted_content":"b3BhcXVl""#));
    let anthropic = text_of(events(Wire::Anthropic, reply).await);
    assert!(anthropic.contains("redacted_thinking"), "{anthropic}");
}

#[tokio::test]
async fn a_chat_gets_its_usage_only_if_it_asks() {
    let server = ModelServer::start(Reply::text("x")).await.unwrap();
    let mut client = Client::connect(&server).await;
    client.send(Wire::OpenAiChat, &json!({ "model": "m", "messages": [], "stream": true })).await;
    assert!(!client.read_answer().await.unwrap().body.contains("usage"));
    let asked = client.ask(Wire::OpenAiChat).await.unwrap();
    assert!(asked.body.contains(r#""prompt_tokens":100"#), "{}", asked.body);
}

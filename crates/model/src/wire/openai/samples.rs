//! What the tests of both wires share.

use convoke_core::{Declaration, Message, ModelFacts, Part, Role, ToolCall};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::model::{Answer, Chunk};
use crate::request::Request;
use crate::wire::{Complaint, Wire};

pub(in crate::wire) fn tools() -> Vec<Declaration> {
    vec![Declaration {
        name: "look".into(),
        description: "Looks.".into(),
        parameters: json!({"type": "object"}).into(),
    }]
}

/// Everything that can be in a conversation, for a wire whose opaque parts have this name.
pub(in crate::wire) fn conversation(provider: &str) -> Vec<Message> {
    let opaque = |provider: &str, data| Part::Opaque { provider: provider.into(), data };
    let sealed =
        json!({"encrypted_content": "sEcReT", "id": "rs_1", "summary": [], "type": "reasoning"});
    let image = || Part::Media { mime: "image/png".into(), data: "aGk=".into() };
    let result =
        |call: &str, content, is_error| Part::ToolResult { call: call.into(), content, is_error };
    vec![
        Message { role: Role::User, parts: vec![Part::text("What is \"this\"?\n"), image()] },
        Message {
            role: Role::Assistant,
            parts: vec![
                opaque("gemini", json!({"signature": "x"})),
                opaque(provider, sealed),
                Part::Thought { text: "hm".into() },
                opaque(provider, json!({"type": "message", "phase": "commentary"})),
                Part::text("I look."),
                Part::ToolCall(ToolCall::new("c1", "look", json!({"at": "a", "deep": true}))),
                Part::ToolCall(ToolCall::new("c2", "look", json!({}))),
                Part::ToolCall(ToolCall::new("c3", "look", json!("{\"at"))),
            ],
        },
        Message {
            role: Role::Tool,
            parts: vec![
                result("c1", vec![Part::text("A cat:"), image()], false),
                result("c2", vec![Part::text("Error (not_found): no"), Part::text("cat")], true),
                result("c3", vec![image()], false),
            ],
        },
        Message::text(Role::Assistant, "A cat."),
        Message {
            role: Role::User,
            parts: vec![
                Part::text("And?"),
                Part::Link { uri: "https://a.b".into(), title: Some("A".into()) },
            ],
        },
    ]
}

/// Returns a body without what follows the last message under `key`.
pub(in crate::wire) fn up_to_the_end_of(key: &str, body: &[u8]) -> String {
    let body = std::str::from_utf8(body).unwrap();
    let start = body.find(&format!("\"{key}\":[")).unwrap() + key.len() + 4;
    let (mut depth, mut quoted, mut escaped) = (1, false, false);
    for (offset, byte) in body[start..].bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return body[..start + offset].to_owned();
        }
    }
    panic!("{key} does not end in {body}");
}

/// Checks that each request starts with all of the one before. Nothing is asked between two results: they
/// answer the same turn.
pub(in crate::wire) fn assert_prefixes(wire: &dyn Wire, key: &str, messages: &[Message]) {
    let tools = tools();
    let mut before = None;
    let is_result = |at: usize| messages.get(at).is_some_and(|it| it.role == Role::Tool);
    for length in 0..=messages.len() {
        if length > 0 && is_result(length - 1) && is_result(length) {
            continue;
        }
        let request =
            Request { system: "Be brief.", tools: &tools, ..Request::new(&messages[..length]) };
        let body = wire.encode("gpt-5", &ModelFacts::default(), &request).body;
        assert_eq!(body, wire.encode("gpt-5", &ModelFacts::default(), &request).body);
        let now = up_to_the_end_of(key, &body);
        if let Some(before) = before {
            assert!(now.starts_with(&before), "{before}\n{now}");
        }
        before = Some(now);
    }
}

/// Feeds events to a decoder.
pub(in crate::wire) fn decode<'a>(
    wire: &dyn Wire,
    events: impl IntoIterator<Item = &'a str>,
) -> (Vec<Chunk>, Result<Answer, Complaint>) {
    let mut decoder = wire.decoder();
    let mut chunks = Vec::new();
    for event in events {
        if let Err(complaint) = decoder.event(None, event, &mut chunks) {
            return (chunks, Err(complaint));
        }
    }
    (chunks, decoder.finish())
}

pub(in crate::wire) fn any_messages() -> impl Strategy<Value = Vec<Message>> {
    let text = "[a-z\"\\\\\\]\\[{}\n]{0,6}";
    let plain = prop_oneof![
        text.prop_map(|text| Part::Text { text }),
        text.prop_map(|text| Part::Thought { text }),
        text.prop_map(|data| Part::Media { mime: "image/png".into(), data }),
        text.prop_map(|data| Part::Media { mime: "audio/wav".into(), data }),
        text.prop_map(|uri| Part::Link { uri, title: None }),
        text.prop_map(|name| Part::ToolCall(ToolCall::new("c", name.clone(), json!(name)))),
        text.prop_map(|secret| Part::Opaque {
            provider: "openai_responses".into(),
            data: json!({"type": "reasoning", "encrypted_content": secret}),
        }),
    ];
    let part = plain.prop_recursive(1, 4, 4, |part| {
        (prop::collection::vec(part, 0..4), any::<bool>()).prop_map(|(content, is_error)| {
            Part::ToolResult { call: "c".into(), content, is_error }
        })
    });
    let role = prop::sample::select(vec![Role::System, Role::User, Role::Assistant, Role::Tool]);
    let message =
        (role, prop::collection::vec(part, 0..5)).prop_map(|(role, parts)| Message { role, parts });
    prop::collection::vec(message, 0..6)
}

/// JSON made of the words that mean something to a wire, in places where they do not belong.
pub(in crate::wire) fn any_json(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let word = move || prop::sample::select(words).prop_map(str::to_owned);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u64..3).prop_map(Value::from),
        word().prop_map(Value::from),
        "[{}\"a:1]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |value| {
        prop_oneof![
            prop::collection::vec(value.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((word(), value), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

//! Names, addresses and headers arrive as they were given.

use convoke_core::{Message, Part, Role, ToolCall};
use convoke_model::{Request, WireFormat};
use convoke_testkit::Reply;
use serde_json::{Value, json};

use crate::support::{Case, Heard, KEY, model, on_every_wire, quick, results, user};

on_every_wire!(
    the_name_of_a_model_is_never_rewritten,
    a_base_url_may_have_a_slash_at_its_end_and_a_path,
    keys_go_where_the_provider_looks_for_them,
    headers_of_ones_own_go_before_those_of_the_wire,
    only_the_anthropic_wire_marks_what_to_cache,
    a_name_that_no_tool_can_have_does_not_spoil_the_conversation,
);

/// Models make up names; a provider refuses every further request that holds one it does not like.
async fn a_name_that_no_tool_can_have_does_not_spoil_the_conversation(case: Case) {
    let long = "n".repeat(200);
    let names = ["functions.read_file", "", "read file", "1st", "größe", &long, "read_file"];
    let calls: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(nth, name)| ToolCall::new(format!("call.{nth}"), *name, json!({})))
        .collect();
    let parts = calls.iter().cloned().map(Part::ToolCall).collect();
    let answer = Message { role: Role::Assistant, parts };
    let talk = case.serve(Reply::text("x")).await;
    talk.answer(&Request::new(&[user("Go."), answer, results(&calls)])).await;

    let sent = talk.sent(0);
    let mut found = Vec::new();
    collect(&sent[case.conversation()], "name", &mut found);
    // Gemini names the call of a result as well, and has to find the same name there.
    let (of_calls, of_results) = found.split_at(names.len());
    assert!(of_results.is_empty() || of_results == of_calls, "{found:?}");
    assert_eq!(of_calls.last(), Some(&"read_file"));
    let is_plain = |next: char| next.is_ascii_alphanumeric() || next == '_' || next == '-';
    for name in of_calls {
        assert!((1..=64).contains(&name.len()) && name.chars().all(is_plain), "{name:?}");
        assert!(!name.starts_with(|first: char| first.is_ascii_digit()), "{name:?}");
    }

    // Whatever was made of the ids, each call still has its result.
    let (call, result) = match case.format {
        WireFormat::Gemini => return,
        WireFormat::OpenAiResponses => ("call_id", "call_id"),
        WireFormat::OpenAiChat => ("id", "tool_call_id"),
        WireFormat::Anthropic => ("id", "tool_use_id"),
    };
    let (mut of_calls, mut of_results) = (Vec::new(), Vec::new());
    collect(&sent[case.conversation()], call, &mut of_calls);
    collect(&sent[case.conversation()], result, &mut of_results);
    if call == result {
        of_calls.truncate(names.len());
        of_results.drain(..names.len());
    }
    assert_eq!((of_calls.len(), &of_calls), (names.len(), &of_results));
}

/// Finds all texts under a key, in order.
fn collect<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, key, found)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == key => found.push(text),
                    other => collect(other, key, found),
                }
            }
        }
        _ => {}
    }
}

/// Another library takes `-max`, `-medium` and `ns::` off.
async fn the_name_of_a_model_is_never_rewritten(case: Case) {
    let talk = case.serve(Reply::text("x")).await;
    let names = [
        "qwen-max",
        "mistral-medium",
        "gpt-5.1-codex-max",
        "o3-mini-high",
        "deepseek-none",
        "ns::name",
        "meta-llama/llama-3.3-70b:free",
        "qwen2.5:7b",
        "Capital-LOW",
    ];
    for (nth, name) in names.into_iter().enumerate() {
        let provider = case.provider(&talk.server.base_url(case.wire));
        let model = model(name, provider, quick().build());
        Heard::of(&model, &Request::new(&[user("Hello")])).await.answer();
        assert_eq!(talk.seen(nth).model(), name);
        let sent = talk.sent(nth);
        if case.format != WireFormat::Gemini {
            assert_eq!(sent["model"], name);
        }
        // Nothing was read into the name either.
        for setting in ["reasoning_effort", "reasoning", "thinking", "generationConfig"] {
            assert!(sent.get(setting).is_none(), "{setting} in {sent}");
        }
    }
}

async fn a_base_url_may_have_a_slash_at_its_end_and_a_path(case: Case) {
    let talk = case.serve(Reply::text("x")).await;
    let base = case.wire.base_path();
    for (nth, (path, seen)) in [
        (base.to_owned(), base.to_owned()),
        (format!("{base}/"), base.to_owned()),
        (format!("/gateway/acme{base}"), format!("/gateway/acme{base}")),
        (format!("/gateway/acme{base}//"), format!("/gateway/acme{base}")),
    ]
    .into_iter()
    .enumerate()
    {
        let url = format!("{}{path}", talk.server.url());
        let model = case.model_at(&url, quick().build());
        Heard::of(&model, &Request::new(&[user("Hello")])).await.answer();
        let target = case.wire.target(case.model);
        let target = target.strip_prefix(base).unwrap();
        let request = talk.seen(nth);
        let query = if request.query.is_empty() { "" } else { "?" };
        assert_eq!(format!("{}{query}{}", request.path, request.query), format!("{seen}{target}"));
    }
}

async fn keys_go_where_the_provider_looks_for_them(case: Case) {
    let talk = case.serve(Reply::text("x")).await;
    talk.hello().await.answer();
    let bearer = format!("Bearer {KEY}");
    let (header, value) = match case.format {
        WireFormat::Gemini => ("x-goog-api-key", KEY),
        WireFormat::Anthropic => ("x-api-key", KEY),
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses => ("authorization", &*bearer),
    };
    let request = talk.seen(0);
    assert_eq!(request.header(header), Some(value));
    let with_key = request.headers.iter().filter(|(_, value)| value.contains(KEY)).count();
    assert_eq!(with_key, 1, "{:?}", request.headers);
    assert!(!request.query.contains(KEY) && !request.path.contains(KEY));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("accept"), Some("text/event-stream"));
    let version = (case.format == WireFormat::Anthropic).then_some("2023-06-01");
    assert_eq!(request.header("anthropic-version"), version);
}

async fn headers_of_ones_own_go_before_those_of_the_wire(case: Case) {
    let talk = case.serve(Reply::text("x")).await;
    let mut provider = case.provider(&talk.server.base_url(case.wire));
    provider.headers = [
        ("X-Team", "blue"),
        ("Authorization", "Bearer own"),
        ("X-Goog-Api-Key", "own"),
        ("X-Api-Key", "own"),
        ("User-Agent", "me/1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    let model = model(case.model, provider, quick().build());
    Heard::of(&model, &Request::new(&[user("Hello")])).await.answer();
    let request = talk.seen(0);
    for (name, value) in [
        ("x-team", "blue"),
        ("authorization", "Bearer own"),
        ("x-goog-api-key", "own"),
        ("x-api-key", "own"),
        ("user-agent", "me/1"),
    ] {
        let found = request.headers.iter().filter(|(known, _)| known == name);
        assert_eq!(found.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), [value], "{name}");
    }
}

/// Strict servers refuse words for caching that they do not know.
async fn only_the_anthropic_wire_marks_what_to_cache(case: Case) {
    let talk = case.serve(Reply::text("x")).await;
    let messages = [user("Hello")];
    talk.answer(&Request { system: "Be brief.", ..Request::new(&messages) }).await;
    let sent = String::from_utf8(talk.seen(0).body.clone()).unwrap();
    assert_eq!(sent.contains("cache"), case.format == WireFormat::Anthropic, "{sent}");
}

//! What only a provider understands goes back to it, unchanged and at its place.

use convoke_core::{Message, Part, Role, ToolCall};
use convoke_model::{Request, WireFormat};
use convoke_testkit::{Reaction, Reply, Say};
use serde_json::{Value, json};

use crate::support::{Case, on_every_wire, results, user, with_ids};

on_every_wire!(
    signed_thoughts_go_back_before_what_they_led_to,
    the_signature_of_a_text_goes_back_with_it,
    what_another_provider_left_is_not_sent,
    results_of_parallel_calls_go_back_together,
);

/// Asks, takes the answer into the conversation with results of its calls, and asks again.
async fn second_request(case: Case, reply: Reply) -> Value {
    let talk = case.serve([reply.into(), Reaction::answer(Reply::text("Done."))]).await;
    let mut conversation = vec![user("Read it.")];
    let answer = talk.answer(&Request::new(&conversation)).await;
    let answer = with_ids(answer.message, 1);
    let calls: Vec<_> = answer.calls().cloned().collect();
    conversation.push(answer);
    conversation.push(if calls.is_empty() { user("Go on.") } else { results(&calls) });
    talk.answer(&Request::new(&conversation)).await;
    talk.sent(1)
}

async fn signed_thoughts_go_back_before_what_they_led_to(case: Case) {
    let reply = Reply::default()
        .thought("Two files will do.", "c2lnbmVk")
        .say(Say::Text("Reading.".to_owned()))
        .call("read_file", json!({ "path": "a" }))
        .call("grep", json!({ "pattern": "b" }));
    let sent = second_request(case, reply).await;
    match case.format {
        WireFormat::Gemini => assert_eq!(
            sent["contents"][1]["parts"],
            json!([
                { "text": "Reading." },
                {
                    "functionCall": { "name": "read_file", "args": { "path": "a" } },
                    "thoughtSignature": "c2lnbmVk",
                },
                { "functionCall": { "name": "grep", "args": { "pattern": "b" } } },
            ])
        ),
        WireFormat::OpenAiResponses => {
            assert_eq!(
                sent["input"][1],
                json!({
                    "type": "reasoning",
                    "id": "rs_0000_0",
                    "summary": [{ "type": "summary_text", "text": "Two files will do." }],
                    "encrypted_content": "c2lnbmVk",
                })
            );
            let kinds: Vec<_> = sent["input"].as_array().unwrap()[1..5].iter().collect();
            let kinds: Vec<_> = kinds.iter().map(|item| item["type"].as_str().unwrap()).collect();
            assert_eq!(kinds, ["reasoning", "message", "function_call", "function_call"]);
        }
        WireFormat::OpenAiChat => {
            let said = &sent["messages"][1];
            assert_eq!(said["reasoning_content"], "Two files will do.");
            assert_eq!(said["content"], "Reading.");
            assert_eq!(said["tool_calls"].as_array().unwrap().len(), 2);
        }
        WireFormat::Anthropic => assert_eq!(
            sent["messages"][1]["content"],
            json!([
                { "type": "thinking", "thinking": "Two files will do.", "signature": "c2lnbmVk" },
                { "type": "text", "text": "Reading." },
                {
                    "type": "tool_use", "id": "toolu_0000_2", "name": "read_file",
                    "input": { "path": "a" },
                },
                {
                    "type": "tool_use", "id": "toolu_0000_3", "name": "grep",
                    "input": { "pattern": "b" },
                },
            ])
        ),
    }
}

async fn the_signature_of_a_text_goes_back_with_it(case: Case) {
    let reply = Reply::default().thought("Hm.", "c2ln").say(Say::Text("Yes.".to_owned()));
    let sent = second_request(case, reply).await;
    match case.format {
        WireFormat::Gemini => assert_eq!(
            sent["contents"][1]["parts"],
            json!([{ "text": "Yes." }, { "text": "", "thoughtSignature": "c2ln" }])
        ),
        WireFormat::OpenAiResponses => {
            assert_eq!(sent["input"][1]["encrypted_content"], "c2ln");
            assert_eq!(sent["input"][2]["content"][0]["text"], "Yes.");
        }
        // This wire signs nothing, and thoughts without calls are wanted by nobody.
        WireFormat::OpenAiChat => {
            assert_eq!(sent["messages"][1], json!({ "role": "assistant", "content": "Yes." }));
        }
        WireFormat::Anthropic => assert_eq!(
            sent["messages"][1]["content"],
            json!([
                { "type": "thinking", "thinking": "Hm.", "signature": "c2ln" },
                { "type": "text", "text": "Yes." },
            ])
        ),
    }
}

async fn what_another_provider_left_is_not_sent(case: Case) {
    let talk = case.serve(Reply::text("x")).await;
    let mut conversation = vec![user("Hello")];
    for other in Case::ALL {
        let reply = Reply::default()
            .thought(format!("thought on {:?}", other.wire), format!("c2ln{:?}", other.wire))
            .say(Say::Redacted(format!("redacted on {:?}", other.wire)))
            .call("read_file", json!({ "path": "a" }));
        let answer = other.serve(reply).await.hello().await.answer();
        let answer = with_ids(answer.message, conversation.len());
        let calls: Vec<_> = answer.calls().cloned().collect();
        conversation.extend([answer, results(&calls)]);
    }
    talk.answer(&Request::new(&conversation)).await;
    let sent = String::from_utf8(talk.seen(0).body.clone()).unwrap();
    for other in Case::ALL {
        let is_own = other.format == case.format;
        let signature = format!("c2ln{:?}", other.wire);
        // Chat completions sign nothing.
        let expected = is_own && case.format != WireFormat::OpenAiChat;
        assert_eq!(sent.contains(&signature), expected, "{signature} in {sent}");
        let redacted = format!("redacted on {:?}", other.wire);
        let keeps = [WireFormat::Anthropic, WireFormat::OpenAiResponses].contains(&case.format);
        assert_eq!(sent.contains(&redacted), is_own && keeps, "{redacted} in {sent}");
    }
    assert_eq!(sent.matches("the result of read_file").count(), 4);
}

async fn results_of_parallel_calls_go_back_together(case: Case) {
    let call = |id: &str, name: &str| Part::ToolCall(ToolCall::new(id, name, json!({})));
    let said =
        Message { role: Role::Assistant, parts: vec![call("c1", "read_file"), call("c2", "grep")] };
    let calls: Vec<_> = said.calls().cloned().collect();
    let together = vec![user("Go."), said.clone(), results(&calls)];
    // One message for each result has to mean the same.
    let apart = vec![user("Go."), said, results(&calls[..1]), results(&calls[1..])];
    let talk = case.serve(Reply::text("x")).await;
    for conversation in [&together, &apart] {
        talk.answer(&Request::new(conversation)).await;
    }
    assert_eq!(talk.sent(0), talk.sent(1));
    let sent = talk.sent(0);
    let names = match case.format {
        WireFormat::Gemini => {
            let parts = sent["contents"][2]["parts"].as_array().unwrap();
            assert_eq!(sent["contents"].as_array().unwrap().len(), 3);
            parts.iter().map(|part| part["functionResponse"]["name"].clone()).collect::<Vec<_>>()
        }
        WireFormat::OpenAiResponses => {
            let items = sent["input"].as_array().unwrap()[3..].iter();
            items.map(|item| item["call_id"].clone()).collect()
        }
        WireFormat::OpenAiChat => {
            let messages = sent["messages"].as_array().unwrap()[2..].iter();
            messages.map(|message| message["tool_call_id"].clone()).collect()
        }
        WireFormat::Anthropic => {
            assert_eq!(sent["messages"].as_array().unwrap().len(), 3);
            let blocks = sent["messages"][2]["content"].as_array().unwrap().iter();
            blocks.map(|block| block["tool_use_id"].clone()).collect()
        }
    };
    let is_gemini = case.format == WireFormat::Gemini;
    assert_eq!(names, if is_gemini { ["read_file", "grep"] } else { ["c1", "c2"] });
}

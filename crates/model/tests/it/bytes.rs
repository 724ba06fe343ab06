//! The same request is the same bytes, and a conversation that grew starts with the bytes it had: the
//! caches of providers depend on it.

use convoke_core::Message;
use convoke_model::{Effort, OutputSchema, Request, Settings, ToolChoice};
use convoke_testkit::{Failure, Reaction, Reply, Say, Seen};
use serde_json::json;

use crate::support::{Case, on_every_wire, results, tools, user, with_ids};

on_every_wire!(
    the_same_request_is_the_same_bytes,
    a_repeat_sends_the_same_bytes,
    a_conversation_that_grew_starts_with_the_bytes_it_had,
);

fn set() -> Settings {
    Settings {
        temperature: Some(0.3),
        top_p: Some(0.7),
        reasoning_effort: Some(Effort::Low),
        ..Settings::UNSET
    }
}

async fn the_same_request_is_the_same_bytes(case: Case) {
    let (talk, other) = (case.serve(Reply::text("x")).await, case.serve(Reply::text("x")).await);
    let (messages, tools, settings) = ([user("Hello")], tools(), set());
    let schema = json!({ "type": "object", "properties": { "b": {}, "a": {} } });
    let output = OutputSchema { name: "o".to_owned(), schema };
    let request = Request {
        system: "Be brief.",
        tools: &tools,
        tool_choice: ToolChoice::None,
        settings: &settings,
        output: Some(&output),
        ..Request::new(&messages)
    };
    talk.answer(&request).await;
    talk.answer(&request).await;
    other.answer(&request).await;
    let bodies = [talk.seen(0), talk.seen(1), other.seen(0)];
    assert_eq!(bodies[0].body, bodies[1].body);
    assert_eq!(bodies[0].body, bodies[2].body);
    let names = |seen: &Seen| seen.headers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&bodies[0]), names(&bodies[1]));
}

async fn a_repeat_sends_the_same_bytes(case: Case) {
    let broken = Reaction::failure(Failure::Internal);
    let talk = case.serve([broken.clone(), broken, Reply::text("x").into()]).await;
    talk.hello().await.answer();
    let bodies: Vec<_> = talk.server.requests().iter().map(|seen| seen.body.clone()).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
}

/// Returns a body up to the end of its conversation, without the brackets that end it: the last message
/// of a conversation may grow.
fn up_to_the_end_of_the_conversation(case: Case, body: &[u8]) -> &[u8] {
    let key = format!("\"{}\":[", case.conversation());
    let start = body.windows(key.len()).position(|window| window == key.as_bytes()).unwrap();
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    for (at, byte) in body.iter().enumerate().skip(start + key.len() - 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let conversation = &body[..at];
            let brackets = conversation.iter().rev().take_while(|byte| b"]}".contains(byte));
            return &conversation[..at - brackets.count()];
        }
    }
    panic!("the conversation has no end")
}

/// claude-code#49038, #92033: what was sent before is sent again as it was, so that caches hold.
async fn a_conversation_that_grew_starts_with_the_bytes_it_had(case: Case) {
    let script = |_: &Seen, nth: usize| -> Reaction {
        let reply = Reply::default().thought(format!("Step {nth}."), format!("c2ln{nth}"));
        let reply = match nth % 4 {
            0 => reply
                .call("read_file", json!({ "path": format!("f{nth}") }))
                .call("grep", json!({ "pattern": "x" })),
            1 => reply
                .say(Say::Text("Looking [further] {on}.".to_owned()))
                .call("grep", json!({ "pattern": "]}\"" })),
            2 => reply.say(Say::Text("Halfway.".to_owned())),
            _ => Reply::default().call("read_file", json!({ "path": "plain" })),
        };
        reply.into()
    };
    let talk = case.serve(script).await;
    let (tools, settings) = (tools(), set());
    let mut conversation: Vec<Message> = vec![user("Task one.")];
    for turn in 0..9 {
        // What changes from one request to the next must not touch what comes before.
        let request = Request {
            system: "Be brief.",
            tools: &tools,
            tool_choice: if turn % 3 == 2 { ToolChoice::None } else { ToolChoice::Auto },
            max_output_tokens: (turn % 2 == 0).then_some(100 + turn),
            settings: if turn % 4 == 3 { &Settings::UNSET } else { &settings },
            ..Request::new(&conversation)
        };
        let answer = talk.answer(&request).await;
        let answer = with_ids(answer.message, conversation.len());
        let calls: Vec<_> = answer.calls().cloned().collect();
        conversation.push(answer);
        if !calls.is_empty() {
            conversation.push(results(&calls));
        }
        if calls.is_empty() || turn % 3 == 0 {
            conversation.push(user(&format!("And then, after turn {turn}?")));
        }
    }
    let seen = talk.server.requests();
    for (nth, pair) in seen.windows(2).enumerate() {
        let before = up_to_the_end_of_the_conversation(case, &pair[0].body);
        let (text, next) =
            (String::from_utf8_lossy(before), String::from_utf8_lossy(&pair[1].body));
        assert!(
            pair[1].body.starts_with(before),
            "request {nth}: {text}\nis not how\n{next} begins"
        );
        assert!(before.len() > 100 * nth, "the conversation grows");
    }
}

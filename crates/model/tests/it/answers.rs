//! What comes back: text, thoughts, calls, what was used, why it stopped.

use std::collections::BTreeSet;
use std::time::Duration;

use convoke_core::{Part, Usage};
use convoke_model::{Chunk, Request, StopReason, WireFormat};
use convoke_testkit::{Reaction, Reply, Say, Stop};
use serde_json::json;

use crate::support::{Case, on_every_wire, results, user, with_ids};

on_every_wire!(
    text_comes_in_the_pieces_it_was_sent_in,
    characters_that_are_cut_into_bytes_come_whole,
    two_parallel_calls_keep_their_arguments_and_are_told_apart,
    thoughts_come_apart_from_text,
    what_was_used_is_counted_alike_everywhere,
    an_answer_with_calls_is_done_everywhere,
    an_answer_that_is_too_long_or_refused_says_so,
    arguments_may_be_missing,
    a_compressed_answer_is_read,
    what_was_used_may_come_after_the_end,
    arguments_nested_too_deep_can_be_kept_and_sent_back,
);

/// Not everybody says it with the last word; each event comes a moment after the one before.
async fn what_was_used_may_come_after_the_end(case: Case) {
    let slow = Reaction::answer(Reply::text("x")).pause(Duration::from_millis(20));
    let usage = case.serve(slow).await.hello().await.answer().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (100, 20));
}

/// What is kept in a file is nested deeper still, and would not be read again.
async fn arguments_nested_too_deep_can_be_kept_and_sent_back(case: Case) {
    let deep = (0..70).fold(json!(1), |inner, _| json!({ "a": inner }));
    let talk = case.serve(Reply::default().call("dig", deep.clone())).await;
    let message = with_ids(talk.hello().await.answer().message, 0);
    let call = message.calls().next().unwrap().clone();
    assert_eq!(call.arguments, deep.to_string());
    let kept = (0..40).fold(json!(message), |inner, _| json!([inner]));
    assert!(serde_json::from_str::<serde_json::Value>(&kept.to_string()).is_ok());

    let messages = [user("Dig."), message, results([&call])];
    talk.answer(&Request::new(&messages)).await;
    let sent = String::from_utf8(talk.seen(1).body.clone()).unwrap();
    assert!(sent.contains("dig") && !sent.contains(&deep.to_string()), "{sent}");
}

async fn text_comes_in_the_pieces_it_was_sent_in(case: Case) {
    let reply = Reply::text("one two three four").fragments_of(4);
    let heard = case.serve(reply).await.hello().await;
    assert_eq!(heard.texts(), ["one ", "two ", "thre", "e fo", "ur"]);
    let answer = heard.answer();
    assert_eq!(answer.message.words(), "one two three four");
    assert_eq!(answer.stop, StopReason::Done);
}

async fn characters_that_are_cut_into_bytes_come_whole(case: Case) {
    let reply = Reply::text("añ€😀 – done").thought("ä€😀", "c2ln").fragments_of(3);
    for size in [1, 2, 3, 7] {
        let talk = case.serve(Reaction::answer(reply.clone()).in_chunks_of(size)).await;
        let heard = talk.hello().await;
        assert_eq!(heard.texts().concat(), "añ€😀 – done", "{size}");
        assert_eq!(heard.thoughts(), "ä€😀", "{size}");
        assert_eq!(heard.answer().message.words(), "añ€😀 – done", "{size}");
    }
}

async fn two_parallel_calls_keep_their_arguments_and_are_told_apart(case: Case) {
    let reply = Reply::text("Both.")
        .call("read_file", json!({ "path": "src/main.rs", "lines": [1, 20] }))
        .call("read_file", json!({ "path": "a \"b\" {c}\n" }))
        .fragments_of(3);
    let heard = case.serve(reply).await.hello().await;
    assert_eq!(heard.begun(), ["read_file", "read_file"]);
    let message = heard.answer().message;
    let calls: Vec<_> = message.calls().collect();
    let [one, two] = calls[..] else { panic!("{calls:?}") };
    assert_eq!((one.name.as_str(), two.name.as_str()), ("read_file", "read_file"));
    assert_eq!(one.arguments, json!({ "path": "src/main.rs", "lines": [1, 20] }));
    assert_eq!(two.arguments, json!({ "path": "a \"b\" {c}\n" }));
    // An id is the provider's, or there is none; the same one twice would be worse.
    let ids = BTreeSet::from([one.id.as_str(), two.id.as_str()]);
    assert!(ids.len() == 2 || ids == BTreeSet::from([""]), "{ids:?}");
    assert_eq!(ids.contains(""), case.format == WireFormat::Gemini);
}

async fn thoughts_come_apart_from_text(case: Case) {
    let reply = Reply::default()
        .thought("Let me think about it.", "c2lnbmVk")
        .say(Say::Text("Done.".to_owned()))
        .fragments_of(5);
    let heard = case.serve(reply).await.hello().await;
    assert_eq!(heard.thoughts(), "Let me think about it.");
    assert_eq!(heard.texts().concat(), "Done.");
    let first_text = heard.0.iter().position(|item| matches!(item, Ok(Chunk::Text(_))));
    let last_thought = heard.0.iter().rposition(|item| matches!(item, Ok(Chunk::Thought(_))));
    assert!(last_thought < first_text);
    let message = heard.answer().message;
    assert_eq!(message.words(), "Done.");
    let thought = Part::Thought { text: "Let me think about it.".to_owned() };
    assert_eq!(message.parts.iter().filter(|part| **part == thought).count(), 1, "{message:?}");
}

async fn what_was_used_is_counted_alike_everywhere(case: Case) {
    let usage = Usage {
        input_tokens: 1_200,
        cached_tokens: 1_000,
        cache_write_tokens: 50,
        output_tokens: 80,
        thought_tokens: 30,
        estimated: false,
        cost: None,
    };
    let talk = case.serve(Reply::text("x").usage(usage)).await;
    let used = talk.hello().await.answer().usage;
    // Gemini has no word for what it puts into its cache.
    let cache_write_tokens = match case.format {
        WireFormat::Gemini => 0,
        _ => 50,
    };
    assert_eq!(used, Usage { cache_write_tokens, ..usage });
}

async fn an_answer_with_calls_is_done_everywhere(case: Case) {
    let talk = case.serve(Reply::default().call("grep", json!({ "pattern": "x" }))).await;
    let answer = talk.hello().await.answer();
    assert_eq!(answer.stop, StopReason::Done);
    assert_eq!(answer.message.calls().count(), 1);
}

async fn an_answer_that_is_too_long_or_refused_says_so(case: Case) {
    let long = Reply::text("and so on and").stop(Stop::Length);
    let refused = Reply::default().stop(Stop::Refused);
    let in_words = Reply::text("I would ra").stop(Stop::Refused);
    let talk = case.serve([long.into(), refused.into(), in_words.into()]).await;
    assert_eq!(talk.hello().await.answer().stop, StopReason::Length);
    assert_eq!(talk.hello().await.answer().stop, StopReason::Refused);
    let answer = talk.hello().await.answer();
    assert_eq!((answer.stop, &*answer.message.words()), (StopReason::Refused, "I would ra"));
}

async fn arguments_may_be_missing(case: Case) {
    let talk = case.serve(Reply::default().call("now", json!({}))).await;
    let answer = talk.hello().await.answer();
    assert_eq!(answer.message.calls().next().unwrap().arguments, json!({}));
}

/// Some proxies compress what nobody asked them to.
async fn a_compressed_answer_is_read(case: Case) {
    let talk = case.serve(Reaction::answer(Reply::text("small")).gzip()).await;
    let heard = talk.hello().await;
    assert_eq!(heard.answer().message.words(), "small");
    assert_eq!(talk.seen(0).header("accept-encoding"), Some("identity"));
}

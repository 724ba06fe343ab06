//! Connections that break: before an answer, in the middle of one, and after a word was said.

use std::time::Duration;

use convoke_model::{Chunk, ModelErrorKind as Kind, Timeouts, WireFormat};
use convoke_testkit::{Point, Reaction, Reply, Say};
use serde_json::json;

use crate::support::{Case, on_every_wire, once, quick};

on_every_wire!(
    an_answer_cut_in_the_middle_of_a_call_is_asked_for_again,
    an_answer_cut_after_a_word_was_said_is_lost,
    an_answer_cut_in_the_middle_of_its_first_word_is_asked_for_again,
    a_server_that_hangs_up_is_asked_again,
    an_answer_that_only_lacks_its_end_is_not_whole,
    a_server_that_never_answers_is_given_up,
    a_server_that_falls_silent_is_given_up,
    a_compressed_answer_that_is_cut_is_lost,
    a_failed_attempt_says_that_it_is_billed,
    a_compressed_answer_that_is_too_long_is_given_up,
);

/// Most answers are calls, of which nothing is shown: what was thrown away must be said.
async fn a_failed_attempt_says_that_it_is_billed(case: Case) {
    let cut = Reaction::answer(call().call("ls", json!({}))).cut(Point::Event(4));
    let talk = case.serve([Reaction::hang_up(), cut, call().into()]).await;
    let heard = talk.hello().await;
    let failed = heard.0.iter().filter_map(|item| match item {
        Ok(Chunk::Retry(retry)) => Some((retry.accepted, retry.received_bytes > 0)),
        _ => None,
    });
    let failed: Vec<_> = failed.collect();
    // Gemini has so few events that its answer is whole by then.
    let expected = [(false, false), (true, true)];
    let count = if case.format == WireFormat::Gemini { 1 } else { 2 };
    assert_eq!(failed, expected[..count], "{heard:?}");
    heard.answer();
}

/// A few kilobytes can become gigabytes.
async fn a_compressed_answer_that_is_too_long_is_given_up(case: Case) {
    let long = Reply::text("a".repeat(200_000)).fragments_of(10_000);
    let transport = quick().longest_answer(100_000);
    let talk = case.serve_with(Reaction::answer(long).gzip(), transport).await;
    let heard = talk.hello().await;
    assert_eq!((heard.error().kind, heard.repeats().len()), (Kind::Malformed, 0));
    assert!(heard.error().message.starts_with("the answer is longer than"), "{heard:?}");
    assert_eq!(talk.server.counts().requests, 1);
}

fn badly_written() -> Say {
    Say::Call { id: None, name: "ls".to_owned(), arguments: "print(ls(".to_owned() }
}

/// Gemini ends an answer whose call it cannot read itself.
#[tokio::test]
async fn a_call_that_gemini_wrote_badly_is_asked_for_again() {
    let bad = Reply::default().say(badly_written());
    let talk = Case::GEMINI.serve([bad.into(), call().into()]).await;
    let heard = talk.hello().await;
    assert_eq!(heard.repeats().len(), 1, "{heard:?}");
    assert!(heard.repeats()[0].0.contains("MALFORMED_FUNCTION_CALL"), "{heard:?}");
    assert_eq!(heard.answer().message.calls().count(), 1);

    let shown = Reply::text("I will look.").say(badly_written());
    let talk = Case::GEMINI.serve(shown).await;
    let heard = talk.hello().await;
    assert_eq!((heard.error().kind, heard.repeats().len()), (Kind::Malformed, 0));
    assert_eq!(heard.error().message, "the answer ended with MALFORMED_FUNCTION_CALL");
}

fn call() -> Reply {
    let arguments = json!({ "path": "notes.txt", "text": "a long text that takes its time" });
    Reply::default().call("write_file", arguments).fragments_of(8)
}

/// Most answers of an agent are calls: a cut in one must not end the run.
async fn an_answer_cut_in_the_middle_of_a_call_is_asked_for_again(case: Case) {
    let cut = Reaction::answer(call()).cut(Point::InCall);
    let talk = case.serve([cut.clone(), cut, call().into()]).await;
    let heard = talk.hello().await;
    assert_eq!(heard.repeats().len(), 2, "{heard:?}");
    assert!(heard.repeats().iter().all(|(reason, _)| reason.starts_with("acme: ")), "{heard:?}");
    let begun = heard.begun();
    assert!(!begun.is_empty() && begun.iter().all(|name| *name == "write_file"), "{begun:?}");
    let message = heard.answer().message;
    assert_eq!(message.calls().count(), 1);
    assert_eq!(message.calls().next().unwrap().arguments["path"], "notes.txt");
    assert_eq!(talk.server.counts().requests, 3);
}

async fn an_answer_cut_after_a_word_was_said_is_lost(case: Case) {
    let shown = Reply::text("I will write it.").fragments_of(6);
    let answer = call().parts.into_iter().fold(shown, Reply::say);
    let cut = Reaction::answer(answer).cut(Point::InCall);
    let talk = case.serve([cut, Reply::text("twice").into()]).await;
    let heard = talk.hello().await;
    assert_eq!(heard.texts().concat(), "I will write it.");
    assert_eq!((heard.error().kind, heard.repeats().len()), (Kind::Cut, 0), "{heard:?}");
    assert_eq!(talk.server.counts().requests, 1);
}

async fn an_answer_cut_in_the_middle_of_its_first_word_is_asked_for_again(case: Case) {
    let cut = Reaction::answer(Reply::text("Hello there.")).cut(Point::InText);
    let talk = case.serve([cut, Reply::text("Hello again.").into()]).await;
    let heard = talk.hello().await;
    assert_eq!((heard.repeats().len(), heard.texts().concat().as_str()), (1, "Hello again."));
    assert_eq!(heard.answer().message.words(), "Hello again.");
}

async fn a_server_that_hangs_up_is_asked_again(case: Case) {
    let talk = case.serve([Reaction::hang_up(), Reply::text("there").into()]).await;
    let heard = talk.hello().await;
    assert_eq!(heard.repeats().len(), 1, "{heard:?}");
    assert_eq!(heard.answer().message.words(), "there");
}

/// However many events come, without the one that says so an answer is not whole.
async fn an_answer_that_only_lacks_its_end_is_not_whole(case: Case) {
    let reply = Reply::text("Hello there.").fragments_of(4);
    let mut whole = 0;
    for events in 0..40 {
        let cut = Reaction::answer(reply.clone()).cut(Point::Event(events));
        let talk = case.serve_with(cut, once()).await;
        let heard = talk.hello().await;
        match heard.0.last().unwrap() {
            // The words are all there, then, though what was used may not be.
            Ok(Chunk::End(answer)) => {
                assert_eq!(answer.message.words(), "Hello there.");
                whole += 1;
            }
            Err(error) => {
                assert_eq!(error.kind, Kind::Cut, "{events}: {error}");
                assert_eq!(whole, 0, "an answer that was whole is whole with more of it");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(whole > 0);
}

fn impatient() -> Timeouts {
    let short = Duration::from_millis(60);
    Timeouts { first_byte: short, idle: short, ..Timeouts::default() }
}

async fn a_server_that_never_answers_is_given_up(case: Case) {
    let talk = case.serve_with(Reaction::silent(), quick().timeouts(impatient())).await;
    let heard = talk.hello().await;
    let error = heard.error();
    assert_eq!((error.kind, heard.repeats().len()), (Kind::Silent, 0), "{heard:?}");
    let place = talk.server.address();
    assert_eq!(error.message, format!("{place} did not begin to answer within 0.1 s"));
    talk.server.wait_until(|counts| counts.abandoned == 1).await;
    assert_eq!(talk.server.counts().requests, 1, "it would be billed twice");
}

async fn a_server_that_falls_silent_is_given_up(case: Case) {
    let answer = Reply::default().thought("Let me see.", "c2ln").say(Say::Text("Well".to_owned()));
    let hang = Reaction::answer(answer).hang(Point::InText);
    let talk = case.serve_with(hang, quick().timeouts(impatient())).await;
    let heard = talk.hello().await;
    assert_eq!(heard.thoughts(), "Let me see.");
    assert_eq!(heard.error().kind, Kind::Silent);
    let place = talk.server.address();
    assert_eq!(heard.error().message, format!("{place} said nothing more for 0.1 s"));
    talk.server.wait_until(|counts| counts.abandoned == 1).await;
}

async fn a_compressed_answer_that_is_cut_is_lost(case: Case) {
    let answer = Reply::default().thought("Let me see.", "c2ln").say(Say::Text("Well".to_owned()));
    let talk = case.serve(Reaction::answer(answer).gzip().cut(Point::InText)).await;
    let heard = talk.hello().await;
    assert_eq!((heard.thoughts().as_str(), heard.error().kind), ("Let me see.", Kind::Cut));
}

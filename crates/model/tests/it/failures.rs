//! What providers refuse or fail to do: the same kinds everywhere, in the provider's words, with a hint,
//! and without a secret.

use std::time::Duration;

use convoke_model::{ModelErrorKind as Kind, Request};
use convoke_testkit::{Failure, Point, Reaction, Reply, Say, Seen};
use serde_json::json;

use crate::support::{Case, Heard, KEY, model, on_every_wire, once, quick, tools, user};

on_every_wire!(
    every_failure_has_its_kind_before_the_answer_begins,
    every_failure_has_its_kind_in_the_middle_of_an_answer,
    what_cannot_pass_is_not_repeated,
    what_may_pass_is_repeated,
    a_wrong_key_names_its_variable_and_is_never_shown,
    a_missing_key_says_which_variable_to_set,
    the_page_of_a_proxy_is_told_in_one_line,
    an_answer_that_is_no_stream_is_not_understood,
    a_compressed_error_is_read,
    an_event_that_is_garbled_is_an_error,
    a_redirect_is_refused,
    no_error_shows_what_was_asked,
);

const KINDS: [(Failure, Kind); 7] = [
    (Failure::RateLimited, Kind::RateLimited),
    (Failure::QuotaExhausted, Kind::Quota),
    (Failure::WrongKey, Kind::Authentication),
    (Failure::NoSuchModel, Kind::NotFound),
    (Failure::ContextTooLong, Kind::ContextTooLong),
    (Failure::Overloaded, Kind::Server),
    (Failure::Internal, Kind::Server),
];

async fn every_failure_has_its_kind_before_the_answer_begins(case: Case) {
    for (failure, kind) in KINDS {
        let talk = case.serve_with(Reaction::failure(failure), once()).await;
        let heard = talk.hello().await;
        let error = heard.error();
        assert_eq!(error.kind, kind, "{failure:?}: {error}");
        assert_eq!(error.status, Some(failure.status(case.wire)), "{failure:?}: {error}");
        let shown = error.to_string();
        let status = failure.status(case.wire);
        assert!(shown.starts_with(&format!("acme answered {status}: ")), "{shown}");
        assert!(error.hint.is_some(), "{shown}");
    }
}

async fn every_failure_has_its_kind_in_the_middle_of_an_answer(case: Case) {
    for (failure, kind) in KINDS {
        let answer =
            Reply::default().thought("Let me see.", "c2ln").say(Say::Text("Well,".to_owned()));
        let talk = case.serve(Reaction::answer(answer).fail(Point::InText, failure)).await;
        let heard = talk.hello().await;
        assert_eq!(heard.thoughts(), "Let me see.", "what came before is handed out");
        assert_eq!(heard.error().kind, kind, "{failure:?}: {}", heard.error());
        assert_eq!(talk.server.counts().requests, 1, "something was shown");
    }
}

async fn what_cannot_pass_is_not_repeated(case: Case) {
    let hopeless = KINDS.iter().filter(|(_, kind)| !kind.is_passing());
    for (failure, _) in hopeless {
        // Not even if the provider says when to come back.
        let failure = Reaction::failure(*failure).retry_after(Duration::ZERO);
        let talk = case.serve([failure, Reply::text("too late").into()]).await;
        let heard = talk.hello().await;
        assert_eq!((heard.0.len(), talk.server.counts().requests), (1, 1), "{heard:?}");
    }
}

async fn what_may_pass_is_repeated(case: Case) {
    for failure in [Failure::Internal, Failure::Overloaded] {
        let talk = case.serve([Reaction::failure(failure), Reply::text("there").into()]).await;
        let heard = talk.hello().await;
        let repeats = heard.repeats();
        let status = failure.status(case.wire);
        assert_eq!(repeats.len(), 1, "{heard:?}");
        assert!(repeats[0].0.starts_with(&format!("acme answered {status}: ")), "{repeats:?}");
        assert_eq!(heard.answer().message.words(), "there");
    }
}

async fn a_wrong_key_names_its_variable_and_is_never_shown(case: Case) {
    let echo = |seen: &Seen, _: usize| {
        let headers = format!("{:?}", seen.headers).replace('"', "'");
        let error = json!({ "type": "authentication_error", "message": format!("not {headers}") });
        Reaction::status(401, json!({ "error": error }).to_string())
    };
    let talk = case.serve(echo).await;
    let heard = talk.hello().await;
    let error = heard.error();
    assert_eq!((error.kind, error.status), (Kind::Authentication, Some(401)));
    assert!(error.hint.as_ref().unwrap().contains("ACME_API_KEY"), "{error:?}");
    assert!(error.message.contains("not ["), "{error}");
    for shown in [format!("{error}"), format!("{error:?}"), format!("{:?}", talk.model)] {
        assert!(!shown.contains(KEY), "{shown}");
    }
}

async fn a_missing_key_says_which_variable_to_set(case: Case) {
    let talk = case.serve(Reaction::failure(Failure::WrongKey)).await;
    let mut provider = case.provider(&talk.server.base_url(case.wire));
    provider.key = None;
    let model = model(case.model, provider, quick().build());
    let heard = Heard::of(&model, &Request::new(&[user("Hello")])).await;
    let hint = heard.error().hint.as_deref();
    assert_eq!(hint, Some("no key is configured; set ACME_API_KEY"));
    for name in ["authorization", "x-api-key", "x-goog-api-key"] {
        assert_eq!(talk.seen(0).header(name), None);
    }
}

/// Two of the wires used to show `<html>` as the reason.
async fn the_page_of_a_proxy_is_told_in_one_line(case: Case) {
    let page = Reaction::html_error_page(502);
    let talk = case.serve([page.clone(), Reply::text("there").into()]).await;
    let heard = talk.hello().await;
    assert_eq!(heard.repeats()[0].0, "acme answered 502: Bad Gateway");
    assert_eq!(heard.answer().message.words(), "there");

    let talk = case.serve(Reaction::html_error_page(403)).await;
    let heard = talk.hello().await;
    assert_eq!(heard.error().to_string(), "acme answered 403: Forbidden");

    let talk = case.serve(Reaction::status(404, "")).await;
    assert_eq!(talk.hello().await.error().to_string(), "acme answered 404: Not Found");
}

async fn an_answer_that_is_no_stream_is_not_understood(case: Case) {
    let login = Reaction::html_error_page(200);
    let talk = case.serve(login).await;
    let heard = talk.hello().await;
    let error = heard.error();
    assert_eq!((error.kind, error.repeatable), (Kind::Malformed, false));
    assert_eq!(error.message, "the answer is not a stream of events: 200 OK");
    let address = talk.server.base_url(case.wire);
    assert_eq!(error.hint, Some(format!("is {address} the right address?")));
}

async fn a_compressed_error_is_read(case: Case) {
    let talk = case.serve(Reaction::failure(Failure::ContextTooLong).gzip()).await;
    assert_eq!(talk.hello().await.error().kind, Kind::ContextTooLong);
}

async fn an_event_that_is_garbled_is_an_error(case: Case) {
    let answer = Reply::default()
        .thought("Let me see.", "c2ln")
        .say(Say::Text("Some words.".to_owned()))
        .call("grep", json!({ "pattern": "x" }));
    for (point, texts) in [(Point::InText, vec![]), (Point::InCall, vec!["Some words."])] {
        let talk = case.serve(Reaction::answer(answer.clone()).malformed(point)).await;
        let heard = talk.hello().await;
        assert_eq!(heard.thoughts(), "Let me see.");
        assert_eq!(heard.texts(), texts);
        let error = heard.error();
        assert_eq!(error.kind, Kind::Malformed, "{error}");
        assert_eq!(talk.server.counts().requests, 1);
        assert_eq!(error.hint, None, "the address was right");
    }
}

async fn a_redirect_is_refused(case: Case) {
    let elsewhere = case.serve(Reply::text("come in")).await;
    let location = format!("{}/login?next=secret", elsewhere.server.url());
    let redirect = Reaction::status(307, "").header("location", location);
    let talk = case.serve(redirect).await;
    let heard = talk.hello().await;
    let error = heard.error();
    assert_eq!((error.kind, error.status), (Kind::Rejected, Some(307)));
    let place = elsewhere.server.url();
    assert_eq!(error.message, format!("a redirect to {place}/login, which is not followed"));
    assert!(error.hint.as_ref().unwrap().contains("base URL"));
    assert_eq!(elsewhere.server.counts().accepted, 0);
    assert_eq!(talk.server.counts().requests, 1);
}

/// Another library puts the whole request into its errors.
async fn no_error_shows_what_was_asked(case: Case) {
    let (messages, tools) = ([user("a private question")], tools());
    let request = Request { system: "a private prompt", tools: &tools, ..Request::new(&messages) };
    for (failure, _) in KINDS {
        let talk = case.serve_with(Reaction::failure(failure), once()).await;
        let heard = talk.ask(&request).await;
        let shown = format!("{heard:?}");
        assert!(!shown.contains("private") && !shown.contains("read_file"), "{shown}");
    }
}

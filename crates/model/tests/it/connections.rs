//! Connections: reused, closed when nobody listens any more, secure, through a proxy.

use std::time::Duration;

use convoke_model::{Chunk, Model, ModelErrorKind as Kind, ProxySettings, Request};
use convoke_testkit::{Authority, ModelServer, Options, Point, Reaction, Reply, Say};
use futures_util::StreamExt;

use crate::support::{Case, Heard, KEY, on_every_wire, once, quick, user};

on_every_wire!(
    a_connection_is_used_again,
    dropping_the_stream_closes_the_connection,
    dropping_the_stream_before_the_answer_begins_closes_the_connection,
    nothing_is_sent_before_the_stream_is_polled,
    nobody_at_the_address,
    a_certificate_nobody_trusts_is_not_tried_twice,
    an_extra_root_certificate_is_trusted,
    a_proxy_is_used_where_it_is_set,
);

async fn a_connection_is_used_again(case: Case) {
    let talk = case.serve(Reply::text("x")).await;
    for _ in 0..3 {
        talk.hello().await.answer();
    }
    assert_eq!((talk.server.counts().requests, talk.server.counts().accepted), (3, 1));
}

async fn dropping_the_stream_closes_the_connection(case: Case) {
    let answer = Reply::default().thought("Let me see.", "c2ln").say(Say::Text("Well".to_owned()));
    let talk = case.serve(Reaction::answer(answer).hang(Point::InText)).await;
    let mut stream = talk.model.stream(&Request::new(&[user("Hello")]));
    assert!(matches!(stream.next().await, Some(Ok(Chunk::Thought(_)))));
    assert_eq!(talk.server.counts().abandoned, 0);
    drop(stream);
    talk.server.wait_until(|counts| counts.abandoned == 1 && counts.open == 0).await;
}

async fn dropping_the_stream_before_the_answer_begins_closes_the_connection(case: Case) {
    let talk = case.serve(Reaction::silent()).await;
    let mut stream = talk.model.stream(&Request::new(&[user("Hello")]));
    tokio::select! {
        item = stream.next() => panic!("nothing was to come, but {item:?} did"),
        _ = talk.server.next_request() => {}
    }
    drop(stream);
    talk.server.wait_until(|counts| counts.abandoned == 1 && counts.open == 0).await;
}

async fn nothing_is_sent_before_the_stream_is_polled(case: Case) {
    let talk = case.serve(Reply::text("x")).await;
    drop(talk.model.stream(&Request::new(&[user("never asked")])));
    talk.hello().await.answer();
    assert_eq!(talk.server.counts().requests, 1);
}

async fn nobody_at_the_address(case: Case) {
    let mut talk = case.serve_with(Reply::text("x"), once()).await;
    talk.server.refuse_connections().await;
    let heard = talk.hello().await;
    let (error, place) = (heard.error(), talk.server.address());
    assert_eq!((error.kind, error.repeatable), (Kind::Unreachable, false), "nobody will start it");
    assert!(error.not_running);
    assert!(error.message.starts_with(&format!("cannot reach {place}: ")), "{error}");
    assert_eq!(error.hint, Some(format!("is a server running at {place}?")));
}

async fn a_certificate_nobody_trusts_is_not_tried_twice(case: Case) {
    let (authority, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    let server = Options::default().tls(&authority).start(Reply::text("x")).await.unwrap();
    let transport = quick().extra_root_certificates(other.ca_pem()).build();
    let model = case.model_at(&server.base_url(case.wire), transport);
    let heard = Heard::of(&model, &Request::new(&[user("Hello")])).await;
    let error = heard.error();
    assert_eq!((error.kind, error.repeatable, heard.0.len()), (Kind::Unreachable, false, 1));
    assert!(!error.not_running, "it runs, but nobody trusts it");
    let place = server.address();
    let start = format!("no secure connection to {place}: ");
    assert!(error.message.starts_with(&start) && error.message.len() > start.len(), "{error}");
    assert!(error.hint.as_ref().unwrap().starts_with("check the certificate"), "{error:?}");
    assert_eq!((server.counts().accepted, server.counts().requests), (1, 0));
}

async fn an_extra_root_certificate_is_trusted(case: Case) {
    let authority = Authority::new().unwrap();
    let server = Options::default().tls(&authority).start(Reply::text("safe")).await.unwrap();
    let transport = quick().extra_root_certificates(authority.ca_pem()).build();
    let model = case.model_at(&server.base_url(case.wire), transport);
    let heard = Heard::of(&model, &Request::new(&[user("Hello")])).await;
    assert_eq!(heard.answer().message.words(), "safe");
}

async fn a_proxy_is_used_where_it_is_set(case: Case) {
    let proxy = ModelServer::start(Reply::text("by proxy")).await.unwrap();
    let direct = ModelServer::start(Reply::text("directly")).await.unwrap();
    let settings = ProxySettings {
        http: Some(proxy.url().replace("://", "://me:word@")),
        https: Some(proxy.url()),
        no_proxy: Some("near.test".to_owned()),
        ..ProxySettings::default()
    };
    let transport = once().proxy(settings).build();
    let (messages, base) = ([user("Hello")], case.wire.base_path());
    let request = Request::new(&messages);

    let far = case.model_at(&format!("http://far.test{base}"), transport.clone());
    assert_eq!(Heard::of(&far, &request).await.answer().message.words(), "by proxy");
    let seen = proxy.next_request().await;
    assert!(seen.path.starts_with("http://far.test/"), "{}", seen.path);
    assert_eq!(seen.header("proxy-authorization"), Some("Basic bWU6d29yZA=="));

    let local = case.model_at(&direct.base_url(case.wire), transport.clone());
    assert_eq!(Heard::of(&local, &request).await.answer().message.words(), "directly");
    assert_eq!(proxy.counts().requests, 1);

    // A secure connection is a tunnel, which this proxy does not make.
    let secure = case.model_at(&format!("https://far.test{base}"), transport);
    let heard = Heard::of(&secure, &request).await;
    let seen = proxy.next_request().await;
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("CONNECT", "far.test:443"));
    assert!(!format!("{:?}", seen.headers).contains(KEY));
    assert_eq!(heard.error().kind, Kind::Unreachable, "{}", heard.error());
}

/// Servers that keep a connection open after the answer do not hold it up for long.
#[tokio::test]
async fn an_answer_is_whole_before_its_connection_ends() {
    let talk = Case::CHAT.serve(Reaction::answer(Reply::text("x")).hang(Point::Event(4))).await;
    let start = tokio::time::Instant::now();
    assert_eq!(talk.hello().await.answer().message.words(), "x");
    assert!(start.elapsed() < Duration::from_secs(10));
}

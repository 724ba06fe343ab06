use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;
use crate::error::ModelErrorKind;
use crate::model::Chunk;
use crate::retry::RetryPolicy;
use crate::testing::{CERTIFICATE, FAKE_WIRE, Reply, Server, answer, read_request, tls_server};
use crate::transport::{ProxySettings, Timeouts, TransportBuilder};

const KEY: &str = "sk-hush-0123456789";

fn quick() -> TransportBuilder {
    let base = Duration::from_millis(1);
    Transport::builder().retry(RetryPolicy { base, ..RetryPolicy::default() })
}

fn model_at(url: &str, transport: TransportBuilder) -> ProviderModel {
    let mut provider = Provider::new("fake", WireFormat::OpenAiChat, url).key(KEY);
    provider.key_variable = Some("FAKE_KEY".to_owned());
    let facts = ModelFacts::default();
    ProviderModel::with_wire("m", facts, provider, &FAKE_WIRE, transport.build()).unwrap()
}

async fn ask(model: &ProviderModel) -> Vec<Result<Chunk, ModelError>> {
    let request = Request { system: "hello", ..Request::new(&[]) };
    model.stream(&request).collect().await
}

async fn replies(replies: &[Reply]) -> (Vec<Result<Chunk, ModelError>>, Server) {
    let server = Server::start(replies.to_vec()).await;
    let items = ask(&model_at(&server.url(), quick())).await;
    (items, server)
}

/// Asks a server that gives one answer, and returns the error it ends in.
async fn error_of(reply: Reply) -> ModelError {
    let (mut items, _server) = replies(&[reply]).await;
    assert_eq!(items.len(), 1, "{items:?}");
    items.pop().unwrap().unwrap_err()
}

#[expect(clippy::unnecessary_wraps, reason = "what a stream gives is a result")]
fn text(text: &str) -> Result<Chunk, ModelError> {
    Ok(Chunk::Text(text.to_owned()))
}

#[expect(clippy::unnecessary_wraps, reason = "what a stream gives is a result")]
fn end(text: &str) -> Result<Chunk, ModelError> {
    Ok(Chunk::End(answer(text)))
}

#[tokio::test]
async fn an_answer_comes_in_chunks_and_ends_whole() {
    let events = ["H hm", "T hel", "T lo", "C ls", "END"];
    let (items, server) = replies(&[Reply::events(&events)]).await;
    assert_eq!(
        items,
        [
            Ok(Chunk::Thought("hm".to_owned())),
            text("hel"),
            text("lo"),
            Ok(Chunk::ToolCall { name: "ls".to_owned() }),
            end("hello"),
        ]
    );
    let request = server.requests().pop().unwrap();
    assert!(request.starts_with("POST /ask/m HTTP/1.1\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\nhello"), "{request}");
    for header in [
        format!("x-key: {KEY}"),
        format!("user-agent: convoke/{}", env!("CARGO_PKG_VERSION")),
        "content-type: application/json".to_owned(),
        "accept: text/event-stream".to_owned(),
    ] {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{header} in {request}");
    }
    assert!(request.contains("\r\naccept-encoding: identity\r\n"), "{request}");
}

#[tokio::test]
async fn the_providers_own_headers_go_before_those_of_the_wire() {
    let server = Server::start([Reply::events(&["END"])]).await;
    let mut provider = Provider::new("fake", WireFormat::OpenAiChat, format!("{}/", server.url()));
    provider.headers =
        [("X-Key", "own"), ("User-Agent", "me")].map(|(a, b)| (a.into(), b.into())).to_vec();
    let facts = ModelFacts::default();
    let model =
        ProviderModel::with_wire("m", facts, provider.key(KEY), &FAKE_WIRE, Transport::default());
    assert_eq!(ask(&model.unwrap()).await, [end("")]);
    let request = server.requests().pop().unwrap();
    assert!(request.starts_with("POST /ask/m "), "{request}");
    assert!(request.contains("\r\nx-key: own\r\n") && request.contains("\r\nuser-agent: me\r\n"));
    assert!(!request.contains(KEY));
}

#[tokio::test]
async fn a_broken_server_is_asked_again_with_the_same_bytes() {
    let (items, server) =
        replies(&[Reply::json(500, "oops"), Reply::events(&["T a", "END"])]).await;
    let [Ok(Chunk::Retry(retry)), rest @ ..] = items.as_slice() else { panic!("{items:?}") };
    assert_eq!((retry.attempt, retry.reason.as_str()), (2, "fake answered 500: oops"));
    assert_eq!(rest, [text("a"), end("a")]);
    let requests = server.requests();
    assert_eq!(requests[0], requests[1]);
}

#[tokio::test]
async fn a_complaint_in_the_stream_is_repeated_only_if_nothing_was_shown() {
    let (items, _server) =
        replies(&[Reply::events(&["BUSY"]), Reply::events(&["T a", "END"])]).await;
    assert!(matches!(items.first(), Some(Ok(Chunk::Retry(_)))), "{items:?}");
    assert_eq!(items.last(), Some(&end("a")));

    let (items, server) = replies(&[Reply::events(&["T a", "BUSY"])]).await;
    assert_eq!(items.len(), 2);
    assert_eq!(items[0], text("a"));
    let error = items[1].as_ref().unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::Server, "too busy"));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_cut_is_an_error() {
    let (items, server) = replies(&[Reply::events(&["T a"])]).await;
    assert_eq!(items[0], text("a"));
    let error = items[1].as_ref().unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Cut);
    let place = server.place();
    assert_eq!(error.message, format!("{place} ended the answer before it was whole"));

    let chunked =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nb\r\ndata: T a\n\n\r\n5\r\nda";
    let (items, _server) = replies(&[Reply::raw(chunked)]).await;
    assert_eq!(items[0], text("a"));
    assert_eq!(items[1].as_ref().unwrap_err().kind, ModelErrorKind::Cut);
}

#[tokio::test]
async fn a_server_that_does_not_close_a_whole_answer_does_not_hold_it_up() {
    let held = Reply::events(&["T a", "END"]).hold();
    let server = Server::start([held]).await;
    let timeouts = Timeouts { idle: Duration::from_millis(50), ..Timeouts::default() };
    let model = model_at(&server.url(), quick().timeouts(timeouts));
    assert_eq!(ask(&model).await, [text("a"), end("a")]);
}

/// goose#9082: a connection that looks alive and says nothing.
#[tokio::test]
async fn a_silent_server_is_given_up() {
    let retry = RetryPolicy::never();
    let short = Duration::from_millis(50);
    let server = Server::start([Reply::events(&["T a"]).hold()]).await;

    let timeouts = Timeouts { idle: short, ..Timeouts::default() };
    let model = model_at(&server.url(), Transport::builder().retry(retry).timeouts(timeouts));
    let items = ask(&model).await;
    let error = items[1].as_ref().unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Silent);
    assert!(error.message.ends_with("said nothing more for 0.1 s"), "{}", error.message);
}

/// Each attempt would be billed, and the next would be as silent.
#[tokio::test]
async fn a_server_that_never_begins_is_not_asked_again() {
    assert!(Timeouts::default().first_byte > Timeouts::default().idle);
    // Neither without nor with the head of an answer: that alone is nothing of an answer.
    let head = Reply::new(200, "content-type: text/event-stream\r\n", "");
    for silent in [Reply::raw("").hold(), head.hold()] {
        let server = Server::start([silent, Reply::events(&["END"])]).await;
        let first_byte = Duration::from_millis(50);
        let timeouts = Timeouts { first_byte, ..Timeouts::default() };
        let items = ask(&model_at(&server.url(), quick().timeouts(timeouts))).await;
        let [Err(error)] = items.as_slice() else { panic!("{items:?}") };
        assert_eq!((error.kind, error.repeatable), (ModelErrorKind::Silent, false));
        let end = "did not begin to answer within 0.1 s";
        assert!(error.message.ends_with(end), "{}", error.message);
        assert_eq!((error.accepted, error.received_bytes), (true, 0));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_before_it_shows_anything_is_asked_again() {
    let silent = Reply::events(&["C ls", "A 0123"]).hold();
    let server = Server::start([silent, Reply::events(&["T a", "END"])]).await;
    let timeouts = Timeouts { idle: Duration::from_millis(50), ..Timeouts::default() };
    let items = ask(&model_at(&server.url(), quick().timeouts(timeouts))).await;
    let [Ok(Chunk::ToolCall { .. }), Ok(Chunk::Retry(retry)), ..] = items.as_slice() else {
        panic!("{items:?}")
    };
    assert_eq!((retry.accepted, retry.received_bytes), (true, 4));
    assert_eq!(items.last(), Some(&end("a")));
}

#[tokio::test]
async fn a_failed_attempt_says_what_of_an_answer_it_brought() {
    let cut = Reply::events(&["C ls", "A 0123456789"]);
    let (items, _server) = replies(&[
        Reply::json(500, "oops"),
        Reply::events(&["BUSY"]),
        cut,
        Reply::events(&["T é", "H hm", "A 01234", "nonsense"]),
    ])
    .await;
    let billed = items.iter().filter_map(|item| match item {
        Ok(Chunk::Retry(retry)) => Some((retry.accepted, retry.received_bytes)),
        Err(error) => Some((error.accepted, error.received_bytes)),
        Ok(_) => None,
    });
    let expected = [(false, 0), (false, 0), (true, 10), (true, 2 + 2 + 5)];
    assert_eq!(billed.collect::<Vec<_>>(), expected, "{items:?}");
}

#[tokio::test]
async fn an_answer_that_goes_on_for_ever_is_given_up() {
    let words = vec!["T abcdefgh"; 50];
    let server = Server::start([Reply::events(&words).hold(), Reply::events(&["END"])]).await;
    let items = ask(&model_at(&server.url(), quick().longest_answer(500))).await;
    let error = items.last().unwrap().as_ref().unwrap_err();
    assert_eq!((error.kind, error.repeatable), (ModelErrorKind::Malformed, false));
    let message = "the answer is longer than anything a model says, and was given up";
    assert_eq!(error.message, message);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_holds_a_limited_number_of_calls() {
    let mut events = vec!["C ls"; 1_024];
    let (items, _server) = replies(&[Reply::events(&[&*events, &["END"]].concat())]).await;
    assert_eq!(items.last(), Some(&end("")));

    events.push("C ls");
    let (items, server) = replies(&[Reply::events(&events).hold()]).await;
    let error = items.last().unwrap().as_ref().unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Malformed);
    assert_eq!(error.message, "the answer holds more than 1024 calls, and was given up");
    assert_eq!(server.requests().len(), 1);
}

/// Signs of life would hold up a whole answer for ever if each of them were waited for anew.
#[tokio::test]
async fn a_whole_answer_is_not_held_up_by_a_server_that_goes_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut server = JoinSet::new();
    server.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ndata: T a\n\ndata: END\n\n";
        let mut next = head;
        while stream.write_all(next.as_bytes()).await.is_ok() {
            next = ": still there\n\n";
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let timeouts = Timeouts { idle: Duration::from_millis(200), ..Timeouts::default() };
    let model = model_at(&url, quick().timeouts(timeouts));
    let items = tokio::time::timeout(Duration::from_secs(30), ask(&model)).await;
    assert_eq!(items.unwrap(), [text("a"), end("a")]);
}

#[tokio::test]
async fn the_last_word_of_a_provider_ends_the_answer() {
    let server = Server::start([Reply::events(&["T a", "BYE"]).hold()]).await;
    let start = Instant::now();
    assert_eq!(ask(&model_at(&server.url(), quick())).await, [text("a"), end("a")]);
    assert!(start.elapsed() < Duration::from_millis(1_500), "{:?}", start.elapsed());
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let mut server = Server::start([Reply::events(&["T a"]).hold()]).await;
    let model = model_at(&server.url(), quick());
    let mut stream = model.stream(&Request::new(&[]));
    assert_eq!(stream.next().await, Some(text("a")));
    drop(stream);
    assert_eq!(server.closed().await, 0);
}

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_polled() {
    let server = Server::start([Reply::events(&["END"])]).await;
    let model = model_at(&server.url(), quick());
    drop(model.stream(&Request::new(&[])));
    assert_eq!(ask(&model).await, [end("")]);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::start([Reply::events(&["END"])]).await;
    let location = format!("location: {}/x?secret=1\r\n", elsewhere.url());
    let error = error_of(Reply::new(302, &location, "")).await;
    assert_eq!((error.kind, error.status), (ModelErrorKind::Rejected, Some(302)));
    assert_eq!(
        error.message,
        format!("a redirect to {}/x, which is not followed", elsewhere.url())
    );
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn each_error_says_what_to_do() {
    use ModelErrorKind as Kind;
    for (status, kind, hint) in [
        (401, Kind::Authentication, "check the key, usually in FAKE_KEY,"),
        (404, Kind::NotFound, "check the name of the model and the address, http://127.0.0.1:"),
        (400, Kind::Rejected, ""),
    ] {
        let error = error_of(Reply::json(status, "its own words")).await;
        assert_eq!((error.kind, error.status), (kind, Some(status)));
        assert_eq!(error.message, "its own words");
        assert!(error.hint.unwrap_or_default().starts_with(hint));
    }
    let error = error_of(Reply::json(429, "the quota is used up")).await;
    assert_eq!((error.kind, error.repeatable), (Kind::Quota, false));
    assert_eq!(error_of(Reply::json(400, "")).await.message, "Bad Request");
}

#[tokio::test]
async fn a_missing_key_is_said() {
    let server = Server::start([Reply::json(401, "who are you")]).await;
    let mut provider = Provider::new("fake", WireFormat::OpenAiChat, server.url());
    provider.key_variable = Some("FAKE_KEY".to_owned());
    let facts = ModelFacts::default();
    let model = ProviderModel::with_wire("m", facts, provider, &FAKE_WIRE, Transport::default());
    let items = ask(&model.unwrap()).await;
    let error = items[0].as_ref().unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("no key is configured; set FAKE_KEY"));
}

#[tokio::test]
async fn a_success_that_is_no_stream_is_an_error() {
    let error = error_of(Reply::json(200, r#"{"error":"the quota is used up"}"#)).await;
    assert_eq!((error.kind, error.status), (ModelErrorKind::Quota, Some(200)));

    let html = Reply::new(200, "content-type: text/html\r\n", "<html>Please log in</html>");
    let error = error_of(html).await;
    assert_eq!(error.kind, ModelErrorKind::Malformed);
    assert_eq!(error.message, "the answer is not a stream of events: Please log in");

    let error = error_of(Reply::new(200, "", "hello there")).await;
    assert_eq!(error.message, "the answer is not a stream of events: hello there");
}

#[tokio::test]
async fn a_long_error_is_read_and_shown_in_part() {
    let error = error_of(Reply::json(400, &"é".repeat(1_000_000))).await;
    assert!(error.message.ends_with("… (65536 bytes)"), "{}", error.message.len());
    assert!(error.message.len() < 5_000);
}

#[tokio::test]
async fn nobody_at_the_address() {
    let server = Server::start([]).await;
    let (url, place) = (server.url(), server.place());
    drop(server);
    let items = ask(&model_at(&url, Transport::builder().retry(RetryPolicy::never()))).await;
    let error = items[0].as_ref().unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable);
    assert!(error.message.starts_with(&format!("cannot reach {place}: ")), "{}", error.message);
    assert_eq!(error.hint.as_deref(), Some(&*format!("is a server running at {place}?")));
}

#[tokio::test]
async fn a_certificate_nobody_trusts_is_not_tried_twice() {
    let (url, connections) = tls_server(b"");
    let items = ask(&model_at(&url, quick())).await;
    let [Err(error)] = items.as_slice() else { panic!("{items:?}") };
    assert_eq!((error.kind, error.repeatable), (ModelErrorKind::Unreachable, false));
    assert!(error.message.starts_with("no secure connection to 127.0.0.1:"), "{}", error.message);
    assert!(error.hint.as_ref().unwrap().starts_with("check the certificate"));
    assert_eq!(*connections.lock().unwrap(), 1);
}

#[tokio::test]
async fn an_extra_root_certificate_is_trusted() {
    let reply = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ndata: T a\n\ndata: END\n\n";
    let (url, _) = tls_server(reply);
    let items = ask(&model_at(&url, quick().extra_root_certificates(CERTIFICATE))).await;
    assert_eq!(items, [text("a"), end("a")]);
}

#[tokio::test]
async fn no_error_and_no_debug_output_shows_a_key() {
    let headers = [("Authorization".to_owned(), "Bearer own-secret-1".to_owned())];
    let echo = format!("key {KEY} is wrong, so is own-secret-1");
    let location = format!("location: http://127.0.0.1:1/{KEY}/own-secret-1\r\n");
    let page = Reply::new(200, "content-type: text/html\r\n", &echo);
    for reply in [
        Reply::json(401, &echo),
        Reply::json(200, &format!("{{\"error\":\"{echo}\"}}")),
        Reply::new(302, &location, ""),
        page,
        Reply::events(&[&echo]),
    ] {
        let server = Server::start([reply]).await;
        let url = server.url().replace("://", "://me:hush-hush@");
        let mut provider = Provider::new("fake", WireFormat::OpenAiChat, url).key(KEY);
        provider.headers = headers.to_vec();
        let (facts, transport) = (ModelFacts::default(), quick().build());
        let model = ProviderModel::with_wire("m", facts, provider, &FAKE_WIRE, transport).unwrap();
        let items = ask(&model).await;
        assert!(items.iter().any(Result::is_err), "{items:?}");
        let shown = format!("{items:?} {model:?}");
        for secret in [KEY, "own-secret-1", "hush-hush"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
}

#[test]
fn an_address_or_key_that_cannot_be_is_said_at_once() {
    for (url, message) in [
        ("api.example.com", "the base URL is not a URL"),
        ("ftp://example.com", "the base URL is not an http or https address"),
        (
            "https://example.com/v1?key=1",
            "the base URL has a query or a fragment; a path is added at its end",
        ),
    ] {
        let provider = Provider::new("p", WireFormat::Gemini, url);
        let error = Endpoint::new(provider, &FAKE_WIRE).unwrap_err();
        assert_eq!(error.message, message);
    }
    let provider = Provider::new("p", WireFormat::Gemini, "https://a.test").key("hush\nhush");
    let error = Endpoint::new(provider, &FAKE_WIRE).unwrap_err();
    assert_eq!(error.message, "the header `x-key` has a value that cannot be sent");
}

#[tokio::test]
async fn after_a_429_the_models_of_a_key_go_one_at_a_time() {
    let refused = Reply::new(429, "retry-after-ms: 40\r\n", "slow down");
    let mut all = vec![refused];
    all.extend((0..8).map(|_| Reply::events(&["T a", "END"])));
    let server = Server::start(all).await;
    let transport = quick().build();
    let models: Vec<_> = (0..4)
        .map(|_| {
            let provider = Provider::new("fake", WireFormat::OpenAiChat, server.url()).key(KEY);
            let facts = ModelFacts::default();
            ProviderModel::with_wire("m", facts, provider, &FAKE_WIRE, transport.clone()).unwrap()
        })
        .collect();
    let start = Instant::now();
    let mut first = models[0].stream(&Request::new(&[]));
    assert!(matches!(first.next().await, Some(Ok(Chunk::Retry(_)))));
    // The others have never been refused, and wait all the same.
    for model in &models[1..] {
        assert_eq!(ask(model).await.last(), Some(&end("a")));
        assert!(start.elapsed() >= Duration::from_millis(40));
    }
    assert_eq!(first.collect::<Vec<_>>().await.last(), Some(&end("a")));
}

#[tokio::test]
async fn a_proxy_is_used_for_other_machines_only() {
    let proxy = Server::start([Reply::events(&["END"])]).await;
    let direct = Server::start([Reply::events(&["END"])]).await;
    let proxies = ProxySettings { http: Some(proxy.url()), ..ProxySettings::default() };
    let transport = || quick().proxy(proxies.clone());
    assert_eq!(ask(&model_at("http://far.test/v1", transport())).await, [end("")]);
    let request = proxy.requests().pop().unwrap();
    assert!(request.starts_with("POST http://far.test/v1/ask/m HTTP/1.1\r\n"), "{request}");
    assert_eq!(ask(&model_at(&direct.url(), transport())).await, [end("")]);
    assert_eq!((proxy.requests().len(), direct.requests().len()), (1, 1));
}

#[test]
fn known_providers_have_their_addresses_and_variables() {
    let gemini = Provider::known("gemini").unwrap();
    assert_eq!(gemini.key_variable.as_deref(), Some("GEMINI_API_KEY"));
    assert_eq!(gemini.base_url, "https://generativelanguage.googleapis.com");
    assert_eq!(Provider::known("ollama").unwrap().key_variable, None);
    assert!(Provider::known("nobody").is_none());
    for known in KNOWN_PROVIDERS {
        let local = known.base_url.starts_with("http://127.0.0.1:");
        assert_eq!(known.key_variables.is_empty(), local, "{}", known.name);
    }
}

#[tokio::test]
async fn an_unreachable_proxy_is_named() {
    let proxies = ProxySettings {
        all: Some("http://me:hush@127.0.0.1:1".to_owned()),
        ..ProxySettings::default()
    };
    let transport = quick().retry(RetryPolicy::never()).proxy(proxies);
    let error = ask(&model_at("http://far.test/v1", transport)).await.pop().unwrap().unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable);
    assert!(error.message.contains("far.test:80 through the proxy 127.0.0.1:1"), "{error}");
    assert!(error.hint.as_ref().unwrap().contains("NO_PROXY"), "{error:?}");
    assert!(!format!("{error:?}").contains("hush"));
}

/// Answers once, and hangs up on the next request of the same connection; answers again on another.
async fn a_server_that_hangs_up_between_requests(listener: TcpListener) {
    let body = "data: BYE\n\n";
    let length = body.len();
    let reply = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let (mut kept, _) = listener.accept().await.unwrap();
    read_request(&mut kept).await;
    kept.write_all(reply.as_bytes()).await.unwrap();
    read_request(&mut kept).await;
    drop(kept);
    let (mut fresh, _) = listener.accept().await.unwrap();
    read_request(&mut fresh).await;
    fresh.write_all(reply.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn a_request_on_a_connection_that_was_closed_meanwhile_is_made_again_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut server = JoinSet::new();
    server.spawn(a_server_that_hangs_up_between_requests(listener));
    let long = RetryPolicy { base: Duration::from_hours(1), ..RetryPolicy::default() };
    let model = model_at(&url, quick().retry(long));
    assert_eq!(ask(&model).await, [end("")]);
    let items = ask(&model).await;
    let [Ok(Chunk::Retry(retry)), last] = items.as_slice() else { panic!("{items:?}") };
    assert_eq!((retry.attempt, retry.delay), (2, Duration::ZERO));
    assert!(!retry.accepted, "nothing of it is billed");
    assert_eq!(last, &end(""));
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_for_the_rate_limit_is_said() {
    let limits = Limits { requests_per_minute: NonZeroU32::new(1), ..Limits::default() };
    let gate = quick().build().gates().gate("http://x.test", None, limits);
    drop(gate.enter(Duration::MAX).await.unwrap());
    let provider = Provider::new("fake", WireFormat::OpenAiChat, "http://127.0.0.1:1");
    let exchange = Exchange {
        endpoint: Arc::new(Endpoint::new(provider, &FAKE_WIRE).unwrap()),
        transport: quick().build(),
        gate,
        url: "http://127.0.0.1:1/".parse().unwrap(),
        body: Bytes::new(),
    };
    let start = tokio::time::Instant::now();
    let mut stream = exchange.attempt();
    let first = stream.next().await.unwrap().unwrap();
    let Chunk::Retry(wait) = first else { panic!("{first:?}") };
    assert_eq!((start.elapsed(), wait.attempt), (Duration::from_secs(1), 1));
    assert_eq!(wait.reason, "fake: other requests with this key come first");
}

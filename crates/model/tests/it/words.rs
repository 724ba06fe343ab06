//! Errors as people read them: who, what, and what to do. `{place}` stands for the host and port of the
//! server, `{url}` for its address.

use std::time::Duration;

use convoke_model::{ModelError, ModelErrorKind as Kind, Request, Timeouts, TransportBuilder};
use convoke_testkit::{Authority, Failure, ModelServer, Options, Point, Reaction, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{Case, Heard, once, quick, user};

const OVER_THERE: &str = "the trouble is on the other side; try again later";

/// Asks a server on the chat wire at its address, or at the one that `address` makes of it.
async fn error_at(
    server: &ModelServer,
    transport: TransportBuilder,
    address: impl Fn(&str) -> String,
) -> ModelError {
    let url = address(&server.base_url(Case::CHAT.wire));
    let model = Case::CHAT.model_at(&url, transport.build());
    Heard::of(&model, &Request::new(&[user("Hello")])).await.error().clone()
}

#[track_caller]
fn assert_reads(server: &ModelServer, error: &ModelError, words: &str, hint: &str) {
    let filled = |text: &str| {
        let url = server.base_url(Case::CHAT.wire);
        text.replace("{place}", &server.address().to_string()).replace("{url}", &url)
    };
    assert_eq!(error.to_string(), filled(words));
    assert_eq!(error.hint.as_deref().unwrap_or_default(), filled(hint), "{error}");
}

async fn assert_answer_reads(reaction: Reaction, words: &str, hint: &str) {
    let short = Duration::from_millis(300);
    let timeouts = Timeouts { first_byte: short, idle: short, ..Timeouts::default() };
    let server = ModelServer::start(reaction).await.unwrap();
    let error = error_at(&server, once().timeouts(timeouts), str::to_owned).await;
    assert_reads(&server, &error, words, hint);
}

#[tokio::test]
async fn refusals_are_the_providers_words_and_a_hint() {
    for (failure, words, hint) in [
        (
            Failure::RateLimited,
            "acme answered 429: Rate limit reached for deepseek-chat on tokens per min (TPM).",
            "wait a moment, or send fewer requests at a time",
        ),
        (
            Failure::QuotaExhausted,
            "acme answered 429: You exceeded your current quota; check plan and billing.",
            "check your plan and billing at acme",
        ),
        (
            Failure::WrongKey,
            "acme answered 401: Incorrect API key provided: sk-…wrong.",
            "check the key, usually in ACME_API_KEY, and what it may be used for",
        ),
        (
            Failure::NoSuchModel,
            "acme answered 404: The model `deepseek-chat` does not exist.",
            "check the name of the model and the address, {url}",
        ),
        (
            Failure::ContextTooLong,
            "acme answered 400: This model's maximum context length is 128000 tokens, but the \
             messages have 131072.",
            "make the conversation shorter, or use a model with a larger window",
        ),
        (Failure::Overloaded, "acme answered 503: The engine is currently overloaded.", OVER_THERE),
    ] {
        assert_answer_reads(Reaction::failure(failure), words, hint).await;
        let (_, said) = words.split_once(": ").unwrap();
        let middle = Reaction::answer(Reply::text("x")).fail(Point::InText, failure);
        assert_answer_reads(middle, &format!("acme: {said}"), hint).await;
    }
    let refused = Reaction::status(400, r#"{"error":{"message":"temperature is too high"}}"#);
    assert_answer_reads(refused, "acme answered 400: temperature is too high", "").await;
    assert_answer_reads(Reaction::status(418, "{}"), "acme answered 418: I'm a teapot", "").await;
}

#[tokio::test]
async fn broken_answers_say_how_they_broke() {
    let answer = || Reaction::answer(Reply::text("Hello there."));
    for (reaction, words, hint) in [
        (
            Reaction::silent(),
            "acme: {place} did not begin to answer within 0.3 s",
            "the server may have too much to do; try again later, or allow it more time",
        ),
        (
            answer().hang(Point::InText),
            "acme: {place} said nothing more for 0.3 s",
            "the server may have too much to do; try again later, or allow it more time",
        ),
        (
            Reaction::hang_up(),
            "acme: the connection to {place} was cut: connection closed before message completed",
            OVER_THERE,
        ),
        (
            Reaction::raw("HTTP/1.1 200 OK\r\n\r\ndata: {}\n\n"),
            "acme: {place} ended the answer before it was whole",
            OVER_THERE,
        ),
        (
            Reaction::raw("SSH-2.0-Server\r\n"),
            "acme: {place} does not answer in HTTP: invalid HTTP version parsed",
            "is {url} the right address? It may have to begin with https",
        ),
        (
            Reaction::status(200, "<html><body>Please log in</body></html>"),
            "acme answered 200: the answer is not a stream of events: Please log in",
            "is {url} the right address?",
        ),
        (
            Reaction::status(302, "").header("location", "/v2"),
            "acme answered 302: a redirect to http://{place}/v2, which is not followed",
            "a key is not sent to another address; set the base URL to the right one",
        ),
        (Reaction::status(302, ""), "acme answered 302: a redirect that does not say where to", ""),
        (Reaction::html_error_page(504), "acme answered 504: Gateway Timeout", OVER_THERE),
        (Reaction::status(500, ""), "acme answered 500: Internal Server Error", OVER_THERE),
    ] {
        assert_answer_reads(reaction, words, hint).await;
    }
    let server = ModelServer::start(answer().malformed(Point::InText)).await.unwrap();
    let error = error_at(&server, once(), str::to_owned).await;
    let start = "acme: an event cannot be read: {\"choices\":[{\"delta\":{\"content\":\"Hello";
    assert!(error.to_string().starts_with(start), "{error}");
}

#[tokio::test]
async fn connections_that_fail_say_what_to_check() {
    let certificate = "check the certificate of the server; a certificate authority of your own \
                       has to be given as an extra root certificate";
    let mut plain = ModelServer::start(Reply::text("x")).await.unwrap();
    let authority = Authority::new().unwrap();
    let secure = Options::default().tls(&authority).start(Reply::text("x")).await.unwrap();

    let error = error_at(&secure, quick(), str::to_owned).await;
    let words = "acme: no secure connection to {place}: invalid peer certificate: UnknownIssuer";
    assert_reads(&secure, &error, words, certificate);

    let error = error_at(&plain, quick().extra_root_certificates("?"), |url| {
        url.replace("http:", "https:")
    });
    let words = "acme: the extra root certificates are not certificates in PEM";
    assert_reads(&plain, &error.await, words, "");

    plain.refuse_connections().await;
    let error = error_at(&plain, once(), str::to_owned).await;
    let words = "acme: cannot reach {place}: Connection refused (os error 111)";
    let words = if cfg!(target_os = "linux") { words.to_owned() } else { error.to_string() };
    assert_reads(&plain, &error, &words, "is a server running at {place}?");
}

#[tokio::test]
async fn an_address_with_tls_where_there_is_none_is_not_blamed_on_the_certificate() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        // Until the client has left, so that it can read what was said.
        while stream.read(&mut [0; 4096]).await.is_ok_and(|count| count > 0) {}
    };
    let model = Case::CHAT.model_at(&format!("https://{place}"), quick().build());
    let request = [user("Hello")];
    let request = Request::new(&request);
    let (heard, ()) = tokio::join!(Heard::of(&model, &request), server);
    let error = heard.error();
    assert_eq!((error.kind, error.repeatable), (Kind::Unreachable, false));
    let start = format!("acme: no secure connection to {place}: received corrupt message");
    assert!(error.to_string().starts_with(&start), "{error}");
    assert_eq!(error.hint.as_deref(), Some("does the server speak https?"));
}

/// An `http` where it should be `https` used to be taken for a cut, and tried five times.
#[tokio::test]
async fn an_address_without_tls_where_there_is_tls_is_not_tried_twice() {
    let authority = Authority::new().unwrap();
    let server = Options::default().tls(&authority).start(Reply::text("x")).await.unwrap();
    let error = error_at(&server, quick(), |url| url.replace("https:", "http:")).await;
    assert_eq!((error.kind, error.repeatable), (Kind::Malformed, false));
    assert!(error.hint.unwrap().ends_with("It may have to begin with https"));
    assert_eq!(server.counts().accepted, 1);
}

#[tokio::test]
async fn giving_up_is_added_to_the_providers_sentence() {
    let server = ModelServer::start(Reaction::failure(Failure::Overloaded)).await.unwrap();
    let error = error_at(&server, quick(), str::to_owned).await;
    let words = "acme answered 503: The engine is currently overloaded; gave up after 5 attempts";
    assert_reads(&server, &error, words, OVER_THERE);
}

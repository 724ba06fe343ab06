//! Servers over HTTP: answers, streams, sessions, refusals, redirects, and ends in the middle.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use convoke_core::ErrorKind;
use convoke_mcp::client::{
    Authorization, Refusal, Remote, ServerConfig, ServerState, Servers, Surroundings,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpSocket};

use crate::scripted::{call, reaches, tool};

/// A request as it came.
struct Asked {
    method: String,
    headers: Vec<(String, String)>,
    body: Value,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// What is answered: a status, headers, and a body. A body with a cut is announced longer than it is.
struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
    cut: bool,
}

impl Answer {
    fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new(), cut: false }
    }

    fn json(asked: &Asked, result: &Value) -> Self {
        let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result });
        Self::status(200).with("content-type", "application/json").body(body.to_string())
    }

    fn text(asked: &Asked, text: &str) -> Self {
        Self::json(asked, &json!({ "content": [{ "type": "text", "text": text }] }))
    }

    fn events(body: String) -> Self {
        Self::status(200).with("content-type", "text/event-stream").body(body)
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn body(mut self, body: String) -> Self {
        self.body = body;
        self
    }
}

/// A server on a free port of this machine.
struct Web {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    accepting: tokio::task::JoinSet<()>,
    address: SocketAddr,
}

impl Web {
    async fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("http://{address}/mcp");
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (answer, log) = (Arc::new(answer), Arc::clone(&asked));
        let mut accepting = tokio::task::JoinSet::new();
        accepting.spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                connections.spawn(async move {
                    let mut stream = BufReader::new(stream);
                    while let Some(asked) = read(&mut stream).await {
                        let answer = answer(&asked);
                        log.lock().unwrap().push(asked);
                        let ends = answer.cut;
                        if stream.write_all(&written(&answer)).await.is_err() || ends {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, asked, accepting, address }
    }

    /// Goes away. The port stays taken, so that nobody else answers there.
    async fn leave(mut self) -> TcpSocket {
        self.accepting.shutdown().await;
        let port = TcpSocket::new_v4().unwrap();
        port.set_reuseaddr(true).unwrap();
        // If it is taken already, it is by somebody who connects from there, and who does not answer either.
        port.bind(self.address).ok();
        port
    }

    fn servers(&self) -> Servers {
        self.with(Surroundings::new("/"))
    }

    fn with(&self, surroundings: Surroundings) -> Servers {
        let config = ServerConfig::http("s", &self.url).header("x-key", "k1");
        Servers::new(vec![config], surroundings)
    }

    fn count(&self, rpc: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| asked.rpc() == rpc).count()
    }
}

async fn read(stream: &mut BufReader<tokio::net::TcpStream>) -> Option<Asked> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let method = lines.first()?.split(' ').next()?.to_owned();
    let header = |line: &String| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_owned(), value.trim().to_owned()))
    };
    let headers: Vec<_> = lines.iter().skip(1).filter_map(header).collect();
    let mut asked = Asked { method, headers, body: Value::Null };
    let length = asked.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    asked.body = serde_json::from_slice(&body).unwrap_or_default();
    Some(asked)
}

fn written(answer: &Answer) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {} X\r\n", answer.status);
    for (name, value) in &answer.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let length = answer.body.len() + if answer.cut { 100 } else { 0 };
    text.push_str(&format!("content-length: {length}\r\n\r\n"));
    text.push_str(&answer.body);
    text.into_bytes()
}

/// What every server of an old revision answers.
fn basics(asked: &Asked, session: &str) -> Answer {
    match asked.rpc() {
        "initialize" => Answer::json(
            asked,
            &json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "web", "version": "1" } }),
        )
        .with("mcp-session-id", session),
        "tools/list" => Answer::json(asked, &json!({ "tools": [tool("t")] })),
        "server/discover" => Answer::status(400).body("Bad Request: no session".to_owned()),
        _ if asked.method == "GET" => Answer::status(405),
        _ => Answer::status(202),
    }
}

#[tokio::test]
async fn an_old_server_is_found_out_and_called() {
    let web = Web::start(|asked| match asked.rpc() {
        "tools/call" => Answer::text(asked, "over the wire"),
        _ => basics(asked, "one"),
    })
    .await;
    let servers = web.servers();
    assert_eq!(call(&servers, "t").await.text(), "over the wire");
    assert_eq!(servers.status()[0].revision.as_deref(), Some("2025-11-25"));
    let asked = web.asked.lock().unwrap();
    assert!(asked.iter().all(|one| one.header("x-key") == Some("k1")));
    let called = asked.iter().find(|one| one.rpc() == "tools/call").unwrap();
    assert_eq!(called.header("mcp-session-id"), Some("one"));
    assert_eq!(called.header("mcp-protocol-version"), Some("2025-11-25"));
}

/// A server of revision 2026-07-28.
fn modern(asked: &Asked) -> Answer {
    let tools = json!([tool("t")]);
    match asked.rpc() {
        "server/discover" => Answer::json(
            asked,
            &json!({ "resultType": "complete",
            "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
            "ttlMs": 0, "cacheScope": "private" }),
        ),
        "tools/list" => Answer::json(
            asked,
            &json!({ "resultType": "complete", "tools": tools,
            "ttlMs": 0, "cacheScope": "private" }),
        ),
        "tools/call" => Answer::json(
            asked,
            &json!({ "resultType": "complete",
            "content": [{ "type": "text", "text": "no session" }] }),
        ),
        _ => Answer::status(404),
    }
}

#[tokio::test]
async fn a_new_server_is_asked_without_a_session_and_with_its_headers() {
    let web = Web::start(modern).await;
    let servers = web.servers();
    assert_eq!(call(&servers, "t").await.text(), "no session");
    assert_eq!(servers.status()[0].revision.as_deref(), Some("2026-07-28"));
    let asked = web.asked.lock().unwrap();
    let called = asked.iter().find(|one| one.rpc() == "tools/call").unwrap();
    assert_eq!(called.header("mcp-method"), Some("tools/call"));
    assert_eq!(called.header("mcp-name"), Some("t"));
    assert_eq!(called.header("mcp-session-id"), None);
    assert_eq!(
        called.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
}

#[tokio::test]
async fn a_lost_session_is_replaced_once_and_nobody_notices() {
    let sessions = AtomicUsize::new(0);
    let web = Web::start(move |asked| {
        let (session, now) = (asked.header("mcp-session-id"), sessions.load(Ordering::Acquire));
        match asked.rpc() {
            "initialize" => {
                let next = sessions.fetch_add(1, Ordering::AcqRel) + 1;
                basics(asked, &format!("session-{next}"))
            }
            // The first session is forgotten as soon as the tools are listed.
            "tools/call" if session == Some("session-1") => Answer::status(404),
            "tools/call" => Answer::text(asked, &format!("{} of {now}", session.unwrap())),
            _ => basics(asked, "unused"),
        }
    })
    .await;
    let servers = web.servers();
    assert_eq!(call(&servers, "t").await.text(), "session-2 of 2");
    assert_eq!(web.count("initialize"), 2);
    assert_eq!(web.count("tools/call"), 2);
    assert_eq!(servers.state("s"), Some(ServerState::Ready));
}

#[tokio::test]
async fn a_stream_carries_progress_and_the_answer() {
    let web = Web::start(|asked| match asked.rpc() {
        "tools/call" => {
            let token = asked.body["params"]["_meta"]["progressToken"].clone();
            let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                "params": { "progressToken": token, "progress": 1, "message": "half" } });
            let content = json!([{ "type": "text", "text": "streamed" }]);
            let answer = json!({ "jsonrpc": "2.0", "id": asked.body["id"],
                "result": { "content": content } });
            Answer::events(format!("data: {progress}\n\ndata: {answer}\n\n"))
        }
        _ => basics(asked, "one"),
    })
    .await;
    assert_eq!(call(&web.servers(), "t").await.text(), "streamed");
}

#[tokio::test]
async fn an_answer_that_ends_in_the_middle_or_is_far_too_long_fails_its_call_alone() {
    let calls = AtomicUsize::new(0);
    let web = Web::start(move |asked| match asked.rpc() {
        "tools/call" => match calls.fetch_add(1, Ordering::AcqRel) {
            0 => Answer { cut: true, ..Answer::events(": still here\n\n".to_owned()) },
            1 => Answer::text(asked, &"x".repeat(20_000_000)),
            2 => {
                let content = json!([{ "type": "text", "text": "x".repeat(20_000_000) }]);
                let answer = json!({ "jsonrpc": "2.0", "id": asked.body["id"],
                    "result": { "content": content } });
                Answer::events(format!("data: {answer}\n\n"))
            }
            _ => Answer::text(asked, "still fine"),
        },
        _ => basics(asked, "one"),
    })
    .await;
    let servers = web.servers();
    for says in ["before the answer had come", "16777216 bytes", "16777216 bytes"] {
        let result = call(&servers, "t").await;
        let error = result.error().unwrap();
        assert_eq!(error.kind, ErrorKind::Failed);
        assert!(error.message.contains(says), "{says}: {error}");
    }
    assert_eq!(call(&servers, "t").await.text(), "still fine");
    assert_eq!(web.count("initialize"), 1);
}

/// Has one token after another.
#[derive(Debug, Default)]
struct Tokens {
    number: AtomicUsize,
    challenges: Mutex<Vec<Option<String>>>,
}

#[async_trait]
impl Authorization for Tokens {
    async fn headers(&self, _: &Remote) -> Vec<(String, String)> {
        let number = self.number.load(Ordering::Acquire);
        vec![("authorization".to_owned(), format!("Bearer t{number}"))]
    }

    async fn refused(&self, server: &Remote, refusal: Refusal) -> Result<(), String> {
        assert_eq!(server.name, "s");
        self.challenges.lock().unwrap().push(refusal.challenge);
        if self.number.fetch_add(1, Ordering::AcqRel) < 2 {
            Ok(())
        } else {
            Err("run `sign-in s` first".to_owned())
        }
    }
}

#[tokio::test]
async fn a_server_that_wants_to_know_who_asks_is_told_and_a_person_is_told_what_to_do() {
    let wanted = Arc::new(AtomicUsize::new(1));
    let now = Arc::clone(&wanted);
    let web = Web::start(move |asked| {
        let token = format!("Bearer t{}", now.load(Ordering::Acquire));
        if asked.header("authorization") != Some(token.as_str()) {
            return Answer::status(401).with("www-authenticate", "Bearer realm=\"x\"");
        }
        match asked.rpc() {
            "tools/call" => Answer::text(asked, "welcome"),
            _ => basics(asked, "one"),
        }
    })
    .await;
    let refused = web.servers().start("s").await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Permission);
    assert!(refused.message.contains("HTTP 401"), "{refused}");

    let tokens = Arc::new(Tokens::default());
    let servers = web.with(Surroundings::new("/").authorization(tokens.clone()));
    assert_eq!(call(&servers, "t").await.text(), "welcome");
    assert_eq!(tokens.challenges.lock().unwrap()[0].as_deref(), Some("Bearer realm=\"x\""));
    // The token runs out in the middle: the call is made once more with the next.
    wanted.store(2, Ordering::Release);
    assert_eq!(call(&servers, "t").await.text(), "welcome");
    wanted.store(9, Ordering::Release);
    let result = call(&servers, "t").await;
    let error = result.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Permission);
    assert!(error.message.contains("run `sign-in s` first"), "{error}");
}

#[tokio::test]
async fn a_redirect_to_somewhere_else_is_not_followed() {
    let thief = Web::start(|asked| basics(asked, "stolen")).await;
    let elsewhere = thief.url.clone();
    let web = Web::start(move |_| Answer::status(307).with("location", &elsewhere)).await;
    let error = web.servers().start("s").await.unwrap_err();
    assert!(
        error.message.contains("HTTP 307") && error.message.contains("somewhere else"),
        "{error}"
    );
    assert!(thief.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_server_that_has_left_is_said_to_be_unreachable() {
    let web = Web::start(modern).await;
    let servers = web.servers();
    assert!(call(&servers, "t").await.success());
    let _port = web.leave().await;
    // The first calls may still find an old connection, and lose it.
    let mut said = String::new();
    while !said.contains("cannot be reached") {
        let result = call(&servers, "t").await;
        let error = result.error().unwrap();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        said.clone_from(&error.message);
    }
    reaches(&servers, |state| matches!(state, ServerState::Failed { .. })).await;
    let error = servers.start("s").await.unwrap_err();
    assert!(error.message.contains("could not be started: it cannot be reached"), "{error}");
}

#[tokio::test]
async fn addresses_and_headers_that_cannot_be_used_are_named() {
    let odd = ServerConfig::http("s", "ftp://somewhere");
    let error = Servers::new(vec![odd], Surroundings::new("/")).start("s").await.unwrap_err();
    assert!(error.message.contains("not an http or https URL"), "{error}");
    let odd = ServerConfig::http("s", "http://127.0.0.1:1/").header("bad name", "x");
    let error = Servers::new(vec![odd], Surroundings::new("/")).start("s").await.unwrap_err();
    assert!(error.message.contains("`bad name`"), "{error}");
}

#[tokio::test]
async fn a_server_that_has_grown_since_it_was_last_seen_is_asked_anew() {
    let grown = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&grown);
    let web = Web::start(move |asked| match (now.load(Ordering::Acquire), asked.rpc()) {
        (0, "tools/call") => Answer::text(asked, "old"),
        (0, _) => basics(asked, "one"),
        (_, "initialize") => Answer::status(400).body("no handshake here".to_owned()),
        _ => modern(asked),
    })
    .await;
    let servers = web.servers();
    assert_eq!(call(&servers, "t").await.text(), "old");
    servers.stop().await;
    grown.store(1, Ordering::Release);
    servers.start("s").await.unwrap();
    assert_eq!(call(&servers, "t").await.text(), "no session");
    assert_eq!(servers.status()[0].revision.as_deref(), Some("2026-07-28"));
}

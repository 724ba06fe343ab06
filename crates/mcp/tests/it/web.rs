//! A server on a port of this machine that answers as a test says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use convoke_mcp::client::{ServerConfig, Servers, Surroundings};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

use crate::scripted::{tasks, tool};

/// A request as it came.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// What is answered: a status, headers, and a body. A body with a cut is announced longer than it is. What
/// is held is answered when that becomes true.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
    pub(crate) cut: bool,
    pub(crate) held: Option<watch::Receiver<bool>>,
}

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new(), cut: false, held: None }
    }

    pub(crate) fn json(asked: &Asked, result: &Value) -> Self {
        let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result });
        Self::status(200).with("content-type", "application/json").body(body.to_string())
    }

    pub(crate) fn text(asked: &Asked, text: &str) -> Self {
        Self::json(asked, &json!({ "content": [{ "type": "text", "text": text }] }))
    }

    pub(crate) fn events(body: String) -> Self {
        Self::status(200).with("content-type", "text/event-stream").body(body)
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: String) -> Self {
        self.body = body;
        self
    }
}

/// A server on a free port of this machine.
pub(crate) struct Web {
    pub(crate) url: String,
    pub(crate) asked: Arc<Mutex<Vec<Asked>>>,
    accepting: tokio::task::JoinSet<()>,
    address: SocketAddr,
}

impl Web {
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
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
                        let mut answer = answer(&asked);
                        log.lock().unwrap().push(asked);
                        if let Some(held) = &mut answer.held {
                            held.wait_for(|free| *free).await.ok();
                        }
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
    pub(crate) async fn leave(mut self) -> TcpSocket {
        self.accepting.shutdown().await;
        let port = TcpSocket::new_v4().unwrap();
        port.set_reuseaddr(true).unwrap();
        // If it is taken already, it is by somebody who connects from there, and who does not answer either.
        port.bind(self.address).ok();
        port
    }

    pub(crate) fn servers(&self) -> Servers {
        self.with(Surroundings::new("/"))
    }

    pub(crate) fn with(&self, surroundings: Surroundings) -> Servers {
        let config = ServerConfig::http("s", &self.url).header("x-key", "k1");
        Servers::new(vec![config], surroundings)
    }

    pub(crate) fn count(&self, rpc: &str) -> usize {
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
pub(crate) fn basics(asked: &Asked, session: &str) -> Answer {
    match asked.rpc() {
        "initialize" => Answer::json(
            asked,
            &json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {}, "tasks": tasks() },
                "serverInfo": { "name": "web", "version": "1" } }),
        )
        .with("mcp-session-id", session),
        "tools/list" => Answer::json(asked, &json!({ "tools": [tool("t")] })),
        "ping" => Answer::json(asked, &json!({})),
        "server/discover" => Answer::status(400).body("Bad Request: no session".to_owned()),
        _ if asked.method == "GET" => Answer::status(405),
        _ => Answer::status(202),
    }
}

/// A server of revision 2026-07-28.
pub(crate) fn modern(asked: &Asked) -> Answer {
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

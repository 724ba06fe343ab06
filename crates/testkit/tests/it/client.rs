//! An HTTP client that hides nothing: a body that ends too early is an answer like any other.

use std::net::SocketAddr;

use convoke_testkit::{ModelServer, Wire};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

pub(crate) struct Client<S> {
    stream: BufReader<S>,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// How the body came.
    pub(crate) chunks: usize,
    /// Whether the body ended as its head or its last chunk said.
    pub(crate) is_whole: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Reads the body as events: name and data.
    pub(crate) fn events(&self) -> Vec<(Option<String>, String)> {
        read_events(&self.body)
    }
}

pub(crate) fn read_events(text: &str) -> Vec<(Option<String>, String)> {
    let events = text.split("\n\n").filter(|event| !event.is_empty()).map(|event| {
        let field =
            |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        (field("event: "), field("data: ").unwrap_or_default())
    });
    events.collect()
}

impl Client<TcpStream> {
    pub(crate) async fn connect(server: &ModelServer) -> Self {
        Self::at(server.address()).await
    }

    pub(crate) async fn at(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    pub(crate) async fn get(&mut self, target: &str, headers: &str) -> Answer {
        self.write(format!("GET {target} HTTP/1.1\r\nhost: x\r\n{headers}\r\n").as_bytes()).await;
        self.read_answer().await.unwrap()
    }

    /// Sends a request to a model.
    pub(crate) async fn send(&mut self, wire: Wire, body: &Value) {
        let (target, body) = (wire.target("test-model"), body.to_string());
        let head =
            format!("POST {target} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        self.write(format!("{head}{body}").as_bytes()).await;
    }

    /// Asks a model something and reads the answer, if there is one.
    pub(crate) async fn ask(&mut self, wire: Wire) -> Option<Answer> {
        self.send(wire, &question(wire)).await;
        self.read_answer().await
    }

    /// Reads what comes until the connection ends.
    pub(crate) async fn read_rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        drop(self.stream.read_to_end(&mut bytes).await);
        bytes
    }

    /// Reads until these bytes have come.
    pub(crate) async fn read_until(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(end.as_bytes()) {
            bytes.push(self.stream.read_u8().await.unwrap());
        }
        String::from_utf8(bytes).unwrap()
    }

    async fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.stream.read_line(&mut line).await.unwrap_or(0);
        (length > 0).then(|| line.trim_end().to_owned())
    }

    pub(crate) async fn read_answer(&mut self) -> Option<Answer> {
        let status = self.read_line().await?.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let line = self.read_line().await?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut answer =
            Answer { status, headers, body: String::new(), chunks: 0, is_whole: false };
        let mut body = Vec::new();
        if let Some(length) = answer.header("content-length") {
            body = vec![0; length.parse().unwrap()];
            answer.is_whole = self.stream.read_exact(&mut body).await.is_ok();
        } else {
            (answer.chunks, answer.is_whole) = self.read_chunks(&mut body).await;
        }
        answer.body = String::from_utf8(body).unwrap();
        Some(answer)
    }

    async fn read_chunks(&mut self, body: &mut Vec<u8>) -> (usize, bool) {
        let mut chunks = 0;
        while let Some(line) = self.read_line().await {
            let size = usize::from_str_radix(&line, 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).await.unwrap();
            if size == 0 {
                return (chunks, true);
            }
            chunk.truncate(size);
            body.extend(chunk);
            chunks += 1;
        }
        (chunks, false)
    }
}

/// Returns the smallest request that a wire takes.
pub(crate) fn question(wire: Wire) -> Value {
    let text = "Hello";
    match wire {
        Wire::OpenAiChat => json!({
            "model": "test-model",
            "messages": [{ "role": "user", "content": text }],
            "stream": true,
            "stream_options": { "include_usage": true },
        }),
        Wire::OpenAiResponses => json!({ "model": "test-model", "input": text, "stream": true }),
        Wire::Anthropic => json!({
            "model": "test-model",
            "max_tokens": 100,
            "messages": [{ "role": "user", "content": text }],
            "stream": true,
        }),
        Wire::Gemini => json!({ "contents": [{ "role": "user", "parts": [{ "text": text }] }] }),
    }
}

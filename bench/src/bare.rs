//! The peer of a run: a client as a good engineer writes it in an afternoon.
//!
//! It streams, reads server-sent events, keeps the conversation, runs the calls of a turn side by side and
//! goes on until the model answers with text. It has one wire, one tool and nothing that can be left
//! out: no schema checks, no permission, no limits, no events, no repeats.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde::{Deserialize, Serialize};
use serde_json::Value;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What is said to the model in every request.
#[derive(Deserialize, Serialize)]
pub(crate) struct Setup {
    pub(crate) system: String,
    pub(crate) tools: Value,
}

/// A client for one server; clones share connections.
#[derive(Clone)]
pub(crate) struct Bare {
    client: reqwest::Client,
    url: Arc<str>,
    authorization: Arc<str>,
    setup: Arc<Setup>,
    directory: Arc<Path>,
}

impl Bare {
    pub(crate) fn new(base_url: &str, key: &str, setup: Setup, directory: PathBuf) -> Result<Self> {
        // Fails if there is one already, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        Ok(Self {
            client: reqwest::Client::builder().build()?,
            url: format!("{base_url}/chat/completions").into(),
            authorization: format!("Bearer {key}").into(),
            setup: Arc::new(setup),
            directory: directory.into(),
        })
    }

    /// Works on a task until the model answers with text.
    pub(crate) async fn run(&self, prompt: &str) -> Result<String> {
        let mut messages =
            vec![Message::says("system", &self.setup.system), Message::says("user", prompt)];
        loop {
            let answer = self.ask(&messages).await?;
            if answer.tool_calls.is_empty() {
                return Ok(answer.content.unwrap_or_default());
            }
            let results = join_all(answer.tool_calls.iter().map(|call| self.call(call))).await;
            messages.push(answer);
            messages.extend(results);
        }
    }

    async fn ask(&self, messages: &[Message]) -> Result<Message> {
        let body = serde_json::to_vec(&Body {
            model: "m",
            tools: &self.setup.tools,
            messages,
            stream: true,
            stream_options: StreamOptions { include_usage: true },
        })?;
        let mut response = self
            .client
            .post(&*self.url)
            .header(AUTHORIZATION, &*self.authorization)
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .send()
            .await?
            .error_for_status()?;
        let mut answer = Message { role: "assistant", ..Message::default() };
        let mut buffer = Vec::new();
        let mut finished = false;
        while let Some(bytes) = response.chunk().await? {
            buffer.extend_from_slice(&bytes);
            while let Some(end) = buffer.windows(2).position(|pair| pair == b"\n\n") {
                for line in buffer.get(..end).unwrap_or_default().split(|byte| *byte == b'\n') {
                    match line.strip_prefix(b"data: ") {
                        Some(b"[DONE]") => finished = true,
                        Some(data) => answer.add(serde_json::from_slice(data)?),
                        None => {}
                    }
                }
                buffer.drain(..end + 2);
            }
        }
        if finished { Ok(answer) } else { Err("the answer was cut off".into()) }
    }

    async fn call(&self, call: &Call) -> Message {
        let content = match self.read_file(call).await {
            Ok(text) => text,
            Err(error) => format!("Error: {error}"),
        };
        Message {
            role: "tool",
            content: Some(content),
            tool_call_id: Some(call.id.clone()),
            ..Message::default()
        }
    }

    async fn read_file(&self, call: &Call) -> Result<String> {
        if call.function.name != "read_file" {
            return Err(format!("there is no tool `{}`", call.function.name).into());
        }
        let wanted: ReadFile = serde_json::from_str(&call.function.arguments)?;
        Ok(tokio::fs::read_to_string(self.directory.join(wanted.path)).await?)
    }
}

#[derive(Deserialize)]
struct ReadFile {
    path: PathBuf,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    tools: &'a Value,
    messages: &'a [Message],
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Default, Serialize)]
struct Message {
    role: &'static str,
    content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

impl Message {
    fn says(role: &'static str, text: &str) -> Self {
        Self { role, content: Some(text.to_owned()), ..Self::default() }
    }

    /// Takes more of an answer.
    fn add(&mut self, chunk: Chunk) {
        for Choice { delta } in chunk.choices {
            if let Some(text) = delta.content {
                self.content.get_or_insert_default().push_str(&text);
            }
            for piece in delta.tool_calls {
                if self.tool_calls.len() <= piece.index {
                    self.tool_calls.resize_with(piece.index + 1, Call::default);
                }
                let Some(call) = self.tool_calls.get_mut(piece.index) else { continue };
                call.id.push_str(&piece.id);
                call.function.name.push_str(&piece.function.name);
                call.function.arguments.push_str(&piece.function.arguments);
            }
        }
    }
}

#[derive(Serialize)]
struct Call {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function,
}

impl Default for Call {
    fn default() -> Self {
        Self { id: String::new(), kind: "function", function: Function::default() }
    }
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Delta,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Piece>,
}

#[derive(Deserialize)]
struct Piece {
    index: usize,
    #[serde(default)]
    id: String,
    #[serde(default)]
    function: Function,
}

//! A server that does what a test says, in this process, behind the interface that starts programs.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use convoke_core::{ToolCall, ToolError, ToolResult};
use convoke_mcp::client::{McpTool, ServerConfig, ServerState, Servers, Surroundings};
use convoke_tool::testing::{self, CollectedEvents};
use convoke_tool::{Process, Program, Spawner, Streams, Tool, ToolContext, ToolExecutor};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex};
use tokio::sync::{mpsc, watch};

/// What a server does with a message.
type Behaviour = dyn Fn(&Value, &Out) + Send + Sync;

/// Starts servers that behave in one way.
#[derive(Clone)]
pub(crate) struct Scripted {
    behaviour: Arc<Behaviour>,
    /// How often one was started.
    pub(crate) starts: Arc<AtomicUsize>,
    /// What the client sent, in order.
    pub(crate) seen: Arc<Seen>,
}

/// What a client sent.
#[derive(Default)]
pub(crate) struct Seen {
    messages: Mutex<Vec<Value>>,
    count: watch::Sender<usize>,
}

/// How long a message is waited for that has to come.
const PATIENCE: Duration = Duration::from_mins(2);

impl Seen {
    pub(crate) fn methods(&self) -> Vec<String> {
        let messages = self.messages.lock().unwrap();
        let method = |message: &Value| message["method"].as_str().unwrap_or("answer").to_owned();
        messages.iter().map(method).collect()
    }

    /// Waits for the first message that is wanted.
    pub(crate) async fn wait_for(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let found = tokio::time::timeout(PATIENCE, self.find(wanted)).await;
        assert!(found.is_ok(), "the message did not come; these did: {:?}", self.methods());
        found.unwrap()
    }

    async fn find(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut count = self.count.subscribe();
        loop {
            count.borrow_and_update();
            let found = self.messages.lock().unwrap().iter().find(|one| wanted(one)).cloned();
            if let Some(found) = found {
                return found;
            }
            count.changed().await.unwrap();
        }
    }

    pub(crate) async fn method(&self, method: &str) -> Value {
        self.wait_for(|message| message["method"] == method).await
    }

    fn push(&self, message: Value) {
        self.messages.lock().unwrap().push(message);
        self.count.send_modify(|count| *count += 1);
    }
}

/// The server's way to the client.
#[derive(Clone)]
pub(crate) struct Out {
    lines: mpsc::UnboundedSender<String>,
    complaints: mpsc::UnboundedSender<String>,
    exit: watch::Sender<Option<i32>>,
}

impl Out {
    pub(crate) fn send(&self, message: &Value) {
        self.raw(&message.to_string());
    }

    pub(crate) fn raw(&self, line: &str) {
        self.lines.send(format!("{line}\n")).ok();
    }

    /// Writes to the standard error.
    pub(crate) fn complain(&self, line: &str) {
        self.complaints.send(format!("{line}\n")).ok();
    }

    pub(crate) fn answer(&self, asked: &Value, result: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
    }

    pub(crate) fn refuse(&self, asked: &Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }));
    }

    pub(crate) fn text(&self, asked: &Value, text: &str) {
        self.answer(asked, &json!({ "content": [{ "type": "text", "text": text }] }));
    }

    /// Ends the server.
    pub(crate) fn exit(&self, code: i32) {
        self.exit.send_replace(Some(code));
    }
}

impl Scripted {
    pub(crate) fn new(behaviour: impl Fn(&Value, &Out) + Send + Sync + 'static) -> Self {
        Self { behaviour: Arc::new(behaviour), starts: Arc::default(), seen: Arc::default() }
    }

    /// A server of an old revision with these tools, whose calls are answered by `call`.
    pub(crate) fn with_tools(
        tools: Value,
        call: impl Fn(&Value, &Out) + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |message, out| match message["method"].as_str() {
            Some("tools/list") => out.answer(message, &json!({ "tools": tools })),
            Some("tools/call") => call(message, out),
            _ => basics(message, out),
        })
    }

    pub(crate) fn starts(&self) -> usize {
        self.starts.load(Ordering::Acquire)
    }

    /// Makes servers of which `s` is this one.
    pub(crate) fn servers(&self) -> Servers {
        self.configured(config())
    }

    pub(crate) fn configured(&self, config: ServerConfig) -> Servers {
        Servers::new(vec![config], self.surroundings())
    }

    pub(crate) fn surroundings(&self) -> Surroundings {
        Surroundings::new("/").spawner(Arc::new(self.clone()))
    }
}

/// The configuration of a scripted server.
pub(crate) fn config() -> ServerConfig {
    ServerConfig::program("s", "scripted", Vec::<String>::new())
}

/// What every server of an old revision answers.
pub(crate) fn basics(message: &Value, out: &Out) {
    match message["method"].as_str() {
        Some("initialize") => out.answer(
            message,
            &json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": { "listChanged": true }, "tasks": tasks() },
                "serverInfo": { "name": "scripted", "version": "1" },
            }),
        ),
        Some("ping") => out.answer(message, &json!({})),
        _ if message.get("id").is_some() && message.get("method").is_some() => {
            out.refuse(message, -32601, "Method not found");
        }
        _ => {}
    }
}

/// What a server says whose tools may be called as tasks.
pub(crate) fn tasks() -> Value {
    json!({ "cancel": {}, "requests": { "tools": { "call": {} } } })
}

/// A tool without parameters.
pub(crate) fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "Does something.", "inputSchema": { "type": "object" } })
}

/// Calls the tool `name` of the server `s` through the whole pipeline.
pub(crate) async fn call(servers: &Servers, name: &str) -> ToolResult {
    call_with(servers, name, json!({}), ToolContext::builder("task").build()).await
}

pub(crate) async fn call_with(
    servers: &Servers,
    name: &str,
    arguments: Value,
    context: ToolContext,
) -> ToolResult {
    if servers.tools().is_empty() {
        servers.start("s").await.unwrap();
    }
    call_tool(&the_tool(servers, name), arguments, context).await
}

pub(crate) fn the_tool(servers: &Servers, name: &str) -> McpTool {
    servers.tools().into_iter().find(|tool| tool.name() == name).expect("the tool is listed")
}

/// Calls a tool through the whole pipeline.
pub(crate) async fn call_tool(
    tool: &McpTool,
    arguments: Value,
    context: ToolContext,
) -> ToolResult {
    let (executor, _events) = pipeline(tool, context);
    executor.execute(ToolCall::new("c1", tool.spec().name.clone(), arguments)).await
}

pub(crate) fn pipeline(tool: &McpTool, context: ToolContext) -> (ToolExecutor, CollectedEvents) {
    testing::executor(tool.clone(), context).unwrap()
}

/// Waits until the server `s` is in a state that is wanted.
pub(crate) async fn reaches(
    servers: &Servers,
    wanted: impl Fn(&ServerState) -> bool,
) -> ServerState {
    let mut changes = servers.changes();
    loop {
        let state = servers.state("s").unwrap();
        if wanted(&state) {
            return state;
        }
        changes.next().await.expect("the servers are there");
    }
}

#[async_trait]
impl Spawner for Scripted {
    async fn spawn(&self, _: Program) -> Result<Box<dyn Process>, ToolError> {
        self.starts.fetch_add(1, Ordering::AcqRel);
        let (stdin, requests) = duplex(1 << 20);
        let (stdout, mut answers) = duplex(1 << 20);
        let (mut complaints, stderr) = duplex(1 << 16);
        let (lines, mut queue) = mpsc::unbounded_channel::<String>();
        let (exit, exited) = watch::channel(None);
        let (complain, mut said) = mpsc::unbounded_channel::<String>();
        let out = Out { lines, complaints: complain, exit: exit.clone() };
        let (behaviour, seen) = (Arc::clone(&self.behaviour), Arc::clone(&self.seen));
        let mut over = exited.clone();
        tokio::spawn(async move {
            let mut requests = BufReader::new(requests).lines();
            let reading = async {
                while let Ok(Some(line)) = requests.next_line().await {
                    let message: Value = serde_json::from_str(&line).unwrap();
                    seen.push(message.clone());
                    behaviour(&message, &out);
                }
                // Its input was closed: it ends, as a good server does.
                out.exit(0);
            };
            let writing = async {
                while let Some(line) = queue.recv().await {
                    if answers.write_all(line.as_bytes()).await.is_err() {
                        break;
                    }
                }
            };
            let complaining = async {
                while let Some(line) = said.recv().await {
                    if complaints.write_all(line.as_bytes()).await.is_err() {
                        break;
                    }
                }
            };
            tokio::select! {
                _ = async { tokio::join!(reading, writing, complaining) } => {}
                _ = over.wait_for(Option::is_some) => {}
            }
            let code = *over.borrow();
            if code.unwrap_or_default() != 0 {
                complaints.write_all(b"it hurts\n").await.ok();
            }
        });
        let streams =
            Streams { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr) };
        Ok(Box::new(Puppet { streams: Some(streams), exit, exited }))
    }
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Scripted")
    }
}

#[derive(Debug)]
struct Puppet {
    streams: Option<Streams>,
    exit: watch::Sender<Option<i32>>,
    exited: watch::Receiver<Option<i32>>,
}

#[async_trait]
impl Process for Puppet {
    fn take_streams(&mut self) -> Option<Streams> {
        self.streams.take()
    }

    async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        let code = self.exited.wait_for(Option::is_some).await;
        let code = code.ok().and_then(|code| *code).unwrap_or_default();
        Ok(ExitStatus::from_raw(code << 8))
    }

    fn terminate(&mut self) {
        self.kill();
    }

    fn kill(&mut self) {
        self.exit.send_if_modified(|code| {
            let running = code.is_none();
            code.get_or_insert(137);
            running
        });
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Asks for something after a while.
pub(crate) fn later(after: Duration, work: impl FnOnce() + Send + 'static) {
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        work();
    });
}

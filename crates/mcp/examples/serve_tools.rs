//! Serves two tools over standard streams: `serve_tools --stdio`, as a client would start it.
//!
//! Started without arguments it serves them to a client in the same process, asks it a few things, and
//! ends.

use std::io::Write;
use std::sync::Arc;

use convoke_core::Kind;
use convoke_mcp::serve::{CallWatch, Service, ToolOffer, serve_stdio};
use convoke_tool::{
    FunctionTool, NullSink, Recorder, RegistryError, ToolContext, ToolExecutor, ToolRegistry,
    ToolView,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    left: i64,
    /// The second number.
    right: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    /// How far to count.
    to: u32,
}

fn service() -> Result<Service, RegistryError> {
    let registry = ToolRegistry::new();
    let add = async |add: Add, _: ToolContext| {
        add.left.checked_add(add.right).ok_or("the sum is too large")
    };
    registry.register(FunctionTool::new("add", "Adds two numbers.", add).kind(Kind::Think))?;
    let count = async |count: Count, context: ToolContext| {
        for number in 1..=count.to {
            let fraction = f64::from(number) / f64::from(count.to);
            context.progress().fraction(fraction, format!("{number}"));
            tokio::task::yield_now().await;
        }
        Ok::<_, String>(format!("counted to {}", count.to))
    };
    registry.register(FunctionTool::new("count", "Counts, and tells.", count).kind(Kind::Think))?;

    let context = ToolContext::builder("example").build();
    let watch = CallWatch::over(Arc::new(NullSink));
    let recorder = Recorder::new("example", watch.clone(), Arc::clone(context.clock()));
    let executors = ToolExecutor::builder(ToolView::of(registry), context).recorder(recorder);
    let offer = Arc::new(ToolOffer::new(executors, watch));
    Ok(Service::new("serve_tools", "0.1.0", offer).instructions("`add` adds, `count` counts."))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stop = CancellationToken::new();
    if std::env::args().any(|argument| argument == "--stdio") {
        serve_stdio(service()?, tokio::io::stdin(), tokio::io::stdout(), stop).await?;
        return Ok(());
    }
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(ours);
    let (served, asked) = tokio::join!(serve_stdio(service()?, reader, writer, stop), ask(theirs));
    served?;
    asked
}

/// Asks a server a few things, in the protocol's own words, and prints what it answers.
async fn ask(stream: tokio::io::DuplexStream) -> Result<(), Box<dyn std::error::Error>> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut answers = BufReader::new(reader).lines();
    let client = json!({ "name": "example", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let add = json!({ "name": "add", "arguments": { "left": 2, "right": 3 } });
    let wrong = json!({ "name": "add", "arguments": { "left": "two" } });
    let calls = [("initialize", hello), ("tools/call", add), ("tools/call", wrong)];
    for (id, (method, params)) in calls.into_iter().enumerate() {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writer.write_all(format!("{request}\n").as_bytes()).await?;
        let answer = answers.next_line().await?.ok_or("the server hung up")?;
        writeln!(std::io::stdout(), "{answer}")?;
    }
    Ok(())
}

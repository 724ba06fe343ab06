//! Clients that make the same call again and again: ours in this process, those of others in theirs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use convoke::mcp::client::{McpTool, Revision, ServerConfig, Servers, Surroundings};
use convoke::tools::{Tool, ToolContext, UnconfinedSpawner};
use futures_util::future::try_join_all;
use serde_json::Value;
use tokio::runtime::Runtime as Threads;

use super::figures::Sample;
use super::peers::{Peers, Target, script};
use crate::Result;
use crate::process::own_cpu;

/// Makes calls when it is told to.
pub(super) trait Driver {
    /// Makes so many calls, so many of them at once.
    fn calls(&mut self, calls: u32, at_once: usize) -> Result<Sample>;
}

/// Our client, on one thread, as `convoke run` has it.
pub(super) struct Ours {
    servers: Servers,
    tool: McpTool,
    arguments: Value,
    context: ToolContext,
    threads: Threads,
}

impl Ours {
    pub(super) fn connect(target: &Target, tool: &str, arguments: &Value) -> Result<Self> {
        Self::connect_in(Revision::Auto, target, tool, arguments)
    }

    /// Speaks this form of the protocol.
    pub(super) fn connect_in(
        revision: Revision,
        target: &Target,
        tool: &str,
        arguments: &Value,
    ) -> Result<Self> {
        let config = match target {
            Target::Url(url) => ServerConfig::http("peer", url),
            Target::Program(line) => {
                let (program, arguments) = line.split_first().ok_or("there is no program")?;
                ServerConfig::program("peer", program, arguments)
            }
        };
        let path = std::env::var("PATH").unwrap_or_default();
        let surroundings = Surroundings::new(std::env::temp_dir())
            .spawner(Arc::new(UnconfinedSpawner))
            .environment(BTreeMap::from([("PATH".to_owned(), path)]));
        let servers = Servers::new(vec![config.revision(revision)], surroundings);
        let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        threads.block_on(servers.start("peer"))?;
        let found = servers.tools().into_iter().find(|one| one.name() == tool);
        let tool = found.ok_or_else(|| format!("{target:?} has no tool `{tool}`"))?;
        let context = ToolContext::builder("bench").build();
        Ok(Self { servers, tool, arguments: arguments.clone(), context, threads })
    }

    async fn call(&self) -> Result<()> {
        let invocation = self.tool.prepare(self.arguments.clone())?;
        let output = invocation.run(self.context.clone()).await?;
        output.failure.map_or(Ok(()), |failure| Err(failure.into()))
    }
}

impl Driver for Ours {
    fn calls(&mut self, calls: u32, at_once: usize) -> Result<Sample> {
        let (left, latencies) = (Cell::new(calls), RefCell::new(Vec::new()));
        let work = async || {
            while let Some(fewer) = left.get().checked_sub(1) {
                left.set(fewer);
                let sent = Instant::now();
                self.call().await?;
                latencies.borrow_mut().push(nanos(sent.elapsed())?);
            }
            Ok::<_, Box<dyn std::error::Error>>(())
        };
        let (cpu, began) = (own_cpu(), Instant::now());
        self.threads.block_on(try_join_all((0..at_once).map(|_| work())))?;
        let wall = nanos(began.elapsed())?;
        let cpu = nanos(own_cpu().saturating_sub(cpu))?;
        Ok(Sample { wall, cpu, latencies: latencies.into_inner() })
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.threads.block_on(self.servers.stop());
    }
}

fn nanos(time: std::time::Duration) -> Result<u64> {
    Ok(u64::try_from(time.as_nanos())?)
}

/// A client of others, driven by a script of ours. It ends when this is dropped.
pub(super) struct Script {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Script {
    /// The official TypeScript client.
    pub(super) fn typescript(
        peers: &Peers,
        target: &Target,
        tool: &str,
        arguments: &Value,
    ) -> Result<Self> {
        let mut command = Command::new("node");
        command.arg(script("client.mjs")).arg(peers.directory());
        Self::start(&mut command, target, tool, arguments)
    }

    /// The official Python client.
    pub(super) fn python(
        python: &[String],
        target: &Target,
        tool: &str,
        arguments: &Value,
    ) -> Result<Self> {
        let mut command = Command::new(python.first().ok_or("there is no Python")?);
        Self::start(command.arg(script("client.py")), target, tool, arguments)
    }

    fn start(command: &mut Command, target: &Target, tool: &str, given: &Value) -> Result<Self> {
        command.arg(tool).arg(given.to_string());
        match target {
            Target::Url(url) => command.arg(url),
            Target::Program(line) => command.args(line),
        };
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = streams.spawn()?;
        let input = process.stdin.take().ok_or("the client has no input")?;
        let output = BufReader::new(process.stdout.take().ok_or("the client has no output")?);
        Ok(Self { process, input, output })
    }
}

impl Driver for Script {
    fn calls(&mut self, calls: u32, at_once: usize) -> Result<Sample> {
        writeln!(self.input, "{calls} {at_once}")?;
        self.input.flush()?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        serde_json::from_str(&line).map_err(|_| {
            let id = self.process.id();
            format!("the client of others (process {id}) broke down; run its script by hand").into()
        })
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // One that cannot be ended ends with its input; so does the server that it started.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

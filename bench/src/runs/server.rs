//! The model server as a process of its own, so that its work is not counted as ours.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::{ARGUMENTS, beside_this};
use crate::Result;

/// What the server does.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) turns: usize,
    pub(super) calls: usize,
    pub(super) latency_ms: u32,
}

/// A running server, which ends when this is dropped.
pub(super) struct Server {
    process: Child,
    url: String,
}

impl Server {
    pub(super) fn start(plan: Plan) -> Result<Self> {
        let mut process = Command::new(beside_this("model-server")?)
            .args(["--turns", &plan.turns.to_string()])
            .args(["--calls", &plan.calls.to_string()])
            .args(["--latency-ms", &plan.latency_ms.to_string()])
            .args(["--arguments", ARGUMENTS])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or("the server has no output")?)
            .read_line(&mut line)?;
        let url =
            line.trim_end().strip_prefix("listening on ").ok_or("the server did not start")?;
        Ok(Self { process, url: url.to_owned() })
    }

    pub(super) fn base_url(&self) -> String {
        format!("{}/v1", self.url)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that cannot be ended ends with its input.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

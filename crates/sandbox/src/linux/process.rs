//! A program behind its guard, as we hold it.

use std::io::{self, PipeWriter, Write};
use std::process::ExitStatus;

use async_trait::async_trait;
use convoke_core::ToolError;
use convoke_tool::{Process, Streams};
use tokio::process::Child;

use super::guard::TERMINATE;
use super::{Prepared, network};
use crate::proxy::Proxy;

/// A program behind its guard. The guard ends it when `control` is closed, which dropping does.
#[derive(Debug)]
pub(crate) struct Guarded {
    child: Child,
    control: Option<PipeWriter>,
    /// Its way to the hosts it may talk to. It ends with the program.
    proxy: Option<Proxy>,
}

impl Guarded {
    /// Starts a program in its cage, with a way to whom it may talk.
    pub(crate) fn start(prepared: Prepared) -> Result<Self, ToolError> {
        let Prepared { program, cage, way_out } = prepared;
        let (theirs, ours) = io::pipe().map_err(|error| {
            ToolError::failed("no pipe could be opened for the program's guard").caused_by(&error)
        })?;
        let child = program.start(|command| {
            // SAFETY: the closure runs in the child between fork and exec, and makes only system calls.
            unsafe { command.pre_exec(move || cage.enter(&theirs)) };
        })?;
        let started = Self { child, control: Some(ours), proxy: None };
        let serve = |(outside, hosts)| Proxy::start(network::receive(&outside)?, hosts);
        let proxy = way_out.map(serve).transpose().map_err(|error| {
            ToolError::failed("no proxy could be started for the program").caused_by(&error)
        })?;
        Ok(Self { proxy, ..started })
    }
}

#[async_trait]
impl Process for Guarded {
    fn take_streams(&mut self) -> Option<Streams> {
        Some(Streams {
            stdin: Box::new(self.child.stdin.take()?),
            stdout: Box::new(self.child.stdout.take()?),
            stderr: Box::new(self.child.stderr.take()?),
        })
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.proxy = None;
        status
    }

    fn terminate(&mut self) {
        if let Some(control) = &mut self.control {
            // A guard that is gone has ended everything already.
            control.write_all(&[TERMINATE]).ok();
        }
    }

    fn kill(&mut self) {
        self.control = None;
        self.proxy = None;
    }
}

//! A program behind its guard, as we hold it.

use std::io::{self, PipeWriter, Write};
use std::process::ExitStatus;

use async_trait::async_trait;
use convoke_core::ToolError;
use convoke_tool::{Process, Program, Streams};
use tokio::process::Child;

use super::Cage;
use super::guard::TERMINATE;

/// A program behind its guard. The guard ends it when `control` is closed, which dropping does.
#[derive(Debug)]
pub(crate) struct Guarded {
    child: Child,
    control: Option<PipeWriter>,
}

impl Guarded {
    /// Starts a program in a cage.
    pub(crate) fn start(program: &Program, cage: Cage) -> Result<Self, ToolError> {
        let (theirs, ours) = io::pipe().map_err(|error| {
            ToolError::failed("no pipe could be opened for the program's guard").caused_by(&error)
        })?;
        let child = program.start(|command| {
            // SAFETY: the closure runs in the child between fork and exec, and makes only system calls.
            unsafe { command.pre_exec(move || cage.enter(&theirs)) };
        })?;
        Ok(Self { child, control: Some(ours) })
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
        self.child.wait().await
    }

    fn terminate(&mut self) {
        if let Some(control) = &mut self.control {
            // A guard that is gone has ended everything already.
            control.write_all(&[TERMINATE]).ok();
        }
    }

    fn kill(&mut self) {
        self.control = None;
    }
}

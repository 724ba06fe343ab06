//! A program behind its guard, as we hold it.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use async_trait::async_trait;
use convoke_core::ToolError;
use convoke_tool::{Process, ReachedLimit, Streams};
use tokio::process::Child;

use super::guard::{Reason, TERMINATE};
use super::{Prepared, network};
use crate::confinement::Limits;
use crate::proxy::Proxy;

/// A program behind its guard. The guard ends it when `control` is closed, which dropping does.
#[derive(Debug)]
pub(crate) struct Guarded {
    child: Child,
    control: Option<UnixStream>,
    /// Its way to the hosts it may talk to. It ends with the program.
    proxy: Option<Proxy>,
    limits: Limits,
    reached: Option<ReachedLimit>,
}

impl Guarded {
    /// Starts a program in its cage, with a way to whom it may talk.
    pub(crate) fn start(prepared: Prepared) -> Result<Self, ToolError> {
        let Prepared { program, cage, way_out, made, limits } = prepared;
        let (theirs, ours) = control().map_err(|error| {
            ToolError::failed("the program's guard cannot be reached").caused_by(&error)
        })?;
        let child = program.start(|command| {
            // SAFETY: the closure runs in the child between fork and exec, and makes only system calls.
            unsafe { command.pre_exec(move || cage.enter(&theirs)) };
        })?;
        if let Some(made) = made {
            made.leave();
        }
        let started = Self { child, control: Some(ours), proxy: None, limits, reached: None };
        let serve = |(outside, hosts)| Proxy::start(network::receive(&outside)?, hosts);
        let proxy = way_out.map(serve).transpose().map_err(|error| {
            ToolError::failed("no proxy could be started for the program").caused_by(&error)
        })?;
        Ok(Self { proxy, ..started })
    }

    /// Returns what the guard has told. It tells before it ends, so nothing has to be waited for.
    fn told(&self) -> Option<Reason> {
        let mut byte = [0];
        let mut control = self.control.as_ref()?;
        let [byte] = control.read_exact(&mut byte).map(|()| byte).ok()?;
        Reason::told(byte)
    }
}

/// Makes what we hold a guard by. Our end never waits.
fn control() -> io::Result<(UnixStream, UnixStream)> {
    let (theirs, ours) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((theirs, ours))
}

/// Returns the limit that was reached, by what the guard told, or else by how the program ended: the kernel
/// has signals of their own for two of them. Shells, and `bwrap`, pass them on as exit codes.
fn reached(reason: Option<Reason>, status: ExitStatus, limits: &Limits) -> Option<ReachedLimit> {
    let passed_on = status.code().map(|code| code - 128);
    match (reason, status.signal().or(passed_on)) {
        (Some(Reason::Processes), _) => limits.processes.map(ReachedLimit::Processes),
        (Some(Reason::Memory), _) => limits.memory.map(ReachedLimit::Memory),
        (Some(Reason::Time), _) => limits.cpu.map(ReachedLimit::Cpu),
        (Some(Reason::Lost), _) => Some(ReachedLimit::GroupLost),
        (None, Some(libc::SIGXCPU)) => limits.cpu_per_process.map(ReachedLimit::CpuPerProcess),
        (None, Some(libc::SIGXFSZ)) => limits.file_size.map(ReachedLimit::FileSize),
        (None, _) => None,
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
        if let (Ok(status), None) = (&status, self.reached) {
            self.reached = reached(self.told(), *status, &self.limits);
        }
        status
    }

    fn reached(&self) -> Option<ReachedLimit> {
        self.reached
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_limit_is_what_the_guard_told_or_what_the_signal_says() {
        let second = Duration::from_secs(1);
        let limits = Limits {
            processes: Some(7),
            cpu_per_process: Some(second),
            file_size: Some(8),
            ..Limits::default()
        };
        let (signal, code) = (ExitStatus::from_raw, |code: i32| ExitStatus::from_raw(code << 8));
        let time = Some(ReachedLimit::CpuPerProcess(second));
        let cases = [
            (Some(Reason::Processes), signal(libc::SIGKILL), Some(ReachedLimit::Processes(7))),
            (Some(Reason::Lost), signal(libc::SIGKILL), Some(ReachedLimit::GroupLost)),
            (None, signal(libc::SIGKILL), None),
            (None, signal(libc::SIGXCPU), time),
            (None, code(128 + libc::SIGXCPU), time),
            (None, code(128 + libc::SIGXFSZ), Some(ReachedLimit::FileSize(8))),
            (None, code(libc::SIGXCPU), None),
            (None, code(0), None),
        ];
        for (reason, status, expected) in cases {
            assert_eq!(reached(reason, status, &limits), expected, "{reason:?} {status:?}");
            let unlimited = reached(reason, status, &Limits::default());
            assert!(matches!(unlimited, None | Some(ReachedLimit::GroupLost)), "{unlimited:?}");
        }
    }
}

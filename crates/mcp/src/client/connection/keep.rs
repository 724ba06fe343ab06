//! Watches over an open connection, ends it when it has to end, and finds out how it did.

use std::process::ExitStatus;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use convoke_tool::Process;
use rmcp::service::{RoleClient, RunningService};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::client::handler::Handler;
use crate::client::lines::Notes;
use crate::client::stderr::Stderr;
use crate::client::task::Farewells;

/// How long what the other side is still to be told may take.
const FAREWELL_GRACE: Duration = Duration::from_secs(1);
/// How long a program may take to end once its input is closed.
const CLOSE_GRACE: Duration = Duration::from_secs(2);
/// How long it may take once it was asked to.
const TERMINATE_GRACE: Duration = Duration::from_secs(1);
/// How long an end may take to be seen from all sides.
const SETTLE: Duration = Duration::from_millis(500);

/// What is needed to watch over a connection.
pub(super) struct Keeping {
    pub(super) running: RunningService<RoleClient, Handler>,
    /// Ends the service, and with it the program's input.
    pub(super) service: CancellationToken,
    pub(super) stop: CancellationToken,
    /// What it is told before it ends.
    pub(super) farewells: Farewells,
    pub(super) end: watch::Sender<Option<Arc<str>>>,
    pub(super) given_up: Arc<OnceLock<String>>,
    pub(super) other: OtherSide,
}

/// Who is spoken to.
pub(super) enum OtherSide {
    /// A program, what it complains about, and what is noticed of its output.
    Program(Box<dyn Process>, Stderr, Arc<Notes>),
    /// Somebody over HTTP. When this is dropped, every exchange that still waits is given up.
    Remote(DropGuard),
}

/// Watches until the connection has ended, and says how.
pub(super) async fn keep(keeping: Keeping) {
    let Keeping { running, service, stop, farewells, end, given_up, other } = keeping;
    let stops = async {
        stop.cancelled().await;
        // Who is of no use any more is told nothing.
        if given_up.get().is_some() {
            return;
        }
        drop(tokio::time::timeout(FAREWELL_GRACE, farewells.said()).await);
    };
    let mut served = Box::pin(running.waiting());
    let how = match other {
        OtherSide::Remote(_exchanges) => {
            tokio::select! {
                _ = &mut served => "it closed the connection".to_owned(),
                () = stops => {
                    service.cancel();
                    // The session is given back if that can be done soon.
                    drop(tokio::time::timeout(CLOSE_GRACE, &mut served).await);
                    given_up.get().cloned().unwrap_or_else(|| "it was stopped".to_owned())
                }
            }
        }
        OtherSide::Program(mut process, mut stderr, notes) => {
            let how = tokio::select! {
                status = process.wait() => {
                    // What it said last may still be on the way.
                    drop(tokio::time::timeout(SETTLE, &mut served).await);
                    // It may have ended only because nobody read what it wrote.
                    let broken = notes.broken().map(str::to_owned);
                    Some(broken.unwrap_or_else(|| ended(process.as_ref(), status.ok())))
                }
                _ = &mut served => match notes.broken() {
                    Some(why) => Some(why.to_owned()),
                    None => exit(process.as_mut()).await,
                },
                () = stops => {
                    service.cancel();
                    // Closing its input is how a program of this kind is told to end.
                    drop(tokio::time::timeout(CLOSE_GRACE, process.wait()).await);
                    Some(given_up.get().cloned().unwrap_or_else(|| "it was stopped".to_owned()))
                }
            };
            stop_process(process.as_mut()).await;
            stderr.settle(SETTLE).await;
            let how = how.unwrap_or_else(|| "it closed its output".to_owned());
            match stderr.complaints().last_reason() {
                Some(line) => format!("{how}; the last it complained about: {line}"),
                None => how,
            }
        }
    };
    service.cancel();
    end.send_replace(Some(how.into()));
}

/// Returns how a process that closed its output ended, if it ends soon.
pub(super) async fn exit(process: &mut dyn Process) -> Option<String> {
    let status = tokio::time::timeout(SETTLE, process.wait()).await.ok()?;
    Some(ended(process, status.ok()))
}

/// Says how a process ended that was waited for, and which limit it reached.
fn ended(process: &dyn Process, status: Option<ExitStatus>) -> String {
    let how = exited(status);
    match process.reached() {
        Some(limit) => format!("{how}: {limit}"),
        None => how,
    }
}

/// Ends a process and what it started, gently first.
pub(super) async fn stop_process(process: &mut dyn Process) {
    process.terminate();
    if tokio::time::timeout(TERMINATE_GRACE, process.wait()).await.is_err() {
        process.kill();
        // The kernel ends it; collecting it cannot take long.
        drop(tokio::time::timeout(TERMINATE_GRACE, process.wait()).await);
    }
    process.kill();
}

fn exited(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status {
        None => "it ended, nobody knows how".to_owned(),
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("it exited with status {code}"),
            (None, Some(signal)) => format!("it was killed by signal {signal}"),
            (None, None) => "it ended".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use async_trait::async_trait;
    use convoke_tool::{ReachedLimit, Streams};

    use super::*;

    #[derive(Debug)]
    struct Killed(Option<ReachedLimit>);

    #[async_trait]
    impl Process for Killed {
        fn take_streams(&mut self) -> Option<Streams> {
            None
        }

        async fn wait(&mut self) -> std::io::Result<ExitStatus> {
            Ok(ExitStatus::from_raw(9))
        }

        fn reached(&self) -> Option<ReachedLimit> {
            self.0
        }

        fn terminate(&mut self) {}

        fn kill(&mut self) {}
    }

    /// Somebody has to know which limit to raise, whether the program ends while it starts or later.
    #[tokio::test]
    async fn the_limit_that_was_reached_is_told() {
        let mut process = Killed(Some(ReachedLimit::Memory(1 << 30)));
        let said = exit(&mut process).await.unwrap();
        assert!(said.starts_with("it was killed by signal 9: ") && said.contains("1GiB"), "{said}");
        let status = process.wait().await.ok();
        assert_eq!(ended(&process, status), said);
        assert_eq!(ended(&Killed(None), status), "it was killed by signal 9");
    }
}

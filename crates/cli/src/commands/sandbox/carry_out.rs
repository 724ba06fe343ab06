//! One program, from its start to its end, with the streams of this process.

use std::process::ExitStatus;
use std::sync::Arc;

use convoke_core::{Cause, ErrorKind, ToolError};
use convoke_tool::{Process, Program, ReachedLimit, Spawner};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use crate::ended::Ended;
use crate::failure::Failure;
use crate::output::{Output, Stream};
use crate::signals::Signals;

const CHUNK: usize = 16 * 1024;

/// What becomes of what the program says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It is passed on as it comes.
    PassedOn,
    /// It is kept.
    Kept,
}

/// What a program left behind.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) status: ExitStatus,
    /// The signal that made us ask it to end.
    pub(super) asked: Option<Cause>,
    /// The limit that it reached, if that is known.
    pub(super) reached: Option<ReachedLimit>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    /// What the user has to know about files that it changed.
    pub(super) notices: Vec<String>,
}

/// A program that was not started.
pub(super) enum NotStarted {
    /// And the code says why.
    Program(Ended, ToolError),
    /// It was not its fault.
    Failure(Failure),
}

impl From<Failure> for NotStarted {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// Runs a program to its end. The first signal asks it to end, the second does not ask.
pub(super) fn carry_out(
    spawner: &Arc<dyn Spawner>,
    program: Program,
    said: Said,
    output: &Output,
) -> Result<Done, NotStarted> {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let threads = threads
        .map_err(|error| Failure::failed("the program cannot be started").because(&error))?;
    let done = threads.block_on(run(spawner, program, said, output));
    // A thread may still wait for input that nobody wants any more.
    threads.shutdown_background();
    done
}

async fn run(
    spawner: &Arc<dyn Spawner>,
    program: Program,
    said: Said,
    output: &Output,
) -> Result<Done, NotStarted> {
    let mut signals = Signals::listen()
        .map_err(|error| Failure::failed("signals cannot be heard").because(&error))?;
    let mut process = spawner.spawn(program).await.map_err(not_started)?;
    let streams = process.take_streams().ok_or_else(|| Failure::failed("it has no streams"))?;
    let to = |stream| (said == Said::PassedOn).then_some(stream);
    let (out, err) = (to(&output.out), to(&output.err));
    let end = async {
        tokio::join!(
            wait(process.as_mut(), &mut signals),
            tell(streams.stdout, out),
            tell(streams.stderr, err)
        )
    };
    let (ended, stdout, stderr) = tokio::select! {
        never = feed(streams.stdin) => match never {},
        end = end => end,
    };
    let (status, asked) = ended?;
    let notices = process.settle().await;
    Ok(Done { status, asked, reached: process.reached(), stdout, stderr, notices })
}

fn not_started(error: ToolError) -> NotStarted {
    match error.kind {
        ErrorKind::NotFound => NotStarted::Program(Ended::NOT_FOUND, error),
        ErrorKind::Permission => Failure::new(Cause::Denied, error.to_string()).into(),
        _ => NotStarted::Program(Ended::NOT_STARTED, error),
    }
}

async fn wait(
    process: &mut dyn Process,
    signals: &mut Signals,
) -> Result<(ExitStatus, Option<Cause>), Failure> {
    let mut asked = None;
    loop {
        let cause = tokio::select! {
            ended = process.wait() => {
                let ended = ended.map_err(|error| {
                    Failure::failed("the program could not be waited for").because(&error)
                });
                return Ok((ended?, asked));
            }
            cause = signals.next() => cause,
        };
        if asked.is_some() {
            process.kill();
            return Err(Failure::new(cause, "the program was ended"));
        }
        asked = Some(cause);
        process.terminate();
    }
}

/// Hands the program what we are given, until one of them has enough. It never ends by itself.
async fn feed(mut to: Box<dyn AsyncWrite + Send + Unpin>) -> std::convert::Infallible {
    // A program that does not read its input is not an error.
    drop(tokio::io::copy(&mut tokio::io::stdin(), &mut to).await);
    drop(to);
    std::future::pending().await
}

/// Hands on what a program says as it comes, or keeps it. Where nobody listens any more the pipe is
/// closed, so that the program notices.
async fn tell(mut from: Box<dyn AsyncRead + Send + Unpin>, to: Option<&Stream>) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = vec![0; CHUNK];
    // An error on a pipe is its end as far as output goes.
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let bytes = buffer.get(..length).unwrap_or_default();
        let Some(stream) = to else {
            kept.extend_from_slice(bytes);
            continue;
        };
        stream.bytes(bytes);
        stream.flush();
        if stream.is_gone() {
            break;
        }
    }
    kept
}

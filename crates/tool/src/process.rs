//! Runs a program to its end: feeds it, reads it, limits it, stops it.
//!
//! Shared by every tool that is a program. Output is kept up to a limit, its beginning and its end;
//! what lies between is counted and left out. When the call is cancelled or runs out of time, the
//! group is asked to end, then made to, and what was read until then is still returned.

use std::process::ExitStatus;
use std::time::Duration;

use convoke_core::ToolError;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use crate::context::ToolContext;
use crate::reached::ReachedLimit;
use crate::spawn::{Process, Program};

/// How long a group may take to end after it was asked to.
const TERMINATE_GRACE: Duration = Duration::from_millis(500);
/// How long the pipes may stay open after the leader has ended: somebody it left behind holds them.
const DRAIN_GRACE: Duration = Duration::from_millis(500);
const CHUNK: usize = 16 * 1024;

/// What a program left behind.
#[derive(Debug)]
pub struct Finished {
    /// How it ended; `None` if it was stopped by us.
    pub status: Option<ExitStatus>,
    /// What it wrote.
    pub stdout: Captured,
    /// What it complained about.
    pub stderr: Captured,
    /// The limit that it reached, if that is known.
    pub reached: Option<ReachedLimit>,
    /// What a user has to know about files that it changed.
    pub notices: Vec<String>,
}

impl Finished {
    /// Returns the notices as text to put behind the output; empty if there are none.
    pub fn noticed(&self) -> String {
        self.notices.iter().fold(String::new(), |text, notice| text + "[sandbox] " + notice + "\n")
    }

    /// Says how it ended, and which limit it reached; `None` if it was stopped by us.
    pub fn how(&self) -> Option<String> {
        let status = self.status?;
        Some(match &self.reached {
            Some(limit) => format!("{status}: {limit}"),
            None => status.to_string(),
        })
    }
}

/// Output, kept up to a limit.
#[derive(Debug, Default)]
pub struct Captured {
    head: Vec<u8>,
    tail: std::collections::VecDeque<u8>,
    total: u64,
    limit: usize,
}

impl Captured {
    fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (self.limit / 2).saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(self.limit / 2);
        self.tail.drain(..surplus);
    }

    /// Returns how many bytes were left out.
    pub fn omitted(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// Returns the text, invalid UTF-8 replaced, with a line that says what was left out.
    pub fn text(&self) -> String {
        let (first, second) = self.tail.as_slices();
        if self.omitted() == 0 {
            return String::from_utf8_lossy(&[&self.head, first, second].concat()).into_owned();
        }
        let head = String::from_utf8_lossy(&self.head);
        let tail = [first, second].concat();
        let tail = String::from_utf8_lossy(&tail);
        format!("{head}\n[… {} bytes are left out …]\n{tail}", self.omitted())
    }
}

/// Runs a program to its end, feeds it `input`, and keeps up to `limit` bytes of each of its outputs. Each piece of
/// text is shown as the call's progress as it comes.
pub async fn run_to_end(
    context: &ToolContext,
    program: Program,
    input: Vec<u8>,
    limit: usize,
) -> Result<Finished, ToolError> {
    let mut process = context.spawner().spawn(program).await?;
    let Some(streams) = process.take_streams() else {
        return Err(ToolError::failed("the program was started without its streams"));
    };
    let mut stdin = streams.stdin;
    let feed = async move {
        // A program that does not read its input is not an error.
        drop(stdin.write_all(&input).await);
        drop(stdin.shutdown().await);
    };
    let (mut stdout, mut stderr) = (Captured::new(limit), Captured::new(limit));
    let mut status = None;
    {
        let read_out = capture(streams.stdout, &mut stdout, context);
        let read_err = capture(streams.stderr, &mut stderr, context);
        let io = async { tokio::join!(feed, read_out, read_err) };
        tokio::pin!(io);
        let mut drained = false;
        tokio::select! {
            ended = async {
                loop {
                    tokio::select! {
                        _ = &mut io, if !drained => drained = true,
                        ended = process.wait() => break ended,
                    }
                }
            } => {
                status = Some(ended.map_err(|error| {
                    ToolError::failed("the program could not be waited for").caused_by(&error)
                })?);
            }
            () = context.cancelled() => stop(process.as_mut()).await,
        }
        if !drained {
            // Whoever still holds the pipes was left behind by the leader.
            let deadline = Instant::now() + DRAIN_GRACE;
            if timeout_at(deadline, &mut io).await.is_err() {
                process.kill();
                drop(timeout_at(deadline + DRAIN_GRACE, &mut io).await);
            }
        }
    }
    let notices = process.settle().await;
    let reached = status.and_then(|_| process.reached());
    Ok(Finished { status, stdout, stderr, reached, notices })
}

async fn stop(process: &mut dyn Process) {
    process.terminate();
    if tokio::time::timeout(TERMINATE_GRACE, process.wait()).await.is_err() {
        process.kill();
        // The kernel ends the leader; collecting it cannot take long.
        drop(tokio::time::timeout(TERMINATE_GRACE, process.wait()).await);
    }
    process.kill();
}

async fn capture(
    mut stream: Box<dyn AsyncRead + Send + Unpin>,
    captured: &mut Captured,
    context: &ToolContext,
) {
    let mut buffer = vec![0; CHUNK];
    let mut text = TextStream::default();
    // An error on a pipe is its end as far as output goes; how the program ended says the rest.
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let bytes = buffer.get(..length).unwrap_or_default();
        captured.push(bytes);
        context.progress().text(text.next(bytes));
    }
}

/// Turns pieces of output into text; a character that a piece ends in the middle of waits for the next.
#[derive(Debug, Default)]
struct TextStream {
    waiting: Vec<u8>,
}

impl TextStream {
    fn next(&mut self, bytes: &[u8]) -> String {
        self.waiting.extend_from_slice(bytes);
        let whole = match self.waiting.utf8_chunks().last() {
            Some(last) if could_go_on(last.invalid()) => self.waiting.len() - last.invalid().len(),
            _ => self.waiting.len(),
        };
        let rest = self.waiting.split_off(whole);
        let text = String::from_utf8_lossy(&self.waiting).into_owned();
        self.waiting = rest;
        text
    }
}

/// Tells whether bytes are the beginning of a character.
fn could_go_on(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(error) if error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_was_reached_is_told_with_how_it_ended() {
        use std::os::unix::process::ExitStatusExt;
        let finished = |status, reached| Finished {
            status,
            stdout: Captured::default(),
            stderr: Captured::default(),
            reached,
            notices: Vec::new(),
        };
        let killed = Some(ExitStatus::from_raw(9));
        let limit = Some(ReachedLimit::Processes(7));
        let said = "signal: 9 (SIGKILL): it reached its limit of 7 processes at a time \
                    (`sandbox.limits.processes`)";
        assert_eq!(finished(killed, limit).how().as_deref(), Some(said));
        assert_eq!(finished(killed, None).how().as_deref(), Some("signal: 9 (SIGKILL)"));
        assert_eq!(finished(None, None).how(), None);
    }

    #[test]
    fn capture_keeps_both_ends() {
        let mut captured = Captured::new(10);
        for byte in b'a'..=b'z' {
            captured.push(&[byte]);
        }
        assert_eq!(captured.omitted(), 16);
        assert_eq!(captured.text(), "abcde\n[… 16 bytes are left out …]\nvwxyz");
    }

    #[test]
    fn a_character_cut_in_two_is_put_together() {
        let mut stream = TextStream::default();
        let bytes = "añ→🎉z".as_bytes();
        let pieces: String = bytes.iter().map(|byte| stream.next(&[*byte])).collect();
        assert_eq!(pieces, "añ→🎉z");
        assert_eq!(stream.next(b"\xFFok\xE2\x86"), "\u{FFFD}ok");
        assert_eq!(stream.next(b"x"), "\u{FFFD}x");
    }

    #[test]
    fn short_output_is_whole() {
        let mut captured = Captured::new(10);
        captured.push(b"hello");
        captured.push(b"12");
        assert_eq!((captured.text().as_str(), captured.omitted()), ("hello12", 0));
    }
}

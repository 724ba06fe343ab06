//! Reads the body of an answer, up to a limit.
//!
//! What was read is never thrown away: a body that is too long, a connection that breaks and a call
//! that is stopped all leave the beginning behind, together with the reason why there is no more.

use convoke_core::ToolError;
use convoke_tool::{ProgressSender, ToolContext};
use reqwest::Response;

use super::failure::explain;
use super::request::HttpUrl;

/// How often a large body is reported on.
const PROGRESS_STEP: usize = 1024 * 1024;

/// Why the body ends where it does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BodyEnd {
    /// This is all of it.
    Whole,
    /// The rest goes beyond the limit.
    TooLong,
    /// The call had to stop.
    Stopped,
    /// The connection broke.
    Broken(ToolError),
}

/// Reads a body until it ends, one way or another. The limit counts what comes out of decompression.
pub(super) async fn read_body(
    mut response: Response,
    url: &HttpUrl,
    limit: usize,
    context: &ToolContext,
) -> (Vec<u8>, BodyEnd) {
    let mut report = Report::new(context.progress(), response.content_length());
    let mut body = Vec::new();
    let end = loop {
        let chunk = tokio::select! {
            biased;
            () = context.cancelled() => break BodyEnd::Stopped,
            chunk = response.chunk() => chunk,
        };
        let mut chunk = match chunk {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break BodyEnd::Whole,
            Err(error) => break BodyEnd::Broken(explain(error, url)),
        };
        let room = limit - body.len();
        let too_long = chunk.len() > room;
        chunk.truncate(room);
        body.extend_from_slice(&chunk);
        if too_long {
            break BodyEnd::TooLong;
        }
        report.received(body.len());
    };
    (body, end)
}

/// Tells now and then how much has arrived.
struct Report<'a> {
    progress: &'a ProgressSender,
    total: Option<u64>,
    next: usize,
}

impl<'a> Report<'a> {
    const fn new(progress: &'a ProgressSender, total: Option<u64>) -> Self {
        Self { progress, total, next: PROGRESS_STEP }
    }

    #[expect(clippy::cast_precision_loss, reason = "a fraction need not be exact")]
    fn received(&mut self, bytes: usize) {
        if bytes < self.next {
            return;
        }
        self.next = bytes + PROGRESS_STEP;
        let note = format!("received {bytes} bytes\n");
        match self.total {
            Some(total) if total > 0 => self.progress.fraction(bytes as f64 / total as f64, note),
            _ => self.progress.text(note),
        }
    }
}

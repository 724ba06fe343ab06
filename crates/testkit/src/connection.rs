//! Serves one connection: reads a request, asks the script, does what it says, and so on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

use crate::http::{NoRequest, read_request};
use crate::listing::list;
use crate::plan::{Step, plan};
use crate::record::Record;
use crate::render::Context;
use crate::response::whole;
use crate::script::Script;
use crate::seen::Seen;

/// How much is read at once; little, since there may be ten thousand connections.
const BUFFER: usize = 4 * 1024;

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) script: Box<dyn Script>,
    pub(crate) record: Arc<Record>,
    pub(crate) models: Vec<String>,
    pub(crate) delay: Duration,
    pub(crate) keep_requests: bool,
    pub(crate) asked: AtomicUsize,
}

/// How an answer ended.
enum Ended {
    /// As planned; the connection can go on.
    Whole,
    /// As planned, by closing the connection.
    Cut,
    /// The client closed the connection.
    Abandoned,
}

/// Serves a connection until either side closes it.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Send>(stream: S, shared: Arc<Shared>) {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = BufReader::with_capacity(BUFFER, reader);
    loop {
        let incoming = match read_request(&mut reader, &mut writer).await {
            Ok(incoming) => incoming,
            Err(NoRequest::Gone) => return,
            Err(NoRequest::Refused(status)) => {
                let answer = whole(status, "text/plain", &[], b"");
                drop(writer.write_all(&answer).await);
                break;
            }
        };
        let steps = shared.react(incoming.seen);
        let ended = tokio::select! {
            biased;
            ended = perform(&mut writer, &steps) => ended,
            () = client_leaves(&mut reader) => Ended::Abandoned,
        };
        match ended {
            Ended::Whole => shared.record.change(|counts| counts.answered += 1),
            Ended::Cut => return shared.record.change(|counts| counts.answered += 1),
            Ended::Abandoned => return shared.record.change(|counts| counts.abandoned += 1),
        }
        if !incoming.keep_alive {
            break;
        }
    }
    // Nobody may be there to hear it.
    drop(writer.shutdown().await);
}

async fn perform<W: AsyncWrite + Unpin>(writer: &mut W, steps: &[Step]) -> Ended {
    for step in steps {
        match step {
            Step::Send(bytes) => {
                if writer.write_all(bytes).await.is_err() || writer.flush().await.is_err() {
                    return Ended::Abandoned;
                }
            }
            Step::Wait(pause) => tokio::time::sleep(*pause).await,
            Step::Hang => std::future::pending().await,
            Step::Cut => return Ended::Cut,
        }
    }
    Ended::Whole
}

/// Waits until the client has closed its side. A further request that comes meanwhile stays where it
/// is until it is its turn; from then on the client's leaving shows only when something is written.
async fn client_leaves<R: AsyncBufRead + Unpin>(reader: &mut R) {
    if let Ok([_, ..]) = reader.fill_buf().await {
        std::future::pending::<()>().await;
    }
}

impl Shared {
    fn react(&self, seen: Seen) -> Vec<Step> {
        let seen = Arc::new(seen);
        if self.keep_requests {
            self.record.push(Arc::clone(&seen));
        }
        self.record.change(|counts| counts.requests += 1);
        let Some(wire) = seen.wire else {
            return match list(&seen, &self.models) {
                Some(models) => json_answer(200, &models.to_string()),
                None => json_answer(404, r#"{"error":{"message":"no such path"}}"#),
            };
        };
        if let Some(complaint) = seen.complaint() {
            return json_answer(400, &json!({ "error": { "message": complaint } }).to_string());
        }
        let nth = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut reaction = self.script.react(&seen, nth);
        reaction.delay += self.delay;
        let include_usage = seen.include_usage();
        plan(&reaction, wire, Context { model: seen.model(), nth, include_usage })
    }
}

fn json_answer(status: u16, body: &str) -> Vec<Step> {
    vec![Step::Send(whole(status, "application/json", &[], body.as_bytes()).into())]
}

//! Messages as lines of JSON, as they come from a process that may send anything.
//!
//! A line that is no message is answered with what is wrong with it, and the next one is read: one bad
//! line never ends the connection. A line that is too long is never kept. A client that does not read its
//! answers is not listened to either, until it does.

mod load;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::load::{Load, MAX_LISTENING, Opened};

/// How long the last words to a client may take.
const CLOSES_WITHIN: Duration = Duration::from_secs(2);

/// The two streams of one client.
pub(super) struct Lines<R, W> {
    reader: BufReader<R>,
    /// What was read of a line so far: reading may be given up at any moment and taken up again.
    line: Vec<u8>,
    /// Whether the rest of a line that is too long is still to come.
    skips: bool,
    limit: usize,
    /// Whether the client has asked for anything yet.
    begun: bool,
    writer: Arc<Mutex<Option<W>>>,
    load: Arc<Load>,
    /// Refusals that are being written. Reading may be given up while they are.
    refusals: TaskTracker,
    /// Cancelled when nothing more comes.
    gone: CancellationToken,
    /// Cancelled when nothing that is written is read.
    unheard: CancellationToken,
}

/// What one look at the stream gave.
enum Read {
    Line,
    TooLong,
    End,
}

/// Why a line is no message.
#[derive(Debug)]
struct Refusal {
    id: Option<RequestId>,
    error: ErrorData,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    pub(super) fn new(reader: R, writer: W, limit: usize, max_requests: usize) -> Self {
        Self {
            reader: BufReader::new(reader),
            line: Vec::new(),
            skips: false,
            limit,
            begun: false,
            writer: Arc::new(Mutex::new(Some(writer))),
            load: Load::new(max_requests),
            refusals: TaskTracker::new(),
            gone: CancellationToken::new(),
            unheard: CancellationToken::new(),
        }
    }

    /// Returns what is cancelled when the client sends nothing more.
    pub(super) fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }

    /// Returns what is cancelled when the client turns out to read nothing more.
    pub(super) fn unheard(&self) -> CancellationToken {
        self.unheard.clone()
    }

    /// Reads up to the end of a line. Nothing is lost when this is dropped while it waits.
    async fn read(&mut self) -> io::Result<Read> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(Read::End);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let (piece, _) = available.split_at(end.unwrap_or(available.len()));
            let taken = end.map_or(available.len(), |end| end + 1);
            if !self.skips {
                self.line.extend_from_slice(piece);
            }
            self.reader.consume(taken);
            if self.line.len() > self.limit {
                self.line = Vec::new();
                self.skips = end.is_none();
                return Ok(Read::TooLong);
            }
            match (end, self.skips) {
                (Some(_), false) => return Ok(Read::Line),
                (Some(_), true) => self.skips = false,
                (None, _) => {}
            }
        }
    }

    /// Answers a line that is refused. That is done beside the reading: it is neither lost nor left in the middle
    /// of a line when nobody waits for the next message any more.
    fn refuse(&mut self, refusal: Refusal) {
        let sending = self.send(ServerJsonRpcMessage::error(refusal.error, refusal.id));
        // Somebody who cannot be written to will not be read from for long, either.
        self.refusals.spawn(async move { drop(sending.await) });
    }

    async fn next(&mut self) -> io::Result<Option<ClientJsonRpcMessage>> {
        loop {
            self.load.bearable().await;
            match self.read().await? {
                Read::End => return Ok(None),
                Read::TooLong => {
                    let reason = format!("a message may have {} bytes at most", self.limit);
                    let error = ErrorData::invalid_request(reason, None);
                    self.refuse(Refusal { id: None, error });
                    continue;
                }
                Read::Line => {}
            }
            let line = std::mem::take(&mut self.line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            match parse(&line) {
                Ok(ClientJsonRpcMessage::Request(request)) => {
                    self.begun = true;
                    match self.load.opened(&request) {
                        Opened::Yes => return Ok(Some(ClientJsonRpcMessage::Request(request))),
                        Opened::TakenId => {
                            let id = &request.id;
                            let reason = format!("a request with the id {id} is under way");
                            let error = ErrorData::invalid_request(reason, None);
                            self.refuse(Refusal { id: None, error });
                        }
                        Opened::TooMany => {
                            let reason = format!("there are {MAX_LISTENING} subscriptions already");
                            let error = ErrorData::invalid_request(reason, None);
                            self.refuse(Refusal { id: Some(request.id), error });
                        }
                    }
                }
                // Somebody who has asked nothing cannot take anything back; the library would hang up.
                Ok(_) if !self.begun => {}
                Ok(message) => {
                    self.load.taken_back(&message);
                    return Ok(Some(message));
                }
                Err(refusal) => self.refuse(refusal),
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (writer, unread) = (Arc::clone(&self.writer), self.load.sending(&message));
        let unheard = self.unheard();
        async move {
            let written = write(&writer, &message).await;
            drop(unread);
            if written.as_ref().is_err_and(is_hang_up) {
                unheard.cancel();
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        // Whether the stream ended or broke, nothing more comes.
        let message = self.next().await.ok().flatten();
        if message.is_none() {
            self.gone.cancel();
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        let closing = async {
            self.refusals.close();
            self.refusals.wait().await;
            match self.writer.lock().await.take() {
                Some(mut writer) => writer.shutdown().await,
                None => Ok(()),
            }
        };
        // Somebody who does not read cannot keep the server from ending.
        tokio::time::timeout(CLOSES_WITHIN, closing).await?
    }
}

async fn write<W: AsyncWrite + Unpin>(
    writer: &Mutex<Option<W>>,
    message: &ServerJsonRpcMessage,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut writer = writer.lock().await;
    let writer = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    writer.write_all(&line).await?;
    writer.flush().await
}

/// Tells whether what was written could not be, because nobody reads it.
pub(super) fn is_hang_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset)
}

/// Reads a message, or says what is wrong with it.
fn parse(line: &[u8]) -> Result<ClientJsonRpcMessage, Refusal> {
    let value: Value = serde_json::from_slice(line).map_err(|error| Refusal {
        id: None,
        error: ErrorData::parse_error(format!("the message is not JSON: {error}"), None),
    })?;
    read_message(value).map_err(|(id, error)| Refusal { id, error })
}

/// Reads a message from JSON.
pub(super) fn read_message(
    value: Value,
) -> Result<ClientJsonRpcMessage, (Option<RequestId>, ErrorData)> {
    let refuse = |id, reason: &str| Err((id, ErrorData::invalid_request(reason.to_owned(), None)));
    if value.is_array() {
        return refuse(None, "messages come one by one: batches are not part of the protocol");
    }
    if !value.is_object() {
        return refuse(None, "a message is a JSON object");
    }
    if value.get("jsonrpc").is_none_or(|version| version != "2.0") {
        return refuse(id_of(&value), "a message says `\"jsonrpc\": \"2.0\"`");
    }
    if value.get("method").is_some() && value.get("id").is_some() && id_of(&value).is_none() {
        return refuse(None, "the `id` of a request is a string or a whole number");
    }
    let id = id_of(&value);
    serde_json::from_value(value).map_err(|error| {
        (id, ErrorData::invalid_request(format!("the message is not one: {error}"), None))
    })
}

fn id_of(value: &Value) -> Option<RequestId> {
    match value.get("id")? {
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        number => number.as_i64().map(RequestId::Number),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(
        input: &'static [u8],
        limit: usize,
    ) -> (Lines<&'static [u8], tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        (Lines::new(input, ours, limit, 16), theirs)
    }

    async fn answers(mut stream: tokio::io::DuplexStream) -> Vec<Value> {
        let mut text = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut text).await.unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[tokio::test]
    async fn bad_lines_are_answered_and_good_ones_are_read() {
        let input = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}
garbage

[{"jsonrpc":"2.0","id":1,"method":"ping"}]
7
{"id":1,"method":"ping"}
{"jsonrpc":"2.0","id":null,"method":"ping"}
{"jsonrpc":"2.0","id":1.5,"method":"ping"}
{"jsonrpc":"2.0","id":"x"}
{"jsonrpc":"2.0","id":"good","method":"ping"}
{"jsonrpc":"2.0","id":8,"method":"unfinished""#;
        let (mut lines, theirs) = lines(input, 1000);
        let Some(ClientJsonRpcMessage::Request(request)) = lines.receive().await else {
            panic!("the request is read")
        };
        assert_eq!(request.id, RequestId::String("good".into()));
        assert!(lines.receive().await.is_none(), "a line without an end is no message");
        lines.close().await.unwrap();
        let answers = answers(theirs).await;
        let codes: Vec<i64> =
            answers.iter().map(|a| a["error"]["code"].as_i64().unwrap()).collect();
        assert_eq!(codes, [-32700, -32600, -32600, -32600, -32600, -32600, -32600]);
        assert_eq!(answers[3]["id"], json!(1), "{answers:?}");
        assert_eq!(answers[6]["id"], json!("x"), "{answers:?}");
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_not_kept() {
        let long: &'static [u8] = Box::leak(
            [
                vec![b'x'; 100_000],
                b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".to_vec(),
            ]
            .concat()
            .into_boxed_slice(),
        );
        let (mut lines, theirs) = lines(long, 100);
        assert!(matches!(lines.receive().await, Some(ClientJsonRpcMessage::Request(_))));
        assert!(lines.line.capacity() < 20_000);
        lines.close().await.unwrap();
        let answers = answers(theirs).await;
        assert_eq!(answers.len(), 1);
        assert!(answers[0]["error"]["message"].as_str().unwrap().contains("100 bytes at most"));
    }
}

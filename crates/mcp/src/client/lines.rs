//! Messages as lines on the standard streams of a program.
//!
//! A line is read up to a limit and never beyond: what is longer ends the connection, because nobody can
//! tell which call it was meant for. Lines that are no messages are skipped, and the first is kept so that
//! a person can be told what the program said instead.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, OnceLock};

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

/// The longest message that is read.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
const BUFFER_BYTES: usize = 64 * 1024;
/// A line this long may leave a buffer behind that is not worth keeping.
const KEPT_BYTES: usize = 1024 * 1024;
const SHOWN_CHARACTERS: usize = 200;

type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// What the reader found out that others have to know.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The first line that was no message.
    nonsense: OnceLock<String>,
    /// Why reading ended, if the program is not to blame for its end.
    broken: OnceLock<String>,
}

impl Notes {
    pub(super) fn nonsense(&self) -> Option<&str> {
        self.nonsense.get().map(String::as_str)
    }

    pub(super) fn broken(&self) -> Option<&str> {
        self.broken.get().map(String::as_str)
    }
}

/// Reads and writes messages, one a line.
pub(super) struct Lines {
    reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    line: Vec<u8>,
    /// The rest of a line that held several messages.
    waiting: VecDeque<ServerJsonRpcMessage>,
    writer: Arc<Mutex<Option<Writer>>>,
    notes: Arc<Notes>,
    limit: usize,
}

impl Lines {
    pub(super) fn new(
        stdout: Box<dyn AsyncRead + Send + Unpin>,
        stdin: Writer,
        notes: Arc<Notes>,
    ) -> Self {
        Self {
            reader: BufReader::with_capacity(BUFFER_BYTES, stdout),
            line: Vec::new(),
            waiting: VecDeque::new(),
            writer: Arc::new(Mutex::new(Some(stdin))),
            notes,
            limit: MAX_MESSAGE_BYTES,
        }
    }

    /// Reads up to the end of a line. If this is given up half-way, the next call goes on where it was.
    async fn read_line(&mut self) -> Option<()> {
        loop {
            let (length, ends) = {
                let available = self.reader.fill_buf().await.ok()?;
                if available.is_empty() {
                    return None;
                }
                let end = available.iter().position(|byte| *byte == b'\n');
                let taken = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
                if self.line.len() + taken.len() > self.limit {
                    let limit = self.limit;
                    let said = format!("it sent a message of more than {limit} bytes");
                    // The first reason is the one that counts.
                    drop(self.notes.broken.set(said));
                    return None;
                }
                self.line.extend_from_slice(taken);
                (taken.len() + usize::from(end.is_some()), end.is_some())
            };
            self.reader.consume(length);
            if ends {
                return Some(());
            }
        }
    }

    fn understand(&mut self) {
        // Some programs cut texts in the middle of a character; the rest of their answer is still good.
        let readable = String::from_utf8_lossy(&self.line);
        let line = readable.as_bytes().trim_ascii();
        let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        if line.is_empty() {
            return;
        }
        match serde_json::from_slice::<ServerJsonRpcMessage>(line) {
            Ok(message) => self.waiting.push_back(message),
            Err(_) => match serde_json::from_slice::<Value>(line) {
                Ok(Value::Array(messages)) => {
                    self.waiting.extend(messages.into_iter().filter_map(understand_value));
                }
                Ok(value) => self.waiting.extend(understand_value(value)),
                Err(_) => {
                    let shown = String::from_utf8_lossy(line);
                    let shown = shown.chars().take(SHOWN_CHARACTERS).collect();
                    // Only the first is kept.
                    drop(self.notes.nonsense.set(shown));
                }
            },
        }
    }
}

/// A message of the wrong shape that still names a request fails that request; others are skipped.
fn understand_value(value: Value) -> Option<ServerJsonRpcMessage> {
    let answers = value.get("error").is_some() || value.get("result").is_some();
    let id = value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    if let Ok(message) = serde_json::from_value(value) {
        return Some(message);
    }
    let unreadable = "the server's answer cannot be understood";
    let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, unreadable, None);
    id.filter(|_| answers).map(|id| ServerJsonRpcMessage::error(error, Some(id)))
}

impl Transport<RoleClient> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut writer = writer.lock().await;
            let Some(writer) = writer.as_mut() else {
                return Err(io::ErrorKind::NotConnected.into());
            };
            writer.write_all(&line).await?;
            writer.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            self.read_line().await?;
            self.understand();
            self.line.clear();
            self.line.shrink_to(KEPT_BYTES);
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // A program that does not read may hold a writer up; its input is closed with the process then.
        if let Ok(mut writer) = self.writer.try_lock() {
            drop(writer.take());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    fn lines(text: &'static [u8]) -> (Lines, Arc<Notes>) {
        let notes = Arc::new(Notes::default());
        let (_, stdin) = duplex(64);
        (Lines::new(Box::new(text), Box::new(stdin), Arc::clone(&notes)), notes)
    }

    #[tokio::test]
    async fn what_is_no_message_is_skipped_and_remembered() {
        let (mut lines, notes) = lines(
            b"Listening...\n\n\xff\xfe\n{\"jsonrpc\":\"2.0\",\"method\":\"window/logMessage\"}\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n",
        );
        let mut answers = Vec::new();
        while let Some(message) = lines.receive().await {
            if let ServerJsonRpcMessage::Response(response) = message {
                answers.push(response.id);
            }
        }
        assert_eq!(answers, [RequestId::Number(1)]);
        assert_eq!(notes.nonsense(), Some("Listening..."));
        assert_eq!(notes.broken(), None);
    }

    #[tokio::test]
    async fn an_answer_with_a_broken_character_is_an_answer() {
        let (mut lines, notes) =
            lines(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"text\":\"caf\xc3\"}}\n");
        assert!(matches!(lines.receive().await, Some(ServerJsonRpcMessage::Response(_))));
        assert_eq!(notes.nonsense(), None);
    }

    #[tokio::test]
    async fn several_messages_may_share_a_line() {
        let (mut lines, _) = lines(
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":\"odd\"}}]\n",
        );
        assert!(matches!(lines.receive().await, Some(ServerJsonRpcMessage::Response(_))));
        let Some(ServerJsonRpcMessage::Error(error)) = lines.receive().await else {
            panic!("an answer that cannot be read fails its request");
        };
        assert_eq!(error.id, Some(RequestId::Number(2)));
    }

    #[tokio::test]
    async fn a_line_beyond_the_limit_ends_the_reading() {
        let (mut lines, notes) =
            lines(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"text\":\"too long\"}}\n");
        lines.limit = 20;
        assert!(lines.receive().await.is_none());
        assert!(notes.broken().unwrap().contains("more than 20 bytes"));
        assert!(lines.line.len() <= 20);
    }
}

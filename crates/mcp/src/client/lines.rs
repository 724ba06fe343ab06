//! Messages as lines on the standard streams of a program.
//!
//! A line is read up to a limit and never beyond: what is longer ends the connection, because nobody can
//! tell which call it was meant for. Lines that are no messages are skipped and counted, and the first is
//! kept so that a person can be told what the program said instead.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::message::read_message;
use super::task::leave;

/// The longest message that is read.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
const BUFFER_BYTES: usize = 64 * 1024;
/// A line this long may leave a buffer behind that is not worth keeping.
const KEPT_BYTES: usize = 1024 * 1024;
const SHOWN_CHARACTERS: usize = 80;

type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// What the reader found out that others have to know.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The first line that was no message, as it can be shown.
    sample: OnceLock<String>,
    /// How many there were.
    nonsense: AtomicUsize,
    /// Of how many it was told.
    told: AtomicUsize,
    /// Why reading ended, if the program is not to blame for its end.
    broken: OnceLock<String>,
}

impl Notes {
    /// Says what was written that is no message, if there was anything.
    pub(super) fn nonsense(&self) -> Option<String> {
        let sample = self.sample.get()?;
        Some(match self.nonsense.load(Ordering::Relaxed) {
            0 | 1 => format!("on its output it wrote a line that is no message: `{sample}`"),
            count => format!(
                "on its output it wrote {count} lines that are no messages, the first: `{sample}`"
            ),
        })
    }

    /// Says the same to whoever tells it on: once, and then each time there are ten times as many.
    pub(super) fn untold_nonsense(&self) -> Option<String> {
        let count = self.nonsense.load(Ordering::Relaxed);
        let told = self.told.load(Ordering::Relaxed);
        if count == 0 || (told > 0 && count < told.saturating_mul(10)) {
            return None;
        }
        self.told.store(count, Ordering::Relaxed);
        self.nonsense()
    }

    fn skip(&self, line: &str) {
        self.sample.get_or_init(|| shown(line));
        self.nonsense.fetch_add(1, Ordering::Relaxed);
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
        let line = readable.trim_ascii();
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        if line.is_empty() {
            return;
        }
        match read_message(line) {
            Ok(message) => self.waiting.push_back(message),
            Err(_) => match serde_json::from_str::<Value>(line) {
                Ok(Value::Array(messages)) => {
                    self.waiting.extend(messages.into_iter().filter_map(understand_value));
                }
                // What is not known here may be known elsewhere; what does not even name the protocol is a log.
                Ok(value) if value.get("jsonrpc").is_none() => match understand_value(value) {
                    Some(message) => self.waiting.push_back(message),
                    None => self.notes.skip(line),
                },
                Ok(value) => self.waiting.extend(understand_value(value)),
                Err(_) => self.notes.skip(line),
            },
        }
    }
}

/// Returns the beginning of a line, with control characters made visible.
fn shown(line: &str) -> String {
    let mut letters = line.chars();
    let mut shown = String::new();
    for letter in letters.by_ref().take(SHOWN_CHARACTERS) {
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    if letters.next().is_some() {
        shown.push('…');
    }
    shown
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

/// A program that still answers when nobody listens any more is let finish: it would die of a closed output, and with it
/// what it had yet to read or to keep. Once it has ended, or was ended, there is nothing left to read.
impl Drop for Lines {
    fn drop(&mut self) {
        if self.notes.broken().is_some() {
            return;
        }
        let nothing: Box<dyn AsyncRead + Send + Unpin> = Box::new(tokio::io::empty());
        let mut rest = std::mem::replace(self.reader.get_mut(), nothing);
        leave(async move {
            // What goes wrong with what nobody reads is nobody's business.
            drop(tokio::io::copy(&mut rest, &mut tokio::io::sink()).await);
        });
    }
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
        let told = notes.nonsense().unwrap();
        assert!(told.contains("2 lines that are no messages") && told.contains("`Listening...`"));
        assert_eq!(notes.broken(), None);
    }

    #[tokio::test]
    async fn what_is_no_message_is_counted_and_told_bounded_and_harmless() {
        let mut text = String::from("{\"level\":\"info\",\"msg\":\"\u{7f}\"}\n");
        text.push_str(&format!("\u{1b}[31m{}\n", "x".repeat(500)).repeat(2));
        let (mut lines, notes) = lines(text.leak().as_bytes());
        assert!(lines.receive().await.is_none());
        let told = notes.untold_nonsense().unwrap();
        assert!(told.contains("3 lines") && told.contains("\\u{7f}"), "{told}");
        assert_eq!(notes.untold_nonsense(), None, "once is enough");
        for _ in 0..27 {
            notes.skip("more");
        }
        assert!(notes.untold_nonsense().unwrap().contains("30 lines"));
        let long = shown(&format!("\u{1b}[2J{}", "x".repeat(500)));
        assert!(long.starts_with("\\u{1b}[2J") && long.ends_with("x…"), "{long}");
        assert!(long.chars().count() < 2 * SHOWN_CHARACTERS, "{long}");
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

    /// Bug: a server that was still answering when it was stopped died of its closed output, before it had read that a
    /// call was taken back.
    #[tokio::test]
    async fn what_a_program_writes_after_the_end_is_read() {
        let (mut program, stdout) = duplex(64);
        let (_, stdin) = duplex(64);
        drop(Lines::new(Box::new(stdout), Box::new(stdin), Arc::default()));
        program.write_all(&[b'x'; 10_000]).await.unwrap();
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

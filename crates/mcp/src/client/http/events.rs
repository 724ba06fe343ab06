//! The events of an answer: bounded, and always with an end that the caller understands.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sse_stream::{Sse, SseStream};

use super::{CUT_OFF, too_long};
use crate::client::message::with_tasks;

/// Returns the events of the answer to a request. If they end without the answer, and cannot be taken up
/// again, the request is failed here: nobody else would.
pub(super) fn answer(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    limit: usize,
    id: RequestId,
) -> BoxedSseResponse {
    let (bytes, exceeded) = bounded(bytes, limit);
    let reading = Reading { id, answered: false, resumable: false, ended: false };
    let events = SseStream::from_bytes_stream(bytes).boxed();
    stream::unfold((events, reading), move |(mut events, mut reading)| {
        let exceeded = Arc::clone(&exceeded);
        async move {
            if reading.ended {
                return None;
            }
            let next = match events.next().await {
                Some(Ok(event)) => {
                    let event = kept(event);
                    reading.look_at(&event);
                    event
                }
                _ => reading.last_words(exceeded.load(Ordering::Acquire), limit)?,
            };
            Some((Ok(next), (events, reading)))
        }
    })
    .boxed()
}

/// Returns an event with what the library would lose of it.
fn kept(mut event: Sse) -> Sse {
    if let Some(message) = event.data.as_deref().and_then(with_tasks) {
        event.data = Some(message.to_string());
    }
    event
}

/// Returns the events of a stream that answers nothing, or of one that is taken up again and goes on with an answer.
pub(super) fn notices(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    limit: usize,
) -> BoxedSseResponse {
    let (bytes, _) = bounded(bytes, limit);
    SseStream::from_bytes_stream(bytes).map(|event| event.map(kept)).boxed()
}

struct Reading {
    id: RequestId,
    answered: bool,
    /// The server said where it can be taken up again.
    resumable: bool,
    ended: bool,
}

impl Reading {
    fn look_at(&mut self, event: &Sse) {
        self.resumable |= event.id.is_some();
        let data = event.data.as_deref().unwrap_or_default();
        // What only looks like an answer is skipped by the library, so it is none.
        let is_answer = || {
            matches!(
                serde_json::from_str(data),
                Ok(ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
            )
        };
        let may_be = serde_json::from_str::<Glance>(data)
            .is_ok_and(|seen| seen.result.is_some() || seen.error.is_some());
        self.answered |= may_be && is_answer();
    }

    /// What is said in the server's place when nothing more comes.
    fn last_words(&mut self, exceeded: bool, limit: usize) -> Option<Sse> {
        self.ended = true;
        if self.answered || (self.resumable && !exceeded) {
            return None;
        }
        let error = if exceeded {
            too_long(limit)
        } else {
            ErrorData::new(CUT_OFF, "the connection ended before the answer had come", None)
        };
        let message = ServerJsonRpcMessage::error(error, Some(self.id.clone()));
        let data = serde_json::to_string(&message).ok();
        Some(Sse { data, ..Sse::default() })
    }
}

/// As much of a message as tells whether it answers something.
#[derive(Deserialize)]
struct Glance {
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// Ends a stream of bytes when one event grows beyond the limit, or when it breaks.
fn bounded(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    limit: usize,
) -> (impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static, Arc<AtomicBool>) {
    let exceeded = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&exceeded);
    let pieces = bytes.scan(EventSize::default(), move |size, piece| {
        // How it broke helps nobody: what matters is what is missing.
        let piece = piece.ok().filter(|piece| {
            let fits = size.after(piece) <= limit;
            flag.fetch_or(!fits, Ordering::AcqRel);
            fits
        });
        ready(piece.map(Ok))
    });
    (pieces, exceeded)
}

/// Counts the bytes since the last empty line, which is where an event ends.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    line: usize,
}

impl EventSize {
    fn after(&mut self, piece: &[u8]) -> usize {
        let mut largest = 0;
        for byte in piece {
            self.bytes += 1;
            match byte {
                b'\n' if self.line == 0 => self.bytes = 0,
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => self.line += 1,
            }
            largest = largest.max(self.bytes);
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(
        texts: &[&'static str],
    ) -> impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static + use<> {
        let pieces: Vec<_> =
            texts.iter().map(|text| Ok(Bytes::from_static(text.as_bytes()))).collect();
        stream::iter(pieces)
    }

    async fn data(texts: &[&'static str], limit: usize) -> Vec<String> {
        let events = answer(pieces(texts), limit, RequestId::Number(7));
        events.map(|event| event.unwrap().data.unwrap_or_default()).collect().await
    }

    #[tokio::test]
    async fn an_answer_passes_and_nothing_is_added() {
        let text = "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n";
        assert_eq!(data(&[text], 1000).await.len(), 1);
        let in_two = ["data: {\"jsonrpc\":\"2.0\",\"id\":7,\"res", "ult\":{}}\r\n\r\n"];
        assert_eq!(data(&in_two, 1000).await.len(), 1);
    }

    /// Regression: what such an answer says of tasks was lost if it had broken off before.
    #[tokio::test]
    async fn an_answer_that_is_taken_up_again_keeps_what_it_says_of_tasks() {
        let text = "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"task\":{\"taskId\":\"x\"},\"_meta\":{}}}\n\n";
        let events = notices(pieces(&[text]), 1000);
        let said: Vec<String> =
            events.map(|event| event.unwrap().data.unwrap_or_default()).collect().await;
        assert!(said[0].contains("\"task\"") && !said[0].contains("_meta"), "{said:?}");
    }

    #[tokio::test]
    async fn what_only_looks_like_an_answer_is_none() {
        let odd = "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":\"odd\"}\n\n";
        let said = data(&[odd], 1000).await;
        assert_eq!(said.len(), 2);
        assert!(said[1].contains("before the answer"), "{said:?}");
    }

    #[tokio::test]
    async fn an_answer_that_does_not_come_fails_its_request() {
        let said = data(&["data: {\"method\":\"notifications/progress\"}\n\n"], 1000).await;
        assert_eq!(said.len(), 2);
        assert!(said[1].contains("\"id\":7") && said[1].contains("before the answer"), "{said:?}");
    }

    #[tokio::test]
    async fn an_answer_that_can_be_taken_up_again_is_left_open() {
        assert_eq!(data(&["id: 1\ndata: {\"method\":\"x\"}\n\n"], 1000).await.len(), 1);
    }

    #[tokio::test]
    async fn an_event_beyond_the_limit_fails_its_request_and_small_ones_do_not_add_up() {
        let said = data(&["data: {\"result\":\"", "xxxxxxxxxxxxxxxxxxxxxxxxxxxx"], 30).await;
        assert!(said[0].contains("longer than 30 bytes"), "{said:?}");
        let many = data(&["data: 12345678901234\n\n", "data: 12345678901234\n\n"], 30).await;
        assert_eq!(many.len(), 3);
    }
}

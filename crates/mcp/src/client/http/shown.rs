//! What a server was shown to learn who asks. It is a login of the user, so a server that quotes it, in an
//! answer or in a complaint, is not quoted further.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;

use crate::auth::Secret;

/// How many are remembered. A token lives for minutes at least, and an answer belongs to one of the last.
const REMEMBERED: usize = 16;

/// The headers that a server was shown lately.
#[derive(Default)]
pub(super) struct Shown(Mutex<VecDeque<Secret>>);

impl Shown {
    /// Remembers headers that are about to be sent.
    pub(super) fn note(&self, headers: &[(String, Secret)]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, value) in headers {
            // What stands behind `Bearer` is what counts.
            let value = value.expose();
            let token = value.split_once(' ').map_or(value, |(_, token)| token).trim();
            if !known.iter().any(|secret| secret.expose() == token) {
                known.push_back(Secret::new(token));
            }
        }
        let surplus = known.len().saturating_sub(REMEMBERED);
        known.drain(..surplus);
    }

    /// Takes what was shown out of a text.
    pub(super) fn hide(&self, text: String) -> String {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().fold(text, |text, secret| secret.hide(&text))
    }

    /// Takes what was shown out of an answer.
    pub(super) fn hide_in_body(&self, body: Bytes) -> Bytes {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return body;
        }
        // What is no text is no message, and is at most quoted.
        self.hide(String::from_utf8_lossy(&body).into_owned()).into()
    }

    /// Takes what was shown out of events as they come.
    pub(super) fn hide_in_events(shown: &Arc<Self>, events: BoxedSseResponse) -> BoxedSseResponse {
        let shown = Arc::clone(shown);
        let hide = move |mut event: sse_stream::Sse| {
            event.data = event.data.map(|data| shown.hide(data));
            event
        };
        events.map(move |event| event.map(&hide)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_hidden_however_it_is_quoted() {
        let shown = Shown::default();
        assert_eq!(shown.hide("9c1f-0a7e".to_owned()), "9c1f-0a7e");
        shown.note(&[("Authorization".to_owned(), Secret::new("Bearer 9c1f-0a7e"))]);
        for text in ["got 9c1f-0a7e", r#"{"error": "no such token: Bearer 9c1f-0a7e"}"#] {
            assert!(!shown.hide(text.to_owned()).contains("9c1f"), "{text}");
            let body = shown.hide_in_body(Bytes::copy_from_slice(text.as_bytes()));
            assert!(!String::from_utf8_lossy(&body).contains("9c1f"), "{text}");
        }
        assert_eq!(shown.hide_in_body(Bytes::from_static(b"\xff9c1f-0a7e")), "\u{fffd}***");
    }

    #[test]
    fn the_latest_are_remembered_and_not_all() {
        let shown = Shown::default();
        for number in 0..=REMEMBERED {
            let value = Secret::new(format!("Bearer token-{number:03}"));
            shown.note(&[("Authorization".to_owned(), value.clone())]);
            shown.note(&[("Authorization".to_owned(), value)]);
        }
        assert_eq!(shown.hide("token-000 token-001 token-016".to_owned()), "token-000 *** ***");
    }
}

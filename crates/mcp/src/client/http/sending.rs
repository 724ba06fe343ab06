//! One request, sent until the server is content with who asks.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use rmcp::transport::common::http_header::JSON_MIME_TYPE;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::{Headers, HttpClient, HttpFailure, Outcome, text_of, without_secrets};
use crate::auth::Secret;
use crate::client::authorization::{Authorization, Refusal};

/// How long somebody may take to log in, if nobody else says so.
const LONGEST_LOGIN: Duration = Duration::from_mins(15);
/// How often a request is made before a server that always wants to know more is given up.
const MAX_TRIES: usize = 6;

/// What is sent, as often as it takes.
pub(super) struct Outgoing<'a> {
    pub(super) method: Method,
    pub(super) headers: &'a Headers,
    pub(super) body: Option<&'a Bytes>,
    /// How long the server may take to begin its answer, if that is limited here.
    pub(super) patience: Option<Duration>,
}

impl HttpClient {
    /// Sends a request; if the server wants to know who asks, again with what it wants. `None` if the
    /// server stays silent for longer than it may; nobody is hurried who logs in meanwhile.
    pub(super) async fn send(&self, message: Outgoing<'_>) -> Outcome<Option<Response>> {
        let asking = self.send_until_content(message);
        tokio::select! {
            biased;
            () = self.caller.given_up.cancelled() => {
                let (url, why) = (without_secrets(&self.remote.url), "it was given up".to_owned());
                Err(StreamableHttpError::Client(HttpFailure::Broken { url, why }))
            }
            answer = asking => answer,
        }
    }

    async fn send_until_content(&self, message: Outgoing<'_>) -> Outcome<Option<Response>> {
        let authorization = self
            .caller
            .authorization
            .as_ref()
            .filter(|_| !message.headers.contains_key(&AUTHORIZATION));
        let mut tries = 0;
        loop {
            tries += 1;
            let shown = match authorization {
                Some(known) => known.headers(&self.remote).await.map_err(unauthorized)?,
                None => Vec::new(),
            };
            self.shown.note(&shown);
            let sending = self.request(&message, &shown).send();
            let sent = match message.patience {
                None => sending.await,
                Some(patience) => match tokio::time::timeout(patience, sending).await {
                    Ok(sent) => sent,
                    Err(_) => return Ok(None),
                },
            };
            let response = sent.map_err(|error| self.lost(&error))?;
            let Some(refusal) = self.refusal(&response, shown) else {
                return Ok(Some(response));
            };
            match authorization {
                Some(known) if tries < MAX_TRIES => {
                    self.log_in(known.as_ref(), refusal).await.map_err(unauthorized)?;
                }
                _ => return Err(unauthorized(unanswered(&refusal))),
            }
        }
    }

    /// Has a refusal seen to, which may take a person some time.
    async fn log_in(&self, known: &dyn Authorization, refusal: Refusal) -> Result<(), String> {
        let _logging_in = self.caller.interlude.begin();
        let login = known.refused(&self.remote, refusal);
        tokio::time::timeout(LONGEST_LOGIN, login).await.unwrap_or_else(|_| {
            let minutes = LONGEST_LOGIN.as_secs() / 60;
            Err(format!("nobody had signed in to it after {minutes} minutes; try again"))
        })
    }

    fn request(&self, message: &Outgoing<'_>, shown: &[(String, Secret)]) -> RequestBuilder {
        let mut request = self.client.request(message.method.clone(), &self.remote.url);
        if let Some(body) = message.body {
            request = request.header(CONTENT_TYPE, JSON_MIME_TYPE).body(body.clone());
        }
        for (name, value) in message.headers {
            request = request.header(name, value);
        }
        for (name, value) in shown {
            request = request.header(name, value.expose());
        }
        request
    }

    fn refusal(&self, response: &Response, sent: Vec<(String, Secret)>) -> Option<Refusal> {
        let status = response.status();
        let challenge = text_of(response, &WWW_AUTHENTICATE).map(|text| self.shown.hide(text));
        let refuses = status == StatusCode::UNAUTHORIZED
            || (status == StatusCode::FORBIDDEN && challenge.is_some());
        refuses.then(|| Refusal { status: status.as_u16(), challenge, sent })
    }
}

fn unanswered(refusal: &Refusal) -> String {
    format!(
        "it answered with {}; give it a header with a valid token, or sign in to it",
        refusal.said()
    )
}

fn unauthorized(what: String) -> StreamableHttpError<HttpFailure> {
    StreamableHttpError::Client(HttpFailure::Unauthorized(what))
}

//! Requests of this module, with the same care for each: judged before they are sent, bounded, and with
//! errors that say what was wanted.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use url::Url;

use super::error::AuthError;
use super::guard::Guard;
use super::http::{Http, HttpRequest, HttpResponse};
use super::secret::Secret;

/// How sure it is that a document stands somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The server named it.
    Named,
    /// It is one of the usual places. Many servers answer there with a page for people.
    Guessed,
}

/// How many redirects are followed to reach a description.
const MOST_REDIRECTS: usize = 3;

/// Sends requests to where they may be sent.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    pub(super) guard: Guard,
    pub(super) http: Arc<dyn Http>,
}

impl Fetch {
    /// Reads a document; none if it is not there. A redirect is followed within the origin: a description
    /// that comes from elsewhere would be somebody else's.
    pub(super) async fn document<T: DeserializeOwned>(
        &self,
        url: &Url,
        place: Place,
        purpose: &'static str,
    ) -> Result<Option<T>, AuthError> {
        let mut at = url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let request = HttpRequest::get(at.clone(), self.guard.reach(&at)?);
            let answer = self.send(request, purpose).await?;
            let bad = |why: String| bad_answer(&at, purpose, why);
            match answer.status {
                200 => match serde_json::from_slice(&answer.body) {
                    Ok(document) => return Ok(Some(document)),
                    Err(_) if place == Place::Guessed => return Ok(None),
                    Err(error) => return Err(bad(kind_of(&error))),
                },
                301 | 302 | 303 | 307 | 308 => {
                    let location = answer.header("Location").unwrap_or_default();
                    let next = at.join(&location).ok();
                    let next = next.filter(|next| next.origin() == at.origin());
                    match next {
                        Some(next) => at = next,
                        None if place == Place::Guessed => return Ok(None),
                        None => return Err(bad("it redirects to somewhere else".to_owned())),
                    }
                }
                400..500 => return Ok(None),
                status => return Err(bad(format!("HTTP status {status}"))),
            }
        }
        Err(bad_answer(url, purpose, format!("more than {MOST_REDIRECTS} redirects")))
    }

    /// Hands something in. No redirect is followed.
    pub(super) async fn post(
        &self,
        url: &str,
        content_type: &str,
        body: Secret,
        authorization: Option<Secret>,
        purpose: &'static str,
    ) -> Result<(Url, HttpResponse), AuthError> {
        let (url, reach) = self.guard.parse(url)?;
        let mut request = HttpRequest::post(url.clone(), reach, content_type, body);
        if let Some(authorization) = authorization {
            request = request.header("Authorization", authorization);
        }
        let answer = self.send(request, purpose).await?;
        Ok((url, answer))
    }

    pub(super) async fn send(
        &self,
        request: HttpRequest,
        purpose: &'static str,
    ) -> Result<HttpResponse, AuthError> {
        let url = shown(&request.url);
        let answer = self.http.send(request).await;
        answer.map_err(|source| AuthError::Unreachable { url, purpose, source })
    }
}

/// Says that an answer is of no use.
pub(super) fn bad_answer(url: &Url, purpose: &'static str, why: String) -> AuthError {
    AuthError::BadAnswer { url: shown(url), purpose, why }
}

/// Returns a URL as it may be shown: what stands behind the path may be a key.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Says what is wrong with an answer without repeating what stands in it: it may be a secret.
pub(super) fn kind_of(error: &serde_json::Error) -> String {
    match error.classify() {
        serde_json::error::Category::Data => "it lacks what it has to hold".to_owned(),
        _ => "it is not JSON".to_owned(),
    }
}

//! Asks one search engine, and says what its refusals mean.
//!
//! Whatever goes wrong here has passed [`Secret::scrub`] when it leaves.

use convoke_core::ToolError;
use convoke_tool::ToolContext;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::secret::Secret;
use crate::network::{
    BodyEnd, HttpClient, HttpHeaders, HttpMethod, HttpRequest, HttpResponse, HttpUrl,
};

/// How much of an engine's own words an error repeats.
const MAX_QUOTED_CHARACTERS: usize = 300;

/// Where a search engine is, and what opens it.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) name: &'static str,
    pub(super) base: HttpUrl,
    pub(super) key: Option<Secret>,
    pub(super) client: HttpClient,
}

/// What is asked: a path below the base, with all that goes along.
#[derive(Default)]
pub(super) struct Question<'a> {
    pub(super) path: &'a str,
    pub(super) query: &'a [(&'a str, &'a str)],
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// Sent as JSON with POST; without it, the question is a GET.
    pub(super) body: Option<Value>,
}

impl Endpoint {
    /// Returns the key as text; empty where the engine wants none.
    pub(super) fn exposed_key(&self) -> &str {
        self.key.as_ref().map(Secret::expose).unwrap_or_default()
    }

    /// Asks, and reads the answer as JSON.
    pub(super) async fn ask_json<T: DeserializeOwned>(
        &self,
        question: Question<'_>,
        context: &ToolContext,
    ) -> Result<T, ToolError> {
        let text = self.ask(question, context).await?.text();
        // A struct could also be read from a list; every engine answers with an object.
        let document: serde_json::Result<Map<String, Value>> = serde_json::from_str(&text);
        let answer = document.and_then(|fields| serde_json::from_value(Value::Object(fields)));
        answer.map_err(|error| {
            let (name, said) = (self.name, self.quote(&text));
            self.scrub(ToolError::failed(format!(
                "{name} gave an answer that cannot be read ({error}): {said}"
            )))
        })
    }

    /// Asks, and returns the answer if it is a good one.
    pub(super) async fn ask(
        &self,
        question: Question<'_>,
        context: &ToolContext,
    ) -> Result<HttpResponse, ToolError> {
        self.exchange(question, context).await.map_err(|error| self.scrub(error))
    }

    async fn exchange(
        &self,
        question: Question<'_>,
        context: &ToolContext,
    ) -> Result<HttpResponse, ToolError> {
        let request = self.request(question)?;
        let response = Box::pin(self.client.send(request, context)).await?;
        let name = self.name;
        match &response.end {
            _ if !response.status.is_success() => Err(self.refusal(&response)),
            BodyEnd::Whole => Ok(response),
            BodyEnd::TooLong => Err(ToolError::failed(format!("{name} gave too long an answer"))),
            BodyEnd::Stopped => Err(ToolError::cancelled("the search was stopped")),
            BodyEnd::Broken(error) => Err(error.clone()),
        }
    }

    fn request(&self, question: Question<'_>) -> Result<HttpRequest, ToolError> {
        let unusable =
            |why| ToolError::unavailable(format!("tools.webSearch.apiKey cannot be used: {why}"));
        let url = self.base.with_path_and_query(question.path, question.query);
        let mut headers = HttpHeaders::default();
        for (name, value) in question.headers {
            headers.add(name, value).map_err(unusable)?;
        }
        let Some(body) = question.body else {
            return Ok(HttpRequest { headers, ..HttpRequest::get(url) });
        };
        headers.add("content-type", "application/json").map_err(unusable)?;
        Ok(HttpRequest { method: HttpMethod::POST, url, headers, body: Some(body.to_string()) })
    }

    fn refusal(&self, response: &HttpResponse) -> ToolError {
        let name = self.name;
        let said = self.quote(&message_of(&response.text()));
        match response.status.as_u16() {
            401 | 403 if self.key.is_some() => ToolError::unavailable(format!(
                "{name} refused the key; check tools.webSearch.apiKey ({}: {said})",
                response.status
            )),
            429 => {
                let wait = match response.header("retry-after") {
                    Some(seconds) if seconds.bytes().all(|byte| byte.is_ascii_digit()) => {
                        let word = if seconds == "1" { "second" } else { "seconds" };
                        format!("try again in {seconds} {word}")
                    }
                    Some(date) => format!("try again after {date}"),
                    None => "try again later".to_owned(),
                };
                ToolError::unavailable(format!("{name} gets too many requests; {wait}"))
            }
            _ => ToolError::failed(format!("{name} answered {}: {said}", response.status)),
        }
    }

    /// Repeats what the engine said, in short. The key goes first: a cut could leave half of it.
    fn quote(&self, text: &str) -> String {
        let mut text = text.trim().to_owned();
        if let Some(key) = &self.key {
            key.hide(&mut text);
        }
        shorten(&text)
    }

    fn scrub(&self, error: ToolError) -> ToolError {
        match &self.key {
            Some(key) => key.scrub(error),
            None => error,
        }
    }
}

/// Finds the sentence in an error document; the document itself where there is none.
fn message_of(body: &str) -> String {
    let places =
        ["/error/message", "/errors/0/message", "/detail/error", "/message", "/detail", "/error"];
    let document: Option<Value> = serde_json::from_str(body).ok();
    let find = |place: &&str| document.as_ref()?.pointer(place)?.as_str().map(str::to_owned);
    places.iter().find_map(find).unwrap_or_else(|| body.to_owned())
}

fn shorten(text: &str) -> String {
    if text.is_empty() {
        return "no message".to_owned();
    }
    let mut characters = text.chars();
    let mut quoted: String = characters.by_ref().take(MAX_QUOTED_CHARACTERS).collect();
    if characters.next().is_some() {
        quoted.push('…');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_is_found_in_every_shape_of_error() {
        for (body, message) in [
            (r#"{"error":{"code":400,"message":"bad cx"}}"#, "bad cx"),
            (r#"{"detail":{"error":"no credit"}}"#, "no credit"),
            (r#"{"errors":[{"message":"first"},{"message":"second"}]}"#, "first"),
            (r#"{"message":"plain"}"#, "plain"),
            (r#"{"detail":"text"}"#, "text"),
            ("<h1>Oops</h1>", "<h1>Oops</h1>"),
            (r#"{"other":1}"#, r#"{"other":1}"#),
        ] {
            assert_eq!(message_of(body), message);
        }
    }

    #[test]
    fn quotes_are_short_and_keep_characters_whole() {
        assert_eq!(shorten(""), "no message");
        assert_eq!(shorten("x"), "x");
        assert_eq!(shorten(&"ü".repeat(400)), "ü".repeat(300) + "…");
    }
}

//! What the HTTP tools give back.
//!
//! An answer that says "not found" is an answer like any other; only what prevents an answer is an
//! error. A connection that breaks in the middle is both: the call has failed, and what had arrived is
//! still there.

use std::collections::BTreeMap;

use convoke_core::ToolError;
use convoke_tool::{Rendered, Reply, ToolOutput};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use schemars::JsonSchema;
use serde::Serialize;

use super::body::BodyEnd;
use super::client::HttpResponse;
use super::decode::{Content, Tail, decode};

/// The headers a model gets to see; programs get all of them.
const SHOWN_HEADERS: [&str; 3] = ["content-type", "content-length", "location"];

/// What came back.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    /// The status code.
    status: u16,
    /// The headers, with names in lower case; a header that came several times is joined with `, `.
    headers: BTreeMap<String, String>,
    /// The body as text, or as `encoding` says.
    body: String,
    /// `base64` where the body is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    /// Where the answer came from, if a redirect led there.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// `true` where only the beginning of the body is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// How many bytes of the body were read, where it was cut or is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_bytes: Option<usize>,
}

/// Turns a response into what the pipeline takes.
pub(super) fn output(response: &HttpResponse) -> Result<ToolOutput, ToolError> {
    let answer = Answer::of(response);
    let text = answer.render(response.status);
    let output = Rendered::new(answer, text).into_output()?;
    Ok(match &response.end {
        BodyEnd::Broken(error) => output.failing(error.clone()),
        _ => output,
    })
}

impl Answer {
    fn of(response: &HttpResponse) -> Self {
        let truncated = response.end != BodyEnd::Whole;
        let tail = if truncated { Tail::Cut } else { Tail::Ends };
        let (body, encoding) = match decode(&response.body, response.content_type(), tail) {
            Content::Text(text) => (text, None),
            Content::Base64(text) => (text, Some("base64")),
        };
        Self {
            status: response.status.as_u16(),
            headers: joined(&response.headers),
            body,
            encoding,
            url: response.redirected.then(|| response.url.to_string()),
            truncated: truncated.then_some(true),
            body_bytes: (truncated || encoding.is_some()).then_some(response.body.len()),
        }
    }

    /// Writes the answer for a model: a status line, the headers that help, then the body.
    fn render(&self, status: StatusCode) -> String {
        let shown = SHOWN_HEADERS.iter().filter_map(|name| self.headers.get_key_value(*name));
        let mut lines = vec![format!("HTTP {status}")];
        lines.extend(shown.map(|(name, value)| format!("{name}: {value}")));
        lines.extend(self.url.iter().map(|url| format!("url: {url}")));
        let bytes = self.body_bytes.unwrap_or(self.body.len());
        if self.truncated.is_some() {
            lines.push(format!("truncated: only the first {bytes} bytes of the body are here"));
        }
        let head = lines.join("\n");
        match self.encoding {
            Some(_) => format!("{head}\n\n[{bytes} bytes that are not text]"),
            None if self.body.is_empty() => head,
            None => format!("{head}\n\n{}", self.body),
        }
    }
}

fn joined(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        joined
            .entry(name.as_str().to_owned())
            .and_modify(|all| {
                all.push_str(", ");
                all.push_str(&value);
            })
            .or_insert_with(|| value.clone().into_owned());
    }
    joined
}

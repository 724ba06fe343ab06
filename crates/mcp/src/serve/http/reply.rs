//! Bodies of answers: those of the protocol, and our refusals.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Frame, SizeHint};
use serde_json::{Value, json};

use super::sessions::Active;

/// The body of any answer.
pub(super) type Body = BoxBody<Bytes, Infallible>;

/// The answer to a request that is refused.
#[derive(Debug)]
pub(super) struct Refusal(Box<Response<Body>>);

impl Refusal {
    /// Says more in a header.
    pub(super) fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.0.headers_mut().insert(name, HeaderValue::from_static(value));
        self
    }

    pub(super) fn into_response(self) -> Response<Body> {
        *self.0
    }
}

/// Refuses a request, in words for people and a form that clients of the protocol read.
pub(super) fn refuse(status: StatusCode, code: i32, reason: &str) -> Refusal {
    refuse_request(status, &Value::Null, code, reason)
}

/// Refuses a request whose id is known.
pub(super) fn refuse_request(status: StatusCode, id: &Value, code: i32, reason: &str) -> Refusal {
    let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": reason } });
    let mut response = Response::new(Full::new(Bytes::from(error.to_string())).boxed());
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Refusal(Box::new(response))
}

/// Counts as activity of a session until the body has been sent or given up.
pub(super) fn counted(body: Body, active: Option<Active>) -> Body {
    match active {
        Some(active) => Counted { body, _active: active }.boxed(),
        None => body,
    }
}

struct Counted {
    body: Body,
    _active: Active,
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

//! Web pages that may use the server: what their browser has to be told before it lets them.
//!
//! A browser asks first (`OPTIONS`, without the token) and shows a page only answers that name its origin.
//! No other page is told anything.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};

use super::reply::Body;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Accept, Last-Event-ID, \
     Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name",
);
const EXPOSED: HeaderValue = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate");
/// For how long a browser need not ask again, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// A page that may use the server.
#[derive(Clone, Debug)]
pub(super) struct Page(HeaderValue);

impl Page {
    /// Returns the page that a request comes from, if it is from one. It has to be known already.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        headers.get(header::ORIGIN).cloned().map(Self)
    }

    /// Lets the page see an answer.
    pub(super) fn sees<B>(self, mut response: Response<B>) -> Response<B> {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.0);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        response
    }
}

/// Tells whether a browser asks what a page may send.
pub(super) fn asks_first(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Tells a browser what a known page may send.
pub(super) fn may_send() -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let told: [(HeaderName, HeaderValue); 3] = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, MAX_AGE),
    ];
    response.headers_mut().extend(told);
    response
}

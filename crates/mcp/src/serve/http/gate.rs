//! Who may come in, and with how much.
//!
//! A page that a browser shows can send requests to this machine. It cannot choose the `Origin` it
//! sends, nor, where a name was made to lead here, the `Host`; so both are looked at, and what is not
//! known is refused. The token is compared without telling how much of it was right.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::uri::Authority;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use rmcp::model::RequestId;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::HttpSettings;
use super::page::{Page, asks_first};
use super::reply::{Refusal, refuse, refuse_request};
use crate::serve::extras::json;
use crate::serve::lines::read_message;
use crate::serve::service::ServeError;

const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
const MIN_TOKEN_LENGTH: usize = 16;
/// How long a client may take to send the body of a request.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// A request that may come in.
#[derive(Debug)]
pub(super) enum Entry {
    /// A client asks for something.
    Request,
    /// A browser asks what a page may send. It cannot send a token with that.
    Preflight,
}

/// Decides about requests.
#[derive(Debug)]
pub(super) struct Gate {
    path: String,
    token: Option<[u8; 32]>,
    /// Names with the port they have to have, if any. None means that every name will do.
    hosts: Option<Vec<Authority>>,
    origins: Vec<String>,
    /// Whether pages of this machine may come in.
    local_pages: bool,
    max_body_bytes: usize,
}

impl Gate {
    pub(super) fn new(
        settings: &HttpSettings,
        address: SocketAddr,
        max_body_bytes: usize,
    ) -> Result<Self, ServeError> {
        let local = address.ip().to_canonical().is_loopback();
        match &settings.token {
            None if !local => return Err(ServeError::TokenMissing { address }),
            Some(token) if !is_token(token) => {
                let length = token.chars().count();
                return Err(ServeError::WeakToken { length, least: MIN_TOKEN_LENGTH });
            }
            _ => {}
        }
        if !settings.path.starts_with('/') {
            return Err(ServeError::BadPath { path: settings.path.clone() });
        }
        let named = settings.hosts.iter().map(|host| host_of(host));
        let mut hosts: Vec<Authority> = named.collect::<Result<_, _>>()?;
        if local {
            hosts.extend(LOOPBACK_NAMES.map(Authority::from_static));
        }
        // Whoever may come at all may come by the address.
        if !hosts.is_empty() && !address.ip().is_unspecified() {
            hosts.push(host_of(&match address.ip() {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => format!("[{ip}]"),
            })?);
        }
        let origins = settings.origins.iter().map(|origin| {
            normal_origin(origin).ok_or_else(|| ServeError::BadOrigin { origin: origin.clone() })
        });
        Ok(Self {
            path: settings.path.clone(),
            token: settings.token.as_deref().map(digest),
            hosts: (!hosts.is_empty()).then_some(hosts),
            origins: origins.collect::<Result<_, _>>()?,
            local_pages: local,
            max_body_bytes,
        })
    }

    /// Lets a request in, or says why not.
    pub(super) fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Entry, Refusal> {
        if !self.knows_host(uri, headers) {
            return Err(refuse(
                StatusCode::FORBIDDEN,
                -32000,
                "the request was sent to a host that this server is not known by",
            ));
        }
        if !self.knows_origin(headers) {
            let reason = "the request comes from a web page that may not use this server";
            return Err(refuse(StatusCode::FORBIDDEN, -32000, reason));
        }
        if asks_first(method, headers) && uri.path() == self.path {
            return Ok(Entry::Preflight);
        }
        if !self.knows_token(headers) {
            let reason = "the request needs `Authorization: Bearer` with this server's token";
            return Err(refuse(StatusCode::UNAUTHORIZED, -32000, reason)
                .with(header::WWW_AUTHENTICATE, "Bearer"));
        }
        if uri.path() != self.path {
            let reason = format!("there is nothing here; the endpoint is `{}`", self.path);
            return Err(refuse(StatusCode::NOT_FOUND, -32000, &reason));
        }
        if !matches!(*method, Method::GET | Method::POST | Method::DELETE) {
            let reason = "the endpoint takes GET, POST and DELETE";
            return Err(refuse(StatusCode::METHOD_NOT_ALLOWED, -32000, reason)
                .with(header::ALLOW, "GET, POST, DELETE"));
        }
        Ok(Entry::Request)
    }

    /// Returns the page a request comes from, if that is one that may use the server.
    pub(super) fn page(&self, headers: &HeaderMap) -> Option<Page> {
        Page::of(headers).filter(|_| self.knows_origin(headers))
    }

    /// Reads the body of a request: one message, not too large.
    pub(super) async fn read(
        &self,
        body: impl hyper::body::Body<Data = Bytes, Error = hyper::Error> + Send,
    ) -> Result<Bytes, Refusal> {
        let reading = Limited::new(Box::pin(body), self.max_body_bytes).collect();
        let body = match tokio::time::timeout(BODY_WITHIN, reading).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let reason = format!("a message may have {} bytes at most", self.max_body_bytes);
                return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, -32600, &reason));
            }
            Ok(Err(error)) => {
                let reason = format!("the message broke off: {error}");
                return Err(refuse(StatusCode::BAD_REQUEST, -32600, &reason));
            }
            Err(_) => {
                let reason = "the message did not arrive in time";
                return Err(refuse(StatusCode::REQUEST_TIMEOUT, -32600, reason));
            }
        };
        check_message(&body)?;
        Ok(body)
    }

    fn knows_host(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let mut named = headers.get_all(header::HOST).iter();
        let named = match (named.next(), named.next()) {
            (Some(host), None) => host.to_str().ok().and_then(|host| host.parse().ok()),
            (None, _) => uri.authority().cloned(),
            // Two of them: nobody knows which one others have looked at.
            _ => None,
        };
        named.is_some_and(|named: Authority| {
            let plain = !named.as_str().contains('@');
            plain && hosts.iter().any(|known| covers(known, &named))
        })
    }

    fn knows_origin(&self, headers: &HeaderMap) -> bool {
        headers.get_all(header::ORIGIN).iter().all(|origin| {
            let Some(origin) = origin.to_str().ok().and_then(normal_origin) else { return false };
            self.origins.contains(&origin) || (self.local_pages && is_local_page(&origin))
        })
    }

    fn knows_token(&self, headers: &HeaderMap) -> bool {
        let Some(expected) = &self.token else { return true };
        let mut sent = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(sent), None) = (sent.next(), sent.next()) else { return false };
        let Some((scheme, token)) = sent.to_str().ok().and_then(|sent| sent.split_once(' ')) else {
            return false;
        };
        scheme.eq_ignore_ascii_case("bearer") && is_same(&digest(token.trim()), expected)
    }
}

/// Tells whether a message begins a session.
pub(super) fn begins_session(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        method: std::borrow::Cow<'a, str>,
    }
    serde_json::from_slice::<Named<'_>>(body).is_ok_and(|named| named.method == "initialize")
}

/// Says what is wrong with a message, where the library would only say that something is.
fn check_message(body: &[u8]) -> Result<(), Refusal> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        let reason = format!("the message is not JSON: {error}");
        refuse(StatusCode::BAD_REQUEST, -32700, &reason)
    })?;
    read_message(value).map(drop).map_err(|(id, error)| {
        let id = id.as_ref().map_or(Value::Null, |id: &RequestId| json(id));
        refuse_request(StatusCode::BAD_REQUEST, &id, error.code.0, &error.message)
    })
}

/// Tells whether a name is the known one; a known one without a port covers every port.
fn covers(known: &Authority, named: &Authority) -> bool {
    let addresses = (address_of(known), address_of(named));
    let same = match addresses {
        (Some(known), Some(named)) => known == named,
        _ => known.host().eq_ignore_ascii_case(named.host()),
    };
    same && known.port_u16().is_none_or(|port| named.port_u16() == Some(port))
}

/// Returns the address that a host is, where it is one: there are several spellings of each.
fn address_of(host: &Authority) -> Option<IpAddr> {
    let host = host.host();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok().map(|address: IpAddr| address.to_canonical())
}

fn host_of(host: &str) -> Result<Authority, ServeError> {
    host.parse().map_err(|_| ServeError::BadHost { host: host.to_owned() })
}

/// Writes an origin in one way only: lower case, without the port that goes without saying.
fn normal_origin(origin: &str) -> Option<String> {
    let (scheme, authority) = origin.trim().trim_end_matches('/').split_once("://")?;
    let (scheme, authority) = (scheme.to_ascii_lowercase(), authority.to_ascii_lowercase());
    let parsed: Authority = authority.parse().ok()?;
    let usual = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => 0,
    };
    if authority.contains('@') || parsed.host().is_empty() {
        return None;
    }
    match parsed.port_u16() {
        Some(port) if port != usual => Some(format!("{scheme}://{}:{port}", parsed.host())),
        _ => Some(format!("{scheme}://{}", parsed.host())),
    }
}

fn is_local_page(origin: &str) -> bool {
    let Some((_, rest)) = origin.split_once("://") else { return false };
    let parsed = rest.parse::<Authority>();
    parsed.is_ok_and(|page| LOOPBACK_NAMES.contains(&page.host()))
}

fn is_token(token: &str) -> bool {
    token.len() >= MIN_TOKEN_LENGTH && token.bytes().all(|byte| byte.is_ascii_graphic())
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Compares in the same time wherever the difference is.
fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let difference = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn gate(address: &str, change: impl FnOnce(&mut HttpSettings)) -> Result<Gate, ServeError> {
        let mut settings = HttpSettings::default();
        change(&mut settings);
        Gate::new(&settings, address.parse().unwrap(), 1000)
    }

    fn status(gate: &Gate, headers: &[(&'static str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let uri = Uri::from_static("/mcp");
        gate.check(&Method::POST, &uri, &map)
            .map_or_else(|refused| refused.into_response().status().as_u16(), |_| 200)
    }

    #[test]
    fn a_server_that_others_can_reach_needs_a_token() {
        for address in ["0.0.0.0:1", "192.168.0.1:1", "[::]:1", "[2001:db8::1]:1"] {
            assert!(
                matches!(gate(address, |_| {}), Err(ServeError::TokenMissing { .. })),
                "{address}"
            );
            assert!(gate(address, |settings| settings.token = Some(TOKEN.into())).is_ok());
        }
        for address in ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            let gate = gate(address, |_| {}).unwrap();
            // It is known by the address that it tells people.
            assert_eq!(status(&gate, &[("host", address)]), 200, "{address}");
            assert_eq!(status(&gate, &[("host", "evil.example:1")]), 403, "{address}");
        }
        for weak in ["", "short", "with a space in it", "0123456789abcde"] {
            let refused = gate("127.0.0.1:1", |settings| settings.token = Some(weak.into()));
            assert!(matches!(refused, Err(ServeError::WeakToken { .. })), "{weak}");
        }
    }

    #[test]
    fn only_known_hosts_are_served() {
        let local =
            gate("127.0.0.1:7", |settings| settings.hosts = vec!["my.box:7".into()]).unwrap();
        for host in ["localhost", "LOCALHOST:7", "127.0.0.1:9", "[::1]:7", "my.box:7"] {
            assert_eq!(status(&local, &[("host", host)]), 200, "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "my.box",
            "my.box:8",
            "x@localhost",
            "",
            "::1",
        ] {
            assert_eq!(status(&local, &[("host", host)]), 403, "{host}");
        }
        let refused = gate("127.0.0.1:7", |settings| settings.hosts = vec!["my box".into()]);
        assert!(matches!(refused, Err(ServeError::BadHost { .. })), "a typo opens nothing");
        assert_eq!(status(&local, &[]), 403, "no host at all");
        assert_eq!(status(&local, &[("host", "localhost"), ("host", "evil.example")]), 403);
    }

    #[test]
    fn only_known_pages_are_served() {
        let origins = || vec!["https://App.example/".to_owned()];
        let local = gate("127.0.0.1:7", |settings| settings.origins = origins()).unwrap();
        let answer = |origin| status(&local, &[("host", "localhost"), ("origin", origin)]);
        for known in ["https://app.example", "https://app.example:443", "http://localhost:3000"] {
            assert_eq!(answer(known), 200, "{known}");
        }
        for foreign in [
            "http://app.example",
            "https://app.example:8443",
            "https://app.example.evil.example",
            "http://localhost.evil.example",
            "http://x@localhost",
            "null",
            "",
        ] {
            assert_eq!(answer(foreign), 403, "{foreign}");
        }
        let refused = gate("127.0.0.1:7", |settings| settings.origins = vec!["app.example".into()]);
        assert!(matches!(refused, Err(ServeError::BadOrigin { .. })));
        let open = gate("0.0.0.0:7", |settings| settings.token = Some(TOKEN.into())).unwrap();
        let bearer = format!("Bearer {TOKEN}");
        let from_a_page = [("origin", "http://localhost"), ("authorization", bearer.as_str())];
        assert_eq!(status(&open, &from_a_page), 403, "this machine's pages are not that machine's");
    }

    #[test]
    fn only_the_whole_token_opens() {
        let gate = gate("0.0.0.0:7", |settings| settings.token = Some(TOKEN.into())).unwrap();
        let answer = |sent: &str| status(&gate, &[("authorization", sent)]);
        assert_eq!(answer(&format!("Bearer {TOKEN}")), 200);
        assert_eq!(answer(&format!("bearer  {TOKEN}")), 200);
        for wrong in
            [TOKEN, "Bearer", "Bearer ", "Bearer 0123456789abcdeg", "Basic 0123456789abcdef"]
        {
            assert_eq!(answer(wrong), 401, "{wrong}");
        }
        assert_eq!(status(&gate, &[]), 401);
    }

    #[test]
    fn what_begins_a_session_is_seen() {
        assert!(begins_session(br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#));
        assert!(begins_session(br#"{"method":"init\u0069alize"}"#));
        assert!(!begins_session(br#"{"method":"tools/call","params":{"method":"initialize"}}"#));
        assert!(!begins_session(b""));
    }
}

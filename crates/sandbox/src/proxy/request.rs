//! What a client of the proxy asks for.
//!
//! Only the target of the request says where it goes; the `Host` header is written anew from it. What
//! two readers could understand in two ways is refused: it is how one request is hidden in another.

use crate::host::Host;

/// How large the head of a request may be.
pub(super) const LARGEST_HEAD: usize = 16 * 1024;
const MOST_HEADERS: usize = 100;
/// Headers about this connection, or about us. They end here.
const OURS: &[&str] = &[
    "connection",
    "host",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "te",
    "upgrade",
];

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// To be connected to a host.
    Tunnel(Host),
    /// To have one request handed on.
    Forward {
        /// To whom.
        host: Host,
        /// The head of the request, as it is handed on.
        head: String,
        /// What follows it.
        body: Body,
    },
}

/// How much follows the head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// This many bytes.
    Length(u64),
    /// Pieces, each after its own length.
    Chunked,
}

impl Request {
    /// Reads the head of a request, with the empty line at its end; or says what is wrong with it.
    pub(super) fn parse(head: &[u8]) -> Result<Self, &'static str> {
        let head = std::str::from_utf8(head).map_err(|_| "the request is not text")?;
        let head = head.strip_suffix("\r\n\r\n").ok_or("the request does not end")?;
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let [method, target, version] =
            words(first).ok_or("the request line has not three words")?;
        if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
            return Err("only HTTP/1.1 is spoken here");
        }
        if !method.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-') {
            return Err("the method is not a word");
        }
        let headers = headers(lines)?;
        if method == "CONNECT" {
            let host = Host::parse(target, None).ok_or("`CONNECT` wants `host:port`")?;
            return Ok(Self::Tunnel(host));
        }
        let (host, path) = absolute(target)?;
        let body = body(&headers)?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", host_header(&host));
        for (name, value) in headers {
            if !OURS.contains(&name.to_ascii_lowercase().as_str()) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        head.push_str("Connection: close\r\n\r\n");
        Ok(Self::Forward { host, head, body })
    }
}

fn words(line: &str) -> Option<[&str; 3]> {
    let mut words = line.split(' ');
    let three = [words.next()?, words.next()?, words.next()?];
    let right = words.next().is_none() && three.iter().all(|word| is_visible(word));
    right.then_some(three)
}

fn is_visible(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn headers<'h>(
    lines: impl Iterator<Item = &'h str>,
) -> Result<Vec<(&'h str, &'h str)>, &'static str> {
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or("a header has no colon")?;
        let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(of_name) {
            return Err("a header has a name that is none");
        }
        if value.chars().any(|letter| letter.is_control() && letter != '\t') {
            return Err("a header has control characters in it");
        }
        headers.push((name, value.trim_matches([' ', '\t'])));
        if headers.len() > MOST_HEADERS {
            return Err("there are too many headers");
        }
    }
    Ok(headers)
}

/// Takes the host and the path from `http://host/path`.
fn absolute(target: &str) -> Result<(Host, String), &'static str> {
    let scheme = target.get(..7).unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("http://") {
        return Err("this is a proxy: ask for `http://host/path`, or use `CONNECT host:port`");
    }
    let rest = target.get(7..).unwrap_or_default();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = Host::parse(authority, Some(80)).ok_or("the address names no host")?;
    let path = path.split('#').next().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok((host, format!("{slash}{path}")))
}

fn host_header(host: &Host) -> String {
    let text = host.to_string();
    text.strip_suffix(":80").map_or_else(|| text.clone(), str::to_owned)
}

fn body(headers: &[(&str, &str)]) -> Result<Body, &'static str> {
    let all = |wanted: &str| {
        let named = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        named.map(|(_, value)| *value).collect::<Vec<_>>()
    };
    match (all("transfer-encoding").as_slice(), all("content-length").as_slice()) {
        ([], []) => Ok(Body::Length(0)),
        ([], [length]) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().map(Body::Length).map_err(|_| "the length of the body is not a number")
        }
        ([coding], []) if coding.eq_ignore_ascii_case("chunked") => Ok(Body::Chunked),
        _ => Err("it is not clear where the body ends"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(head: &str) -> Result<Request, &'static str> {
        Request::parse(head.as_bytes())
    }

    fn forwarded(head: &str) -> (String, String, Body) {
        match parse(head).unwrap() {
            Request::Forward { host, head, body } => (host.to_string(), head, body),
            Request::Tunnel(host) => panic!("a tunnel to {host}"),
        }
    }

    #[test]
    fn a_tunnel_goes_where_its_target_says() {
        let head = "CONNECT Example.com:443 HTTP/1.1\r\nHost: evil.org\r\n\r\n";
        let Ok(Request::Tunnel(host)) = parse(head) else { panic!("no tunnel") };
        assert_eq!(host.to_string(), "example.com:443");
        assert!(parse("CONNECT example.com HTTP/1.1\r\n\r\n").is_err());
    }

    #[test]
    fn a_request_is_handed_on_with_its_own_host() {
        let (host, head, body) = forwarded(
            "GET http://Example.com/a?b#c HTTP/1.1\r\nHost: evil.org\r\nhOST: evil.org\r\nAccept: */*\r\n\
             Proxy-Authorization: x\r\nConnection: keep-alive\r\n\r\n",
        );
        assert_eq!((host.as_str(), body), ("example.com:80", Body::Length(0)));
        assert_eq!(
            head,
            "GET /a?b HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        );
        let (host, head, _) = forwarded("GET HTTP://[::1]:8080?q HTTP/1.0\r\n\r\n");
        assert_eq!(host, "[::1]:8080");
        assert!(head.starts_with("GET /?q HTTP/1.1\r\nHost: [::1]:8080\r\n"), "{head}");
    }

    #[test]
    fn bodies_end_where_everybody_agrees() {
        let with = |headers: &str| parse(&format!("POST http://a/ HTTP/1.1\r\n{headers}\r\n"));
        let body = |headers: &str| match with(headers) {
            Ok(Request::Forward { body, .. }) => Some(body),
            _ => None,
        };
        assert_eq!(body("Content-Length: 12\r\n"), Some(Body::Length(12)));
        assert_eq!(body("Transfer-Encoding: chunked\r\n"), Some(Body::Chunked));
        for headers in [
            "Content-Length: 1\r\nContent-Length: 2\r\n",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: +1\r\n",
            "Content-Length: \r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding : chunked\r\n",
            "Content-Length: 1\r\n folded\r\n",
            "Content-Length: 1\nX: y\r\n",
            "X: a\u{b}b\r\n",
            "no colon\r\n",
        ] {
            assert_eq!(body(headers), None, "{headers:?}");
        }
        assert!(with(&"X: y\r\n".repeat(MOST_HEADERS + 1)).is_err());
    }

    #[test]
    fn what_is_no_request_for_a_proxy_is_refused() {
        for head in [
            "",
            "\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
            "GET https://example.com/ HTTP/1.1\r\n\r\n",
            "GET http://user@example.com/ HTTP/1.1\r\n\r\n",
            "GET http:///path HTTP/1.1\r\n\r\n",
            "GET http://example.com/ HTTP/2\r\n\r\n",
            "GET  http://example.com/ HTTP/1.1\r\n\r\n",
            "GET http://example.com/ HTTP/1.1",
            "GET http://example.com/a\nb HTTP/1.1\r\n\r\n",
            "G\u{e9}T http://example.com/ HTTP/1.1\r\n\r\n",
        ] {
            assert!(parse(head).is_err(), "{head:?}");
        }
    }
}

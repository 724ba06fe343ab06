//! What the next request is after a redirect.
//!
//! Pure: from one request and the answer to it comes the next request, or nothing, or a refusal. A
//! header that carries a credential goes no further than the origin it was given for, and once dropped
//! it stays dropped. Encryption is never given up on the way.

use convoke_core::ToolError;
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, HeaderMap, HeaderName,
    LOCATION,
};
use reqwest::{Method, StatusCode};

use super::request::{HttpHeaders, HttpRequest};

/// Words in the names of headers that carry credentials.
const CREDENTIAL_WORDS: [&str; 9] =
    ["auth", "cookie", "credential", "key", "passwd", "password", "secret", "session", "token"];

/// Returns the request that an answer asks for, if it asks for one.
pub(super) fn next_request(
    request: &HttpRequest,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<HttpRequest>, ToolError> {
    let Some(location) = headers.get(LOCATION).filter(|_| redirects(status)) else {
        return Ok(None);
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    let from = &request.url;
    let url = from.join(&location).map_err(|why| {
        ToolError::failed(format!("{from} redirects to where it cannot be followed: {why}"))
    })?;
    if from.is_encrypted() && !url.is_encrypted() {
        return Err(ToolError::permission(format!(
            "Access denied: {from} redirects to {url}, which is not encrypted"
        )));
    }
    let mut next = HttpRequest { url, ..request.clone() };
    if becomes_get(status, &request.method.0) {
        next.method.0 = Method::GET;
        next.body = None;
        for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION] {
            next.headers.0.remove(name);
        }
    }
    if !next.url.same_origin(from) {
        drop_credentials(&mut next.headers);
    }
    Ok(Some(next))
}

const fn redirects(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status {
        StatusCode::SEE_OTHER => method != Method::HEAD,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
        _ => false,
    }
}

fn drop_credentials(headers: &mut HttpHeaders) {
    let names: Vec<HeaderName> =
        headers.0.keys().filter(|name| names_credential(name)).cloned().collect();
    for name in names {
        headers.0.remove(name);
    }
}

/// `Authorization`, `Cookie` and `Proxy-Authorization`, and everything that is called like them.
fn names_credential(name: &HeaderName) -> bool {
    CREDENTIAL_WORDS.iter().any(|word| name.as_str().contains(word))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use crate::network::request::{HttpMethod, HttpUrl};

    fn request(method: &str, url: &str) -> HttpRequest {
        let mut headers = HttpHeaders::default();
        for name in ["Authorization", "Cookie", "X-Api-Key", "X-Auth-Token", "Accept"] {
            headers.add(name, "1").unwrap();
        }
        headers.add("Content-Type", "text/plain").unwrap();
        HttpRequest {
            method: HttpMethod::try_from(method.to_owned()).unwrap(),
            url: HttpUrl::parse(url).unwrap(),
            headers,
            body: Some("text".into()),
        }
    }

    fn follow(
        request: &HttpRequest,
        status: u16,
        location: &str,
    ) -> Result<Option<HttpRequest>, ToolError> {
        let location = HeaderValue::from_bytes(location.as_bytes()).unwrap();
        let headers = HeaderMap::from_iter([(LOCATION, location)]);
        next_request(request, StatusCode::from_u16(status).unwrap(), &headers)
    }

    #[test]
    fn the_status_decides_what_becomes_of_method_and_body() {
        for (method, status, expected) in [
            ("POST", 301, "GET"),
            ("POST", 302, "GET"),
            ("POST", 303, "GET"),
            ("POST", 307, "POST"),
            ("POST", 308, "POST"),
            ("PUT", 302, "PUT"),
            ("PUT", 303, "GET"),
            ("HEAD", 303, "HEAD"),
            ("GET", 301, "GET"),
        ] {
            let next =
                follow(&request(method, "http://a.example/x/"), status, "../y").unwrap().unwrap();
            assert_eq!(next.method.to_string(), expected, "{method} {status}");
            let keeps_body = method == expected && !(method == "HEAD" || method == "GET");
            if keeps_body {
                assert_eq!(next.body.as_deref(), Some("text"), "{method} {status}");
            }
            if method != expected {
                assert_eq!(next.body, None, "{method} {status}");
                assert!(!next.headers.0.contains_key(CONTENT_TYPE), "{method} {status}");
            }
            assert_eq!(next.url.to_string(), "http://a.example/y");
        }
    }

    #[test]
    fn credentials_stay_with_their_origin() {
        let names = |location: &str| {
            let next =
                follow(&request("GET", "http://a.example/"), 302, location).unwrap().unwrap();
            let names = next.headers.0.keys().map(ToString::to_string);
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        assert_eq!(names("/other").len(), 6);
        assert_eq!(names("http://a.example:80/").len(), 6);
        for elsewhere in ["http://b.example/", "https://a.example/", "http://a.example:81/"] {
            assert_eq!(names(elsewhere), ["accept", "content-type"], "{elsewhere}");
        }
    }

    #[test]
    fn some_redirects_are_not_followed() {
        let plain = request("GET", "http://a.example/");
        let secure = request("GET", "https://a.example/");
        assert!(follow(&plain, 304, "/x").unwrap().is_none());
        assert!(follow(&plain, 200, "/x").unwrap().is_none());
        let moved = StatusCode::FOUND;
        assert!(next_request(&plain, moved, &HeaderMap::new()).unwrap().is_none());

        for (request, location, says) in [
            (&secure, "http://a.example/", "is not encrypted"),
            (&plain, "file:///etc/passwd", "the scheme `file` is not supported"),
            (&plain, "http://u:p@a.example/", "user name or password"),
            (&plain, "http://", "empty host"),
        ] {
            let error = follow(request, 302, location).unwrap_err();
            assert!(error.message.contains(says), "{location}: {error}");
        }
    }
}

use super::*;

fn headers(pairs: &[(&str, &str)]) -> Result<HttpHeaders, String> {
    let map = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    HttpHeaders::try_from(map.collect::<BTreeMap<_, _>>())
}

#[test]
fn a_url_that_cannot_be_fetched_says_why() {
    for (url, why) in [
        ("example.org", "it has to start with https://"),
        ("", "is not a URL"),
        ("http://", "empty host"),
        ("http://./", "has no host"),
        ("ftp://example.org/", "the scheme `ftp` is not supported"),
        ("file:///etc/passwd", "the scheme `file` is not supported"),
        ("data:text/plain,hi", "the scheme `data` is not supported"),
        ("javascript:alert(1)", "the scheme `javascript` is not supported"),
        ("http://user:pass@example.org/", "user name or password"),
        ("http://user@example.org/", "user name or password"),
        ("http://example.org:99999/", "invalid port"),
        ("http://exa mple.org/", "is not a URL"),
    ] {
        let error = HttpUrl::parse(url).unwrap_err();
        assert!(error.contains(why), "{url}: {error}");
        assert!(!error.contains("pass@"), "{error}");
    }
}

#[test]
fn hosts_ports_and_origins_are_normal() {
    let url = HttpUrl::parse(" HTTPS://Example.ORG./a#part ").unwrap();
    assert_eq!(url.to_string(), "https://example.org./a");
    assert_eq!((url.host_name().as_str(), url.port()), ("example.org", 443));
    assert_eq!(HttpUrl::parse("http://[::1]:81").unwrap().host_name(), "::1");
    assert_eq!(HttpUrl::parse("http://[::1]:81").unwrap().place(), "[::1]:81");

    let base = HttpUrl::parse("http://a.example/x/y").unwrap();
    assert!(base.same_origin(&base.join("../z").unwrap()));
    assert!(base.same_origin(&HttpUrl::parse("http://a.example:80/").unwrap()));
    for other in ["https://a.example/", "//b.example/", "http://a.example:81/"] {
        assert!(!base.same_origin(&base.join(other).unwrap()), "{other}");
    }
    assert!(base.join("file:///etc/passwd").is_err());
}

#[test]
fn a_base_is_continued_whatever_its_end() {
    for base in ["http://a.example/v1", "http://a.example/v1/", "http://a.example/v1?x=1#y"] {
        let url = HttpUrl::parse(base).unwrap().with_path_and_query("find", &[("q", "a&b ü")]);
        assert_eq!(url.to_string(), "http://a.example/v1/find?q=a%26b+%C3%BC", "{base}");
    }
}

#[test]
fn methods_are_tokens_and_two_are_refused() {
    let method = |text: &str| HttpMethod::try_from(text.to_owned());
    assert_eq!(method("patch").unwrap().to_string(), "PATCH");
    assert_eq!(method("PROPFIND").unwrap().to_string(), "PROPFIND");
    for (text, why) in [
        ("", "is not an HTTP method"),
        ("GET /", "is not an HTTP method"),
        ("GET\r\nX", "is not an HTTP method"),
        ("connect", "`CONNECT` is not allowed"),
        ("TRACE", "`TRACE` is not allowed"),
    ] {
        let error = method(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn headers_cannot_break_out_or_change_the_connection() {
    assert!(headers(&[("X-One", "1"), ("Accept", "text/html"), ("X-Two", "é")]).is_ok());
    for (name, value, why) in [
        ("X-One", "1\r\nX-Two: 2", "line break"),
        ("X-One", "1\nX-Two: 2", "line break"),
        ("X-One", "\0", "control character"),
        ("X-One\r\nX-Two", "1", "is not a header name"),
        ("", "1", "is not a header name"),
        ("X One", "1", "is not a header name"),
        (":authority", "x", "is not a header name"),
        ("Host", "x", "is set by the client"),
        ("CONTENT-LENGTH", "1", "is set by the client"),
        ("Transfer-Encoding", "chunked", "is set by the client"),
        ("connection", "close", "is set by the client"),
        ("Upgrade", "h2c", "is set by the client"),
    ] {
        let error = headers(&[(name, value)]).unwrap_err();
        assert!(error.contains(why), "{name:?}: {error}");
        assert!(!error.contains("X-Two: 2"), "{error}");
    }
}

#[test]
fn debugging_shows_no_header_value() {
    let headers = headers(&[("Authorization", "Bearer abc")]).unwrap();
    assert_eq!(format!("{headers:?}"), "{\"authorization\"}");
}

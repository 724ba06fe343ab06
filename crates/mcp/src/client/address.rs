//! Whether an address can be that of a server.

use url::{ParseError, Url};

/// Says why no server can be at an address, as the end of a sentence. What `${…}` stands for is not known here, so a
/// host with that in it is not judged. The address is not repeated: it may hold a key.
///
/// ```
/// use convoke_mcp::client::address_problem;
///
/// assert_eq!(address_problem("https://mcp.example.com/mcp"), None);
/// assert!(address_problem("https://mcp.example.com:99999/mcp").is_some());
/// ```
pub fn address_problem(address: &str) -> Option<String> {
    let Some((scheme, rest)) = address.split_once("://") else {
        let is_open = address.starts_with("${");
        return (!is_open).then(|| "it has to begin with `https://` or `http://`".to_owned());
    };
    if scheme.contains("${") {
        return None;
    }
    if !["http", "https"].iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
        let begins = if is_scheme(scheme) {
            format!("it begins with `{scheme}://`")
        } else {
            "it begins otherwise".to_owned()
        };
        return Some(format!("{begins}, and servers are reached by `https://` or `http://`"));
    }
    // The library would look for a host behind more slashes, and forget some kinds of space.
    let host = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    if host.contains("${") {
        return None;
    }
    if host.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        return Some("there is a space or a control character in its host".to_owned());
    }
    let error = match Url::parse(&format!("{scheme}://{host}/")) {
        // The library takes it, and nothing can be asked there.
        Ok(url) if url.port() == Some(0) => ParseError::InvalidPort,
        Ok(_) => return None,
        Err(error) => error,
    };
    Some(match error {
        ParseError::EmptyHost => "it names no host: write it as https://HOST/PATH".to_owned(),
        ParseError::InvalidPort => "its port is not a number from 1 to 65535".to_owned(),
        ParseError::InvalidIpv6Address => {
            "what stands in `[…]` is not an IPv6 address: write it as http://[::1]:PORT/PATH"
                .to_owned()
        }
        ParseError::InvalidIpv4Address => {
            "its host is a number, but not an IPv4 address, as 127.0.0.1".to_owned()
        }
        other => format!("its host cannot be one: {other}"),
    })
}

/// Returns an address that begins in small letters, as addresses are written here: `HTTP://x` is `http://x`.
///
/// ```
/// use convoke_mcp::client::plain_address;
///
/// assert_eq!(plain_address("HTTPS://mcp.example.com/A"), "https://mcp.example.com/A");
/// ```
pub fn plain_address(address: &str) -> String {
    match address.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => {
            format!("{}://{rest}", scheme.to_ascii_lowercase())
        }
        _ => address.to_owned(),
    }
}

/// Tells whether a word could be the beginning of an address: `ftp`, for instance.
fn is_scheme(word: &str) -> bool {
    const LONGEST: usize = 20;
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    word.len() <= LONGEST
        && word.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_an_address_is_one() {
        for good in [
            "https://x",
            "HTTP://x/y",
            "http://127.0.0.1:80/mcp",
            "http://[::1]:8080/a b?c=[d]",
            "https://me:pw@x.example/mcp",
            "https://bücher.example/",
            "https://${HOST}/mcp",
            "https://x:${PORT:-80}/mcp",
            "${BASE}/mcp",
            "${SCHEME}://x/mcp",
        ] {
            assert_eq!(address_problem(good), None, "{good}");
        }
    }

    #[test]
    fn what_cannot_be_an_address_is_told_why() {
        for (bad, why) in [
            ("http://", "names no host"),
            ("http://:80/mcp", "names no host"),
            ("https:///mcp", "names no host"),
            ("http://[::1", "IPv6"),
            ("http://[::g]/", "IPv6"),
            ("http://h:99999/x", "port"),
            ("http://h:x/y", "port"),
            ("http://h:0/y", "port"),
            ("http://1.2.3.4.5/", "IPv4"),
            ("http://exa mple/x", "space"),
            ("http://exa\tmple/x", "space"),
            ("http://a<b>c/", "its host cannot be one"),
            ("ftp://x/y", "begins with `ftp://`"),
            ("ws://x/y", "begins with `ws://`"),
            ("not a scheme://x/y", "begins otherwise"),
            ("x.example/mcp", "has to begin with"),
        ] {
            let told = address_problem(bad).unwrap_or_default();
            assert!(told.contains(why), "{bad}: {told}");
        }
        assert_eq!(plain_address("${Base}://x/HTTP://y"), "${Base}://x/HTTP://y");
        let told = address_problem("https://me:hush@h:99999/?key=hush").unwrap_or_default();
        assert!(!told.is_empty() && !told.contains("hush"), "{told}");
    }
}

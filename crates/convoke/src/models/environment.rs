//! What the environment says about models: keys, addresses, proxies.
//!
//! The variables are those that the providers' own tools read. One that is empty is one that is not
//! set.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use convoke_model::ProxySettings;

/// The variables that say where a provider is.
const ADDRESSES: &[(&str, &str)] = &[
    ("openai", "OPENAI_BASE_URL"),
    ("openai-chat", "OPENAI_BASE_URL"),
    ("anthropic", "ANTHROPIC_BASE_URL"),
    ("gemini", "GOOGLE_GEMINI_BASE_URL"),
    ("ollama", OLLAMA_HOST),
];

const OLLAMA_HOST: &str = "OLLAMA_HOST";
const OLLAMA_PORT: u16 = 11434;

/// The variables of the process, handed in from outside.
#[derive(Clone, Copy)]
pub(super) struct Environment<'a>(pub(super) &'a BTreeMap<String, String>);

/// The values may be secret, so there is nothing to show.
impl fmt::Debug for Environment<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Environment(…)")
    }
}

impl<'a> Environment<'a> {
    /// Returns a variable that is set, without the space around it.
    pub(super) fn get(self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns where a known provider is, and the variable that says so.
    pub(super) fn base_url(self, provider: &str) -> Option<(String, &'static str)> {
        let (_, variable) = ADDRESSES.iter().find(|(name, _)| *name == provider)?;
        let value = self.get(variable)?;
        let url = if *variable == OLLAMA_HOST { ollama_url(value) } else { value.to_owned() };
        Some((url, variable))
    }

    /// Returns which proxies are to be used.
    ///
    /// A web server hands a `Proxy:` header to the programs it starts as `HTTP_PROXY`, so there, which
    /// `REQUEST_METHOD` tells, that spelling is not believed.
    pub(super) fn proxies(self) -> ProxySettings {
        let either = |name: &str| self.get(name).or_else(|| self.get(&name.to_uppercase()));
        let http = if self.0.contains_key("REQUEST_METHOD") {
            self.get("http_proxy")
        } else {
            either("http_proxy")
        };
        ProxySettings {
            http: http.map(str::to_owned),
            https: either("https_proxy").map(str::to_owned),
            all: either("all_proxy").map(str::to_owned),
            no_proxy: either("no_proxy").map(str::to_owned),
        }
    }
}

/// Reads `OLLAMA_HOST` as Ollama does: a host, a port, both, or a URL. An address that means "every
/// address of this machine" is where a server listens, and is reached at the loopback.
fn ollama_url(value: &str) -> String {
    let (scheme, rest, usual_port) = match value.split_once("://") {
        Some(("https", rest)) => ("https", rest, 443),
        Some(("http", rest)) => ("http", rest, 80),
        Some((_, rest)) => ("http", rest, OLLAMA_PORT),
        None => ("http", value, OLLAMA_PORT),
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = host_and_port(authority);
    let host = match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) if address.is_unspecified() => "127.0.0.1".to_owned(),
        Ok(IpAddr::V6(address)) if address.is_unspecified() => "[::1]".to_owned(),
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        Ok(IpAddr::V4(_)) | Err(_) if !host.is_empty() => host.to_owned(),
        Ok(IpAddr::V4(_)) | Err(_) => "127.0.0.1".to_owned(),
    };
    let port = port.unwrap_or(usual_port);
    let path = path.trim_end_matches('/');
    let slash = if path.is_empty() { "" } else { "/" };
    format!("{scheme}://{host}:{port}{slash}{path}/v1")
}

fn host_and_port(authority: &str) -> (&str, Option<u16>) {
    let bare = |host: &str| host.parse::<IpAddr>().is_ok();
    if bare(authority) {
        return (authority, None);
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
        _ => (authority, None),
    };
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn ollama_may_be_anywhere() {
        for (written, url) in [
            ("127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0:8000", "http://127.0.0.1:8000/v1"),
            ("http://0.0.0.0:8000", "http://127.0.0.1:8000/v1"),
            ("[::]:8000", "http://[::1]:8000/v1"),
            ("::", "http://[::1]:11434/v1"),
            ("::1", "http://[::1]:11434/v1"),
            ("[::1]", "http://[::1]:11434/v1"),
            ("[fe80::1]:9", "http://[fe80::1]:9/v1"),
            ("box", "http://box:11434/v1"),
            ("box:9", "http://box:9/v1"),
            (":9", "http://127.0.0.1:9/v1"),
            ("http://box", "http://box:80/v1"),
            ("https://box", "https://box:443/v1"),
            ("https://box:8443/", "https://box:8443/v1"),
            ("https://box/ollama/", "https://box:443/ollama/v1"),
            ("box:port", "http://box:11434/v1"),
        ] {
            assert_eq!(ollama_url(written), url, "{written}");
        }
    }

    #[test]
    fn empty_is_not_set() {
        let variables = variables(&[("A", " \n"), ("B", " x\n")]);
        let environment = Environment(&variables);
        assert_eq!((environment.get("A"), environment.get("B")), (None, Some("x")));
        assert_eq!(format!("{environment:?}"), "Environment(…)");
    }

    #[test]
    fn proxies_have_two_spellings_and_one_is_not_always_believed() {
        let upper =
            [("HTTP_PROXY", "h"), ("HTTPS_PROXY", "s"), ("ALL_PROXY", "a"), ("NO_PROXY", "n")];
        let lower =
            [("http_proxy", "1"), ("https_proxy", "2"), ("all_proxy", "3"), ("no_proxy", "4")];
        let both = [upper, lower].concat();
        let web = [upper.as_slice(), &[("REQUEST_METHOD", "")]].concat();
        let empty = [upper.as_slice(), &[("http_proxy", "")]].concat();
        for (pairs, [http, https, all, no_proxy]) in [
            (&[][..], [None; 4]),
            (&upper, [Some("h"), Some("s"), Some("a"), Some("n")]),
            (&lower, [Some("1"), Some("2"), Some("3"), Some("4")]),
            (&both, [Some("1"), Some("2"), Some("3"), Some("4")]),
            (&web, [None, Some("s"), Some("a"), Some("n")]),
            (&empty, [Some("h"), Some("s"), Some("a"), Some("n")]),
        ] {
            let variables = variables(pairs);
            let found = Environment(&variables).proxies();
            let expected = ProxySettings {
                http: http.map(str::to_owned),
                https: https.map(str::to_owned),
                all: all.map(str::to_owned),
                no_proxy: no_proxy.map(str::to_owned),
            };
            assert_eq!(found, expected, "{pairs:?}");
        }
        let web = [lower.as_slice(), &[("REQUEST_METHOD", "GET")]].concat();
        let variables = variables(&web);
        assert_eq!(Environment(&variables).proxies().http.as_deref(), Some("1"));
    }
}

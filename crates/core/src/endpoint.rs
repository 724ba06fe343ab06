//! The host and port that a URL leads to.
//!
//! Rules, resource accesses and tools use this one notion, and it is that of the HTTP client: the URL
//! standard of the browsers. A domain is compared after IDNA, in lower case and without the dot at the
//! end of a full name; an address is compared as an address, however it is spelled.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use url::{Host, Url};

use crate::address::translated_v4;

/// A host, with its port where that is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    host: Host,
    port: Option<u16>,
}

impl Endpoint {
    /// The text that stands for any host in a [`Resource::Host`](crate::Resource::Host).
    pub const ANYWHERE: &'static str = "*";

    /// Returns the endpoint of a URL; nothing if the URL has no host that can be compared.
    pub fn of(url: &Url) -> Option<Self> {
        // Schemes that browsers do not know keep their host as it is written.
        let host = normal(url.host_str()?)?;
        Some(Self { host, port: url.port_or_known_default() })
    }

    /// Reads a URL, and returns where it leads.
    pub fn of_url(text: &str) -> Option<Self> {
        Self::of(&Url::parse(text.trim()).ok()?)
    }

    /// Reads `host`, `host:port`, `::1` or `[::1]:port`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Some(Self { host: unwrapped(Host::Ipv6(address)), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !text.ends_with(']') => (host, Some(port.parse().ok()?)),
            _ => (text, None),
        };
        Some(Self { host: normal(host)?, port })
    }

    /// Returns the host.
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the port.
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns the host as text, an IPv6 address in brackets.
    pub fn name(&self) -> String {
        self.host.to_string()
    }

    /// Tells whether both may be the same host under different spellings: an address and its
    /// translation to IPv6, or two spellings of this machine.
    pub fn may_be(&self, other: &Self) -> bool {
        self.host == other.host
            || (self.is_this_machine() && other.is_this_machine())
            || self.translated().is_some_and(|address| Some(address) == other.translated())
    }

    /// Tells whether the host is this machine for certain: `localhost`, a loopback address or `0.0.0.0`.
    pub fn is_this_machine(&self) -> bool {
        match &self.host {
            Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
            Host::Ipv4(address) => address.is_loopback() || address.is_unspecified(),
            Host::Ipv6(address) => address.is_loopback() || address.is_unspecified(),
        }
    }

    /// Tells whether the host is an address and no name.
    pub const fn is_address(&self) -> bool {
        !matches!(self.host, Host::Domain(_))
    }

    fn translated(&self) -> Option<IpAddr> {
        match self.host {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => {
                Some(translated_v4(address).map_or(address.into(), IpAddr::from))
            }
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(formatter, "{}:{port}", self.host),
            None => write!(formatter, "{}", self.host),
        }
    }
}

/// Returns a host in the form that is compared. A name with an empty label or with `*`
/// is no host.
fn normal(host: &str) -> Option<Host> {
    let parsed = Host::parse(host).ok()?;
    match parsed {
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(&name);
            let whole = name.split('.').all(|label| !label.is_empty() && !label.contains('*'));
            whole.then(|| Host::Domain(name.to_owned()))
        }
        address => Some(unwrapped(address)),
    }
}

/// Returns the IPv4 address that an IPv6 address only maps.
fn unwrapped(host: Host) -> Host {
    match host {
        Host::Ipv6(address) => address.to_ipv4_mapped().map_or(host, Host::Ipv4),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_of_url_reads_hosts_as_the_client_does() {
        for (url, expected) in [
            ("http://a.b/c", Some("a.b:80")),
            ("https://u:p@Example.COM/x", Some("example.com:443")),
            ("http://[::1]/", Some("[::1]:80")),
            ("http://[::ffff:127.0.0.1]/", Some("127.0.0.1:80")),
            ("https://x@y:9?q", Some("y:9")),
            ("http://evil.example\\@good.example/", Some("evil.example:80")),
            ("http:evil.example/?x=://good.example/", Some("evil.example:80")),
            ("http:/\\evil.example", Some("evil.example:80")),
            (" HTTP://evil%2eexample.\n", Some("evil.example:80")),
            ("http://ｅｖｉｌ。example/", Some("evil.example:80")),
            ("http://e\u{ad}vil.exa\tmple/", Some("evil.example:80")),
            ("http://0x7f.1/", Some("127.0.0.1:80")),
            ("http://2130706433/", Some("127.0.0.1:80")),
            ("ssh://Evil%2EExample:22/x", Some("evil.example:22")),
            ("ftp://h/x", Some("h:21")),
            ("http://evil.example../", None),
            ("no scheme", None),
            ("http://", None),
            ("file:///etc/passwd", None),
            ("mailto:a@evil.example", None),
        ] {
            let found = Endpoint::of_url(url).map(|found| found.to_string());
            assert_eq!(found.as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn endpoint_parse_takes_hosts_with_and_without_ports() {
        for (text, expected) in [
            ("Example.com.", Some("example.com")),
            ("example.com:8080", Some("example.com:8080")),
            ("::1", Some("[::1]")),
            ("[::1]:80", Some("[::1]:80")),
            ("::ffff:10.0.0.1", Some("10.0.0.1")),
            ("010.0.0.1", Some("8.0.0.1")),
            ("bücher.example", Some("xn--bcher-kva.example")),
            ("x:port", None),
            ("a/b", None),
            ("", None),
            (".", None),
            ("1.2.3.4.5", None),
            ("*", None),
            ("*.a", None),
        ] {
            let found = Endpoint::parse(text).map(|found| found.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn endpoint_may_be_another_only_for_translations_and_this_machine() {
        let may_be = |left: &str, right: &str| {
            Endpoint::parse(left).unwrap().may_be(&Endpoint::parse(right).unwrap())
        };
        assert!(may_be("localhost", "127.0.0.1"));
        assert!(may_be("[::1]", "0.0.0.0"));
        assert!(may_be("64:ff9b::7f00:1", "127.0.0.1"));
        assert!(may_be("2002:a00:1::", "10.0.0.1"));
        assert!(!may_be("10.0.0.2", "10.0.0.1"));
        assert!(!may_be("a.example", "b.example"));
    }
}

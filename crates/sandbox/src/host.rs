//! Which hosts a program may talk to, as somebody writes them down.
//!
//! A name covers itself; `*.name` covers every name below it, and not the name itself. Without a port
//! it covers the two that the web uses. Letters may be large or small, and a dot at the end of a name
//! changes nothing.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// The ports that are meant where none is written.
const WEB: [u16; 2] = [80, 443];
const LONGEST_NAME: usize = 253;

/// One entry of a list of allowed hosts: `example.com`, `*.example.com`, `example.com:8080`,
/// `192.0.2.1`, `[2001:db8::1]:8080`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    name: Named,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    Address(IpAddr),
    Exactly(String),
    Below(String),
}

/// A text that names no host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a host: write `example.com`, `*.example.com` or an address, with `:port` if it is \
     not for the web"
)]
pub struct NotAHost(String);

impl FromStr for AllowedHost {
    type Err = NotAHost;

    fn from_str(text: &str) -> Result<Self, NotAHost> {
        let wrong = || NotAHost(text.to_owned());
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Ok(Self { name: Named::Address(address.into()), port: None });
        }
        let (name, port) = split_port(text).ok_or_else(wrong)?;
        if let Some(address) = address(name) {
            return Ok(Self { name: Named::Address(address), port });
        }
        let (make, name): (fn(String) -> Named, _) = match name.strip_prefix("*.") {
            Some(name) => (Named::Below, name),
            None => (Named::Exactly, name),
        };
        let name = plain(name).ok_or_else(wrong)?;
        Ok(Self { name: make(name), port })
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Named::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
            Named::Address(address) => write!(formatter, "{address}"),
            Named::Exactly(name) => formatter.write_str(name),
            Named::Below(name) => write!(formatter, "*.{name}"),
        }?;
        self.port.map_or(Ok(()), |port| write!(formatter, ":{port}"))
    }
}

impl AllowedHost {
    /// Tells whether everything that `other` covers is covered by this one.
    pub fn includes(&self, other: &Self) -> bool {
        let names = match (&self.name, &other.name) {
            (Named::Below(above), Named::Exactly(name)) => lies_below(name, above),
            (Named::Below(above), Named::Below(name)) => name == above || lies_below(name, above),
            (own, theirs) => own == theirs,
        };
        let ports = match (self.port, other.port) {
            (None, Some(port)) => WEB.contains(&port),
            (own, theirs) => own == theirs,
        };
        names && ports
    }

    fn covers(&self, host: &Host) -> bool {
        let name = match (&self.name, &host.name) {
            (Named::Address(own), Destination::Address(theirs)) => own == theirs,
            (Named::Exactly(own), Destination::Name(theirs)) => own == theirs,
            (Named::Below(above), Destination::Name(theirs)) => lies_below(theirs, above),
            _ => false,
        };
        name && self.port.map_or_else(|| WEB.contains(&host.port), |port| port == host.port)
    }

    /// Tells whether it stands for a place near us, said in so many words.
    fn may_be_private(&self) -> bool {
        match &self.name {
            Named::Address(_) => true,
            Named::Exactly(name) => name == "localhost",
            Named::Below(_) => false,
        }
    }
}

/// Where somebody wants to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: Destination,
    pub(crate) port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Address(IpAddr),
    Name(String),
}

impl Host {
    /// Reads `name:port`; the port may be left out where there is a usual one.
    pub(crate) fn parse(text: &str, usual_port: Option<u16>) -> Option<Self> {
        let (name, port) = split_port(text)?;
        let name = match address(name) {
            Some(address) => Destination::Address(address),
            None => Destination::Name(plain(name)?),
        };
        Some(Self { name, port: port.or(usual_port)? })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Destination::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]")?,
            Destination::Address(address) => write!(formatter, "{address}")?,
            Destination::Name(name) => formatter.write_str(name)?,
        }
        write!(formatter, ":{}", self.port)
    }
}

/// How far a host may be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Not at all.
    Nowhere,
    /// To public addresses.
    Public,
    /// To wherever it leads.
    Anywhere,
}

/// The hosts a program may talk to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hosts(Vec<AllowedHost>);

impl Hosts {
    pub(crate) fn parse(list: &[String]) -> Result<Self, NotAHost> {
        list.iter().map(|text| text.parse()).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn reach(&self, host: &Host) -> Reach {
        let covering = self.0.iter().filter(|allowed| allowed.covers(host));
        let reach = |allowed: &AllowedHost| {
            if allowed.may_be_private() { Reach::Anywhere } else { Reach::Public }
        };
        covering.map(reach).max().unwrap_or(Reach::Nowhere)
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        formatter.write_str(&names.join(", "))
    }
}

/// Separates a port from a name; an IPv6 address has to be in brackets.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let end_of_name = text.rfind(']').map_or(0, |end| end + 1);
    let colon = text.get(end_of_name..)?.find(':').map(|colon| end_of_name + colon);
    let Some(colon) = colon else { return Some((text, None)) };
    let port = text.get(colon + 1..)?;
    let digits = (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|port| digits && *port > 0)?;
    Some((text.get(..colon)?, Some(port)))
}

fn address(text: &str) -> Option<IpAddr> {
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => text.parse().ok().filter(IpAddr::is_ipv4),
    }
}

/// Returns a name as it is compared, or nothing where it is none.
fn plain(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let label = |label: &str| !label.is_empty() && label.bytes().all(of_name);
    let right = name.len() <= LONGEST_NAME && name.split('.').all(label);
    right.then(|| name.to_ascii_lowercase())
}

fn lies_below(name: &str, above: &str) -> bool {
    name.strip_suffix(above).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(allowed: &[&str], host: &str) -> Reach {
        let list: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        Hosts::parse(&list).unwrap().reach(&Host::parse(host, None).unwrap())
    }

    #[test]
    fn an_entry_covers_its_name_and_its_ports() {
        for (allowed, host, covered) in [
            ("example.com", "example.com:443", true),
            ("example.com", "example.com:80", true),
            ("example.com", "EXAMPLE.Com.:443", true),
            ("Example.COM.", "example.com:443", true),
            ("example.com", "example.com:22", false),
            ("example.com:22", "example.com:22", true),
            ("example.com:22", "example.com:443", false),
            ("example.com", "www.example.com:443", false),
            ("example.com", "notexample.com:443", false),
            ("example.com", "example.com.evil.org:443", false),
            ("*.example.com", "www.example.com:443", true),
            ("*.example.com", "a.b.example.com:443", true),
            ("*.example.com", "example.com:443", false),
            ("*.example.com", "notexample.com:443", false),
            ("*.example.com:8080", "www.example.com:8080", true),
            ("8.8.8.8", "8.8.8.8:443", true),
            ("8.8.8.8", "8.8.4.4:443", false),
            ("[2001:db8::1]:8", "[2001:db8:0::1]:8", true),
            ("2001:db8::1", "[2001:db8::1]:443", true),
            ("127.0.0.1", "[::ffff:127.0.0.1]:443", false),
        ] {
            assert_eq!(reach(&[allowed], host) != Reach::Nowhere, covered, "{allowed} on {host}");
        }
    }

    #[test]
    fn only_what_is_named_in_so_many_words_may_be_near_us() {
        for (allowed, host, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080", Reach::Anywhere),
            ("localhost", "LOCALHOST:80", Reach::Anywhere),
            ("example.com", "example.com:80", Reach::Public),
            ("*.localhost", "a.localhost:80", Reach::Public),
            // A name for the system's resolver, which reads it as this machine.
            ("0x7f.1", "0x7f.1:80", Reach::Public),
        ] {
            assert_eq!(reach(&[allowed], host), expected, "{allowed} on {host}");
        }
        assert_eq!(reach(&["*.example.com", "localhost"], "localhost:443"), Reach::Anywhere);
    }

    #[test]
    fn what_is_not_a_host_is_said() {
        for text in [
            "",
            "*",
            ".",
            "*.",
            "a..b",
            "exa mple.com",
            "http://example.com",
            "example.com/path",
            "example.com:",
            "example.com:0",
            "example.com:99999",
            "example.com:+1",
            "a*.com",
            "*.*.com",
            "user@example.com",
            "[::1",
            "::1]:4",
            "[127.0.0.1]",
            "exämple.com",
        ] {
            assert!(text.parse::<AllowedHost>().is_err(), "{text:?}");
            assert!(Host::parse(text, Some(80)).is_none(), "{text:?}");
        }
        assert!(
            "nobody@home".parse::<AllowedHost>().unwrap_err().to_string().contains("write `ex")
        );
    }

    #[test]
    fn an_entry_includes_what_is_narrower() {
        let host = |text: &str| text.parse::<AllowedHost>().unwrap();
        for (wide, narrow, expected) in [
            ("example.com", "example.com", true),
            ("example.com", "example.com:443", true),
            ("example.com", "example.com:22", false),
            ("example.com:443", "example.com", false),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "*.example.com", true),
            ("*.example.com", "*.a.example.com", true),
            ("*.a.example.com", "*.example.com", false),
            ("*.example.com", "example.com", false),
            ("a.example.com", "*.example.com", false),
        ] {
            assert_eq!(host(wide).includes(&host(narrow)), expected, "{wide} {narrow}");
        }
    }

    #[test]
    fn hosts_are_shown_as_they_are_written() {
        for text in ["example.com", "*.example.com:8080", "192.0.2.1", "[2001:db8::1]:9"] {
            assert_eq!(text.parse::<AllowedHost>().unwrap().to_string(), text);
        }
    }
}

//! Who may be reached.
//!
//! The question is answered twice. [`Guard::trust`] judges a URL before anything is sent: a host that
//! was allowed is trusted, a literal private address that was not is refused. Every other host is then
//! connected to through [`PublicOnly`], which looks up its name and refuses the whole answer if one
//! address in it is private. The addresses it hands on are the ones that get connected to, so a name
//! that changes its mind between check and use gains nothing.

use std::net::{IpAddr, SocketAddr};

use convoke_core::address::private_range;
use convoke_core::{Endpoint, ToolError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::request::HttpUrl;
use super::settings::HttpSettings;

/// How far a URL is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It may lead to any address.
    Anywhere,
    /// It may lead to public addresses only.
    PublicOnly,
}

/// Decides who may be reached.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    allow_private: bool,
    allowed: Vec<Endpoint>,
}

impl Guard {
    pub(super) fn new(settings: &HttpSettings) -> Self {
        let allowed = settings.allowed_hosts.iter();
        let allowed = allowed.filter_map(|entry| Endpoint::parse(entry.trim()));
        Self { allow_private: settings.allow_private, allowed: allowed.collect() }
    }

    /// Returns a guard that also allows this URL's host, on its port and no other.
    #[must_use]
    pub(super) fn allowing(&self, url: &HttpUrl) -> Self {
        let mut guard = self.clone();
        guard.allowed.extend(url.endpoint());
        guard
    }

    /// Says how far a URL is trusted, or that it must not be followed at all.
    pub(super) fn trust(&self, url: &HttpUrl) -> Result<Trust, ToolError> {
        let endpoint = url.endpoint();
        let is_allowed =
            |entry: &Endpoint| endpoint.as_ref().is_some_and(|endpoint| covers(entry, endpoint));
        if self.allow_private || self.allowed.iter().any(is_allowed) {
            return Ok(Trust::Anywhere);
        }
        match url.address().and_then(PrivateAddress::find) {
            Some(private) => Err(private.refuse(url)),
            None => Ok(Trust::PublicOnly),
        }
    }
}

/// Tells whether an entry of the list of allowed hosts covers an endpoint; without a port it covers any.
fn covers(entry: &Endpoint, endpoint: &Endpoint) -> bool {
    entry.host() == endpoint.host() && entry.port().is_none_or(|port| Some(port) == endpoint.port())
}

/// An address that is not public, and was not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address} is a private address ({range})")]
pub(super) struct PrivateAddress {
    address: IpAddr,
    range: &'static str,
}

impl PrivateAddress {
    fn find(address: IpAddr) -> Option<Self> {
        private_range(address).map(|range| Self { address, range })
    }

    /// Says that a URL is refused because it leads to this address.
    pub(super) fn refuse(self, url: &HttpUrl) -> ToolError {
        let place = url.place();
        let leads_to = match url.address() {
            Some(_) => format!("`{place}` is a private address ({})", self.range),
            None => format!("`{place}` is a private address ({}, {})", self.address, self.range),
        };
        ToolError::permission(format!(
            "Access denied: {leads_to}; to allow it, add `{place}` to tools.http.allowedHosts"
        ))
    }
}

/// A name that has no address.
#[derive(Debug, thiserror::Error)]
#[error("the name `{name}` has no address")]
pub(super) struct NoAddress {
    name: String,
    source: Option<std::io::Error>,
}

/// Looks up names and refuses the ones that lead to private addresses.
#[derive(Debug)]
pub(super) struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses = look_up(&name).await?;
            match addresses.iter().find_map(|address| PrivateAddress::find(address.ip())) {
                Some(private) => Err(private.into()),
                None => Ok(Box::new(addresses.into_iter()) as Addrs),
            }
        })
    }
}

/// Looks up names and takes what it gets.
#[derive(Debug)]
pub(super) struct AnyAddress;

impl Resolve for AnyAddress {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move { Ok(Box::new(look_up(&name).await?.into_iter()) as Addrs) })
    }
}

async fn look_up(name: &Name) -> Result<Vec<SocketAddr>, NoAddress> {
    let nowhere = |source| NoAddress { name: name.as_str().to_owned(), source };
    // The port is filled in by the connector.
    let found = tokio::net::lookup_host((name.as_str(), 0)).await;
    let addresses: Vec<SocketAddr> = found.map_err(|error| nowhere(Some(error)))?.collect();
    if addresses.is_empty() { Err(nowhere(None)) } else { Ok(addresses) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trusted(entries: &[&str], url: &str) -> Option<Trust> {
        let allowed_hosts = entries.iter().map(|entry| (*entry).to_owned()).collect();
        let guard = Guard::new(&HttpSettings { allowed_hosts, ..HttpSettings::default() });
        guard.trust(&HttpUrl::parse(url).unwrap()).ok()
    }

    #[test]
    fn an_entry_covers_its_host_and_its_port() {
        for (entry, url, covered) in [
            ("127.0.0.1", "http://127.0.0.1:8080/", true),
            ("127.0.0.1:8080", "http://127.0.0.1:8080/", true),
            ("127.0.0.1:80", "http://127.0.0.1/", true),
            ("127.0.0.1:443", "https://127.0.0.1/", true),
            ("127.0.0.1:80", "http://127.0.0.1:8080/", false),
            ("127.0.0.1", "http://127.0.0.2/", false),
            ("0x7f.1", "http://127.0.0.1/", true),
            ("::1", "http://[::1]:9/", true),
            ("[::1]", "http://[::1]:9/", true),
            ("[::1]:9", "http://[0:0::1]:9/", true),
            ("[::1]:9", "http://[::1]:8/", false),
            (" LocalHost ", "http://localhost/", true),
            ("localhost.", "http://localhost/", true),
            ("localhost", "http://LOCALHOST.:9/", true),
            ("localhost:1", "http://localhost:2/", false),
            ("localhost:99999", "http://localhost/", false),
            ("localhost:", "http://localhost/", false),
            ("http://localhost", "http://localhost/", false),
            ("", "http://localhost/", false),
        ] {
            let anywhere = trusted(&[entry], url) == Some(Trust::Anywhere);
            assert_eq!(anywhere, covered, "{entry} {url}");
        }
    }

    #[test]
    fn every_spelling_of_a_private_address_is_refused() {
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://0x7f000001/",
            "http://127.1/",
            "http://127.0.0.1./",
            "http://①②⑦.0.0.1/",
            "http://%31%32%37.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://0/",
            "http://169.254.169.254/latest/meta-data/",
        ] {
            assert_eq!(trusted(&[], url), None, "{url}");
        }
        assert_eq!(trusted(&[], "http://example.org/"), Some(Trust::PublicOnly));
        assert_eq!(trusted(&[], "http://8.8.8.8/"), Some(Trust::PublicOnly));
    }

    #[test]
    fn the_refusal_says_how_to_allow_it() {
        let guard = Guard::new(&HttpSettings::default());
        let error = guard.trust(&HttpUrl::parse("http://[::1]:8080/x").unwrap()).unwrap_err();
        assert_eq!(
            error.message,
            "Permission denied: Access denied: `[::1]:8080` is a private address (loopback); \
             to allow it, add `[::1]:8080` to tools.http.allowedHosts"
        );
    }

    #[test]
    fn one_private_url_can_be_allowed_with_its_port() {
        let guard = Guard::new(&HttpSettings::default());
        let url = HttpUrl::parse("http://10.0.0.1/").unwrap();
        let guard = guard.allowing(&url);
        assert_eq!(guard.trust(&url).unwrap(), Trust::Anywhere);
        assert!(guard.trust(&HttpUrl::parse("http://10.0.0.1:81/").unwrap()).is_err());
    }
}

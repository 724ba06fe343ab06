//! Which addresses a server may send us to.
//!
//! A server that is asked for a tool can answer with the address of an authorization server, and that one
//! with more addresses. Whoever runs them could point at the router, at a cloud's metadata service, or at
//! something on this machine that trusts its neighbours. So:
//!
//! - Everything is encrypted, except on this machine.
//! - A server elsewhere names nothing on this machine, and nothing in a private network unless the
//!   settings say so.
//! - The server's own origin is where the user sent us; it may lie anywhere.
//!
//! Names are judged here; the addresses they turn out to have are judged by whoever connects, by the
//! [`Reach`] that is handed on.

use std::net::IpAddr;

use convoke_core::address::private_range;
use url::{Host, Url};

use super::error::{AuthError, said};
use super::http::Reach;
use super::settings::Network;

/// Ranges that are networks of somebody, and not this machine or a service of its host.
const PRIVATE_NETWORKS: [&str; 2] = ["private network", "shared address space"];

/// Judges addresses for one server.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    server: Url,
    network: Network,
}

impl Guard {
    /// Makes a guard for a server, unless the server itself is one that no token may be sent to.
    pub(super) fn new(server: &Url, network: Network) -> Result<Self, AuthError> {
        if server.scheme() != "https" && !(server.scheme() == "http" && is_loopback(server)) {
            return Err(unsafe_url(server, "it is not encrypted, so anybody could read the token"));
        }
        Ok(Self { server: server.clone(), network })
    }

    /// Reads an address that a server named, and judges it.
    pub(super) fn parse(&self, text: &str) -> Result<(Url, Reach), AuthError> {
        let url = Url::parse(text).map_err(|error| AuthError::UnsafeAddress {
            url: said(text),
            why: format!("it is not a URL: {error}"),
        })?;
        let reach = self.reach(&url)?;
        Ok((url, reach))
    }

    /// Says which addresses a request to this URL may be sent to, or that it must not be sent.
    pub(super) fn reach(&self, url: &Url) -> Result<Reach, AuthError> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(unsafe_url(url, "it holds a user name or password"));
        }
        if url.origin() == self.server.origin() {
            return Ok(Reach::Anywhere);
        }
        let among_ourselves = is_loopback(url) && is_loopback(&self.server);
        match url.scheme() {
            "http" | "https" if among_ourselves => Ok(Reach::Loopback),
            "http" => Err(unsafe_url(url, "it is not encrypted")),
            "https" => self.encrypted(url),
            _ => Err(unsafe_url(url, "it is not the address of a web server")),
        }
    }

    fn encrypted(&self, url: &Url) -> Result<Reach, AuthError> {
        let reach = match self.network {
            Network::Public => Reach::Public,
            Network::Private => Reach::Private,
        };
        if is_loopback(url) {
            return Err(unsafe_url(url, "it lies on this machine, and the server does not"));
        }
        match literal(url).filter(|address| !reach.covers(*address)) {
            Some(address) => {
                let range = private_range(address).unwrap_or("not public");
                Err(unsafe_url(url, &format!("it is a private address ({range})")))
            }
            None => Ok(reach),
        }
    }
}

impl Reach {
    /// Tells whether an address is one of those.
    pub(super) fn covers(self, address: IpAddr) -> bool {
        let range = private_range(address);
        match self {
            Self::Anywhere => true,
            Self::Public => range.is_none(),
            Self::Private => range.is_none_or(|range| PRIVATE_NETWORKS.contains(&range)),
            Self::Loopback => range == Some("loopback"),
        }
    }
}

/// Tells whether a URL names this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(_) => literal(url).is_some_and(|address| Reach::Loopback.covers(address)),
        None => false,
    }
}

/// Returns the address in a URL that has one in place of a name.
pub(super) fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(IpAddr::V4(address)),
        Host::Ipv6(address) => Some(IpAddr::V6(address)),
        Host::Domain(_) => None,
    }
}

fn unsafe_url(url: &Url, why: &str) -> AuthError {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    // Fails for addresses that cannot have them.
    shown.set_username("").unwrap_or_default();
    shown.set_password(None).unwrap_or_default();
    AuthError::UnsafeAddress { url: said(shown.as_str()), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(server: &str, network: Network, url: &str) -> Option<Reach> {
        let guard = Guard::new(&Url::parse(server).unwrap(), network).unwrap();
        guard.parse(url).ok().map(|(_, reach)| reach)
    }

    #[test]
    fn a_server_elsewhere_names_only_what_is_public_and_encrypted() {
        let server = "https://mcp.example/mcp";
        for (url, expected) in [
            ("https://login.example/token", Some(Reach::Public)),
            ("https://8.8.8.8/token", Some(Reach::Public)),
            ("https://mcp.example/token", Some(Reach::Anywhere)),
            ("http://mcp.example/token", None),
            ("http://login.example/token", None),
            ("https://localhost/token", None),
            ("https://x.localhost./token", None),
            ("https://127.0.0.1/token", None),
            ("https://[::ffff:127.0.0.1]/token", None),
            ("https://2130706433/token", None),
            ("https://10.0.0.1/token", None),
            ("https://169.254.169.254/latest", None),
            ("https://[fe80::1]/token", None),
            ("http://127.0.0.1:8080/token", None),
            ("https://user:pass@login.example/", None),
            ("file:///etc/passwd", None),
            ("javascript:alert(1)", None),
            ("nonsense", None),
        ] {
            assert_eq!(reach(server, Network::Public, url), expected, "{url}");
        }
    }

    #[test]
    fn private_networks_can_be_allowed_and_this_machine_cannot() {
        let server = "https://mcp.corp/mcp";
        for (url, expected) in [
            ("https://sso.corp/token", Some(Reach::Private)),
            ("https://10.0.0.1/token", Some(Reach::Private)),
            ("https://127.0.0.1/token", None),
            ("https://169.254.169.254/latest", None),
            ("http://10.0.0.1/token", None),
        ] {
            assert_eq!(reach(server, Network::Private, url), expected, "{url}");
        }
    }

    #[test]
    fn a_server_on_this_machine_may_name_its_neighbours() {
        let server = "http://127.0.0.1:3000/mcp";
        for (url, expected) in [
            ("http://127.0.0.1:3001/token", Some(Reach::Loopback)),
            ("http://localhost:3001/token", Some(Reach::Loopback)),
            ("http://127.0.0.1:3000/token", Some(Reach::Anywhere)),
            ("https://login.example/token", Some(Reach::Public)),
            ("http://login.example/token", None),
            ("https://10.0.0.1/token", None),
        ] {
            assert_eq!(reach(server, Network::Public, url), expected, "{url}");
        }
    }

    #[test]
    fn a_server_that_is_not_encrypted_gets_no_token() {
        let error = Guard::new(&Url::parse("http://mcp.example/").unwrap(), Network::Public);
        assert!(error.unwrap_err().to_string().contains("not encrypted"));
    }

    #[test]
    fn a_password_in_a_refused_address_is_not_shown() {
        let guard = Guard::new(&Url::parse("https://mcp.example/").unwrap(), Network::Public);
        let error = guard.unwrap().parse("https://me:hush@x.example/?t=hush").unwrap_err();
        assert!(!error.to_string().contains("hush"), "{error}");
    }
}

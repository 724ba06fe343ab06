//! Which proxy an address is reached through, for messages.
//!
//! The HTTP library decides for itself and does not tell; the same settings are read here in the same way.

use std::net::IpAddr;

use url::{Host, Url};

use crate::transport::ProxySettings;

impl ProxySettings {
    /// Returns the proxy an address is reached through, as it may be shown: without a name or password.
    pub(crate) fn shown_for(&self, url: &Url) -> Option<String> {
        let own = if url.scheme() == "https" { &self.https } else { &self.http };
        let proxy = own.as_ref().or(self.all.as_ref())?;
        if self.is_direct(url) {
            return None;
        }
        let whole = if proxy.contains("://") { proxy.clone() } else { format!("http://{proxy}") };
        let proxy = Url::parse(&whole).ok()?;
        let port = proxy.port_or_known_default().map(|port| format!(":{port}"));
        Some(format!("{}{}", proxy.host_str()?, port.unwrap_or_default()))
    }

    fn is_direct(&self, url: &Url) -> bool {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain("localhost")) | None => return true,
            Some(Host::Domain(_)) => None,
        };
        if address.is_some_and(|address| address.is_loopback()) {
            return true;
        }
        let host = url.host_str().unwrap_or_default();
        let entries = self.no_proxy.iter().flat_map(|list| list.split(',')).map(str::trim);
        entries.filter(|entry| !entry.is_empty()).any(|entry| match address {
            _ if entry == "*" => true,
            Some(address) => holds(entry, address),
            None => {
                let domain = entry.trim_start_matches('.');
                let above = host.strip_suffix(domain);
                above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
            }
        })
    }
}

/// Tells whether an entry, an address or a network such as `10.0.0.0/8`, holds an address.
fn holds(entry: &str, address: IpAddr) -> bool {
    let (network, length) = match entry.split_once('/') {
        Some((network, length)) => (network, length.parse::<u32>().ok()),
        None => (entry, Some(128)),
    };
    let shared = |one: u128, other: u128, bits: u32| {
        let length = length.map(|length| length.min(bits));
        length.is_some_and(|length| {
            length == 0 || (one ^ other).checked_shr(bits - length).unwrap_or_default() == 0
        })
    };
    match (network.parse(), address) {
        (Ok(IpAddr::V4(one)), IpAddr::V4(other)) => {
            shared(u32::from(one).into(), u32::from(other).into(), 32)
        }
        (Ok(IpAddr::V6(one)), IpAddr::V6(other)) => shared(one.into(), other.into(), 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_of_an_address_is_known_without_its_password() {
        let settings = ProxySettings {
            http: Some("http://me:hush@plain:3128".to_owned()),
            https: None,
            all: Some("general:8080".to_owned()),
            no_proxy: Some(
                "direct.test, .inner.test,10.0.0.0/8, 192.0.2.7,2001:db8::/32".to_owned(),
            ),
        };
        for (url, proxy) in [
            ("http://far.test/v1", Some("plain:3128")),
            ("https://far.test/v1", Some("general:8080")),
            ("https://direct.test", None),
            ("https://a.direct.test", None),
            ("https://indirect.test", Some("general:8080")),
            ("https://a.inner.test", None),
            ("https://10.1.2.3", None),
            ("https://11.1.2.3", Some("general:8080")),
            ("https://192.0.2.7", None),
            ("https://192.0.2.8", Some("general:8080")),
            ("https://[2001:db8::1]", None),
            ("https://[2001:db9::1]", Some("general:8080")),
            ("http://localhost:1", None),
            ("http://127.0.0.1:1", None),
            ("http://[::1]:1", None),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(settings.shown_for(&url).as_deref(), proxy, "{url}");
        }
        let nothing = ProxySettings::default();
        assert_eq!(nothing.shown_for(&Url::parse("https://far.test").unwrap()), None);
        let everything = ProxySettings { no_proxy: Some("*".to_owned()), ..settings };
        assert_eq!(everything.shown_for(&Url::parse("https://far.test").unwrap()), None);
    }
}

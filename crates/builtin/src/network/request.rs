//! What may be sent: URLs, methods and headers that were checked when they were read.
//!
//! The three types are made from text in one place each, so that a request built of them has nothing
//! left to check. They deserialise, which means that a call with a bad one is turned down before
//! anybody is asked to allow it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use convoke_core::{Endpoint, Resource};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use url::{Host, Url};

/// Headers that describe the connection rather than the request; the client writes them itself.
const OWN_HEADERS: [&str; 10] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];

/// One request, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: HttpMethod,
    pub(crate) url: HttpUrl,
    pub(crate) headers: HttpHeaders,
    pub(crate) body: Option<String>,
}

impl HttpRequest {
    /// Makes a request that only asks.
    pub(crate) fn get(url: HttpUrl) -> Self {
        let method = HttpMethod(Method::GET);
        Self { method, url, headers: HttpHeaders::default(), body: None }
    }
}

/// An absolute `http` or `https` URL with a host and without credentials.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct HttpUrl(Url);

impl HttpUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text.trim()).map_err(|error| {
            let hint = if text.contains("://") { "" } else { "; it has to start with https://" };
            format!("`{text}` is not a URL ({error}){hint}")
        })?;
        Self::check(url)
    }

    /// Returns the URL that `reference` means, seen from this one.
    pub(super) fn join(&self, reference: &str) -> Result<Self, String> {
        let url = self.0.join(reference).map_err(|error| format!("`{reference}` ({error})"))?;
        Self::check(url)
    }

    /// Returns this URL with its path continued and its query replaced.
    pub(crate) fn with_path_and_query(&self, path: &str, query: &[(&str, &str)]) -> Self {
        let mut url = self.0.clone();
        let start = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{start}/{path}"));
        url.set_fragment(None);
        url.set_query(None);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Self(url)
    }

    fn check(mut url: Url) -> Result<Self, String> {
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme();
            return Err(format!(
                "`url`: the scheme `{scheme}` is not supported; use http or https"
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "it must not contain a user name or password; use an `Authorization` header"
                    .to_owned(),
            );
        }
        if url.host_str().is_none_or(|host| host.trim_matches('.').is_empty()) {
            return Err("it has no host".to_owned());
        }
        url.set_fragment(None);
        Ok(Self(url))
    }

    pub(crate) const fn as_url(&self) -> &Url {
        &self.0
    }

    /// Returns host and port as they are compared; nothing if the name of the host is broken.
    pub(crate) fn endpoint(&self) -> Option<Endpoint> {
        Endpoint::of(&self.0)
    }

    /// Returns the host and port for rules and events.
    pub(crate) fn resource(&self) -> Resource {
        let endpoint = self.endpoint().map(|endpoint| endpoint.to_string());
        Resource::Host(endpoint.unwrap_or_else(|| Endpoint::ANYWHERE.to_owned()))
    }

    /// Returns the host for messages: IPv6 without brackets.
    pub(crate) fn host_name(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        host.trim_matches(['[', ']']).trim_end_matches('.').to_owned()
    }

    /// Returns the address, where the host is one.
    pub(super) fn address(&self) -> Option<IpAddr> {
        match self.0.host()? {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
        }
    }

    pub(super) fn port(&self) -> u16 {
        // Both schemes have a default, so there always is one.
        self.0.port_or_known_default().unwrap_or_default()
    }

    /// Returns host and port, for messages.
    pub(crate) fn place(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        format!("{}:{}", host.trim_end_matches('.'), self.port())
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    pub(super) fn same_origin(&self, other: &Self) -> bool {
        self.0.origin() == other.0.origin()
    }
}

impl TryFrom<String> for HttpUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).map_err(|why| format!("`url`: {why}"))
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A method that asks a server for something; upper case.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct HttpMethod(pub(super) Method);

impl HttpMethod {
    pub(crate) const GET: Self = Self(Method::GET);
    pub(crate) const POST: Self = Self(Method::POST);
}

impl TryFrom<String> for HttpMethod {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let upper = text.trim().to_ascii_uppercase();
        match Method::from_bytes(upper.as_bytes()) {
            Ok(Method::CONNECT | Method::TRACE) => {
                Err(format!("`method`: `{upper}` is not allowed"))
            }
            Ok(method) => Ok(Self(method)),
            Err(_) => Err(format!("`method`: `{text}` is not an HTTP method, such as GET or PUT")),
        }
    }
}

impl fmt::Display for HttpMethod {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Headers a caller may set.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>")]
pub(crate) struct HttpHeaders(pub(super) HeaderMap);

impl HttpHeaders {
    /// Adds one header, unless the caller must not.
    pub(crate) fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("{name:?} is not a header name (letters, digits and `-`)"))?;
        if OWN_HEADERS.contains(&parsed.as_str()) {
            return Err(format!("`{name}` is set by the client and cannot be given"));
        }
        // The value may be a secret, so it is not repeated.
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
            format!("the value of `{name}` contains a line break or control character")
        })?;
        self.0.append(parsed, value);
        Ok(())
    }
}

impl TryFrom<BTreeMap<String, String>> for HttpHeaders {
    type Error = String;

    fn try_from(given: BTreeMap<String, String>) -> Result<Self, String> {
        let mut headers = Self::default();
        for (name, value) in &given {
            headers.add(name, value).map_err(|why| format!("`headers`: {why}"))?;
        }
        Ok(headers)
    }
}

impl fmt::Debug for HttpHeaders {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests;

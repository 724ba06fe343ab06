//! A provider made ready for requests: its address and headers checked once, its secrets known so that
//! no error shows them.

use std::fmt;

use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use url::{Host, Url};

use crate::error::{ModelError, ModelErrorKind};
use crate::failure::{Doubt, Failure, explain};
use crate::provider::Provider;
use crate::transport::SetUpError;
use crate::wire::{Complaint, Wire};

/// The longest message of an error that is passed on.
const LONGEST_MESSAGE: usize = 2_000;
/// What is shorter than this is no secret worth hiding, and hiding it would garble messages.
const SHORTEST_SECRET: usize = 8;

/// A provider made ready.
pub(crate) struct Endpoint {
    pub(crate) provider: Provider,
    pub(crate) wire: &'static dyn Wire,
    /// The headers of every request.
    pub(crate) headers: HeaderMap,
    /// The address, without a slash at the end.
    base: String,
    /// The same for people: nothing secret in it.
    shown: String,
    /// Its host and port.
    place: String,
    is_local: bool,
    secrets: Vec<String>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.provider.fmt(formatter)
    }
}

impl Endpoint {
    pub(crate) fn new(provider: Provider, wire: &'static dyn Wire) -> Result<Self, ModelError> {
        let url = check_address(&provider)?;
        let secrets = secrets_of(&provider, &url);
        let headers = headers_of(&provider, wire)?;
        Ok(Self {
            wire,
            headers,
            base: provider.base_url.trim().trim_end_matches('/').to_owned(),
            shown: shown(&url),
            place: place_of(&url),
            is_local: is_local(&url),
            secrets,
            provider,
        })
    }

    /// Returns the address of something the provider offers.
    pub(crate) fn url(&self, path: &str) -> Result<Url, ModelError> {
        Url::parse(&format!("{}/{path}", self.base)).map_err(|error| {
            self.error(ModelErrorKind::Rejected, format!("`{path}` makes no address: {error}"))
        })
    }

    /// Returns the address of the provider, as it was given.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Makes an error of this provider: without its secrets, not too long, with a hint.
    pub(crate) fn error(&self, kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        let message = shorten(&self.without_secrets(&message.into()), LONGEST_MESSAGE);
        let error = ModelError::new(kind, &self.provider.name, message);
        match self.hint(kind) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    /// Makes an error of what the provider said.
    pub(crate) fn complain(&self, complaint: Complaint) -> ModelError {
        let Complaint { kind, message, repeatable } = complaint;
        let message = if message.is_empty() { "no reason was given".to_owned() } else { message };
        ModelError { repeatable, ..self.error(kind, message) }
    }

    /// Makes an error of what the HTTP library said on the way to the provider, or to its proxy.
    pub(crate) fn fail_through(&self, error: reqwest::Error, proxy: Option<&str>) -> ModelError {
        let place = match proxy {
            Some(proxy) => format!("{} through the proxy {proxy}", self.place),
            None => self.place.clone(),
        };
        let failure = explain(error, &place);
        let stale = failure.hung_up;
        let failed = ModelError { stale, ..self.failed(failure) };
        match (failed.kind, proxy) {
            (ModelErrorKind::Unreachable | ModelErrorKind::Cut, Some(proxy)) => failed.hint(format!(
                "is {proxy} the right proxy? It is usually set in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY; \
                 NO_PROXY names what is reached directly"
            )),
            _ => failed,
        }
    }

    /// Makes an error of what the HTTP library said.
    pub(crate) fn fail(&self, error: reqwest::Error) -> ModelError {
        self.failed(explain(error, &self.place))
    }

    fn failed(&self, failure: Failure) -> ModelError {
        let mut error = self.error(failure.kind, failure.message);
        (error.repeatable, error.not_running) = (failure.repeatable, failure.not_running);
        match failure.doubt {
            None => error,
            Some(Doubt::Certificate) => error.hint(
                "check the certificate of the server; a certificate authority of your own has to be \
                 given as an extra root certificate",
            ),
            Some(Doubt::Secure) => error.hint("does the server speak https?"),
            Some(Doubt::Http) => error.hint(format!(
                "is {} the right address? It may have to begin with https",
                self.shown
            )),
        }
    }

    /// Makes an error of settings that make no HTTP client.
    pub(crate) fn unusable(&self, error: &SetUpError) -> ModelError {
        let mut error = self.error(ModelErrorKind::Unreachable, error.to_string());
        (error.hint, error.repeatable) = (None, false);
        error
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Returns the address as it may be shown.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    fn without_secrets(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }

    fn hint(&self, kind: ModelErrorKind) -> Option<String> {
        let Provider { name, key, key_variable, .. } = &self.provider;
        Some(match kind {
            ModelErrorKind::Authentication => match (key, key_variable) {
                (None, Some(variable)) => format!("no key is configured; set {variable}"),
                (None, None) => "no key is configured".to_owned(),
                (Some(_), Some(variable)) => {
                    format!("check the key, usually in {variable}, and what it may be used for")
                }
                (Some(_), None) => "check the key and what it may be used for".to_owned(),
            },
            ModelErrorKind::NotFound => {
                format!("check the name of the model and the address, {}", self.shown)
            }
            ModelErrorKind::RateLimited => {
                "wait a moment, or send fewer requests at a time".to_owned()
            }
            ModelErrorKind::Quota => format!("check your plan and billing at {name}"),
            ModelErrorKind::ContextTooLong => {
                "make the conversation shorter, or use a model with a larger window".to_owned()
            }
            ModelErrorKind::Unreachable if self.is_local => {
                format!("is a server running at {}?", self.place)
            }
            ModelErrorKind::Unreachable => {
                "check the network, the address and the proxy settings".to_owned()
            }
            ModelErrorKind::Server | ModelErrorKind::Cut => {
                "the trouble is on the other side; try again later".to_owned()
            }
            ModelErrorKind::Silent => {
                "the server may have too much to do; try again later, or allow it more time"
                    .to_owned()
            }
            _ => return None,
        })
    }
}

/// Shortens a text and says so.
pub(crate) fn shorten(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}… ({} bytes)", text.get(..end).unwrap_or(text), text.len()),
        None => text.to_owned(),
    }
}

fn check_address(provider: &Provider) -> Result<Url, ModelError> {
    let wrong = |what: &str| {
        Err(ModelError::new(ModelErrorKind::Rejected, &provider.name, what)
            .hint("set the base URL to an address such as https://example.com/v1"))
    };
    let Ok(url) = Url::parse(provider.base_url.trim()) else {
        return wrong("the base URL is not a URL");
    };
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return wrong("the base URL is not an http or https address");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return wrong("the base URL has a query or a fragment; a path is added at its end");
    }
    Ok(url)
}

fn headers_of(provider: &Provider, wire: &dyn Wire) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("convoke/", env!("CARGO_PKG_VERSION"))),
    );
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    // A compressed stream comes in larger pieces, so later.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let of_wire = wire.headers(provider.key.as_deref());
    let own = provider.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in of_wire.iter().map(|(name, value)| (*name, value.as_str())).chain(own) {
        let wrong = |what: &str| {
            ModelError::new(
                ModelErrorKind::Rejected,
                &provider.name,
                format!("the header `{name}` has {what} that cannot be sent"),
            )
            .hint("check the key and the headers for line breaks and other stray characters")
        };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("a name"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong("a value"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Returns whatever no message may show: the key, and each word of the provider's own headers.
fn secrets_of(provider: &Provider, url: &Url) -> Vec<String> {
    let headers = provider.headers.iter().flat_map(|(_, value)| value.split_whitespace());
    let mut secrets: Vec<String> = provider
        .key
        .as_deref()
        .into_iter()
        .chain(headers)
        .chain(url.password())
        .filter(|secret| secret.len() >= SHORTEST_SECRET)
        .map(str::to_owned)
        .collect();
    // A secret inside another must not spoil it.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
}

/// Leaves out who asks, which may be secret.
fn shown(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), place_of(url), url.path().trim_end_matches('/'))
}

fn place_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
        Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unspecified(),
        None => false,
    }
}

//! The HTTP clients all providers share.
//!
//! A transport is its settings until the first request. What a request does not need is not made for it:
//! a server at an `http` address is reached by a client that has never loaded a certificate, and the
//! client for `https` is made once, when it is first needed. Nothing is read from the environment;
//! proxies and certificates come in through the builder.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, NoProxy, Proxy};
use tokio::sync::OnceCell;
use url::Url;

use crate::gate::Gates;
use crate::retry::{Chance, RetryPolicy};

/// Connections to providers, and what holds for all of them: timeouts, repeats, rate limits. Cheap to
/// clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Transport {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: TransportBuilder,
    gates: Gates,
    plain: OnceCell<Client>,
    secure: OnceCell<Client>,
}

/// How long to wait for what. An answer as a whole may take as long as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection stands, with TLS.
    pub connect: Duration,
    /// From sending a request until the answer begins. A model may read and think for long before it says
    /// its first word, and bills that also where nobody waits for it any more; so this is much longer than
    /// the pauses of an answer, and a request that is given up for it is not repeated.
    pub first_byte: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_mins(10),
            idle: Duration::from_mins(2),
        }
    }
}

/// Which proxy to use for what. Addresses of this machine are always reached directly.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// The proxy for `http` addresses.
    pub http: Option<String>,
    /// The proxy for `https` addresses.
    pub https: Option<String>,
    /// The proxy for what has none of its own.
    pub all: Option<String>,
    /// What is reached directly: hosts, domains, addresses and networks, with commas between them.
    pub no_proxy: Option<String>,
}

/// The address of a proxy may hold a password, so only its presence is shown.
impl fmt::Debug for ProxySettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |proxy: &Option<String>| proxy.as_ref().map(|_| "…");
        formatter
            .debug_struct("ProxySettings")
            .field("http", &shown(&self.http))
            .field("https", &shown(&self.https))
            .field("all", &shown(&self.all))
            .field("no_proxy", &self.no_proxy)
            .finish()
    }
}

/// Makes a [`Transport`].
#[derive(Clone, Debug)]
pub struct TransportBuilder {
    proxy: ProxySettings,
    /// Certificates in PEM, one text for each file they came from.
    extra_roots: Vec<Vec<u8>>,
    timeouts: Timeouts,
    longest_answer: u64,
    retry: RetryPolicy,
    chance: Chance,
}

/// The longest answer that is read: far more than any model says, far less than the memory.
const LONGEST_ANSWER: u64 = 64 * 1024 * 1024;

impl Default for TransportBuilder {
    fn default() -> Self {
        Self {
            proxy: ProxySettings::default(),
            extra_roots: Vec::new(),
            timeouts: Timeouts::default(),
            longest_answer: LONGEST_ANSWER,
            retry: RetryPolicy::default(),
            chance: Chance::default(),
        }
    }
}

impl TransportBuilder {
    /// Sets the proxies; without this there are none.
    #[must_use]
    pub fn proxy(mut self, proxy: ProxySettings) -> Self {
        self.proxy = proxy;
        self
    }

    /// Trusts further certificates, in PEM, beside those of the system.
    #[must_use]
    pub fn extra_root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.extra_roots.push(pem.into());
        self
    }

    /// Sets the timeouts.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets how many bytes of one answer are read before it is given up; 64 MiB without this. All of its
    /// stream counts, as it is after it was decompressed.
    #[must_use]
    pub fn longest_answer(mut self, bytes: u64) -> Self {
        self.longest_answer = bytes;
        self
    }

    /// Sets when and how often a request is repeated.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets where chance comes from: numbers from 0 up to, but not, 1.
    #[must_use]
    pub fn chance(mut self, source: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.chance = Chance::new(source);
        self
    }

    /// Makes the transport. Nothing is loaded or opened.
    pub fn build(self) -> Transport {
        let gates = Gates::new(self.chance.clone());
        let (plain, secure) = (OnceCell::new(), OnceCell::new());
        Transport { inner: Arc::new(Inner { settings: self, gates, plain, secure }) }
    }
}

impl Default for Transport {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// The settings do not make a client. The text names what is wrong and shows no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SetUpError(String);

impl Transport {
    /// Starts to make a transport.
    pub fn builder() -> TransportBuilder {
        TransportBuilder::default()
    }

    pub(crate) fn timeouts(&self) -> Timeouts {
        self.inner.settings.timeouts
    }

    pub(crate) fn longest_answer(&self) -> u64 {
        self.inner.settings.longest_answer
    }

    pub(crate) fn retry(&self) -> RetryPolicy {
        self.inner.settings.retry
    }

    pub(crate) fn chance(&self) -> Chance {
        self.inner.settings.chance.clone()
    }

    /// Returns the proxy an address is reached through, as it may be shown.
    pub(crate) fn proxy_for(&self, url: &Url) -> Option<String> {
        self.inner.settings.proxy.shown_for(url)
    }

    pub(crate) fn gates(&self) -> &Gates {
        &self.inner.gates
    }

    /// Returns the client that reaches an address, and makes it if it is the first to.
    pub(crate) async fn client(&self, url: &Url) -> Result<&Client, SetUpError> {
        let settings = &self.inner.settings;
        if !settings.needs_certificates(url) {
            return self.inner.plain.get_or_try_init(|| async { settings.build_plain() }).await;
        }
        let build = || async {
            let settings = settings.clone();
            // Certificates are read from files.
            tokio::task::spawn_blocking(move || settings.build_secure()).await.unwrap_or_else(
                |_| Err(SetUpError("the certificates could not be read".to_owned())),
            )
        };
        self.inner.secure.get_or_try_init(build).await
    }
}

impl TransportBuilder {
    fn needs_certificates(&self, url: &Url) -> bool {
        let proxy = self.proxy.http.as_ref().or(self.proxy.all.as_ref());
        url.scheme() == "https" || proxy.is_some_and(|proxy| proxy.starts_with("https:"))
    }

    fn build_plain(&self) -> Result<Client, SetUpError> {
        build(self.common()?.tls_certs_only([]))
    }

    fn build_secure(&self) -> Result<Client, SetUpError> {
        let mut roots = Vec::new();
        for pem in &self.extra_roots {
            let read = Certificate::from_pem_bundle(pem).ok().filter(|read| !read.is_empty());
            roots.extend(read.ok_or_else(|| {
                SetUpError("the extra root certificates are not certificates in PEM".to_owned())
            })?);
        }
        let builder = self.common()?;
        build(if roots.is_empty() { builder } else { builder.tls_certs_merge(roots) })
    }

    fn common(&self) -> Result<ClientBuilder, SetUpError> {
        // Fails if there is a provider already, and then that one is used.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut builder = Client::builder()
            // A key must not follow a redirect to somewhere else.
            .redirect(Policy::none())
            // What is repeated is decided by us, where it can be said.
            .retry(reqwest::retry::never())
            .referer(false)
            // Nobody is asked to compress (see the headers), but some proxies do it unasked.
            .gzip(true)
            .tcp_nodelay(true)
            .connect_timeout(self.timeouts.connect)
            .no_proxy();
        for proxy in self.proxies()? {
            builder = builder.proxy(proxy);
        }
        Ok(builder)
    }

    fn proxies(&self) -> Result<Vec<Proxy>, SetUpError> {
        let direct = self.proxy.no_proxy.as_deref().unwrap_or_default();
        let direct = NoProxy::from_string(&format!("localhost,127.0.0.0/8,::1,{direct}"));
        let make = |which: &str, proxy: reqwest::Result<Proxy>| match proxy {
            Ok(proxy) => Ok(proxy.no_proxy(direct.clone())),
            Err(_) => Err(SetUpError(format!("the address of the {which} proxy is not a URL"))),
        };
        let ProxySettings { http, https, all, .. } = &self.proxy;
        let mut proxies = Vec::new();
        if let Some(url) = http {
            proxies.push(make("http", Proxy::http(url))?);
        }
        if let Some(url) = https {
            proxies.push(make("https", Proxy::https(url))?);
        }
        if let Some(url) = all {
            proxies.push(make("general", Proxy::all(url))?);
        }
        Ok(proxies)
    }
}

fn build(builder: ClientBuilder) -> Result<Client, SetUpError> {
    builder.build().map_err(|error| {
        let root = crate::failure::root_of(&error);
        SetUpError(format!("the HTTP client could not be set up: {root}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[tokio::test]
    async fn a_plain_address_loads_no_certificates_and_clients_are_shared() {
        let transport = Transport::default();
        let first = transport.client(&url("http://127.0.0.1:1/v1")).await.unwrap();
        assert!(transport.inner.secure.get().is_none());
        let again = transport.clone();
        let second = again.client(&url("http://localhost:2/")).await.unwrap();
        assert!(std::ptr::eq(first, second));
    }

    #[tokio::test]
    async fn wrong_settings_are_named_and_show_no_secret() {
        let proxy =
            ProxySettings { all: Some("http://me:hush@[".to_owned()), ..Default::default() };
        let transport = Transport::builder().proxy(proxy).build();
        let error = transport.client(&url("http://example.test")).await.unwrap_err();
        assert_eq!(error.to_string(), "the address of the general proxy is not a URL");
        assert!(!format!("{transport:?}").contains("hush"));

        let transport = Transport::builder().extra_root_certificates("nonsense").build();
        let error = transport.client(&url("https://example.test")).await.unwrap_err();
        assert_eq!(error.to_string(), "the extra root certificates are not certificates in PEM");
        assert!(transport.client(&url("http://example.test")).await.is_ok());
    }
}

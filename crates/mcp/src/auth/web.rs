//! HTTP as it is: the requests of this module on real connections.
//!
//! No redirect is followed here, nothing is read from the environment, an answer is cut off at a limit and
//! a request at a deadline. A name is looked up, and if one of its addresses is out of reach the request
//! is not sent; the addresses that were looked at are the ones that get connected to.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client};
use tokio::sync::OnceCell;
use url::Url;

use super::guard::literal;
use super::http::{Http, HttpError, HttpRequest, HttpResponse, Method, Reach};

/// How requests are made.
#[derive(Clone, Debug)]
pub struct WebSettings {
    /// How long a request may take, with its answer.
    pub deadline: Duration,
    /// How many bytes of an answer are read.
    pub longest_answer: usize,
    /// How the client introduces itself.
    pub user_agent: String,
    /// Certificates in PEM that are trusted beside those of the system, one text for each file.
    pub extra_roots: Vec<Vec<u8>>,
}

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            longest_answer: 1024 * 1024,
            user_agent: concat!("convoke/", env!("CARGO_PKG_VERSION")).to_owned(),
            extra_roots: Vec::new(),
        }
    }
}

/// Sends requests over the network. Nothing is loaded or opened before the first one.
#[derive(Debug, Default)]
pub struct Web {
    settings: WebSettings,
    public: OnceCell<Client>,
    private: OnceCell<Client>,
    loopback: OnceCell<Client>,
    anywhere: OnceCell<Client>,
}

impl Web {
    /// Makes a client.
    pub fn new(settings: WebSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    async fn client(&self, reach: Reach) -> Result<&Client, HttpError> {
        let cell = match reach {
            Reach::Public => &self.public,
            Reach::Private => &self.private,
            Reach::Loopback => &self.loopback,
            Reach::Anywhere => &self.anywhere,
        };
        let settings = self.settings.clone();
        // Certificates are read from files.
        let build = || async move {
            let built = tokio::task::spawn_blocking(move || build(reach, &settings));
            built.await.unwrap_or_else(|_| Err(HttpError::new("the client could not be set up")))
        };
        cell.get_or_try_init(build).await
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        request.reach.admit(&request.url).map_err(HttpError::new)?;
        let client = self.client(request.reach).await?;
        let mut outgoing = match request.method {
            Method::Get => client.get(request.url),
            Method::Post => client.post(request.url).body(request.body.expose().to_owned()),
        };
        for (name, value) in &request.headers {
            outgoing = outgoing.header(name, value.expose());
        }
        let mut response = outgoing.send().await.map_err(explain)?;
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), text(value.as_bytes())));
        let (status, headers) = (response.status().as_u16(), headers.collect());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(explain)? {
            if body.len() + chunk.len() > self.settings.longest_answer {
                let limit = self.settings.longest_answer;
                return Err(HttpError::new(format!("the answer is longer than {limit} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(HttpResponse { status, headers, body })
    }
}

#[async_trait]
impl Http for Web {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let deadline = self.settings.deadline;
        tokio::time::timeout(deadline, self.exchange(request)).await.unwrap_or_else(|_| {
            Err(HttpError::new(format!("no answer within {} s", deadline.as_secs())))
        })
    }
}

fn build(reach: Reach, settings: &WebSettings) -> Result<Client, HttpError> {
    // Fails if there is a provider already, and then that one is used.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut roots = Vec::new();
    for pem in &settings.extra_roots {
        let read = Certificate::from_pem_bundle(pem).ok().filter(|read| !read.is_empty());
        roots.extend(read.ok_or_else(|| {
            HttpError::new("the extra root certificates are not certificates in PEM")
        })?);
    }
    let builder = Client::builder()
        .user_agent(&settings.user_agent)
        // A token must not follow a redirect to somewhere else.
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .dns_resolver(Within(reach));
    let builder = if roots.is_empty() { builder } else { builder.tls_certs_merge(roots) };
    builder.build().map_err(explain)
}

/// Says why a request failed, by its root. What stands above it would name the URL, with what is in it.
fn explain(error: reqwest::Error) -> HttpError {
    let error = error.without_url();
    let mut root: &dyn std::error::Error = &error;
    while let Some(source) = root.source() {
        root = source;
    }
    HttpError::new(root.to_string())
}

/// An address that a name has and must not have.
#[derive(Debug, thiserror::Error)]
#[error("it leads to {0}, and addresses there are out of bounds for this server")]
struct OutOfReach(IpAddr);

impl Reach {
    /// Refuses a URL that has an address out of reach in place of a name.
    pub(crate) fn admit(self, url: &Url) -> Result<(), String> {
        let outside = literal(url).filter(|address| !self.covers(*address));
        outside.map_or(Ok(()), |address| Err(OutOfReach(address).to_string()))
    }
}

/// Looks up names and refuses those that lead out of reach.
#[derive(Debug)]
pub(crate) struct Within(pub(crate) Reach);

impl Resolve for Within {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            // The port is filled in by the connector.
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            match found.iter().find(|address| !reach.covers(address.ip())) {
                Some(address) => Err(OutOfReach(address.ip()).into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_out_of_reach() {
        let web = Web::default();
        for (url, reach) in [
            ("http://localhost:9/", Reach::Public),
            ("http://localhost:9/", Reach::Private),
            ("http://127.0.0.1:9/", Reach::Public),
        ] {
            let request = HttpRequest::get(Url::parse(url).unwrap(), reach);
            let error = web.send(request).await.unwrap_err();
            assert!(error.to_string().contains("out of bounds"), "{url}: {error}");
        }
    }
}

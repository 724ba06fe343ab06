//! The login of the product behind the HTTP client of the protocol library, and a person who says yes.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use convoke_mcp::auth::{
    AuthSettings, Consent, Grant, KnownClient, MemoryStore, OAuth, Retry, Secret, SigningKey, Web,
};
use convoke_tool::SystemClock;
use futures_util::stream::BoxStream;
use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::sync::watch;
use url::Url;

use crate::Task;

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// The document that the suite knows this client by.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// An HTTP client that logs in when it is told to.
#[derive(Clone)]
pub(crate) struct Authorized {
    http: Client,
    oauth: Arc<OAuth>,
    listens: watch::Sender<bool>,
}

impl Authorized {
    /// Makes a client with what the scenario hands out.
    pub(crate) fn new(task: &Task) -> Result<Self, Box<dyn Error>> {
        let text = |name: &str| task.context.get(name).and_then(|value| value.as_str());
        let mut settings = AuthSettings::new("conformance", Url::parse(&task.url)?);
        settings.client_metadata_url = Some(Url::parse(DOCUMENT)?);
        settings.client = text("client_id").map(|id| KnownClient {
            id: id.to_owned(),
            secret: text("client_secret").map(Secret::new),
            issuer: text("issuer").map(str::to_owned),
        });
        if let Some(pem) = text("private_key_pem") {
            settings.grant = Grant::ClientKey(SigningKey::from_pem(&Secret::new(pem))?);
        } else if task.scenario == "auth/client-credentials-basic" {
            settings.grant = Grant::ClientSecret;
        }
        let http = Client::builder().no_proxy().build()?;
        let browser: Arc<dyn Consent> = Arc::new(Browser(http.clone()));
        let oauth = OAuth::new(
            settings,
            Arc::new(MemoryStore::default()),
            Some(browser),
            Arc::new(SystemClock),
            Arc::new(Web::default()),
        );
        Ok(Self { http, oauth: Arc::new(oauth), listens: watch::Sender::default() })
    }

    /// Returns what becomes true when the server can say something unasked, or has said that it never
    /// will.
    pub(crate) fn listens(&self) -> watch::Receiver<bool> {
        self.listens.subscribe()
    }

    async fn pass(&self) -> Result<Pass, Failure> {
        Ok(Pass(self.oauth.headers().await.map_err(io::Error::other)?))
    }

    /// Takes a failure, and gives it back unless there is a new token now.
    async fn turned_away(&self, failure: Failure, sent: &Pass) -> Result<(), Failure> {
        let (status, challenge) = match &failure {
            StreamableHttpError::AuthRequired(error) => (401, &error.www_authenticate_header),
            StreamableHttpError::InsufficientScope(error) => (403, &error.www_authenticate_header),
            _ => return Err(failure),
        };
        match self.oauth.challenged(status, challenge, &sent.0).await {
            Ok(Retry::Again) => Ok(()),
            Ok(Retry::No) => Err(failure),
            Err(error) => Err(io::Error::other(error).into()),
        }
    }
}

/// What a request shows to be let in.
struct Pass(Vec<(String, Secret)>);

impl Pass {
    /// Returns the token; the library puts it into a header itself.
    fn token(&self) -> Option<String> {
        let (_, value) = self.0.first()?;
        value.expose().strip_prefix("Bearer ").map(str::to_owned)
    }
}

impl StreamableHttpClient for Authorized {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        loop {
            let pass = self.pass().await?;
            let (uri, message, session) = (Arc::clone(&uri), message.clone(), session.clone());
            let sent = self.http.post_message(uri, message, session, pass.token(), headers.clone());
            match sent.await {
                Err(failure) => self.turned_away(failure, &pass).await?,
                answer => return answer,
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        let pass = self.pass().await?;
        self.http.delete_session(uri, session, pass.token(), headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        loop {
            let pass = self.pass().await?;
            let (uri, session, last) = (Arc::clone(&uri), session.clone(), last.clone());
            let sent = self.http.get_stream(uri, session, last, pass.token(), headers.clone());
            let answer = sent.await;
            self.listens.send_replace(true);
            match answer {
                Err(failure) => self.turned_away(failure, &pass).await?,
                answer => return answer,
            }
        }
    }
}

/// Somebody who opens every address and is let in by the suite's authorization server without a question.
#[derive(Debug)]
struct Browser(Client);

#[async_trait]
impl Consent for Browser {
    async fn show(&self, url: &str) {
        // What comes of it is seen by whoever waits for the answer.
        drop(self.0.get(url).send().await);
    }
}

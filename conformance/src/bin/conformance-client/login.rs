//! The login that a scenario hands out, and a person who says yes.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use convoke_mcp::auth::{
    AuthSettings, Consent, Grant, KnownClient, MemoryStore, Secret, SigningKey, Web,
};
use convoke_mcp::client::Logins;
use convoke_tool::SystemClock;
use reqwest::Client;
use url::Url;

use crate::{SERVER, Task};

/// The document that the suite knows this client by.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Returns the logins of a scenario.
pub(crate) fn logins(task: &Task) -> Result<Logins, Box<dyn Error>> {
    let browser: Arc<dyn Consent> = Arc::new(Browser(Client::builder().no_proxy().build()?));
    let store = Arc::new(MemoryStore::default());
    let logins = Logins::new(store, Some(browser), Arc::new(SystemClock), Arc::new(Web::default()));
    Ok(logins.server(settings(task)?))
}

fn settings(task: &Task) -> Result<AuthSettings, Box<dyn Error>> {
    let text = |name: &str| task.context.get(name).and_then(|value| value.as_str());
    let mut settings = AuthSettings::new(SERVER, Url::parse(&task.url)?);
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
    Ok(settings)
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

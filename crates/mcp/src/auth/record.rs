//! What is kept of a login, and how it is written down.

use std::fmt;

use convoke_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::secret::Secret;

/// The version of what is written down.
const VERSION: u32 = 1;

/// What is kept of a login to one server with one issuer.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// The server's name in the configuration.
    pub server: String,
    /// Its address.
    pub url: String,
    /// Who gave the tokens.
    pub issuer: String,
    /// What the tokens are for, as the server calls itself.
    pub resource: String,
    /// Where tokens are refreshed.
    pub token_endpoint: String,
    /// Who we are there.
    pub client: ClientRecord,
    /// The scopes that were asked for.
    pub scopes: Vec<String>,
    /// The tokens, as long as they are of use.
    pub tokens: Option<Tokens>,
}

/// The address is shown up to the question mark; a key may stand behind it.
impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Record")
            .field("server", &self.server)
            .field("url", &self.url.split('?').next())
            .field("issuer", &self.issuer)
            .field("client", &self.client)
            .field("scopes", &self.scopes)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

/// Who we are to an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRecord {
    /// The client's id.
    pub id: String,
    /// Its secret, if it has one and the configuration does not hold it.
    pub secret: Option<Secret>,
    /// When the secret runs out.
    pub secret_expires: Option<Timestamp>,
    /// How the client proves who it is.
    pub method: TokenMethod,
    /// Where the id comes from.
    pub source: ClientSource,
    /// The address that browsers come back to, as it was registered.
    pub redirect_uri: Option<String>,
}

/// How a client proves who it is when it asks for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenMethod {
    /// It does not; whoever has the code and its verifier is the right one.
    #[serde(rename = "none")]
    None,
    /// Id and secret in a header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// Id and secret in the form.
    #[serde(rename = "client_secret_post")]
    Post,
    /// A signature.
    #[serde(rename = "private_key_jwt")]
    Key,
}

impl TokenMethod {
    /// Returns the word that standards have for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::Key => "private_key_jwt",
        }
    }
}

/// Where a client's id comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientSource {
    /// The configuration.
    Configured,
    /// It is the address of a document that describes the client.
    Document,
    /// The issuer gave it when the client registered.
    Registered,
}

/// A token, and what it takes to get the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// What is shown to the server.
    pub access: Secret,
    /// What the next one is got with.
    pub refresh: Option<Secret>,
    /// When it runs out, if that was said.
    pub expires: Option<Timestamp>,
}

/// A text is no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a login that was kept by this version")]
pub struct UnreadableRecord;

impl Record {
    /// Writes a record down, with its secrets.
    pub fn to_json(&self) -> Secret {
        let text = |secret: &Secret| secret.expose().to_owned();
        let tokens = self.tokens.as_ref();
        let written = Written {
            version: VERSION,
            server: self.server.clone(),
            url: self.url.clone(),
            issuer: self.issuer.clone(),
            resource: self.resource.clone(),
            token_endpoint: self.token_endpoint.clone(),
            client_id: self.client.id.clone(),
            client_secret: self.client.secret.as_ref().map(text),
            client_secret_expires: self.client.secret_expires,
            method: self.client.method,
            source: self.client.source,
            redirect_uri: self.client.redirect_uri.clone(),
            scopes: self.scopes.clone(),
            access_token: tokens.map(|tokens| text(&tokens.access)),
            refresh_token: tokens.and_then(|tokens| tokens.refresh.as_ref()).map(text),
            expires: tokens.and_then(|tokens| tokens.expires),
        };
        // Texts, numbers and words are always JSON.
        Secret::new(serde_json::to_string_pretty(&written).unwrap_or_default())
    }

    /// Reads what was written down.
    pub fn from_json(text: &[u8]) -> Result<Self, UnreadableRecord> {
        let written: Written = serde_json::from_slice(text).map_err(|_| UnreadableRecord)?;
        if written.version != VERSION {
            return Err(UnreadableRecord);
        }
        let (refresh, expires) = (written.refresh_token.map(Secret::new), written.expires);
        let tokens = written.access_token.map(|access| Tokens {
            access: Secret::new(access),
            refresh,
            expires,
        });
        Ok(Self {
            server: written.server,
            url: written.url,
            issuer: written.issuer,
            resource: written.resource,
            token_endpoint: written.token_endpoint,
            client: ClientRecord {
                id: written.client_id,
                secret: written.client_secret.map(Secret::new),
                secret_expires: written.client_secret_expires,
                method: written.method,
                source: written.source,
                redirect_uri: written.redirect_uri,
            },
            scopes: written.scopes,
            tokens,
        })
    }
}

/// A record as it is written. Kept apart, so that a record is never written by accident.
#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    server: String,
    url: String,
    issuer: String,
    resource: String,
    token_endpoint: String,
    client_id: String,
    client_secret: Option<String>,
    client_secret_expires: Option<Timestamp>,
    method: TokenMethod,
    source: ClientSource,
    redirect_uri: Option<String>,
    scopes: Vec<String>,
    access_token: Option<String>,
    refresh_token: Option<String>,
    expires: Option<Timestamp>,
}

//! What is known about a server before it is asked anything.

use std::fmt;
use std::time::Duration;

use url::Url;

use super::fetch::shown;
use super::key::SigningKey;
use super::secret::Secret;

/// How one server is logged in to.
#[derive(Clone)]
#[non_exhaustive]
pub struct AuthSettings {
    /// The name the server has in the configuration.
    pub server: String,
    /// Its address.
    pub url: Url,
    /// What kind of permission is asked for.
    pub grant: Grant,
    /// The client that was registered by hand, if one was.
    pub client: Option<KnownClient>,
    /// Where a document stands that describes this client. Authorization servers that read such documents
    /// take its address for a client id.
    pub client_metadata_url: Option<Url>,
    /// What this client calls itself where it registers.
    pub client_name: String,
    /// The scopes to ask for, in place of those the server names.
    pub scopes: Option<Vec<String>>,
    /// The port a browser comes back to. Any free one without this.
    pub redirect_port: Option<u16>,
    /// Where the addresses may lie that the server names.
    pub network: Network,
    /// Whether an authorization server has to say that it knows PKCE.
    pub pkce: Pkce,
    /// How long is waited for what.
    pub deadlines: Deadlines,
    /// How often more scopes are asked for, for the same reason, before that is given up.
    pub step_ups: u32,
}

impl AuthSettings {
    /// Makes settings for a server of which nothing but its address is known.
    pub fn new(server: impl Into<String>, url: Url) -> Self {
        Self {
            server: server.into(),
            url,
            grant: Grant::default(),
            client: None,
            client_metadata_url: None,
            client_name: "Convoke".to_owned(),
            scopes: None,
            redirect_port: None,
            network: Network::default(),
            pkce: Pkce::default(),
            deadlines: Deadlines::default(),
            step_ups: 2,
        }
    }
}

/// The address is shown without what stands behind its path, which may be a key.
impl fmt::Debug for AuthSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AuthSettings")
            .field("server", &self.server)
            .field("url", &shown(&self.url))
            .field("grant", &self.grant)
            .field("client", &self.client)
            .field("scopes", &self.scopes)
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}

/// What kind of permission is asked for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Grant {
    /// A person says yes in a browser.
    #[default]
    Person,
    /// The client is trusted by itself, with the secret of [`AuthSettings::client`]. Nobody is asked.
    ClientSecret,
    /// The client is trusted by itself and signs with a key. Nobody is asked.
    ClientKey(SigningKey),
}

/// A client that was registered by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownClient {
    /// Its id.
    pub id: String,
    /// Its secret, if it has one.
    pub secret: Option<Secret>,
    /// The issuer it was registered with. It is used with no other. Without this it is bound to the first
    /// one that is met.
    pub issuer: Option<String>,
}

/// Where the addresses may lie that a server names: authorization servers, tokens, registration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// On the public internet. A server on this machine may name addresses of this machine too.
    #[default]
    Public,
    /// In private networks as well, as companies have them. This machine is still none of them.
    Private,
}

/// Whether an authorization server has to say that it knows PKCE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pkce {
    /// It has to; one that does not is refused, as the MCP specification asks.
    #[default]
    Advertised,
    /// It need not. For servers that know it and do not say so.
    Assumed,
}

/// How long is waited for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For a person to log in.
    pub consent: Duration,
    /// For another process that is refreshing the same token.
    pub lock: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { consent: Duration::from_mins(5), lock: Duration::from_mins(1) }
    }
}

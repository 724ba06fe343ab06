//! How remote MCP servers are told who asks.

use std::path::Path;
use std::sync::Arc;

use convoke_core::nearest::{did_you_mean, nearest};
use convoke_mcp::auth::{AuthSettings, Consent, FileStore, KnownClient, OAuth, Secret, Web};
use convoke_mcp::client::{Authorization, Logins, Transport};
use convoke_tool::Clock;
use url::Url;

use super::mcp::{ListedServer, McpServers};
use crate::config::McpAuthConfig;

/// A server that cannot be logged in to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// There is none of that name.
    #[error("there is no MCP server `{name}`{}", did_you_mean(&close.iter().map(String::as_str).collect::<Vec<_>>()))]
    Unknown {
        /// The name.
        name: String,
        /// Names that come close.
        close: Vec<String>,
    },
    /// It is a program.
    #[error(
        "the MCP server `{name}` is a program that is started here; it has its own ways to be told who asks"
    )]
    Program {
        /// The name.
        name: String,
    },
    /// Its address, or one of its settings, is none.
    #[error("`{what}` of the MCP server `{name}` is not an address")]
    Address {
        /// The name.
        name: String,
        /// The key.
        what: &'static str,
    },
}

impl McpServers {
    /// Returns what logs in to a server and out of it, with logins kept in this directory. Without `consent`
    /// there is nobody who could be asked to log in.
    pub fn login(
        &self,
        name: &str,
        logins: &Path,
        consent: Option<Arc<dyn Consent>>,
        clock: Arc<dyn Clock>,
    ) -> Result<OAuth, LoginError> {
        let found = self.listed().iter().find(|listed| listed.config.name == name);
        let server = found.ok_or_else(|| {
            let names = self.listed().iter().map(|listed| listed.config.name.as_str());
            let close = nearest(name, names).into_iter().map(str::to_owned).collect();
            LoginError::Unknown { name: name.to_owned(), close }
        })?;
        let store = Arc::new(FileStore::new(logins));
        Ok(OAuth::new(settings(server)?, store, consent, clock, Arc::new(Web::default())))
    }
}

/// Returns the logins that are kept here, for whoever speaks to servers. Nobody is asked to log in.
pub(super) fn kept_logins(
    servers: &[ListedServer],
    place: &Path,
    clock: Arc<dyn Clock>,
) -> Arc<dyn Authorization> {
    let store = Arc::new(FileStore::new(place));
    let logins = Logins::new(store, None, clock, Arc::new(Web::default()));
    let settings = servers.iter().filter_map(|server| settings(server).ok());
    Arc::new(settings.fold(logins, Logins::server))
}

/// Returns what is known about a server before it is asked.
fn settings(server: &ListedServer) -> Result<AuthSettings, LoginError> {
    let name = &server.config.name;
    let Transport::Http { url, .. } = &server.config.transport else {
        return Err(LoginError::Program { name: name.clone() });
    };
    let address = |text: &str, what| {
        Url::parse(text).map_err(|_| LoginError::Address { name: name.clone(), what })
    };
    let mut settings = AuthSettings::new(name, address(url, "url")?);
    let Some(McpAuthConfig {
        client_id,
        client_secret,
        client_metadata_url,
        scopes,
        redirect_port,
    }) = &server.auth
    else {
        return Ok(settings);
    };
    settings.client = client_id.as_ref().map(|id| KnownClient {
        id: id.clone(),
        secret: client_secret.as_ref().map(|secret| Secret::new(secret.expose())),
        issuer: None,
    });
    if let Some(url) = client_metadata_url {
        settings.client_metadata_url = Some(address(url, "auth.clientMetadataUrl")?);
    }
    settings.scopes = (!scopes.is_empty()).then(|| scopes.clone());
    settings.redirect_port = *redirect_port;
    Ok(settings)
}

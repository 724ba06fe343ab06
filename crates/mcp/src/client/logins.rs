//! The logins of all servers: what [`Authorization`] asks, answered by one [`OAuth`] a server.
//!
//! Everybody who speaks to the same server at the same address shares one login, so that a token is got
//! once and waited for by the others. The address that counts is the one that requests go to: settings
//! that were made for another one never send a token elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use convoke_tool::Clock;
use url::Url;

use super::authorization::{Authorization, Refusal, Remote};
use crate::auth::{AuthSettings, Consent, Http, OAuth, Retry, Secret, TokenStore};

/// Logs in to servers that want it.
///
/// ```
/// use std::sync::Arc;
///
/// use convoke_mcp::auth::{AuthSettings, MemoryStore, Web};
/// use convoke_mcp::client::{Logins, Surroundings};
/// use convoke_tool::SystemClock;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut search = AuthSettings::new("search", "https://mcp.example/mcp".parse()?);
/// search.scopes = Some(vec!["read".to_owned()]);
/// // Nobody can be asked: what needs a person fails, and says which command to run.
/// let logins = Logins::new(
///     Arc::new(MemoryStore::default()),
///     None,
///     Arc::new(SystemClock),
///     Arc::new(Web::default()),
/// )
/// .server(search);
/// let surroundings = Surroundings::new("/").authorization(Arc::new(logins));
/// # assert!(surroundings.authorization.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Logins {
    store: Arc<dyn TokenStore>,
    consent: Option<Arc<dyn Consent>>,
    clock: Arc<dyn Clock>,
    http: Arc<dyn Http>,
    settings: BTreeMap<String, AuthSettings>,
    known: Mutex<HashMap<(String, Url), Arc<OAuth>>>,
}

impl Logins {
    /// Makes logins of servers of which nothing but their address is known. Nothing is read or sent yet.
    /// Without `consent` there is nobody to ask.
    pub fn new(
        store: Arc<dyn TokenStore>,
        consent: Option<Arc<dyn Consent>>,
        clock: Arc<dyn Clock>,
        http: Arc<dyn Http>,
    ) -> Self {
        let (settings, known) = (BTreeMap::new(), Mutex::default());
        Self { store, consent, clock, http, settings, known }
    }

    /// Logs in to one server in this way.
    #[must_use]
    pub fn server(mut self, settings: AuthSettings) -> Self {
        self.settings.insert(settings.server.clone(), settings);
        self
    }

    /// Returns the login of a server, which everybody shares; or says what is wrong with its address.
    pub fn of(&self, server: &Remote) -> Result<Arc<OAuth>, String> {
        let url = Url::parse(&server.url).map_err(|error| {
            format!("its address is not a URL ({error}); correct it in the configuration")
        })?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let login = known.entry((server.name.clone(), url.clone())).or_insert_with(|| {
            let settings = match self.settings.get(&server.name) {
                Some(own) => AuthSettings { url, ..own.clone() },
                None => AuthSettings::new(server.name.as_str(), url),
            };
            Arc::new(self.login(settings))
        });
        Ok(Arc::clone(login))
    }

    fn login(&self, settings: AuthSettings) -> OAuth {
        let (store, consent) = (Arc::clone(&self.store), self.consent.clone());
        OAuth::new(settings, store, consent, Arc::clone(&self.clock), Arc::clone(&self.http))
    }
}

#[async_trait]
impl Authorization for Logins {
    async fn headers(&self, server: &Remote) -> Result<Vec<(String, Secret)>, String> {
        self.of(server)?.headers().await.map_err(|error| error.to_string())
    }

    async fn refused(&self, server: &Remote, refusal: Refusal) -> Result<(), String> {
        let challenge = refusal.challenge.as_deref().unwrap_or_default();
        match self.of(server)?.challenged(refusal.status, challenge, &refusal.sent).await {
            Ok(Retry::Again) => Ok(()),
            Ok(Retry::No) => Err(format!(
                "it answered with {}, and no login changes that; ask whoever runs it what your account \
                 lacks",
                refusal.said()
            )),
            Err(error) => Err(error.to_string()),
        }
    }
}

//! What every test needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use convoke_core::Timestamp;
use convoke_mcp::auth::{
    AuthError, AuthSettings, Consent, MemoryStore, OAuth, Retry, Secret, TokenStore,
};
use convoke_tool::ManualClock;

use crate::browser::Browser;
use crate::world::{Asked, World};

/// One user of one server.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) world: World,
    pub(crate) browser: Arc<Browser>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn TokenStore>,
    pub(crate) settings: AuthSettings,
}

impl User {
    pub(crate) fn new(world: &World) -> Self {
        let server = world.ways().server.clone();
        Self {
            world: world.clone(),
            browser: Browser::new(world),
            clock: Arc::new(ManualClock::new(Timestamp::from_millis(1_000_000_000_000))),
            store: Arc::new(MemoryStore::default()),
            settings: AuthSettings::new("files", server),
        }
    }

    /// With a person who says yes.
    pub(crate) fn oauth(&self) -> OAuth {
        self.with(Some(self.browser.clone()))
    }

    /// With nobody to ask.
    pub(crate) fn alone(&self) -> OAuth {
        self.with(None)
    }

    pub(crate) fn with(&self, consent: Option<Arc<dyn Consent>>) -> OAuth {
        let http = Arc::new(self.world.clone());
        let clock = self.clock.clone();
        OAuth::new(self.settings.clone(), self.store.clone(), consent, clock, http)
    }
}

/// Asks the server for something, as a transport would: again as long as a token helps.
pub(crate) async fn ask(oauth: &OAuth, world: &World) -> Result<u16, AuthError> {
    let url = world.ways().server.clone();
    loop {
        let sent = oauth.headers().await?;
        let answer = world.answer(&Asked {
            method: "POST",
            url: url.clone(),
            headers: lower(&sent),
            body: String::new(),
        });
        if answer.status == 200 {
            return Ok(200);
        }
        let header = answer.headers.first().map_or("", |(_, value)| value.as_str());
        match oauth.challenged(answer.status, header, &sent).await? {
            Retry::Again => {}
            Retry::No => return Ok(answer.status),
        }
    }
}

fn lower(headers: &[(String, Secret)]) -> BTreeMap<String, String> {
    let lower =
        |(name, value): &(String, Secret)| (name.to_ascii_lowercase(), value.expose().to_owned());
    headers.iter().map(lower).collect()
}

/// Returns the token that would be shown now.
pub(crate) async fn token(oauth: &OAuth) -> Option<String> {
    let headers = oauth.headers().await.unwrap();
    headers.first().map(|(name, value)| {
        assert_eq!(name, "Authorization");
        value.expose().strip_prefix("Bearer ").unwrap().to_owned()
    })
}

//! One server's login, from the first refusal to the last refresh.

use std::sync::Arc;
use std::time::Duration;

use convoke_core::Timestamp;
use convoke_tool::Clock;
use tokio::sync::Mutex;

use super::attempt::Attempt;
use super::challenge::Challenge;
use super::client::{configured, secret_of};
use super::consent::Consent;
use super::discover::{Found, discover};
use super::error::{AuthError, said};
use super::fetch::Fetch;
use super::guard::Guard;
use super::http::{Http, HttpRequest, Reach};
use super::metadata::same_issuer;
use super::patience::Patience;
use super::record::{ClientRecord, ClientSource, Record, Tokens};
use super::scope::scopes_for;
use super::secret::Secret;
use super::settings::{AuthSettings, Grant};
use super::store::{StoreLock, TokenStore};
use super::token::{Proof, request_tokens};

/// A token that runs out so soon is replaced before it is used.
const LEEWAY: Duration = Duration::from_secs(15);

/// A request that no server does anything for.
const PROBE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Tells one server who asks.
#[derive(Debug)]
pub struct OAuth {
    settings: AuthSettings,
    store: Arc<dyn TokenStore>,
    consent: Option<Arc<dyn Consent>>,
    clock: Arc<dyn Clock>,
    http: Arc<dyn Http>,
    /// Held while a token is got, so that everybody else waits for it in place of getting one too.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    record: Option<Record>,
    patience: Patience,
}

/// Why a token is refreshed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// It is about to run out, or did.
    RunsOut,
    /// The server did not take it.
    TurnedAway,
}

/// Whether to send again what was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// There is another token now; ask for the headers anew.
    Again,
    /// The refusal has nothing to do with tokens.
    No,
}

impl OAuth {
    /// Makes what a transport asks about one server. Nothing is read or sent yet. Without `consent` there
    /// is nobody to ask, and what needs a person fails at once.
    pub fn new(
        settings: AuthSettings,
        store: Arc<dyn TokenStore>,
        consent: Option<Arc<dyn Consent>>,
        clock: Arc<dyn Clock>,
        http: Arc<dyn Http>,
    ) -> Self {
        Self { settings, store, consent, clock, http, state: Mutex::default() }
    }

    /// Returns the headers that a request needs: none, as long as the server asked for nothing. A token
    /// that is about to run out is refreshed first.
    pub async fn headers(&self) -> Result<Vec<(String, Secret)>, AuthError> {
        let mut state = self.state.lock().await;
        if state.record.is_none() {
            state.record = self.load().await?;
        }
        let Some(tokens) = tokens_of(&state) else { return Ok(Vec::new()) };
        let fetch = self.fetch()?;
        if self.lives(tokens) {
            return Ok(vec![header(tokens)]);
        }
        if tokens.refresh.is_none() || !self.refresh(&mut state, &fetch, Why::RunsOut).await? {
            return Ok(Vec::new());
        }
        Ok(tokens_of(&state).map(header).into_iter().collect())
    }

    /// Takes a refusal: its status, its `WWW-Authenticate` header, and the headers that this gave for the
    /// request. Gets another token where that helps, which may mean to ask a person.
    pub async fn challenged(
        &self,
        status: u16,
        www_authenticate: &str,
        sent: &[(String, Secret)],
    ) -> Result<Retry, AuthError> {
        let challenge = Challenge::parse(www_authenticate);
        let needs_more = match status {
            401 => false,
            403 if challenge.wants_more_scopes() && !challenge.scopes.is_empty() => true,
            _ => return Ok(Retry::No),
        };
        let fetch = self.fetch()?;
        let mut state = self.state.lock().await;
        // Another process may have logged in meanwhile, or out.
        state.record = self.load().await?;
        let unused = tokens_of(&state)
            .is_some_and(|tokens| self.lives(tokens) && !sent.contains(&header(tokens)));
        if unused && state.patience.was_under_way() {
            return Ok(Retry::Again);
        }
        self.be_patient(&mut state, needs_more.then_some(&challenge))?;
        let can_refresh =
            !needs_more && tokens_of(&state).is_some_and(|tokens| tokens.refresh.is_some());
        if !can_refresh {
            self.person_if_needed()?;
        }
        let last = state.record.clone();
        let found = self.discover(&fetch, &challenge, last.as_ref()).await?;
        let last = last.filter(|last| same_issuer(&last.issuer, &found.issuer.issuer));
        if can_refresh
            && last.is_some()
            && self.refresh(&mut state, &fetch, Why::TurnedAway).await?
        {
            return Ok(Retry::Again);
        }
        let before = last.as_ref().map(|last| last.scopes.clone()).unwrap_or_default();
        let scopes = scopes_for(&self.settings, &challenge, &found, &before);
        // An earlier issuer is still looked at: a client that was registered by hand stays with it.
        let last = state.record.clone();
        self.authorize(&mut state, &fetch, &found, scopes, last.as_ref()).await?;
        Ok(Retry::Again)
    }

    /// Logs in, also where there is a login already. A registration of before is not used again: it may
    /// be why somebody logs in anew.
    pub async fn login(&self) -> Result<(), AuthError> {
        self.person_if_needed()?;
        let fetch = self.fetch()?;
        let mut state = self.state.lock().await;
        let challenge = self.probe(&fetch).await?;
        let found = self.discover(&fetch, &challenge, None).await?;
        let scopes = scopes_for(&self.settings, &challenge, &found, &[]);
        // A client that was registered by hand stays with the issuer it was used with.
        let last = self.load().await?;
        let last = last.filter(|last| last.client.source == ClientSource::Configured);
        self.authorize(&mut state, &fetch, &found, scopes, last.as_ref()).await
    }

    /// Forgets everything about the server; tells whether there was anything.
    pub async fn logout(&self) -> Result<bool, AuthError> {
        let mut state = self.state.lock().await;
        *state = State::default();
        Ok(self.store.forget(&self.settings.server).await? > 0)
    }

    /// Gives up on a server that is never content.
    fn be_patient(&self, state: &mut State, more: Option<&Challenge>) -> Result<(), AuthError> {
        let server = &self.settings.server;
        if let Some(challenge) = more {
            let most = self.settings.step_ups;
            state.patience.step_up(&challenge.scopes, most).map_err(|times| {
                let scopes = said(&challenge.scopes.join(" "));
                AuthError::ScopesInVain { server: server.clone(), scopes, times }
            })?;
        }
        if state.patience.turned_away() {
            Ok(())
        } else {
            Err(AuthError::TokensInVain { server: server.clone() })
        }
    }

    /// Fails at once where a person is needed and there is none.
    fn person_if_needed(&self) -> Result<(), AuthError> {
        match (&self.settings.grant, &self.consent) {
            (Grant::Person, None) => {
                Err(AuthError::LoginNeeded { server: self.settings.server.clone() })
            }
            _ => Ok(()),
        }
    }

    fn fetch(&self) -> Result<Fetch, AuthError> {
        let guard = Guard::new(&self.settings.url, self.settings.network)?;
        Ok(Fetch { guard, http: Arc::clone(&self.http) })
    }

    /// Reads what was kept, unless the configuration names another client since.
    async fn load(&self) -> Result<Option<Record>, AuthError> {
        let kept = self.store.load(&self.settings.server, self.settings.url.as_str()).await?;
        Ok(kept.filter(|record| match (&self.settings.client, record.client.source) {
            (Some(client), _) => client.id == record.client.id,
            (None, source) => source != ClientSource::Configured,
        }))
    }

    fn lives(&self, tokens: &Tokens) -> bool {
        tokens.expires.is_none_or(|expires| self.clock.now().after(LEEWAY) < expires)
    }

    async fn discover(
        &self,
        fetch: &Fetch,
        challenge: &Challenge,
        last: Option<&Record>,
    ) -> Result<Found, AuthError> {
        let known = last.map(|last| last.issuer.as_str());
        discover(fetch, &self.settings.url, challenge, known).await
    }

    /// Asks the server for nothing, to hear what it wants.
    async fn probe(&self, fetch: &Fetch) -> Result<Challenge, AuthError> {
        let (url, body) = (self.settings.url.clone(), Secret::new(PROBE));
        let request = HttpRequest::post(url, Reach::Anywhere, "application/json", body)
            .header("Accept", Secret::new("application/json, text/event-stream"));
        let answer = fetch.send(request, "say what it wants").await?;
        let header = answer.header("WWW-Authenticate").filter(|_| answer.status == 401);
        Ok(Challenge::parse(&header.unwrap_or_default()))
    }

    /// Gets a token, from a person or by our own right, and keeps it.
    async fn authorize(
        &self,
        state: &mut State,
        fetch: &Fetch,
        found: &Found,
        scopes: Vec<String>,
        last: Option<&Record>,
    ) -> Result<(), AuthError> {
        let (client, tokens) = match (&self.settings.grant, &self.consent) {
            (Grant::Person, Some(consent)) => {
                let attempt = Attempt {
                    fetch,
                    settings: &self.settings,
                    found,
                    consent: consent.as_ref(),
                    last,
                    scopes: &scopes,
                    clock: self.clock.as_ref(),
                };
                Box::pin(attempt.run()).await?
            }
            (Grant::Person, None) => {
                let server = self.settings.server.clone();
                return Err(AuthError::LoginNeeded { server });
            }
            _ => self.own_right(fetch, found, &scopes, last).await?,
        };
        let record = Record {
            server: self.settings.server.clone(),
            url: self.settings.url.to_string(),
            issuer: found.issuer.issuer.clone(),
            resource: found.resource.clone(),
            token_endpoint: found.issuer.token_endpoint.clone(),
            client,
            scopes,
            tokens: Some(tokens),
        };
        let _lock = self.lock().await?;
        self.keep(state, record).await
    }

    /// Gets a token that needs no person (the client credentials grant).
    async fn own_right(
        &self,
        fetch: &Fetch,
        found: &Found,
        scopes: &[String],
        last: Option<&Record>,
    ) -> Result<(ClientRecord, Tokens), AuthError> {
        let missing = |what| AuthError::Incomplete { server: self.settings.server.clone(), what };
        let client = configured(&self.settings, found, last)?;
        let client = client.ok_or_else(|| missing("the id of the client"))?;
        let mut form = vec![
            ("grant_type", Secret::new("client_credentials")),
            ("resource", Secret::new(found.resource.as_str())),
        ];
        if !scopes.is_empty() {
            form.push(("scope", Secret::new(scopes.join(" "))));
        }
        let proof = self.proof(&client, &found.issuer.issuer);
        if proof.secret.is_none() && proof.key.is_none() {
            return Err(missing("the secret of the client"));
        }
        let (endpoint, now) = (&found.issuer.token_endpoint, self.clock.now());
        let tokens = request_tokens(fetch, endpoint, form, &proof, now).await?;
        Ok((client, tokens))
    }

    fn proof<'a>(&'a self, client: &'a ClientRecord, issuer: &'a str) -> Proof<'a> {
        let key = match &self.settings.grant {
            Grant::ClientKey(key) => Some(key),
            Grant::Person | Grant::ClientSecret => None,
        };
        let secret = secret_of(&self.settings, client);
        Proof { id: &client.id, method: client.method, secret, key, issuer }
    }

    /// Gets the next token with the refresh token; tells whether there is one now. Of several processes
    /// that try it at once, one does it and the others find what it got.
    async fn refresh(&self, state: &mut State, fetch: &Fetch, why: Why) -> Result<bool, AuthError> {
        let _lock = self.lock().await?;
        let used = tokens_of(state).map(|tokens| tokens.access.clone());
        state.record = self.load().await?;
        let Some(mut record) = state.record.clone() else { return Ok(false) };
        let Some(old) = record.tokens.take() else { return Ok(false) };
        if self.lives(&old) && Some(&old.access) != used.as_ref() {
            return Ok(true);
        }
        let Some(refresh) = old.refresh.clone() else { return Ok(false) };
        let form = vec![
            ("grant_type", Secret::new("refresh_token")),
            ("refresh_token", refresh.clone()),
            ("resource", Secret::new(record.resource.as_str())),
        ];
        let (now, proof) = (self.clock.now(), self.proof(&record.client, &record.issuer));
        match request_tokens(fetch, &record.token_endpoint, form, &proof, now).await {
            Ok(tokens) => {
                let refresh = tokens.refresh.or(Some(refresh));
                record.tokens = Some(Tokens { refresh, ..tokens });
                self.keep(state, record).await?;
                Ok(true)
            }
            Err(AuthError::Refused { error, .. }) if error == "invalid_grant" => {
                state.record = Some(record);
                self.save(state).await.map(|()| false)
            }
            Err(AuthError::Refused { error, .. }) if is_about_client(&error) => {
                // The registration is gone, and with it all that was given to it.
                state.record = None;
                self.store.forget(&self.settings.server).await?;
                Ok(false)
            }
            // It has not run out yet, so it will do once more.
            Err(_) if why == Why::RunsOut && unexpired(&old, now) => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn lock(&self) -> Result<StoreLock, AuthError> {
        let AuthSettings { server, url, deadlines, .. } = &self.settings;
        Ok(self.store.lock(server, url.as_str(), deadlines.lock).await?)
    }

    async fn keep(&self, state: &mut State, record: Record) -> Result<(), AuthError> {
        state.record = Some(record);
        state.patience.granted();
        self.save(state).await
    }

    async fn save(&self, state: &State) -> Result<(), AuthError> {
        match &state.record {
            Some(record) => Ok(self.store.save(record).await?),
            None => Ok(()),
        }
    }
}

fn header(tokens: &Tokens) -> (String, Secret) {
    let value = format!("Bearer {}", tokens.access.expose());
    ("Authorization".to_owned(), Secret::new(value))
}

fn tokens_of(state: &State) -> Option<&Tokens> {
    state.record.as_ref()?.tokens.as_ref()
}

fn unexpired(tokens: &Tokens, now: Timestamp) -> bool {
    tokens.expires.is_some_and(|expires| now < expires)
}

fn is_about_client(error: &str) -> bool {
    matches!(error, "invalid_client" | "unauthorized_client")
}

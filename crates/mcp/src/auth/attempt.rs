//! One login by a person: from the address that is shown to the tokens.

use std::pin::pin;

use convoke_tool::Clock;
use url::Url;

use super::answer::{Answer, Expected};
use super::client::{client_for, secret_of};
use super::consent::Consent;
use super::discover::Found;
use super::error::{AuthError, said};
use super::fetch::Fetch;
use super::listener::Listener;
use super::random::{s256, unguessable};
use super::record::{ClientRecord, Record, Tokens};
use super::secret::Secret;
use super::settings::{AuthSettings, Pkce};
use super::token::{Proof, request_tokens};

/// What a login needs.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    pub(super) fetch: &'a Fetch,
    pub(super) settings: &'a AuthSettings,
    pub(super) found: &'a Found,
    pub(super) consent: &'a dyn Consent,
    /// The login before, whose registration may be used again.
    pub(super) last: Option<&'a Record>,
    pub(super) scopes: &'a [String],
    /// Time passes while a person logs in.
    pub(super) clock: &'a dyn Clock,
}

impl Attempt<'_> {
    /// Lets a person log in.
    pub(super) async fn run(&self) -> Result<(ClientRecord, Tokens), AuthError> {
        let endpoint = self.endpoint()?;
        let listener = self.listener().await?;
        let redirect_uri = listener.redirect_uri();
        let Self { fetch, settings, found, last, clock, .. } = *self;
        let client = client_for(fetch, settings, found, last, &redirect_uri, clock.now()).await?;
        let verifier = unguessable()?;
        let expected = Expected {
            state: unguessable()?,
            issuer: found.issuer.issuer.clone(),
            names_issuer: found.issuer.authorization_response_iss_parameter_supported,
        };
        let url = self.address(endpoint, &client, &redirect_uri, &verifier, &expected.state);
        let code = self.code(&listener, &expected, url.as_str()).await?;
        let form = vec![
            ("grant_type", Secret::new("authorization_code")),
            ("code", code),
            ("redirect_uri", Secret::new(redirect_uri)),
            ("code_verifier", verifier),
            ("resource", Secret::new(found.resource.as_str())),
        ];
        let proof = Proof {
            id: &client.id,
            method: client.method,
            secret: secret_of(settings, &client),
            key: None,
            issuer: &found.issuer.issuer,
        };
        let (endpoint, now) = (&found.issuer.token_endpoint, clock.now());
        let tokens = request_tokens(fetch, endpoint, form, &proof, now).await?;
        Ok((client, tokens))
    }

    /// Returns where a person logs in, if the authorization server can do what a login needs.
    fn endpoint(&self) -> Result<Url, AuthError> {
        let issuer = &self.found.issuer;
        let unsupported = |why| AuthError::Unsupported { issuer: said(&issuer.issuer), why };
        let knows = |words: &[String], word: &str| words.iter().any(|known| known == word);
        match &issuer.code_challenge_methods_supported {
            Some(methods) if knows(methods, "S256") => {}
            None if self.settings.pkce == Pkce::Assumed => {}
            _ => {
                return Err(unsupported(
                    "it does not say that it knows PKCE with S256, without which a login can be stolen",
                ));
            }
        }
        if issuer.response_types_supported.as_ref().is_some_and(|types| !knows(types, "code")) {
            return Err(unsupported("it gives no authorization codes"));
        }
        let endpoint = issuer.authorization_endpoint.as_ref();
        let endpoint =
            endpoint.ok_or_else(|| unsupported("it names no address where people log in"))?;
        self.fetch.guard.parse(endpoint).map(|(url, _)| url)
    }

    /// Opens the port that the last registration named, since many servers take no other.
    async fn listener(&self) -> Result<Listener, AuthError> {
        if let Some(port) = self.settings.redirect_port {
            return Listener::open_exactly(port).await;
        }
        let last = self.last.and_then(|last| last.client.redirect_uri.as_deref());
        let port = last.and_then(|uri| Url::parse(uri).ok()).and_then(|uri| uri.port());
        Listener::open(port.as_slice()).await
    }

    fn address(
        &self,
        mut endpoint: Url,
        client: &ClientRecord,
        redirect_uri: &str,
        verifier: &Secret,
        state: &Secret,
    ) -> Url {
        endpoint
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("state", state.expose())
            .append_pair("code_challenge", &s256(verifier))
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &self.found.resource);
        if !self.scopes.is_empty() {
            endpoint.query_pairs_mut().append_pair("scope", &self.scopes.join(" "));
            if self.scopes.iter().any(|scope| scope == "offline_access") {
                // OpenID Connect gives no refresh token without it.
                endpoint.query_pairs_mut().append_pair("prompt", "consent");
            }
        }
        endpoint
    }

    /// Shows the address and waits for what comes back, from the browser or pasted.
    async fn code(
        &self,
        listener: &Listener,
        expected: &Expected,
        url: &str,
    ) -> Result<Secret, AuthError> {
        let waited = self.settings.deadlines.consent;
        let login = async {
            let mut answer = pin!(async {
                tokio::select! {
                    answer = listener.wait(expected, self.consent) => answer,
                    answer = pasted(self.consent, expected) => answer,
                }
            });
            tokio::select! {
                answer = &mut answer => return answer,
                () = self.consent.show(url) => {}
            }
            answer.await
        };
        tokio::time::timeout(waited, login).await.unwrap_or_else(|_| {
            Err(AuthError::NotInTime { server: self.settings.server.clone(), waited })
        })
    }
}

/// Waits for an address that somebody pastes, until it is the right one.
async fn pasted(consent: &dyn Consent, expected: &Expected) -> Result<Secret, AuthError> {
    loop {
        match expected.read_pasted(&consent.pasted().await)? {
            Answer::Code(code) => return Ok(code),
            Answer::NotOurs(why) => consent.unusable(why).await,
        }
    }
}

//! Who we are to an authorization server: the client of the configuration, the address of a document, or
//! whatever it gives us when we register.

use convoke_core::Timestamp;

use super::discover::Found;
use super::error::{AuthError, said};
use super::fetch::Fetch;
use super::metadata::same_issuer;
use super::record::{ClientRecord, ClientSource, Record, TokenMethod};
use super::register::register;
use super::secret::Secret;
use super::settings::{AuthSettings, Grant};

/// Returns the client of the configuration, if there is one and it belongs to this issuer.
pub(super) fn configured(
    settings: &AuthSettings,
    found: &Found,
    last: Option<&Record>,
) -> Result<Option<ClientRecord>, AuthError> {
    let Some(client) = &settings.client else { return Ok(None) };
    let issuer = &found.issuer.issuer;
    let last = last.filter(|last| last.client.source == ClientSource::Configured);
    let last = last.filter(|last| last.client.id == client.id).map(|last| &last.issuer);
    if let Some(bound) = client.issuer.as_ref().or(last)
        && !same_issuer(bound, issuer)
    {
        return Err(AuthError::IssuerChanged {
            server: settings.server.clone(),
            expected: bound.clone(),
            found: said(issuer),
        });
    }
    let method = match (&settings.grant, &client.secret) {
        (Grant::ClientKey(_), _) => TokenMethod::Key,
        (_, None) => TokenMethod::None,
        (_, Some(_)) => with_secret(found),
    };
    Ok(Some(ClientRecord {
        id: client.id.clone(),
        // It stands in the configuration, and is looked up there.
        secret: None,
        secret_expires: None,
        method,
        source: ClientSource::Configured,
        redirect_uri: None,
    }))
}

/// Returns who we are in a login by a person. `last` is what was kept of the login before, if it may be
/// used again.
pub(super) async fn client_for(
    fetch: &Fetch,
    settings: &AuthSettings,
    found: &Found,
    last: Option<&Record>,
    redirect_uri: &str,
    now: Timestamp,
) -> Result<ClientRecord, AuthError> {
    if let Some(client) = configured(settings, found, last)? {
        return Ok(client);
    }
    if let Some(url) = &settings.client_metadata_url
        && found.issuer.client_id_metadata_document_supported
    {
        return Ok(ClientRecord {
            id: url.to_string(),
            secret: None,
            secret_expires: None,
            method: TokenMethod::None,
            source: ClientSource::Document,
            redirect_uri: None,
        });
    }
    if let Some(last) = last.and_then(|last| registered(last, found, redirect_uri, now)) {
        return Ok(last);
    }
    register(fetch, settings, found, redirect_uri).await
}

/// Returns the registration of an earlier login, if it is with this issuer and still holds.
fn registered(
    last: &Record,
    found: &Found,
    redirect_uri: &str,
    now: Timestamp,
) -> Option<ClientRecord> {
    let client = &last.client;
    let usable = client.source == ClientSource::Registered
        && same_issuer(&last.issuer, &found.issuer.issuer)
        && client.redirect_uri.as_deref() == Some(redirect_uri)
        && client.secret_expires.is_none_or(|expires| now < expires);
    usable.then(|| client.clone())
}

/// Returns how a client with a secret proves who it is here.
pub(super) fn with_secret(found: &Found) -> TokenMethod {
    let known = found.issuer.token_endpoint_auth_methods_supported.as_deref();
    let knows = |method: TokenMethod| {
        known.is_none_or(|known| known.iter().any(|word| word == method.as_str()))
    };
    if !knows(TokenMethod::Basic) && knows(TokenMethod::Post) {
        TokenMethod::Post
    } else {
        TokenMethod::Basic
    }
}

/// Returns the secret of a client, from where it is kept.
pub(super) fn secret_of<'a>(
    settings: &'a AuthSettings,
    client: &'a ClientRecord,
) -> Option<&'a Secret> {
    match client.source {
        ClientSource::Configured => settings.client.as_ref()?.secret.as_ref(),
        ClientSource::Document | ClientSource::Registered => client.secret.as_ref(),
    }
}

//! Finds out who gives tokens for a server.
//!
//! The server is asked first, in the place it named or in the usual ones, and then the authorization
//! server that it names. A server that does not describe itself is taken for one of the first revision of
//! MCP's authorization, which is its own authorization server. What is found is checked: the description
//! has to be of this server, and of this issuer.

use url::Url;

use super::challenge::Challenge;
use super::error::{AuthError, said};
use super::fetch::{Fetch, Place, bad_answer, shown};
use super::metadata::{
    ResourceMetadata, ServerMetadata, issuer_places, resource_places, same_issuer,
};

const ASK_RESOURCE: &str = "describe the server";
const ASK_ISSUER: &str = "describe the authorization server";

/// Who gives tokens, and for what.
#[derive(Debug)]
pub(super) struct Found {
    /// The server's name for itself; tokens are asked for in this name.
    pub(super) resource: String,
    /// The scopes the server knows.
    pub(super) resource_scopes: Vec<String>,
    /// The authorization server.
    pub(super) issuer: ServerMetadata,
}

/// Finds out who gives tokens for a server. Where it names several, one that is `known` is taken, and
/// otherwise the first.
pub(super) async fn discover(
    fetch: &Fetch,
    server: &Url,
    challenge: &Challenge,
    known: Option<&str>,
) -> Result<Found, AuthError> {
    let described = describe_resource(fetch, server, challenge).await?;
    let origin = server.origin().ascii_serialization();
    let Some(described) = described else {
        return Ok(Found {
            resource: canonical(server),
            resource_scopes: Vec::new(),
            issuer: root_issuer(fetch, &origin).await?,
        });
    };
    let named = &described.authorization_servers;
    let chosen = named.iter().find(|issuer| known.is_some_and(|known| same_issuer(issuer, known)));
    let issuer = match chosen.or(named.first()) {
        Some(issuer) => describe_issuer(fetch, issuer).await?.ok_or_else(|| {
            let why = "no description stands in any of the usual places".to_owned();
            AuthError::BadAnswer { url: said(issuer), purpose: ASK_ISSUER, why }
        })?,
        None => root_issuer(fetch, &origin).await?,
    };
    Ok(Found { resource: described.resource, resource_scopes: described.scopes_supported, issuer })
}

async fn describe_resource(
    fetch: &Fetch,
    server: &Url,
    challenge: &Challenge,
) -> Result<Option<ResourceMetadata>, AuthError> {
    let guessed = resource_places(server).into_iter().map(|place| (place, Place::Guessed));
    let mut places: Vec<(Url, Place)> = guessed.collect();
    if let Some(named) = &challenge.resource_metadata {
        let named = server.join(named).map_err(|error| {
            bad_answer(server, ASK_RESOURCE, format!("it names no URL: {error}"))
        })?;
        places.retain(|(place, _)| *place != named);
        places.insert(0, (named, Place::Named));
    }
    for (place, sure) in &places {
        let found = fetch.document::<ResourceMetadata>(place, *sure, ASK_RESOURCE).await?;
        let Some(found) = found else { continue };
        if !found.describes(server) {
            let url = shown(server);
            return Err(AuthError::ResourceMismatch { url, resource: said(&found.resource) });
        }
        return Ok(Some(found));
    }
    Ok(None)
}

/// Finds the authorization server that the first revision knows: the server itself, at its root.
async fn root_issuer(fetch: &Fetch, origin: &str) -> Result<ServerMetadata, AuthError> {
    let described = describe_issuer(fetch, origin).await?;
    Ok(described.unwrap_or_else(|| ServerMetadata::assumed(origin)))
}

async fn describe_issuer(fetch: &Fetch, issuer: &str) -> Result<Option<ServerMetadata>, AuthError> {
    let (url, _) = fetch.guard.parse(issuer)?;
    for place in issuer_places(&url) {
        let found = fetch.document::<ServerMetadata>(&place, Place::Guessed, ASK_ISSUER).await?;
        let Some(found) = found else { continue };
        if !same_issuer(&found.issuer, issuer) {
            let expected = said(issuer);
            return Err(AuthError::IssuerMismatch { expected, found: said(&found.issuer) });
        }
        return Ok(Some(found));
    }
    Ok(None)
}

/// Returns the name of a server that does not say its own. What stands behind its path is left out: it
/// may be a key, and is nobody else's business.
fn canonical(server: &Url) -> String {
    let url = shown(server);
    if server.path() == "/" { url.trim_end_matches('/').to_owned() } else { url }
}

//! Registers this client with an authorization server (RFC 7591).

use std::time::Duration;

use convoke_core::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::client::with_secret;
use super::discover::Found;
use super::error::{AuthError, said};
use super::fetch::{Fetch, bad_answer, kind_of};
use super::record::{ClientRecord, ClientSource, TokenMethod};
use super::secret::Secret;
use super::settings::AuthSettings;

const REGISTER: &str = "register this client";

/// What the authorization server gave us.
#[derive(Deserialize)]
struct Registered {
    client_id: String,
    #[serde(default)]
    client_secret: Option<String>,
    #[serde(default)]
    client_secret_expires_at: Option<u64>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
}

/// Registers this client, for browsers that come back to one address.
pub(super) async fn register(
    fetch: &Fetch,
    settings: &AuthSettings,
    found: &Found,
    redirect_uri: &str,
) -> Result<ClientRecord, AuthError> {
    let Some(endpoint) = &found.issuer.registration_endpoint else {
        return Err(AuthError::NoRegistration {
            server: settings.server.clone(),
            issuer: said(&found.issuer.issuer),
        });
    };
    let wanted = json!({
        "client_name": settings.client_name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": preferred(found).as_str(),
        "application_type": "native",
    });
    let body = Secret::new(wanted.to_string());
    let (url, answer) = fetch.post(endpoint, "application/json", body, None, REGISTER).await?;
    if !answer.is_success() {
        return Err(refusal(&answer.body, REGISTER, answer.status, &[]));
    }
    let given: Registered = serde_json::from_slice(&answer.body)
        .map_err(|error| bad_answer(&url, REGISTER, kind_of(&error)))?;
    let secret = given.client_secret.filter(|secret| !secret.is_empty()).map(Secret::new);
    let method = match (given.token_endpoint_auth_method.as_deref(), &secret) {
        (_, None) | (Some("none"), _) => TokenMethod::None,
        (Some("client_secret_basic"), _) => TokenMethod::Basic,
        (Some("client_secret_post"), _) => TokenMethod::Post,
        _ => with_secret(found),
    };
    let expires = given.client_secret_expires_at.filter(|seconds| *seconds > 0);
    Ok(ClientRecord {
        id: given.client_id,
        secret,
        secret_expires: expires
            .map(|seconds| Timestamp::default().after(Duration::from_secs(seconds))),
        method,
        source: ClientSource::Registered,
        redirect_uri: Some(redirect_uri.to_owned()),
    })
}

/// A program on somebody's machine cannot keep a secret of its own, so none is asked for where that is
/// possible.
fn preferred(found: &Found) -> TokenMethod {
    let known = found.issuer.token_endpoint_auth_methods_supported.as_deref();
    match known {
        Some(known) if !known.iter().any(|word| word == TokenMethod::None.as_str()) => {
            with_secret(found)
        }
        _ => TokenMethod::None,
    }
}

/// How an authorization server says no (RFC 6749, section 5.2).
#[derive(Deserialize)]
struct Refusal {
    error: String,
    #[serde(default)]
    error_description: String,
}

/// Reads a refusal. What it says of the secrets that were sent is taken out.
pub(super) fn refusal(
    body: &[u8],
    purpose: &'static str,
    status: u16,
    sent: &[&Secret],
) -> AuthError {
    let hide =
        |text: &str| said(&sent.iter().fold(text.to_owned(), |text, secret| secret.hide(&text)));
    match serde_json::from_slice::<Refusal>(body) {
        Ok(refusal) => AuthError::Refused {
            purpose,
            error: hide(&refusal.error),
            description: hide(&refusal.error_description),
        },
        Err(_) => AuthError::Refused {
            purpose,
            error: format!("HTTP status {status}"),
            description: String::new(),
        },
    }
}

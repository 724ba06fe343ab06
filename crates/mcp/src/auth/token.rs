//! Asks an authorization server for tokens.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoke_core::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::assertion::{ASSERTION_TYPE, assertion};
use super::error::AuthError;
use super::fetch::{Fetch, bad_answer, kind_of};
use super::key::SigningKey;
use super::record::{TokenMethod, Tokens};
use super::register::refusal;
use super::secret::Secret;

const GIVE: &str = "give a token";

/// A client, and what it proves itself with.
#[derive(Debug)]
pub(super) struct Proof<'a> {
    pub(super) id: &'a str,
    pub(super) method: TokenMethod,
    pub(super) secret: Option<&'a Secret>,
    pub(super) key: Option<&'a SigningKey>,
    /// Who it is proved to.
    pub(super) issuer: &'a str,
}

/// What is asked for, and with what.
pub(super) type Form = Vec<(&'static str, Secret)>;

#[derive(Deserialize)]
struct Given {
    access_token: String,
    #[serde(default)]
    token_type: Option<String>,
    #[serde(default)]
    refresh_token: Option<String>,
    /// A number; some write it as a text.
    #[serde(default)]
    expires_in: Option<Value>,
}

/// Asks for tokens.
pub(super) async fn request_tokens(
    fetch: &Fetch,
    endpoint: &str,
    mut form: Form,
    proof: &Proof<'_>,
    now: Timestamp,
) -> Result<Tokens, AuthError> {
    let authorization = prove(&mut form, proof, now)?;
    let body = encoded(&form);
    let kind = "application/x-www-form-urlencoded";
    let (url, answer) = fetch.post(endpoint, kind, body, authorization, GIVE).await?;
    if !answer.is_success() {
        let private = form.iter().filter(|(name, _)| is_private(name)).map(|(_, value)| value);
        let sent: Vec<&Secret> = private.chain(proof.secret).collect();
        return Err(refusal(&answer.body, GIVE, answer.status, &sent));
    }
    let bad = |why: String| bad_answer(&url, GIVE, why);
    let given: Given =
        serde_json::from_slice(&answer.body).map_err(|error| bad(kind_of(&error)))?;
    let bearer = given.token_type.as_deref().unwrap_or("Bearer");
    if !bearer.eq_ignore_ascii_case("Bearer") {
        return Err(bad("it gives a token of another kind than `Bearer`".to_owned()));
    }
    if given.access_token.is_empty()
        || !given.access_token.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Err(bad("its token cannot stand in a header".to_owned()));
    }
    Ok(Tokens {
        access: Secret::new(given.access_token),
        refresh: given.refresh_token.filter(|token| !token.is_empty()).map(Secret::new),
        expires: given.expires_in.as_ref().and_then(seconds).map(|lives| now.after(lives)),
    })
}

fn encoded(form: &Form) -> Secret {
    let pairs = form.iter().map(|(name, value)| (*name, value.expose()));
    Secret::new(Serializer::new(String::new()).extend_pairs(pairs).finish())
}

/// Adds to a form what proves who asks, or returns the header that does.
fn prove(form: &mut Form, proof: &Proof<'_>, now: Timestamp) -> Result<Option<Secret>, AuthError> {
    match (proof.method, proof.secret, proof.key) {
        (TokenMethod::Basic, Some(secret), _) => return Ok(Some(basic(proof.id, secret))),
        (TokenMethod::Key, _, Some(key)) => {
            form.push(("client_assertion_type", Secret::new(ASSERTION_TYPE)));
            form.push(("client_assertion", assertion(key, proof.id, proof.issuer, now)?));
        }
        (TokenMethod::Post, Some(secret), _) => form.push(("client_secret", secret.clone())),
        _ => {}
    }
    form.push(("client_id", Secret::new(proof.id)));
    Ok(None)
}

/// Id and secret are encoded before they are joined, since either may hold a colon.
fn basic(id: &str, secret: &Secret) -> Secret {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let joined = format!("{}:{}", encoded(id), encoded(secret.expose()));
    Secret::new(format!("Basic {}", STANDARD.encode(joined)))
}

fn is_private(name: &str) -> bool {
    matches!(
        name,
        "code" | "code_verifier" | "refresh_token" | "client_secret" | "client_assertion"
    )
}

fn seconds(value: &Value) -> Option<Duration> {
    let seconds = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn id_and_secret_are_encoded_before_they_are_joined() {
        let header = basic("a:b", &Secret::new("c d"));
        let text = header.expose().strip_prefix("Basic ").unwrap();
        assert_eq!(STANDARD.decode(text).unwrap(), b"a%3Ab:c+d");
    }

    #[test]
    fn lifetimes_are_numbers_or_texts() {
        for (value, expected) in [
            (json!(60), Some(60)),
            (json!("60"), Some(60)),
            (json!(-1), None),
            (json!("soon"), None),
            (json!(null), None),
        ] {
            assert_eq!(seconds(&value), expected.map(Duration::from_secs), "{value}");
        }
    }
}

//! A signed statement of who a client is (RFC 7523), in place of a password.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use convoke_core::Timestamp;
use serde_json::{Value, json};

use super::error::AuthError;
use super::key::SigningKey;
use super::random::unguessable;
use super::secret::Secret;

/// What kind of statement it is, as requests say it.
pub(super) const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// How long a statement holds, in seconds: long enough for clocks that differ.
const LIFETIME: i64 = 300;

/// Makes a statement for one issuer, to be used once.
pub(super) fn assertion(
    key: &SigningKey,
    client: &str,
    issuer: &str,
    now: Timestamp,
) -> Result<Secret, AuthError> {
    let now = now.as_millis() / 1000;
    let mut header = json!({ "alg": key.algorithm(), "typ": "JWT" });
    if let (Some(id), Some(header)) = (key.id(), header.as_object_mut()) {
        header.insert("kid".to_owned(), Value::from(id));
    }
    let claims = json!({
        "iss": client,
        "sub": client,
        "aud": issuer,
        "iat": now,
        "exp": now + LIFETIME,
        "jti": unguessable()?.expose(),
    });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())?);
    Ok(Secret::new(format!("{signed}.{signature}")))
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
        UnparsedPublicKey,
    };

    use super::*;

    #[test]
    fn a_statement_is_signed_and_says_who_for_whom_and_until_when() {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, der.as_ref(), &random).unwrap();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(der.as_ref())
        );
        let key = SigningKey::from_pem(&Secret::new(pem)).unwrap().with_id("k1");
        let now = Timestamp::from_millis(1_000_000);
        let token = assertion(&key, "me", "https://b.example", now).unwrap();

        let (signed, signature) = token.expose().rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref())
            .verify(signed.as_bytes(), &signature)
            .unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let read = |part: &str| -> Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        assert_eq!(read(header), json!({ "alg": "ES256", "typ": "JWT", "kid": "k1" }));
        let claims = read(claims);
        assert_eq!((&claims["iss"], &claims["sub"]), (&json!("me"), &json!("me")));
        assert_eq!(claims["aud"], "https://b.example");
        assert_eq!((&claims["iat"], &claims["exp"]), (&json!(1000), &json!(1300)));
        let again = assertion(&key, "me", "https://b.example", now).unwrap();
        assert_ne!(token, again, "a statement is used once");
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_shown() {
        for pem in ["hush", "-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----"] {
            let error = SigningKey::from_pem(&Secret::new(pem)).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hush"));
        }
    }
}

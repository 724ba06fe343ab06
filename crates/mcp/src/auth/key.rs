//! The key of a client that signs.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};

use super::secret::Secret;

/// A private key, to sign with: on the curve P-256 (ES256), or RSA (RS256). Cheap to clone.
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<Pair>,
    id: Option<String>,
}

enum Pair {
    Curve(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// A key is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadKey {
    /// It is not written as it has to be.
    #[error(
        "the client's key is not a private key in PEM; it has to begin with `-----BEGIN PRIVATE KEY-----` \
         (PKCS #8)"
    )]
    NotPem,
    /// It is of a kind that is not known here.
    #[error(
        "the client's key is neither a P-256 nor an RSA key of 2048 bits or more; make one with \
         `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`"
    )]
    UnknownKind,
    /// Signing failed.
    #[error("the client's key could not sign")]
    CannotSign,
}

impl SigningKey {
    /// Reads a key from PEM (PKCS #8).
    pub fn from_pem(pem: &Secret) -> Result<Self, BadKey> {
        let (_, rest) =
            pem.expose().split_once("-----BEGIN PRIVATE KEY-----").ok_or(BadKey::NotPem)?;
        let (text, _) = rest.split_once("-----END PRIVATE KEY-----").ok_or(BadKey::NotPem)?;
        let text: String = text.split_whitespace().collect();
        let der = STANDARD.decode(text).map_err(|_| BadKey::NotPem)?;
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = match EcdsaKeyPair::from_pkcs8(algorithm, &der, &SystemRandom::new()) {
            Ok(pair) => Pair::Curve(pair),
            Err(_) => Pair::Rsa(RsaKeyPair::from_pkcs8(&der).map_err(|_| BadKey::UnknownKind)?),
        };
        Ok(Self { pair: Arc::new(pair), id: None })
    }

    /// Names the key, for servers that know several of this client.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the word that standards have for how this key signs.
    pub(super) fn algorithm(&self) -> &'static str {
        match *self.pair {
            Pair::Curve(_) => "ES256",
            Pair::Rsa(_) => "RS256",
        }
    }

    pub(super) fn sign(&self, text: &[u8]) -> Result<Vec<u8>, BadKey> {
        let random = SystemRandom::new();
        match &*self.pair {
            Pair::Curve(pair) => {
                let signature = pair.sign(&random, text).map_err(|_| BadKey::CannotSign)?;
                Ok(signature.as_ref().to_vec())
            }
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let signed = pair.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature);
                signed.map(|()| signature).map_err(|_| BadKey::CannotSign)
            }
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

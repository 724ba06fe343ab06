//! Texts that nobody can guess.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use super::error::AuthError;
use super::secret::Secret;

/// How many random bytes stand in such a text.
const BYTES: usize = 32;

/// Makes a text of 43 letters, digits, `-` and `_` from 256 random bits.
pub(super) fn unguessable() -> Result<Secret, AuthError> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| AuthError::NoRandomness)?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

/// Returns the S256 challenge of a PKCE verifier.
pub(super) fn s256(verifier: &Secret) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_alike_and_a_challenge_is_as_the_standard_computes_it() {
        let (one, other) = (unguessable().unwrap(), unguessable().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.expose().len(), 43);
        // The example of RFC 7636, appendix B.
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(s256(&verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}

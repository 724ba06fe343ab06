//! SHA-256 as it stands in a journal: lower-case hexadecimal.

use std::fmt;

use sha2::{Digest, Sha256};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The hash of some bytes, written out.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Hash([u8; 64]);

impl Hash {
    /// Hashes bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    /// Ends a calculation.
    pub(crate) fn finish(hasher: Sha256) -> Self {
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(hasher.finalize()) {
            if let [high, low] = pair {
                *high = digit(byte >> 4);
                *low = digit(byte & 15);
            }
        }
        Self(text)
    }

    /// Reads a hash that somebody wrote; anything else gives nothing.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 64] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(|byte| DIGITS.contains(byte)).then_some(Self(bytes))
    }

    pub(crate) const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the first sixteen digits: enough to notice an accident.
    pub(crate) fn short(&self) -> &[u8] {
        self.0.first_chunk::<16>().map_or(&[], |short| short)
    }
}

fn digit(nibble: u8) -> u8 {
    DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0')
}

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_sha256sum_prints() {
        let hash = Hash::of(b"abc");
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.as_str(), known);
        assert_eq!(Hash::parse(known), Some(hash));
    }

    #[test]
    fn only_a_hash_is_a_hash() {
        let upper = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
        for text in ["", "../../etc/passwd", upper, &"g".repeat(64)] {
            assert_eq!(Hash::parse(text), None);
        }
    }
}

//! Tokens that were found by their shape, and the names that stand for them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::shape::tag;

/// More are hidden all the same, but nobody gets them back.
const MOST: usize = 10_000;

/// The tokens that were found so far. The same token has the same name, and another one has another.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<String, String>>);

impl Tokens {
    /// Returns the name of a token. Its tag tells it from others of its kind.
    pub(super) fn name(&self, kind: &str, first_tag: u64, value: &str) -> String {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut number = first_tag;
        loop {
            let name = format!("[secret {kind} {:06x}]", short(number));
            match tokens.get(&name) {
                Some(known) if known != value => number = tag([number.to_le_bytes().as_slice()]),
                Some(_) => return name,
                None if tokens.len() >= MOST => return name,
                None => {
                    tokens.insert(name.clone(), value.to_owned());
                    return name;
                }
            }
        }
    }

    /// Returns the token that has this name.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

/// Makes 24 bits of 64, each of which depends on all.
const fn short(tag: u64) -> u64 {
    (tag ^ tag >> 24 ^ tag >> 48) & 0x00ff_ffff
}

impl fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        formatter.debug_struct("Tokens").field("count", &count).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_with_one_tag_have_names_of_their_own() {
        let tokens = Tokens::default();
        let first = tokens.name("url_password", 7, "hunter22");
        let second = tokens.name("url_password", 7, "hunter23");
        assert_ne!(first, second);
        assert_eq!(tokens.name("url_password", 7, "hunter22"), first);
        assert_eq!(tokens.name("url_password", 7, "hunter23"), second);
        assert_eq!(tokens.value(&second).as_deref(), Some("hunter23"));
        assert!(!format!("{tokens:?}").contains("hunter"));
    }
}

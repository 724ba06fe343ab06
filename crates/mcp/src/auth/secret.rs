//! A text that is sent and never shown.

use std::fmt;

use url::form_urlencoded::byte_serialize;

/// What stands where a secret stood.
const MASK: &str = "***";

/// A shorter text could stand anywhere by chance.
const SHORTEST_HIDDEN: usize = 4;

/// A token, a code, a password or a key. Shown as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a text that is not to be shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text, for the request or the file that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Takes the text out of another one, as it is and as it stands in a form or a URL.
    pub(crate) fn hide(&self, text: &str) -> String {
        if self.0.len() < SHORTEST_HIDDEN {
            return text.to_owned();
        }
        let encoded: String = byte_serialize(self.0.as_bytes()).collect();
        text.replace(&self.0, MASK).replace(&encoded, MASK)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_and_taken_out_of_texts() {
        let secret = Secret::new("a/b+c=");
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(secret.hide("got a/b+c= in ?t=a%2Fb%2Bc%3D"), "got *** in ?t=***");
        assert_eq!(Secret::new("").hide("text"), "text");
    }
}

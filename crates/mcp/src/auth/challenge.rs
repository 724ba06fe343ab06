//! What a server says when it turns a request away: the `WWW-Authenticate` header.

/// The part of the header that is about bearer tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// Where the server describes itself.
    pub(super) resource_metadata: Option<String>,
    /// The scopes it wants.
    pub(super) scopes: Vec<String>,
    /// Its word for what is wrong.
    pub(super) error: Option<String>,
}

impl Challenge {
    /// Reads a header. What cannot be read is not there.
    pub(super) fn parse(header: &str) -> Self {
        let mut challenge = Self::default();
        let mut in_bearer = false;
        let mut rest = Rest(header);
        while let Some(word) = rest.word() {
            match rest.value() {
                None => in_bearer = word.eq_ignore_ascii_case("Bearer"),
                Some(value) if in_bearer => challenge.take(word, value),
                Some(_) => {}
            }
        }
        challenge
    }

    /// Keeps what is said first; a second word on the same matter could be smuggled in.
    fn take(&mut self, name: &str, value: String) {
        match name.to_ascii_lowercase().as_str() {
            "resource_metadata" if self.resource_metadata.is_none() => {
                self.resource_metadata = Some(value);
            }
            "scope" if self.scopes.is_empty() => {
                self.scopes = value.split_whitespace().map(str::to_owned).collect();
            }
            "error" if self.error.is_none() => self.error = Some(value),
            _ => {}
        }
    }

    /// Tells whether the token is good, and good for too little.
    pub(super) fn wants_more_scopes(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// What is left of a header.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    /// Takes the next word: the name of a scheme or of a parameter.
    fn word(&mut self) -> Option<&'a str> {
        let separator = |letter: char| letter.is_whitespace() || matches!(letter, ',' | '=' | '"');
        let text = self.0.trim_start_matches(separator);
        let end = text.find(separator).unwrap_or(text.len());
        let (word, rest) = text.split_at_checked(end)?;
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Takes the value of the parameter whose name was just taken; none if it was no parameter.
    fn value(&mut self) -> Option<String> {
        let text = self.0.trim_start().strip_prefix('=')?.trim_start();
        let Some(quoted) = text.strip_prefix('"') else {
            let end = text.find(|letter: char| letter == ',' || letter.is_whitespace());
            let (value, rest) = text.split_at_checked(end.unwrap_or(text.len()))?;
            self.0 = rest;
            return Some(value.to_owned());
        };
        let mut value = String::new();
        let mut letters = quoted.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.0 = quoted.get(at + 1..).unwrap_or_default();
                    return Some(value);
                }
                '\\' => value.extend(letters.next().map(|(_, escaped)| escaped)),
                _ => value.push(letter),
            }
        }
        // The quote never ends, so nothing behind it can be told apart from it.
        self.0 = "";
        Some(String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(header: &str) -> (Option<String>, Vec<String>, Option<String>) {
        let Challenge { resource_metadata, scopes, error } = Challenge::parse(header);
        (resource_metadata, scopes, error)
    }

    #[test]
    fn the_parameters_of_the_bearer_scheme_are_read() {
        let text = |text: &str| Some(text.to_owned());
        for (header, metadata, scopes, error) in [
            ("", None, vec![], None),
            ("Bearer", None, vec![], None),
            ("bearer scope=\"a b\"", None, vec!["a", "b"], None),
            ("Bearer error=invalid_token , scope = x", None, vec!["x"], text("invalid_token")),
            (
                "Bearer realm=\"a, scope=b\", resource_metadata=\"https://x/y?z=1,2\"",
                text("https://x/y?z=1,2"),
                vec![],
                None,
            ),
            ("Basic scope=a, Bearer error=\"e\\\"f\"", None, vec![], text("e\"f")),
            ("Bearer error=e, Basic realm=\"r\", scope=a", None, vec![], text("e")),
            ("Bearer scope=a, scope=b", None, vec!["a"], None),
            ("Bearer scope=\"never ends, error=e", None, vec![], None),
            ("DPoP scope=a", None, vec![], None),
        ] {
            let scopes = scopes.into_iter().map(str::to_owned).collect();
            assert_eq!(parsed(header), (metadata, scopes, error), "{header}");
        }
    }
}

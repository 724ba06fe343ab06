//! What the browser brings back, and whether it is for us.
//!
//! Anybody on this machine, and any page in its browser, can call the address that waits for a login. Only
//! who knows the `state` is answered to; everything else is told so and changes nothing. The answer then
//! has to come from the authorization server that was asked (RFC 9207), letter by letter.

use url::Url;
use url::form_urlencoded::parse;

use super::error::{AuthError, said};
use super::secret::Secret;

/// What an answer has to be.
#[derive(Debug)]
pub(super) struct Expected {
    /// What only the right answer knows.
    pub(super) state: Secret,
    /// Who has to give it.
    pub(super) issuer: String,
    /// Whether it has to say who gives it.
    pub(super) names_issuer: bool,
}

/// What came back.
#[derive(Debug)]
pub(super) enum Answer {
    /// A code that tokens can be had for.
    Code(Secret),
    /// Nothing to do with this login.
    NotOurs(&'static str),
}

impl Expected {
    /// Reads the query of the address that a browser came back to.
    pub(super) fn read(&self, query: &str) -> Result<Answer, AuthError> {
        let (mut code, mut state, mut issuer, mut error) = (None, None, None, None);
        let mut description = String::new();
        for (name, value) in parse(query.as_bytes()) {
            let place = match &*name {
                "code" => &mut code,
                "state" => &mut state,
                "iss" => &mut issuer,
                "error" => &mut error,
                "error_description" => {
                    description = said(&value);
                    continue;
                }
                _ => continue,
            };
            if place.replace(value.into_owned()).is_some() {
                return Ok(Answer::NotOurs("it says the same thing twice"));
            }
        }
        if state.as_deref() != Some(self.state.expose()) {
            return Ok(Answer::NotOurs("it does not belong to this login"));
        }
        self.check(issuer.as_deref())?;
        match (code, error) {
            (_, Some(error)) => {
                let error = said(&error);
                Err(AuthError::Refused { purpose: "let you in", error, description })
            }
            (Some(code), None) if !code.is_empty() => Ok(Answer::Code(Secret::new(code))),
            _ => Ok(Answer::NotOurs("it holds no code")),
        }
    }

    fn check(&self, issuer: Option<&str>) -> Result<(), AuthError> {
        let expected = self.issuer.clone();
        match issuer {
            Some(issuer) if issuer == self.issuer => Ok(()),
            Some(issuer) => Err(AuthError::IssuerMismatch { expected, found: said(issuer) }),
            None if self.names_issuer => Err(AuthError::IssuerUnnamed { expected }),
            None => Ok(()),
        }
    }

    /// Reads an address that somebody pasted, or what stands behind its question mark.
    pub(super) fn read_pasted(&self, text: &str) -> Result<Answer, AuthError> {
        let text = text.trim();
        let url = Url::parse(text).ok();
        let query = url.as_ref().map_or(Some(text), Url::query).unwrap_or_default();
        self.read(query.trim_start_matches('?'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(names_issuer: bool) -> Expected {
        let state = Secret::new("unguessable");
        Expected { state, issuer: "https://b.example".into(), names_issuer }
    }

    fn code(read: Result<Answer, AuthError>) -> Option<String> {
        match read.unwrap() {
            Answer::Code(code) => Some(code.expose().to_owned()),
            Answer::NotOurs(_) => None,
        }
    }

    #[test]
    fn only_who_knows_the_state_is_listened_to() {
        let expected = expected(false);
        assert_eq!(code(expected.read("code=c&state=unguessable")).as_deref(), Some("c"));
        for query in [
            "",
            "code=c",
            "code=c&state=guess",
            "code=c&state=",
            "error=access_denied&state=guess",
            "state=unguessable",
            "code=&state=unguessable",
            "code=c&code=d&state=unguessable",
            "code=c&state=guess&state=unguessable",
        ] {
            assert_eq!(code(expected.read(query)), None, "{query}");
        }
    }

    #[test]
    fn the_issuer_is_compared_letter_by_letter_and_before_anything_else() {
        for (names, issuer, right) in [
            (true, Some("https://b.example"), true),
            (true, None, false),
            (false, None, true),
            (false, Some("https://b.example"), true),
            (false, Some("https://b.example/"), false),
            (false, Some("https://B.example"), false),
            (false, Some("https://b.example:443"), false),
            (false, Some(""), false),
        ] {
            for rest in ["code=c", "error=access_denied"] {
                let issuer = issuer.map(|issuer| format!("&iss={issuer}")).unwrap_or_default();
                let read = expected(names).read(&format!("{rest}&state=unguessable{issuer}"));
                let refused = matches!(
                    read,
                    Err(AuthError::IssuerMismatch { .. } | AuthError::IssuerUnnamed { .. })
                );
                assert_eq!(refused, !right, "{issuer} {rest}");
            }
        }
    }

    #[test]
    fn a_refusal_is_told_in_words_that_cannot_steer_a_terminal() {
        let query = "error=access_denied&error_description=no%1b[2J%0away&state=unguessable";
        let error = expected(false).read(query).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the authorization server refused to let you in: access_denied (no[2Jway)"
        );
    }

    #[test]
    fn an_address_can_be_pasted_whole_or_in_part() {
        for text in [
            " http://127.0.0.1:1/callback?code=c&state=unguessable \n",
            "?code=c&state=unguessable",
            "code=c&state=unguessable",
        ] {
            assert_eq!(code(expected(false).read_pasted(text)).as_deref(), Some("c"), "{text}");
        }
        for text in ["", "http://127.0.0.1:1/callback", "hello"] {
            assert_eq!(code(expected(false).read_pasted(text)), None, "{text}");
        }
    }
}

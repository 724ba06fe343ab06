//! Which scopes are asked for.

use super::challenge::Challenge;
use super::discover::Found;
use super::settings::{AuthSettings, Grant};

/// The scope that asks for a token to refresh with.
const OFFLINE: &str = "offline_access";

/// Returns the scopes to ask for: those that the user set, or that the server wants right now, or that it
/// knows; and those that were asked for `before`, since a new token takes the place of the old one. None
/// means that the authorization server decides.
pub(super) fn scopes_for(
    settings: &AuthSettings,
    challenge: &Challenge,
    found: &Found,
    before: &[String],
) -> Vec<String> {
    let mut scopes = Vec::new();
    match &settings.scopes {
        Some(set) => {
            add(&mut scopes, set);
            if challenge.wants_more_scopes() {
                add(&mut scopes, &challenge.scopes);
            }
        }
        None if !challenge.scopes.is_empty() => add(&mut scopes, &challenge.scopes),
        None => add(&mut scopes, &found.resource_scopes),
    }
    add(&mut scopes, before);
    offline(&mut scopes, settings, found);
    scopes
}

/// Asks for a token to refresh with where the authorization server knows that scope, and only there. A
/// request that names no scopes is left alone: naming one would give up all the others.
fn offline(scopes: &mut Vec<String>, settings: &AuthSettings, found: &Found) {
    let issuer = &found.issuer;
    let known = issuer.scopes_supported.iter().any(|scope| scope == OFFLINE);
    let refreshes = issuer
        .grant_types_supported
        .as_ref()
        .is_none_or(|grants| grants.iter().any(|grant| grant == "refresh_token"));
    let set_by_user =
        settings.scopes.as_ref().is_some_and(|set| set.iter().any(|scope| scope == OFFLINE));
    if known && refreshes && matches!(settings.grant, Grant::Person) {
        if !scopes.is_empty() {
            add(scopes, &[OFFLINE.to_owned()]);
        }
    } else if !set_by_user {
        scopes.retain(|scope| scope != OFFLINE);
    }
}

fn add(scopes: &mut Vec<String>, more: &[String]) {
    for scope in more {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::auth::metadata::ServerMetadata;

    fn texts(words: &str) -> Vec<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    fn found(resource: &str, issuer: &str) -> Found {
        let mut metadata = ServerMetadata::assumed("https://b.example");
        metadata.scopes_supported = texts(issuer);
        Found {
            resource: "https://a.example".into(),
            resource_scopes: texts(resource),
            issuer: metadata,
        }
    }

    #[test]
    fn the_nearest_word_counts_and_what_was_asked_before_stays() {
        let settings = AuthSettings::new("a", Url::parse("https://a.example").unwrap());
        for (challenge, resource, before, expected) in [
            ("c", "r s", "", "c"),
            ("", "r s", "", "r s"),
            ("", "", "", ""),
            ("c", "r", "b c", "c b"),
        ] {
            let challenge = Challenge { scopes: texts(challenge), ..Challenge::default() };
            let scopes = scopes_for(&settings, &challenge, &found(resource, "x"), &texts(before));
            assert_eq!(scopes, texts(expected));
        }
    }

    #[test]
    fn what_the_user_set_counts_until_more_is_needed() {
        let url = Url::parse("https://a.example").unwrap();
        let settings = AuthSettings { scopes: Some(texts("mine")), ..AuthSettings::new("a", url) };
        let mut challenge = Challenge { scopes: texts("c"), ..Challenge::default() };
        assert_eq!(scopes_for(&settings, &challenge, &found("r", ""), &[]), ["mine"]);
        challenge.error = Some("insufficient_scope".into());
        assert_eq!(scopes_for(&settings, &challenge, &found("r", ""), &[]), ["mine", "c"]);
    }

    #[test]
    fn offline_access_is_asked_for_where_it_is_known_and_only_there() {
        let settings = AuthSettings::new("a", Url::parse("https://a.example").unwrap());
        let scopes = |resource: &str, issuer: &str| {
            let found = found(resource, issuer);
            scopes_for(&settings, &Challenge::default(), &found, &[]).join(" ")
        };
        assert_eq!(scopes("r", "r offline_access"), "r offline_access");
        assert_eq!(scopes("r", "r"), "r");
        assert_eq!(scopes("r offline_access", "r"), "r");
        assert_eq!(scopes("", "r offline_access"), "");
        let machine = AuthSettings { grant: Grant::ClientSecret, ..settings.clone() };
        let found = found("r", "r offline_access");
        assert_eq!(scopes_for(&machine, &Challenge::default(), &found, &[]), ["r"]);
    }
}

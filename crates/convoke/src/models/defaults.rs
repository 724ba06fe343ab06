//! What is guessed where nobody says it: the model of a provider whose key is there, and the provider
//! of a model whose name gives it away. The list is data, `defaults.json`; its order is the order in
//! which keys are looked for.

use std::sync::LazyLock;

use serde::Deserialize;

/// What is guessed about one provider.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Guess {
    /// Its name.
    pub(super) provider: String,
    /// The model that is asked where only its key is there.
    pub(super) model: String,
    /// How the names of its models begin.
    prefixes: Vec<String>,
}

static DEFAULTS: LazyLock<Vec<Guess>> =
    LazyLock::new(|| serde_json::from_str(include_str!("defaults.json")).unwrap_or_default());

/// Returns what is guessed, the provider to look at first in front.
pub(super) fn all() -> &'static [Guess] {
    &DEFAULTS
}

/// Returns the model that is asked of a provider where nobody names one.
pub(super) fn model_of(provider: &str) -> Option<&'static str> {
    let found = all().iter().find(|default| default.provider == provider)?;
    Some(&found.model)
}

/// Returns whose model a name is by the way it begins, and that beginning.
pub(super) fn owner_of(model: &str) -> Option<(&'static str, &'static str)> {
    all().iter().find_map(|default| {
        let prefix = default.prefixes.iter().find(|prefix| begins(model, prefix))?;
        Some((default.provider.as_str(), prefix.as_str()))
    })
}

/// `o1` is the beginning of `o1` and `o1-mini`, not of `o1000`.
fn begins(model: &str, prefix: &str) -> bool {
    match model.strip_prefix(prefix) {
        Some("") => !prefix.ends_with('-'),
        Some(rest) => prefix.ends_with('-') || rest.starts_with('-'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::known;

    #[test]
    fn the_data_names_providers_that_are_known() {
        let names: Vec<&str> = all().iter().map(|default| default.provider.as_str()).collect();
        assert_eq!(names, ["anthropic", "openai", "gemini"]);
        for default in all() {
            let known = known::find(&default.provider).expect(&default.provider);
            assert!(!known.key_variables.is_empty(), "{} has a key to look for", known.name);
            let owner = owner_of(&default.model).map(|(provider, _)| provider);
            assert_eq!(owner, Some(known.name), "{} is recognised", default.model);
        }
    }

    #[test]
    fn names_give_their_provider_away() {
        for (model, owner) in [
            ("gpt-4.1", Some("openai")),
            ("chatgpt-4o-latest", Some("openai")),
            ("o1", Some("openai")),
            ("o3-mini", Some("openai")),
            ("o4-mini", Some("openai")),
            ("o1000", None),
            ("o3x-mini", None),
            ("gpt-", None),
            ("gpt", None),
            ("claude-opus-4-1", Some("anthropic")),
            ("claude", None),
            ("gemini-2.5-pro", Some("gemini")),
            ("llama3.2", None),
            ("my-gpt-4", None),
            ("", None),
        ] {
            assert_eq!(owner_of(model).map(|(provider, _)| provider), owner, "{model}");
        }
    }
}

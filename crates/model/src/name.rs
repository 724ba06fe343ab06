//! `provider/model`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The name of a model: whose it is, and what that provider calls it.
///
/// The provider is everything before the first slash. The rest is taken as it is: names such as
/// `meta-llama/llama-3.3-70b` or `qwen2.5:7b` go to the provider unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelName {
    provider: Arc<str>,
    model: Arc<str>,
}

/// A name that is not `provider/model`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a model name; write it as `provider/model`")]
pub struct NameError(pub String);

impl ModelName {
    /// Makes a name of its two halves.
    pub fn new(provider: impl Into<Arc<str>>, model: impl Into<Arc<str>>) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }

    /// Returns whose model it is.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Returns what its provider calls it.
    pub fn model(&self) -> &str {
        &self.model
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.provider, self.model)
    }
}

impl FromStr for ModelName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        match text.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
                Ok(Self::new(provider, model))
            }
            _ => Err(NameError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_slash_divides() {
        let name: ModelName = "router/meta-llama/llama-3.3-70b:free".parse().unwrap();
        assert_eq!((name.provider(), name.model()), ("router", "meta-llama/llama-3.3-70b:free"));
        assert_eq!(name.to_string(), "router/meta-llama/llama-3.3-70b:free");
        for wrong in ["gpt-5", "/gpt-5", "openai/", ""] {
            assert_eq!(wrong.parse::<ModelName>(), Err(NameError(wrong.to_owned())));
        }
    }
}

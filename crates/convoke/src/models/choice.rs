//! From what somebody asked for to `provider/model`: defaults, aliases, names without a provider.

use convoke_core::nearest::nearest;
use convoke_model::ModelName;

use super::error::ModelChoiceError;
use super::{ModelSources, defaults, known};
use crate::config::printable;

/// How many aliases may lead to one another.
const DEEPEST: usize = 8;

/// The provider at `OPENAI_BASE_URL`: what other servers speak is chat completions.
const OTHER_SERVER: &str = "openai-chat";

impl ModelSources<'_> {
    /// Returns which model is meant. Every step on the way is noted in `why`.
    pub(super) fn choose(
        &self,
        asked: Option<&str>,
        why: &mut Vec<String>,
    ) -> Result<ModelName, ModelChoiceError> {
        let name = match (asked, &self.model.default) {
            (Some(name), _) => {
                why.push(format!("`{}` was asked for", printable(name)));
                name
            }
            (None, Some(name)) => {
                why.push(format!("`model.default` is `{}`", printable(name)));
                name
            }
            (None, None) => return self.by_key(why),
        };
        let name = self.follow_aliases(name, why)?.trim();
        if name.contains('/') { self.with_provider(name) } else { self.without_provider(name, why) }
    }

    /// Takes the first provider for which there is a key. Which models the server of
    /// `OPENAI_BASE_URL` has is not known, so its key suggests none.
    fn by_key(&self, why: &mut Vec<String>) -> Result<ModelName, ModelChoiceError> {
        let other_server = self.openai_is_elsewhere();
        for default in defaults::all() {
            let elsewhere = other_server && default.provider == "openai";
            let Some(key) = self.find_key(&default.provider, None).found else { continue };
            if !elsewhere {
                why.push(format!("`model.default` is not set and `{}` is", key.setting));
                return Ok(ModelName::new(default.provider.as_str(), default.model.as_str()));
            }
        }
        Err(ModelChoiceError::NoModel { other_server })
    }

    fn follow_aliases<'a>(
        &'a self,
        name: &'a str,
        why: &mut Vec<String>,
    ) -> Result<&'a str, ModelChoiceError> {
        let mut chain = vec![name.trim()];
        loop {
            let name = chain.last().copied().unwrap_or_default();
            let Some(target) = self.model.aliases.get(name) else { return Ok(name) };
            let target = target.trim();
            let turned_back = chain.iter().position(|passed| *passed == target);
            chain.push(target);
            let passed = |chain: &[&str]| chain.iter().map(|name| printable(name)).collect();
            if let Some(start) = turned_back {
                let chain = passed(chain.get(start..).unwrap_or_default());
                return Err(ModelChoiceError::AliasCycle { chain });
            }
            if chain.len() > DEEPEST + 1 {
                return Err(ModelChoiceError::AliasTooDeep { chain: passed(&chain) });
            }
            why.push(format!("`{}` is an alias of `{}`", printable(name), printable(target)));
        }
    }

    fn with_provider(&self, text: &str) -> Result<ModelName, ModelChoiceError> {
        let name: ModelName =
            text.parse().map_err(|_| ModelChoiceError::NotAName { name: printable(text) })?;
        if self.is_provider(name.provider()) {
            return Ok(name);
        }
        let known = self.provider_names();
        let close = nearest(name.provider(), known.iter().copied());
        Err(ModelChoiceError::UnknownProvider {
            provider: printable(name.provider()),
            model: printable(name.model()),
            nearest: close.into_iter().map(str::to_owned).collect(),
            known: known.into_iter().map(str::to_owned).collect(),
            other_server: self.openai_is_elsewhere(),
        })
    }

    fn without_provider(
        &self,
        name: &str,
        why: &mut Vec<String>,
    ) -> Result<ModelName, ModelChoiceError> {
        if name.is_empty() {
            return Err(ModelChoiceError::NotAName { name: String::new() });
        }
        if self.is_provider(name) {
            let example = defaults::model_of(name).map(str::to_owned);
            return Err(ModelChoiceError::OnlyProvider { provider: name.to_owned(), example });
        }
        if self.openai_is_elsewhere() {
            why.push("a name without a provider goes to the server of `OPENAI_BASE_URL`".into());
            return Ok(ModelName::new(OTHER_SERVER, name));
        }
        if let Some((provider, prefix)) = defaults::owner_of(name) {
            why.push(format!("a name that begins with `{prefix}` belongs to `{provider}`"));
            return Ok(ModelName::new(provider, name));
        }
        let close = nearest(name, self.model.aliases.keys().map(String::as_str));
        let nearest = close.into_iter().map(str::to_owned).collect();
        Err(ModelChoiceError::UnknownOwner { name: printable(name), nearest })
    }

    fn is_provider(&self, name: &str) -> bool {
        self.model.providers.contains_key(name) || known::find(name).is_some()
    }

    /// Returns the names of all providers: the user's own first, then those everybody knows.
    pub fn provider_names(&self) -> Vec<&str> {
        let own = self.model.providers.keys().map(String::as_str);
        let others = convoke_model::KNOWN_PROVIDERS.iter().map(|known| known.name);
        own.chain(others.filter(|name| !self.model.providers.contains_key(*name))).collect()
    }
}

//! Which model is asked: from a configuration and an environment to a provider that can be called.
//!
//! A name is `provider/model`, an alias (`model.aliases`), or a model's bare name. Where nobody names
//! one, it is `model.default`, and otherwise a model of the first provider for which there is a key.
//! [`Resolved::why`] says what decided, and [`ModelChoiceError::hint`] what to do where nothing could.
//!
//! What always holds:
//!
//! - The environment comes in from outside, and no value of it is in a message; keys are in none.
//! - The configuration goes before a provider's own variables (`OPENAI_BASE_URL`, …).
//! - A provider of a known host is not asked without a key; one of the user's own may have none.
//!
//! What it does not do: open connections, read files, look for servers on this machine.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use convoke::config::Config;
//! use convoke::models::ModelSources;
//!
//! let environment = BTreeMap::from([("ANTHROPIC_API_KEY".to_owned(), "sk-ant-…".to_owned())]);
//! let config = Config::default();
//! let resolved = ModelSources::new(&config, &environment).resolve(Some("claude-opus-4-1"))?;
//! assert_eq!(resolved.name.to_string(), "anthropic/claude-opus-4-1");
//! assert_eq!(
//!     resolved.why,
//!     "`claude-opus-4-1` was asked for; a name that begins with `claude-` belongs to `anthropic`; \
//!      its key is from `ANTHROPIC_API_KEY`"
//! );
//! # Ok::<(), convoke::models::ModelChoiceError>(())
//! ```

mod access;
mod choice;
mod defaults;
mod environment;
mod error;
mod known;

use std::collections::BTreeMap;
use std::time::Duration;

use convoke_core::ModelFacts;
use convoke_model::{Catalogue, ModelName, Provider, ProxySettings};

use crate::config::{Config, ModelConfig, covers};
use environment::Environment;
pub use error::ModelChoiceError;

/// Everything a choice of model is made from.
#[derive(Clone, Copy, Debug)]
pub struct ModelSources<'a> {
    model: &'a ModelConfig,
    environment: Environment<'a>,
}

/// A model that was chosen, with everything needed to ask it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resolved {
    /// Its name.
    pub name: ModelName,
    /// Where it is and with which key it is asked.
    pub provider: Provider,
    /// What the configuration knows about it, by pattern, the closest first.
    pub facts: Vec<(String, ModelFacts)>,
    /// What its server says about it, for what nobody else knows.
    pub listed: ModelFacts,
    /// How it is reached.
    pub network: Network,
    /// Which settings and variables decided, for people.
    pub why: String,
}

/// How providers are reached. It is the same for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Network {
    /// Which proxies are used.
    pub proxies: ProxySettings,
    /// How long a provider may be silent.
    pub idle_timeout: Duration,
    /// How many times a request that failed is made again.
    pub retries: u32,
}

impl<'a> ModelSources<'a> {
    /// Takes a configuration and the environment it was loaded with.
    pub fn new(config: &'a Config, environment: &'a BTreeMap<String, String>) -> Self {
        Self { model: &config.model, environment: Environment(environment) }
    }

    /// Finds the model of a name; without a name, the one to ask where nobody says.
    pub fn resolve(&self, name: Option<&str>) -> Result<Resolved, ModelChoiceError> {
        let mut why = Vec::new();
        let name = self.choose(name, &mut why)?;
        let provider = self.provider(name.provider(), &mut why)?;
        Ok(Resolved {
            facts: self.facts(&name),
            name,
            provider,
            listed: ModelFacts::default(),
            network: self.network(),
            why: why.join("; "),
        })
    }

    /// Puts a provider together from everything that is said about it.
    pub fn provider_named(&self, name: &str) -> Result<Provider, ModelChoiceError> {
        self.provider(name, &mut Vec::new())
    }

    /// Returns how providers are reached.
    pub fn network(&self) -> Network {
        Network {
            proxies: self.environment.proxies(),
            idle_timeout: self.model.idle_timeout.duration(),
            retries: self.model.retries,
        }
    }

    /// Returns what is known about a model that its server lists: what the configuration says, what is
    /// built in where it says nothing, and what the server says where neither does.
    pub fn facts_of_listed(&self, name: &ModelName, listed: ModelFacts) -> ModelFacts {
        joined(&self.facts(name), [Catalogue::new().facts(name), listed])
    }

    fn facts(&self, name: &ModelName) -> Vec<(String, ModelFacts)> {
        let name = name.to_string();
        let matching = self.model.facts.iter().filter(|(pattern, _)| covers(pattern, &name));
        let mut facts: Vec<(String, ModelFacts)> =
            matching.map(|(pattern, facts)| (pattern.clone(), facts.facts())).collect();
        let written_out = |pattern: &str| pattern.chars().filter(|letter| *letter != '*').count();
        facts.sort_by_key(|(pattern, _)| std::cmp::Reverse(written_out(pattern)));
        facts
    }
}

impl Resolved {
    /// Returns what is known about the model: what the configuration says, what is built in where it says
    /// nothing, and what its server says where neither does.
    #[must_use]
    pub fn facts_over(&self, built_in: ModelFacts) -> ModelFacts {
        joined(&self.facts, [built_in, self.listed])
    }
}

/// Puts together what is known about a model: what is said first counts.
fn joined(said: &[(String, ModelFacts)], others: [ModelFacts; 2]) -> ModelFacts {
    let said = said.iter().map(|(_, facts)| *facts);
    said.chain(others).fold(ModelFacts::default(), ModelFacts::or)
}

#[cfg(test)]
mod tests;

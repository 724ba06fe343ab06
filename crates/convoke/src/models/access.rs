//! Where a provider is and with which key it is asked.
//!
//! What the configuration says goes before what a provider's own variables say, and that before what
//! everybody knows. A provider of the user's own gets a known provider's key at that one's host only.

use convoke_model::{KNOWN_PROVIDERS, KnownProvider, Limits, Provider, WireFormat};
use url::Url;

use super::error::ModelChoiceError;
use super::{ModelSources, known};
use crate::config::{ProviderConfig, Secret};

/// A key that was found, and where. It has no `Debug`: there is no reason to print one.
pub(super) struct FoundKey {
    pub(super) value: String,
    pub(super) setting: String,
}

/// The search for a key.
pub(super) struct KeySearch {
    pub(super) found: Option<FoundKey>,
    /// The variables that were looked at, or would have been.
    variables: Vec<String>,
    /// Whether the configuration names the variable.
    named: bool,
}

/// An address, and who says it, if it is not what everybody knows.
struct Address {
    url: Url,
    text: String,
    setting: Option<String>,
}

impl ModelSources<'_> {
    /// Puts a provider together from everything that is said about it.
    pub(super) fn provider(
        &self,
        name: &str,
        why: &mut Vec<String>,
    ) -> Result<Provider, ModelChoiceError> {
        let config = self.model.providers.get(name);
        let known = known::find(name);
        let address = self.address(name, config, known)?;
        if let Some(setting) = &address.setting {
            why.push(format!("its address is from `{setting}`"));
        }
        let KeySearch { found, variables, named } = self.find_key(name, address.url.host_str());
        if let Some(key) = &found {
            why.push(format!("its key is from `{}`", key.setting));
        } else if named || owner_of_host(address.url.host_str()).is_some() {
            return Err(ModelChoiceError::MissingKey { provider: name.to_owned(), variables });
        }
        let wire = config.and_then(|config| config.wire).map(WireFormat::from);
        let wire = wire.or(known.map(|known| known.wire)).unwrap_or(WireFormat::OpenAiChat);
        Ok(Provider {
            name: name.to_owned(),
            wire,
            base_url: address.text,
            key: found.map(|key| key.value),
            key_variable: variables.into_iter().next(),
            headers: config.map(headers).unwrap_or_default(),
            limits: config.map(limits).unwrap_or_default(),
        })
    }

    fn address(
        &self,
        name: &str,
        config: Option<&ProviderConfig>,
        known: Option<&KnownProvider>,
    ) -> Result<Address, ModelChoiceError> {
        let configured = config.and_then(|config| config.base_url.clone());
        let configured = configured.map(|url| (url, format!("model.providers.{name}.baseUrl")));
        let variable = || {
            let (url, variable) = self.environment.base_url(name)?;
            Some((url, variable.to_owned()))
        };
        let (text, setting) = match (configured.or_else(variable), known) {
            (Some((text, setting)), _) => (text, Some(setting)),
            (None, Some(known)) => (known.base_url.to_owned(), None),
            (None, None) => {
                return Err(ModelChoiceError::NoAddress { provider: name.to_owned() });
            }
        };
        let bad = || {
            let setting = setting.clone().unwrap_or_else(|| name.to_owned());
            ModelChoiceError::BadAddress { setting }
        };
        let url = server(&text).ok_or_else(bad)?;
        Ok(Address { url, text, setting })
    }

    /// Looks for a provider's key. `host` is where it will be sent, as far as that is known.
    pub(super) fn find_key(&self, provider: &str, host: Option<&str>) -> KeySearch {
        let config = self.model.providers.get(provider);
        let named = config.and_then(|config| config.key_variable.clone());
        let usual = || {
            let known = known::find(provider).or_else(|| owner_of_host(host));
            known.map(|known| known.key_variables).unwrap_or_default()
        };
        let (variables, named) = match named {
            Some(variable) => (vec![variable], true),
            None => (usual().iter().map(|&name| name.to_owned()).collect(), false),
        };
        let written = config.and_then(|config| config.key.as_ref()).map(Secret::expose);
        let written = written.map(str::trim).filter(|key| !key.is_empty());
        let found = match written {
            Some(key) => Some((key, format!("model.providers.{provider}.key"))),
            None => variables
                .iter()
                .find_map(|variable| Some((self.environment.get(variable)?, variable.clone()))),
        };
        let found = found.map(|(key, setting)| FoundKey { value: key.to_owned(), setting });
        KeySearch { found, variables, named }
    }

    /// Tells whether `OPENAI_BASE_URL` leads to a server of somebody else.
    pub(super) fn openai_is_elsewhere(&self) -> bool {
        let Some((text, _)) = self.environment.base_url("openai") else { return false };
        let owner = server(&text).and_then(|url| owner_of_host(url.host_str()).copied());
        owner.is_none_or(|owner| owner.name != "openai")
    }
}

/// Reads the address of a server.
fn server(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// Returns the known provider that a host in the network belongs to; it wants a key.
fn owner_of_host(host: Option<&str>) -> Option<&'static KnownProvider> {
    let host = host?;
    let wants_key = KNOWN_PROVIDERS.iter().filter(|known| !known.key_variables.is_empty());
    let is_there = |known: &&KnownProvider| {
        server(known.base_url).is_some_and(|url| url.host_str() == Some(host))
    };
    wants_key.into_iter().find(is_there)
}

fn headers(config: &ProviderConfig) -> Vec<(String, String)> {
    let plain = |(name, value): (&String, &Secret)| (name.clone(), value.expose().to_owned());
    config.headers.iter().map(plain).collect()
}

fn limits(config: &ProviderConfig) -> Limits {
    Limits {
        max_concurrent: config.max_concurrent.and_then(|count| count.try_into().ok()),
        requests_per_minute: config.requests_per_minute.and_then(|count| count.try_into().ok()),
    }
}

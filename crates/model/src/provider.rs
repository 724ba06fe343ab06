//! A model behind HTTP: its address, its key, the wire it speaks.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use convoke_core::ModelFacts;
use futures_util::stream;
use url::{Host, Url};

use crate::endpoint::Endpoint;
use crate::error::ModelError;
use crate::exchange::Exchange;
use crate::gate::{Gate, Limits};
use crate::model::{Model, ModelStream};
use crate::name::ModelName;
use crate::request::Request;
use crate::retry::repeating;
use crate::transport::Transport;
use crate::wire::{Outgoing, Wire};

/// The wire formats there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WireFormat {
    /// Google's `streamGenerateContent`.
    Gemini,
    /// `OpenAI`'s Responses.
    OpenAiResponses,
    /// `OpenAI`'s chat completions, which many servers speak.
    OpenAiChat,
    /// Anthropic's Messages.
    Anthropic,
}

impl WireFormat {
    /// Returns the word it has in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gemini => "gemini",
            Self::OpenAiResponses => "openai",
            Self::OpenAiChat => "openai-chat",
            Self::Anthropic => "anthropic",
        }
    }
}

/// Where a provider is and how to talk to it.
#[derive(Clone)]
pub struct Provider {
    /// Its name, as in `provider/model` and in errors.
    pub name: String,
    /// What it speaks.
    pub wire: WireFormat,
    /// Where it is. With or without a slash at the end; `http` or `https`.
    pub base_url: String,
    /// The key, if it wants one.
    pub key: Option<String>,
    /// The variable a key is usually put in, for hints.
    pub key_variable: Option<String>,
    /// Further headers of every request; they go before those of the wire.
    pub headers: Vec<(String, String)>,
    /// How much may be asked of it with this key.
    pub limits: Limits,
}

impl Provider {
    /// Makes a provider without a key.
    pub fn new(name: impl Into<String>, wire: WireFormat, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            wire,
            base_url: base_url.into(),
            key: None,
            key_variable: None,
            headers: Vec::new(),
            limits: Limits::default(),
        }
    }

    /// Returns a provider everybody knows, without a key: `gemini`, `anthropic`, `openai`, `ollama`…
    pub fn known(name: &str) -> Option<Self> {
        let known = KNOWN_PROVIDERS.iter().find(|known| known.name == name)?;
        let mut provider = Self::new(known.name, known.wire, known.base_url);
        provider.key_variable = known.key_variables.first().map(|&name| name.to_owned());
        Some(provider)
    }

    /// Returns where it is, as it may be shown: without a name or password in it.
    pub fn address(&self) -> String {
        match self.base_url.rsplit_once('@') {
            Some((_, rest)) => format!("…@{rest}"),
            None => self.base_url.clone(),
        }
    }

    /// Tells whether it is a server on this machine.
    pub fn is_on_this_machine(&self) -> bool {
        match Url::parse(&self.base_url).ok().as_ref().and_then(Url::host) {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    /// Sets the key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// The key and the headers may be secret, so only their presence is shown; so may be a password in the
/// address.
impl fmt::Debug for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Provider")
            .field("name", &self.name)
            .field("wire", &self.wire)
            .field("base_url", &self.address())
            .field("key", &self.key.as_ref().map(|_| "…"))
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// A provider everybody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownProvider {
    /// Its name.
    pub name: &'static str,
    /// What it speaks.
    pub wire: WireFormat,
    /// Where it is.
    pub base_url: &'static str,
    /// The variables its key is usually put in, the most usual first; none where it needs no key.
    pub key_variables: &'static [&'static str],
}

/// The providers everybody knows. Those without a key are servers on this machine.
pub const KNOWN_PROVIDERS: &[KnownProvider] = &[
    known(
        "gemini",
        WireFormat::Gemini,
        "https://generativelanguage.googleapis.com",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    ),
    known("anthropic", WireFormat::Anthropic, "https://api.anthropic.com", &["ANTHROPIC_API_KEY"]),
    known("openai", WireFormat::OpenAiResponses, "https://api.openai.com/v1", &["OPENAI_API_KEY"]),
    known("openai-chat", WireFormat::OpenAiChat, "https://api.openai.com/v1", &["OPENAI_API_KEY"]),
    known(
        "openrouter",
        WireFormat::OpenAiChat,
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_API_KEY"],
    ),
    known("ollama", WireFormat::OpenAiChat, "http://127.0.0.1:11434/v1", &[]),
    known("lmstudio", WireFormat::OpenAiChat, "http://127.0.0.1:1234/v1", &[]),
    known("llamacpp", WireFormat::OpenAiChat, "http://127.0.0.1:8080/v1", &[]),
    known("vllm", WireFormat::OpenAiChat, "http://127.0.0.1:8000/v1", &[]),
];

const fn known(
    name: &'static str,
    wire: WireFormat,
    base_url: &'static str,
    key_variables: &'static [&'static str],
) -> KnownProvider {
    KnownProvider { name, wire, base_url, key_variables }
}

/// A model of a provider.
#[derive(Debug)]
pub struct ProviderModel {
    name: ModelName,
    facts: ModelFacts,
    endpoint: Arc<Endpoint>,
    transport: Transport,
    gate: Arc<Gate>,
}

impl ProviderModel {
    /// Makes a model. Nothing is opened; an address or a header that cannot be is said here.
    pub fn new(
        model: impl Into<Arc<str>>,
        facts: ModelFacts,
        provider: Provider,
        transport: Transport,
    ) -> Result<Self, ModelError> {
        let wire = provider.wire.wire();
        Self::with_wire(model, facts, provider, wire, transport)
    }

    pub(crate) fn with_wire(
        model: impl Into<Arc<str>>,
        facts: ModelFacts,
        provider: Provider,
        wire: &'static dyn Wire,
        transport: Transport,
    ) -> Result<Self, ModelError> {
        let name = ModelName::new(provider.name.as_str(), model);
        let endpoint = Endpoint::new(provider, wire)?;
        let provider = &endpoint.provider;
        let gate =
            transport.gates().gate(endpoint.base(), provider.key.as_deref(), provider.limits);
        Ok(Self { name, facts, endpoint: Arc::new(endpoint), transport, gate })
    }
}

impl Model for ProviderModel {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn retries(&self) -> u32 {
        self.transport.retry().max_attempts.saturating_sub(1)
    }

    fn stream(&self, request: &Request<'_>) -> ModelStream {
        let Outgoing { path, body } =
            self.endpoint.wire.encode(self.name.model(), &self.facts, request);
        let url = match self.endpoint.url(&path) {
            Ok(url) => url,
            Err(error) => return Box::pin(stream::iter([Err(error)])),
        };
        let exchange = Exchange {
            endpoint: self.endpoint.clone(),
            transport: self.transport.clone(),
            gate: self.gate.clone(),
            url,
            // A repeat sends the same bytes again without copying them.
            body: Bytes::from(body),
        };
        let (policy, chance) = (self.transport.retry(), self.transport.chance());
        repeating(policy, chance, move || exchange.clone().attempt())
    }
}

#[cfg(test)]
mod tests;

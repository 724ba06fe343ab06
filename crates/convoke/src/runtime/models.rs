//! The models of a runtime: found by name, and connected.

use std::sync::Arc;

use convoke_core::ModelFacts;
use convoke_model::{Catalogue, Model, ProviderModel, RetryPolicy, Timeouts, Transport};

use super::{ModelSetupError, Runtime};
use crate::models::{ModelSources, Network, Resolved};

impl Runtime {
    /// Finds a model by name: `provider/model`, an alias, or none for the one to ask where nobody says.
    pub fn model<'a>(
        &self,
        name: impl Into<Option<&'a str>>,
    ) -> Result<Arc<dyn Model>, ModelSetupError> {
        let resolved = self.models().resolve(name.into())?;
        self.connect(&resolved)
    }

    /// Returns how models are chosen here.
    pub fn models(&self) -> ModelSources<'_> {
        ModelSources::new(&self.config, &self.variables)
    }

    /// Makes a model that was chosen ready to be asked. Nothing is opened yet.
    pub fn connect(&self, resolved: &Resolved) -> Result<Arc<dyn Model>, ModelSetupError> {
        let facts = self.facts(resolved);
        let provider = resolved.provider.clone();
        let model = ProviderModel::new(
            resolved.name.model(),
            facts,
            provider,
            self.transport(&resolved.network).clone(),
        );
        Ok(Arc::new(model.map_err(ModelSetupError::Provider)?))
    }

    /// Returns what is known about a model.
    pub fn facts(&self, resolved: &Resolved) -> ModelFacts {
        resolved.facts_over(Catalogue::new().facts(&resolved.name))
    }

    /// Returns the connections all models share.
    pub fn transport(&self, network: &Network) -> &Transport {
        self.transport.get_or_init(|| {
            // Reading a long prompt takes longer than any pause in the middle of an answer.
            let timeouts = Timeouts {
                first_byte: network.idle_timeout.saturating_mul(5),
                idle: network.idle_timeout,
                ..Timeouts::default()
            };
            let retry = RetryPolicy {
                max_attempts: network.retries.saturating_add(1),
                ..RetryPolicy::default()
            };
            Transport::builder()
                .proxy(network.proxies.clone())
                .timeouts(timeouts)
                .retry(retry)
                .build()
        })
    }
}

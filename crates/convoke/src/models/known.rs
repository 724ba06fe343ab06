//! Finding the providers everybody knows.

use convoke_model::provider::{KNOWN_PROVIDERS, KnownProvider};

/// Returns a provider everybody knows.
pub(super) fn find(name: &str) -> Option<&'static KnownProvider> {
    KNOWN_PROVIDERS.iter().find(|known| known.name == name)
}

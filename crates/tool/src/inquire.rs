//! Asking a person something in the middle of a call: not whether it may be made, but what it has to know.

use std::fmt::Debug;

use async_trait::async_trait;
use convoke_core::CallId;
use serde_json::Value;

use crate::approve::Answer;

/// What a call wants to know from a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Inquiry {
    /// Who asks: the tool, or what is behind it.
    pub who: String,
    /// What is asked, in words.
    pub message: String,
    /// The form of an answer: an object with what is known already. The person may change it; saying yes gives
    /// it back as it is.
    pub form: Value,
    /// Why a person is asked.
    pub reason: String,
}

/// Puts what a call wants to know to a person, through the same queue as everything that is asked.
#[async_trait]
pub(crate) trait Inquirer: Send + Sync + Debug {
    async fn inquire(&self, call: &CallId, inquiry: Inquiry) -> Answer;
}

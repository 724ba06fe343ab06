//! Asking a person.

use std::fmt::Debug;

use async_trait::async_trait;
use convoke_core::{AgentPath, CallId, Display, Kind};
use serde_json::Value;

/// A question to a person: may this call run?
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Question {
    /// The call.
    pub call: CallId,
    /// Which agent wants it.
    pub agent: AgentPath,
    /// The tool.
    pub tool_name: String,
    /// What kind of act it is.
    pub kind: Kind,
    /// Its arguments.
    pub arguments: Value,
    /// What it would do, in words.
    pub description: String,
    /// What it would change, where that can be shown.
    pub preview: Option<Display>,
    /// Why somebody is asked.
    pub reason: String,
}

/// A person's answer, or that there is nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It may run.
    Yes,
    /// It may not; the message is for the model.
    No {
        /// What the person said.
        message: Option<String>,
    },
    /// Nobody can be asked here.
    Nobody,
}

/// Reaches a person.
#[async_trait]
pub trait Approver: Send + Sync + Debug {
    /// Asks, and waits for the answer. The wait holds no permit and no lock and does not count as the
    /// call's time.
    async fn ask(&self, question: Question) -> Answer;
}

/// There is nobody: every question is answered at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyToAsk;

#[async_trait]
impl Approver for NobodyToAsk {
    async fn ask(&self, _: Question) -> Answer {
        Answer::Nobody
    }
}

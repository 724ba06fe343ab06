//! Asking a person something in the middle of a call: not whether it may be made, but what it has to know.

use std::fmt::Debug;

use async_trait::async_trait;
use convoke_core::event::Wanted;
use convoke_core::{AgentPath, CallId, Endpoint};

use crate::approve::Answer;
use crate::authorize::Decision;
use crate::form::Form;

/// How a reason goes on, where it is recorded, if nobody can tell which of several calls wants to know.
const ONE_OF: &str = " (for one of its calls: ";

/// What a call wants to know from a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Inquiry {
    /// Who asks: the tool, or what is behind it.
    pub who: String,
    /// What is asked, in the words of whoever asks.
    pub message: String,
    /// What is wanted. What a person enters into a form comes back as the arguments of a yes; a yes without
    /// any takes the defaults of the form.
    pub wanted: Wanted,
    /// What was wrong with the last answer, if this is asked again.
    pub problem: Option<String>,
    /// Why a person is asked.
    pub reason: String,
    /// The calls it may be for, where nobody can tell which of several wants to know.
    pub calls: Vec<String>,
}

impl Inquiry {
    /// Returns why a person is asked, with the calls it may be for, as it is recorded.
    pub fn whole_reason(&self) -> String {
        match self.calls.as_slice() {
            [] => self.reason.clone(),
            calls => format!("{}{ONE_OF}{})", self.reason, calls.join(", ")),
        }
    }

    /// Returns it for the reason, and the calls, that were recorded.
    #[must_use]
    pub fn recorded_for(self, whole_reason: &str) -> Self {
        let named = whole_reason.strip_suffix(')').and_then(|whole| whole.split_once(ONE_OF));
        let (reason, calls) = named.unwrap_or((whole_reason, ""));
        let calls = calls.split(", ").filter(|call| !call.is_empty()).map(str::to_owned);
        Self { reason: reason.to_owned(), calls: calls.collect(), ..self }
    }

    /// Returns all of it in words, for whoever shows nothing else.
    pub fn in_words(&self) -> String {
        let mut words = format!("{} asks: {}", self.who, self.message);
        match &self.wanted {
            Wanted::Visit { url } => {
                words.push_str(&format!("\nOpen this page, and say yes when you are done: {url}"));
            }
            wanted => {
                for field in Form::wanted(wanted).ok().flatten().iter().flat_map(Form::fields) {
                    words.push_str(&format!("\n  {}", field.told()));
                }
            }
        }
        if let Some(problem) = &self.problem {
            words.push_str(&format!("\nThe last answer did not fit: {problem}"));
        }
        words
    }
}

/// Puts what a call wants to know to a person, through the same queue as everything that is asked.
#[async_trait]
pub(crate) trait Inquirer: Send + Sync + Debug {
    async fn inquire(&self, call: &CallId, inquiry: Inquiry) -> Answer;

    /// Decides whether the call may go on to this host, which was not known when it was decided about.
    fn decide_host(&self, call: &CallId, host: &Endpoint) -> Decision;

    /// Returns the tool that was called.
    fn tool_name(&self) -> &str;

    /// Returns the agent that made the call.
    fn agent(&self) -> &AgentPath;
}

//! Asking a person something in the middle of a call: not whether it may be made, but what it has to know.

use std::fmt::Debug;

use async_trait::async_trait;
use convoke_core::CallId;
use convoke_core::event::Wanted;

use crate::approve::Answer;
use crate::form::Form;

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
}

impl Inquiry {
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
}

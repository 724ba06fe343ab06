//! Asking a person.

use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;
use convoke_core::policy::RuleSpec;
use convoke_core::{AgentPath, CallId, Display, Kind, RunId, Timestamp};
use serde_json::Value;

use crate::inquire::Inquiry;

/// A question to a person: may this call run? Or, where it is an inquiry: what does a call that runs have to
/// know?
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Question {
    /// The call.
    pub call: CallId,
    /// Which agent wants it.
    pub agent: AgentPath,
    /// The run of that agent: several may have the same path.
    pub run: RunId,
    /// The tool.
    pub tool_name: String,
    /// What kind of act it is.
    pub kind: Kind,
    /// Its arguments.
    pub arguments: Arc<Value>,
    /// What it would do, in words.
    pub description: String,
    /// What it would change, where that can be shown.
    pub preview: Option<Display>,
    /// Why somebody is asked.
    pub reason: String,
    /// The rules that would allow it from now on; none, if it has to be asked about each time.
    pub rules: Vec<RuleSpec>,
    /// When nobody will be waited for any more.
    pub until: Timestamp,
    /// Stands for all of this: an answer that was given elsewhere holds only if it names the same.
    pub fingerprint: String,
    /// What a call that runs has to know. It is no question whether anything may happen: who consents to
    /// calls on somebody's behalf has no answer to it.
    pub inquiry: Option<Arc<Inquiry>>,
}

/// A person's answer, or that there is nobody.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It may run.
    Yes(Consent),
    /// It may not.
    No(Objection),
    /// Not as it is: the person changed its arguments, wants to see what it would do with these, and is asked
    /// again.
    Change(Value),
    /// Nobody can be asked here.
    Nobody,
}

/// What somebody says yes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Consent {
    /// The arguments it is to run with, if others than those it asked for. They are checked like any.
    pub arguments: Option<Value>,
    /// What is allowed from now on in this run. Nothing that is denied becomes allowed by it.
    pub rules: Vec<RuleSpec>,
    /// Who said so.
    pub by: Option<String>,
}

/// What somebody says no with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objection {
    /// For the model: why, or what to do instead.
    pub message: Option<String>,
    /// Who said so.
    pub by: Option<String>,
}

impl Answer {
    /// Yes, this once.
    pub fn yes() -> Self {
        Self::Yes(Consent::default())
    }

    /// Yes, and from now on whenever one of these rules holds.
    pub fn always(rules: Vec<RuleSpec>) -> Self {
        Self::Yes(Consent { rules, ..Consent::default() })
    }

    /// Yes, with these arguments instead.
    pub fn with_arguments(arguments: Value) -> Self {
        Self::Yes(Consent { arguments: Some(arguments), ..Consent::default() })
    }

    /// No.
    pub fn no() -> Self {
        Self::No(Objection::default())
    }

    /// No, and this is what the model is told.
    pub fn no_because(message: impl Into<String>) -> Self {
        Self::No(Objection { message: Some(message.into()), by: None })
    }

    /// Says who answered.
    #[must_use]
    pub fn by(mut self, who: impl Into<String>) -> Self {
        match &mut self {
            Self::Yes(Consent { by, .. }) | Self::No(Objection { by, .. }) => {
                *by = Some(who.into());
            }
            Self::Change(_) | Self::Nobody => {}
        }
        self
    }
}

/// Reaches a person.
#[async_trait]
pub trait Approver: Send + Sync + Debug {
    /// Asks, and waits for the answer. The wait holds no permit and no lock, unless the call runs already and
    /// inquires, and does not count as the call's time. When the time for an answer is up, or the run is stopped, the wait is dropped.
    async fn ask(&self, question: Question) -> Answer;

    /// Returns the consent to what a question shows, if it was given before the run was resumed: the question is not
    /// asked again then.
    fn consented_before(&self, _question: &Question) -> Option<Consent> {
        None
    }

    /// Returns the arguments that a person gave a call and approved before its run was resumed.
    fn changed_before(&self, _call: &CallId) -> Option<Value> {
        None
    }

    /// Says how it stands with what was asked about a call before the run was taken up again, for a call that
    /// cannot be asked about now. An answer that allows it stays where it is.
    async fn asked_before(&self, _call: &CallId) -> AskedBefore {
        AskedBefore::No
    }
}

/// What became of a question that was asked before a run was taken up again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AskedBefore {
    /// There was none, or it is over.
    #[default]
    No,
    /// It is open, or was answered with a yes that is not used yet.
    Open,
    /// Somebody said no.
    Refused(Objection),
}

#[async_trait]
impl<T: Approver + ?Sized> Approver for Arc<T> {
    async fn ask(&self, question: Question) -> Answer {
        (**self).ask(question).await
    }

    fn changed_before(&self, call: &CallId) -> Option<Value> {
        (**self).changed_before(call)
    }

    fn consented_before(&self, question: &Question) -> Option<Consent> {
        (**self).consented_before(question)
    }

    async fn asked_before(&self, call: &CallId) -> AskedBefore {
        (**self).asked_before(call).await
    }
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

/// Asks a function.
///
/// ```
/// use convoke_tool::{Answer, ask_with};
///
/// let approver = ask_with(|question| async move {
///     if question.tool_name == "write_file" { Answer::yes() } else { Answer::no_because("not now") }
/// });
/// # let _ = approver;
/// ```
pub fn ask_with<F, A>(ask: F) -> impl Approver
where
    F: Fn(Question) -> A + Send + Sync,
    A: Future<Output = Answer> + Send,
{
    AskWith(ask)
}

struct AskWith<F>(F);

#[async_trait]
impl<F, A> Approver for AskWith<F>
where
    F: Fn(Question) -> A + Send + Sync,
    A: Future<Output = Answer> + Send,
{
    async fn ask(&self, question: Question) -> Answer {
        (self.0)(question).await
    }
}

impl<F> Debug for AskWith<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AskWith")
    }
}

/// What becomes of a question that nobody answers, because nobody is there or in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unanswered {
    /// The answer is no, and the model is told why.
    #[default]
    Deny,
    /// The question stays open, and the run is parked until somebody answers.
    Park,
}

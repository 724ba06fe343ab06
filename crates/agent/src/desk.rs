//! Where questions to people wait for their answers, from wherever these come.
//!
//! A question is put to the approver of the run, and at the same time an answer is looked for in the run's
//! inbox, where other processes leave theirs. The first one counts. An answer that lay there before the
//! run was taken up again counts as well, if it was given after the question was first asked and to what is
//! asked now: other arguments, another change or another reason make it another question.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use convoke_core::policy::RuleSpec;
use convoke_core::{CallId, Event, EventBody, RunId, Timestamp};
use convoke_journal::{Inbox, Item, JournalError, PutResult};
use convoke_tool::{Answer, Approver, AskedBefore, Consent, Objection, Question};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::state::RunState;

/// What an item is called that holds an answer.
const KIND: &str = "approval";
/// How often the inbox is looked into while somebody is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// An answer to a question of a run, as another process leaves it in the run's inbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Letter {
    /// The run that asked: the one that was started, or one of the agents below it.
    pub run: RunId,
    /// The call that was asked about.
    pub call: CallId,
    /// What stood for all that was shown. The answer holds for just that.
    pub fingerprint: String,
    /// Whether it may run.
    pub approved: bool,
    /// For the model: why not, or what to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The arguments it is to run with, if others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// What is allowed from now on in this run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleSpec>,
    /// Who answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was written.
    pub at: Timestamp,
}

/// The result of leaving an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaveResult {
    /// It lies in the inbox, as this item.
    Placed(Item),
    /// Another answer to the same question lies there.
    AlreadyAnswered(Option<Letter>),
}

impl Letter {
    /// Says that a call may run, as it was shown.
    pub const fn yes(run: RunId, call: CallId, fingerprint: String, at: Timestamp) -> Self {
        Self {
            run,
            call,
            fingerprint,
            approved: true,
            message: None,
            arguments: None,
            rules: Vec::new(),
            by: None,
            at,
        }
    }

    /// Says that a call may not run.
    pub fn no(run: RunId, call: CallId, fingerprint: String, at: Timestamp) -> Self {
        Self { approved: false, ..Self::yes(run, call, fingerprint, at) }
    }

    /// Returns the answers that lie in an inbox, for whoever takes the run up.
    pub fn lying_in(inbox: &Inbox) -> Vec<Self> {
        let items = inbox.waiting().map(|waiting| waiting.items).unwrap_or_default();
        items.iter().filter_map(Self::of).collect()
    }

    /// Tells whether it answers this question, as it was asked.
    pub fn answers(&self, run: &RunId, call: &CallId, fingerprint: &str) -> bool {
        self.run == *run && self.call == *call && self.fingerprint == fingerprint
    }

    /// Returns it as something to put into an inbox.
    pub fn into_item(self) -> Item {
        // One answer to a question: whoever answers it as it was asked gives the answer the same name.
        let id = format!("{}/{}/{}", self.run, self.call, self.fingerprint);
        let content = match serde_json::to_value(self) {
            Ok(Value::Object(content)) => content,
            _ => Map::new(),
        };
        Item::new(id, KIND, content)
    }

    /// Leaves it for its run, unless an answer to the same question lies there. Of several that are given at the same
    /// time, the first counts.
    pub fn leave(self, inbox: &Inbox) -> Result<LeaveResult, JournalError> {
        Ok(match inbox.put_once(&self.into_item())? {
            PutResult::Put(item) => LeaveResult::Placed(item),
            PutResult::Taken(other) => {
                LeaveResult::AlreadyAnswered(other.as_ref().and_then(Self::of))
            }
        })
    }

    /// Tells whether a recorded answer is this one.
    pub fn is_recorded_as(&self, event: &Event) -> bool {
        match &event.body {
            EventBody::ApprovalAnswered { approved, message, by, .. } => {
                (approved, message, by) == (&self.approved, &self.message, &self.by)
            }
            EventBody::InquiryAnswered { accepted, message, by, .. } => {
                (accepted, message, by) == (&self.approved, &self.message, &self.by)
            }
            _ => false,
        }
    }

    fn of(item: &Item) -> Option<Self> {
        let content = Value::Object(item.content.clone());
        serde_json::from_value(content).ok().filter(|_| item.kind == KIND)
    }

    fn into_answer(self) -> Answer {
        let Self { approved, message, arguments, rules, by, .. } = self;
        if approved {
            Answer::Yes(Consent { arguments, rules, by })
        } else {
            Answer::No(Objection { message, by })
        }
    }
}

/// Puts questions to the approver and to the inbox.
pub(crate) struct Desk {
    approver: Arc<dyn Approver>,
    inbox: Option<Inbox>,
    state: Arc<RunState>,
}

impl Desk {
    pub(crate) const fn new(
        approver: Arc<dyn Approver>,
        inbox: Option<Inbox>,
        state: Arc<RunState>,
    ) -> Self {
        Self { approver, inbox, state }
    }

    /// Waits until somebody has left an answer; forever, where nobody can.
    async fn letter(&self, asked: &Asked) -> Answer {
        loop {
            if let Some(answer) = self.look(asked).await {
                return answer;
            }
            if self.inbox.is_none() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Looks for an answer, and takes it.
    async fn look(&self, asked: &Asked) -> Option<Answer> {
        let (inbox, asked) = (self.inbox.clone()?, asked.clone());
        let looked = tokio::task::spawn_blocking(move || take(&inbox, &asked));
        looked.await.ok().flatten()
    }
}

/// What an answer has to be about.
#[derive(Clone, Debug)]
struct Asked {
    run: RunId,
    call: CallId,
    fingerprint: String,
    since: Timestamp,
}

/// Takes the answer to a question: a no before any yes, else the newest. One that is older than the
/// question, or about something else than was shown, is none. All are removed: there is one answer to a
/// question.
fn take(inbox: &Inbox, asked: &Asked) -> Option<Answer> {
    let mut counts: Option<Letter> = None;
    for item in inbox.waiting().ok()?.items {
        let is_about = |letter: &Letter| letter.call == asked.call && letter.run == asked.run;
        let Some(letter) = Letter::of(&item).filter(is_about) else { continue };
        // An item that cannot be removed would be seen again, by another question.
        let is_valid = inbox.done(&item).is_ok()
            && letter.at >= asked.since
            && letter.fingerprint == asked.fingerprint;
        let refused = counts.as_ref().is_some_and(|before| !before.approved);
        if is_valid && (!letter.approved || !refused) {
            counts = Some(letter);
        }
    }
    counts.map(Letter::into_answer)
}

#[async_trait]
impl Approver for Desk {
    async fn ask(&self, question: Question) -> Answer {
        // A question that the run does not know of is answered here or not at all.
        let (run, since) = {
            let run = self.state.lock();
            (run.id().clone(), run.questions().get(&question.call).copied())
        };
        let Some(since) = since else { return self.approver.ask(question).await };
        let fingerprint = question.fingerprint.clone();
        let asked = Asked { run, call: question.call.clone(), fingerprint, since };
        // What was answered while nobody worked on the run comes first.
        if let Some(answer) = self.look(&asked).await {
            return answer;
        }
        tokio::select! {
            answer = self.approver.ask(question) => answer,
            answer = self.letter(&asked) => answer,
        }
    }

    fn consented_before(&self, question: &Question) -> Option<Consent> {
        let run = self.state.lock();
        let approval = run.approval(&question.call, &question.fingerprint)?;
        if approval.arguments.as_deref().is_some_and(is_cut) {
            return None;
        }
        let arguments = approval.arguments.as_deref().cloned();
        Some(Consent { arguments, rules: Vec::new(), by: approval.by.clone() })
    }

    fn changed_before(&self, call: &CallId) -> Option<Value> {
        let run = self.state.lock();
        run.changed_arguments(call).filter(|arguments| !is_cut(arguments)).cloned()
    }

    async fn asked_before(&self, call: &CallId) -> AskedBefore {
        let (run, since) = {
            let run = self.state.lock();
            if run.is_approved(call) {
                return AskedBefore::Open;
            }
            (run.id().clone(), run.questions().get(call).copied())
        };
        let Some(since) = since else { return AskedBefore::No };
        let Some(inbox) = self.inbox.clone() else { return AskedBefore::Open };
        let call = call.clone();
        let looked = tokio::task::spawn_blocking(move || refusal(&inbox, &run, &call, since));
        looked.await.ok().flatten().map_or(AskedBefore::Open, AskedBefore::Refused)
    }
}

/// Takes a refusal of a call that cannot be shown now. What it was given to is not compared: a no holds for anything.
fn refusal(inbox: &Inbox, run: &RunId, call: &CallId, since: Timestamp) -> Option<Objection> {
    let items = inbox.waiting().ok()?.items;
    let mut letters = items.iter().filter_map(|item| Some((item, Letter::of(item)?)));
    let (item, letter) = letters.find(|(_, letter)| {
        !letter.approved && letter.run == *run && letter.call == *call && letter.at >= since
    })?;
    inbox.done(item).ok()?;
    Some(Objection { message: letter.message, by: letter.by })
}

impl Debug for Desk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Desk").field("approver", &self.approver).finish_non_exhaustive()
    }
}

/// Tells whether changed arguments were too long for the journal. They have to be given again.
fn is_cut(arguments: &Value) -> bool {
    arguments.get("truncated") == Some(&Value::Bool(true))
}

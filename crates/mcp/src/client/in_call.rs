//! Questions of a server, put to a person on behalf of one call: whom its context names, or whoever answers
//! the other questions of the run, through the same queue and into the same record.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use convoke_tool::{Answer, Inquiry, Pause, ToolContext};
use serde_json::{Map, Value};

use super::elicit::{Elicitation, Elicited, Elicitor, ElicitorHandle, Wanted};

/// How many questions a person is asked during one request; the others are declined.
const MAX_QUESTIONS: usize = 20;

/// Why a person is asked to fill in a form.
const WANTS_TO_KNOW: &str = "a server wants to know it; what you enter is sent to it, and recorded unless \
                             it is a password";

/// Asks during a call. The time of the call stands still meanwhile.
#[derive(Debug)]
pub(super) struct Asker {
    context: ToolContext,
    /// Whom the context names.
    named: Option<Arc<dyn Elicitor>>,
    asked: AtomicUsize,
}

impl Asker {
    /// Returns who asks during a call; nobody, where there is none.
    pub(super) fn of(context: Option<&ToolContext>) -> Option<Arc<Self>> {
        let context = context?.clone();
        let named = context.extension::<ElicitorHandle>().map(|handle| Arc::clone(&handle.0));
        Some(Arc::new(Self { context, named, asked: AtomicUsize::new(0) }))
    }

    /// Tells whether the same person is asked.
    pub(super) fn asks_like(&self, other: &Self) -> bool {
        match (&self.named, &other.named) {
            (Some(own), Some(others)) => {
                let same_person = own.person().is_some_and(|one| Some(one) == others.person());
                same_person || Arc::ptr_eq(own, others)
            }
            (None, None) => self.context.task() == other.context.task(),
            _ => false,
        }
    }

    /// Lets the time of the call stand still, for as long as what is returned lives.
    pub(super) fn pause(&self) -> Pause {
        self.context.pause()
    }

    async fn inquire(&self, question: Elicitation) -> Elicited {
        let Elicitation { server, message, wanted, problem, tools } = question;
        let reason = match &wanted {
            Wanted::Visit { .. } => "a server wants you to open a page",
            _ => WANTS_TO_KNOW,
        };
        let reason = match tools.as_slice() {
            [] | [_] => reason.to_owned(),
            several => format!("{reason} (for one of its calls: {})", several.join(", ")),
        };
        let who = format!("mcp:{server}");
        let inquiry = Inquiry { who, message, wanted, problem, reason };
        match self.context.inquire(inquiry).await {
            Answer::Yes(consent) => Elicited::Accept(match consent.arguments {
                Some(Value::Object(fields)) => fields,
                _ => Map::new(),
            }),
            Answer::No(_) => Elicited::Decline,
            Answer::Nobody => Elicited::Cancel,
        }
    }
}

#[async_trait]
impl Elicitor for Asker {
    async fn elicit(&self, question: Elicitation) -> Elicited {
        match self.asked.fetch_add(1, Ordering::AcqRel) {
            before if before < MAX_QUESTIONS => {}
            before => {
                if before == MAX_QUESTIONS {
                    let said = format!("it has asked {before} questions; no more are put to you\n");
                    self.context.progress().text(said);
                }
                return Elicited::Decline;
            }
        }
        let _pause = self.pause();
        match &self.named {
            Some(named) => tokio::select! {
                biased;
                answer = named.elicit(question) => answer,
                () = self.context.cancelled() => Elicited::Cancel,
            },
            None => self.inquire(question).await,
        }
    }
}

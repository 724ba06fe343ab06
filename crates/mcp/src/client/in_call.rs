//! Questions of a server, put to a person on behalf of one call: whom its context names, or whoever answers
//! the other questions of the run, through the same queue and into the same record.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use convoke_core::AgentPath;
use convoke_tool::{Answer, Inquiry, Pause, ToolContext};
use serde_json::{Map, Value};

use super::elicit::{ConcernedCall, Elicitation, Elicited, Elicitor, ElicitorHandle, Wanted};
use super::name::model_name;

/// How many questions a person is asked during one request; the others are cancelled.
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

    /// Returns the agent that made the call, where that is known.
    pub(super) fn agent(&self) -> Option<&AgentPath> {
        self.context.agent()
    }

    /// Lets the time of the call stand still, for as long as what is returned lives.
    pub(super) fn pause(&self) -> Pause {
        self.context.pause()
    }

    /// Tells whether the call is being stopped: what it waits for is not waited for any more.
    pub(super) fn is_stopped(&self) -> bool {
        self.context.cancellation().is_cancelled()
    }

    async fn inquire(&self, question: Elicitation) -> Elicited {
        let Elicitation { server, message, wanted, problem, calls } = question;
        let reason = match &wanted {
            Wanted::Visit { .. } => "a server wants you to open a page",
            _ => WANTS_TO_KNOW,
        };
        let (who, reason) = (format!("mcp:{server}"), reason.to_owned());
        // One alone is the call that it is put for.
        let several = calls.iter().filter(|_| calls.len() > 1);
        let calls = several.map(|call| named(&server, call)).collect();
        let inquiry = Inquiry { who, message, wanted, problem, reason, calls };
        match self.context.inquire(inquiry).await {
            Answer::Yes(consent) => Elicited::Accept(match consent.arguments {
                Some(Value::Object(fields)) => fields,
                _ => Map::new(),
            }),
            Answer::No(_) => Elicited::Decline,
            Answer::Change(_) | Answer::Nobody => Elicited::Cancel,
        }
    }
}

/// Returns what a call is called here: a name of the server's own may say anything, and this is not its text.
fn named(server: &str, call: &ConcernedCall) -> String {
    let tool = model_name(server, &call.tool);
    match call.agent.as_ref().filter(|agent| !agent.is_root()) {
        Some(agent) => format!("{tool} of {agent}"),
        None => tool,
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
                return Elicited::Cancel;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_with_the_agent_that_made_it_unless_that_is_the_main_one() {
        let call = |agent: Option<&str>| ConcernedCall {
            tool: "ask".to_owned(),
            agent: agent.map(AgentPath::new),
        };
        assert_eq!(named("s", &call(Some("main/worker"))), "mcp__s__ask of main/worker");
        assert_eq!(named("s", &call(Some("main"))), "mcp__s__ask");
        assert_eq!(named("s", &call(None)), "mcp__s__ask");
    }
}

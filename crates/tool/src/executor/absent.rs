//! A call whose tool is not here: whoever may bring it is waited for, and the call is looked up once more.
//!
//! It waits before anything is decided about it, and holds nothing and nobody meanwhile. Where the tool does not come, the
//! model is told why; a call that somebody was asked about before the run was taken up again waits on instead, so
//! that the answer is not used up by a call that was never made.

use std::sync::Arc;

use convoke_core::{ToolCall, ToolError};

use super::ask::objected;
use super::end::Ticket;
use super::prepare::{Decided, settled};
use super::{CallOptions, ToolExecutor};
use crate::approve::AskedBefore;
use crate::catalogue::Arrivals;
use crate::task::Contained;

/// A call whose tool is not here.
pub(crate) struct Absent {
    pub(super) ticket: Ticket,
    pub(super) call: ToolCall,
    pub(super) options: CallOptions,
    /// Who may bring the tool, if anybody.
    pub(super) arrivals: Option<Arc<dyn Arrivals>>,
}

/// A call whose tool is on its way, or not: that turns out.
pub(super) struct Awaited {
    ticket: Ticket,
    call: ToolCall,
    options: CallOptions,
    bringing: Option<Contained<Result<(), ToolError>>>,
}

impl Absent {
    /// Tells whoever may bring the tool that it is needed.
    pub(super) fn summoned(self) -> Awaited {
        let Self { ticket, call, options, arrivals } = self;
        let name = call.name.clone();
        let bring = |arrivals: Arc<dyn Arrivals>| {
            Contained::spawn(async move { arrivals.bring(&name).await })
        };
        let bringing = arrivals.map(bring);
        Awaited { ticket, call, options, bringing }
    }
}

impl ToolExecutor {
    /// Waits for the tool of a call, if it is not here, and decides about the call then.
    pub(super) async fn when_here(&self, first: Result<Decided, Box<Absent>>) -> Decided {
        match first {
            Ok(decided) => decided,
            // Most tools are here: what waiting takes is not part of every call.
            Err(absent) => Box::pin(self.wait_for(absent.summoned())).await,
        }
    }

    /// Waits for the tool of a call, and decides about the call then.
    pub(super) async fn wait_for(&self, awaited: Awaited) -> Decided {
        let Awaited { ticket, call, options, bringing } = awaited;
        let Some(bringing) = bringing else {
            let unknown = self.0.view.unknown(&call.name);
            return self.not_here(ticket, unknown).await;
        };
        let brought = tokio::select! {
            biased;
            () = self.0.context.cancelled() => return ticket.stopped(None).into(),
            brought = bringing => brought.unwrap_or_else(|uncontained| Err(uncontained.into())),
        };
        match brought {
            Err(why) => self.not_here(ticket, why).await,
            Ok(()) if self.0.view.entry(&call.name).is_some() => {
                settled(self.decide(ticket, call, options))
            }
            Ok(()) => {
                let unknown = self.0.view.not_brought(&call.name);
                self.not_here(ticket, unknown).await
            }
        }
    }

    /// Ends a call whose tool does not come, or lets it wait on.
    async fn not_here(&self, ticket: Ticket, why: ToolError) -> Decided {
        let (approver, call) = (Arc::clone(&self.0.approver), ticket.call().clone());
        let asked = Contained::spawn(async move { approver.asked_before(&call).await });
        match asked.await.unwrap_or_default() {
            AskedBefore::No => Decided::Answered(ticket.answered(why)),
            AskedBefore::Open => Decided::Deferred(ticket.deferred(why)),
            AskedBefore::Refused(objection) => Decided::Answered(objected(ticket, objection)),
        }
    }
}

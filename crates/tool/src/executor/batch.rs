//! Several calls at once, answered in call order.

use std::sync::atomic::{AtomicBool, Ordering};

use convoke_core::{ToolCall, ToolError, ToolResult};
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::ask::Asked;
use super::prepare::{Decided, PreparedCall};
use super::run::Ran;
use super::{CallOptions, ToolExecutor};
use crate::schedule::{Footprint, waits};

/// How a call of a batch stands, for those that come after it.
#[derive(Default)]
struct Standing {
    /// It is over, or waits for an answer that does not come now.
    over: CancellationToken,
    /// It waits for an answer, and so does whatever has to come after it.
    parked: AtomicBool,
}

impl ToolExecutor {
    /// Runs calls side by side where nothing could be noticed of it, and in call order where it could.
    /// The results are in call order.
    pub async fn execute_batch(&self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        let decide = |call| self.decide_first(call, CallOptions::default());
        let first: Vec<_> = calls.into_iter().map(decide).collect();
        let when_here = first
            .into_iter()
            .map(|first| async move { self.hooked(self.when_here(first).await).await });
        let decided = join_all(when_here).await;
        let waits = waits(&footprints(&decided).await);
        let standing: Vec<Standing> = decided.iter().map(|_| Standing::default()).collect();

        let calls = decided.into_iter().zip(waits).zip(&standing);
        join_all(calls.map(|((decided, waits_for), own)| {
            let earlier = waits_for.into_iter().filter_map(|index| standing.get(index)).collect();
            self.take_part(decided, earlier, own)
        }))
        .await
    }

    async fn take_part(
        &self,
        decided: Decided,
        earlier: Vec<&Standing>,
        own: &Standing,
    ) -> ToolResult {
        // However this call ends, those that wait for it go on.
        let _over = own.over.clone().drop_guard();
        let parks = |result: Box<ToolResult>| {
            own.parked.store(true, Ordering::Relaxed);
            *result
        };
        let prepared = match decided {
            Decided::Answered(result) => return *result,
            Decided::Deferred(result) => return parks(result),
            Decided::Ready(prepared) => prepared,
            // Most calls are not asked about: what asking takes is not part of every call.
            Decided::Ask(prepared) => match Box::pin(self.ask_until_answered(prepared)).await {
                Asked::Consented(prepared) => *prepared,
                Asked::Refused(result) => return *result,
                Asked::Deferred(result) => return parks(result),
            },
        };
        let mut parked = false;
        for call in earlier {
            call.over.cancelled().await;
            parked |= call.parked.load(Ordering::Relaxed);
        }
        if parked {
            return parks(
                prepared
                    .ticket
                    .deferred(ToolError::unavailable("an earlier call waits for an answer")),
            );
        }
        match self.run_or_park(prepared).await {
            Ran::Ended(result) => *result,
            Ran::Parked(result) => parks(result),
        }
    }
}

/// Works out what the calls touch. Where nothing is written, nobody has to wait, and no link has to be
/// resolved to find that out.
fn footprints(decided: &[Decided]) -> impl Future<Output = Vec<Footprint>> + use<> {
    let prepared: Vec<Option<&PreparedCall>> = decided.iter().map(Decided::prepared).collect();
    let quiet = prepared.iter().flatten().all(|call| call.only_reads());
    let calls =
        prepared.into_iter().map(|call| call.filter(|_| !quiet).map(PreparedCall::footprint));
    join_all(
        calls
            .map(async |call| match call {
                Some(footprint) => footprint.await,
                None => Footprint::default(),
            })
            .collect::<Vec<_>>(),
    )
}

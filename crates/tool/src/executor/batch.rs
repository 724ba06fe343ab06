//! Several calls at once, answered in call order.

use std::sync::atomic::{AtomicBool, Ordering};

use convoke_core::{ToolCall, ToolError, ToolResult};
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::absent::Awaited;
use super::ask::Asked;
use super::prepare::{Decided, PreparedCall};
use super::run::Ran;
use super::{CallOptions, ToolExecutor};
use crate::schedule::{Footprint, waits, waits_of};

/// How a call of a batch stands, for those that come after it.
#[derive(Default)]
struct Standing {
    /// It is over, or waits for an answer that does not come now.
    over: CancellationToken,
    /// It waits for an answer, and so does whatever has to come after it.
    parked: AtomicBool,
}

/// A call as it comes into its batch: decided about, unless its tool is not here yet.
type Entry = Result<Decided, Box<Awaited>>;

impl ToolExecutor {
    /// Runs calls side by side where nothing could be noticed of it, and in call order where it could.
    /// The results are in call order.
    ///
    /// A call whose tool is not here yet holds up nobody but those who want to be alone: what it touches is not known.
    /// When its tool has come, it waits for the earlier ones that it has to wait for, as any other.
    pub async fn execute_batch(&self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        let decide = |call| -> Entry {
            let first = self.decide_first(call, CallOptions::default());
            first.map_err(|absent| Box::new(absent.summoned()))
        };
        let first: Vec<_> = calls.into_iter().map(decide).collect();
        let hooked = first.into_iter().map(async |entry| match entry {
            Ok(decided) => Ok(self.hooked(decided).await),
            Err(awaited) => Err(awaited),
        });
        let entries = join_all(hooked).await;
        let footprints = footprints(&entries).await;
        let standing: Vec<Standing> = entries.iter().map(|_| Standing::default()).collect();
        let (footprints, standing) = (&footprints, &standing);

        let waits = waits(footprints);
        let calls = entries.into_iter().zip(waits).zip(standing).enumerate();
        join_all(calls.map(async |(index, ((entry, mut earlier), own))| {
            // However this call ends, those that wait for it go on.
            let _over = own.over.clone().drop_guard();
            let mut own_footprint = footprints.get(index).cloned().unwrap_or_default();
            let decided = match entry {
                Ok(decided) => decided,
                // Most tools are here: what waiting takes is not part of every call.
                Err(awaited) => {
                    let decided = Box::pin(self.come(*awaited)).await;
                    if let Some(prepared) = decided.prepared() {
                        own_footprint = prepared.footprint().await;
                        earlier = waits_of(index, &own_footprint, footprints);
                    }
                    decided
                }
            };
            let earlier = earlier.into_iter().filter_map(|index| {
                let other = footprints.get(index)?;
                Some((standing.get(index)?, own_footprint.shares_a_path_with(other)))
            });
            self.take_part(decided, earlier.collect(), own).await
        }))
        .await
    }

    async fn come(&self, awaited: Awaited) -> Decided {
        self.hooked(self.wait_for(awaited).await).await
    }

    async fn take_part(
        &self,
        decided: Decided,
        earlier: Vec<(&Standing, bool)>,
        own: &Standing,
    ) -> ToolResult {
        let parks = |result: Box<ToolResult>| {
            own.parked.store(true, Ordering::Relaxed);
            *result
        };
        let wait = async |earlier: &[(&Standing, bool)], all: bool| {
            let mut parked = false;
            for (call, _) in earlier.iter().filter(|(_, shares)| all || *shares) {
                call.over.cancelled().await;
                parked |= call.parked.load(Ordering::Relaxed);
            }
            parked
        };
        let deferred = |prepared: PreparedCall| {
            let why = ToolError::unavailable("an earlier call waits for an answer");
            prepared.ticket.deferred(why)
        };
        // A person is shown what the call would change, which an earlier call decides that writes the same file.
        let asks = matches!(decided, Decided::Ask(_));
        let waits_for_parked = asks && wait(&earlier, false).await;
        let prepared = match decided {
            Decided::Answered(result) => return *result,
            Decided::Deferred(result) => return parks(result),
            Decided::Ready(prepared) => prepared,
            Decided::Ask(prepared) if waits_for_parked => {
                return parks(deferred(prepared));
            }
            // Most calls are not asked about: what asking takes is not part of every call.
            Decided::Ask(prepared) => match Box::pin(self.ask_until_answered(prepared)).await {
                Asked::Consented(prepared) => *prepared,
                Asked::Refused(result) => return *result,
                Asked::Deferred(result) => return parks(result),
            },
        };
        if wait(&earlier, true).await {
            return parks(deferred(prepared));
        }
        match self.run_or_park(prepared).await {
            Ran::Ended(result) => *result,
            Ran::Parked(result) => parks(result),
        }
    }
}

/// Works out what the calls touch. Where nothing is written, nobody has to wait, and no link has to be
/// resolved to find that out.
fn footprints(entries: &[Entry]) -> impl Future<Output = Vec<Footprint>> + use<> {
    let is_quiet = |entry: &Entry| match entry {
        Ok(decided) => decided.prepared().is_none_or(PreparedCall::only_reads),
        // That turns out when its tool is here.
        Err(_) => false,
    };
    let quiet = entries.iter().all(is_quiet);
    let calls = entries.iter().map(|entry| entry.as_ref().ok().and_then(Decided::prepared));
    let calls = calls.map(|call| call.filter(|_| !quiet).map(PreparedCall::footprint));
    join_all(
        calls
            .map(async |call| match call {
                Some(footprint) => footprint.await,
                None => Footprint::default(),
            })
            .collect::<Vec<_>>(),
    )
}

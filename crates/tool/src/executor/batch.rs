//! Several calls at once, answered in call order.

use convoke_core::{ToolCall, ToolResult};
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::prepare::{Decided, PreparedCall};
use super::{CallOptions, ToolExecutor};
use crate::schedule::{Footprint, waits};

impl ToolExecutor {
    /// Runs calls side by side where nothing could be noticed of it, and in call order where it could.
    /// The results are in call order.
    pub async fn execute_batch(&self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        let prepared: Vec<Decided> =
            calls.into_iter().map(|call| self.prepare(call, CallOptions::default())).collect();
        let decided = join_all(prepared.into_iter().map(|decided| self.hooked(decided))).await;
        let waits = waits(&footprints(&decided).await);
        let over: Vec<CancellationToken> =
            decided.iter().map(|_| CancellationToken::new()).collect();

        let calls = decided.into_iter().zip(waits).zip(&over);
        join_all(calls.map(|((decided, waits_for), own)| {
            let earlier = waits_for.into_iter().filter_map(|index| over.get(index)).collect();
            async move {
                let result = self.take_part(decided, earlier, own).await;
                self.tell_of(&result).await;
                result
            }
        }))
        .await
    }

    async fn take_part(
        &self,
        decided: Decided,
        earlier: Vec<&CancellationToken>,
        own: &CancellationToken,
    ) -> ToolResult {
        // However this call ends, those that wait for it go on.
        let _over = own.clone().drop_guard();
        let prepared = match decided {
            Decided::Answered(result) => return *result,
            Decided::Ready(prepared) => prepared,
            Decided::Ask(prepared) => match self.ask(prepared).await {
                Ok(prepared) => prepared,
                Err(result) => return *result,
            },
        };
        for call in earlier {
            call.cancelled().await;
        }
        self.run(prepared).await
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

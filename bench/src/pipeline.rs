//! What the pipeline adds to a call: look-up, validation, permission, permits, time limit, containment
//! and four events, around a tool that does nothing.

use std::sync::Arc;

use convoke::prelude::*;
use convoke::tools::{ManualClock, NullSink, Recorder};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Result;
use crate::measure::{in_turns, time_many};
use crate::table::Table;

const CALLS: u32 = 2_000;
const SAMPLES: usize = 41;

#[derive(Deserialize, JsonSchema)]
struct Nothing {
    /// A name.
    name: String,
    /// A number.
    #[schemars(range(min = 0))]
    count: Option<u32>,
}

async fn nothing(arguments: Nothing, _: ToolContext) -> std::result::Result<u32, String> {
    Ok(arguments.count.unwrap_or_default()
        + u32::try_from(arguments.name.len()).unwrap_or_default())
}

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let registry = ToolRegistry::new();
    registry.register(FunctionTool::new("nothing", "Does nothing.", nothing).kind(Kind::Think))?;
    let context = ToolContext::builder("bench").build();
    let recorder = Recorder::new("bench", Arc::new(NullSink), Arc::new(ManualClock::default()));
    let executor =
        ToolExecutor::builder(ToolView::of(registry), context).recorder(recorder).build();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let arguments = json!({ "name": "x", "count": 3 });

    let ours = || {
        time_many(CALLS, || {
            let call = ToolCall::new("c1", "nothing", arguments.clone());
            let result = runtime.block_on(executor.execute(call));
            if result.success() { Ok(()) } else { Err(result.text().into()) }
        })
    };
    // The least any runtime can do that parses arguments and survives a panic: decode, spawn, await.
    let theirs = || {
        time_many(CALLS, || {
            let arguments = arguments.clone();
            let value = runtime.block_on(async move {
                let decoded: u32 = tokio::task::spawn(async move {
                    let wanted: Nothing =
                        serde_json::from_value(arguments).map_err(|error| error.to_string())?;
                    Ok::<u32, String>(
                        wanted.count.unwrap_or_default()
                            + u32::try_from(wanted.name.len()).unwrap_or_default(),
                    )
                })
                .await
                .map_err(|error| error.to_string())??;
                Ok::<u32, String>(decoded)
            })?;
            std::hint::black_box(value);
            Ok(())
        })
    };
    let pair = in_turns(SAMPLES, ours, theirs)?;
    table.pair(
        "no-op tool through the pipeline, one core",
        "decode + spawn + await",
        pair,
        "≤ 5 µs",
    );
    Ok(())
}

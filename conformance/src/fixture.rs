//! The server the suite talks to: tools, prompts and resources with the names and words it expects.
//!
//! What the product does is done by the product here too: the transport, the list of tools, their
//! calls through the pipeline, progress, tasks. What the product does not serve, and tools that have to
//! speak the protocol themselves, are answered by `Spoken`.

mod asking;
mod prompts;
mod resources;
mod spoken;
mod tools;

use std::sync::Arc;

use convoke_mcp::serve::{CallWatch, Service, ToolOffer};
use convoke_tool::{
    Authorizer, Decision, Limits, NullSink, Recorder, RegistryError, Request, ToolContext,
    ToolExecutor, ToolRegistry, ToolView,
};

use self::spoken::Spoken;

/// A PNG of one red pixel.
pub(crate) const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A WAV without a sample.
pub(crate) const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Allows every call: there is nothing here that could do harm.
#[derive(Debug)]
struct Everything;

impl Authorizer for Everything {
    fn decide(&self, _: &Request<'_>) -> Decision {
        Decision::Allow { rule: "fixture".into() }
    }
}

/// Makes the server.
pub fn service() -> Result<Service, RegistryError> {
    let registry = ToolRegistry::new();
    registry.register_many(tools::all().into_iter().chain(asking::tools()))?;
    let context = ToolContext::builder("conformance").build();
    let watch = CallWatch::over(Arc::new(NullSink));
    let recorder = Recorder::new("conformance", watch.clone(), Arc::clone(context.clock()));
    let executors = ToolExecutor::builder(ToolView::of(registry.clone()), context)
        .authorizer(Everything)
        .recorder(recorder)
        .limits(Limits::default());
    let offer = Arc::new(ToolOffer::new(executors, watch));
    let spoken = Spoken::new(registry);
    Ok(Service::new("convoke-conformance", env!("CARGO_PKG_VERSION"), offer)
        .instructions("Fixtures for the conformance suite.")
        .extras(Arc::new(spoken)))
}

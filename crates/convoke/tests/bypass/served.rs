//! A call that comes from elsewhere: over MCP, from a client that may do anything, to our server.

use std::sync::Arc;

use convoke::core::ToolCall;
use convoke::mcp::client::{ServerConfig, Servers, Surroundings};
use convoke::mcp::serve::{CallWatch, HttpSettings, Service, ToolOffer, serve_http};
use convoke::tools::{
    ExecutorBuilder, NullSink, Recorder, SystemClock, Tool as _, ToolContext, ToolExecutor,
    ToolRegistry, ToolView,
};
use tokio::net::TcpListener;

use crate::place::AllowsAll;

/// Makes a call through a server and a client, and returns all that was said about it.
pub(crate) async fn call(tools: ExecutorBuilder, call: ToolCall) -> String {
    let watch = CallWatch::over(Arc::new(NullSink));
    let recorder = Recorder::new("served", watch.clone(), Arc::new(SystemClock));
    let offer = ToolOffer::new(tools.recorder(recorder), watch);
    let service = Service::new("convoke", "0", Arc::new(offer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = HttpSettings::default();
    let stop = settings.stop.clone();
    let serving = tokio::spawn(serve_http(service, listener, settings));
    let config = ServerConfig::http("us", format!("http://{address}/mcp"));
    let servers = Servers::new(vec![config], Surroundings::new("/"));
    let registry = ToolRegistry::new();
    servers.attach(&registry);
    servers.start("us").await.unwrap();
    let meant = servers.tools().into_iter().find(|tool| tool.name() == call.name);
    let name = meant.map_or(call.name, |tool| tool.spec().name.clone());
    let context = ToolContext::builder("client").build();
    let client = ToolExecutor::builder(ToolView::of(registry), context).authorizer(AllowsAll);
    let result = client.build().execute(ToolCall { name, ..call }).await;
    let said = format!("{}\n{:?}", result.text(), result.value());
    servers.stop().await;
    stop.cancel();
    drop(serving.await);
    said
}

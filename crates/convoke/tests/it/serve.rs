//! A runtime as an MCP server: the same pipeline, and a run for each call of an agent.

use std::sync::Arc;

use convoke::agent::Toolbox;
use convoke::agent::definition::ToolConfig;
use convoke::core::{Cause, EventBody};
use convoke::journal::Store;
use convoke::mcp::client::{ServerConfig, Servers, Surroundings};
use convoke::mcp::serve::{HttpSettings, Service, serve_http};
use convoke::prelude::*;
use convoke::tools::KindAuthorizer;
use convoke::{Origin, Runtime};
use tokio::net::TcpListener;

/// A directory, a runtime in it, and a place for its runs.
struct Scene {
    directory: tempfile::TempDir,
    store: Store,
    runtime: Runtime,
}

fn scene() -> Scene {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("project");
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("a.txt"), "one\n").unwrap();
    let store = Store::at(directory.path().join("state"));
    let runtime = Runtime::builder(place).store(Some(store.clone())).build().unwrap();
    Scene { directory, store, runtime }
}

fn worker() -> AgentDefinition {
    let mut worker = AgentDefinition::new("worker", "Works.");
    worker.prompt.system_prompt = Some("You work.".to_owned());
    worker.tools = ToolConfig::only(["read_file"]);
    worker
}

fn model(turns: Vec<Turn>) -> Arc<dyn Model> {
    Arc::new(ScriptedModel::new(turns))
}

/// Serves, has somebody ask through a client of ours, and stops.
async fn serving<T>(service: Service, ask: impl AsyncFnOnce(&ToolExecutor) -> T) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let settings = HttpSettings::default();
    let stop = settings.stop.clone();
    let asking = async {
        let servers = Servers::new(vec![ServerConfig::http("s", url)], Surroundings::new("/"));
        servers.start("s").await.unwrap();
        let tools = ToolRegistry::new();
        servers.introduce(&tools);
        let context = ToolContext::builder("test").build();
        let executor = ToolExecutor::builder(ToolView::of(tools), context)
            .authorizer(KindAuthorizer::default().with(Kind::Other, Permission::Allow))
            .build();
        let asked = ask(&executor).await;
        servers.stop().await;
        stop.cancel();
        asked
    };
    let (served, asked) = tokio::join!(serve_http(service, listener, settings), asking);
    served.unwrap();
    asked
}

/// Serves for one call.
async fn asked(service: Service, tool: &str, arguments: serde_json::Value) -> ToolResult {
    let call = ToolCall::new("c", format!("mcp__s__{tool}"), arguments);
    Box::pin(serving(service, async |client| client.execute(call).await)).await
}

#[tokio::test]
async fn an_agent_that_is_called_from_outside_is_a_run_that_is_kept() {
    let scene = scene();
    let turns = vec![
        Turn::call("read_file", json!({ "path": "a.txt" })),
        Turn::call("complete_task", json!({ "result": "It says one." })),
    ];
    let service = scene.runtime.serve().agent(&worker(), model(turns)).unwrap().service();
    let result = asked(service, "worker", json!({ "task": "Look." })).await;
    assert!(result.text().contains("It says one."), "{result:?}");
    let mut runs = scene.store.list().unwrap();
    runs.retain(|run| !run.model.is_empty());
    assert_eq!(runs.len(), 1, "beside the record of the call: {runs:?}");
    drop(scene.directory);
}

#[tokio::test]
async fn an_agent_that_fails_is_a_call_that_fails() {
    let scene = scene();
    let service = scene.runtime.serve().agent(&worker(), model(Vec::new())).unwrap().service();
    let result = asked(service, "worker", json!({ "task": "Look." })).await;
    assert!(!result.success(), "{result:?}");
    assert!(result.text().contains("did not complete its task"), "{result:?}");
}

#[tokio::test]
async fn a_whole_toolbox_is_served_and_the_policy_holds() {
    let scene = scene();
    let toolbox: Toolbox = scene.runtime.toolbox();
    let serve = || scene.runtime.serve().toolbox(&toolbox, model(Vec::new())).unwrap().service();
    let read = asked(serve(), "read_file", json!({ "path": "a.txt" })).await;
    assert_eq!(read.text(), "one\n");
    let write = json!({ "path": "b.txt", "content": "x" });
    let denied = asked(serve(), "write_file", write).await;
    assert!(denied.text().contains("permission"), "{denied:?}");
    assert!(!scene.directory.path().join("project/b.txt").exists());
}

/// What clients do is as well recorded as what agents do: also what they were not allowed to.
#[tokio::test]
async fn calls_from_outside_are_kept_as_a_run_of_their_own() {
    let scene = scene();
    let tools = scene.runtime.callable();
    let service = || scene.runtime.serve().tools(tools.clone()).service();
    drop(service());
    assert!(scene.store.list().unwrap().is_empty(), "nobody called anything");
    let read = asked(service(), "read_file", json!({ "path": "a.txt" })).await;
    assert!(read.success(), "{read:?}");
    let runs = scene.store.list().unwrap();
    assert_eq!((runs.len(), runs[0].tool_calls), (1, 1), "{runs:?}");
    let events = scene.store.read(&runs[0].run).unwrap().events;
    let origin = Origin::of(&events).unwrap();
    assert!(origin.served && origin.tools.unwrap().contains(&"read_file".to_owned()));
    let ended = events.last().map(|event| &event.body);
    assert!(
        matches!(ended, Some(EventBody::RunEnded { outcome, .. }) if outcome.cause == Cause::Goal)
    );

    let write = json!({ "path": "b.txt", "content": "x" });
    assert!(!asked(service(), "write_file", write).await.success());
    let runs = scene.store.list().unwrap();
    assert_eq!(runs.len(), 2, "another server, another run");
    let denied = runs.iter().any(|run| {
        let events = scene.store.read(&run.run).unwrap().events;
        events.iter().any(|event| matches!(event.body, EventBody::ToolCallDenied { .. }))
    });
    assert!(denied);
}

/// A call that cannot be recorded is not made.
#[tokio::test]
async fn where_nothing_can_be_kept_nothing_is_done() {
    let scene = scene();
    std::fs::write(scene.directory.path().join("state"), "in the way").unwrap();
    let tools = scene.runtime.callable().clone();
    let service = scene.runtime.serve().tools(tools).service();
    let refused = asked(service, "read_file", json!({ "path": "a.txt" })).await;
    assert!(!refused.success(), "{refused:?}");
    assert!(refused.text().contains("could not be recorded"), "{refused:?}");
}

/// A disk that was full for a moment once left a server that refused every call from then on.
#[tokio::test]
async fn what_can_be_kept_again_is_done_again() {
    let scene = scene();
    let state = scene.directory.path().join("state");
    std::fs::write(&state, "in the way").unwrap();
    let tools = scene.runtime.callable().clone();
    let service = scene.runtime.serve().tools(tools).service();
    let read = |id: &str| ToolCall::new(id, "mcp__s__read_file", json!({ "path": "a.txt" }));
    let served = serving(service, async |client| {
        let refused = client.execute(read("one")).await;
        std::fs::remove_file(&state).unwrap();
        [refused, client.execute(read("two")).await]
    });
    let [refused, done] = Box::pin(served).await;
    assert!(!refused.success(), "{refused:?}");
    assert_eq!(done.text(), "one\n", "{done:?}");
    let runs = scene.store.list().unwrap();
    assert_eq!((runs.len(), runs[0].tool_calls), (1, 1), "{runs:?}");
}

//! Calls whose result is asked for later.

use rmcp::model::{
    CallToolResponse, CancelTaskParams, ClientCapabilities, GetTaskParams, TaskPayload, TaskStatus,
};
use rmcp::{ServiceError, model::Task};
use serde_json::json;

use crate::support::{Client, Server, Way, call};

fn knows_tasks() -> ClientCapabilities {
    ClientCapabilities::builder().enable_tasks().build()
}

async fn start(client: &Client) -> Task {
    match client.running.call_tool_once(call("delegate", json!({}))).await.unwrap() {
        CallToolResponse::Task(created) => created.task,
        other => panic!("{other:?}"),
    }
}

/// codex#6127, #11015: a client need not wait for an agent, and so cannot run out of time.
#[tokio::test]
async fn an_agent_is_a_task_for_clients_that_know_tasks() {
    for way in Way::ALL {
        let mut server = Server::new();
        let client = server.connect_with(way, knows_tasks()).await;
        let task = start(&client).await;
        assert_eq!(task.status, TaskStatus::Working, "{way:?}");
        server.stage.has_started().await;
        server.stage.go.add_permits(1);
        let ended = loop {
            let told =
                client.running.get_task(GetTaskParams::new(task.task_id.clone())).await.unwrap();
            match told.task.payload {
                TaskPayload::Working => tokio::task::yield_now().await,
                ended => break ended,
            }
        };
        let TaskPayload::Completed { result } = ended else { panic!("{way:?}: {ended:?}") };
        assert_eq!(result["content"][0]["text"], "went");
        assert_eq!(result["isError"], false);
    }
}

#[tokio::test]
async fn a_task_says_what_it_does_and_can_be_stopped() {
    let mut server = Server::new();
    let client = server.connect_with(Way::NewHttp, knows_tasks()).await;
    let task = start(&client).await;
    server.stage.has_started().await;
    let get = || client.running.get_task(GetTaskParams::new(task.task_id.clone()));
    loop {
        let told = get().await.unwrap().task;
        if told.task.status_message.as_deref() == Some("waiting") {
            break;
        }
    }
    client.running.cancel_task(CancelTaskParams::new(task.task_id.clone())).await.unwrap();
    server.stage.has_stopped().await;
    while get().await.unwrap().task.status() != TaskStatus::Cancelled {
        tokio::task::yield_now().await;
    }
    client.running.cancel_task(CancelTaskParams::new(task.task_id.clone())).await.unwrap();
    assert_eq!(get().await.unwrap().task.status(), TaskStatus::Cancelled, "once is enough");
}

/// codex#4993: whoever waits for an agent is told what it does.
#[tokio::test]
async fn a_client_that_does_not_know_tasks_waits_and_hears() {
    for way in Way::ALL {
        let mut server = Server::new();
        let mut client = server.connect(way).await;
        let (answer, ()) =
            tokio::join!(client.running.call_tool(call("delegate", json!({}))), async {
                server.stage.has_started().await;
                server.stage.go.add_permits(1);
            });
        assert_eq!(answer.unwrap().content[0].as_text().unwrap().text, "went", "{way:?}");
        let told = client.heard.recv().await.unwrap();
        assert_eq!(told.message.as_deref(), Some("first\nwaiting"), "{way:?}");
    }
}

#[tokio::test]
async fn there_are_no_more_tasks_than_the_limit() {
    let mut server = Server::new();
    server.limits.max_tasks = 1;
    let client = server.connect_with(Way::OldStreams, knows_tasks()).await;
    start(&client).await;
    let refused = client.running.call_tool_once(call("delegate", json!({}))).await.unwrap();
    let CallToolResponse::Complete(refused) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.is_error, Some(true));
    assert!(refused.content[0].as_text().unwrap().text.contains("1 tasks under way"));
}

#[tokio::test]
async fn an_unknown_task_is_an_error() {
    let mut server = Server::new();
    let client = server.connect_with(Way::OldStreams, knows_tasks()).await;
    let unknown = client.running.get_task(GetTaskParams::new("made up")).await;
    let Err(ServiceError::McpError(error)) = unknown else { panic!("{unknown:?}") };
    assert_eq!(error.code.0, -32602);
}

#[tokio::test]
async fn tasks_end_with_the_server() {
    let mut server = Server::new();
    let client = server.connect_with(Way::OldStreams, knows_tasks()).await;
    start(&client).await;
    server.stage.has_started().await;
    server.stop.cancel();
    assert!(server.served.join_next().await.unwrap().unwrap().is_ok());
    assert_eq!(server.stage.stopped.available_permits(), 1);
}

//! What a server answers beyond calls of tools.

use std::sync::Arc;

use async_trait::async_trait;
use convoke_mcp::serve::{Asker, Extras, RequestError};
use rmcp::ServiceError;
use rmcp::model::{GetPromptRequestParams, ReadResourceRequestParams};
use serde_json::{Map, Value, json};

use crate::support::{Server, Way, call};

struct Prompts;

#[async_trait]
impl Extras for Prompts {
    fn capabilities(&self) -> Map<String, Value> {
        json!({ "prompts": {} }).as_object().cloned().unwrap()
    }

    async fn answer(
        &self,
        method: &str,
        params: Value,
        asker: &Asker,
    ) -> Option<Result<Value, RequestError>> {
        Some(match method {
            "prompts/list" => Ok(json!({ "prompts": [{ "name": "hello" }] })),
            "prompts/get" => {
                let missing = json!({ "name": params["name"] });
                Err(RequestError::new(-32602, "no such prompt").with_data(missing))
            }
            "resources/read" => Ok(json!({ "not": "an answer" })),
            "tools/call" if params["name"] == "add" => {
                let told = json!({ "level": "info", "data": "counting" });
                asker.notify("notifications/message", told).await.unwrap();
                let text = format!("asked by one who can {}", asker.capabilities());
                Ok(json!({ "content": [{ "type": "text", "text": text }] }))
            }
            _ => return None,
        })
    }
}

#[tokio::test]
async fn extras_answer_first_and_leave_the_rest_to_the_tools() {
    for way in Way::ALL {
        let mut server = Server::new();
        server.extras = Some(Arc::new(Prompts));
        let client = server.connect(way).await;
        let prompts = client.running.list_all_prompts().await.unwrap();
        assert_eq!(prompts[0].name, "hello", "{way:?}");
        let added = client.running.call_tool(call("add", json!({}))).await.unwrap();
        let text = &added.content[0].as_text().unwrap().text;
        assert_eq!(text, "asked by one who can {}", "{way:?}");
        let talked = client.running.call_tool(call("talk", json!({}))).await.unwrap();
        assert_eq!(talked.content[0].as_text().unwrap().text, "talked", "{way:?}");
    }
}

#[tokio::test]
async fn what_extras_get_wrong_is_an_error_and_what_nobody_answers_is_unknown() {
    let mut server = Server::new();
    server.extras = Some(Arc::new(Prompts));
    let client = server.connect(Way::OldStreams).await;
    let error = |answer: Result<(), ServiceError>| match answer {
        Err(ServiceError::McpError(error)) => error,
        other => panic!("{other:?}"),
    };
    let refused = client.running.get_prompt(GetPromptRequestParams::new("bye")).await;
    let refused = error(refused.map(drop));
    assert_eq!((refused.code.0, refused.data), (-32602, Some(json!({ "name": "bye" }))));
    let broken = client.running.read_resource(ReadResourceRequestParams::new("test://a")).await;
    let broken = error(broken.map(drop));
    assert_eq!(broken.code.0, -32603);
    assert!(broken.message.contains("`resources/read`"), "{}", broken.message);
    let unknown = error(client.running.list_all_resources().await.map(drop));
    assert_eq!(unknown.code.0, -32601);
}

//! Pages that somebody has to visit before a server does what it was asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_core::ErrorKind;
use convoke_mcp::client::{Elicited, Wanted};
use serde_json::json;

use crate::questions::{Person, with};
use crate::scripted::{Scripted, call, call_with, tool};

const PAGE: &str = "https://pay.example/confirm";

/// Refuses the first call until a page was visited.
fn wants_a_visit() -> Scripted {
    wants_a_visit_for("optional")
}

/// The same, with a tool that is called as a task, or not.
fn wants_a_visit_for(task_support: &str) -> Scripted {
    let asked = Arc::new(AtomicUsize::new(0));
    let mut tool = tool("t");
    tool["execution"] = json!({ "taskSupport": task_support });
    Scripted::with_tools(json!([tool]), move |message, out| {
        if asked.fetch_add(1, Ordering::AcqRel) > 0 {
            return out.text(message, "paid");
        }
        let page =
            json!({ "mode": "url", "url": PAGE, "elicitationId": "e1", "message": "Confirm it." });
        let error = json!({ "code": -32042, "message": "confirm first", "data": { "elicitations": [page] } });
        out.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
    })
}

/// Regression: of a tool that is called as a task the refusal was told at once.
#[tokio::test]
async fn a_call_is_made_again_after_the_page_was_visited() {
    for task_support in ["optional", "required"] {
        let person = Person::says([Elicited::Accept(serde_json::Map::new())]);
        let scripted = wants_a_visit_for(task_support);
        let result = call_with(&scripted.servers(), "t", json!({}), with(&person)).await;
        assert_eq!(result.text(), "paid");
        let asked = person.asked.lock().unwrap().clone();
        assert!(matches!(&asked[0].wanted, Wanted::Visit { url } if url == PAGE), "{:?}", asked[0]);
        let called = scripted.seen.method("tools/call").await;
        assert_eq!(called["params"]["task"].is_object(), task_support == "required");
    }
}

#[tokio::test]
async fn where_nobody_is_there_the_refusal_names_the_page() {
    let result = call(&wants_a_visit().servers(), "t").await;
    let error = result.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Failed);
    assert!(error.message.contains(PAGE) && error.message.contains("confirm first"), "{error}");
    let declines = with(&Person::says([Elicited::Decline]));
    let result = call_with(&wants_a_visit().servers(), "t", json!({}), declines).await;
    assert!(result.error().unwrap().message.contains(PAGE));
}

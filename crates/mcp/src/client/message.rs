//! Messages as servers send them, with what the library would lose of them.
//!
//! Revision 2025-11-25 has tools that are called as tasks. The library knows tasks as later revisions have them: it
//! drops what a tool says about it, and takes an answer that names a task, and says anything beside it, for another.

use rmcp::model::ServerJsonRpcMessage;
use serde_json::{Map, Value};

/// Where what a tool says about tasks is put: beside what the server says for programs, which is kept.
pub(super) const TASK_SUPPORT: &str = "convoke/taskSupport";

/// Reads a message.
pub(super) fn read_message(text: &str) -> serde_json::Result<ServerJsonRpcMessage> {
    match with_tasks(text) {
        Some(message) => serde_json::from_value(message),
        None => serde_json::from_str(text),
    }
}

/// Returns a message with what it says about tasks where it is kept; nothing, if it can stay as it is.
pub(super) fn with_tasks(text: &str) -> Option<Value> {
    if !text.contains("\"taskSupport\"") && !text.contains("\"taskId\"") {
        return None;
    }
    let mut message: Value = serde_json::from_str(text).ok()?;
    let result = message.get_mut("result")?.as_object_mut()?;
    if result.get("task").is_some_and(|task| task.get("taskId").is_some()) {
        result.remove("_meta")?;
        return Some(message);
    }
    let mut is_kept = false;
    for tool in result.get_mut("tools")?.as_array_mut()? {
        let support = tool.pointer("/execution/taskSupport").cloned();
        let (Some(support), Some(tool)) = (support, tool.as_object_mut()) else { continue };
        let meta = tool.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(TASK_SUPPORT.to_owned(), support);
            is_kept = true;
        }
    }
    is_kept.then_some(message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(message: &Value) -> Value {
        serde_json::to_value(read_message(&message.to_string()).unwrap()).unwrap()
    }

    #[test]
    fn what_a_message_says_about_tasks_is_kept() {
        let tools = json!([
            { "name": "t", "inputSchema": {}, "execution": { "taskSupport": "required" } },
            { "name": "u", "inputSchema": {}, "_meta": { "a": 1 } },
        ]);
        let listed = read(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": tools } }));
        assert_eq!(listed["result"]["tools"][0]["_meta"][TASK_SUPPORT], "required");
        assert_eq!(listed["result"]["tools"][1]["_meta"], json!({ "a": 1 }));
        let task = json!({ "taskId": "x", "status": "working", "pollInterval": 5 });
        let result = json!({ "task": task, "_meta": { "a": 1 } });
        let made = read(&json!({ "jsonrpc": "2.0", "id": 1, "result": result }));
        assert_eq!(made["result"]["task"], task);
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        for text in ["{\"taskId\"", "{}", "{\"result\": {\"taskId\": 1, \"_meta\": {}}}"] {
            assert_eq!(with_tasks(text), None, "{text}");
        }
    }
}

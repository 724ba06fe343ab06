//! Messages as servers send them, with what the library would lose of them.
//!
//! Revision 2025-11-25 has tools that are called as tasks. The library knows tasks as later revisions have them: it
//! drops what a tool says about it, and takes an answer that names a task, and says anything beside it, for another.

use rmcp::model::ServerJsonRpcMessage;
use serde_json::{Map, Value, json};

/// Where what a tool says about tasks is put: beside what the server says for programs, which is kept.
pub(super) const TASK_SUPPORT: &str = "convoke/taskSupport";
/// Where what a server says about tasks is put, among its capabilities.
pub(super) const TASKS: &str = "convoke/tasks";

/// Reads a message.
pub(super) fn read_message(text: &str) -> serde_json::Result<ServerJsonRpcMessage> {
    match with_tasks(text) {
        Some(message) => serde_json::from_value(message),
        None => serde_json::from_str(text),
    }
}

/// Returns a message with what it says about tasks where it is kept; nothing, if it can stay as it is.
pub(super) fn with_tasks(text: &str) -> Option<Value> {
    if !["\"taskSupport\"", "\"taskId\"", "\"tasks\""].iter().any(|word| text.contains(word)) {
        return None;
    }
    let mut message: Value = serde_json::from_str(text).ok()?;
    let result = message.get_mut("result")?.as_object_mut()?;
    let is_new = result.get("task").is_some_and(|task| task.get("taskId").is_some());
    if is_new
        || ["taskId", "status"].iter().all(|key| result.get(*key).is_some_and(Value::is_string))
    {
        result.remove("_meta")?;
        return Some(message);
    }
    if let Some(capabilities) = result.get_mut("capabilities").and_then(Value::as_object_mut) {
        let tasks = capabilities.get("tasks").filter(|tasks| tasks.is_object()).cloned()?;
        let experimental = capabilities.entry("experimental").or_insert_with(|| json!({}));
        experimental.as_object_mut()?.insert(TASKS.to_owned(), tasks);
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
        let tasks = json!({ "requests": { "tools": { "call": {} } } });
        let result = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tasks": tasks },
            "serverInfo": { "name": "s", "version": "1" } });
        let agreed = read(&json!({ "jsonrpc": "2.0", "id": 1, "result": result }));
        assert_eq!(agreed["result"]["capabilities"]["experimental"][TASKS], tasks);
    }

    /// Regression: with anything beside it, how a task stands was taken for the result of a tool.
    #[test]
    fn how_a_task_stands_is_kept_whatever_is_said_beside_it() {
        for status in ["working", "input_required", "completed", "failed", "cancelled"] {
            let state = json!({ "taskId": "x", "status": status, "_meta": { "a": 1 } });
            let read = read(&json!({ "jsonrpc": "2.0", "id": 1, "result": state }));
            assert_eq!(read["result"]["status"], status, "{read}");
        }
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        for text in ["{\"taskId\"", "{}", "{\"result\": {\"taskId\": 1, \"_meta\": {}}}"] {
            assert_eq!(with_tasks(text), None, "{text}");
        }
    }
}

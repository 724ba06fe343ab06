//! Every built-in tool passes the suite that any tool can be put through.

use std::sync::Arc;

use convoke_builtin::{Settings, tools};
use convoke_core::Category;
use convoke_tool::UnconfinedSpawner;
use convoke_tool::testing::{Conformance, TempWorkspace};
use serde_json::{Value, json};

/// Arguments that work, for each tool.
fn examples(tool: &str) -> Vec<Value> {
    match tool {
        "current_time" => vec![json!({}), json!({ "timezone": "Asia/Tokyo" })],
        "sleep" => vec![json!({ "duration": 0 })],
        "get_env" => vec![json!({ "key": "NOPE" })],
        "set_env" => vec![json!({ "key": "A", "value": "b" })],
        "read_file" => {
            vec![json!({ "path": "a.txt" }), json!({ "path": "a.txt", "offset": 1, "limit": 1 })]
        }
        "write_file" => vec![json!({ "path": "new.txt", "content": "x" })],
        "list_files" => vec![json!({ "path": ".", "recursive": true })],
        "ls" => vec![json!({}), json!({ "path": "dir" })],
        "delete_file" => vec![json!({ "path": "gone.txt" })],
        "move_file" => vec![json!({ "from": "b.txt", "to": "c.txt" })],
        "get_file_info" => vec![json!({ "path": "a.txt" }), json!({ "path": "nope" })],
        "grep" => vec![json!({ "pattern": "a" }), json!({ "pattern": "a", "mode": "files" })],
        "glob" => vec![json!({ "pattern": "*.txt" })],
        "edit_file" => vec![json!({ "path": "a.txt", "old_string": "one", "new_string": "two" })],
        "json_parse" => vec![json!({ "text": "[1]" })],
        "json_stringify" => vec![json!({ "data": { "a": 1 } })],
        "base64_encode" => vec![json!({ "text": "a" })],
        "base64_decode" => vec![json!({ "encoded": "YQ==" })],
        "run_command" => vec![json!({ "command": "echo hello" })],
        _ => Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_built_in_tool_conforms() {
    for tool in tools(&Settings::default()) {
        let name = tool.spec().name.clone();
        let examples = examples(&name);
        if tool.spec().category == Category::Network {
            // These need a server; they are put through the suite where there is one.
            continue;
        }
        assert!(!examples.is_empty(), "{name} has no example");
        let workspace = TempWorkspace::new().unwrap();
        workspace.write("a.txt", "one\n").unwrap();
        workspace.write("b.txt", "b").unwrap();
        workspace.write("dir/c.txt", "c").unwrap();
        let context = workspace.context_builder().spawner(Arc::new(UnconfinedSpawner)).build();
        let mut suite = Conformance::new(tool).in_context(context);
        for example in examples {
            suite = suite.valid(example);
        }
        let report = suite.run().await;
        assert!(report.passed(), "{name}: {report}");
    }
}

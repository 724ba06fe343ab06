//! Servers that others wrote. They run where they are installed: in the directory that
//! `CONVOKE_MCP_PEERS` names, with packages of npm in `node_modules` and of Python in `venv`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use convoke_mcp::client::{ServerConfig, Servers, Surroundings, Trust};
use convoke_tool::{ToolContext, UnconfinedSpawner};
use serde_json::{Value, json};

use crate::scripted::call_with;

struct Peers {
    directory: PathBuf,
    environment: BTreeMap<String, String>,
}

/// Returns where the servers are, if they are anywhere.
fn peers() -> Option<Peers> {
    let directory = std::env::var("CONVOKE_MCP_PEERS").ok();
    let path = std::env::var("PATH").unwrap_or_default();
    let Some(directory) = directory else {
        convoke_testkit::skip("MCP servers of others", "CONVOKE_MCP_PEERS is not set");
        return None;
    };
    let environment = BTreeMap::from([("PATH".to_owned(), path)]);
    Some(Peers { directory: directory.into(), environment })
}

impl Peers {
    fn servers(&self, program: &str, arguments: &[&str]) -> Servers {
        let program = self.directory.join(program);
        let config = ServerConfig::program("s", program.to_str().unwrap(), arguments.to_vec());
        let surroundings = Surroundings::new("/")
            .spawner(Arc::new(UnconfinedSpawner))
            .environment(self.environment.clone());
        Servers::new(vec![config.trust(Trust::Annotations)], surroundings)
    }
}

async fn said(servers: &Servers, tool: &str, arguments: Value) -> String {
    call_with(servers, tool, arguments, ToolContext::builder("task").build()).await.text()
}

async fn is(servers: &Servers, revision: &str, tools: usize) {
    servers.start("s").await.unwrap();
    let status = servers.status().remove(0);
    assert_eq!(status.revision.as_deref(), Some(revision), "{status:?}");
    assert!(status.tools >= tools && status.unusable.is_empty(), "{status:?}");
}

#[tokio::test]
async fn everything() {
    let Some(peers) = peers() else { return };
    let servers = peers.servers("node_modules/.bin/mcp-server-everything", &["stdio"]);
    is(&servers, "2025-11-25", 10).await;
    assert!(said(&servers, "echo", json!({ "message": "hi" })).await.contains("hi"));
    let sum = said(&servers, "get-sum", json!({ "a": 2, "b": 3 })).await;
    assert!(sum.contains('5'), "{sum}");
    let structured =
        said(&servers, "get-structured-content", json!({ "location": "Chicago" })).await;
    assert!(structured.contains("temperature"), "{structured}");
    let slow = json!({ "duration": 1, "steps": 4 });
    let slow = said(&servers, "trigger-long-running-operation", slow).await;
    assert!(slow.contains("completed"), "{slow}");
    if servers.tools().iter().any(|tool| tool.name() == "trigger-elicitation-request") {
        let cancelled = said(&servers, "trigger-elicitation-request", json!({})).await;
        assert!(cancelled.contains("cancelled"), "{cancelled}");
    }
    assert!(!servers.list_resources("s").await.unwrap().is_empty());
    assert!(!servers.list_prompts("s").await.unwrap().is_empty());
    let names: Vec<String> =
        servers.all_tools().iter().map(|tool| tool.spec().name.clone()).collect();
    assert!(names.contains(&"mcp_read_resource".to_owned()), "{names:?}");
}

#[tokio::test]
async fn filesystem() {
    let Some(peers) = peers() else { return };
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap();
    let servers = peers.servers("node_modules/.bin/mcp-server-filesystem", &[place]);
    is(&servers, "2025-11-25", 10).await;
    let file = format!("{place}/a.txt");
    said(&servers, "write_file", json!({ "path": file, "content": "written" })).await;
    assert!(said(&servers, "read_text_file", json!({ "path": file })).await.contains("written"));
    let denied = said(&servers, "read_text_file", json!({ "path": "/etc/hostname" })).await;
    assert!(denied.starts_with("Error (failed)"), "{denied}");
}

#[tokio::test]
async fn memory() {
    let Some(peers) = peers() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("memory.jsonl");
    let program = peers.directory.join("node_modules/.bin/mcp-server-memory");
    let config = ServerConfig::program("s", program.to_str().unwrap(), Vec::<String>::new())
        .env("MEMORY_FILE_PATH", file.to_str().unwrap());
    let surroundings = Surroundings::new("/")
        .spawner(Arc::new(UnconfinedSpawner))
        .environment(peers.environment.clone());
    let servers = Servers::new(vec![config], surroundings);
    is(&servers, "2025-11-25", 8).await;
    let entity = json!({ "entities": [{ "name": "Ada", "entityType": "person", "observations": ["counts"] }] });
    said(&servers, "create_entities", entity).await;
    assert!(said(&servers, "read_graph", json!({})).await.contains("Ada"));
}

#[tokio::test]
async fn time() {
    let Some(peers) = peers() else { return };
    let servers = peers.servers("venv/bin/mcp-server-time", &[]);
    is(&servers, "2026-07-28", 2).await;
    let now = said(&servers, "get_current_time", json!({ "timezone": "Europe/Berlin" })).await;
    assert!(now.contains("Europe/Berlin"), "{now}");
}

#[tokio::test]
async fn fetch() {
    let Some(peers) = peers() else { return };
    let servers = peers.servers("venv/bin/mcp-server-fetch", &[]);
    is(&servers, "2026-07-28", 1).await;
    let refused = said(&servers, "fetch", json!({ "url": "http://127.0.0.1:9/" })).await;
    assert!(refused.starts_with("Error"), "{refused}");
    assert_eq!(servers.list_prompts("s").await.unwrap().len(), 1);
}

#[tokio::test]
async fn git() {
    let Some(peers) = peers() else { return };
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap();
    let head = directory.path().join(".git");
    for folder in ["objects", "refs/heads"] {
        std::fs::create_dir_all(head.join(folder)).unwrap();
    }
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(head.join("HEAD"))
        .unwrap();
    std::io::Write::write_all(&mut file, b"ref: refs/heads/main\n").unwrap();
    let servers = peers.servers("venv/bin/mcp-server-git", &["--repository", place]);
    is(&servers, "2026-07-28", 10).await;
    let status = said(&servers, "git_status", json!({ "repo_path": place })).await;
    assert!(status.contains("main"), "{status}");
}

//! Keeps a registry in step with what the servers offer.

use std::sync::{Arc, Mutex, PoisonError};

use convoke_tool::{Tool, ToolRegistry};
use tokio::sync::watch;

use super::reading_tools::ReadingTools;
use super::server::Server;
use super::state::{News, ServerState};

/// Returns what models can be given now. What stays the same is the same tool each time.
pub(super) fn desired(servers: &Arc<[Arc<Server>]>, reading: &ReadingTools) -> Vec<Arc<dyn Tool>> {
    let usable = servers
        .iter()
        .filter(|server| server.config.enabled && server.state() != ServerState::Stopped);
    let own = usable.flat_map(|server| server.offer().tools.clone());
    let own = own.map(|tool| tool as Arc<dyn Tool>);
    own.chain(reading.wanted(servers)).collect()
}

/// How the names of all tools here begin.
const GROUP: &str = "mcp_";

/// A registry, and what of it is ours.
#[derive(Clone)]
pub(super) struct Attachment {
    registry: ToolRegistry,
    servers: Arc<[Arc<Server>]>,
    reading: Arc<ReadingTools>,
    news: Arc<News>,
    /// What was registered last.
    ours: Arc<Mutex<Vec<Arc<dyn Tool>>>>,
}

impl Attachment {
    pub(super) fn new(
        registry: ToolRegistry,
        servers: Arc<[Arc<Server>]>,
        reading: Arc<ReadingTools>,
        news: Arc<News>,
    ) -> Self {
        Self { registry, servers, reading, news, ours: Arc::default() }
    }

    /// Follows every change.
    pub(super) async fn follow(self, mut generation: watch::Receiver<u64>) {
        while generation.changed().await.is_ok() {
            self.bring_in_step();
        }
    }

    /// Registers what is new, replaces what has changed and removes what is gone.
    pub(super) fn bring_in_step(&self) {
        self.registry.announce(GROUP);
        let mut ours = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
        let tools = desired(&self.servers, &self.reading);
        let same = |(one, other): (&Arc<dyn Tool>, &Arc<dyn Tool>)| Arc::ptr_eq(one, other);
        if tools.len() == ours.len() && tools.iter().zip(&*ours).all(same) {
            return;
        }
        let problems = self.registry.set_group(GROUP, tools.clone());
        *ours = tools;
        drop(ours);
        if problems.is_empty() {
            self.news.settle("", "taken");
        } else {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let what = format!("some tools of MCP servers are left out: {}", problems.join("; "));
            self.news.warn("", "taken", what);
        }
    }
}

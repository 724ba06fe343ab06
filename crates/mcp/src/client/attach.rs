//! Keeps a registry in step with what the servers offer.

use std::collections::BTreeMap;
use std::sync::Arc;

use convoke_tool::{Tool, ToolRegistry};
use tokio::sync::watch;

use super::reading_tools::reading_tools;
use super::server::Server;
use super::state::{News, ServerState};

/// Returns what models can be given now.
pub(super) fn desired(servers: &Arc<[Arc<Server>]>) -> Vec<Arc<dyn Tool>> {
    let usable = servers
        .iter()
        .filter(|server| server.config.enabled && server.state() != ServerState::Stopped);
    let own = usable.flat_map(|server| server.offer().tools.clone());
    let own = own.map(|tool| Arc::new(tool) as Arc<dyn Tool>);
    own.chain(reading_tools(servers)).collect()
}

/// A registry, and what of it is ours.
#[derive(Debug)]
pub(super) struct Attachment {
    registry: ToolRegistry,
    servers: Arc<[Arc<Server>]>,
    news: Arc<News>,
    ours: BTreeMap<String, Registered>,
}

struct Registered(Arc<dyn Tool>);

impl std::fmt::Debug for Registered {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0.spec().name)
    }
}

impl Attachment {
    pub(super) fn new(
        registry: ToolRegistry,
        servers: Arc<[Arc<Server>]>,
        news: Arc<News>,
    ) -> Self {
        Self { registry, servers, news, ours: BTreeMap::new() }
    }

    /// Follows every change.
    pub(super) async fn follow(mut self, mut generation: watch::Receiver<u64>) {
        while generation.changed().await.is_ok() {
            self.bring_in_step();
        }
    }

    /// Registers what is new, replaces what has changed and removes what is gone.
    pub(super) fn bring_in_step(&mut self) {
        let mut gone = std::mem::take(&mut self.ours);
        let mut taken = Vec::new();
        for tool in desired(&self.servers) {
            let name = tool.spec().name.clone();
            match gone.remove(&name) {
                Some(before) if self.is_ours(&before) => {
                    let kept = if before.0.spec() == tool.spec() {
                        before
                    } else {
                        // It was valid under the same name before; if not, the old one stays.
                        drop(self.registry.replace(Arc::clone(&tool)));
                        Registered(tool)
                    };
                    self.ours.insert(name, kept);
                }
                _ => match self.registry.register(Arc::clone(&tool)) {
                    Ok(()) => drop(self.ours.insert(name, Registered(tool))),
                    Err(error) => taken.push(error.to_string()),
                },
            }
        }
        for (name, tool) in gone {
            if self.is_ours(&tool) {
                drop(self.registry.remove(&name));
            }
        }
        if taken.is_empty() {
            self.news.settle("", "taken");
        } else {
            let what = format!("some tools of MCP servers are left out: {}", taken.join("; "));
            self.news.warn("", "taken", what);
        }
    }

    /// Tells whether what is registered under that name is what we registered.
    fn is_ours(&self, tool: &Registered) -> bool {
        let registered = self.registry.get(&tool.0.spec().name);
        registered.is_some_and(|registered| Arc::ptr_eq(&registered, &tool.0))
    }
}

//! A model that notes when it was asked, and runs that ask it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use convoke::config::Config;
use convoke::core::ModelFacts;
use convoke::{McpPlaces, Runtime};
use convoke_model::{Provider, ProviderModel, Transport, WireFormat};
use convoke_testkit::{ModelServer, Reply, Wire};
use serde_json::{Value, json};
use tokio::runtime::Runtime as Threads;

use crate::Result;
use crate::runs::{LAST_WORDS, PROMPT, answer_of};

/// A model server on a thread of its own.
pub(super) struct AskedModel {
    server: ModelServer,
    threads: Threads,
}

/// The first request of a run.
pub(super) struct FirstRequest {
    /// How long it took until it had arrived.
    pub(super) after: Duration,
    pub(super) bytes: usize,
}

impl AskedModel {
    pub(super) fn start() -> Result<Self> {
        let threads =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let server = threads.block_on(ModelServer::start(Reply::text(LAST_WORDS)))?;
        Ok(Self { server, threads })
    }

    /// Makes a runtime and a run in it, on one thread as `convoke run` does, and returns its first request.
    pub(super) fn first_request(&self, place: &Place<'_>) -> Result<FirstRequest> {
        let base_url = self.server.base_url(Wire::OpenAiChat);
        let provider = Provider::new("bench", WireFormat::OpenAiChat, base_url).key("sk-bench");
        let model = ProviderModel::new("m", ModelFacts::default(), provider, Transport::default())?;
        let (model, config) = (Arc::new(model), place.config()?);
        let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let began = Instant::now();
        let runtime = place.runtime(config)?;
        let agent = runtime.main_agent(model).build()?;
        let report = threads.block_on(agent.start(PROMPT).finish());
        answer_of(&report)?;
        let request = self.threads.block_on(self.server.next_request());
        let after = request.at.into_std().duration_since(began);
        drop(agent);
        if let Some(mcp) = runtime.mcp() {
            threads.block_on(mcp.servers().stop());
        }
        Ok(FirstRequest { after, bytes: request.body.len() })
    }
}

/// Where a run takes place, and with which servers.
pub(super) struct Place<'a> {
    pub(super) directory: &'a Path,
    pub(super) servers: Vec<Value>,
    /// Where it is kept what servers offer.
    pub(super) cache: Option<&'a Path>,
    /// How much a model is told of their tools, if not as much as usual.
    pub(super) max_listed_tokens: Option<usize>,
}

impl Place<'_> {
    /// Reads the configuration.
    pub(super) fn config(&self) -> Result<Config> {
        let mut config: Config =
            serde_json::from_value(json!({ "tools": { "mcpServers": self.servers } }))?;
        if let Some(most) = self.max_listed_tokens {
            config.tools.max_listed_tokens = most;
        }
        Ok(config)
    }

    pub(super) fn runtime(&self, config: Config) -> Result<Runtime> {
        let mut places = McpPlaces::default();
        places.cache = self.cache.map(Path::to_owned);
        Ok(Runtime::builder(self.directory).config(config).mcp(places).build()?)
    }
}

/// Describes a server that only pretends.
pub(super) fn pretender(name: &str, habit: &str, first: usize, count: usize) -> Result<Value> {
    let program = std::env::current_exe()?;
    let (first, count) = (first.to_string(), count.to_string());
    Ok(json!({ "name": name, "command": program, "args": ["mcp-fake", habit, first, count] }))
}

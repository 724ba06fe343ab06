//! From a configuration to tools, their limits and the hooks around them.

use std::collections::BTreeSet;
use std::sync::Arc;

use convoke_builtin::network::HttpSettings;
use convoke_builtin::web_search::{SearchEngine, WebSearchSettings};
use convoke_builtin::{OFFERED_BY_DEFAULT, Settings};
use convoke_core::{Millis, ToolSpec};
use convoke_tool::{
    CommandTool, Hook, Hooks, Limits, Selection, Spawner, ToolContext, ToolRegistry, ToolView,
    UnconfinedSpawner,
};

use super::agents::AGENT_TOOLS;
use crate::config::{Author, CommandConfig, Config, HookConfig, ToolsConfig, WebSearchProvider};
use crate::hooks::{self, CommandHook, HookError};
use crate::written::Written;

pub(super) fn settings(tools: &ToolsConfig) -> Settings {
    let http = &tools.http;
    let search = &tools.web_search;
    Settings {
        max_read_bytes: tools.max_read_bytes,
        http: HttpSettings {
            allow_private: http.allow_private,
            allowed_hosts: http.allowed_hosts.clone(),
            max_redirects: http.max_redirects,
            max_body_bytes: http.max_body_bytes,
            ..HttpSettings::default()
        },
        web_search: WebSearchSettings {
            provider: search.provider.map(engine),
            api_key: search.api_key.as_ref().map(|key| key.expose().to_owned()),
            engine_id: search.engine_id.clone(),
            base_url: search.base_url.clone(),
            max_results: search.max_results,
        },
    }
}

const fn engine(provider: WebSearchProvider) -> SearchEngine {
    match provider {
        WebSearchProvider::Tavily => SearchEngine::Tavily,
        WebSearchProvider::Google => SearchEngine::Google,
        WebSearchProvider::Bing => SearchEngine::Bing,
        WebSearchProvider::Duckduckgo => SearchEngine::DuckDuckGo,
    }
}

/// How the names of servers' tools begin.
pub(super) const SERVER_TOOLS: &str = "mcp_";

/// What a model is offered: what the configuration names, or the default set and every tool that was
/// added beside the built-in ones.
pub(super) fn offered(
    tools: &ToolsConfig,
    callable: &ToolView,
    built_in: &BTreeSet<String>,
) -> Selection {
    if let Some(names) = &tools.enabled {
        let is_tool = |name: &&String| !AGENT_TOOLS.contains(&name.as_str());
        return Selection::only(names.iter().filter(is_tool).cloned());
    }
    let names = callable.list().into_iter().map(|tool| tool.spec().name.clone());
    let names = names
        .filter(|name| OFFERED_BY_DEFAULT.contains(&name.as_str()) || !built_in.contains(name));
    // Those of servers may come later.
    let of_servers = callable.registry().may_come(SERVER_TOOLS).then(|| "mcp_*".to_owned());
    Selection::only(names.chain(of_servers))
}

pub(super) fn names(registry: &ToolRegistry) -> BTreeSet<String> {
    registry.list().iter().map(|tool| tool.spec().name.clone()).collect()
}

pub(super) fn is_pattern(name: &str) -> bool {
    name.contains('*') || name.starts_with("category:")
}

/// Makes the hooks of a configuration. The user's run with the user's rights, a project's as programs do.
pub(super) fn hooks_of(
    config: &Config,
    context: &ToolContext,
    confined: &Arc<dyn Spawner>,
) -> Result<Hooks, HookError> {
    let directory = context.working_directory();
    let variables = context.environment().inherited();
    let written = Written::by(config, context);
    // A folder can narrow what is written, and would so choose what runs with the user's rights.
    let written_or_here = written.clone().and(directory);
    let hook = |(hook, author): (&HookConfig, Author)| -> Result<Arc<dyn Hook>, HookError> {
        let (spawner, forbidden): (Arc<dyn Spawner>, &Written) = match author {
            Author::User => (Arc::new(UnconfinedSpawner), &written_or_here),
            Author::Project => (Arc::clone(confined), &written),
        };
        hooks::refuse_if_written(hook, author, forbidden, directory, variables.get("PATH"))?;
        Ok(Arc::new(CommandHook::new(hook.clone(), directory, variables.clone(), spawner)))
    };
    Ok(Hooks::new(config.hooks_by_author().map(hook).collect::<Result<Vec<_>, _>>()?))
}

pub(super) fn limits(config: &Config) -> Limits {
    let (tools, policy) = (&config.tools, &config.policy);
    let mut limits = Limits {
        approval_timeout: policy.approval_timeout.duration(),
        unanswered: policy.on_ask.into(),
        max_concurrent: tools.max_concurrent,
        timeout: tools.timeout.duration(),
        max_argument_bytes: tools.max_argument_bytes,
        max_output_bytes: tools.max_output_bytes,
        ..Limits::default()
    };
    let by_category = tools.timeouts.category.iter();
    limits
        .category_timeouts
        .extend(by_category.map(|(category, timeout)| (*category, timeout.duration())));
    let by_tool = tools.timeouts.tool.iter();
    limits.tool_timeouts.extend(by_tool.map(|(name, timeout)| (name.clone(), timeout.duration())));
    limits
}

pub(super) fn command_tool(config: &CommandConfig) -> CommandTool {
    let mut spec = ToolSpec::new(&config.name, &config.description, config.kind);
    spec.category = config.category;
    spec.parameters = config.parameters.clone().into();
    spec.effects = config.effects.clone();
    spec.timeout_ms = config.timeout.map(|timeout| Millis::new(timeout.duration()));
    let variables =
        config.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
    let tool = CommandTool::new(spec, config.command.clone()).environment(variables.collect());
    match &config.working_directory {
        Some(directory) => tool.working_directory(directory),
        None => tool,
    }
}

//! Three tools over all servers, for models: what can be read, reading it, and filling in prompts.
//!
//! They exist only where there is something to read, so that nobody pays for their descriptions for
//! nothing. What holds for all tools of a server (`mcp__files__*`) holds for what is read from it: a rule on them
//! decides, and where they are excluded, or others are selected, it is as if the server were not there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use convoke_core::{Category, Effects, Kind, Part, Resource as Touched, Role, ToolError};
use convoke_tool::{Content, FunctionTool, Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::name::names_begin;
use super::offer::Resource;
use super::read::{get_prompt, read_resource};
use super::server::Server;
use super::servers::find;
use super::state::ServerState;

/// How many entries a model is told of at once.
const PAGE: usize = 100;

type All = Arc<[Arc<Server>]>;

/// The tools, made once.
pub(super) struct ReadingTools {
    list: Arc<dyn Tool>,
    read: Arc<dyn Tool>,
    prompt: Arc<dyn Tool>,
}

impl ReadingTools {
    pub(super) fn new(servers: &All) -> Self {
        Self {
            list: Arc::new(list_tool(Arc::clone(servers))),
            read: Arc::new(read_tool(Arc::clone(servers))),
            prompt: Arc::new(prompt_tool(Arc::clone(servers))),
        }
    }

    /// Returns those that have something to read.
    pub(super) fn wanted(&self, servers: &All) -> Vec<Arc<dyn Tool>> {
        let offers: Vec<_> = usable(servers).map(|server| server.offer()).collect();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        let resources = |manifest: &super::manifest::Manifest| {
            !manifest.resources.is_empty() || !manifest.templates.is_empty()
        };
        if offers.iter().any(|offer| resources(&offer.manifest)) {
            tools.extend([Arc::clone(&self.list), Arc::clone(&self.read)]);
        }
        if offers.iter().any(|offer| !offer.manifest.prompts.is_empty()) {
            tools.push(Arc::clone(&self.prompt));
        }
        tools
    }
}

/// Tells whether whoever makes a call may use a server at all.
fn is_reached(server: &Server, context: &ToolContext) -> bool {
    context.reaches(&names_begin(server.name()), Category::Mcp)
}

/// Finds a server among those that whoever makes a call may use.
fn find_reached<'a>(
    servers: &'a All,
    name: &str,
    context: &ToolContext,
) -> Result<&'a Arc<Server>, ToolError> {
    let found = find(servers, name)?;
    if is_reached(found, context) {
        return Ok(found);
    }
    let start = names_begin(name);
    Err(ToolError::not_found(format!(
        "there is no MCP server `{name}` for you: none of its tools is (`{start}*`), nor `{start}` alone, which \
         would do for reading"
    )))
}

/// A call asks this server, so what holds for all of its tools holds for it.
fn asks(server: &str) -> Effects {
    Effects { reads: vec![Touched::Server(names_begin(server))], writes: Vec::new() }
}

/// Returns how long reading may take: what the most patient configuration gives a server to start and to answer.
fn longest(servers: &All) -> Duration {
    let times = servers.iter().map(|server| &server.config);
    let times = times.map(|config| config.start_timeout + config.longest_call);
    times.max().unwrap_or_default()
}

fn usable(servers: &All) -> impl Iterator<Item = &Arc<Server>> {
    servers.iter().filter(|server| server.config.enabled && server.state() != ServerState::Stopped)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Only those of this server.
    server: Option<String>,
    /// Only those whose address or name contains this.
    contains: Option<String>,
}

fn list_tool(servers: All) -> FunctionTool<List> {
    let description = "Lists what can be read from MCP servers with `mcp_read_resource`: addresses \
                       (URIs), and templates of addresses to fill in.";
    FunctionTool::new(
        "mcp_list_resources",
        description,
        move |wanted: List, context: ToolContext| {
            let listed = list(&servers, &wanted, &context);
            async move { listed }
        },
    )
    .kind(Kind::Read)
    .category(Category::Mcp)
}

fn list(servers: &All, wanted: &List, context: &ToolContext) -> Result<Value, ToolError> {
    if let Some(name) = &wanted.server {
        find_reached(servers, name, context)?;
    }
    let contains = wanted.contains.as_deref().unwrap_or_default();
    let (mut resources, mut templates) = (Vec::new(), Vec::new());
    let named = |server: &&Arc<Server>| wanted.server.as_deref().is_none_or(|n| n == server.name());
    for server in usable(servers).filter(named).filter(|server| is_reached(server, context)) {
        let offer = server.offer();
        let fits = |resource: &&Resource| {
            resource.uri.contains(contains) || resource.name.contains(contains)
        };
        for resource in offer.manifest.resources.iter().filter(fits) {
            resources.push(json!({ "server": server.name(), "uri": resource.uri,
                "name": resource.name, "mimeType": resource.mime_type, "size": resource.size }));
        }
        for template in &offer.manifest.templates {
            templates.push(json!({ "server": server.name(), "uriTemplate": template.uri_template,
                "name": template.name, "description": template.description }));
        }
    }
    let left_out = resources.len().saturating_sub(PAGE) + templates.len().saturating_sub(PAGE);
    resources.truncate(PAGE);
    templates.truncate(PAGE);
    Ok(json!({ "resources": resources, "templates": templates, "leftOut": left_out }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Read {
    /// The server that has it.
    server: String,
    /// Its address, as `mcp_list_resources` gives it.
    uri: String,
}

fn read_tool(servers: All) -> FunctionTool<Read> {
    let longest = longest(&servers);
    let description = "Reads a resource of an MCP server.";
    let body = move |wanted: Read, context: ToolContext| {
        let servers = Arc::clone(&servers);
        async move {
            let server = find_reached(&servers, &wanted.server, &context)?;
            let parts = read_resource(server, &wanted.uri, Some(&context)).await?;
            if parts.is_empty() {
                let Read { server, uri } = wanted;
                let what = format!("MCP server `{server}` has nothing to show for `{uri}`");
                return Err(ToolError::not_found(what));
            }
            Ok(shown(parts))
        }
    };
    FunctionTool::new("mcp_read_resource", description, body)
        .kind(Kind::Fetch)
        .category(Category::Mcp)
        .timeout(longest)
        .describe(|wanted| format!("{}: read {}", wanted.server, wanted.uri))
        .effects(|wanted| asks(&wanted.server))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Fill {
    /// The server that has it.
    server: String,
    /// Its name. Without it, the prompts of the server are listed.
    name: Option<String>,
    /// What is filled in.
    arguments: Option<BTreeMap<String, String>>,
}

fn prompt_tool(servers: All) -> FunctionTool<Fill> {
    let longest = longest(&servers);
    let description = "Gets a prepared prompt of an MCP server, with arguments filled in; without a \
                       name, lists the prompts there are.";
    let body = move |wanted: Fill, context: ToolContext| {
        let servers = Arc::clone(&servers);
        async move {
            let server = find_reached(&servers, &wanted.server, &context)?;
            let Some(name) = wanted.name else {
                let prompts = serde_json::to_value(&server.offer().manifest.prompts);
                return Ok(ToolOutput::new(prompts.unwrap_or_default()));
            };
            let arguments = wanted.arguments.unwrap_or_default();
            let messages = get_prompt(server, &name, arguments, Some(&context)).await?;
            let mut parts = Vec::new();
            for message in messages {
                let speaker = if message.role == Role::Assistant { "assistant" } else { "user" };
                parts.push(Part::text(format!("[{speaker}]")));
                parts.extend(message.parts);
            }
            Ok::<_, ToolError>(shown(parts))
        }
    };
    FunctionTool::new("mcp_get_prompt", description, body)
        .kind(Kind::Fetch)
        .category(Category::Mcp)
        .timeout(longest)
        .describe(|wanted| match &wanted.name {
            Some(name) => format!("{}: prompt {name}", wanted.server),
            None => format!("{}: list prompts", wanted.server),
        })
        .effects(|wanted| asks(&wanted.server))
}

fn shown(parts: Vec<Part>) -> ToolOutput {
    let words: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
    let value = Value::String(words.join("\n"));
    ToolOutput { value, content: Content::Parts(parts), ..ToolOutput::default() }
}

//! A tool of a server, as an ordinary tool.
//!
//! It holds no connection: each call asks its server for one, which starts it if need be. What the server
//! says about the tool is taken as it is, schemas included; what a call does is believed only where the
//! configuration trusts the server.

use std::sync::{OnceLock, Weak};

use async_trait::async_trait;
use convoke_core::{Category, Millis, ToolError, ToolSpec};
use convoke_tool::{Invocation, Tool, ToolContext, ToolOutput};
use jsonschema::Validator;
use serde_json::{Map, Value};
use std::sync::Arc;

use super::config::ServerConfig;
use super::failure::Failure;
use super::name::model_name;
use super::offer::{Calling, ToolEntry};
use super::result;
use super::server::Server;

/// How much of the arguments a description shows.
const BRIEF: usize = 120;

/// A tool of a server.
#[derive(Clone, Debug)]
pub struct McpTool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    server: Weak<Server>,
    server_name: String,
    name: String,
    calling: Calling,
    spec: ToolSpec,
    check: OnceLock<Option<Validator>>,
}

impl McpTool {
    pub(super) fn new(server: Weak<Server>, config: &ServerConfig, entry: &ToolEntry) -> Self {
        let kind = entry.hints.kind(config.trust);
        let name = model_name(&config.name, &entry.name);
        let mut spec = ToolSpec::new(name, entry.description.clone(), kind);
        spec.display_name.clone_from(&entry.title);
        spec.category = Category::Mcp;
        spec.parameters = entry.input.clone();
        spec.output.clone_from(&entry.output);
        spec.repeat = entry.hints.repeat(config.trust);
        spec.streaming = true;
        // The user set these, so they are not cut like what a call might wish from its arguments.
        spec.timeout_ms = Some(Millis::new(config.start_timeout + config.longest_call));
        Self(Arc::new(Inner {
            server,
            server_name: config.name.clone(),
            name: entry.name.clone(),
            calling: entry.calling,
            spec,
            check: OnceLock::new(),
        }))
    }

    /// Returns the server it belongs to, as it is called here.
    pub fn server(&self) -> &str {
        &self.0.server_name
    }

    /// Returns what the server calls it.
    pub fn name(&self) -> &str {
        &self.0.name
    }
}

impl Inner {
    fn check(&self) -> Option<&Validator> {
        // The schema was valid when the server was asked; if that has changed, nothing is promised.
        let make =
            || self.spec.output.as_ref().and_then(|schema| jsonschema::validator_for(schema).ok());
        self.check.get_or_init(make).as_ref()
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.0.spec
    }

    fn prepare(&self, arguments: Value) -> Result<Box<dyn Invocation>, ToolError> {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            Value::Null => Map::new(),
            _ => return Err(ToolError::validation(["the arguments have to be an object"])),
        };
        Ok(Box::new(Call { tool: Arc::clone(&self.0), arguments }))
    }
}

struct Call {
    tool: Arc<Inner>,
    arguments: Map<String, Value>,
}

#[async_trait]
impl Invocation for Call {
    fn describe(&self) -> Option<String> {
        let Inner { server_name, name, .. } = &*self.tool;
        Some(format!("{server_name}: {name}({})", brief(&self.arguments)))
    }

    async fn run(self: Box<Self>, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let Self { tool, arguments } = *self;
        let name = &tool.server_name;
        let Some(server) = tool.server.upgrade() else {
            return Err(Failure::Off("is gone: the servers were shut down").about(name));
        };
        let called = server.call_tool(&tool.name, tool.calling, arguments, &context).await;
        let answer = called.map_err(|failure| server.tell(failure))?;
        Ok(result::output(name, answer, tool.check()))
    }
}

fn brief(arguments: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (name, value) in arguments {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(name);
        text.push_str(": ");
        let shown = match value {
            Value::String(text) => format!("{:?}", text.chars().take(BRIEF).collect::<String>()),
            Value::Object(_) => "{…}".to_owned(),
            Value::Array(items) => format!("[{} items]", items.len()),
            other => other.to_string(),
        };
        text.push_str(&shown);
        if let Some((cut, _)) = text.char_indices().nth(BRIEF) {
            text.truncate(cut);
            text.push('…');
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_shown_in_brief() {
        let Value::Object(arguments) =
            json!({ "a": "text", "b": [1, 2], "c": { "d": 1 }, "e": true })
        else {
            panic!("an object");
        };
        assert_eq!(brief(&arguments), "a: \"text\", b: [2 items], c: {…}, e: true");
        let Value::Object(long) = json!({ "text": "ä".repeat(500), "z": 1 }) else {
            panic!("an object");
        };
        assert_eq!(brief(&long).chars().count(), BRIEF + 1);
    }
}

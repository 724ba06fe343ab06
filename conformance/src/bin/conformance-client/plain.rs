//! What is done with a server in a scenario, with the protocol library for now.

use std::error::Error;
use std::time::Duration;

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorData, GetPromptRequestParams, Implementation, JsonObject,
    ProtocolVersion, ReadResourceRequestParams, Tool,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransportConfig,
};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::Task;

type Session = RunningService<RoleClient, Person>;

/// How long a stream may take to be opened.
const OPENING: Duration = Duration::from_secs(10);
/// The revision without a handshake.
const STATELESS: &str = "2026-07-28";

/// Does what a scenario wants.
pub(crate) async fn run(
    task: &Task,
    http: impl StreamableHttpClient + Sync,
    mut listens: watch::Receiver<bool>,
) -> Result<(), Box<dyn Error>> {
    let config = StreamableHttpClientTransportConfig::with_uri(task.url.as_str());
    let transport = StreamableHttpClientTransport::with_client(http, config);
    let lifecycle = if task.revision == STATELESS {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    } else {
        ClientLifecycleMode::Initialize
    };
    let session = Person.serve_with_lifecycle(transport, lifecycle).await?;
    if task.scenario.starts_with("elicitation") {
        // The server asks on a stream that the library opens at some time. Before that nobody hears it.
        timeout(OPENING, listens.wait_for(|listens| *listens)).await??;
    }
    let done = explore(task, &session).await;
    session.cancel().await?;
    done
}

/// Lists what there is and uses each of it once; the second round finds out what has changed.
async fn explore(task: &Task, session: &Session) -> Result<(), Box<dyn Error>> {
    let tools = session.list_all_tools().await?;
    for (name, arguments) in calls(task, &tools) {
        session.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await?;
    }
    if task.scenario == "auth/authorization-server-migration" {
        session.list_all_tools().await?;
    }
    if task.scenario == "http-standard-headers" {
        for resource in session.list_all_resources().await? {
            session.read_resource(ReadResourceRequestParams::new(resource.uri.clone())).await?;
        }
        for prompt in session.list_all_prompts().await? {
            session.get_prompt(GetPromptRequestParams::new(prompt.name.clone())).await?;
        }
    }
    Ok(())
}

/// Returns the calls to make: those that the scenario names, or one of each tool.
fn calls(task: &Task, tools: &[Tool]) -> Vec<(String, JsonObject)> {
    let object = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
    if let Some(named) = task.context.get("toolCalls").and_then(Value::as_array) {
        let name = |call: &Value| Some(call.get("name")?.as_str()?.to_owned());
        let call = |call| Some((name(call)?, object(call.get("arguments")).unwrap_or_default()));
        return named.iter().filter_map(call).collect();
    }
    let rich = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
    let arguments = |tool: &Tool| match (rich, &*tool.name) {
        (Some(rich), "json_schema_echo") => {
            let schema = Value::Object((*rich.input_schema).clone());
            object(Some(&json!({ "schema": schema }))).unwrap_or_default()
        }
        _ => filled(&tool.input_schema),
    };
    tools.iter().map(|tool| (tool.name.to_string(), arguments(tool))).collect()
}

/// Fills in what a schema requires, with something of the right type.
fn filled(schema: &JsonObject) -> JsonObject {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    required
        .filter_map(|name| {
            let kind = properties?.get(name)?.get("type").and_then(Value::as_str);
            let value = match kind {
                Some("number" | "integer") => json!(2),
                Some("boolean") => json!(true),
                Some("object") => json!({}),
                Some("array") => json!([]),
                _ => json!("text"),
            };
            Some((name.to_owned(), value))
        })
        .collect()
}

/// Somebody who accepts every question as it is suggested.
struct Person;

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("convoke-conformance", "0.1.0"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { requested_schema, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let schema = serde_json::to_value(requested_schema).unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object);
        let content: JsonObject = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, property)| Some((name.clone(), property.get("default")?.clone())))
            .collect();
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content)))
    }
}

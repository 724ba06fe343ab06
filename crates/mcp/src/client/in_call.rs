//! Questions of a server, put to whoever answers the other questions of the run: the same queue, the same
//! person, the same record.

use std::sync::Arc;

use async_trait::async_trait;
use convoke_tool::{Answer, Inquiry, ToolContext};
use serde_json::{Map, Value};

use super::elicit::{Elicitation, Elicited, Elicitor, ElicitorHandle, Wanted};

/// Asks through the context of a call.
#[derive(Debug)]
struct InCall(ToolContext);

/// Returns who answers a server's questions during a call: whom its context names, or whoever is asked about
/// calls.
pub(super) fn elicitor_of(context: Option<&ToolContext>) -> Option<Arc<dyn Elicitor>> {
    let context = context?;
    match context.extension::<ElicitorHandle>() {
        Some(handle) => Some(Arc::clone(&handle.0)),
        None => Some(Arc::new(InCall(context.clone()))),
    }
}

#[async_trait]
impl Elicitor for InCall {
    async fn elicit(&self, question: Elicitation) -> Elicited {
        let Elicitation { server, message, wanted, problem } = question;
        let mut said = format!("MCP server {server} asks: {message}");
        let form = match &wanted {
            Wanted::Form { schema } => {
                said.push_str(&explained(schema));
                blank(schema)
            }
            Wanted::Visit { url } => {
                said.push_str(&format!("\nOpen this page, and say yes when you are done: {url}"));
                Value::Object(Map::new())
            }
        };
        if let Some(problem) = problem {
            said.push_str(&format!("\nThe last answer did not fit: {problem}"));
        }
        let reason = "a server wants to know something; what you enter is sent to it".to_owned();
        let who = format!("mcp:{server}");
        match self.0.inquire(Inquiry { who, message: said, form, reason }).await {
            Answer::Yes(consent) => Elicited::Accept(match consent.arguments {
                Some(Value::Object(fields)) => fields,
                _ => Map::new(),
            }),
            Answer::No(_) | Answer::Nobody => Elicited::Decline,
        }
    }

    fn person(&self) -> Option<String> {
        Some(self.0.task().to_string())
    }
}

/// Returns a form with the defaults filled in, and nothing in the other fields.
fn blank(schema: &Value) -> Value {
    let fields = schema.get("properties").and_then(Value::as_object);
    let filled = fields
        .into_iter()
        .flatten()
        .map(|(name, field)| (name.clone(), field.get("default").cloned().unwrap_or(Value::Null)));
    Value::Object(filled.collect())
}

/// Says what each field is for.
fn explained(schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
    let fields = schema.get("properties").and_then(Value::as_object);
    let lines = fields.into_iter().flatten().map(|(name, field)| {
        let text = |key: &str| field.get(key).and_then(Value::as_str);
        let kind = text("type").unwrap_or("choice");
        let needed = if is_required(name) { "" } else { ", may be left out" };
        let what = text("description").or(text("title")).map(|what| format!(": {what}"));
        let choices = field.get("enum").map(|choices| format!(", one of {choices}"));
        format!(
            "\n  {name} ({kind}{}{needed}){}",
            choices.unwrap_or_default(),
            what.unwrap_or_default()
        )
    });
    lines.collect()
}

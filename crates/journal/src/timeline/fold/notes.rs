//! Events that are worth a line, and those that are shown as they stand.

use convoke_core::{EventBody, FileChange};
use serde_json::Value;

use crate::timeline::{Note, Tone};

/// Returns what an event says in a line, if it is of a kind that has nothing more to it.
pub(super) fn note(body: &EventBody) -> Option<Note> {
    let (tone, title, text) = match body {
        EventBody::RunCancelled { cause } => {
            (Tone::Warning, "Asked to stop".to_owned(), word(cause))
        }
        EventBody::RunResumed { model, anything_else, .. } => (
            Tone::Quiet,
            if *anything_else { "Goes on with something else" } else { "Goes on where it was" }
                .to_owned(),
            model.as_ref().map(|model| format!("with {model}")).unwrap_or_default(),
        ),
        EventBody::Notice { message } => {
            (Tone::Quiet, "The model is told".to_owned(), message.clone())
        }
        EventBody::LoopDetected { tool_name, times, message, .. } => (
            Tone::Warning,
            format!("The same call of {tool_name}, {times} times in a row"),
            message.clone(),
        ),
        EventBody::BudgetWarning { budget, used, message } => (
            Tone::Warning,
            format!("{:.0} % of the budget is used: {}", used * 100.0, words(budget.as_str())),
            message.clone(),
        ),
        EventBody::BudgetExceeded { budget, why: Some(why), .. } => (
            Tone::Error,
            format!("Too little of the budget is left: {}", words(budget.as_str())),
            why.clone(),
        ),
        EventBody::BudgetExceeded { budget, .. } => (
            Tone::Error,
            format!("The budget is used up: {}", words(budget.as_str())),
            String::new(),
        ),
        EventBody::InquiryAsked { tool_name, who, message, .. } => {
            (Tone::Quiet, format!("{who} asks a person, during {tool_name}"), message.clone())
        }
        EventBody::InquiryAnswered { who, accepted, values, message, by, .. } => {
            let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            let told = if *accepted { "answered" } else { "told nothing" };
            let title = format!("{who} is {told}{by}");
            let said = values.as_ref().map(ToString::to_string).or_else(|| message.clone());
            (Tone::Quiet, title, said.unwrap_or_default())
        }
        EventBody::McpServerState { server, state, reason } => (
            if state == "failed" { Tone::Warning } else { Tone::Quiet },
            format!("MCP server {server} is {state}"),
            reason.clone().unwrap_or_default(),
        ),
        EventBody::HookActed { hook, moment, action, message, .. } => (
            match action.as_str() {
                "changed" | "asked" => Tone::Quiet,
                _ => Tone::Warning,
            },
            format!("Hook {hook}, {}: {action}", words(moment.as_str())),
            message.clone().unwrap_or_default(),
        ),
        EventBody::WorkspacePrepared { place, notes } => (
            Tone::Quiet,
            format!("Works in a workspace of its own ({})", place.kind),
            [std::slice::from_ref(&place.path), notes].concat().join("\n"),
        ),
        EventBody::WorkspaceChanged(report) => (
            Tone::Quiet,
            match report.files.len() {
                0 => "Nothing changed in the workspace".to_owned(),
                1 => "1 file changed in the workspace".to_owned(),
                count => format!("{count} files changed in the workspace"),
            },
            report.files.iter().map(changed).collect::<Vec<_>>().join("\n"),
        ),
        EventBody::Warning { message } => (Tone::Warning, "Warning".to_owned(), message.clone()),
        EventBody::Error { message } => (Tone::Error, "Error".to_owned(), message.clone()),
        _ => return None,
    };
    Some(Note { tone, title, text })
}

/// Returns the kind of an event and what it says.
pub(super) fn plain(body: &EventBody) -> (String, Value) {
    let mut value = serde_json::to_value(body).unwrap_or_default();
    let kind = value.get("type").and_then(Value::as_str).unwrap_or("event").to_owned();
    let data = value.get_mut("data").map(Value::take).unwrap_or_default();
    (kind, data)
}

fn changed(file: &FileChange) -> String {
    let from = file.from.as_ref().map(|from| format!("{from} → ")).unwrap_or_default();
    let lines = match (file.added, file.removed) {
        (Some(added), Some(removed)) => format!(", +{added} -{removed}"),
        _ => String::new(),
    };
    format!("{from}{}: {}{lines}", file.path, file.change)
}

fn words(snake: &str) -> String {
    snake.replace('_', " ")
}

/// Returns the word a value has in JSON.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => words(&word),
        _ => String::new(),
    }
}

//! What a caller sees of an agent it called: how it ended, what came out, and never how it got there.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use convoke_core::{
    Cause, Display, DisplayFormat, ErrorKind, Outcome, RunId, Status, ToolError, WorkspaceReport,
};
use convoke_tool::{ToolOutput, cut_middle};
use serde_json::{Value, json};

use crate::definition::ProcessOutput;
use crate::registry::Registered;
use crate::running::RunReport;

/// How much of a result a caller is told that did not wait for it, in bytes. What is cut is said, and all of it
/// is in the record of the agent.
const MAX_TOLD: usize = 32 * 1024;

/// The result of an agent, for its caller.
pub(crate) struct Handover {
    value: Value,
    text: String,
    failure: Option<ToolError>,
}

impl Handover {
    /// Makes it, for a caller that knows the agent by this id.
    pub(crate) fn new(agent: &Registered, report: &RunReport, id: &str) -> Self {
        let Outcome { status, cause, recovered, partial, message } = &report.outcome;
        let output = report.answer.as_ref().or(partial.as_ref());
        let mut text = output.map(|output| as_text(agent, output)).unwrap_or_default();
        let mut value = json!({
            "agent": agent.name,
            "agentId": id,
            "run": report.run,
            "status": status,
            "cause": cause,
            "output": output,
            "usage": report.usage,
            "turns": report.turns,
            "toolCalls": report.tool_calls,
        });
        if let Value::Object(fields) = &mut value {
            if *recovered {
                fields.insert("recovered".into(), true.into());
            }
            if !report.refused.is_empty() {
                fields.insert("refused".into(), json!(report.refused));
                text.push_str(&format!("\n\n{}", refused_calls(&report.refused)));
            }
            if let Some(changed) = &report.workspace {
                fields.insert("workspace".into(), json!(changed));
                text.push_str(&format!("\n\n{}", changed_files(changed)));
            }
        }
        text.push_str(&format!("\n\n(agent_id: {id})"));
        let failure = (*cause != Cause::Goal).then(|| {
            let why = message.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            let had = match (output.is_some(), recovered) {
                (false, _) => "It gave no result",
                (true, true) if *cause == Cause::Denied => "It gave this result all the same",
                (true, true) => "When it had to end, it gave this result, which may not be whole",
                (true, false) => "This is the last it said; it is not a result",
            };
            let again = match cause {
                Cause::ModelUnavailable => {
                    ". What it did is kept: continue it by its `agent_id`, and it goes on where it was"
                }
                _ => "",
            };
            let how = match cause {
                Cause::Denied => "was not allowed to do what it wanted",
                _ => "did not complete its task",
            };
            let message =
                format!("the agent `{}` {how} ({}){why}. {had}{again}", agent.name, word(*cause));
            ToolError::new(kind_of(*status), message)
        });
        Self { value, text: text.trim_start().to_owned(), failure }
    }

    pub(crate) fn into_output(self) -> ToolOutput {
        let Self { value, text, failure } = self;
        let display = Display { format: DisplayFormat::Markdown, text: text.clone() };
        let output = ToolOutput::new(value).with_text(text).with_display(display);
        match failure {
            Some(failure) => output.failing(failure),
            None => output,
        }
    }

    /// What the caller gets at once of an agent that works in the background.
    pub(crate) fn handle(name: &str, child: &RunId, id: &str) -> ToolOutput {
        let text = format!(
            "`{name}` works in the background (agent_id: {id}). You will be told when it has ended."
        );
        ToolOutput::new(json!({ "agent": name, "agentId": id, "run": child, "status": "working" }))
            .with_text(text)
    }
}

/// Returns what the caller of an agent that worked in the background is told; nothing while it waits for a
/// person.
pub(crate) fn told_later(agent: &Registered, report: &RunReport, id: &str) -> Option<String> {
    if report.outcome.status == Status::Parked {
        return None;
    }
    let Handover { text, failure, .. } = Handover::new(agent, report, id);
    let how = match failure {
        Some(failure) => format!("In the background: {}", failure.message),
        None => format!("The agent `{}` has ended in the background. Its result:", agent.name),
    };
    let text = cut_middle(&text, MAX_TOLD).unwrap_or(text);
    Some(format!("{how}\n\n{text}"))
}

/// Returns what came out as a text: as its definition says, a text as it is, or as JSON.
fn as_text(agent: &Registered, output: &Value) -> String {
    // It is the program's own code, which may break down.
    let process = |process: &ProcessOutput| {
        catch_unwind(AssertUnwindSafe(|| process.apply(output))).ok().and_then(Result::ok)
    };
    if let Some(text) = agent.process_output.as_ref().and_then(process) {
        return text;
    }
    match output {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Says which calls of an agent were refused: what it gives may be short of what they would have done.
fn refused_calls(refused: &BTreeMap<String, u32>) -> String {
    let named = refused.iter().map(|(tool, times)| match times {
        1 => format!("`{tool}`"),
        times => format!("`{tool}` ({times} times)"),
    });
    format!("Some of its calls were refused: {}.", named.collect::<Vec<_>>().join(", "))
}

/// Says what an agent changed in its own workspace.
fn changed_files(changed: &WorkspaceReport) -> String {
    let files = match changed.files.len() {
        0 => return "It changed no files in its workspace.".to_owned(),
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let diff = changed.diff.trim_end();
    let whole = changed.whole_diff.as_ref();
    let whole = whole.map(|path| format!("\n(all of it is in {path})")).unwrap_or_default();
    format!(
        "It changed {files} in its own workspace; nothing of it was taken over.\n\n```diff\n\
         {diff}\n```{whole}"
    )
}

fn kind_of(status: Status) -> ErrorKind {
    match status {
        Status::Denied => ErrorKind::Permission,
        Status::Cancelled => ErrorKind::Cancelled,
        Status::Completed | Status::Failed | Status::Limited | Status::Stuck | Status::Parked => {
            ErrorKind::Failed
        }
    }
}

fn word(cause: Cause) -> String {
    json!(cause).as_str().unwrap_or_default().to_owned()
}

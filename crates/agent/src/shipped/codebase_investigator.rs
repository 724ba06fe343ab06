//! An agent that finds out how a codebase works, and changes nothing.

use std::time::Duration;

use convoke_core::{Mode, WorkspaceKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LOOKING;
use crate::definition::{AgentDefinition, InputConfig, InputType, ToolConfig};

/// What an investigation found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InvestigationReport {
    /// The answer in its first sentence, then what explains it, and what stayed open.
    pub summary: String,
    /// What was done, one entry a step, with what it taught.
    pub exploration_trace: Vec<String>,
    /// The places that matter, the most important first.
    pub relevant_locations: Vec<RelevantLocation>,
}

/// A place in the code that matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RelevantLocation {
    /// The file, from the root of the project.
    pub file_path: String,
    /// Why it matters.
    pub reasoning: String,
    /// The functions, types and keys to look at.
    pub key_symbols: Vec<String>,
}

/// Returns the agent: it answers how something works, where it is done and what depends on it.
pub fn codebase_investigator() -> AgentDefinition<InvestigationReport> {
    let mut definition = AgentDefinition::new(
        "codebase_investigator",
        "Investigates a codebase in depth and reports how something works, where it is done and what \
         depends on it, with files and symbols. For questions about architecture, dependencies across \
         the system, the cause of a bug, or where a change has to be made. It changes nothing.",
    )
    .returning("report", "What the investigation found.")
    .processed(told);
    definition.display_name = Some("Codebase investigator".to_owned());
    definition.input = InputConfig::none().required(
        "objective",
        InputType::String,
        "What to find out: the user's goal in full, with every name, error message and detail that is \
         known.",
    );
    definition.prompt.system_prompt =
        Some(include_str!("../../prompts/agents/codebase_investigator.md").trim_end().to_owned());
    definition.prompt.query = Some(
        "Investigate the codebase in depth for this objective, and report what you find:\n\n\
         <objective>\n${objective}\n</objective>"
            .to_owned(),
    );
    definition.tools = ToolConfig::only(LOOKING);
    definition.policy.mode = Some(Mode::Plan);
    definition.run.workspace = Some(WorkspaceKind::Readonly);
    definition.run.max_time = Some(Duration::from_mins(10));
    definition.run.max_turns = Some(50);
    definition.model.settings.temperature = Some(0.1);
    definition
}

/// Writes a report as a text.
fn told(report: InvestigationReport) -> String {
    let mut text = report.summary;
    if !report.relevant_locations.is_empty() {
        text.push_str("\n\n## Relevant locations\n");
    }
    for RelevantLocation { file_path, reasoning, key_symbols } in report.relevant_locations {
        text.push_str(&format!("- {file_path}: {reasoning}"));
        if !key_symbols.is_empty() {
            text.push_str(&format!(" ({})", key_symbols.join(", ")));
        }
        text.push('\n');
    }
    if !report.exploration_trace.is_empty() {
        text.push_str("\n## How it was found\n");
    }
    for (index, step) in report.exploration_trace.iter().enumerate() {
        text.push_str(&format!("{}. {step}\n", index + 1));
    }
    text
}

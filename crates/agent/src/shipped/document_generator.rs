//! An agent that writes documentation from the code.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LOOKING;
use crate::definition::{AgentDefinition, InputConfig, InputType, ToolConfig};

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentReport {
    /// What was written, and for whom.
    pub summary: String,
    /// The files that were written or changed.
    pub files: Vec<DocumentedFile>,
    /// What the code does not answer, and contradictions that were met.
    pub open_questions: Vec<String>,
}

/// A file that was written or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentedFile {
    /// The file, from the root of the project.
    pub path: String,
    /// What changed in it.
    pub change: String,
}

/// Returns the agent: it writes and corrects documents, from what the code does.
pub fn document_generator() -> AgentDefinition<DocumentReport> {
    let mut definition = AgentDefinition::new(
        "document_generator",
        "Writes or corrects documentation from what the code does: guides, references, READMEs, \
         explanations of a module. It changes documents, not code.",
    )
    .returning("report", "What was written.");
    definition.display_name = Some("Document generator".to_owned());
    definition.input = InputConfig::none()
        .required("subject", InputType::String, "What to document, for whom, and what they want to do.")
        .optional(
            "path",
            InputType::String,
            "The file to write or to correct; wherever the project keeps such documents, where nothing \
             is said.",
        );
    definition.prompt.system_prompt =
        Some(include_str!("../../prompts/agents/document_generator.md").trim_end().to_owned());
    definition.prompt.query = Some(
        "Write documentation on this subject.\n\n<subject>\n${subject}\n</subject>\n\nThe file that was \
         asked for, if any: ${path}"
            .to_owned(),
    );
    definition.tools = ToolConfig::only(LOOKING.into_iter().chain(["edit_file", "write_file"]));
    definition.run.max_time = Some(Duration::from_mins(15));
    definition.run.max_turns = Some(50);
    definition
}

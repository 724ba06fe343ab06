//! An agent that writes tests and runs them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LOOKING;
use crate::definition::{AgentDefinition, InputConfig, InputType, ToolConfig};

/// What became of the tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestReport {
    /// What was tested, and how it went.
    pub summary: String,
    /// The files with tests that were written or changed.
    pub test_files: Vec<TestFile>,
    /// The command that runs them.
    pub command: String,
    /// Whether all of them passed when they were last run.
    pub all_pass: bool,
    /// Mistakes of the code that the tests found.
    pub bugs_found: Vec<FoundBug>,
    /// What was left out, and why.
    pub not_covered: Vec<String>,
}

/// A file with tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestFile {
    /// The file, from the root of the project.
    pub path: String,
    /// The behaviours that it covers.
    pub covers: Vec<String>,
}

/// A mistake of the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundBug {
    /// The file and the function it is in.
    pub location: String,
    /// What was done, what happened, and what should have.
    pub description: String,
    /// The test that shows it.
    pub test: String,
}

/// Returns the agent: it writes tests in the style of the project, and runs them.
pub fn test_generator() -> AgentDefinition<TestReport> {
    let mut definition = AgentDefinition::new(
        "test_generator",
        "Writes tests for existing code in the project's own style, runs them, and reports what they \
         cover and which bugs they found. It does not change the code under test.",
    )
    .returning("report", "What became of the tests.");
    definition.display_name = Some("Test generator".to_owned());
    definition.input = InputConfig::none()
        .required(
            "target",
            InputType::String,
            "What to test: files, functions or a feature, and what matters about it.",
        )
        .optional(
            "framework",
            InputType::String,
            "The test framework to use; the project's own, where nothing is said.",
        );
    definition.prompt.system_prompt =
        Some(include_str!("../../prompts/agents/test_generator.md").trim_end().to_owned());
    definition.prompt.query = Some(
        "Write tests for this target, and run them.\n\n<target>\n${target}\n</target>\n\nThe framework \
         that was asked for, if any: ${framework}"
            .to_owned(),
    );
    definition.tools =
        ToolConfig::only(LOOKING.into_iter().chain(["edit_file", "run_command", "write_file"]));
    definition.run.max_time = Some(Duration::from_mins(20));
    definition.run.max_turns = Some(60);
    definition
}

//! The agents that come with the crate.
//!
//! They are ordinary definitions, and examples of how one is written: the instructions are a text file, the
//! tools are few and named, what comes out is a type. Settings can change each of them or switch it off.

mod codebase_investigator;
mod document_generator;
mod generalist;
mod test_generator;

use crate::definition::AgentDefinition;

pub use codebase_investigator::{InvestigationReport, RelevantLocation, codebase_investigator};
pub use document_generator::{DocumentReport, DocumentedFile, document_generator};
pub use generalist::generalist;
pub use test_generator::{FoundBug, TestFile, TestReport, test_generator};

/// Returns all of them, sorted by name.
pub fn all() -> Vec<AgentDefinition> {
    vec![
        codebase_investigator().untyped(),
        document_generator().untyped(),
        generalist(),
        test_generator().untyped(),
    ]
}

/// The tools that look and change nothing.
const LOOKING: [&str; 4] = ["glob", "grep", "ls", "read_file"];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use convoke_core::Mode;
    use serde_json::{Value, json};

    use super::*;
    use crate::check::check;
    use crate::definition::ToolChoice;

    /// What is built in, so that a prompt that names a tool can be told from one that names a key.
    const TOOLS: [&str; 14] = [
        "delete_file",
        "edit_file",
        "glob",
        "grep",
        "http_get",
        "http_post",
        "http_request",
        "list_files",
        "ls",
        "move_file",
        "read_file",
        "run_command",
        "web_search",
        "write_file",
    ];

    fn quoted(text: &str) -> BTreeSet<&str> {
        text.split('`').skip(1).step_by(2).collect()
    }

    #[test]
    fn every_shipped_agent_holds_together() {
        let mut names = Vec::new();
        for definition in all() {
            assert_eq!(check(&definition).err(), None, "{}", definition.name);
            assert!(definition.run.max_time.is_some() && definition.run.max_turns.is_some());
            assert!(definition.display_name.is_some());
            names.push(definition.name);
        }
        let expected =
            ["codebase_investigator", "document_generator", "generalist", "test_generator"];
        assert_eq!(names, expected);
    }

    /// A prompt once offered a tool that the agent did not have: every use of it was refused.
    /// gemini-cli 4.17.
    #[test]
    fn pitfall_4_17_prompts_name_exactly_the_tools_there_are() {
        for definition in all() {
            let prompt = definition.prompt.system_prompt.as_deref().unwrap();
            let words = quoted(prompt);
            let named: BTreeSet<&str> =
                TOOLS.into_iter().filter(|tool| words.contains(tool)).collect();
            let allow = definition.tools.allow.as_deref().unwrap_or_default();
            let has: BTreeSet<&str> = allow.iter().map(ToolChoice::name).collect();
            assert_eq!(named, has, "{}", definition.name);
            assert!(words.contains("complete_task"), "{}", definition.name);
            let lines = prompt.lines().count();
            assert!((15..=40).contains(&lines), "{} has {lines} lines", definition.name);
        }
    }

    #[test]
    fn prompts_name_what_has_to_come_out() {
        for definition in all() {
            let prompt = definition.prompt.system_prompt.as_deref().unwrap();
            let Some(output) = &definition.output else { continue };
            let properties = output.schema.get("properties").and_then(Value::as_object).unwrap();
            for key in properties.keys().chain([&output.name]) {
                assert!(quoted(prompt).contains(key.as_str()), "{}: {key}", definition.name);
            }
        }
    }

    #[test]
    fn r221_the_investigator_only_looks_and_reports() {
        let definition = codebase_investigator();
        let tools = definition.tools.allow.clone().unwrap_or_default();
        assert_eq!(tools.iter().map(ToolChoice::name).collect::<Vec<_>>(), LOOKING);
        assert_eq!(definition.policy.mode, Some(Mode::Plan));
        assert_eq!(definition.input.names(), [("objective".to_owned(), true)]);
        assert_eq!(definition.output.as_ref().unwrap().name, "report");
        let query = definition.prompt.query.unwrap();
        assert!(query.contains("${objective}"), "{query}");
    }

    #[test]
    fn g23_the_report_of_the_investigator_is_a_type() {
        let definition = codebase_investigator();
        let report = json!({
            "summary": "It is in one place.",
            "exploration_trace": ["Searched for login."],
            "relevant_locations": [
                { "file_path": "src/auth.rs", "reasoning": "It checks.", "key_symbols": ["check"] },
            ],
        });
        let output = definition.output.as_ref().unwrap();
        assert!(jsonschema::is_valid(&output.schema, &report));
        let read: InvestigationReport = serde_json::from_value(report.clone()).unwrap();
        assert_eq!(read.relevant_locations[0].key_symbols, ["check"]);
        assert!(!jsonschema::is_valid(&output.schema, &json!({ "summary": "Nothing." })));
        let text = definition.process_output.unwrap().apply(&report).unwrap();
        assert!(text.contains("src/auth.rs") && text.contains("It is in one place."), "{text}");
    }
}

//! An agent for any task that can be handed over whole.

use std::time::Duration;

use crate::definition::AgentDefinition;

/// Returns the agent: it has the tools of its caller, and starts with nothing but the task.
pub fn generalist() -> AgentDefinition {
    let mut definition = AgentDefinition::new(
        "generalist",
        "Takes over any task that can be described in full and brought back finished: changes across many \
         files, long searches, anything with much output that the caller need not see. It has the \
         caller's tools and none of its conversation.",
    );
    definition.display_name = Some("Generalist".to_owned());
    definition.prompt.system_prompt =
        Some(include_str!("../../prompts/agents/generalist.md").trim_end().to_owned());
    definition.run.max_time = Some(Duration::from_mins(20));
    definition.run.max_turns = Some(60);
    definition
}

//! Reads what a model wrote when it was asked to plan or to look back.

use convoke_core::event::{PlanStep, Reflection, Verdict};
use serde::Deserialize;

use crate::completion::json_in;

#[derive(Deserialize)]
struct Plan {
    steps: Vec<PlanStep>,
}

/// Reads a plan; what is none is no plan, which stops nothing.
pub(crate) fn read_plan(words: &str) -> Vec<PlanStep> {
    let plan = json_in(words).and_then(|json| serde_json::from_value::<Plan>(json).ok());
    plan.map(|plan| plan.steps).unwrap_or_default()
}

/// Reads a look back; what is none means to go on.
pub(crate) fn read_reflection(words: &str) -> Reflection {
    let read = json_in(words).and_then(|json| serde_json::from_value(json).ok());
    read.unwrap_or_else(|| Reflection {
        verdict: Verdict::Continue,
        assessment: "the model did not answer in the form it was asked for".to_owned(),
        lessons: Vec::new(),
        next_focus: None,
        tool_failures: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_stops_nothing() {
        let read = read_reflection(
            r#"```json
            {"verdict": "replan", "assessment": "no such file", "lessons": ["look first"],
             "toolFailures": [{"toolName": "read_file", "error": "not found"}]}
            ```"#,
        );
        assert_eq!(read.verdict, Verdict::Replan);
        assert_eq!(read.tool_failures[0].tool_name, "read_file");
        assert_eq!(read_reflection("I am fine.").verdict, Verdict::Continue);
        let steps =
            read_plan(r#"{"steps": [{"id": "look", "actionType": "tool_call", "tool": "ls"}]}"#);
        assert_eq!(steps[0].id, "look");
        assert!(read_plan("First, I will look.").is_empty());
    }
}

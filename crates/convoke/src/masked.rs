//! A result without the secrets in it: what is shown or handed on may end in a log, or before a model.

use convoke_core::{CallOutcome, Part, Secrets, ToolResult};

/// Stands for what cannot be told without a secret.
const UNTOLD: &str = "it cannot be shown: a secret is part of it";

/// Puts names in the place of secrets everywhere in a result.
pub fn masked(result: ToolResult, secrets: &Secrets) -> ToolResult {
    let hidden = serde_json::to_value(&result).map(|value| secrets.hide_in_value(value));
    hidden.and_then(serde_json::from_value).unwrap_or_else(|_| untold(result))
}

/// Leaves of a result only how it ended.
fn untold(result: ToolResult) -> ToolResult {
    let outcome = match result.outcome {
        CallOutcome::Completed(_) => CallOutcome::Completed(UNTOLD.into()),
        CallOutcome::Failed { mut error, .. } => {
            UNTOLD.clone_into(&mut error.message);
            error.details = None;
            error.causes.clear();
            CallOutcome::Failed { error, partial: None }
        }
    };
    ToolResult {
        outcome,
        llm_content: vec![Part::text(UNTOLD)],
        return_display: None,
        artifacts: Vec::new(),
        ..result
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use convoke_core::{CallId, Display, DisplayFormat, Timestamp, ToolError};
    use serde_json::json;

    use super::*;

    const SECRET: &str = "correct-horse-7-battery";

    fn result(outcome: CallOutcome, started_at: Timestamp) -> ToolResult {
        ToolResult {
            tool_name: "t".into(),
            call: CallId::new("call-1"),
            outcome,
            llm_content: vec![Part::text(format!("it is {SECRET}"))],
            return_display: Some(Display { format: DisplayFormat::Text, text: SECRET.into() }),
            started_at,
            completed_at: started_at,
            duration: Duration::ZERO.into(),
            truncated: None,
            artifacts: Vec::new(),
        }
    }

    #[test]
    fn no_part_of_a_result_shows_a_secret() {
        let secrets = Secrets::new([("PASSPHRASE", SECRET)]);
        let error = ToolError::failed(format!("{SECRET} is wrong"))
            .with_details(json!({ SECRET: [SECRET] }));
        let partial = Some(json!(SECRET));
        for outcome in
            [CallOutcome::Completed(json!([SECRET])), CallOutcome::Failed { error, partial }]
        {
            let masked = masked(result(outcome, Timestamp::default()), &secrets);
            let text = serde_json::to_string(&masked).unwrap();
            assert!(!text.contains(SECRET), "{text}");
            assert!(text.contains("it is [secret PASSPHRASE]"), "{text}");
        }
    }

    #[test]
    fn what_is_no_result_without_its_secret_is_not_shown() {
        // A moment that is a secret cannot be replaced by a name.
        let secrets = Secrets::new([("PIN", "1772357400123"), ("PASSPHRASE", SECRET)]);
        let moment = Timestamp::from_millis(1_772_357_400_123);
        let outcome = CallOutcome::Completed(json!([SECRET]));
        let masked = masked(result(outcome, moment), &secrets);
        let text = serde_json::to_string(&masked).unwrap();
        assert!(!text.contains(SECRET) && text.contains(UNTOLD), "{text}");
    }
}

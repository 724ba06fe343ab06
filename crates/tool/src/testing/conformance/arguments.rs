//! Checks of arguments that do not fit, and of one that looks as if it did not.

use convoke_core::{ErrorKind, ToolResult};
use serde_json::{Value, json};

use super::check::Check;
use super::report::Findings;
use super::subject::Subject;

const TEN_MEGABYTES: usize = 10 * 1024 * 1024;
const THOUSAND_LEVELS: usize = 1000;
/// A refusal that is longer repeats what it refuses.
const FEW_WORDS: usize = 4 * 1024;
const UNKNOWN: &str = "conformance_unknown_argument";

/// Makes all checks of arguments.
pub(super) async fn check(subject: &mut Subject, findings: &mut Findings) {
    null_optional(subject, findings);
    unknown_argument(subject, findings).await;
    missing_arguments(subject, findings).await;
    wrong_types(subject, findings).await;
    large_arguments(subject, findings).await;
    deep_arguments(subject, findings).await;
}

fn null_optional(subject: &mut Subject, findings: &mut Findings) {
    let required = subject.required();
    for name in subject.parameters().keys().filter(|name| !required.contains(*name)) {
        let arguments = subject.with(name, Value::Null);
        if let Some(refused) = subject.prepare_and_drop(arguments) {
            findings.add(Check::NullOptional, format!("`{name}`: {}", refused.text()));
        }
    }
}

async fn unknown_argument(subject: &mut Subject, findings: &mut Findings) {
    let result = subject.call(subject.with(UNKNOWN, Value::Bool(true))).await;
    findings.note(Check::UnknownArgument, result.and_then(|result| not_refused(&result, UNKNOWN)));
}

async fn missing_arguments(subject: &mut Subject, findings: &mut Findings) {
    for name in subject.required() {
        let result = subject.call(Value::Object(subject.without(&name))).await;
        findings
            .note(Check::MissingArgument, result.and_then(|result| not_refused(&result, &name)));
    }
}

async fn wrong_types(subject: &mut Subject, findings: &mut Findings) {
    for name in subject.parameters().keys() {
        let Some(arguments) = wrongly_typed(subject, name) else { continue };
        let result = subject.call(arguments).await;
        findings.note(Check::WrongType, result.and_then(|result| not_refused(&result, name)));
    }
}

/// Returns an example with a value of a type that the parameter does not take. There is none for a
/// parameter that takes everything.
fn wrongly_typed(subject: &Subject, name: &str) -> Option<Value> {
    let schema = jsonschema::validator_for(&subject.spec.parameters).ok()?;
    let values = [json!(0.5), json!(true), json!("text"), json!([[[]]]), json!({ "a": {} })];
    let examples = values.into_iter().map(|value| subject.with(name, value));
    examples.into_iter().find(|example| !schema.is_valid(example))
}

async fn large_arguments(subject: &mut Subject, findings: &mut Findings) {
    let name = first_text_parameter(subject).unwrap_or_else(|| UNKNOWN.to_owned());
    let result = subject.call(subject.with(&name, "x".repeat(TEN_MEGABYTES).into())).await;
    findings.note(Check::LargeArguments, result.and_then(|result| not_briefly_refused(&result)));
}

async fn deep_arguments(subject: &mut Subject, findings: &mut Findings) {
    let name = subject.parameters().keys().next().cloned().unwrap_or_else(|| UNKNOWN.to_owned());
    let deep = (0..THOUSAND_LEVELS).fold(Value::Null, |inner, _| json!([inner]));
    let result = subject.call(subject.with(&name, deep)).await;
    findings.note(Check::DeepArguments, result.and_then(|result| not_briefly_refused(&result)));
}

fn first_text_parameter(subject: &Subject) -> Option<String> {
    let is_text = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "string");
    subject.parameters().iter().find(|(_, schema)| is_text(schema)).map(|(name, _)| name.clone())
}

/// Says how a result is something other than a refusal as `validation` that names an argument.
fn not_refused(result: &ToolResult, name: &str) -> Option<String> {
    not_validation(result).map(|how| format!("`{name}`: {how}")).or_else(|| {
        let message = &result.error()?.message;
        let named = [format!("`{name}`"), format!("`{name}.")];
        let names_it = named.iter().any(|name| message.contains(name));
        (!names_it).then(|| format!("the refusal does not name `{name}`: {message}"))
    })
}

/// Says how a result is something other than a refusal as `validation` in few words.
fn not_briefly_refused(result: &ToolResult) -> Option<String> {
    not_validation(result).or_else(|| {
        let length = result.text().len();
        (length > FEW_WORDS).then(|| format!("the refusal is {length} bytes long"))
    })
}

fn not_validation(result: &ToolResult) -> Option<String> {
    match result.error() {
        Some(error) if error.kind == ErrorKind::Validation => None,
        Some(error) => Some(format!("it was refused as `{}`: {}", error.kind, error.message)),
        None => Some("it was accepted".to_owned()),
    }
}

#[cfg(test)]
pub(super) mod judges {
    //! The judges alone, on results that no tool can bring about through this pipeline.

    use convoke_core::{CallId, CallOutcome, Millis, Part, Timestamp, ToolError};

    use super::*;

    pub(in super::super) fn result_of(outcome: CallOutcome) -> ToolResult {
        let text = match &outcome {
            CallOutcome::Completed(value) => value.to_string(),
            CallOutcome::Failed { error, .. } => error.message.clone(),
        };
        ToolResult {
            tool_name: "t".into(),
            call: CallId::new("c"),
            outcome,
            llm_content: vec![Part::text(text)],
            return_display: None,
            started_at: Timestamp::default(),
            completed_at: Timestamp::default(),
            duration: Millis::default(),
            truncated: None,
            artifacts: Vec::new(),
        }
    }

    fn refused(error: ToolError) -> ToolResult {
        result_of(CallOutcome::Failed { error, partial: None })
    }

    #[test]
    fn only_a_refusal_that_names_the_argument_will_do() {
        let accepted = result_of(CallOutcome::Completed(Value::Null));
        for (result, says) in [
            (accepted, Some("`path`: it was accepted")),
            (refused(ToolError::failed("`path`")), Some("`path`: it was refused as `failed`")),
            (refused(ToolError::validation(["no"])), Some("does not name `path`")),
            (refused(ToolError::validation(["`paths`"])), Some("does not name `path`")),
            (refused(ToolError::validation(["`path` is missing"])), None),
            (refused(ToolError::validation(["`path.0` is wrong"])), None),
        ] {
            let said = not_refused(&result, "path");
            assert_eq!(said.is_some(), says.is_some(), "{said:?}");
            assert!(said.unwrap_or_default().contains(says.unwrap_or_default()), "{says:?}");
        }
    }

    #[test]
    fn only_a_short_refusal_will_do() {
        let long = refused(ToolError::validation(["x".repeat(FEW_WORDS)]));
        assert!(not_briefly_refused(&long).unwrap().contains("bytes long"));
        assert_eq!(not_briefly_refused(&refused(ToolError::validation(["too deep"]))), None);
        let accepted = result_of(CallOutcome::Completed(Value::Null));
        assert_eq!(not_briefly_refused(&accepted).as_deref(), Some("it was accepted"));
    }
}

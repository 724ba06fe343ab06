//! Checks of calls that work, and of what holds for every call that was made.

use convoke_core::{CallId, ErrorKind, Event, EventBody, ToolResult};
use jsonschema::Validator;
use serde_json::Value;

use super::check::Check;
use super::report::Findings;
use super::snapshot::Snapshot;
use super::subject::Subject;

/// Makes the calls that work, then looks back at all calls.
pub(super) async fn check(subject: &mut Subject, findings: &mut Findings) {
    cancelled_before_start(subject, findings).await;
    valid_examples(subject, findings).await;

    for result in &subject.results {
        findings.note(Check::ResultRoundTrip, changed_by_round_trip(result));
    }
    let events = subject.events.all();
    for call in &subject.calls {
        findings.note(Check::Events, wrong_events(call, events.iter().map(AsRef::as_ref)));
    }
    for escape in subject.escapes.drain(..) {
        findings.add(Check::Contained, escape);
    }
}

/// Prepares every example. Has to come before any other call, which might have left its trace already.
pub(super) async fn check_preparing(subject: &mut Subject, findings: &mut Findings) {
    for example in subject.examples.clone() {
        let before = Snapshot::take(subject.context.roots());
        // Whether the example is valid is for another check.
        drop(subject.prepare_and_drop(example));
        // Whatever was set off behind the back of the call gets its turn.
        tokio::task::yield_now().await;
        let changes = before.changes(&Snapshot::take(subject.context.roots()));
        if !changes.is_empty() {
            findings.add(Check::PrepareChangesNothing, changes.join(", "));
        }
    }
}

async fn cancelled_before_start(subject: &mut Subject, findings: &mut Findings) {
    let Some(example) = subject.examples.first().cloned() else { return };
    let result = subject.call_stopped(example).await;
    findings.note(Check::CancelledBeforeStart, result.and_then(|result| not_cancelled(&result)));
}

async fn valid_examples(subject: &mut Subject, findings: &mut Findings) {
    let schema =
        subject.spec.output.as_ref().and_then(|schema| jsonschema::validator_for(schema).ok());
    for example in subject.examples.clone() {
        let Some(result) = subject.call(example.clone()).await else { continue };
        match result.value() {
            None => findings.add(Check::ValidExamples, format!("{example}: {}", result.text())),
            Some(value) => {
                let misfit = schema.as_ref().and_then(|schema| misfit(schema, value));
                findings.note(
                    Check::ValueFitsSchema,
                    misfit.map(|how| format!("the value for {example}: {how}")),
                );
            }
        }
    }
}

fn misfit(schema: &Validator, value: &Value) -> Option<String> {
    let error = schema.iter_errors(value).next()?;
    let place = error.instance_path().as_str();
    Some(if place.is_empty() { error.to_string() } else { format!("at `{place}`: {error}") })
}

/// Says how a result is something other than `cancelled`.
fn not_cancelled(result: &ToolResult) -> Option<String> {
    match result.error() {
        Some(error) if error.kind == ErrorKind::Cancelled => None,
        Some(error) => Some(format!("it ended as `{}`: {}", error.kind, error.message)),
        None => Some("it ran".to_owned()),
    }
}

/// Says how a result changes when it is written and read. Times are compared as they are written.
fn changed_by_round_trip(result: &ToolResult) -> Option<String> {
    let again = |text: &str| -> serde_json::Result<String> {
        serde_json::to_string(&serde_json::from_str::<ToolResult>(text)?)
    };
    let written = match serde_json::to_string(result) {
        Ok(written) => written,
        Err(error) => return Some(format!("it cannot be written: {error}")),
    };
    match again(&written) {
        Ok(same) if same == written => None,
        Ok(other) => Some(format!("{written} becomes {other}")),
        Err(error) => Some(format!("{written} cannot be read: {error}")),
    }
}

/// Says what is wrong with the events of one call.
fn wrong_events<'a>(
    call: &CallId,
    events: impl Iterator<Item = &'a Event> + Clone,
) -> Option<String> {
    let own = events.filter(|event| event.call.as_ref() == Some(call));
    let places = |matches: fn(&EventBody) -> bool| -> Vec<usize> {
        let numbered = own.clone().enumerate();
        numbered.filter(|(_, event)| matches(&event.body)).map(|(place, _)| place).collect()
    };
    let requests = places(|body| matches!(body, EventBody::ToolCallRequested { .. }));
    let ends = places(EventBody::ends_call);
    match (requests.as_slice(), ends.as_slice()) {
        ([request], [end]) if request < end && *end + 1 == own.count() => None,
        ([_], [_]) => Some(format!("call `{call}` goes on after its end")),
        (requests, ends) => {
            Some(format!("call `{call}` has {} requests and {} ends", requests.len(), ends.len()))
        }
    }
}

#[cfg(test)]
mod judges {
    //! The judges alone, on what no tool can bring about through this pipeline.

    use std::sync::Arc;

    use convoke_core::{CallOutcome, ToolError};
    use serde_json::json;

    use super::super::arguments::judges::result_of;
    use super::*;
    use crate::clock::ManualClock;
    use crate::testing::CollectedEvents;

    #[test]
    fn only_cancelled_will_do() {
        let failed = |error| result_of(CallOutcome::Failed { error, partial: None });
        assert_eq!(not_cancelled(&failed(ToolError::cancelled("stop"))), None);
        let other = not_cancelled(&failed(ToolError::failed("oh"))).unwrap();
        assert_eq!(other, "it ended as `failed`: oh");
        let ran = not_cancelled(&result_of(CallOutcome::Completed(json!(1)))).unwrap();
        assert_eq!(ran, "it ran");
    }

    #[test]
    fn only_one_request_and_then_one_end_will_do() {
        let requested = || EventBody::ToolCallRequested {
            tool_name: "t".into(),
            params: Arc::new(Value::Null),
        };
        let completed = || EventBody::ToolCallCompleted {
            tool_name: "t".into(),
            result: Arc::new(Value::Null),
            content: Vec::new(),
            display: None,
            duration_ms: convoke_core::Millis::default(),
            files: Vec::new(),
        };
        let judge = |script: &str| {
            let (events, call) = (CollectedEvents::default(), CallId::new("c"));
            let recorder = events.recorder(Arc::new(ManualClock::default()));
            for letter in script.chars() {
                let body = if letter == 'r' { requested() } else { completed() };
                recorder.record(Some(&call), body).unwrap();
            }
            recorder.record(None, completed()).unwrap();
            wrong_events(&call, events.all().iter().map(AsRef::as_ref))
        };
        assert_eq!(judge("re"), None);
        for (script, says) in [
            ("", "0 requests and 0 ends"),
            ("r", "1 requests and 0 ends"),
            ("ree", "1 requests and 2 ends"),
            ("rre", "2 requests and 1 ends"),
            ("er", "goes on after its end"),
        ] {
            let said = judge(script).unwrap();
            assert!(said.contains(says), "{said}");
        }
    }
}

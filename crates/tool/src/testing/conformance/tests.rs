//! The suite, tried on a tool that keeps every promise and on tools that each break one.

mod pretender;

use std::collections::BTreeSet;

use convoke_core::{EffectRules, Effects, Kind, Repeat, ToolError};
use serde_json::json;

use self::pretender::{Act, Pretender};
use super::*;
use crate::testing::TempWorkspace;

/// A tool and the checks it has to fail.
type Bad = (&'static [Check], fn(&mut Pretender));

async fn report_on(tool: Pretender) -> Report {
    Conformance::new(tool)
        .valid(json!({ "path": "a.txt", "limit": 3 }))
        .valid(json!({ "file": "a.txt", "tags": ["x"] }))
        .run()
        .await
}

async fn assert_fails_exactly(bad: &[Bad]) {
    for (expected, spoil) in bad {
        let mut tool = Pretender::good();
        spoil(&mut tool);
        let report = report_on(tool).await;
        let expected: BTreeSet<Check> = expected.iter().copied().collect();
        assert_eq!(report.failed(), expected, "{report}");
    }
}

#[tokio::test]
async fn a_good_tool_passes() {
    let report = report_on(Pretender::good()).await;
    report.assert();
    assert_eq!(report.to_string(), "tool `pretend` keeps its promises");
}

#[tokio::test]
async fn what_a_tool_says_about_itself_is_checked() {
    assert_fails_exactly(&[
        (&[Check::Name], |tool| tool.says().name = "not a name".into()),
        (&[Check::Description], |tool| tool.says().description = " ".into()),
        (&[Check::Description], |tool| tool.says().description = "Reads a file, e.g".into()),
        (&[Check::Parameters], |tool| {
            tool.says().parameters.edit(|it| it["type"] = json!("string"));
        }),
        (&[Check::Parameters], |tool| {
            tool.says()
                .parameters
                .edit(|it| it["properties"]["limit"]["type"] = json!("number of lines"));
        }),
        (&[Check::ParameterDescriptions], |tool| {
            tool.says()
                .parameters
                .edit(|it| it["properties"]["limit"] = json!({ "type": "integer" }));
        }),
        (&[Check::Output], |tool| tool.says().output = Some(json!({ "type": "lines" }).into())),
        (&[Check::Aliases], |tool| {
            tool.says().aliases.insert("lines".into(), "length".into());
        }),
        (&[Check::EffectRules], |tool| tool.says().effects.writes.push("target".into())),
        (&[Check::Repeat], |tool| tool.says().repeat = Repeat::Unsafe),
        (&[Check::StableSpec], |tool| {
            let mut other = tool.says().clone();
            other.description = "Reads another file.".into();
            tool.says_also(other);
        }),
    ])
    .await;
}

#[tokio::test]
async fn a_required_parameter_has_to_be_one() {
    let mut tool = Pretender::good();
    tool.says().parameters.edit(|it| it["required"] = json!(["path", "ghost"]));
    tool.says().parameters.edit(|it| it["patternProperties"] = json!({ "^ghost$": {} }));
    let report = Conformance::new(tool).valid(json!({ "path": "a.txt", "ghost": 1 })).run().await;
    assert_eq!(report.failed(), BTreeSet::from([Check::Required]), "{report}");
}

#[tokio::test]
async fn arguments_are_checked() {
    assert_fails_exactly(&[
        (&[Check::UnknownArgument], |tool| {
            tool.says().parameters.edit(|it| it["additionalProperties"] = json!(true));
        }),
        // The rule stands where a refusal cannot tell which argument breaks it.
        (&[Check::WrongType], |tool| {
            tool.says().parameters.edit(|it| {
                let limit = it["properties"]["limit"].take();
                it["properties"]["limit"] = json!({ "description": "How many." });
                it["anyOf"] = json!([{ "properties": { "limit": limit } }]);
            });
        }),
        (&[Check::NullOptional], |tool| {
            tool.acts(|arguments| {
                if arguments.get("limit").is_none() && arguments.get("tags").is_none() {
                    return Err(ToolError::validation(["`limit` or `tags` is needed"]));
                }
                Ok(Act::good())
            });
        }),
    ])
    .await;
}

/// The other spelling takes the place of what is missing.
#[tokio::test]
async fn a_missing_argument_has_to_be_noticed() {
    let mut tool = Pretender::good();
    let label = json!({ "type": "string", "description": "A label." });
    tool.says().parameters.edit(|it| it["properties"]["label"] = label);
    tool.says().aliases.insert("label".into(), "path".into());
    let suite = Conformance::new(tool).valid(json!({ "path": "a.txt", "label": "b" }));
    let report = suite.run().await;
    let expected = BTreeSet::from([Check::Aliases, Check::MissingArgument]);
    assert_eq!(report.failed(), expected, "{report}");
}

#[tokio::test]
async fn large_arguments_are_checked() {
    let mut tool = Pretender::good();
    tool.says().effects = EffectRules::default();
    let limits = Limits { max_argument_bytes: usize::MAX, ..Limits::default() };
    let report =
        Conformance::new(tool).valid(json!({ "path": "a.txt" })).limits(limits).run().await;
    assert_eq!(report.failed(), BTreeSet::from([Check::LargeArguments]), "{report}");
}

#[tokio::test]
async fn paths_are_checked() {
    assert_fails_exactly(&[
        (&[Check::NulInPath], |tool| {
            tool.acts(|arguments| {
                let hides = arguments["path"].as_str().is_some_and(|path| path.contains('\0'));
                Ok(Act { effects: hides.then_some(Effects::NONE), ..Act::good() })
            });
        }),
        (&[Check::PathOutside], |tool| {
            tool.acts(|arguments| {
                let hides = arguments["path"].as_str().is_some_and(|path| path.contains("outside"));
                Ok(Act { effects: hides.then_some(Effects::NONE), ..Act::good() })
            });
        }),
        (&[Check::PathOutside], |tool| {
            tool.acts(|arguments| match arguments["path"].as_str() {
                Some(path) if path.contains("outside") => Err(ToolError::permission("no")),
                _ => Ok(Act::good()),
            });
        }),
    ])
    .await;
}

#[tokio::test]
async fn calls_are_checked() {
    assert_fails_exactly(&[
        (&[Check::ValidExamples], |tool| {
            tool.acts(|_| Ok(Act { answer: Err(ToolError::failed("oh")), ..Act::good() }));
        }),
        (&[Check::ValueFitsSchema], |tool| {
            tool.acts(|_| Ok(Act { answer: Ok(json!({ "length": "long" })), ..Act::good() }));
        }),
        (&[Check::ResultRoundTrip], |tool| {
            tool.acts(|arguments| match arguments["path"].as_str() {
                Some(path) if path.contains('\0') => {
                    Err(ToolError { details: Some(Value::Null), ..ToolError::validation(["no"]) })
                }
                _ => Ok(Act::good()),
            });
        }),
    ])
    .await;
}

/// The pipeline contains it, so the suite has nothing to say.
#[tokio::test]
async fn a_call_that_panics_when_it_is_given_up_is_contained() {
    let mut tool = Pretender::good();
    tool.acts(|_| Ok(Act { panics_when_given_up: true, ..Act::good() }));
    let report = report_on(tool).await;
    assert!(!report.failed().contains(&Check::Contained), "{report}");
    assert!(!report.failed().contains(&Check::Events), "{report}");
}

#[tokio::test]
async fn a_tool_that_panics_when_it_is_prepared_does_not_end_the_suite() {
    let mut tool = Pretender::good();
    tool.acts(|_| panic!("no"));
    assert!(!report_on(tool).await.passed());
}

#[tokio::test]
async fn preparing_must_not_change_anything() {
    let workspace = TempWorkspace::new().unwrap();
    let mut tool = Pretender::good();
    let inside = workspace.clone();
    tool.acts(move |_| {
        inside.write("trace", "was here").unwrap();
        Ok(Act::good())
    });
    let suite = Conformance::new(tool).valid(json!({ "path": "a.txt" }));
    let report = suite.in_context(workspace.context()).run().await;
    assert_eq!(report.failed(), BTreeSet::from([Check::PrepareChangesNothing]), "{report}");
    assert!(report.to_string().contains("trace"), "{report}");
}

#[tokio::test]
async fn a_tool_with_arguments_needs_an_example() {
    let report = Conformance::new(Pretender::good()).run().await;
    assert_eq!(report.failed(), BTreeSet::from([Check::Setup]));
    assert!(report.to_string().contains("no calls were made"), "{report}");
}

#[tokio::test]
async fn what_is_excused_is_said() {
    let mut tool = Pretender::good();
    tool.says().kind = Kind::Think;
    tool.says().repeat = Repeat::Unsafe;
    let suite = Conformance::new(tool).valid(json!({ "path": "a.txt" }));
    let report = suite.excuse(Check::Repeat, "it rolls dice").run().await;
    report.assert();
    assert!(report.to_string().contains("(repeat was left out: it rolls dice)"), "{report}");
}

#[tokio::test]
#[should_panic(expected = "tool `pretend` fails 1 of")]
async fn a_report_with_findings_ends_the_test() {
    let mut tool = Pretender::good();
    tool.says().description.clear();
    report_on(tool).await.assert();
}

#[test]
fn every_check_has_a_name_of_its_own() {
    let names: BTreeSet<&str> = Check::ALL.iter().map(|check| check.as_str()).collect();
    assert_eq!(names.len(), Check::ALL.len());
}

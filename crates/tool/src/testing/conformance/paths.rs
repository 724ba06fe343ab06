//! Checks of paths that no tool may touch.
//!
//! Only the arguments that the effect rules name are known to be paths; a tool that names none is not
//! asked. The path outside lies in a directory of the suite's own, so that a tool that fails the check
//! does no harm.

use std::path::Path;

use convoke_core::{ErrorKind, ToolResult};
use serde_json::{Value, json};

use super::check::Check;
use super::report::Findings;
use super::subject::Subject;
use crate::testing::TempWorkspace;

/// Makes all checks of paths.
pub(super) async fn check(subject: &mut Subject, findings: &mut Findings) {
    for name in path_parameters(subject) {
        nul_in_path(subject, &name, findings).await;
        path_outside(subject, &name, findings).await;
    }
}

fn path_parameters(subject: &Subject) -> Vec<String> {
    let (rules, parameters) = (&subject.spec.effects, subject.parameters());
    let mut names: Vec<String> = rules.reads.iter().chain(&rules.writes).cloned().collect();
    names.retain(|name| parameters.contains_key(name));
    names.sort_unstable();
    names.dedup();
    names
}

async fn nul_in_path(subject: &mut Subject, name: &str, findings: &mut Findings) {
    let result = subject.call(with_path(subject, name, "a\0b")).await;
    let found = result.and_then(|result| other_than(ErrorKind::Validation, "", &result));
    findings.note(Check::NulInPath, found.map(|how| format!("`{name}`: {how}")));
}

async fn path_outside(subject: &mut Subject, name: &str, findings: &mut Findings) {
    let elsewhere = match TempWorkspace::new() {
        Ok(elsewhere) => elsewhere,
        Err(error) => {
            return findings.add(Check::Setup, format!("there is no other directory: {error}"));
        }
    };
    let outside = elsewhere.path("outside.txt");
    if subject.context.roots().paths().any(|root| outside.starts_with(root)) {
        return findings.add(Check::Setup, "the roots hold the directory for temporary files");
    }
    let climbing = climb_to(&outside, subject.context.working_directory());
    for path in [outside.display().to_string(), climbing] {
        let result = subject.call(with_path(subject, name, &path)).await;
        let found =
            result.and_then(|result| other_than(ErrorKind::Permission, "Access denied", &result));
        findings.note(Check::PathOutside, found.map(|how| format!("`{name}` = `{path}`: {how}")));
    }
}

/// Spells an absolute path as a relative one.
fn climb_to(path: &Path, from: &Path) -> String {
    let up = "../".repeat(from.components().count());
    format!("{up}{}", path.display().to_string().trim_start_matches('/'))
}

/// Returns an example with this path, in a list if the parameter takes a list.
fn with_path(subject: &Subject, name: &str, path: &str) -> Value {
    let schema = subject.parameters().get(name).cloned().unwrap_or_default();
    let takes_list = schema.get("type").is_some_and(|kind| kind == "array");
    subject.with(name, if takes_list { json!([path]) } else { json!(path) })
}

/// Says how a result is something other than a refusal of this kind with these words.
fn other_than(kind: ErrorKind, words: &str, result: &ToolResult) -> Option<String> {
    match result.error() {
        None => Some("it was accepted".to_owned()),
        Some(error) if error.kind != kind => {
            Some(format!("it was refused as `{}`, not as `{kind}`: {}", error.kind, error.message))
        }
        Some(error) if !error.message.contains(words) => {
            Some(format!("the refusal does not say \"{words}\": {}", error.message))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn climbing_arrives_at_the_same_place() {
        let climbed = climb_to(Path::new("/x/y"), Path::new("/a/b"));
        assert_eq!(climbed, "../../../x/y");
    }
}

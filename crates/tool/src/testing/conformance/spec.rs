//! Checks of what a tool says about itself. No call is made.

use convoke_core::{Repeat, ToolSpec};
use serde_json::{Map, Value};

use super::check::Check;
use super::report::Findings;
use super::subject::Subject;
use crate::registry::{RegistryError, ToolRegistry};
use crate::tool::Tool;

/// Makes all checks of the spec.
pub(super) fn check(tool: &dyn Tool, findings: &mut Findings) {
    let spec = tool.spec();
    name(spec, findings);
    description(spec, findings);
    parameters(spec, findings);
    parameter_descriptions(spec, findings);
    required(spec, findings);
    output(spec, findings);
    aliases(spec, findings);
    effect_rules(spec, findings);
    repeat(spec, findings);
    stable(spec, tool.spec(), findings);
}

/// Compares with what the tool said at first.
pub(super) fn check_still_the_same(subject: &Subject, findings: &mut Findings) {
    if !findings.has(Check::StableSpec) {
        stable(&subject.spec, subject.tool.spec(), findings);
    }
}

fn name(spec: &ToolSpec, findings: &mut Findings) {
    if let Some(error @ RegistryError::InvalidName(_)) = registration_error(spec) {
        findings.add(Check::Name, error.to_string());
    }
}

fn description(spec: &ToolSpec, findings: &mut Findings) {
    // A sentence may end inside quotes, code or brackets.
    let text = spec.description.trim_end_matches(['"', '\'', '`', ')', ']', '*', '_', '”', '’']);
    if spec.description.trim().is_empty() {
        findings.add(Check::Description, "there is none");
    } else if !text.ends_with(['.', '!', '?', '…']) {
        let end: String = spec.description.chars().rev().take(30).collect();
        let end: String = end.chars().rev().collect();
        findings.add(Check::Description, format!("its end, {end:?}, does not end a sentence"));
    }
}

fn parameters(spec: &ToolSpec, findings: &mut Findings) {
    if let Some(error @ RegistryError::InvalidParameters(_)) = registration_error(spec) {
        findings.add(Check::Parameters, error.to_string());
    } else if let Err(error) = jsonschema::validator_for(&spec.parameters) {
        findings.add(Check::Parameters, format!("they are not a valid schema: {error}"));
    }
}

/// Asks a registry, which knows the rules.
fn registration_error(spec: &ToolSpec) -> Option<RegistryError> {
    ToolRegistry::new().register(OnlySpec(spec.clone())).err()
}

fn parameter_descriptions(spec: &ToolSpec, findings: &mut Findings) {
    for (name, schema) in properties(spec).into_iter().flatten() {
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        if description.trim().is_empty() {
            findings.add(Check::ParameterDescriptions, format!("`{name}` has none"));
        }
    }
}

fn required(spec: &ToolSpec, findings: &mut Findings) {
    let names = spec.parameters.get("required").and_then(Value::as_array);
    for name in names.into_iter().flatten().filter_map(Value::as_str) {
        if !is_parameter(spec, name) {
            findings.add(Check::Required, format!("`{name}` is required and not a parameter"));
        }
    }
}

fn output(spec: &ToolSpec, findings: &mut Findings) {
    let Some(schema) = &spec.output else { return };
    if let Err(error) = jsonschema::validator_for(schema) {
        findings.add(Check::Output, format!("it is not a valid schema: {error}"));
    }
}

fn aliases(spec: &ToolSpec, findings: &mut Findings) {
    for (alias, name) in &spec.aliases {
        if !is_parameter(spec, name) {
            let message = format!("`{alias}` stands for `{name}`, which is not a parameter");
            findings.add(Check::Aliases, message);
        }
        if is_parameter(spec, alias) {
            let message = format!("`{alias}` stands for `{name}` and is a parameter itself");
            findings.add(Check::Aliases, message);
        }
    }
}

fn effect_rules(spec: &ToolSpec, findings: &mut Findings) {
    let rules = &spec.effects;
    for name in rules.reads.iter().chain(&rules.writes).chain(&rules.urls) {
        if !is_parameter(spec, name) {
            findings.add(Check::EffectRules, format!("`{name}` is not a parameter"));
        }
    }
}

fn repeat(spec: &ToolSpec, findings: &mut Findings) {
    if spec.kind.only_looks() && spec.repeat == Repeat::Unsafe {
        let message = format!("a tool of kind `{}` is said to be unsafe to repeat", spec.kind);
        findings.add(Check::Repeat, message);
    }
}

fn stable(first: &ToolSpec, second: &ToolSpec, findings: &mut Findings) {
    match (serde_json::to_vec(first), serde_json::to_vec(second)) {
        (Ok(first), Ok(second)) if first == second => {}
        (Ok(_), Ok(_)) => findings.add(Check::StableSpec, "the spec is not always the same"),
        (Err(error), _) | (_, Err(error)) => {
            findings.add(Check::StableSpec, format!("it cannot be written as JSON: {error}"));
        }
    }
}

fn properties(spec: &ToolSpec) -> Option<&Map<String, Value>> {
    spec.parameters.get("properties")?.as_object()
}

fn is_parameter(spec: &ToolSpec, name: &str) -> bool {
    properties(spec).is_some_and(|properties| properties.contains_key(name))
}

/// A tool that is never called.
struct OnlySpec(ToolSpec);

impl Tool for OnlySpec {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn prepare(&self, _: Value) -> Result<Box<dyn crate::Invocation>, crate::ToolError> {
        Err(crate::ToolError::unavailable("this tool only has a spec"))
    }
}

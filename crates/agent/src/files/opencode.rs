//! Files of `OpenCode`.

mod permission;

use serde_json::Value;

use super::convoke::read_effort;
use super::directory::AgentFormat;
use super::field::Fields;
use super::foreign::Names;
use super::note::{Finding, Findings};
use super::read::{Context, Verdict};
use super::translate;
use super::yaml::{Body, Entry};
use crate::definition::AgentDefinition;
use crate::template::Template;

const KEYS: &[&str] = &[
    "name",
    "description",
    "mode",
    "model",
    "temperature",
    "top_p",
    "steps",
    "maxSteps",
    "tools",
    "permission",
    "prompt",
    "hidden",
    "color",
    "disable",
    "variant",
    "options",
    "reasoningEffort",
];

const UNUSED: &[(&str, &str)] = &[("color", ""), ("variant", ""), ("options", "")];

/// Reads the keys of a file.
pub(super) fn read(
    fields: &mut Fields,
    context: &Context<'_>,
    findings: &mut Findings,
) -> (Verdict, &'static [&'static str]) {
    if let Some(left) = left_out(fields, findings) {
        return (Verdict::Left(left), KEYS);
    }
    let names = Names::of(AgentFormat::OpenCode);
    let name = fields.text("name", findings).unwrap_or_else(|| context.place.to_owned());
    let mut definition = translate::start_as(name, fields, context, findings);
    read_prompt(&mut definition, fields, findings);
    let model = fields.text("model", findings);
    definition.model.model = model.and_then(|model| names.model(&model));
    let settings = &mut definition.model.settings;
    settings.temperature = fields.number("temperature", (0.0, 2.0), findings);
    settings.top_p = fields.number("top_p", (0.0, 1.0), findings);
    settings.reasoning_effort = read_effort("reasoning_effort", fields, findings);
    let steps = [fields.small("steps", findings), fields.small("max_steps", findings)];
    definition.run.max_turns = steps.into_iter().flatten().min();
    read_tools(&mut definition, fields, names, findings);
    if let Some(field) = fields.take("permission").or_else(|| fields.take("permissions")) {
        permission::read(&mut definition, &field, names, findings);
    }
    // Who may choose it is not for the one who delegates.
    fields.take("hidden");
    translate::leave(fields, UNUSED, findings);
    (Verdict::Agent(Box::new(definition)), KEYS)
}

/// Tells whether an agent is not to be used as a subagent.
fn left_out(fields: &mut Fields, findings: &mut Findings) -> Option<Finding> {
    for name in ["disable", "disabled"] {
        let line = fields.line(name);
        if fields.flag(name, findings) == Some(true) {
            return Some(Finding::at(line.unwrap_or(1), name, "it is switched off, and left out"));
        }
    }
    let line = fields.line("mode").unwrap_or(1);
    let modes = ["primary", "subagent", "all"];
    let mode =
        fields.word("mode", |word| modes.iter().position(|known| *known == word), &modes, findings);
    let message =
        "it is `primary`, not an agent to delegate to, and left out; write `mode: all` for both";
    (mode == Some(0)).then(|| Finding::at(line, "mode", message))
}

fn read_prompt(definition: &mut AgentDefinition, fields: &mut Fields, findings: &mut Findings) {
    let line = fields.line("prompt").unwrap_or(1);
    let Some(prompt) = fields.text("prompt", findings) else { return };
    if definition.prompt.system_prompt.is_some() {
        findings.warning(line, "prompt", "it is not used: the text below the keys is");
    } else if prompt.trim().starts_with("{file:") {
        let message = "other files are not read; write the instructions below the keys";
        findings.warning(line, "prompt", message);
    } else {
        definition.prompt.system_prompt = Some(Template::escape(prompt.trim_end()));
    }
}

/// Tools are switched on and off by name.
fn read_tools(
    definition: &mut AgentDefinition,
    fields: &mut Fields,
    names: &Names,
    findings: &mut Findings,
) {
    let Some(field) = fields.take("tools") else { return };
    let Body::Map(entries) = &field.node.body else {
        field.wrong::<()>("tools with `true` or `false`, such as `bash: false`", findings);
        return;
    };
    let switch = |entry: &Entry| match &entry.node.body {
        Body::Scalar(Value::Bool(on)) => Some(*on),
        _ => None,
    };
    for entry in entries.iter().filter(|entry| switch(entry).is_none()) {
        let message = format!("expected `true` or `false`, found {}", entry.node.shown());
        findings.problem(entry.line, &format!("{}.{}", field.key, entry.key), message);
    }
    let of = |wanted: bool| {
        let chosen = entries.iter().filter(move |entry| switch(entry) == Some(wanted));
        let named = chosen.filter(|entry| entry.key != "*");
        named.map(|entry| (entry.key.clone(), entry.line)).collect::<Vec<_>>()
    };
    let none_else = entries.iter().any(|entry| entry.key == "*" && switch(entry) == Some(false));
    if none_else {
        translate::grant(definition, &field.key, of(true), names, findings);
    } else {
        let on = of(true).into_iter().filter(|(name, _)| names.of_server(name).is_some());
        findings.switched_on.extend(on);
        // One that is off can be on again by a name of its own.
        translate::take_away(definition, &field.key, of(false), names, findings);
    }
}

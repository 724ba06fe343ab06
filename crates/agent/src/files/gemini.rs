//! Files of Gemini CLI.

use super::convoke::read_minutes;
use super::directory::AgentFormat;
use super::field::Fields;
use super::foreign::Names;
use super::note::Findings;
use super::read::{Context, Verdict};
use super::translate;
use crate::definition::InputConfig;

const KEYS: &[&str] = &[
    "kind",
    "name",
    "display_name",
    "description",
    "tools",
    "model",
    "temperature",
    "max_turns",
    "timeout_mins",
    "mcpServers",
];

const UNUSED: &[(&str, &str)] =
    &[("mcp_servers", ": servers are part of the configuration"), ("color", "")];

/// The keys of an agent that runs elsewhere; one of them is enough to know it.
const REMOTE: [&str; 3] = ["agent_card_url", "agent_card_json", "auth"];

/// Reads the keys of a file.
pub(super) fn read(
    fields: &mut Fields,
    context: &Context<'_>,
    findings: &mut Findings,
) -> (Verdict, &'static [&'static str]) {
    let names = Names::of(AgentFormat::Gemini);
    let kind = fields.take("kind");
    let kind_line = kind.as_ref().map(|field| field.line);
    let remote: Vec<_> = REMOTE.iter().filter_map(|name| fields.take(name)).collect();
    let is_remote = kind.as_ref().is_some_and(|field| field.node.text() == Some("remote"));
    if is_remote || !remote.is_empty() {
        let line = kind_line.or_else(|| remote.first().map(|field| field.line)).unwrap_or(1);
        let message = "agents that run elsewhere are not supported; write `kind: local`, and \
                       instructions below the keys";
        findings.problem(line, "kind", message);
    } else if let Some(kind) = kind.filter(|field| field.node.text() != Some("local")) {
        kind.wrong::<()>("`local`", findings);
    }
    let mut definition = translate::start(fields, context, findings);
    // Its own name for what the agent is asked.
    let task = format!("${{{}}}", InputConfig::TASK);
    let prompt = definition.prompt.system_prompt.take();
    definition.prompt.system_prompt = prompt.map(|prompt| prompt.replace("$${query}", &task));
    definition.display_name = fields.text("display_name", findings);
    if let Some(tools) = fields.texts("tools", findings) {
        translate::grant(&mut definition, "tools", tools, names, findings);
    }
    let model = fields.text("model", findings);
    definition.model.model = model.and_then(|model| names.model(&model));
    definition.model.settings.temperature = fields.number("temperature", (0.0, 2.0), findings);
    definition.run.max_turns = fields.small("max_turns", findings);
    definition.run.max_time = read_minutes("timeout_mins", fields, findings);
    translate::leave(fields, UNUSED, findings);
    (Verdict::Agent(Box::new(definition)), KEYS)
}

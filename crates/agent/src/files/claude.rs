//! Files of Claude Code.

use convoke_core::{Mode, WorkspaceKind};

use super::convoke::read_effort;
use super::directory::AgentFormat;
use super::field::Fields;
use super::foreign::Names;
use super::note::Findings;
use super::read::{Context, Verdict};
use super::translate;
use crate::definition::AgentDefinition;

const KEYS: &[&str] = &[
    "name",
    "description",
    "tools",
    "disallowedTools",
    "model",
    "permissionMode",
    "maxTurns",
    "effort",
    "background",
    "isolation",
    "initialPrompt",
    "skills",
    "mcpServers",
    "hooks",
    "memory",
    "color",
];

const UNUSED: &[(&str, &str)] = &[
    ("color", ""),
    ("hooks", ": hooks are part of the configuration"),
    ("initial_prompt", ": an agent begins with what its caller asks"),
    ("mcp_servers", ": servers are part of the configuration"),
    ("memory", ""),
    ("skills", ""),
];

/// Reads the keys of a file.
pub(super) fn read(
    fields: &mut Fields,
    context: &Context<'_>,
    findings: &mut Findings,
) -> (Verdict, &'static [&'static str]) {
    let names = Names::of(AgentFormat::Claude);
    let mut definition = translate::start(fields, context, findings);
    if let Some(tools) = fields.texts("tools", findings) {
        translate::grant(&mut definition, "tools", tools, names, findings);
    }
    if let Some(tools) = fields.texts("disallowed_tools", findings) {
        translate::take_away(&mut definition, "disallowedTools", tools, names, findings);
    }
    let model = fields.text("model", findings);
    definition.model.model = model.and_then(|model| names.model(&model));
    definition.model.settings.reasoning_effort = read_effort("effort", fields, findings);
    definition.run.max_turns = fields.small("max_turns", findings);
    definition.run.background = fields.flag("background", findings).unwrap_or_default();
    let worktree = |word: &str| (word == "worktree").then_some(WorkspaceKind::Worktree);
    definition.run.workspace = fields.word("isolation", worktree, &["worktree"], findings);
    read_mode(&mut definition, fields, findings);
    translate::leave(fields, UNUSED, findings);
    (Verdict::Agent(Box::new(definition)), KEYS)
}

/// A mode of a file never lets an agent do more than its caller may.
fn read_mode(definition: &mut AgentDefinition, fields: &mut Fields, findings: &mut Findings) {
    let Some(field) = fields.take("permission_mode") else { return };
    let (mode, warning) = match field.node.text().unwrap_or_default() {
        "plan" => (Mode::Plan, None),
        "acceptEdits" => (Mode::AutoEdit, None),
        "default" => (Mode::Default, None),
        "bypassPermissions" => {
            (Mode::Default, Some("a file cannot lift permissions; it is `default`".to_owned()))
        }
        "dontAsk" => {
            let warning = "what is not allowed is asked about here, and denied where nobody can be \
                           asked; it is `default`";
            (Mode::Default, Some(warning.to_owned()))
        }
        _ => {
            let shown = field.node.shown();
            let warning =
                format!("{shown} is not a mode that is known; it is `plan`, the strictest");
            (Mode::Plan, Some(warning))
        }
    };
    definition.policy.mode = Some(mode);
    if let Some(warning) = warning {
        findings.warning(field.line, &field.key, warning);
    }
}

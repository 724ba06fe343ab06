//! Rules that are no mistake and yet can never hold: whoever wrote one is warned, where it is written.

use convoke_builtin::Settings;
use convoke_core::policy::{KnownTools, RuleError, RuleSpec};
use convoke_core::{Permission, ToolSpec};

use crate::config::key::Key;
use crate::config::node::{Body, Node};
use crate::config::origin::Layer;
use crate::config::problem::Problem;
use crate::config::settings::Config;
use crate::config::sources::MoreTools;

/// A rule as it was written, with its place in the list it was written in.
#[derive(Debug)]
pub(in crate::config) struct WrittenRule {
    index: usize,
    node: Node,
}

/// Returns the rules of a layer.
pub(in crate::config) fn rules_of(root: &Node) -> Vec<WrittenRule> {
    let written = |(index, node): (usize, &Node)| WrittenRule { index, node: node.clone() };
    match root.get(&list()).map(|node| &node.body) {
        Some(Body::List(rules)) => rules.iter().enumerate().map(written).collect(),
        _ => Vec::new(),
    }
}

/// Says which rules can never hold with what is configured.
pub(in crate::config) fn doubts(
    rules: &[WrittenRule],
    config: &Config,
    more: MoreTools,
) -> Vec<Problem> {
    let specs: Vec<(&WrittenRule, RuleSpec)> = rules
        .iter()
        .filter_map(|rule| Some((rule, serde_json::from_value(rule.node.to_json()).ok()?)))
        .collect();
    let names_one = |spec: &RuleSpec| spec.tool.as_ref().is_some_and(|name| !name.contains('*'));
    let tools = if specs.iter().any(|(_, spec)| names_one(spec)) { tools(config) } else { vec![] };
    let is_denied = |kind| config.policy.permission(kind) == Permission::Deny;
    let mut problems = Vec::new();
    for (rule, spec) in specs {
        // What a project allows is ignored, and said to be.
        if rule.node.origin.layer == Layer::Project && spec.effect == Permission::Allow {
            continue;
        }
        let known = match more {
            MoreTools::None => KnownTools::All(&tools),
            MoreTools::Perhaps => KnownTools::Some(&tools),
        };
        let found = spec.doubts_about(known, is_denied);
        problems.extend(spec.doubts().iter().chain(&found).filter_map(|doubt| rule.problem(doubt)));
    }
    problems
}

impl WrittenRule {
    /// Says it where the key is written; not at all, if what stands there came from the environment.
    fn problem(&self, doubt: &RuleError) -> Option<Problem> {
        let node = self.node.get(&Key::default().name(doubt.key)).unwrap_or(&self.node);
        let key = list().index(self.index).name(doubt.key);
        node.template.is_none().then(|| Problem::new(&node.origin.place, &key, &*doubt.message))
    }
}

fn list() -> Key {
    Key::default().name("policy").name("rules")
}

/// What every tool says about itself that is built in or configured.
fn tools(config: &Config) -> Vec<ToolSpec> {
    let built_in = convoke_builtin::tools(&Settings::default());
    let built_in = built_in.iter().map(|tool| tool.spec().clone());
    let configured = config.tools.commands.iter().map(|command| {
        let mut spec = ToolSpec::new(&command.name, &command.description, command.kind);
        spec.category = command.category;
        spec
    });
    built_in.chain(configured).collect()
}

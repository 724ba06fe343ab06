//! Which rules would allow a call from now on, for whoever is asked about it.
//!
//! A proposal is narrow: this very command, or the same subcommand of a program that has them; this tool
//! on this host. It is offered only if it really would allow the call. What a rule asks about, or what
//! cannot be known before it runs, is asked about each time.

use super::facts::{Base, Facts, Part};
use super::shell::Word;
use super::touch::{Reach, Touch};
use super::{Authority, Layer, Policy, Rule, RuleSpec, Scope, Source};
use crate::permission::Permission;

/// Programs whose first argument says what they do.
const WITH_SUBCOMMANDS: &[&str] = &[
    "apt",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "deno",
    "docker",
    "dotnet",
    "gem",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "just",
    "kubectl",
    "make",
    "mix",
    "mvn",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "swift",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
    "zig",
];
/// More than so many rules nobody reads.
const MAX_RULES: usize = 4;

impl Authority {
    /// Returns this authority with more that the user allows, at every level. What is denied or has to be
    /// asked about by a rule stays so.
    #[must_use]
    pub fn granting(&self, rules: &[RuleSpec]) -> Self {
        let allowed = rules.iter().filter(|rule| rule.effect == Permission::Allow);
        let rules = allowed.filter_map(|rule| Rule::new(rule.clone(), None, None).ok());
        let layer = Layer::new(Scope::Granted, rules.collect());
        self.map(|policy| policy.clone().layer(layer.clone()))
    }

    /// Returns the rules that would allow a call that has to be asked about; none, if no rule could.
    pub fn propose(&self, facts: &Facts<'_>) -> Vec<RuleSpec> {
        let mut rules: Vec<RuleSpec> = Vec::new();
        for part in facts.parts() {
            if !self.policies().any(|policy| policy.asks_by_kind(facts, &part)) {
                continue;
            }
            let Some(rule) = rule_for(facts, &part) else { return Vec::new() };
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        let would_help = !rules.is_empty()
            && rules.len() <= MAX_RULES
            && self.granting(&rules).decide(facts).permission == Permission::Allow;
        if would_help { rules } else { Vec::new() }
    }
}

impl Policy {
    fn asks_by_kind(&self, facts: &Facts<'_>, part: &Part) -> bool {
        self.decide_part(facts, part).is_some_and(|decision| {
            decision.permission == Permission::Ask && matches!(decision.source, Source::Kind(_))
        })
    }
}

fn rule_for(facts: &Facts<'_>, part: &Part) -> Option<RuleSpec> {
    if part.opaque.is_some() {
        return None;
    }
    let of_tool = || RuleSpec::tool(Permission::Allow, facts.tool);
    match (&part.command, part.base) {
        (Some(words), _) if !words.is_empty() => {
            Some(RuleSpec::command(Permission::Allow, pattern(words)?))
        }
        (None, Base::Redirection { .. }) => match part.paths.as_slice() {
            [Touch::At(path)] => {
                let path = globset::escape(path.to_str()?);
                Some(RuleSpec { path: Some(path), ..of_tool() })
            }
            _ => None,
        },
        (None, Base::Kind(_)) => match part.hosts.as_slice() {
            [Reach::Known(host)] => Some(RuleSpec { host: Some(host.clone()), ..of_tool() }),
            [] => Some(of_tool()),
            _ => None,
        },
        (Some(_), _) | (None, Base::None) => None,
    }
}

/// Returns the pattern for commands like this one.
fn pattern(words: &[Word]) -> Option<String> {
    let plain = |word: &Word| word.text().filter(|text| is_plain(text)).map(str::to_owned);
    let program = plain(words.first()?)?;
    let subcommand = words.get(1).and_then(&plain).filter(|word| !word.starts_with('-'));
    if let Some(subcommand) = subcommand.filter(|_| WITH_SUBCOMMANDS.contains(&program.as_str())) {
        return Some(format!("{program} {subcommand} *"));
    }
    let all: Option<Vec<String>> = words.iter().map(plain).collect();
    all.map(|words| words.join(" "))
}

/// Tells whether a word stands for itself in a pattern.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.contains(|c: char| c.is_whitespace() || c.is_control() || "*;|&`$".contains(c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::World;
    use super::*;
    use crate::effect::Effects;
    use crate::permission::Mode;
    use crate::spec::{Category, Kind, ToolSpec};

    fn proposed(policy: Policy, command: &str) -> Vec<String> {
        let world = World { directory: "/work".into(), ..World::default() };
        let mut spec = ToolSpec::new("run_command", "Runs.", Kind::Execute);
        spec.category = Category::Code;
        let arguments = json!({ "command": command });
        let facts = Facts::new(&spec, &arguments, &Effects::NONE, "main", &world);
        let authority = Authority::new(policy);
        let rules = authority.propose(&facts);
        if !rules.is_empty() {
            let granted = authority.granting(&rules);
            assert_eq!(granted.decide(&facts).permission, Permission::Allow, "{command}");
        }
        rules.into_iter().filter_map(|rule| rule.command.or(rule.path)).collect()
    }

    #[test]
    fn a_proposal_is_narrow_and_would_help() {
        let default = || Policy::new(Mode::Default);
        for (command, expected) in [
            ("cargo test --workspace", &["cargo test *"][..]),
            ("git push origin main && ls -l", &["git push *", "ls -l"]),
            ("rm -rf build", &["rm -rf build"]),
            ("git -C /elsewhere push", &["git -C /elsewhere push"]),
            ("echo 'two words'", &[]),
            ("rm $X", &[]),
            ("ls *", &[]),
            ("$CMD x", &[]),
            ("echo (", &[]),
        ] {
            assert_eq!(proposed(default(), command), expected, "{command}");
        }
    }

    #[test]
    fn nothing_is_proposed_where_it_would_not_help() {
        let rule = |spec| Rule::new(spec, None, None).unwrap();
        let asks = rule(RuleSpec::command(Permission::Ask, "git push *"));
        let policy = Policy::new(Mode::Default).layer(Layer::new(Scope::User, vec![asks]));
        assert!(proposed(policy, "git push").is_empty(), "somebody wants to be asked each time");
        let denies = rule(RuleSpec::command(Permission::Deny, "rm *"));
        let policy = Policy::new(Mode::Default).layer(Layer::new(Scope::User, vec![denies]));
        assert!(proposed(policy.clone(), "git push; rm x").is_empty());
        let authority = Authority::new(policy).granting(&[
            RuleSpec::command(Permission::Allow, "rm *"),
            RuleSpec::tool(Permission::Allow, "*"),
        ]);
        let world = World { directory: "/work".into(), ..World::default() };
        let spec = ToolSpec::new("run_command", "Runs.", Kind::Execute);
        let arguments = json!({ "command": "rm x" });
        let facts = Facts::new(&spec, &arguments, &Effects::NONE, "main", &world);
        assert_eq!(authority.decide(&facts).permission, Permission::Deny, "a grant is no way out");
    }
}

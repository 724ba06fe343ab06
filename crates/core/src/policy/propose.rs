//! Which rules would allow a call from now on, for whoever is asked about it.
//!
//! A proposal is no wider than what was shown: this very command where it ran, this tool on this host or in
//! this directory, writing this file. Only of a few programs that look and build, other arguments are
//! covered too. Where only an option is asked about, the option is saved. It is offered only if it really would allow the call. What a rule asks about, what
//! cannot be known before it runs, and programs that run what they read are asked about each time.

use std::path::Path;

use super::facts::{Base, Facts, Part};
use super::shell::Word;
use super::touch::{Reach, Touch};
use super::{Authority, Layer, Policy, Rule, RuleSpec, Scope, Source};
use crate::permission::Permission;
use crate::spec::Kind;

/// Programs with what they may be told to do with any further arguments. Options of theirs that run
/// something else are looked for when a command is read.
const WITH_ANY_ARGUMENTS: &[(&str, &[&str])] = &[
    ("cargo", &["build", "check", "clippy", "doc", "test", "tree"]),
    ("git", &["describe", "log", "ls-files", "rev-parse", "shortlog", "show", "status"]),
];
/// Programs that run what comes in, whatever their arguments are.
const OBEY_INPUT: &[&str] = &["at", "batch", "crontab", "parallel", "ssh", "xargs"];
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
        let parts = facts.parts();
        if parts.iter().any(runs_what_is_not_shown) {
            return Vec::new();
        }
        let mut rules: Vec<RuleSpec> = Vec::new();
        for part in parts {
            if !self.policies().any(|policy| policy.asks_by_kind(facts, &part)) {
                continue;
            }
            let mut known = part.clone();
            known.unlisted = None;
            let by_option = part.unlisted.is_some()
                && !self.policies().any(|policy| policy.asks_by_kind(facts, &known));
            let rule = if by_option { option_rule(&part) } else { rule_for(facts, &part) };
            let Some(rule) = rule else { return Vec::new() };
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
            decision.permission == Permission::Ask
                && matches!(decision.source, Source::Kind(_) | Source::Mode { .. })
        })
    }
}

/// Tells whether it may run something that nobody has seen: code that comes in, or is somewhere else.
fn runs_what_is_not_shown(part: &Part) -> bool {
    let Some((program, arguments)) = part.command.as_ref().and_then(|words| words.split_first())
    else {
        return false;
    };
    let Some(program) = program.text() else { return true };
    let bare = program.rsplit('/').next().unwrap_or(program);
    let reads = |word: &Word| matches!(word.text(), Some("-" | "/dev/stdin" | "/dev/fd/0"));
    OBEY_INPUT.contains(&bare) || arguments.iter().any(reads)
}

/// Returns the rule for an option that is all that was asked about: program, subcommand and option. Other
/// words are allowed already.
fn option_rule(part: &Part) -> Option<RuleSpec> {
    let (unlisted, words) = (part.unlisted.as_ref()?, part.command.as_ref()?);
    let words = part.plain.as_ref().unwrap_or(words);
    let title = unlisted.title.split_whitespace().count();
    let mut pattern: Vec<String> = words
        .iter()
        .take(title)
        .map(|word| word.text().map(str::to_owned))
        .collect::<Option<_>>()?;
    for word in &unlisted.words {
        let option = word.split_once('=').filter(|_| word.starts_with("--"));
        let option = option.map_or_else(|| word.clone(), |(name, _)| format!("{name}=*"));
        let is_plain = is_plain(option.strip_suffix('*').unwrap_or(&option));
        pattern.extend(["*".to_owned(), Some(option).filter(|_| is_plain)?]);
    }
    pattern.push("*".to_owned());
    let [Touch::At(directory)] = part.directories.as_slice() else { return None };
    let directory = Some(globset::escape(directory.to_str()?));
    Some(RuleSpec { directory, ..RuleSpec::command(Permission::Allow, pattern.join(" ")) })
}

fn rule_for(facts: &Facts<'_>, part: &Part) -> Option<RuleSpec> {
    if part.opaque.is_some() {
        return None;
    }
    let of_tool = || RuleSpec::tool(Permission::Allow, facts.tool);
    match (&part.command, part.base) {
        (Some(words), _) if !words.is_empty() => {
            // The same words elsewhere run something else.
            let [Touch::At(directory)] = part.directories.as_slice() else { return None };
            let directory = Some(globset::escape(directory.to_str()?));
            Some(RuleSpec { directory, ..RuleSpec::command(Permission::Allow, pattern(words)?) })
        }
        (None, Base::Redirection { kind, .. }) => match part.paths.as_slice() {
            [Touch::At(path)] => {
                let path = Some(globset::escape(path.to_str()?));
                Some(RuleSpec { path, kind: Some(kind), ..of_tool() })
            }
            _ => None,
        },
        (None, Base::Kind(kind)) => {
            let host = match part.hosts.as_slice() {
                [] => None,
                [Reach::Known(endpoint)] => Some(endpoint.to_string()),
                _ => return None,
            };
            let path = match part.paths.as_slice() {
                [] => None,
                [Touch::At(first), rest @ ..] => {
                    let one = || rest.iter().all(|touch| *touch == Touch::At(first.clone()));
                    Some(place(first, kind, &facts.world.directory).filter(|_| one())?)
                }
                _ => return None,
            };
            Some(RuleSpec { path, host, ..of_tool() })
        }
        (None, Base::Variable(_)) => {
            let args = std::iter::once(("key".to_owned(), part.variable.clone()?)).collect();
            Some(RuleSpec { args, ..of_tool() })
        }
        (Some(_), _) | (None, Base::None | Base::Changes | Base::Write) => None,
    }
}

/// Returns the pattern for a file and, where it is written, those beside and below it. What lies in the
/// working directory itself stands for itself: beside it is everything.
fn place(path: &Path, kind: Kind, directory: &Path) -> Option<String> {
    let inside = path.strip_prefix(directory).ok();
    let shown = inside.filter(|path| !path.as_os_str().is_empty()).unwrap_or(path);
    let parent = shown.parent().filter(|parent| parent.components().next().is_some());
    let names_root = parent.is_some_and(|parent| parent.parent().is_none() && parent.has_root());
    match parent.filter(|_| kind == Kind::Edit && !names_root) {
        Some(parent) => Some(format!("{}/**", globset::escape(parent.to_str()?))),
        None => Some(globset::escape(shown.to_str()?)),
    }
}

/// Returns the pattern for commands like this one.
fn pattern(words: &[Word]) -> Option<String> {
    let plain = |word: &Word| word.text().filter(|text| is_plain(text)).map(str::to_owned);
    let all: Option<Vec<String>> = words.iter().map(plain).collect();
    let all = all?;
    let any = |program: &str, subcommand: &str| {
        let mut known = WITH_ANY_ARGUMENTS.iter();
        known.any(|(name, subcommands)| *name == program && subcommands.contains(&subcommand))
    };
    match all.as_slice() {
        [program, subcommand, ..] if any(program, subcommand) => {
            Some(format!("{program} {subcommand} *"))
        }
        words => Some(words.join(" ")),
    }
}

/// Tells whether a word stands for itself in a pattern.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.contains(|c: char| c.is_whitespace() || c.is_control() || "*;|&`$".contains(c))
}

#[cfg(test)]
mod tests;

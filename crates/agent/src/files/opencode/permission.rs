//! Permissions of `OpenCode` as rules of ours.
//!
//! There, the last entry that fits a call decides. Here, what denies wins over what asks, and that over
//! what allows, in whatever order they stand. Entries after the last `*` are exceptions from it: those that
//! are stricter are rules; those that are looser can be kept for commands (the only ones there are) and
//! for whole tools (the only ones it has). Where one cannot be kept, the stricter side stays, with a warning.

use convoke_core::policy::{RuleSpec, wildcard};
use convoke_core::{Kind, Mode, Permission};

use crate::check::is_name;
use crate::definition::{AgentDefinition, Commands, ToolChoice};
use crate::files::field::Field;
use crate::files::foreign::{Counterpart, Names};
use crate::files::note::Findings;
use crate::files::translate::{agents_by_name, allowed_command, forbidden_command, forbidden_path};
use crate::files::yaml::{Body, Entry, Node};

/// Reads permissions: one word for everything, or words by tool.
pub(super) fn read(
    definition: &mut AgentDefinition,
    field: &Field,
    names: &Names,
    findings: &mut Findings,
) {
    match &field.node.body {
        Body::Map(entries) => read_tools(definition, &field.key, entries, names, findings),
        _ => match action(&field.node) {
            Some(action) => definition.policy.rules.push(RuleSpec::tool(action, "*")),
            None => {
                field.wrong::<()>("`allow`, `ask`, `deny`, or these by tool", findings);
            }
        },
    }
}

fn action(node: &Node) -> Option<Permission> {
    Permission::from_word(node.text()?)
}

/// Splits entries at the last `*`: what it says, and the exceptions after it. Those before it never
/// count.
fn at_last_star<'a>(
    key: &str,
    entries: &'a [Entry],
    findings: &mut Findings,
) -> (Option<Permission>, &'a [Entry]) {
    let Some(at) = entries.iter().rposition(|entry| entry.key == "*") else {
        return (None, entries);
    };
    for entry in entries.get(..at).unwrap_or_default() {
        let message = "it never counts, because `*` stands after it; write `*` first";
        findings.warning(entry.line, &format!("{key}.{}", entry.key), message);
    }
    let base = entries.get(at).and_then(|entry| action(&entry.node));
    (base, entries.get(at + 1..).unwrap_or_default())
}

fn read_tools(
    definition: &mut AgentDefinition,
    key: &str,
    entries: &[Entry],
    names: &Names,
    findings: &mut Findings,
) {
    let (base, entries) = at_last_star(key, entries, findings);
    let looser = |entry: &&Entry| action(&entry.node) != Some(Permission::Deny);
    match base {
        Some(Permission::Deny) => {
            let tools =
                entries.iter().filter(looser).flat_map(|entry| match names.tool(&entry.key) {
                    Some(Counterpart::Tools(tools)) if entry.key == "edit" => {
                        tools.into_iter().chain(["write_file".to_owned()]).collect()
                    }
                    Some(Counterpart::Tools(tools)) => tools,
                    Some(_) => Vec::new(),
                    None => vec![names.of_server(&entry.key).unwrap_or(entry.key.clone())],
                });
            let tools: Vec<String> = tools.collect();
            // Tools that are switched off by `tools` stay so.
            let only = match definition.tools.allow.take() {
                Some(known) => known
                    .into_iter()
                    .filter(|one| tools.iter().any(|tool| tool == one.name()))
                    .collect(),
                None => tools.into_iter().map(ToolChoice::Named).collect(),
            };
            definition.tools.allow = Some(only);
        }
        Some(Permission::Ask) => ask_by_mode(definition),
        Some(Permission::Allow) => {
            definition.policy.rules.push(RuleSpec::tool(Permission::Allow, "*"));
        }
        None => {}
    }
    for entry in entries {
        let key = format!("{key}.{}", entry.key);
        match (&entry.node.body, action(&entry.node)) {
            (Body::Map(patterns), _) => {
                read_patterns(definition, &key, entry, patterns, names, findings);
            }
            (_, Some(action)) => whole_tool(definition, &key, entry, action, names, findings),
            _ => {
                let found = entry.node.shown();
                let message =
                    format!("expected `allow`, `ask`, `deny`, or patterns, found {found}");
                findings.problem(entry.line, &key, message);
            }
        }
    }
}

/// Everything that changes something is asked about, except what a rule allows.
fn ask_by_mode(definition: &mut AgentDefinition) {
    definition.policy.mode.get_or_insert(Mode::Default);
}

fn of_kind(effect: Permission, kind: Kind) -> RuleSpec {
    let mut rule = RuleSpec::new(effect);
    rule.kind = Some(kind);
    rule
}

/// The kinds of calls that change files. To delete is asked about even where changes are allowed.
fn changes(effect: Permission) -> &'static [Kind] {
    match effect {
        Permission::Allow => &[Kind::Edit, Kind::Move],
        Permission::Ask | Permission::Deny => &[Kind::Edit, Kind::Move, Kind::Delete],
    }
}

fn whole_tool(
    definition: &mut AgentDefinition,
    key: &str,
    entry: &Entry,
    effect: Permission,
    names: &Names,
    findings: &mut Findings,
) {
    let rules = &mut definition.policy.rules;
    match (entry.key.as_str(), names.tool(&entry.key)) {
        ("edit" | "write" | "patch" | "multiedit" | "apply_patch", _) => {
            rules.extend(changes(effect).iter().map(|kind| of_kind(effect, *kind)));
        }
        ("bash", _) => rules.push(of_kind(effect, Kind::Execute)),
        ("webfetch", _) => rules.push(of_kind(effect, Kind::Fetch)),
        ("task", _) if effect != Permission::Deny => {
            findings.warning(entry.line, key, agents_by_name("task"));
        }
        ("task", _) => {}
        (_, Some(Counterpart::Tools(tools))) => {
            rules.extend(tools.into_iter().map(|tool| RuleSpec::tool(effect, tool)));
        }
        (_, Some(_)) => {
            findings.warning(entry.line, key, "it has no counterpart here, and is not used");
        }
        (pattern, None) => {
            rules.push(RuleSpec::tool(effect, pattern));
            // What is allowed is only what is called so; what is not allowed is whatever it can mean here.
            let all = names.all_of_server(pattern).filter(|_| effect != Permission::Allow);
            rules.extend(all.map(|pattern| RuleSpec::tool(effect, pattern)));
        }
    }
}

fn read_patterns(
    definition: &mut AgentDefinition,
    key: &str,
    entry: &Entry,
    patterns: &[Entry],
    names: &Names,
    findings: &mut Findings,
) {
    let mut read = Vec::new();
    let (base, exceptions) = at_last_star(key, patterns, findings);
    for pattern in exceptions {
        let place = format!("{key}.{}", pattern.key);
        if let Some(action) = action(&pattern.node) {
            read.push((pattern, action));
        } else {
            let found = pattern.node.shown();
            let message = format!("expected `allow`, `ask` or `deny`, found {found}");
            findings.problem(pattern.line, &place, message);
        }
    }
    warn_of_order(key, &read, findings);
    match entry.key.as_str() {
        "bash" => commands(definition, key, base, &read, findings),
        "task" => {
            for (pattern, _) in read.iter().filter(|(_, action)| *action != Permission::Deny) {
                if is_name(&pattern.key) {
                    definition.agents.push(pattern.key.clone());
                } else {
                    findings.warning(pattern.line, key, agents_by_name(&pattern.key));
                }
            }
            if base.is_some_and(|base| base != Permission::Deny) {
                findings.warning(entry.line, key, agents_by_name("*"));
            }
        }
        "edit" | "write" | "read" => paths(definition, key, entry, base, &read, findings),
        _ => {
            let strictest = read.iter().map(|(_, action)| *action).chain(base).max();
            let message = match strictest {
                // To allow all of it would be more than the file does.
                None | Some(Permission::Allow) => {
                    "patterns are not kept here: it is as its caller has it"
                }
                Some(Permission::Ask) => "patterns are not kept here: all of it is asked about",
                Some(Permission::Deny) => "patterns are not kept here: all of it is denied",
            };
            findings.warning(entry.line, key, message);
            if let Some(effect) = strictest.filter(|effect| *effect != Permission::Allow) {
                whole_tool(definition, key, entry, effect, names, findings);
            }
        }
    }
}

/// Warns where a later entry is looser than an earlier one that covers it.
fn warn_of_order(key: &str, read: &[(&Entry, Permission)], findings: &mut Findings) {
    for (at, (later, loose)) in read.iter().enumerate() {
        let before = read.get(..at).unwrap_or_default();
        let stricter = before
            .iter()
            .find(|(earlier, strict)| strict > loose && wildcard(&earlier.key, &later.key));
        if let Some((earlier, strict)) = stricter {
            let message = format!(
                "`{}` is `{strict}` and wins here, although it stands before; make it narrower",
                earlier.key
            );
            findings.warning(later.line, &format!("{key}.{}", later.key), message);
        }
    }
}

fn commands(
    definition: &mut AgentDefinition,
    key: &str,
    base: Option<Permission>,
    read: &[(&Entry, Permission)],
    findings: &mut Findings,
) {
    let has_looser = |than| read.iter().any(|(_, action)| *action < than);
    let mut only = None;
    match base {
        Some(Permission::Deny) if has_looser(Permission::Deny) => only = Some(Vec::new()),
        Some(Permission::Ask) if has_looser(Permission::Ask) => ask_by_mode(definition),
        Some(effect) => definition.policy.rules.push(of_kind(effect, Kind::Execute)),
        None => {}
    }
    for (entry, effect) in read {
        let pattern = match effect {
            Permission::Allow => allowed_command(&entry.key),
            Permission::Ask | Permission::Deny => forbidden_command(&entry.key),
        };
        if let Err(error) = Commands::new([pattern.as_str()]) {
            let place = format!("{key}.{}", entry.key);
            if *effect == Permission::Allow {
                findings.warning(entry.line, &place, format!("it is left out: {}", error.message));
            } else {
                findings.problem(entry.line, &place, error.message);
            }
            continue;
        }
        if let (Some(only), true) = (&mut only, *effect != Permission::Deny) {
            only.push(allowed_command(&entry.key));
        }
        definition.policy.rules.push(RuleSpec::command(*effect, pattern));
    }
    if only.is_some() {
        definition.policy.commands = only;
    }
}

fn paths(
    definition: &mut AgentDefinition,
    key: &str,
    entry: &Entry,
    base: Option<Permission>,
    read: &[(&Entry, Permission)],
    findings: &mut Findings,
) {
    let reads = entry.key == "read";
    let has_allowed = read.iter().any(|(_, action)| *action == Permission::Allow);
    match base {
        Some(Permission::Ask) if has_allowed && !reads => ask_by_mode(definition),
        Some(effect) if reads => definition.policy.rules.push(of_kind(effect, Kind::Read)),
        Some(effect) => {
            let rules = changes(effect).iter().map(|kind| of_kind(effect, *kind));
            definition.policy.rules.extend(rules);
        }
        None => {}
    }
    for (pattern, effect) in read {
        let place = format!("{key}.{}", pattern.key);
        if base.is_some_and(|base| base > *effect && (base == Permission::Deny || reads)) {
            let message = "it is not kept: `*` is stricter, and wins here";
            findings.warning(pattern.line, &place, message);
            continue;
        }
        let path = forbidden_path(&pattern.key);
        match (path, effect) {
            (None, Permission::Allow) => {
                let message = "this pattern cannot be kept, and is left out";
                findings.warning(pattern.line, &place, message);
            }
            (None, _) => {
                let message = format!("this pattern cannot be kept: all of it is `{effect}`");
                findings.warning(pattern.line, &place, message);
                let kinds = if reads { &[Kind::Read][..] } else { changes(*effect) };
                definition.policy.rules.extend(kinds.iter().map(|kind| of_kind(*effect, *kind)));
            }
            // Reading is allowed as it is.
            (Some(_), Permission::Allow) if reads => {}
            // Whoever may not read a file may not change it either.
            (Some(path), _) if reads => definition.policy.rules.push(RuleSpec::path(*effect, path)),
            (Some(path), _) => {
                // There `*` goes on over `/`. What is allowed here is the less, never the more.
                let narrow = *effect == Permission::Allow && pattern.key.contains('/');
                let path = if narrow { pattern.key.clone() } else { path };
                for kind in changes(*effect) {
                    let mut rule = of_kind(*effect, *kind);
                    rule.path = Some(path.clone());
                    definition.policy.rules.push(rule);
                }
            }
        }
    }
}

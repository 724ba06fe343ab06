//! What a foreign file grants, in our terms. Nothing is ever granted that the file does not.

use convoke_core::Permission;
use convoke_core::nearest::{did_you_mean, nearest};
use convoke_core::policy::RuleSpec;

use super::field::Fields;
use super::foreign::{Counterpart, Names};
use super::note::Findings;
use super::read::Context;
use crate::check::check_name;
use crate::definition::{AgentDefinition, Commands, ToolConfig};
use crate::template::Template;

const RUN_COMMAND: &str = "run_command";

/// What every foreign file says: a name, a description, and instructions without gaps.
pub(super) fn start(
    fields: &mut Fields,
    context: &Context<'_>,
    findings: &mut Findings,
) -> AgentDefinition {
    let name = fields.text("name", findings).unwrap_or_else(|| {
        let message = format!("there is no `name`; by its file it is `{}`", context.place);
        findings.warning(1, "name", message);
        context.place.to_owned()
    });
    start_as(name, fields, context, findings)
}

/// As [`start`], with a name from elsewhere.
pub(super) fn start_as(
    name: String,
    fields: &mut Fields,
    context: &Context<'_>,
    findings: &mut Findings,
) -> AgentDefinition {
    let description = fields.description(findings).unwrap_or_default();
    let mut definition = AgentDefinition::new(name, description);
    definition.prompt.system_prompt = context.body().map(|body| Template::escape(&body));
    definition
}

/// Says of keys that they are known and not used.
pub(super) fn leave(fields: &mut Fields, unused: &[(&str, &str)], findings: &mut Findings) {
    for (name, why) in unused {
        if let Some(field) = fields.take(name) {
            findings.warning(field.line, &field.key, format!("it is not used here{why}"));
        }
    }
}

/// Takes the tools that a file lists, and no others.
pub(super) fn grant(
    definition: &mut AgentDefinition,
    key: &str,
    listed: Vec<(String, u64)>,
    names: &Names,
    findings: &mut Findings,
) {
    if listed.iter().any(|(name, _)| name == "*") {
        return;
    }
    let mut grants = Grants::default();
    for (item, line) in listed {
        grants.add(&item, line, key, names, findings);
    }
    definition.agents.extend(grants.agents);
    if !grants.any_command && !grants.commands.is_empty() {
        let allow = |pattern: &String| RuleSpec::command(Permission::Allow, pattern);
        definition.policy.rules.extend(grants.commands.iter().map(allow));
        definition.policy.commands = Some(grants.commands);
    }
    definition.tools.allow = ToolConfig::only(grants.tools).allow;
}

#[derive(Default)]
struct Grants {
    tools: Vec<String>,
    agents: Vec<String>,
    /// Whether any command may be run.
    any_command: bool,
    commands: Vec<String>,
}

impl Grants {
    fn add(&mut self, item: &str, line: u64, key: &str, names: &Names, findings: &mut Findings) {
        let (name, limit) = with_limit(item);
        if is_mcp(name) {
            self.push(&mcp_pattern(name));
            return;
        }
        if let Some(of_server) = names.of_server(name) {
            self.push(&of_server);
            return;
        }
        match (names.tool(name), limit) {
            (Some(Counterpart::Tools(tools)), None) => {
                self.any_command |= tools.iter().any(|tool| tool == RUN_COMMAND);
                for tool in &tools {
                    self.push(tool);
                }
            }
            (Some(Counterpart::Tools(tools)), Some(limit)) => {
                if tools.iter().any(|tool| tool == RUN_COMMAND) {
                    self.add_command(limit, line, key, findings);
                } else {
                    let message = format!(
                        "`{item}` is left out: the limit in brackets cannot be kept here; write \
                         `{name}` for all of it, and say in `rules` of a Convoke file what is denied"
                    );
                    findings.warning(line, key, message);
                }
            }
            (Some(Counterpart::Agents(_)), Some(limit)) => {
                let called =
                    limit.split(',').map(str::trim).filter(|name| check_name(name).is_ok());
                self.agents.extend(called.map(str::to_owned));
            }
            (Some(Counterpart::Agents(_)), None) => {
                findings.warning(line, key, agents_by_name(item));
            }
            (Some(Counterpart::Nothing), _) => {
                let message = format!("`{item}` has no counterpart here, and is left out");
                findings.warning(line, key, message);
            }
            (None, _) => {
                let close = match did_you_mean(&nearest(name, names.tool_names())) {
                    close if close.is_empty() => {
                        "; if it is an agent, write `agents: [name]` in a Convoke file".to_owned()
                    }
                    close => close,
                };
                let message =
                    format!("`{item}` is not a tool that is known, and is left out{close}");
                findings.warning(line, key, message);
            }
        }
    }

    fn push(&mut self, tool: &str) {
        if !self.tools.iter().any(|known| known == tool) {
            self.tools.push(tool.to_owned());
        }
    }

    fn add_command(&mut self, limit: &str, line: u64, key: &str, findings: &mut Findings) {
        if matches!(limit, "*" | ":*") {
            self.any_command = true;
            self.push(RUN_COMMAND);
            return;
        }
        let pattern = allowed_command(&with_arguments(limit));
        match Commands::new([pattern.as_str()]) {
            Ok(_) => {
                self.push(RUN_COMMAND);
                self.commands.push(pattern);
            }
            Err(error) => {
                let message = format!("`{limit}` is left out: {}", error.message);
                findings.warning(line, key, message);
            }
        }
    }
}

/// Says that agents are granted by name.
pub(super) fn agents_by_name(what: &str) -> String {
    format!(
        "`{what}` would let it call any agent; here agents are granted by name: write `agents: [name]` \
         in a Convoke file"
    )
}

/// Takes away the tools that a file lists.
pub(super) fn take_away(
    definition: &mut AgentDefinition,
    key: &str,
    listed: Vec<(String, u64)>,
    names: &Names,
    findings: &mut Findings,
) {
    for (item, line) in listed {
        let (name, limit) = with_limit(&item);
        let Some(limit) = limit else {
            let tools = match names.all_of_server(name) {
                _ if is_mcp(name) => vec![mcp_pattern(name)],
                Some(pattern) => vec![pattern],
                None => names.without(name),
            };
            definition.tools.exclude.extend(tools);
            continue;
        };
        let rules = denied(name, limit, names);
        if rules.is_empty() {
            let tools = names.without(name);
            let message = format!(
                "the limit of `{item}` cannot be kept here: all of {} is taken away",
                quoted(&tools)
            );
            findings.warning(line, key, message);
            definition.tools.exclude.extend(tools);
        }
        definition.policy.rules.extend(rules);
    }
    let mut seen = Vec::new();
    definition.tools.exclude.retain(|name| {
        let new = !seen.contains(name);
        seen.push(name.clone());
        new
    });
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the rules that deny what a tool with a limit stands for; none, if no rule can say it.
fn denied(name: &str, limit: &str, names: &Names) -> Vec<RuleSpec> {
    let Some(Counterpart::Tools(tools)) = names.tool(name) else { return Vec::new() };
    if tools.iter().any(|tool| tool == RUN_COMMAND) {
        let pattern = forbidden_command(&with_arguments(limit));
        let ready = Commands::new([pattern.as_str()]).is_ok();
        return ready.then(|| RuleSpec::command(Permission::Deny, pattern)).into_iter().collect();
    }
    if let Some(host) = limit.strip_prefix("domain:") {
        return vec![RuleSpec::host(Permission::Deny, host)];
    }
    let is_path = ["read_file", "write_file", "edit_file"]
        .iter()
        .any(|file| tools.iter().any(|tool| tool == file));
    let only_reads = tools.iter().any(|tool| tool == "read_file");
    match (is_path, forbidden_path(limit)) {
        // Whoever may not read a file may not change it either.
        (true, Some(path)) if only_reads => vec![RuleSpec::path(Permission::Deny, path)],
        (true, Some(path)) => names
            .without(name)
            .into_iter()
            .map(|tool| {
                let mut rule = RuleSpec::path(Permission::Deny, path.clone());
                rule.tool = Some(tool);
                rule
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Takes `Name(limit)` apart.
fn with_limit(item: &str) -> (&str, Option<&str>) {
    match item.split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest.trim_end().trim_end_matches(')').trim())),
        None => (item, None),
    }
}

fn is_mcp(name: &str) -> bool {
    name.starts_with("mcp__") || name.starts_with("mcp_") || name.contains("__")
}

/// A server without a tool stands for all its tools. Gemini CLI writes `server__tool`, and `mcp_*` for all.
fn mcp_pattern(name: &str) -> String {
    match name.strip_prefix("mcp__") {
        Some(server) if !server.contains("__") && !server.contains('*') => format!("{name}__*"),
        None if name == "mcp_*" => "mcp__*".to_owned(),
        None if name.contains("__") => format!("mcp__{name}"),
        _ => name.to_owned(),
    }
}

/// `git diff:*` is `git diff` with any arguments.
fn with_arguments(limit: &str) -> String {
    limit.strip_suffix(":*").map_or_else(|| limit.to_owned(), |start| format!("{start} *"))
}

/// Returns the pattern for commands that are allowed: what a text with `*` means there, or less.
pub(super) fn allowed_command(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some((last, before)) = words.split_last() else { return String::new() };
    // There `*` stands for some text; here one of its own stands for any number of words, also none.
    let mut words: Vec<&str> =
        before.iter().map(|word| if *word == "*" { "**" } else { *word }).collect();
    words.push(last);
    if last.len() > 1 && last.ends_with('*') {
        words.push("*");
    }
    words.join(" ")
}

/// Returns the pattern for commands that are not allowed: what a text with `*` means there, or more.
pub(super) fn forbidden_command(text: &str) -> String {
    let text = text.trim().replace('?', "*");
    let mut words: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        match word.split_once('*') {
            Some(("", "")) | None => words.push(word),
            // What follows a `*` inside a word may be in another word.
            Some((start, _)) => {
                let glued = word.get(..=start.len()).unwrap_or(word);
                words.push(glued);
                words.push("*");
                return words.join(" ");
            }
        }
    }
    words.join(" ")
}

/// Returns the pattern for paths that are not allowed: what a text with `*` means there, or more; nothing
/// if it cannot be said.
pub(super) fn forbidden_path(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches("./");
    let text = text.strip_prefix("//").map_or_else(|| text.to_owned(), |rest| format!("/{rest}"));
    let (start, name) =
        text.rsplit_once('/').map_or(("", text.as_str()), |(start, name)| (start, name));
    let anywhere = matches!(start, "" | "**");
    match name {
        "" => None,
        _ if start.contains('*') && start != "**" => None,
        "*" | "**" if anywhere => Some("**".to_owned()),
        "*" | "**" => Some(format!("{start}/**")),
        name if anywhere && !text.starts_with('/') => Some(format!("**/{name}")),
        name if name.contains('*') => Some(format!("{start}/**/{name}")),
        _ => Some(text.clone()),
    }
}

#[cfg(test)]
mod tests {
    use convoke_core::policy::{Rule, wildcard};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_of_commands_become_ours() {
        for (text, allowed, forbidden) in [
            ("git diff *", "git diff *", "git diff *"),
            ("git push*", "git push* *", "git push* *"),
            ("npm test", "npm test", "npm test"),
            ("npm run test:*", "npm run test:* *", "npm run test:* *"),
            ("npm*test", "npm*test", "npm* *"),
            ("git * --force", "git ** --force", "git * --force"),
            ("rm -r?", "rm -r?", "rm -r* *"),
            ("*", "*", "*"),
        ] {
            assert_eq!(allowed_command(text), allowed, "{text}");
            assert_eq!(forbidden_command(text), forbidden, "{text}");
        }
        assert_eq!(with_arguments("git diff:*"), "git diff *");
    }

    fn holds(effect: Permission, pattern: &str, line: &str) -> bool {
        let rule = Rule::new(RuleSpec::command(effect, pattern), None, None);
        rule.is_ok_and(|rule| rule.holds_for(line))
    }

    proptest! {
        #[test]
        fn a_translated_pattern_never_grants_more(
            pattern in "[ab*]{1,3}( [ab*]{1,3}){0,3}",
            line in "[ab]{1,3}( [ab]{1,3}){0,4}",
        ) {
            let fits = wildcard(&pattern, &line)
                || pattern.strip_suffix(" *").is_some_and(|start| wildcard(start, &line));
            if fits {
                let forbidden = forbidden_command(&pattern);
                prop_assert!(holds(Permission::Deny, &forbidden, &line), "{forbidden}");
            } else {
                let allowed = allowed_command(&pattern);
                prop_assert!(!holds(Permission::Allow, &allowed, &line), "{allowed}");
            }
        }
    }

    #[test]
    fn patterns_of_paths_become_ours_or_are_refused() {
        for (text, path) in [
            (".env", Some("**/.env")),
            ("*.env", Some("**/*.env")),
            ("./secrets/**", Some("secrets/**")),
            ("secrets/*", Some("secrets/**")),
            ("docs/*.md", Some("docs/**/*.md")),
            ("//etc/passwd", Some("/etc/passwd")),
            ("~/.ssh/**", Some("~/.ssh/**")),
            ("src/lib.rs", Some("src/lib.rs")),
            ("*", Some("**")),
            ("a*/b*/c", None),
            ("x/", None),
        ] {
            assert_eq!(forbidden_path(text).as_deref(), path, "{text}");
        }
    }

    /// A file that took the tools of a server away once took none.
    #[test]
    fn tools_of_servers_are_taken_away_as_they_are_called_here() {
        let names = Names::of(crate::files::AgentFormat::OpenCode);
        let mut definition = AgentDefinition::new("a", "Is a.");
        let listed = vec![("github_*".to_owned(), 1), ("bash".to_owned(), 2)];
        take_away(&mut definition, "tools", listed, names, &mut Findings::default());
        assert_eq!(definition.tools.exclude, ["mcp__github*", "run_command"]);
        assert!(wildcard("mcp__github*", "mcp__github__list"));
    }

    #[test]
    fn servers_stand_for_their_tools() {
        for (name, pattern) in [
            ("mcp__github", "mcp__github__*"),
            ("mcp__github__list", "mcp__github__list"),
            ("mcp__*", "mcp__*"),
            ("mcp_github_list", "mcp_github_list"),
            ("mcp_*", "mcp__*"),
            ("github__list", "mcp__github__list"),
        ] {
            assert!(is_mcp(name));
            assert_eq!(mcp_pattern(name), pattern);
        }
    }
}

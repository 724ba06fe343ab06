//! Files that decide what runs later: a project's configuration, the hooks and the configuration of its
//! repository, its agents, and the files that MCP servers come from. Every change of one by a tool, a
//! redirection or an operand of a command is asked about in every mode, and programs cannot write the
//! most dangerous of them where the sandbox can keep them from it. The list is a data file of the policy.
//!
//! `AGENTS.md` is none of them: it steers a model, but not what a model may do.

use std::path::{Path, PathBuf};

use convoke_core::Permission;
use convoke_core::policy::{Layer, Policy, Rule, RuleError, Scope, runs_later};

use crate::config::PROJECT_FILE_NAMES;
use crate::runtime::PROJECT_SERVERS;

/// Where such rules are said to be written.
const PLACE: &str = "built in";
/// The reason for files that MCP servers come from.
const SERVERS: &str = "it decides which servers are started here later";

/// Where agents of a project are written down.
const AGENT_DIRECTORIES: [&str; 5] =
    [".convoke/agents", ".claude/agents", ".gemini/agents", ".opencode/agent", ".opencode/agents"];

/// Returns the rules that ask about such files, and about these with servers, but for those that the user
/// allowed by their names.
pub(crate) fn layer(policy: &Policy, servers: &[PathBuf]) -> Result<Layer, RuleError> {
    let own = policy.layers().iter().filter(|layer| layer.scope() == Scope::User);
    let own: Vec<&Rule> = own.flat_map(Layer::rules).collect();
    let is_asked = |name: &str, example: &str| !own.iter().any(|rule| allows(rule, name, example));
    let mut rules = Vec::new();
    for file in runs_later() {
        let name = file.path.split(['/', '*']).next().unwrap_or(file.path);
        if is_asked(name, &file.example()) {
            rules.push(Rule::on_changes(&file.glob(), file.reason, PLACE.to_owned())?);
        }
    }
    let real = servers.iter().filter_map(|file| file.canonicalize().ok());
    let real = real.filter(|file| !servers.contains(file)).collect::<Vec<_>>();
    for file in servers.iter().chain(&real) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if is_asked(&name, &file.to_string_lossy()) {
            rules.push(Rule::on_changes(&literal(file), SERVERS, PLACE.to_owned())?);
        }
    }
    Ok(Layer::new(Scope::User, rules))
}

/// Writes a path as a pattern that only it fits.
pub(crate) fn literal(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.chars().fold(String::new(), |text, letter| match letter {
        '*' | '?' | '[' | ']' | '{' | '}' => format!("{text}[{letter}]"),
        letter => format!("{text}{letter}"),
    })
}

/// Tells whether a rule of the user allows a file by its name.
fn allows(rule: &Rule, name: &str, example: &str) -> bool {
    let named = rule.spec().path.as_deref().is_some_and(|path| path.contains(name));
    let allows = rule.effect() == Permission::Allow && rule.spec().command.is_none();
    named && allows && rule.holds_for(example)
}

/// Lists what programs that may write below these directories should not write, these files with servers among
/// it.
pub(crate) fn from_programs(roots: &[PathBuf], servers: &[PathBuf]) -> Vec<PathBuf> {
    let names = PROJECT_FILE_NAMES.iter().chain(&[".git/config", ".git/hooks", PROJECT_SERVERS]);
    let names = names.chain(&AGENT_DIRECTORIES);
    let usual = roots.iter().flat_map(|root| names.clone().map(|name| root.join(name)));
    usual.chain(servers.iter().cloned()).collect()
}

/// Lists the places below a project of files that run later, without those of the repository: a file, or
/// a directory with everything in it. A path with a wildcard is left out.
pub(crate) fn places() -> impl Iterator<Item = PathBuf> {
    let names = runs_later().map(|file| file.path.trim_end_matches('/'));
    names.filter(|name| !name.contains('*') && *name != ".git").map(PathBuf::from)
}

#[cfg(test)]
mod places_tests {
    use super::*;

    #[test]
    fn places_are_the_listed_files_and_directories() {
        let places: Vec<_> = places().collect();
        for name in
            ["convoke.yml", "convoke.yaml", ".mcp.json", ".claude/agents", ".husky", ".gitmodules"]
        {
            assert!(places.contains(&PathBuf::from(name)), "{name} in {places:?}");
        }
        assert!(!places.contains(&PathBuf::from(".git")), "{places:?}");
    }
}

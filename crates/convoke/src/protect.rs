//! Files that decide what runs later: a project's configuration, the hooks and the configuration of its
//! repository, its agents, and the files that MCP servers come from. A tool that edits files is asked about them
//! in every mode, and programs cannot write them where the sandbox can keep them from it.
//!
//! `AGENTS.md` is none of them: it steers a model, but not what a model may do.

use std::path::{Path, PathBuf};

use convoke_core::policy::{Layer, Policy, Rule, RuleError, RuleSpec, Scope};
use convoke_core::{Category, Kind, Permission};

use crate::config::PROJECT_FILE_NAMES;
use crate::runtime::PROJECT_SERVERS;

/// Where such rules are said to be written.
const PLACE: &str = "built in";
/// What changes a file.
const KINDS: [Kind; 3] = [Kind::Edit, Kind::Delete, Kind::Move];

/// Files that are asked about.
struct Protected<'a> {
    pattern: &'a str,
    reason: &'a str,
    /// A rule of the user that allows all of these, and names them, takes the question away.
    examples: &'a [&'a str],
    /// What a pattern has to say to name them.
    name: &'a str,
}

const SERVERS: &str = "it decides which servers are started here later";

const PROTECTED: [Protected<'static>; 4] = [
    Protected {
        pattern: "**/convoke.{yml,yaml}",
        reason: "it decides which programs run here later",
        examples: &["/convoke.yml", "/convoke.yaml"],
        name: "convoke.",
    },
    Protected {
        pattern: "**/.mcp.json",
        reason: SERVERS,
        examples: &["/.mcp.json"],
        name: ".mcp.json",
    },
    Protected {
        pattern: "**/.git/**",
        reason: "what is in `.git` decides which programs run here later",
        examples: &["/.git/config", "/.git/hooks/pre-commit"],
        name: ".git",
    },
    Protected {
        pattern: "**/{.convoke,.claude,.gemini,.opencode}/{agent,agents}/**",
        reason: "it says what agents are told and may do here later",
        examples: &[
            "/.convoke/agents/a.md",
            "/.claude/agents/a.md",
            "/.gemini/agents/a.md",
            "/.opencode/agent/a.md",
        ],
        name: "agent",
    },
];

/// Where agents of a project are written down.
const AGENT_DIRECTORIES: [&str; 5] =
    [".convoke/agents", ".claude/agents", ".gemini/agents", ".opencode/agent", ".opencode/agents"];

/// Returns the rules that ask about such files, and about these with servers, but for those that the user
/// allowed by their names.
pub(crate) fn layer(policy: &Policy, servers: &[PathBuf]) -> Result<Layer, RuleError> {
    let own = policy.layers().iter().filter(|layer| layer.scope() == Scope::User);
    let own: Vec<&Rule> = own.flat_map(Layer::rules).collect();
    let asks = |protected: &Protected<'_>| -> Vec<Result<Rule, RuleError>> {
        let is_allowed = own.iter().any(|rule| allows(rule, protected));
        let kinds = KINDS.iter().filter(|_| !is_allowed);
        kinds.map(|kind| ask(protected, *kind)).collect()
    };
    let mut rules: Vec<_> = PROTECTED.iter().flat_map(asks).collect();
    let real = servers.iter().filter_map(|file| file.canonicalize().ok());
    let real = real.filter(|file| !servers.contains(file)).collect::<Vec<_>>();
    for file in servers.iter().chain(&real) {
        let (pattern, path) = (literal(file), file.to_string_lossy());
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let protected =
            Protected { pattern: &pattern, reason: SERVERS, examples: &[&*path], name: &name };
        rules.extend(asks(&protected));
    }
    Ok(Layer::new(Scope::User, rules.into_iter().collect::<Result<_, _>>()?))
}

/// Writes a path as a pattern that only it fits.
pub(crate) fn literal(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.chars().fold(String::new(), |text, letter| match letter {
        '*' | '?' | '[' | ']' | '{' | '}' => format!("{text}[{letter}]"),
        letter => format!("{text}{letter}"),
    })
}

fn allows(rule: &Rule, protected: &Protected<'_>) -> bool {
    let named = rule.spec().path.as_deref().is_some_and(|path| path.contains(protected.name));
    let allows = rule.effect() == Permission::Allow && rule.spec().command.is_none();
    named && allows && protected.examples.iter().all(|example| rule.holds_for(example))
}

fn ask(protected: &Protected<'_>, kind: Kind) -> Result<Rule, RuleError> {
    let mut spec = RuleSpec::path(Permission::Ask, protected.pattern);
    spec.category = Some(Category::File);
    spec.kind = Some(kind);
    spec.reason = Some(protected.reason.to_owned());
    Rule::new(spec, None, Some(PLACE.to_owned()))
}

/// Lists what programs that may write below these directories should not write, these files with servers among
/// it.
pub(crate) fn from_programs(roots: &[PathBuf], servers: &[PathBuf]) -> Vec<PathBuf> {
    let names = PROJECT_FILE_NAMES.iter().chain(&[".git/config", ".git/hooks", PROJECT_SERVERS]);
    let names = names.chain(&AGENT_DIRECTORIES);
    let usual = roots.iter().flat_map(|root| names.clone().map(|name| root.join(name)));
    usual.chain(servers.iter().cloned()).collect()
}

/// Lists the places below a project that the patterns of protected files name, without those of the repository: a
/// file, or a directory with everything in it. A pattern with another wildcard names none.
pub(crate) fn places() -> impl Iterator<Item = PathBuf> {
    let patterns = PROTECTED.iter().flat_map(|protected| alternatives(protected.pattern));
    let names = patterns.map(|pattern| {
        let name = pattern.strip_prefix("**/").unwrap_or(&pattern);
        let name = name.strip_suffix("/**").or_else(|| name.strip_suffix("/*")).unwrap_or(name);
        name.to_owned()
    });
    names.filter(|name| !name.contains(['*', '?', '[']) && name != ".git").map(PathBuf::from)
}

/// Writes out the alternatives in braces.
fn alternatives(pattern: &str) -> Vec<String> {
    let parts = pattern.find('{').and_then(|open| {
        let close = open + pattern.get(open..)?.find('}')?;
        Some((pattern.get(..open)?, pattern.get(open + 1..close)?, pattern.get(close + 1..)?))
    });
    let Some((before, inside, after)) = parts else { return vec![pattern.to_owned()] };
    let words = inside.split(',');
    words.flat_map(|word| alternatives(&format!("{before}{word}{after}"))).collect()
}

#[cfg(test)]
mod places_tests {
    use super::*;

    #[test]
    fn places_are_files_and_directories_of_the_patterns() {
        let places: Vec<_> = places().collect();
        for name in
            ["convoke.yml", "convoke.yaml", ".mcp.json", ".claude/agents", ".opencode/agent"]
        {
            assert!(places.contains(&PathBuf::from(name)), "{name} in {places:?}");
        }
        assert!(!places.contains(&PathBuf::from(".git")), "{places:?}");
    }
}

//! Files that decide what runs later, without a sandbox: a project's configuration, and the hooks and the
//! configuration of its repository, and its agents. A tool that edits files is asked about them in every mode, and programs
//! cannot write them where the sandbox can keep them from it.
//!
//! `AGENTS.md` is none of them: it steers a model, but not what a model may do.

use std::path::PathBuf;

use convoke_core::policy::{Layer, Policy, Rule, RuleError, RuleSpec, Scope};
use convoke_core::{Category, Kind, Permission};

use crate::config::PROJECT_FILE_NAMES;
use crate::runtime::PROJECT_SERVERS;

/// Where such rules are said to be written.
const PLACE: &str = "built in";
/// What changes a file.
const KINDS: [Kind; 3] = [Kind::Edit, Kind::Delete, Kind::Move];

/// Files that are asked about.
struct Protected {
    pattern: &'static str,
    reason: &'static str,
    /// A rule of the user that allows all of these, and names them, takes the question away.
    examples: &'static [&'static str],
    /// What a pattern has to say to name them.
    name: &'static str,
}

const PROTECTED: [Protected; 4] = [
    Protected {
        pattern: "**/convoke.{yml,yaml}",
        reason: "it decides which programs run here later",
        examples: &["/convoke.yml", "/convoke.yaml"],
        name: "convoke.",
    },
    Protected {
        pattern: "**/.mcp.json",
        reason: "it decides which servers are started here later",
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

/// Returns the rules that ask about such files, but for those that the user allowed by their names.
pub(crate) fn layer(policy: &Policy) -> Result<Layer, RuleError> {
    let own = policy.layers().iter().filter(|layer| layer.scope() == Scope::User);
    let own: Vec<&Rule> = own.flat_map(Layer::rules).collect();
    let asked =
        PROTECTED.iter().filter(|protected| !own.iter().any(|rule| allows(rule, protected)));
    let rules = asked.flat_map(|protected| KINDS.map(|kind| ask(protected, kind)));
    Ok(Layer::new(Scope::User, rules.collect::<Result<_, _>>()?))
}

fn allows(rule: &Rule, protected: &Protected) -> bool {
    let named = rule.spec().path.as_deref().is_some_and(|path| path.contains(protected.name));
    let allows = rule.effect() == Permission::Allow && rule.spec().command.is_none();
    named && allows && protected.examples.iter().all(|example| rule.holds_for(example))
}

fn ask(protected: &Protected, kind: Kind) -> Result<Rule, RuleError> {
    let mut spec = RuleSpec::path(Permission::Ask, protected.pattern);
    spec.category = Some(Category::File);
    spec.kind = Some(kind);
    spec.reason = Some(protected.reason.to_owned());
    Rule::new(spec, None, Some(PLACE.to_owned()))
}

/// Lists what programs that may write below these directories should not write.
pub(crate) fn from_programs(roots: &[PathBuf]) -> Vec<PathBuf> {
    let names = PROJECT_FILE_NAMES.iter().chain(&[".git/config", ".git/hooks", PROJECT_SERVERS]);
    let names = names.chain(&AGENT_DIRECTORIES);
    roots.iter().flat_map(|root| names.clone().map(|name| root.join(name))).collect()
}

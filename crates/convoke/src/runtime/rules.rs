//! What holds beside what the user wrote: built-in rules, the mode, and what a workspace is for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use convoke_core::policy::{self, Authority, Policy, Rule, RuleError, RuleSpec};
use convoke_core::{Category, Kind, Mode, Permission};

use crate::config::{Config, SandboxConfig};
use crate::programs::Programs;
use crate::protect::{self, literal};

/// Adds the rules that hold whatever is written. MCP servers come from these files.
pub(super) fn with_built_in_rules(
    written: Policy,
    servers: &[PathBuf],
    programs: &Programs,
    is_readonly: bool,
) -> Result<Policy, RuleError> {
    let protected = protect::layer(&written, servers)?;
    let mut policy = written.layer(protected);
    if programs.limit(Permission::Allow) != Permission::Allow {
        policy = policy.layer(ask_before_programs(programs));
    }
    if is_readonly {
        policy = policy.layer(nothing_is_written()?);
    }
    Ok(policy)
}

/// Where programs cannot be confined as they should be, whatever starts one is asked about, whatever else
/// is allowed.
fn ask_before_programs(programs: &Programs) -> policy::Layer {
    let reason = match programs {
        Programs::Unlimited(..) => "programs cannot be limited here as they should be",
        _ => "programs cannot be confined here",
    };
    let rule = Rule::on_programs(Permission::Ask, reason, "sandbox".to_owned());
    policy::Layer::new(policy::Scope::User, vec![rule])
}

/// Returns what rules deny to everybody of what programs may otherwise write. A rule on a place elsewhere
/// is not taken: programs may need it to start at all.
pub(super) fn denied_inside(
    policy: &Policy,
    roots: &[PathBuf],
    working_directory: &Path,
) -> Vec<PathBuf> {
    let inside = |path: &PathBuf| roots.iter().any(|root| path.starts_with(root) && path != root);
    let denied = Authority::new(policy.clone()).denied_paths(working_directory);
    denied.into_iter().filter(inside).collect()
}

/// What a rule denies in the files of the user is denied in a workspace that is made of them.
pub(super) fn nothing_there(paths: &[PathBuf]) -> Result<policy::Layer, RuleError> {
    let deny = |path: &PathBuf| {
        let mut deny = RuleSpec::path(Permission::Deny, format!("{}/**", literal(path)));
        deny.reason = Some("a rule denies it in the files this workspace is made of".to_owned());
        Rule::new(deny, None, Some("workspace".to_owned()))
    };
    let rules = paths.iter().map(deny).collect::<Result<_, _>>()?;
    Ok(policy::Layer::new(policy::Scope::User, rules))
}

/// Kinds of calls that change files.
pub(super) const WRITES: &[Kind] = &[Kind::Edit, Kind::Delete, Kind::Move];

/// In a workspace that is only looked at, no tool writes, whatever else is allowed. Programs are held by the
/// sandbox: they may write temporary files, which no rule could tell from others.
fn nothing_is_written() -> Result<policy::Layer, RuleError> {
    let deny = |kind: &Kind, category: &Category| {
        let mut deny = RuleSpec::new(Permission::Deny);
        (deny.kind, deny.category) = (Some(*kind), Some(*category));
        deny.reason = Some("the workspace is `readonly`: nothing is changed here".to_owned());
        Rule::new(deny, None, Some("workspace".to_owned()))
    };
    let writers = Category::ALL.iter().filter(|category| {
        !matches!(category, Category::Code | Category::System | Category::Agent)
    });
    let rules = writers.flat_map(|category| WRITES.iter().map(move |kind| deny(kind, category)));
    Ok(policy::Layer::new(policy::Scope::User, rules.collect::<Result<_, _>>()?))
}

/// Directories that programs may write elsewhere are not part of what is only looked at.
pub(super) fn sandbox(config: &Config, is_readonly: bool) -> SandboxConfig {
    let mut sandbox = config.sandbox.clone();
    if is_readonly {
        sandbox.write.clear();
    }
    sandbox
}

/// Returns the permission of each kind of call.
pub(super) fn permissions(
    config: &Config,
    mode: Mode,
    is_readonly: bool,
) -> BTreeMap<Kind, Permission> {
    let decide = |kind: &Kind| (*kind, mode.permission(*kind, config.policy.permission(*kind)));
    let mut permissions: BTreeMap<Kind, Permission> = Kind::ALL.iter().map(decide).collect();
    if is_readonly {
        permissions.extend(WRITES.iter().map(|kind| (*kind, Permission::Deny)));
    }
    permissions
}

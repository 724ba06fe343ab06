//! Programs that tools can use.

use std::path::PathBuf;

use convoke_core::Permission;

use super::Check;
use crate::environment::Environment;

/// Whether `run_command` has a shell, and whether it may use it.
pub(super) fn shell(environment: &Environment, execute: Permission) -> Check {
    const NAME: &str = "shell";
    let Some(path) = ["bash", "sh"].iter().find_map(|name| find(name, environment)) else {
        return Check::fail(NAME, "neither bash nor sh is in PATH, so run_command cannot work");
    };
    let may = match execute {
        Permission::Allow => "programs may run",
        Permission::Ask => "programs may run after a question",
        Permission::Deny => "programs may not run (policy.kinds.execute)",
    };
    Check::ok(NAME, format!("{}; {may}", path.display()))
}

/// Whether there is a git.
pub(super) fn git(environment: &Environment) -> Check {
    match find("git", environment) {
        Some(path) => Check::ok("git", path.display().to_string()),
        None => Check::warn("git", "not in PATH; nothing needs it, but agents often want it"),
    }
}

/// Looks for a program as a shell would.
pub(in crate::commands) fn find(name: &str, environment: &Environment) -> Option<PathBuf> {
    let runs = |path: &PathBuf| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    environment.program_directories().into_iter().map(|path| path.join(name)).find(runs)
}

//! Programs that tools can use.

use std::path::{Path, PathBuf};

use convoke_core::Permission;

use super::Check;
use crate::environment::Environment;
use crate::session::Session;

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
    let mut paths = environment.program_directories().into_iter().map(|path| path.join(name));
    paths.find(|path| path.is_file() && is_executable(path))
}

/// Says why a program cannot be started in a directory, or where we work, as far as can be seen from here.
pub(in crate::commands) fn problem(
    command: &str,
    start: Option<&Path>,
    session: &Session<'_>,
) -> Option<String> {
    // What stands in a variable is not known here.
    if command.contains("${") {
        return None;
    }
    if !command.contains('/') {
        let is_missing = find(command, session.environment()).is_none();
        return is_missing.then(|| format!("there is no program `{command}` in PATH"));
    }
    let start = start.filter(|start| start.is_absolute()).map(|start| start.join(command));
    let path = start.unwrap_or_else(|| session.absolute(Path::new(command)));
    match path.metadata() {
        Err(_) => Some(format!("there is no program `{command}`")),
        Ok(metadata) if metadata.is_dir() => Some(format!("`{command}` is a directory")),
        Ok(_) if !is_executable(&path) => Some(format!("`{command}` is not executable")),
        Ok(_) => None,
    }
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

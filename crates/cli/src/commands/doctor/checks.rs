//! What is looked at, in the order of telling.

use std::path::Path;

use convoke::Runtime;
use convoke::config::{Config, FileState, Layer, Loaded, Trust, WebSearchProvider, load};
use convoke_core::{ExitCode, Kind, Permission};

use super::{Check, confinement, kept, mcp, model, programs, sandbox, workspaces};
use crate::failure;
use crate::hooks;
use crate::output::{Output, Stream};
use crate::session::Session;

/// Looks at everything. What depends on the configuration is left out where that is wrong.
pub(super) fn all(session: &Session<'_>, output: &Output) -> Vec<Check> {
    let mut checks = vec![version(), directory(session.working_directory())];
    match configuration(session) {
        Ok((loaded, check)) => {
            checks.extend([check, user_directory(session), kept::check(session)]);
            let runtime = session.runtime(loaded.config.clone());
            checks.insert(3, trust(&loaded, runtime.as_ref().ok()));
            match runtime {
                Ok(runtime) => {
                    checks.extend([roots(&runtime), confinement::check()]);
                    checks.push(programs::shell(session.environment(), execute(&runtime)));
                    checks.push(sandbox::check(&runtime));
                    checks.push(model::check(&runtime));
                    checks.push(mcp::check(&runtime, session));
                }
                Err(_) => checks.push(roots_fail(&loaded.config)),
            }
            checks.push(programs::git(session.environment()));
            checks.push(workspaces::check(session, &loaded.config));
            checks.push(hooks(session, &loaded.config));
            checks.push(web_search(&loaded.config));
        }
        Err(check) => {
            checks.extend([check, user_directory(session), kept::check(session)]);
            checks.push(confinement::check());
            checks.push(programs::git(session.environment()));
        }
    }
    checks.push(terminal(&output.out));
    checks
}

fn version() -> Check {
    let (os, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    Check::ok("version", format!("convoke {} on {os} {machine}", env!("CARGO_PKG_VERSION")))
}

fn directory(path: &Path) -> Check {
    match path.read_dir() {
        Ok(_) => Check::ok("directory", path.display().to_string()),
        Err(error) => {
            Check::fail("directory", format!("{} cannot be read: {error}", path.display()))
        }
    }
}

fn configuration(session: &Session<'_>) -> Result<(Loaded, Check), Check> {
    let wrong =
        |message: String| Check::fail("configuration", message).exits(ExitCode::Configuration);
    let sources = session.sources().map_err(|failure| wrong(failure.to_string()))?;
    let loaded = load(&sources).map_err(|error| {
        let problems: Vec<String> = error.problems().iter().map(failure::headline).collect();
        wrong(problems.join("; ")).hint("`convoke config check` says more")
    })?;
    session.learn(&sources);
    let read: Vec<String> = loaded
        .files()
        .iter()
        .filter(|file| file.state == FileState::Read)
        .map(|file| format!("{} ({})", file.path.display(), file.layer))
        .collect();
    let check = match (read.is_empty(), loaded.warnings().len()) {
        (true, 0) => Check::ok("configuration", "no files, built-in values"),
        (_, 0) => Check::ok("configuration", read.join(", ")),
        (_, count) => {
            let message = format!("{}; warnings: {count}", read.join(", "));
            Check::warn("configuration", message).hint("`convoke config check` lists them")
        }
    };
    Ok((loaded, check))
}

fn trust(loaded: &Loaded, runtime: Option<&Runtime>) -> Check {
    let is_there = |state| matches!(state, FileState::Read | FileState::LeftOut);
    let mut files = loaded.files().iter().filter(|file| file.layer == Layer::Project);
    let file = files.find(|file| is_there(file.state));
    let shown = file.map(|file| file.path.display().to_string());
    if loaded.trust().is_given() {
        if let Some(warning) = runtime.and_then(Runtime::entries_warning) {
            return Check::warn("trust", warning);
        }
        let shown = shown.unwrap_or_else(|| "this project".to_owned());
        return Check::ok("trust", format!("{shown} is trusted"));
    }
    let Some(shown) = shown else {
        return Check::ok("trust", "there is no project file to trust");
    };
    if *loaded.trust() == Trust::Lapsed {
        let message = format!("{shown} was trusted by an older version, and is partly ignored");
        return Check::warn("trust", message).hint("`convoke config trust` shows what it grants");
    }
    if loaded.warnings().is_empty() {
        let message = format!("{shown} is not trusted, and asks for nothing that needs it");
        return Check::ok("trust", message);
    }
    let message = format!("{shown} is not trusted, and partly ignored");
    Check::warn("trust", message).hint("`convoke config trust` trusts it")
}

/// The hooks, and whether their programs are there.
fn hooks(session: &Session<'_>, config: &Config) -> Check {
    const NAME: &str = "hooks";
    let hooks = hooks::listed(session, config);
    let lines: Vec<String> = hooks.iter().map(ToString::to_string).collect();
    if lines.is_empty() {
        return Check::ok(NAME, "none");
    }
    if hooks.iter().all(|hook| hook.program.is_some()) {
        return Check::ok(NAME, lines.join("; "));
    }
    Check::warn(NAME, lines.join("; "))
        .hint("a guard whose program is missing refuses everything that it guards")
}

fn user_directory(session: &Session<'_>) -> Check {
    const NAME: &str = "user files";
    let Some(directory) = session.environment().config_directory() else {
        return Check::warn(NAME, "neither HOME nor XDG_CONFIG_HOME is set");
    };
    let shown = directory.display();
    let nearest = directory.ancestors().find(|path| path.exists());
    let writable = nearest.is_some_and(|path| {
        rustix::fs::access(path, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
    });
    match (writable, directory.exists()) {
        (true, true) => Check::ok(NAME, format!("{shown} can be written")),
        (true, false) => Check::ok(NAME, format!("{shown} is made when it is needed")),
        (false, _) => Check::warn(NAME, format!("{shown} cannot be written")),
    }
}

fn roots(runtime: &Runtime) -> Check {
    let paths: Vec<String> =
        runtime.context().roots().paths().map(|path| path.display().to_string()).collect();
    match paths.as_slice() {
        [] => Check::warn("allowed paths", "none: file tools may touch nothing")
            .hint("`convoke config explain tools.allowedPaths` says who set it"),
        paths => Check::ok("allowed paths", paths.join(", ")),
    }
}

fn roots_fail(config: &Config) -> Check {
    let paths = config.tools.allowed_paths.clone().unwrap_or_default();
    let missing: Vec<String> =
        paths.iter().filter(|path| !path.is_dir()).map(|path| path.display().to_string()).collect();
    Check::fail("allowed paths", format!("cannot be opened: {}", missing.join(", ")))
        .hint("`convoke config explain tools.allowedPaths` says who set them")
        .exits(ExitCode::Configuration)
}

fn execute(runtime: &Runtime) -> Permission {
    runtime.permissions().get(&Kind::Execute).copied().unwrap_or(Permission::Deny)
}

fn web_search(config: &Config) -> Check {
    const NAME: &str = "web search";
    let search = &config.tools.web_search;
    let needs_key = |provider| provider != WebSearchProvider::Duckduckgo;
    match search.provider {
        None => Check::ok(NAME, "not configured (tools.webSearch.provider)"),
        Some(provider) if needs_key(provider) && search.api_key.is_none() => {
            Check::warn(NAME, format!("{provider:?} wants a key"))
                .hint("set tools.webSearch.apiKey")
        }
        Some(provider) => Check::ok(NAME, format!("{provider:?}")),
    }
}

fn terminal(out: &Stream) -> Check {
    let colour = if out.is_coloured() { "colour" } else { "no colour" };
    let message = match out.width() {
        Some(width) => format!("{width} columns, {colour}"),
        None => format!("output is not a terminal, {colour}"),
    };
    Check::ok("terminal", message)
}

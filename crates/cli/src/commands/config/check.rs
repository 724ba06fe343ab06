//! `convoke config check`: whether the configuration is right.

use std::path::{Path, PathBuf};

use clap::Args;
use convoke::config::{
    ConfigError, ConfigFile, FileState, Loaded, MoreTools, Problem, Sources, VARIABLE_PREFIX, load,
};
use convoke_core::ExitCode;
use serde::Serialize;

use crate::failure::{self, Failure};
use crate::hooks;
use crate::output::{Output, Style};
use crate::session::Session;

const AFTER_HELP: &str = "\
Without FILE, everything is checked that a command here would read. A FILE is checked alone, as if \
it were the user's own.

Examples:
  convoke config check
  convoke config check convoke.yml
  convoke config check --json

Exit codes:
  0 it is right, 7 it is not";

/// Check the configuration
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Check {
    /// Check this file alone
    file: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    /// Why it cannot be used although nothing in it is written wrongly.
    #[serde(skip_serializing_if = "Option::is_none")]
    unusable: Option<String>,
    problems: &'a [Problem],
    warnings: &'a [Problem],
    files: &'a [ConfigFile],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hooks: Vec<hooks::Listed>,
}

impl Check {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let loaded = if let Some(file) = &self.file {
            load(&alone(&session.absolute(file), session)?)
        } else {
            let sources = session.sources()?;
            session.learn(&sources);
            load(&sources)
        };
        let (usable, left_out) =
            match loaded.as_ref().map(|one| session.runtime(one.config.clone())) {
                Ok(Ok(runtime)) => (Ok(()), runtime.entries_warning()),
                Ok(Err(failure)) => (Err(failure), None),
                Err(_) => (Ok(()), None),
            };
        if self.json {
            return Ok(print_json(&loaded, usable.err().as_ref(), session, output));
        }
        let loaded = loaded?;
        failure::warn(output, loaded.warnings());
        if let Some(warning) = left_out {
            failure::warning(output, &warning);
        }
        usable?;
        print(&loaded, output);
        for hook in hooks::listed(session, &loaded.config) {
            let line = format!("hook {hook}");
            output.out.line(output.out.printable(&line));
        }
        Ok(ExitCode::Done)
    }
}

/// The sources of one file, without everything that is not in it.
fn alone(file: &Path, session: &Session<'_>) -> Result<Sources, Failure> {
    if !file.exists() {
        return Err(Failure::configuration(format!("`{}` is not there", file.display())));
    }
    let mut sources = Sources::new(session.working_directory());
    sources.user_file = Some(file.to_owned());
    sources.project_directory = None;
    sources.more_tools = MoreTools::None;
    sources.home = session.environment().home();
    sources.environment = session.environment().variables();
    sources.environment.retain(|name, _| !name.starts_with(VARIABLE_PREFIX));
    Ok(sources)
}

fn print_json(
    loaded: &Result<Loaded, ConfigError>,
    unusable: Option<&Failure>,
    session: &Session<'_>,
    output: &mut Output,
) -> ExitCode {
    let ok = loaded.is_ok() && unusable.is_none();
    let unusable = unusable.map(ToString::to_string);
    let report = match loaded {
        Ok(loaded) => {
            let (warnings, files) = (loaded.warnings(), loaded.files());
            let hooks = hooks::listed(session, &loaded.config);
            Report { ok, unusable, problems: &[], warnings, files, hooks }
        }
        Err(error) => {
            let (problems, hooks) = (error.problems(), Vec::new());
            Report { ok, unusable, problems, warnings: &[], files: &[], hooks }
        }
    };
    output.json(&report);
    if ok { ExitCode::Done } else { ExitCode::Configuration }
}

fn print(loaded: &Loaded, output: &Output) {
    let read = |file: &&ConfigFile| file.state == FileState::Read;
    let files: Vec<String> = loaded
        .files()
        .iter()
        .filter(read)
        .map(|file| format!("{} ({})", file.path.display(), file.layer))
        .collect();
    let ok = output.out.paint(Style::Good, "ok");
    match files.as_slice() {
        [] => output.out.line(format_args!("{ok}: no files, so everything is as it is built in")),
        files => output.out.line(format_args!("{ok}: {}", files.join(", "))),
    }
}

//! `convoke mcp import`: the servers of another program.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use convoke::config::WORKSPACE;
use convoke::mcp::client::{
    ServerConfig, Severity, Transport, USER_HOME, WORKSPACE_FOLDER, import_in,
};
use convoke_core::ExitCode;

use super::add::{check_name, warn_of_secrets};
use super::place::{PlaceFlag, known, look, open, warn_of_variables};
use crate::failure::{self, Failure};
use crate::files;
use crate::output::{Output, spelled};
use crate::session::Session;

const AFTER_HELP: &str = "\
Reads what other programs write: `mcpServers` as in .mcp.json and in the settings of Claude, Cursor, Windsurf and \
Gemini CLI, `servers` and `mcp.servers` as in VS Code, and `mcp` as in OpenCode, with comments. An address \
without a `type` is one of streamable HTTP, unless it ends in /sse. Of what Claude keeps for directories, that of \
this one is taken. Everything that is left out is said. ${NAME} is kept as it is. A server whose name is taken is \
left out, unless --force puts it in the place of the other. Those programs start servers in the directory that is \
worked in, so what is taken says `cwd: workspace`; without it a program of yours runs in your home directory, \
which suits servers that do not look at the project.

To use such a file as it is, name it in tools.mcpFiles.

Examples:
  convoke mcp import ~/.claude.json --dry-run
  convoke mcp import .vscode/mcp.json --project
  curl -s https://example.org/mcp.json | convoke mcp import -

Exit codes:
  0 all were taken, 1 some were left out, 2 called wrongly, 7 the file is not right, 9 it cannot be
  changed";

/// Take over the servers of another program
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Import {
    /// The file, in JSON; - reads standard input
    #[arg(value_name = "FILE | -")]
    file: PathBuf,
    #[command(flatten)]
    place: PlaceFlag,
    /// Put servers in the place of others of their names
    #[arg(long)]
    force: bool,
    /// Only say what would be taken
    #[arg(long)]
    dry_run: bool,
}

/// Writes a server down as it is written here: where its program starts, and what editors know by other names.
pub(super) fn adapt(server: &mut ServerConfig, place: PlaceFlag) -> Result<(), String> {
    let folder = format!("${{{WORKSPACE_FOLDER}}}");
    let home = format!("${{{USER_HOME}}}");
    let in_home = |text: &mut String| *text = text.replace(&home, "${HOME}");
    let (command, args, env, cwd) = match &mut server.transport {
        Transport::Program { command, args, env, cwd } => (command, args, env, cwd),
        Transport::Http { url, headers } => {
            std::iter::once(url).chain(headers.values_mut()).for_each(in_home);
            return Ok(());
        }
    };
    let is_elsewhere = cwd.as_ref().is_some_and(|place| place.as_os_str() != folder.as_str());
    let start = match cwd.take().map(|place| place.to_string_lossy().into_owned()) {
        None => (!place.is_projects()).then(|| WORKSPACE.to_owned()),
        Some(mut text) => {
            in_home(&mut text);
            let below = text.strip_prefix(&folder).map(|below| format!("{WORKSPACE}{below}"));
            let is_relative = Path::new(&text).is_relative() && !text.starts_with("${");
            let below = below.or_else(|| is_relative.then(|| format!("{WORKSPACE}/{text}")));
            Some(below.unwrap_or(text))
        }
    };
    *cwd = start.map(Into::into);
    for text in std::iter::once(command).chain(args).chain(env.values_mut()) {
        in_home(text);
        if text.contains(&folder) && is_elsewhere {
            return Err(format!("{folder} can be written only where the program runs there"));
        }
        *text = text.replace(&folder, ".");
    }
    Ok(())
}

impl Import {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let config = known(session, output).unwrap_or_default();
        let (shown, text) = self.text(session)?;
        let read = import_in(&text, session.working_directory());
        let mut left_out = false;
        for problem in &read.problems {
            left_out |= problem.severity == Severity::Error;
            failure::doubt(output, &format!("{shown}: {problem}"));
        }
        if read.servers.is_empty() {
            return Err(Failure::failed(format!("there is no server to take from {shown}")));
        }
        let path = self.place.file(session)?;
        let mut edit = if self.dry_run { look(&path, session)? } else { open(&path, session)? };
        let mut taken = Vec::new();
        for mut server in read.servers {
            let adapted = adapt(&mut server, self.place);
            let name = &server.name;
            let is_here = edit.has(name)?;
            let is_known = config.tools.mcp_servers.iter().any(|server| server.name == *name);
            let why = match check_name(name).and(adapted) {
                Err(why) => Some(why),
                Ok(()) if (is_here || is_known) && !self.force => {
                    Some(format!("there is an MCP server `{name}` already"))
                }
                Ok(()) => None,
            };
            if let Some(why) = why {
                failure::doubt(output, &format!("{shown}: `{name}` is left out: {why}"));
                left_out = true;
                continue;
            }
            let login = read.logins.get(name).cloned().unwrap_or_default();
            let put = if is_here {
                edit.replace(&server, &login)
            } else {
                edit.add_with(&server, &login)
            };
            match put {
                Ok(()) => taken.push(server),
                Err(failure) => {
                    failure::doubt(output, &format!("{shown}: `{name}` is left out: {failure}"));
                    left_out = true;
                }
            }
        }
        if !self.dry_run {
            edit.write()?;
        }
        self.tell(&taken, &path.display().to_string(), session, output);
        Ok(if left_out { ExitCode::Failed } else { ExitCode::Done })
    }

    /// Reads what is to be taken over, and says what it is called.
    fn text(&self, session: &Session<'_>) -> Result<(String, String), Failure> {
        let (shown, text) = if self.file.as_os_str() == "-" {
            ("standard input".to_owned(), files::read_text(io::stdin().lock()))
        } else {
            (self.file.display().to_string(), files::read(&session.absolute(&self.file)))
        };
        let text = text
            .map_err(|error| Failure::usage(format!("{shown} cannot be read")).because(&error))?;
        Ok((shown, text))
    }

    fn tell(&self, taken: &[ServerConfig], path: &str, session: &Session<'_>, output: &mut Output) {
        for server in taken {
            output.out.line(spelled(&server.name));
            if !self.dry_run {
                warn_of_secrets(server, self.place, output);
            }
            warn_of_variables(server, session, output);
        }
        if !output.is_quiet() {
            let verb = if self.dry_run { "would go" } else { "went" };
            let count = crate::view::amounts::count(taken.len() as u64, "server");
            let line = format!("{count} {verb} into {path}");
            output.err.line(output.err.printable(&line));
        }
        if !self.dry_run {
            self.place.warn(output);
        }
    }
}

//! `convoke mcp add`: a server more.

use std::path::{Path, PathBuf};

use clap::Args;
use convoke::config::{Timeout, WORKSPACE};
use convoke::mcp::client::{ServerConfig, Transport, Trust};
use convoke_core::ExitCode;
use convoke_core::secret::holds_token;

use super::place::{PlaceFlag, open, warn_of_variables};
use crate::cli::key_and_value;
use crate::duration;
use crate::failure::{self, Failure};
use crate::output::Output;
use crate::session::Session;

const AFTER_HELP: &str = "\
A server is a program that is started here, written after --, or one at an address (--url). ${NAME} in what is \
written stands for a variable and is kept as it is: put keys there, and not into the file. Comments and layout \
of the file stay as they are.

A program of yours runs in your home directory, so that no project chooses what it runs. One that is given . or \
./… needs the directory that is worked in, and gets it (cwd: workspace); --workdir workspace says so for others. \
In a folder that is not trusted such a program is confined as a project's is.

Examples:
  convoke mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  convoke mcp add tracker --url https://mcp.example.com/mcp --header 'Authorization=Bearer ${TRACKER_TOKEN}'
  convoke mcp add db --project --env 'DATABASE_URL=${DATABASE_URL}' -- mcp-database
  convoke mcp test files";

/// Add a server
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Add {
    /// What it is called: letters, digits, _ and -
    name: String,
    /// Its address
    #[arg(
        long,
        value_name = "URL",
        conflicts_with = "command",
        required_unless_present = "command"
    )]
    url: Option<String>,
    /// A header of every request to the address; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = key_and_value, requires = "url")]
    header: Vec<(String, String)>,
    /// A variable that the program gets; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = key_and_value, conflicts_with = "url")]
    env: Vec<(String, String)>,
    /// The directory the program runs in: workspace for where Convoke works, or one of yours
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    workdir: Option<PathBuf>,
    /// How long a call may be silent
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Timeout>,
    /// Believe what it says about its tools: that one only reads, for instance
    #[arg(long)]
    trust: bool,
    /// Use only these of its tools, with * for any text; may be repeated
    #[arg(long, value_name = "TOOL")]
    include: Vec<String>,
    /// Do not use these of its tools; may be repeated
    #[arg(long, value_name = "TOOL")]
    exclude: Vec<String>,
    #[command(flatten)]
    place: PlaceFlag,
    /// Put it in the place of another of its name
    #[arg(long)]
    force: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Add {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        check_name(&self.name).map_err(Failure::usage)?;
        let config = session.load(output)?.config;
        let path = self.place.file(session)?;
        let server = self.server(session)?;
        let mut edit = open(&path, session)?;
        let is_here = edit.has(&self.name)?;
        let is_known = config.tools.mcp_servers.iter().any(|server| server.name == self.name);
        if (is_here || is_known) && !self.force {
            let name = &self.name;
            let message = format!("there is an MCP server `{name}` already");
            return Err(Failure::usage(message)
                .hint("`--force` puts this one in its place; `convoke mcp list` shows it"));
        }
        if is_here {
            edit.replace(&server)?;
        } else {
            edit.add(&server)?;
        }
        edit.write()?;
        if !output.is_quiet() {
            let line = format!("added {} to {}", self.name, path.display());
            output.err.line(output.err.printable(&line));
        }
        self.warn(&server, session, output);
        Ok(ExitCode::Done)
    }

    fn server(&self, session: &Session<'_>) -> Result<ServerConfig, Failure> {
        let transport = match (&self.url, self.command.split_first()) {
            (Some(url), _) => {
                let headers = self.header.iter().cloned().collect();
                Transport::Http { url: url.clone(), headers }
            }
            (None, Some((command, args))) => Transport::Program {
                command: command.clone(),
                args: args.to_vec(),
                env: self.env.iter().cloned().collect(),
                cwd: self.start(session),
            },
            (None, None) => return Err(Failure::usage("there is neither a program nor a --url")),
        };
        let mut server = ServerConfig::new(&self.name, transport)
            .include(self.include.clone())
            .exclude(self.exclude.clone());
        if let Some(timeout) = self.timeout {
            server.timeout = timeout.duration();
        }
        if self.trust {
            server.trust = Trust::Annotations;
        }
        Ok(server)
    }

    /// Returns what is written down about where the program runs. What is the project's runs in the workspace
    /// anyway.
    fn start(&self, session: &Session<'_>) -> Option<PathBuf> {
        let is_here = |word: &String| {
            matches!(word.as_str(), "." | "..") || word.starts_with("./") || word.starts_with("../")
        };
        match &self.workdir {
            Some(place) if place.starts_with(WORKSPACE) => Some(place.clone()),
            Some(place) => Some(session.absolute(place)),
            None if self.place.is_projects() => None,
            None => self.command.iter().any(is_here).then(|| WORKSPACE.into()),
        }
    }

    /// Says where the program runs, where that is not what its words seem to mean.
    fn tell_start(&self, server: &ServerConfig, session: &Session<'_>, output: &mut Output) {
        let Transport::Program { cwd, .. } = &server.transport else { return };
        let chosen = cwd.is_some() && self.workdir.is_none();
        if chosen && !output.is_quiet() {
            failure::hint(output, "it runs in the directory that is worked in (cwd: workspace)");
        }
        let is_file = |word: &&String| {
            Path::new(word).is_relative() && session.absolute(Path::new(word)).is_file()
        };
        let named = self.command.iter().find(is_file);
        if let Some(word) = named.filter(|_| cwd.is_none() && !self.place.is_projects()) {
            let message =
                format!("`{word}` is a file here, and the program runs in your home directory");
            failure::warning(output, &message);
            failure::hint(output, "write the whole path, or pass `--workdir workspace`");
        }
    }

    fn warn(&self, server: &ServerConfig, session: &Session<'_>, output: &mut Output) {
        warn_of_secrets(server, self.place, output);
        warn_of_variables(&text_of(server), session, output);
        self.tell_start(server, session, output);
        self.place.warn(output);
        if !output.is_quiet() {
            failure::hint(
                output,
                &format!("`convoke mcp test {}` says whether it works", self.name),
            );
        }
    }
}

/// Says whether a server can have this name.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    const LONGEST: usize = 64;
    let is_usual = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if !name.is_empty() && name.len() <= LONGEST && name.chars().all(is_usual) {
        return Ok(());
    }
    Err(format!("`{name}` is no name of a server: it has letters, digits, _ and -, at most 64"))
}

/// Returns everything in a server in which variables may stand.
pub(super) fn text_of(server: &ServerConfig) -> String {
    let texts: Vec<&str> = match &server.transport {
        Transport::Program { command, args, env, .. } => {
            let words = std::iter::once(command).chain(args).chain(env.values());
            words.map(String::as_str).collect()
        }
        Transport::Http { url, headers } => {
            std::iter::once(url).chain(headers.values()).map(String::as_str).collect()
        }
    };
    texts.join("\n")
}

/// Says which values look like keys and are now in a file that others get to see.
pub(super) fn warn_of_secrets(server: &ServerConfig, place: PlaceFlag, output: &mut Output) {
    if !place.is_projects() {
        return;
    }
    let (values, key) = match &server.transport {
        Transport::Program { env, .. } => (env, "env"),
        Transport::Http { headers, .. } => (headers, "headers"),
    };
    for (name, value) in values {
        let looks_secret = convoke_tool::looks_like_credential(name)
            || name.eq_ignore_ascii_case("authorization")
            || holds_token(value);
        if looks_secret && !value.contains("${") {
            failure::doubt(
                output,
                &format!(
                    "the value of {key}.{name} is now in the project's file, for everybody to read"
                ),
            );
            failure::hint(output, "write `${NAME}` there, and set the variable");
        }
    }
}

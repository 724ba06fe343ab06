//! `convoke mcp add` and `add-json`: a server more.

mod check;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use convoke::config::{Timeout, WORKSPACE};
use convoke::mcp::client::{
    ImportedLogin, ServerConfig, Severity, Transport, Trust, import, plain_address,
};
use convoke_core::ExitCode;
use convoke_core::secret::holds_token;
use serde_json::{Value, json};

use self::check::{
    address_holds_key, address_problem, begins_as_address, doubts, header, holds_key, no_program,
    variable,
};
use super::advice::advice;
use super::import::adapt;
use super::place::{PlaceFlag, known, open, warn_of_variables};
use super::test::{look, offers};
use super::{find, runtime_for};
use crate::duration;
use crate::failure::{self, Failure};
use crate::output::Output;
use crate::session::Session;

const AFTER_HELP: &str = "\
A server is a program that is started here, or one at an address. After --, all words are the program's; without it, \
words that are options of this command are not. ${NAME} in what is written stands for a variable and is kept as it is: \
put keys there, and not into the file. Comments and layout of the file stay as they are.

A program of yours runs in your home directory, so that no project chooses what it runs. One that is given . or \
./… needs the directory that is worked in, and gets it (cwd: workspace); --workdir workspace says so for others. \
In a folder that is not trusted such a program is confined as a project's is.

Examples:
  convoke mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  convoke mcp add tracker https://mcp.example.com/mcp --header 'Authorization: Bearer ${TRACKER_TOKEN}'
  convoke mcp add db --project --env 'DATABASE_URL=${DATABASE_URL}' -- mcp-database
  convoke mcp test files

Exit codes:
  0 it was added, 1 it was added, and the test you asked for failed or could not be made, 2 called wrongly,
  7 the file is not right, 9 it cannot be changed";

const AFTER_JSON: &str = "\
Takes what other programs have in a file for one server: what stands behind its name in `mcpServers`.

Examples:
  convoke mcp add-json time '{\"command\": \"mcp-server-time\", \"args\": [\"--local-timezone\", \"UTC\"]}'
  convoke mcp add-json tracker '{\"type\": \"http\", \"url\": \"https://mcp.example.com/mcp\"}'

Exit codes:
  0 it was added, 1 it was added, and the test you asked for failed or could not be made, 2 called wrongly,
  7 the file is not right, 9 it cannot be changed";

/// Add a server
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Add {
    /// What it is called: letters, digits, _ and -
    name: String,
    /// Its address
    #[arg(long, value_name = "URL", conflicts_with = "target")]
    url: Option<String>,
    /// How it is reached, where that is to be checked
    #[arg(long, value_name = "HOW", value_parser = ["stdio", "http"])]
    transport: Option<String>,
    /// A header of every request to the address, as NAME=VALUE or 'NAME: VALUE'; may be repeated
    #[arg(long, value_name = "HEADER", value_parser = header)]
    header: Vec<(String, String)>,
    /// A variable that the program gets; may be repeated
    #[arg(long, short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// The directory the program runs in: workspace for where Convoke works, or one of yours
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    workdir: Option<PathBuf>,
    /// How long a call may be silent
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Timeout>,
    /// How long it may take to start
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    start_timeout: Option<Timeout>,
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
    /// Start it at once, and say what it offers; in a terminal that is done anyway
    #[arg(long)]
    test: bool,
    /// The program, or the address
    #[arg(value_name = "PROGRAM | URL")]
    target: Option<String>,
    /// The arguments of the program
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Add a server, as other programs write it
#[derive(Debug, Args)]
#[command(after_help = AFTER_JSON)]
pub(crate) struct AddJson {
    /// What it is called: letters, digits, _ and -
    name: String,
    /// The server, as a JSON object
    json: String,
    #[command(flatten)]
    place: PlaceFlag,
    /// Put it in the place of another of its name
    #[arg(long)]
    force: bool,
    /// Start it at once, and say what it offers; in a terminal that is done anyway
    #[arg(long)]
    test: bool,
}

impl AddJson {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        check_name(&self.name).map_err(Failure::usage)?;
        let entry: Value = serde_json::from_str(&self.json)
            .map_err(|error| Failure::usage("this is not JSON").because(&error))?;
        let read = import(&json!({ "mcpServers": { (self.name.as_str()): entry } }).to_string());
        for problem in &read.problems {
            let message = problem.to_string();
            let message = message.trim_start_matches("mcpServers.");
            if problem.severity == Severity::Error {
                return Err(Failure::usage(message));
            }
            failure::doubt(output, message);
        }
        let server = read.servers.into_iter().next();
        let mut server = server.ok_or_else(|| Failure::usage("there is no server in it"))?;
        let login = read.logins.get(&server.name).cloned().unwrap_or_default();
        let is_said = matches!(&server.transport, Transport::Program { cwd: Some(_), .. });
        adapt(&mut server, self.place).map_err(Failure::usage)?;
        put(&server, &login, self.place, self.force, session, output)?;
        tell_start(&server, self.place, is_said, session, output);
        finish(&server, self.place, self.test, session, output)
    }
}

impl Add {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        check_name(&self.name).map_err(Failure::usage)?;
        let server = self.server(session)?;
        put(&server, &ImportedLogin::default(), self.place, self.force, session, output)?;
        tell_start(&server, self.place, self.workdir.is_some(), session, output);
        finish(&server, self.place, self.test, session, output)
    }

    fn server(&self, session: &Session<'_>) -> Result<ServerConfig, Failure> {
        let transport = match (&self.url, &self.target) {
            (Some(url), _) => self.remote(url)?,
            (None, Some(target)) if begins_as_address(target) => self.remote(target)?,
            (None, Some(command)) => self.program(command, session)?,
            (None, None) => {
                let name = &self.name;
                return Err(Failure::usage("there is neither a program nor an address")
                    .hint(format!("`convoke mcp add {name} -- PROGRAM ARGUMENTS…` is a program"))
                    .hint(format!("`convoke mcp add {name} https://…` is one at an address")));
            }
        };
        let mut server = ServerConfig::new(&self.name, transport)
            .include(self.include.clone())
            .exclude(self.exclude.clone());
        if let Some(timeout) = self.timeout {
            server.timeout = timeout.duration();
        }
        if let Some(timeout) = self.start_timeout {
            server.start_timeout = timeout.duration();
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
            None => {
                self.target.iter().chain(&self.arguments).any(is_here).then(|| WORKSPACE.into())
            }
        }
    }

    fn remote(&self, url: &str) -> Result<Transport, Failure> {
        if let Some(problem) = address_problem(url) {
            return Err(Failure::usage(problem));
        }
        let is_program = self.transport.as_deref() == Some("stdio");
        let for_programs = [
            ("--transport stdio", is_program),
            ("--env", !self.env.is_empty()),
            ("--workdir", self.workdir.is_some()),
        ];
        refuse(&for_programs, "is for programs, and this is an address")?;
        if let Some(word) = self.arguments.first() {
            let message = format!("an address takes no arguments, and there is `{word}`");
            return Err(Failure::usage(message).hint("options of this command begin with --"));
        }
        let headers = self.header.iter().cloned().collect();
        Ok(Transport::Http { url: plain_address(url), headers })
    }

    fn program(&self, command: &str, session: &Session<'_>) -> Result<Transport, Failure> {
        let start = self.start(session);
        let is_said = self.transport.as_deref() == Some("stdio") && !command.trim().is_empty();
        if let Some(failure) = no_program(command, start.as_deref(), session).filter(|_| !is_said) {
            return Err(failure);
        }
        let is_remote = self.transport.as_deref() == Some("http");
        let for_addresses =
            [("--transport http", is_remote), ("--header", !self.header.is_empty())];
        refuse(&for_addresses, "is for addresses, and this is a program")?;
        Ok(Transport::Program {
            command: command.to_owned(),
            args: self.arguments.clone(),
            env: self.env.iter().cloned().collect(),
            cwd: start,
        })
    }
}

/// Says no to what was given and does not go with the rest.
fn refuse(given: &[(&str, bool)], why: &str) -> Result<(), Failure> {
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(Failure::usage(format!("`{flag}` {why}"))),
        None => Ok(()),
    }
}

/// Writes a server into a file, and says what there is to know about it.
fn put(
    server: &ServerConfig,
    login: &ImportedLogin,
    place: PlaceFlag,
    force: bool,
    session: &Session<'_>,
    output: &mut Output,
) -> Result<(), Failure> {
    let name = &server.name;
    let config = known(session, output).unwrap_or_default();
    let path = place.file(session)?;
    let mut edit = open(&path, session)?;
    let is_here = edit.has(name)?;
    let is_known = config.tools.mcp_servers.iter().any(|server| server.name == *name);
    if is_here && !is_known && !force && !place.is_projects() && edit.only_switches(name)? {
        return Err(switched_off(name, &path));
    }
    if (is_here || is_known) && !force {
        let message = format!("there is an MCP server `{name}` already");
        return Err(Failure::usage(message)
            .hint("`--force` puts this one in its place; `convoke mcp list` shows it"));
    }
    if is_here {
        edit.replace(server, login)?;
    } else {
        edit.add_with(server, login)?;
    }
    edit.write()?;
    if !output.is_quiet() {
        let line = format!("added {name} to {}", path.display());
        output.err.line(output.err.printable(&line));
    }
    for doubt in doubts(server, session) {
        failure::warning(output, &doubt);
    }
    warn_of_secrets(server, place, output);
    warn_of_variables(server, session, output);
    Ok(())
}

/// Says no to the name of a server that is switched off and is written elsewhere: a project's, as a rule.
fn switched_off(name: &str, path: &Path) -> Failure {
    let shown = path.display();
    Failure::usage(format!("{shown} switches off an MCP server `{name}` that another file has"))
        .hint(format!(
            "take another name, or take the switch out by `convoke mcp enable {name}`; `--force` puts this server in \
             its place, also where a project has one of that name"
        ))
}

/// Says where the program runs, where that is not what its words seem to mean.
fn tell_start(
    server: &ServerConfig,
    place: PlaceFlag,
    is_said: bool,
    session: &Session<'_>,
    output: &mut Output,
) {
    let Transport::Program { command, args, cwd, .. } = &server.transport else { return };
    if cwd.is_some() && !is_said && !output.is_quiet() {
        failure::hint(output, "it runs in the directory that is worked in (cwd: workspace)");
    }
    let is_file = |word: &&String| {
        Path::new(word).is_relative() && session.absolute(Path::new(word)).is_file()
    };
    let named = std::iter::once(command).chain(args).find(is_file);
    if let Some(word) = named.filter(|_| cwd.is_none() && !place.is_projects()) {
        let message =
            format!("`{word}` is a file here, and the program runs in your home directory");
        failure::warning(output, &message);
        failure::hint(output, "write the whole path, or pass `--workdir workspace`");
    }
}

/// Asks the server what it offers, where somebody wants to know, or says how to.
fn finish(
    server: &ServerConfig,
    place: PlaceFlag,
    is_wanted: bool,
    session: &Session<'_>,
    output: &mut Output,
) -> Result<ExitCode, Failure> {
    place.warn(output);
    let name = &server.name;
    let is_watched = output.err.is_terminal() && !output.is_quiet();
    let tried = (is_wanted || is_watched).then(|| try_out(name, place, session, output));
    let works = match tried.transpose()? {
        Some(Tried::Works) => true,
        Some(Tried::Fails) => false,
        untried => {
            if let Some(Tried::Not(why)) = untried.filter(|_| is_wanted) {
                failure::doubt(output, &format!("it was not tried: {why}"));
                why.hints().for_each(|hint| failure::hint(output, hint));
            }
            failure::hint(output, &format!("`convoke mcp test {name}` says whether it works"));
            false
        }
    };
    // It is there in any case; a script that has it tried goes by how that went.
    Ok(if is_wanted && !works { ExitCode::Failed } else { ExitCode::Done })
}

/// What came of trying a server.
enum Tried {
    Works,
    Fails,
    /// It could not be tried: one of a project that is not trusted cannot, nor one that lacks a variable.
    Not(Failure),
}

/// Starts a server that was just added, and says what it offers. That it does not work undoes nothing.
fn try_out(
    name: &str,
    place: PlaceFlag,
    session: &Session<'_>,
    output: &mut Output,
) -> Result<Tried, Failure> {
    const PATIENCE: Duration = Duration::from_secs(20);
    let runtime = match runtime_for(name, session, output) {
        Ok(runtime) => runtime,
        Err(why) => return Ok(Tried::Not(why)),
    };
    let (servers, listed) = match find(name, &runtime) {
        Ok(found) => found,
        Err(_) if place.is_projects() && !runtime.is_server_left_out(name) => {
            let why = "what the project's file says now is not trusted";
            return Ok(Tried::Not(Failure::configuration(why)));
        }
        Err(why) => return Ok(Tried::Not(why)),
    };
    if !output.is_quiet() {
        let seconds = PATIENCE.as_secs();
        output.err.line(format_args!("asking it what it offers, for at most {seconds} s"));
    }
    let looked = look(name, servers, PATIENCE)?;
    match &looked.result {
        Ok(status) => {
            let line = format!("it works, and offers {}", offers(status));
            output.err.line(output.err.printable(&line));
        }
        Err(error) => {
            failure::doubt(output, &runtime.secrets().hide(&error.message));
            for hint in advice(listed, error, &runtime, session) {
                failure::hint(output, &hint);
            }
            failure::hint(
                output,
                &format!("it stays in the file; `convoke mcp test {name}` tries it again"),
            );
        }
    }
    Ok(if looked.result.is_ok() { Tried::Works } else { Tried::Fails })
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

/// Says which values look like keys and are now in a file that others get to see, or where others see them anyway.
pub(super) fn warn_of_secrets(server: &ServerConfig, place: PlaceFlag, output: &mut Output) {
    let server_name = &server.name;
    let in_the_open = match &server.transport {
        Transport::Program { args, .. } => {
            let message = format!(
                "what looks like a key is among the arguments of `{server_name}`, where other programs of this machine \
                 see it"
            );
            let hint = "pass it by `--env 'NAME=${NAME}'`, if the program reads that";
            holds_key(args).then_some((message, hint))
        }
        Transport::Http { url, .. } => {
            let message = format!(
                "what looks like a key is in the address of `{server_name}`, which ends in logs"
            );
            let hint = "pass it by `--header`, if the server takes that";
            address_holds_key(url).then_some((message, hint))
        }
    };
    if let Some((message, hint)) = in_the_open {
        failure::warning(output, &message);
        failure::hint(output, &format!("write `${{NAME}}` there, and set the variable; or {hint}"));
    }
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
                    "`{server_name}`: the value of {key}.{name} is now in the project's file, for everybody to read"
                ),
            );
            failure::hint(output, "write `${NAME}` there, and set the variable");
        }
    }
}

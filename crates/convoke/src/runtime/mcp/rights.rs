//! With whose rights a server runs.
//!
//! A program of the user's has the user's rights, so what is worked in must not choose what runs: it could be
//! hostile, and what a model is made to do could write there. A program, or a file that it is given, which lies
//! there makes the server one of the project's. So does the directory it starts in where nobody trusted that:
//! many a program takes from there what it runs (`python3 -m`, `npx`, `uvx`). An address of a project's is asked
//! from here, so it has to be one that the project's programs could ask.

use convoke_mcp::auth;
use convoke_mcp::client::{ServerConfig, Transport};
use convoke_sandbox::{Network, Reach};
use url::Url;

use super::{Around, ListedServer};
use crate::config::{Author, SandboxMode};
use crate::written::WrittenWord;

/// What a server may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    /// What the user may.
    Users,
    /// What programs may.
    Programs,
    /// It is asked at addresses that lie here.
    Asked(auth::Reach),
    /// Nothing, for this reason.
    None(String),
}

/// Says what each server may do, and what there is to tell about it.
pub(super) fn of(listed: &[ListedServer], around: Around<'_>) -> Judged {
    let search_path = around.context.environment().inherited().remove("PATH");
    let mut judge = Judge { around, search_path, warnings: Vec::new(), here: Vec::new() };
    let rights = listed.iter().map(|server| judge.rights(server)).collect();
    let Judge { warnings, here, .. } = judge;
    Judged { rights, warnings, here }
}

/// What servers may do, and what there is to tell about it.
pub(super) struct Judged {
    /// In the order of the servers.
    pub(super) rights: Vec<Rights>,
    pub(super) warnings: Vec<String>,
    /// Names of the user's servers that start in a folder that is not trusted.
    pub(super) here: Vec<String>,
}

struct Judge<'a> {
    around: Around<'a>,
    /// Where programs are looked for.
    search_path: Option<String>,
    warnings: Vec<String>,
    /// Names of the user's servers that start in a folder that is not trusted.
    here: Vec<String>,
}

impl Judge<'_> {
    fn rights(&mut self, server: &ListedServer) -> Rights {
        let ListedServer { config, author, .. } = server;
        match (&config.transport, author) {
            (Transport::Program { .. }, Author::Project) => Rights::Programs,
            (Transport::Program { .. }, Author::User) => self.program(server),
            (Transport::Http { .. }, Author::User) => Rights::Users,
            (Transport::Http { url, .. }, Author::Project) => match self.reach(url) {
                Ok(reach) => Rights::Asked(reach),
                Err(why) => {
                    let name = &config.name;
                    self.warn(config, format!("the MCP server `{name}` is not asked: {why}"));
                    Rights::None(why)
                }
            },
        }
    }

    /// Says it of a server that is used.
    fn warn(&mut self, config: &ServerConfig, message: String) {
        if config.enabled {
            self.warnings.push(message);
        }
    }

    fn program(&mut self, server: &ListedServer) -> Rights {
        let ListedServer { config, file, .. } = server;
        let Transport::Program { command, args, env, cwd } = &config.transport else {
            return Rights::Users;
        };
        let workspace = self.around.context.working_directory();
        let directory = cwd.as_deref().unwrap_or(workspace);
        let words: Vec<String> = std::iter::once(command).chain(args).cloned().collect();
        let search_path = env.get("PATH").or(self.search_path.as_ref()).map(String::as_str);
        // What a file of another program names in full may have been put together here.
        let author = if file.is_none() { Author::User } else { Author::Project };
        let found = self.around.folder.find(&words, author, directory, search_path);
        let (name, is_trusted) = (&config.name, self.around.is_trusted());
        match found {
            Some(WrittenWord { is_program: true, file }) if !is_trusted => {
                let file = file.display();
                let why = format!(
                    "`{file}` lies in a folder that is not trusted; trust the folder, or name the program in \
                     full in your own configuration"
                );
                self.warn(config, format!("the MCP server `{name}` is not started: {why}"));
                Rights::None(why)
            }
            Some(WrittenWord { file, .. }) => {
                let file = file.display();
                self.warn(config, format!(
                    "the MCP server `{name}` is given `{file}`, which tools and programs can write, so it is \
                     confined as they are, and not believed; name the file in full in your own configuration \
                     to give it your rights"
                ));
                Rights::Programs
            }
            None if !is_trusted && self.around.folder.holds(directory) => {
                if config.enabled {
                    self.here.push(name.clone());
                }
                Rights::Programs
            }
            None => Rights::Users,
        }
    }

    /// Says at which addresses a project's server is asked: where the project's programs could ask it, and near us
    /// only if somebody named the place.
    fn reach(&self, url: &str) -> Result<auth::Reach, String> {
        let parsed = Url::parse(url).ok();
        let place =
            parsed.as_ref().and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
        // That it is none is said when it is asked.
        let Some((host, port)) = place else { return Ok(auth::Reach::Public) };
        let config = self.around.config;
        let network = match config.sandbox.mode {
            SandboxMode::Off => Network::All,
            SandboxMode::Auto | SandboxMode::Required => config.sandbox.network(),
        };
        match (network.reach(host, port), &network) {
            (Reach::Nowhere, network) => {
                let why = match network {
                    Network::Hosts(_) => format!("`{host}:{port}` is not among your sandbox.hosts"),
                    _ => "what is the project's may talk to nobody (sandbox.network: none)"
                        .to_owned(),
                };
                Err(format!(
                    "{why}; to use it, add it to your own configuration with `convoke mcp add`"
                ))
            }
            (Reach::Public, _) => Ok(auth::Reach::Public),
            (Reach::Anywhere, Network::All) if !self.is_named(host, port) => {
                Ok(auth::Reach::Public)
            }
            (Reach::Anywhere, _) => Ok(auth::Reach::Anywhere),
        }
    }

    /// Tells whether the user lets tools ask this host wherever it lies.
    fn is_named(&self, host: &str, port: u16) -> bool {
        let http = &self.around.config.tools.http;
        let with_port = format!("{host}:{port}");
        let is_it =
            |known: &String| [host, &with_port].iter().any(|one| known.eq_ignore_ascii_case(one));
        http.allow_private || http.allowed_hosts.iter().any(is_it)
    }
}

/// Says it of servers of the user's that start in a folder that is not trusted.
pub(super) fn untrusted(names: &[&str]) -> Option<String> {
    let (servers, start, are, them) = match names.len() {
        0 => return None,
        1 => ("server", "starts", "it is", "it"),
        _ => ("servers", "start", "they are", "them"),
    };
    let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Some(format!(
        "the MCP {servers} {names} {start} in a folder that is not trusted, so {are} confined as programs are, and \
         not believed; trust the folder, or give {them} a `cwd` of your own"
    ))
}

//! What is shown of a project before it is trusted: all that its files would decide, and nothing that they could make
//! look like something else.
//!
//! Each text is on one line, whole, with everything spelled out that would break or steer the line. On a terminal, what
//! does not fit goes on below, behind a margin that no text can leave.

use std::path::{Path, PathBuf};

use convoke::PROJECT_SERVERS;
use convoke::agent::files::{list, usual_directories};
use convoke::config::{Author, Grant, Grants, Problem, Sources, Trust, VARIABLE_PREFIX, load};
use convoke::mcp::client::{ServerConfig, Transport, import};

use crate::failure::{Failure, headline};
use crate::files;
use crate::output::{Output, folded, spelled, word};
use crate::session::Session;
use crate::view::amounts;

/// What stands before all of a text but its beginning, where it takes more than a line of the terminal.
const MARGIN: &str = "    | ";

/// Says what the file decides once it is trusted.
pub(super) fn tell(file: &Path, grants: &Grants, servers: &ServerFiles, output: &Output) {
    let shown = file.display();
    let line = |text: &str| {
        for part in parts(text, output.err.width_now()) {
            output.err.line(part);
        }
    };
    for agents in usual_directories(file.parent(), None, None) {
        let files = list(&agents).len() as u64;
        if files > 0 {
            let (path, format) = (agents.path.display(), agents.format.as_str());
            let files = amounts::count(files, "file");
            line(&format!(
                "the agents in {path} ({files}, written as for {format}) can then be called, also after they \
                 were changed"
            ));
        }
    }
    servers.told().iter().for_each(|told| line(told));
    if !file.exists() {
        return line("there is no convoke.yml; one that comes later is not trusted with it");
    }
    if grants.granted.is_empty() {
        return line(&format!("{shown} sets harmless values only"));
    }
    line(&format!("{shown} then decides:"));
    for Grant { key, value, .. } in &grants.granted {
        line(&format!("  {key}: {value}"));
    }
}

/// Breaks a text into the lines of a terminal.
fn parts(text: &str, width: Option<usize>) -> Vec<String> {
    let text = spelled(text);
    let Some(width) = width else { return vec![text] };
    let pieces = folded(&text, width.saturating_sub(MARGIN.len() + 1));
    let margins = std::iter::once("").chain(std::iter::repeat(MARGIN));
    pieces.iter().zip(margins).map(|(piece, margin)| format!("{margin}{piece}")).collect()
}

/// The files with MCP servers that are read once a project is trusted.
#[derive(Debug)]
pub(super) struct ServerFiles {
    /// The one that is read without being listed.
    usual: PathBuf,
    /// Those that the project lists, with its variables replaced as they are now; or why nobody can tell.
    listed: Result<Vec<PathBuf>, Vec<Problem>>,
}

impl ServerFiles {
    /// Finds them, as whoever loads the configuration does.
    pub(super) fn of(file: &Path, session: &Session<'_>) -> Result<Self, Failure> {
        let folder = file.parent().unwrap_or(file);
        let usual = folder.join(PROJECT_SERVERS);
        // One further up is another project's.
        if !file.exists() {
            return Ok(Self { usual, listed: Ok(Vec::new()) });
        }
        let mut all = session.sources()?;
        (all.project_directory, all.trust) = (Some(folder.to_owned()), Trust::Trusted);
        // What the user says today may stand in the way of what the project lists, and may not tomorrow.
        let mut alone = Sources::new(folder);
        (alone.home, alone.trust) = (all.home.clone(), Trust::Trusted);
        alone.environment.clone_from(&all.environment);
        alone.environment.retain(|name, _| !name.starts_with(VARIABLE_PREFIX));
        let loaded = load(&alone).or_else(|_| load(&all));
        let listed = loaded.map(|loaded| {
            let files = loaded.config.server_files_by_author();
            let files = files.filter(|(_, author)| *author == Author::Project);
            files.map(|(path, _)| path.to_owned()).collect()
        });
        let listed = listed.map_err(|error| error.problems().to_vec());
        Ok(Self { usual, listed })
    }

    /// Tells whether there are any, or may be.
    pub(super) fn is_some(&self) -> bool {
        self.usual.exists() || self.listed.as_ref().map_or(true, |listed| !listed.is_empty())
    }

    /// Says which servers are in them, or that they are not there.
    fn told(&self) -> Vec<String> {
        let mut told = servers(&self.usual).unwrap_or_default();
        match &self.listed {
            Ok(listed) => told.extend(listed.iter().flat_map(|path| {
                servers(path).unwrap_or_else(|| {
                    let shown = path.display();
                    vec![format!(
                        "{shown} is listed and is not there; once it is, it is used as well"
                    )]
                })
            })),
            Err(problems) => {
                told.push(
                    "which files with MCP servers are used as well cannot be told:".to_owned(),
                );
                told.extend(problems.iter().map(|problem| format!("  {}", headline(problem))));
            }
        }
        told
    }
}

/// Says which MCP servers the project has in a file of their own, if it is there.
fn servers(path: &Path) -> Option<Vec<String>> {
    let shown = path.display();
    let text = match files::read_if_there(path) {
        Ok(text) => text?,
        Err(error) => return Some(vec![format!("{shown} cannot be read: {error}")]),
    };
    let servers = import(&text).servers;
    let count = amounts::count(servers.len() as u64, "MCP server");
    let head = format!(
        "{shown} ({count}) is used as well, also after it was changed; its programs run confined, and its \
         addresses are asked where sandbox.network lets programs go:"
    );
    Some(std::iter::once(head).chain(servers.iter().flat_map(server)).collect())
}

/// Says how a server is reached and what it gets. Nothing is masked: a project has no secrets of the user's, and a
/// variable may say what a program runs.
fn server(server: &ServerConfig) -> Vec<String> {
    let (how, more) = match &server.transport {
        Transport::Program { command, args, env, cwd } => {
            let words = std::iter::once(command).chain(args).map(|text| word(text));
            let place = cwd.iter().map(|place| format!("in {}", word(&place.to_string_lossy())));
            let variables = env.iter().map(|(name, value)| format!("env {}", pair(name, value)));
            (words.collect::<Vec<_>>().join(" "), place.chain(variables).collect::<Vec<_>>())
        }
        Transport::Http { url, headers } => {
            let header =
                |(name, value): (&String, &String)| format!("header {}", pair(name, value));
            (word(url), headers.iter().map(header).collect())
        }
    };
    let first = format!("  {}: {how}", server.name);
    std::iter::once(first).chain(more.iter().map(|text| format!("      {text}"))).collect()
}

fn pair(name: &str, value: &str) -> String {
    format!("{}={}", word(name), word(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_the_margin() {
        let text = format!("  fmt: sh -c \"true{}\n  docs: node docs.js\"", " ".repeat(200));
        let shown = parts(&text, Some(60));
        assert!(shown.len() > 3, "{shown:?}");
        assert!(shown.iter().skip(1).all(|line| line.starts_with(MARGIN)), "{shown:?}");
        assert!(shown.iter().all(|line| line.len() < 60 && !line.contains('\n')), "{shown:?}");
        let whole: String = shown.iter().map(|line| line.trim_start_matches(MARGIN)).collect();
        assert_eq!(whole, spelled(&text));
        assert_eq!(parts(&text, None), [spelled(&text)], "a pipe gets it in one line");
    }

    #[test]
    fn a_variable_with_an_odd_name_is_no_other() {
        assert_eq!(pair("A", "--require x"), r#"A="--require x""#);
        assert_eq!(pair("A=b c", ""), r#""A=b c"="""#);
    }
}

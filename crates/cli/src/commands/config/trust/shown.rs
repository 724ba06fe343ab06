//! What is shown of a project before it is trusted: all that its files would decide, and nothing that they could make
//! look like something else.
//!
//! Each text is on one line, whole, with everything spelled out that would break or steer the line. On a terminal, what
//! does not fit goes on below, behind a margin that no text can leave.

use std::path::{Path, PathBuf};

use convoke::PROJECT_SERVERS;
use convoke::agent::files::{list, usual_directories};
use convoke::config::{Grant, Grants};
use convoke::mcp::client::{ServerConfig, Transport, import};

use crate::files;
use crate::output::{Output, folded, spelled, word};
use crate::view::amounts;

/// What stands before all of a text but its beginning, where it takes more than a line of the terminal.
const MARGIN: &str = "    | ";

/// Says what the file decides once it is trusted.
pub(super) fn tell(file: &Path, grants: &Grants, output: &Output) {
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
    for told in server_files(file, grants).iter().flat_map(|path| servers(path)) {
        line(&told);
    }
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

/// Returns the files with MCP servers that are read once the project is trusted: the usual one, and those that
/// the project lists.
fn server_files(file: &Path, grants: &Grants) -> Vec<PathBuf> {
    let root = file.parent().unwrap_or(file);
    let listed = grants.granted.iter().filter(|grant| grant.key.starts_with("tools.mcpFiles["));
    let listed = listed.filter_map(|grant| grant.value.as_str()).map(|path| root.join(path));
    std::iter::once(root.join(PROJECT_SERVERS)).chain(listed).collect()
}

/// Says which MCP servers the project has in a file of their own.
fn servers(path: &Path) -> Vec<String> {
    let shown = path.display();
    let text = match files::read_if_there(path) {
        Ok(Some(text)) => text,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![format!("{shown} cannot be read: {error}")],
    };
    let servers = import(&text).servers;
    let count = amounts::count(servers.len() as u64, "MCP server");
    let head = format!(
        "{shown} ({count}) is used as well, also after it was changed; its programs run confined, and its \
         addresses are asked where sandbox.network lets programs go:"
    );
    std::iter::once(head).chain(servers.iter().flat_map(server)).collect()
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

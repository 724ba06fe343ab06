//! What is shown of a project before it is trusted: all that its files would decide, and nothing that they could make
//! look like something else.
//!
//! Each text is on one line, whole, with everything spelled out that would break or steer the line. On a terminal, what
//! does not fit goes on below, behind a margin that no text can leave.

use std::path::Path;

use convoke::config::{EntryContent, EntryState, ProjectEntry};
use convoke::mcp::client::{ServerConfig, Transport};

use crate::output::{Output, folded, spelled, word};

/// What stands before all of a text but its beginning, where it takes more than a line of the terminal.
const MARGIN: &str = "    | ";

/// The entries that a user looks at.
pub(super) struct Shown<'a> {
    pub(super) entries: &'a [ProjectEntry],
    /// Whether entries that are trusted already are shown, too.
    pub(super) all: bool,
    /// Whether the project was trusted before, so that what is new is told from what was seen.
    pub(super) is_listed: bool,
}

impl Shown<'_> {
    /// Says what the project decides once it is trusted.
    pub(super) fn tell(&self, output: &Output) {
        let line = |text: &str| {
            for part in parts(text, output.err.width_now()) {
                output.err.line(part);
            }
        };
        let is_shown = |entry: &&ProjectEntry| self.all || entry.state != EntryState::Trusted;
        let shown: Vec<&ProjectEntry> = self.entries.iter().filter(is_shown).collect();
        let mut head = None;
        for entry in &shown {
            let next = headline(entry);
            if head.as_ref() != Some(&next) {
                line(&next);
                head = Some(next);
            }
            let mark = if self.is_listed { mark(entry.state) } else { "" };
            for text in lines(entry, mark) {
                line(&text);
            }
        }
        let hidden = self.entries.len() - shown.len();
        match (shown.is_empty(), hidden) {
            (true, 0) => line("the files of this project set harmless values only"),
            (_, 0) => {}
            (_, count) => line(&format!("trusted already, shown by --all: {count}")),
        }
    }
}

const fn mark(state: EntryState) -> &'static str {
    match state {
        EntryState::New => "new: ",
        EntryState::Changed => "changed: ",
        EntryState::Trusted => "trusted: ",
    }
}

/// Says which file an entry is in, and what follows from it.
fn headline(entry: &ProjectEntry) -> String {
    match &entry.content {
        EntryContent::Server { file, .. } => format!(
            "{} is used as well; its programs run confined, and its addresses are asked where sandbox.network \
             lets programs go:",
            file.display()
        ),
        EntryContent::Agent { file, .. } => {
            let place = file.parent().unwrap_or(file);
            format!("the agents in {} can then be called:", place.display())
        }
        _ => "convoke.yml then decides:".to_owned(),
    }
}

/// Says what an entry is: on its first line, and below it what a server gets and which files are covered.
fn lines(entry: &ProjectEntry, mark: &str) -> Vec<String> {
    let mut lines = match &entry.content {
        EntryContent::Setting { key, value } => vec![format!("  {mark}{key}: {value}")],
        EntryContent::Server { server: one, .. } => server(one, mark),
        EntryContent::Agent { name, rights, file } => {
            let file = file.file_name().map_or(file.as_path(), Path::new).display();
            vec![format!("  {mark}{} ({file}): {rights}", word(name))]
        }
        _ => vec![format!("  {mark}{}", entry.label)],
    };
    let files = entry.files.iter();
    lines.extend(files.map(|file| format!("      with {}", word(&file.to_string_lossy()))));
    lines
}

/// Breaks a text into the lines of a terminal.
fn parts(text: &str, width: Option<usize>) -> Vec<String> {
    let text = spelled(text);
    let Some(width) = width else { return vec![text] };
    let pieces = folded(&text, width.saturating_sub(MARGIN.len() + 1));
    let margins = std::iter::once("").chain(std::iter::repeat(MARGIN));
    pieces.iter().zip(margins).map(|(piece, margin)| format!("{margin}{piece}")).collect()
}

/// Says how a server is reached and what it gets. Nothing is masked: a project has no secrets of the user's, and a
/// variable may say what a program runs.
fn server(server: &ServerConfig, mark: &str) -> Vec<String> {
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
    let first = format!("  {mark}{}: {how}", server.name);
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

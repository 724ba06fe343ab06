//! Denied things that a call mentions in some part of its words or arguments.
//!
//! A rule that forbids is held against everything a call mentions, whatever program or tool is told: a
//! program that is in no list reads its words as it likes. A mention is a doubt, never a certainty.

use std::cell::OnceCell;
use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::descent::WITH_SUBCOMMANDS;
use super::shell::Word;
use super::touch::{Bases, Reach, Touch, fragments, host_in, is_mark, spellings};

/// Programs whose words are data: they start no other program, whatever they are told.
const DATA: &[&str] = &[
    ":",
    "[",
    "alias",
    "apropos",
    "basename",
    "break",
    "cat",
    "cd",
    "chmod",
    "chown",
    "cksum",
    "cmp",
    "comm",
    "continue",
    "cp",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "exit",
    "expr",
    "false",
    "fgrep",
    "file",
    "fold",
    "grep",
    "head",
    "hostname",
    "id",
    "jq",
    "kill",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mktemp",
    "mv",
    "nl",
    "od",
    "paste",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "return",
    "rev",
    "rm",
    "rmdir",
    "seq",
    "sha256sum",
    "shift",
    "sleep",
    "stat",
    "tac",
    "tail",
    "tee",
    "test",
    "touch",
    "tr",
    "tree",
    "true",
    "truncate",
    "type",
    "uname",
    "uniq",
    "wc",
    "whatis",
    "whereis",
    "which",
    "whoami",
    "xxd",
    "yes",
];
/// Subcommands of git whose words are data.
const GIT_DATA: &[&str] = &[
    "add",
    "blame",
    "branch",
    "checkout",
    "cherry-pick",
    "commit",
    "describe",
    "diff",
    "log",
    "ls-files",
    "merge",
    "mv",
    "reset",
    "restore",
    "rev-parse",
    "rm",
    "shortlog",
    "show",
    "stash",
    "status",
    "switch",
    "tag",
];

/// The texts that a call consists of.
#[derive(Clone, Debug, Default)]
pub(super) struct Mentions {
    /// Texts that may name paths and hosts in any part.
    texts: Vec<String>,
    /// Words that may be a command from any of them on.
    commands: Vec<Vec<Word>>,
    bases: Bases,
    found: OnceCell<Found>,
}

/// The paths and hosts among the mentions.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) paths: Vec<Touch>,
    pub(super) hosts: Vec<Reach>,
}

impl Mentions {
    /// Returns the mentions of a simple command.
    pub(super) fn of_command(words: &[Word], bases: &Bases) -> Self {
        let texts = words.iter().filter_map(Word::text).map(str::to_owned).collect();
        let mut commands = Vec::new();
        if !words_are_data(words) {
            let after = words.get(first_argument(words)..).unwrap_or_default();
            commands.extend(sequences(after));
        }
        Self { texts, commands, bases: bases.clone(), found: OnceCell::new() }
    }

    /// Returns the mentions of texts that are given to programs or tools. They are commands too unless
    /// those that get them take them for data.
    pub(super) fn of_texts(
        texts: Vec<String>,
        lists: &[Vec<String>],
        are_data: bool,
        bases: &Bases,
    ) -> Self {
        let words = |texts: &[String]| texts.iter().map(Word::literal).collect::<Vec<_>>();
        let mut commands: Vec<Vec<Word>> = Vec::new();
        if !are_data {
            for text in &texts {
                commands.extend(sequences(&[Word::literal(text)]));
            }
            commands.extend(lists.iter().map(|list| words(list)));
        }
        Self { texts, commands, bases: bases.clone(), found: OnceCell::new() }
    }

    /// Returns sequences of words of which any tail may be a command.
    pub(super) fn commands(&self) -> &[Vec<Word>] {
        &self.commands
    }

    /// Returns the paths and hosts that parts of the texts may name.
    pub(super) fn found(&self) -> &Found {
        self.found.get_or_init(|| {
            let mut found = Found::default();
            let mut seen = HashSet::new();
            for text in &self.texts {
                for spelling in spellings(text, &self.bases) {
                    for part in fragments(&spelling) {
                        if seen.insert(part.to_owned()) {
                            found.take(part, &self.bases);
                        }
                    }
                }
            }
            found
        })
    }
}

impl Found {
    fn take(&mut self, part: &str, bases: &Bases) {
        self.paths.extend(bases.resolve(part));
        // What follows a mark may start at the root of a repository, or after the scheme of a URL.
        let relative = part.trim_start_matches('/');
        if relative.len() < part.len() && !relative.is_empty() {
            self.paths.extend(bases.resolve(relative));
        }
        self.hosts.extend(host_in(part));
    }
}

/// Tells whether the words of a command are data, so that none of them is started.
pub(super) fn words_are_data(words: &[Word]) -> bool {
    let Some(program) = words.first().and_then(Word::text) else { return false };
    let bare = program.rsplit('/').next().unwrap_or(program);
    match bare {
        "git" => subcommand(words).is_some_and(|name| GIT_DATA.contains(&name)),
        "command" => words.get(1).and_then(Word::text).is_some_and(|word| word.starts_with("-v")),
        bare => DATA.contains(&bare),
    }
}

/// Programs whose operands are only read.
const READERS: &[&str] = &[
    ":",
    "[",
    "basename",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "comm",
    "cut",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "exit",
    "export",
    "false",
    "fgrep",
    "file",
    "fold",
    "grep",
    "head",
    "jq",
    "kill",
    "less",
    "ls",
    "md5sum",
    "more",
    "nl",
    "od",
    "paste",
    "printf",
    "ps",
    "pwd",
    "read",
    "readlink",
    "realpath",
    "return",
    "rg",
    "set",
    "sha256sum",
    "sleep",
    "stat",
    "tac",
    "tail",
    "test",
    "tr",
    "tree",
    "true",
    "type",
    "uname",
    "uniq",
    "wc",
    "which",
    "xxd",
];
/// Subcommands of git that only read, or change the repository through git's own checks.
const GIT_READERS: &[&str] = &[
    "add",
    "blame",
    "branch",
    "commit",
    "describe",
    "diff",
    "fetch",
    "grep",
    "log",
    "ls-files",
    "push",
    "rev-parse",
    "shortlog",
    "show",
    "status",
    "tag",
];

/// Tells whether a command only reads the files that it names. Of any other it is taken that it may
/// change them.
pub(super) fn only_reads(words: &[Word]) -> bool {
    let Some(program) = words.first().and_then(Word::text) else { return true };
    let bare = program.rsplit('/').next().unwrap_or(program);
    let is_option =
        |word: &Word| word.text().is_some_and(|text| matches!(text, "-i" | "-o" | "-delete"));
    match bare {
        "git" => subcommand(words).is_some_and(|name| GIT_READERS.contains(&name)),
        "find" | "sed" | "sort" => {
            let in_place = |word: &Word| {
                word.text().is_none_or(|text| {
                    text.starts_with("--in")
                        || text.starts_with("--o")
                        || text.starts_with("-f")
                        || (bare != "find" && is_cluster_with(text, ['i', 'o']))
                })
            };
            !words.iter().skip(1).any(|word| is_option(word) || in_place(word))
        }
        bare => READERS.contains(&bare),
    }
}

fn is_cluster_with(text: &str, letters: [char; 2]) -> bool {
    text.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains(letters))
}

fn subcommand(words: &[Word]) -> Option<&str> {
    let arguments = words.get(1..).unwrap_or_default();
    arguments.iter().filter_map(Word::text).find(|text| !text.starts_with('-'))
}

/// Returns which of the words is the first that may be another program.
fn first_argument(words: &[Word]) -> usize {
    let program = words.first().and_then(Word::text).unwrap_or_default();
    let bare = program.rsplit('/').next().unwrap_or(program);
    let named = subcommand(words)
        .filter(|name| WITH_SUBCOMMANDS.contains(&bare) && !name.contains(char::is_whitespace));
    let at = named.and_then(|name| words.iter().position(|word| word.text() == Some(name)));
    at.unwrap_or_default() + 1
}

/// Returns words as they are, and as the parts that they have.
fn sequences(words: &[Word]) -> Vec<Vec<Word>> {
    let mut parts: Vec<Word> = Vec::new();
    for word in words {
        match word.text() {
            None => parts.push(word.clone()),
            Some(text) => {
                // Quotes and escapes can stand in the middle of a name.
                let text = text.replace(['"', '\'', '\\'], "");
                let attached = text.get(2..).filter(|_| text.starts_with('-'));
                let texts = std::iter::once(text.as_str()).chain(attached);
                let named = texts.flat_map(|text| text.split(is_mark));
                parts.extend(named.filter(|part| !part.is_empty()).map(Word::literal));
            }
        }
    }
    let whole = words.to_vec();
    if whole == parts { vec![whole] } else { vec![whole, parts] }
}
/// Returns what a text says in the encodings that servers undo: percent signs, base64 and hexadecimal.
pub(super) fn decoded(text: &str) -> Vec<String> {
    /// A longer text is content rather than a name or a command.
    const LONGEST: usize = 4096;
    if text.len() > LONGEST {
        return Vec::new();
    }
    let body = text.rsplit_once("base64,").map_or(text, |(_, body)| body).trim();
    let unpadded = body.trim_end_matches('=');
    let hex = body.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()
        }
        _ => None,
    });
    let percent = text.contains('%').then(|| percent_encoding::percent_decode_str(text).collect());
    let texts = [
        percent,
        STANDARD_NO_PAD.decode(unpadded).ok(),
        URL_SAFE_NO_PAD.decode(unpadded).ok(),
        hex.collect::<Option<Vec<u8>>>(),
    ];
    let readable = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).ok()?;
        let is_text = |letter: char| !letter.is_control() || letter.is_whitespace();
        (text.len() >= 3 && text.chars().all(is_text)).then_some(text)
    };
    texts.into_iter().flatten().filter_map(readable).collect()
}

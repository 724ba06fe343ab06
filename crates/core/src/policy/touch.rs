//! The paths and hosts that the words of a command, or the arguments of a tool, may stand for.
//!
//! Programs read their arguments as they please, so every way a word can name a file or a host is taken.
//! A word as a whole is one for certain; a [part](fragments) of a word is one perhaps.

use std::path::{Path, PathBuf};

use super::pattern::plain;
use super::shell::Word;
use crate::endpoint::Endpoint;

/// A path that may be touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// This one.
    At(PathBuf),
    /// Some that start like this.
    Below(String),
    /// Any.
    Anywhere,
}

/// A host that may be talked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// This one.
    Known(Endpoint),
    /// Any.
    Anywhere,
}

/// The number of directories that a line may be in.
const MAX_BASES: usize = 16;

/// Where relative paths may start: a line can change directories as it goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Bases {
    directories: Vec<PathBuf>,
    /// Whether it may be anywhere else.
    anywhere: bool,
    /// The directory that `~` stands for.
    home: Option<PathBuf>,
}

impl Bases {
    pub(super) fn new(directory: &Path, changes: &[Word]) -> Self {
        let mut directories = vec![plain(directory, Path::new("/"))];
        let mut anywhere = false;
        for change in changes {
            let Some(text) = change.text() else {
                anywhere = true;
                continue;
            };
            let entered: Vec<PathBuf> =
                directories.iter().map(|from| plain(Path::new(text), from)).collect();
            for directory in entered {
                if !directories.contains(&directory) {
                    directories.push(directory);
                }
            }
            if directories.len() > MAX_BASES {
                anywhere = true;
                directories.truncate(MAX_BASES);
            }
        }
        Self { directories, anywhere, home: None }
    }

    /// Sets what `~` stands for. Shells read it at the start of a word, and some programs elsewhere.
    pub(super) fn home(mut self, home: Option<&str>) -> Self {
        self.home = home.map(PathBuf::from);
        self
    }

    /// Returns where the line may be.
    pub(super) fn here(&self) -> Vec<Touch> {
        let anywhere = self.anywhere.then_some(Touch::Anywhere);
        self.directories.iter().cloned().map(Touch::At).chain(anywhere).collect()
    }

    /// Returns the paths that a text can stand for.
    pub(super) fn resolve(&self, text: &str) -> Vec<Touch> {
        if leads_elsewhere(Path::new(text)) || (self.anywhere && !text.starts_with('/')) {
            return vec![Touch::Anywhere];
        }
        if text.starts_with('/') {
            return vec![Touch::At(plain(Path::new(text), Path::new("/")))];
        }
        let in_home = match (text.strip_prefix('~'), &self.home) {
            (None, _) => None,
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                Some(Touch::At(plain(Path::new(rest.trim_start_matches('/')), home)))
            }
            (Some(_), _) => Some(Touch::Anywhere),
        };
        let here = self.directories.iter().map(|from| {
            if leads_elsewhere(&from.join(text)) {
                return Touch::Anywhere;
            }
            Touch::At(plain(Path::new(text), from))
        });
        here.chain(in_home).collect()
    }

    /// Returns the paths that a word can stand for.
    pub(super) fn touched(&self, word: &Word) -> Vec<Touch> {
        match (word.text(), word.start()) {
            (Some(text), _) => self.resolve(text),
            (None, Some(start)) if !leads_elsewhere(Path::new(start)) && !start.contains("..") => {
                if start.starts_with('/') {
                    return vec![Touch::Below(start.to_owned())];
                }
                if self.anywhere {
                    return vec![Touch::Anywhere];
                }
                let below =
                    |from: &PathBuf| Touch::Below(from.join(start).to_string_lossy().into_owned());
                self.directories.iter().map(below).collect()
            }
            _ => vec![Touch::Anywhere],
        }
    }

    /// Returns a text with the variables in it that stand for directories.
    fn expanded(&self, text: &str) -> Option<String> {
        let home = self.home.as_ref()?.to_str()?;
        let here = self.directories.first()?.to_str()?;
        let known = [("${HOME}", home), ("$HOME", home), ("${PWD}", here), ("$PWD", here)];
        let expanded =
            known.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
        (expanded != text).then_some(expanded)
    }
}

/// Tells whether a path goes through the kernel's links to other places. A descriptor alone does not:
/// the file behind it was opened elsewhere in the line.
fn leads_elsewhere(path: &Path) -> bool {
    let Some(text) = path.to_str().filter(|text| text.starts_with('/')) else { return false };
    let mut names = text.split('/').filter(|name| !name.is_empty() && *name != ".");
    match names.next() {
        Some("proc") => names.any(|name| {
            matches!(name, "root" | "cwd" | "fd" | "fdinfo" | "map_files" | "task" | "..")
        }),
        Some("dev") => match names.next() {
            Some("fd") => {
                let digits = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
                names.next().is_some_and(|name| !digits(name)) || names.next().is_some()
            }
            Some("stdin" | "stdout" | "stderr" | "..") => names.next().is_some(),
            _ => false,
        },
        // A directory with another name may be one of these: nobody writes `/x/../proc` by chance.
        Some(_) => text.contains("/../proc/") || text.contains("/../dev/"),
        None => false,
    }
}

/// Programs whose arguments are not files. Whatever they print may be a name for the next program.
const SPEAKERS: &[&str] =
    &[":", "echo", "exit", "false", "printf", "pwd", "return", "sleep", "true"];

/// Returns the paths that the arguments of a command stand for.
pub(super) fn paths_in(words: &[Word], bases: &Bases) -> Vec<Touch> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    if program.text().is_some_and(|program| SPEAKERS.contains(&program)) {
        return Vec::new();
    }
    let touched = |word: &Word| match word.text() {
        None => bases.touched(word),
        Some(text) => candidates(text).flat_map(|candidate| bases.resolve(candidate)).collect(),
    };
    arguments.iter().flat_map(touched).collect()
}

/// Returns the parts of an argument that are paths if the argument names any: all of it, the value that
/// is attached to an option, and the text after `=`, `:` or `@`.
pub(super) fn candidates(text: &str) -> impl Iterator<Item = &str> {
    let whole = (!text.starts_with('-')).then_some(text);
    let attached =
        (text.starts_with('-') && !text.starts_with("--")).then(|| text.get(2..)).flatten();
    let after = |mark| text.split_once(mark).map(|(_, after)| after);
    let parts = [whole, attached, after('='), after(':'), after('@')];
    parts.into_iter().flatten().filter(|part| !part.is_empty())
}

/// Returns the hosts that the arguments of a command stand for.
pub(super) fn hosts_in(words: &[Word]) -> Vec<Reach> {
    let arguments = words.get(1..).unwrap_or_default();
    let reach = |word: &Word| match word.text() {
        None if word.start().is_some() => None,
        None => Some(Reach::Anywhere),
        Some(text) => host_in(text),
    };
    arguments.iter().filter_map(reach).collect()
}

/// Returns the host that a text stands for: a URL, `user@host:path`, `//host/path`, `host:port`. A text
/// with `://` in it that is no URL may lead anywhere.
pub(super) fn host_in(text: &str) -> Option<Reach> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('-') || text.contains('\n') {
        return None;
    }
    if let Some(endpoint) = Endpoint::of_url(text) {
        return Some(Reach::Known(endpoint));
    }
    if text.split_whitespace().next().is_some_and(|first| first.contains("://")) {
        let is_local = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
        return (!is_local).then_some(Reach::Anywhere);
    }
    let bare = text.trim_start_matches(['/', '\\']).split(['/', '\\', '?', '#']).next()?;
    let bare = bare.rsplit_once('@').map_or(bare, |(_, host)| host);
    // A small number counts something.
    if bare.len() < 8 && bare.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let before_colon = || bare.split(':').next().and_then(Endpoint::parse);
    Endpoint::parse(bare).or_else(before_colon).map(Reach::Known)
}

/// Marks between the parts of a word.
const MARKS: &[char] = &[
    '=', ':', ',', '@', '"', '\'', '`', '(', ')', '{', '}', '[', ']', '<', '>', ';', '|', '&', '!',
    '^', '+', '?', '#', '\\', '*', '$',
];
/// The longest text of which everything from a mark on is taken too, besides the text up to the next mark.
const MAX_TAILS: usize = 512;
/// The most letters that options have before the value that is attached to them.
const MAX_CLUSTER: usize = 8;

/// Tells whether a character stands between the parts of a word.
pub(super) fn is_mark(character: char) -> bool {
    character.is_whitespace() || MARKS.contains(&character)
}

/// Returns the parts of a text that may name something: from every mark to the next one and to the end,
/// and from every letter of short options on.
pub(super) fn fragments(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = text.split(is_mark).collect();
    if text.len() <= MAX_TAILS {
        let tails = text.char_indices().filter(|(_, mark)| is_mark(*mark));
        found.extend(tails.filter_map(|(at, mark)| text.get(at + mark.len_utf8()..)));
    }
    if let Some(options) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
        let letters = options.bytes().take(MAX_CLUSTER).take_while(u8::is_ascii_alphanumeric);
        found.extend((1..=letters.count()).filter_map(|at| options.get(at..)));
    }
    found.retain(|part| !part.is_empty());
    found
}

/// Returns the texts that a text can stand for: as it is, with directories for variables, decoded, with
/// slashes.
pub(super) fn spellings(text: &str, bases: &Bases) -> Vec<String> {
    let mut found = vec![text.to_owned()];
    found.extend(bases.expanded(text));
    // A text that was encoded twice is decoded by two programs.
    let once = text.contains('%').then(|| decode(text)).flatten();
    let twice = once.as_deref().and_then(decode);
    found.extend(once.into_iter().chain(twice));
    let slashes = found.iter().filter(|text| text.contains('\\'));
    let slashes: Vec<String> = slashes.map(|text| text.replace('\\', "/")).collect();
    found.extend(slashes);
    found
}

/// Decodes `%41`; nothing if there is none.
fn decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        plain.push(code.unwrap_or(*byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    (plain.len() < bytes.len()).then(|| String::from_utf8_lossy(&plain).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_can_name_a_file_in_several_ways() {
        let found = |text| candidates(text).collect::<Vec<_>>();
        assert_eq!(found("a/b"), ["a/b"]);
        assert_eq!(found("-f/etc/x"), ["/etc/x"]);
        assert_eq!(found("--file=/etc/x"), ["/etc/x"]);
        assert_eq!(found("if=/etc/x"), ["if=/etc/x", "/etc/x"]);
        assert_eq!(found("@/etc/x"), ["@/etc/x", "/etc/x"]);
        assert_eq!(found("-"), [""; 0]);
    }

    #[test]
    fn fragments_hold_every_part_of_a_word_that_may_name_something() {
        for (text, part) in [
            ("-uf.env", ".env"),
            (":0:.env", ".env"),
            (":(top).env", ".env"),
            ("--a=b,c=.env:rw", ".env"),
            ("x, {.env,y}", ".env"),
            ("--x=a:b c", "a:b c"),
            ("-hevil.example", "evil.example"),
        ] {
            assert!(fragments(text).contains(&part), "{text}: {:?}", fragments(text));
        }
        assert_eq!(fragments("plain"), ["plain"]);
    }

    #[test]
    fn relative_paths_start_wherever_the_line_may_be() {
        let bases =
            Bases::new(Path::new("/srv"), &[Word::literal("/home/u"), Word::literal(".ssh")]);
        let found = bases.resolve("id");
        assert!(found.contains(&Touch::At("/home/u/.ssh/id".into())), "{found:?}");
        assert!(found.contains(&Touch::At("/srv/id".into())), "{found:?}");
        let lost = Bases::new(Path::new("/srv"), &[Word::unknown("$X")]);
        assert_eq!(lost.resolve("id"), [Touch::Anywhere]);
        assert_eq!(lost.resolve("/etc/x"), [Touch::At("/etc/x".into())]);
        let bases = bases.home(Some("/home/u"));
        assert!(bases.resolve("~/.ssh").contains(&Touch::At("/home/u/.ssh".into())));
        assert!(bases.resolve("~root").contains(&Touch::Anywhere));
        assert!(spellings("$HOME/.ssh/id", &bases).contains(&"/home/u/.ssh/id".to_owned()));
    }

    #[test]
    fn paths_through_the_kernels_links_lead_anywhere() {
        let bases = Bases::new(Path::new("/srv"), &[]);
        for path in [
            "/proc/self/root/etc",
            "/proc/self/cwd/.env",
            "/proc/1/task/1/cwd/.env",
            "//proc/./self/fd/3",
            "/dev/fd/../cwd/.env",
            "/dev/fd/3/.env",
            "/dev/./fd/3/x",
            "/dev/stdin/../cwd/.env",
            "../proc/self/cwd/.env",
            "/usr/../proc/self/cwd/x",
        ] {
            assert_eq!(bases.resolve(path), [Touch::Anywhere], "{path}");
        }
        for path in ["/dev/fd/63", "/dev/stdin", "/dev/null", "/proc/cpuinfo", "process/x"] {
            assert!(!bases.resolve(path).contains(&Touch::Anywhere), "{path}");
        }
        let entered = Bases::new(Path::new("/srv"), &[Word::literal("/proc/self")]);
        assert!(entered.resolve("cwd/.env").contains(&Touch::Anywhere));
    }

    #[test]
    fn hosts_are_found_in_urls_and_in_bare_words() {
        let shown = |text: &str| match host_in(text) {
            Some(Reach::Known(endpoint)) => endpoint.to_string(),
            Some(Reach::Anywhere) => "*".to_owned(),
            None => String::new(),
        };
        for (text, expected) in [
            ("https://u:p@Example.com/x", "example.com:443"),
            ("http:evil.example", "evil.example:80"),
            ("u@h.example:path/x", "h.example"),
            ("evil.example::m", "evil.example"),
            ("//evil.example/x", "evil.example"),
            (" evil.example", "evil.example"),
            ("h.example:81", "h.example:81"),
            ("http://a b/", "*"),
            ("://good.example", "*"),
            ("2130706433", "127.0.0.1"),
            ("80", ""),
            ("-x", ""),
            ("file:///etc/x", ""),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}

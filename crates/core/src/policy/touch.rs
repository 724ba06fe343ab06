//! Which paths and hosts the words of a command may stand for.
//!
//! Programs read their arguments as they please, so every way a word can name a file is taken. A rule
//! that forbids is held against all of them, and one that allows has to cover all of them.

use std::path::{Path, PathBuf};

use super::pattern::plain;
use super::shell::Word;

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
    Known(String),
    /// Any.
    Anywhere,
}

/// How many directories a line may be in.
const MAX_BASES: usize = 16;

/// Where relative paths may start: a line can change directories as it goes.
#[derive(Debug)]
pub(super) struct Bases {
    directories: Vec<PathBuf>,
    /// Whether it may be anywhere else.
    anywhere: bool,
    /// What `~` stands for.
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

    /// Says what `~` stands for. Shells read it at the start of a word, and some programs elsewhere.
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
        if leads_elsewhere(text) || (self.anywhere && !text.starts_with('/')) {
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
        let here = self.directories.iter().map(|from| Touch::At(plain(Path::new(text), from)));
        here.chain(in_home).collect()
    }

    /// Returns the paths that a word can stand for.
    pub(super) fn touched(&self, word: &Word) -> Vec<Touch> {
        match (word.text(), word.start()) {
            (Some(text), _) => self.resolve(text),
            (None, Some(start)) if !leads_elsewhere(start) && !start.contains("..") => {
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
}

/// Tells whether a path goes through the kernel's links to other places.
fn leads_elsewhere(path: &str) -> bool {
    let mut names = path.split('/').filter(|name| !name.is_empty() && *name != ".");
    names.next() == Some("proc")
        && path.starts_with('/')
        && names.any(|name| matches!(name, "root" | "cwd" | "fd" | "map_files" | ".."))
}

/// Programs whose arguments are not files.
const SPEAKERS: &[&str] =
    &[":", "echo", "exit", "false", "printf", "pwd", "return", "sleep", "true"];

/// Returns the paths that the arguments of a command may stand for.
pub(super) fn paths_in(words: &[Word], bases: &Bases) -> Vec<Touch> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    if program.text().is_some_and(|program| SPEAKERS.contains(&program)) {
        return Vec::new();
    }
    let mut paths = Vec::new();
    for word in arguments {
        match word.text() {
            None => paths.extend(bases.touched(word)),
            Some(text) => {
                for candidate in candidates(text) {
                    paths.extend(bases.resolve(candidate));
                }
            }
        }
    }
    paths
}

/// Returns the parts of an argument that may be paths: all of it, what an option has attached, and
/// what follows `=`, `:` or `@`.
pub(super) fn candidates(text: &str) -> impl Iterator<Item = &str> {
    let whole = (!text.starts_with('-')).then_some(text);
    let attached =
        (text.starts_with('-') && !text.starts_with("--")).then(|| text.get(2..)).flatten();
    let after = |mark| text.split_once(mark).map(|(_, after)| after);
    let parts = [whole, attached, after('='), after(':'), after('@')];
    parts.into_iter().flatten().filter(|part| !part.is_empty())
}

/// Returns the hosts that the arguments of a command may stand for.
pub(super) fn hosts_in(words: &[Word]) -> Vec<Reach> {
    let arguments = words.get(1..).unwrap_or_default();
    let reach = |word: &Word| match word.text() {
        None if word.start().is_some() => None,
        None => Some(Reach::Anywhere),
        Some(text) => host_of(text).or_else(|| bare_host(text)).map(Reach::Known),
    };
    arguments.iter().filter_map(reach).collect()
}

/// Returns the host of a URL with its port.
pub(super) fn host_of(url: &str) -> Option<String> {
    let (before, rest) = url.split_once("://")?;
    let scheme = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or(before);
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_ascii_lowercase();
    let has_port = host.rsplit(']').next().is_some_and(|after| after.contains(':'));
    let port = match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => ":80",
        "https" | "wss" => ":443",
        _ => "",
    };
    (!host.is_empty()).then(|| if has_port { host } else { format!("{host}{port}") })
}

/// Returns the host of an address without a scheme: `user@host:path`, `host/path`, `host:port`.
fn bare_host(text: &str) -> Option<String> {
    if text.starts_with('-') {
        return None;
    }
    let host = text.split('/').next()?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
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
    fn relative_paths_start_wherever_the_line_may_be() {
        let bases =
            Bases::new(Path::new("/srv"), &[Word::literal("/home/u"), Word::literal(".ssh")]);
        let found = bases.resolve("id");
        assert!(found.contains(&Touch::At("/home/u/.ssh/id".into())), "{found:?}");
        assert!(found.contains(&Touch::At("/srv/id".into())), "{found:?}");
        let lost = Bases::new(Path::new("/srv"), &[Word::unknown("$X")]);
        assert_eq!(lost.resolve("id"), [Touch::Anywhere]);
        assert_eq!(lost.resolve("/etc/x"), [Touch::At("/etc/x".into())]);
        assert_eq!(bases.resolve("/proc/self/root/etc"), [Touch::Anywhere]);
        let bases = bases.home(Some("/home/u"));
        assert!(bases.resolve("~/.ssh").contains(&Touch::At("/home/u/.ssh".into())));
        assert!(bases.resolve("~root").contains(&Touch::Anywhere));
    }

    #[test]
    fn hosts_have_the_port_of_their_scheme() {
        assert_eq!(host_of("https://u:p@Example.com/x").as_deref(), Some("example.com:443"));
        assert_eq!(host_of("http://[::1]/").as_deref(), Some("[::1]:80"));
        assert_eq!(host_of("http://h:81").as_deref(), Some("h:81"));
        assert_eq!(host_of("--url=ftp://h/x").as_deref(), Some("h"));
        assert_eq!(bare_host("u@h:path/x").as_deref(), Some("h:path"));
    }
}

//! Patterns of rules: names, paths, hosts and commands.
//!
//! What a call will touch is not always known: a variable can hold anything. A pattern therefore gives
//! one of three answers, and whoever asks decides what "perhaps" means: for a rule that allows it is
//! no, for a rule that forbids it is a reason to ask.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use globset::{Glob, GlobBuilder, GlobMatcher};

use super::shell::{Unlisted, Word};
use crate::endpoint::Endpoint;
use crate::glob;

/// Whether a condition holds. Ordered: of two conditions that both have to hold, the lesser counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holds {
    No,
    /// It holds for something below a directory that may be walked through.
    Below,
    /// It depends on something that is not known before the call runs.
    Perhaps,
    Yes,
}

impl From<bool> for Holds {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// Matches `*` against any run of characters. Linear: the last `*` is the only one gone back to.
pub fn wildcard(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut seen) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while seen < text.len() {
        if pattern.get(at) == Some(&b'*') {
            retry = Some((at + 1, seen));
            at += 1;
        } else if pattern.get(at) == text.get(seen) {
            at += 1;
            seen += 1;
        } else if let Some((after_star, from)) = retry {
            retry = Some((after_star, from + 1));
            at = after_star;
            seen = from + 1;
        } else {
            return false;
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|byte| *byte == b'*'))
}

/// A glob for paths. It covers a path as the kernel would see it: absolute, without `.` and `..`.
#[derive(Clone, Debug)]
pub(super) struct PathPattern {
    glob: Matcher,
    /// The directory itself, for a pattern that covers everything below it.
    whole: Option<Matcher>,
    /// What every path it covers starts with, as far as that is plain text.
    start: String,
    /// Whether it says where it starts. One that does not starts at the working directory.
    anchored: bool,
    /// The directory that all it covers lies in, or all of it if it is plain text.
    base: PathBuf,
    /// How many names there are after that; nothing if there can be any number.
    deeper: Option<usize>,
}

/// A glob that was read. Compiling it takes much longer than that, and most are never asked: it is done with
/// the first path, once for all clones. It cannot fail then: what was let in is small.
#[derive(Clone, Debug)]
struct Matcher(Arc<(Glob, OnceLock<GlobMatcher>)>);

impl Matcher {
    fn new(pattern: &str, without_case: bool) -> Result<Self, String> {
        glob::check(pattern)?;
        let mut builder = GlobBuilder::new(pattern);
        let glob = builder.literal_separator(true).case_insensitive(without_case).build();
        let glob = glob.map_err(|error| error.kind().to_string())?;
        Ok(Self(Arc::new((glob, OnceLock::new()))))
    }

    fn text(&self) -> &str {
        self.0.0.glob()
    }

    fn is_match(&self, path: &Path) -> bool {
        let (glob, compiled) = &*self.0;
        compiled.get_or_init(|| glob.compile_matcher()).is_match(path)
    }
}

/// What a pattern covers of what lies below a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Below {
    /// Nothing.
    Nothing,
    /// Something, if there is such a thing: it can be anywhere.
    Anywhere,
    /// Something at a place that is known.
    Here,
}

impl PathPattern {
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        Self::read(pattern, false)
    }

    /// Reads a pattern that does not tell upper from lower case.
    pub(super) fn without_case(pattern: &str) -> Result<Self, String> {
        Self::read(pattern, true)
    }

    fn read(pattern: &str, without_case: bool) -> Result<Self, String> {
        let anchored = pattern.starts_with('/');
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let whole = pattern.strip_suffix("/**").filter(|whole| !whole.is_empty());
        let start = pattern.split(['*', '?', '[', '{', '\\']).next().unwrap_or_default();
        let (base, deeper) = base(pattern);
        Ok(Self {
            glob: Matcher::new(pattern, without_case)?,
            whole: whole.map(|whole| Matcher::new(whole, without_case)).transpose()?,
            start: start.to_owned(),
            anchored,
            base,
            deeper,
        })
    }

    /// Returns the one path that it covers, or the directory that it covers with all below; nothing if it
    /// covers something else.
    pub(super) fn plain(&self, directory: &Path) -> Option<PathBuf> {
        let whole = self.whole.is_some() && self.glob.text().matches('*').count() == 2;
        (self.deeper == Some(0) || whole).then(|| plain(&self.base, directory))
    }

    /// Tells what it covers of what lies below a path.
    pub(super) fn below(&self, path: &Path, directory: &Path) -> Below {
        let base = plain(&self.base, directory);
        if base.starts_with(path) && (base != path || self.deeper != Some(0)) {
            return Below::Here;
        }
        let Ok(rest) = path.strip_prefix(&base) else { return Below::Nothing };
        match self.deeper {
            Some(deeper) if deeper <= rest.components().count() => Below::Nothing,
            _ => Below::Anywhere,
        }
    }

    /// Tells whether it covers a path. `directory` is where relative patterns start.
    pub(super) fn covers(&self, path: &Path, directory: &Path) -> bool {
        let matches = |path: &Path| {
            self.glob.is_match(path)
                || self.whole.as_ref().is_some_and(|whole| whole.is_match(path))
        };
        matches(path) || (!self.anchored && path.strip_prefix(directory).is_ok_and(matches))
    }

    /// Returns the directory that everything it covers lies in, or is; as text without the last slash.
    /// Nothing if it starts with a pattern.
    pub(super) fn directory(&self) -> Option<&str> {
        let (directory, _) = self.start.rsplit_once('/')?;
        Some(directory)
    }

    /// Returns a name that every path it covers has, or an ending from a dot on that every file it covers
    /// has, in lower case; nothing if there is none.
    pub(super) fn name(&self) -> Option<String> {
        let pattern = self.glob.text();
        let plain =
            |text: &&str| !text.is_empty() && !text.contains(['*', '?', '[', ']', '{', '}', '\\']);
        if pattern.contains(['{', '\\']) {
            return None;
        }
        let last = pattern.rsplit('/').next().unwrap_or(pattern);
        let ending = last.strip_prefix('*').filter(|ending| ending.starts_with('.'));
        let any = || pattern.rsplit('/').find(plain);
        ending.filter(plain).or_else(any).map(str::to_lowercase)
    }

    /// Tells whether it can cover something that starts with this text.
    pub(super) fn reaches(&self, start: &str, directory: &Path) -> bool {
        if self.base == Path::new("/") {
            return true;
        }
        let own = directory.join(&self.start);
        let own = own.to_string_lossy();
        own.starts_with(start) || start.starts_with(&*own)
    }
}

/// Returns the directory that all lies in what a pattern covers, and how many names there are after it.
fn base(pattern: &str) -> (PathBuf, Option<usize>) {
    const SPECIAL: &[char] = &['*', '?', '[', '{', '\\'];
    let first = pattern.split('/').next().unwrap_or_default();
    if first.contains("**") || pattern.starts_with('{') {
        return (PathBuf::from("/"), None);
    }
    let known: PathBuf =
        Path::new(pattern).components().take_while(|name| !is_special(name, SPECIAL)).collect();
    let names = Path::new(pattern).components().count();
    let any = pattern.contains("**") || pattern.contains(['{', '\\']);
    let deeper = (!any).then(|| names.saturating_sub(known.components().count()));
    (known, deeper)
}

fn is_special(name: &Component<'_>, special: &[char]) -> bool {
    name.as_os_str().to_string_lossy().contains(special)
}

/// Returns a path as the kernel would see it if there were no links: absolute, without `.` and `..`.
pub(super) fn plain(path: &Path, directory: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for component in directory.join(path).components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::Normal(name) => plain.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    plain
}

/// A host: `example.com`, `*.example.com` (every name below it), `*`, each with a port if it matters.
#[derive(Clone, Debug)]
pub(super) struct HostPattern {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug)]
enum Hosts {
    Any,
    /// Every name that ends like this, from a dot on.
    Below(String),
    One(Endpoint),
}

impl HostPattern {
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let wrong = || "a host is written `example.com`, `*.example.com` or `host:port`".to_owned();
        if let Some(port) = pattern.strip_prefix('*').filter(|rest| !rest.starts_with('.')) {
            let port = match port.strip_prefix(':') {
                Some(port) => Some(port.parse().map_err(|_| format!("`{port}` is not a port"))?),
                None if port.is_empty() => None,
                None => return Err(wrong()),
            };
            return Ok(Self { hosts: Hosts::Any, port });
        }
        let below = pattern.strip_prefix("*.");
        let name = below.unwrap_or(pattern);
        let endpoint = Endpoint::parse(name).filter(|_| !name.contains('*')).ok_or_else(wrong)?;
        let port = endpoint.port();
        let hosts = match below {
            None => Hosts::One(endpoint),
            Some(_) if endpoint.is_address() => return Err(wrong()),
            Some(_) => Hosts::Below(format!(".{}", endpoint.name())),
        };
        Ok(Self { hosts, port })
    }

    /// Returns the name it covers, or from a dot on what names end with that it covers; nothing if hosts
    /// with other names may be covered.
    pub(super) fn ending(&self) -> Option<String> {
        match &self.hosts {
            Hosts::Below(ending) => Some(ending.clone()),
            Hosts::One(one) if !one.is_address() && !one.is_this_machine() => Some(one.name()),
            Hosts::Any | Hosts::One(_) => None,
        }
    }

    /// Tells whether it covers a host. A port that is not known may be the one that matters.
    pub(super) fn covers(&self, endpoint: &Endpoint) -> Holds {
        let named = match &self.hosts {
            Hosts::Any => Holds::Yes,
            Hosts::Below(ending) => endpoint.name().ends_with(ending).into(),
            Hosts::One(one) if one.host() == endpoint.host() => Holds::Yes,
            Hosts::One(one) if one.may_be(endpoint) => Holds::Perhaps,
            Hosts::One(_) => Holds::No,
        };
        let port = match (self.port, endpoint.port()) {
            (None, _) => Holds::Yes,
            (Some(_), None) => Holds::Perhaps,
            (Some(wanted), Some(port)) => (wanted == port).into(),
        };
        named.min(port)
    }
}

/// A simple command: a program and its arguments. `*` alone stands for any number of words, inside a
/// word for any run of characters.
#[derive(Clone, Debug)]
pub(super) struct CommandPattern {
    words: Vec<String>,
}

impl CommandPattern {
    pub(super) fn new(pattern: &str) -> Result<Self, String> {
        let words: Vec<String> = pattern.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            return Err("a command pattern needs at least the name of a program".into());
        }
        if pattern.contains([';', '|', '&', '`', '\n']) || pattern.contains("$(") {
            return Err("a command pattern is one simple command; write one rule for each".into());
        }
        Ok(Self { words })
    }

    /// Returns the program it covers, unless it covers several.
    pub(super) fn program(&self) -> Option<&str> {
        self.words.first().map(String::as_str).filter(|name| !name.contains('*'))
    }

    /// Tells whether it names a program or a script by a path that starts where the command runs.
    pub(super) fn is_relative(&self) -> bool {
        let Some((program, rest)) = self.words.split_first() else { return false };
        let by_path = program.contains('/') && !program.starts_with(['/', '~']);
        let bare = program.rsplit('/').next().unwrap_or(program);
        // A module is not found by its path.
        let is_module = rest.first().is_some_and(|word| word == "-m");
        let script = rest
            .iter()
            .filter(|_| !is_module)
            .find(|word| !word.starts_with('-') && !word.contains('*'));
        let starts_there = script.is_some_and(|script| !script.starts_with(['/', '~']));
        by_path || (runs_scripts(bare) && starts_there)
    }

    /// Tells whether it spells out what is not known to be harmless. The value of a long option need
    /// not be spelled out.
    pub(super) fn spells(&self, unlisted: &Unlisted) -> bool {
        let spells = |pattern: &String, word: &String| match pattern.strip_suffix("=*") {
            Some(name) if name.starts_with("--") && !name.contains('*') => {
                word.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
            }
            _ => pattern == word && !pattern.contains('*'),
        };
        let spelled = |word| self.words.iter().any(|pattern| spells(pattern, word));
        let is_exact = || !self.words.iter().any(|word| word.contains('*'));
        unlisted.words.iter().all(spelled) && (!unlisted.exact || is_exact())
    }

    /// Tells whether it covers a command. A program written with its directory is covered by its bare
    /// name only if `loosely`: `/tmp/git` is not the `git` that somebody allowed.
    pub(super) fn covers(&self, command: &[Word], loosely: bool) -> Holds {
        let (Some((program, rest)), Some((wanted, patterns))) =
            (command.split_first(), self.words.split_first())
        else {
            return Holds::No;
        };
        let named = match program.text() {
            None => Holds::Perhaps,
            Some(text) => {
                let bare = text.rsplit('/').next().unwrap_or(text);
                let well_known = text.strip_suffix(bare).is_some_and(is_system_directory);
                let by_name = (loosely || well_known) && wildcard(wanted, bare);
                // A file system that does not tell case apart runs `RM` as `rm`.
                let by_case = loosely && wildcard(wanted, &bare.to_ascii_lowercase());
                let exact = wildcard(wanted, text) && (wanted.contains('/') || !text.contains('/'));
                (exact || by_name || by_case).into()
            }
        };
        match wanted.as_str() {
            "*" => named.min(words(&self.words, command)),
            _ if named == Holds::No => Holds::No,
            _ => named.min(words(patterns, rest)),
        }
    }

    /// Tells whether it covers a command that any of the words starts.
    pub(super) fn covers_tail(&self, sequence: &[Word]) -> bool {
        let covers = |at: usize| {
            let tail = sequence.get(at..).unwrap_or_default();
            let starts = tail.first().and_then(Word::text).is_some_and(|text| !text.is_empty());
            starts && self.covers(tail, true) != Holds::No
        };
        self.words.first().is_some_and(|program| program != "*") && (0..sequence.len()).any(covers)
    }
}

/// Tells whether a program runs the file that it is given.
fn runs_scripts(program: &str) -> bool {
    const SCRIPTED: &[&str] = &[
        ".", "bash", "bun", "dash", "deno", "fish", "ksh", "lua", "node", "perl", "php", "pypy",
        "python", "Rscript", "ruby", "sh", "source", "tclsh", "zsh",
    ];
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    SCRIPTED.contains(&name) || program == "."
}

fn is_system_directory(directory: &str) -> bool {
    matches!(directory, "/bin/" | "/usr/bin/" | "/sbin/" | "/usr/sbin/" | "/usr/local/bin/")
}

/// Matches words against patterns; linear, like [`wildcard`], with `*` for any number of words.
fn words(patterns: &[String], words: &[Word]) -> Holds {
    // One word that is not known can become several or none: from there on, anything is possible.
    if let Some(at) = words.iter().position(|word| word.text().is_none()) {
        let known = words.get(..at).unwrap_or_default();
        let star = patterns.iter().position(|pattern| pattern == "*");
        return match star {
            Some(star) if star < known.len() || (star == at && patterns.len() == star + 1) => {
                let before = patterns.get(..star).unwrap_or_default();
                let start = known.get(..star).unwrap_or_default();
                let fits = each_fits(before, start);
                if fits && patterns.len() == star + 1 { Holds::Yes } else { fits_perhaps(fits) }
            }
            _ => fits_perhaps(
                patterns.get(..at).is_none_or(|start| each_fits(start, known))
                    && (patterns.len() >= at || star.is_some()),
            ),
        };
    }
    let (mut at, mut seen) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while let Some(word) = words.get(seen) {
        let text = word.text().unwrap_or_default();
        match patterns.get(at) {
            Some(pattern) if pattern == "*" => {
                retry = Some((at + 1, seen));
                at += 1;
            }
            Some(pattern) if wildcard(pattern, text) => {
                at += 1;
                seen += 1;
            }
            _ => match retry {
                Some((after_star, from)) => {
                    retry = Some((after_star, from + 1));
                    at = after_star;
                    seen = from + 1;
                }
                None => return Holds::No,
            },
        }
    }
    patterns.get(at..).is_some_and(|rest| rest.iter().all(|pattern| pattern == "*")).into()
}

fn each_fits(patterns: &[String], words: &[Word]) -> bool {
    patterns.len() <= words.len()
        && patterns
            .iter()
            .zip(words)
            .all(|(pattern, word)| word.text().is_none_or(|text| wildcard(pattern, text)))
}

const fn fits_perhaps(fits: bool) -> Holds {
    if fits { Holds::Perhaps } else { Holds::No }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Vec<Word> {
        let word = |word: &str| match word {
            "?" => Word::unknown("$X"),
            word => Word::literal(word),
        };
        text.split(' ').map(word).collect()
    }

    #[test]
    fn commands_are_matched_word_by_word() {
        for (pattern, text, expected) in [
            ("git push *", "git push", Holds::Yes),
            ("git push *", "git push origin main", Holds::Yes),
            ("git push *", "git pushy", Holds::No),
            ("git push", "git push origin", Holds::No),
            ("npm run test*", "npm run test:unit", Holds::Yes),
            ("npm run test*", "npm run build", Holds::No),
            ("git * --force", "git push origin --force", Holds::Yes),
            ("git * --force", "git push origin", Holds::No),
            ("rm *", "/bin/rm x", Holds::Yes),
            ("git *", "/tmp/git x", Holds::No),
            ("*", "anything at all", Holds::Yes),
            ("git *", "git log ?", Holds::Yes),
            ("git *", "git ?", Holds::Yes),
            ("git push *", "git ?", Holds::Perhaps),
            ("git push *", "git push ?", Holds::Yes),
            ("git push *", "git log ?", Holds::No),
            ("git push", "git push ?", Holds::Perhaps),
            ("git * --force", "git push ?", Holds::Perhaps),
            ("rm *", "? -rf /", Holds::Perhaps),
            ("ls", "ls ?", Holds::Perhaps),
        ] {
            let pattern_of = CommandPattern::new(pattern).unwrap();
            assert_eq!(pattern_of.covers(&command(text), false), expected, "{pattern} on {text}");
        }
        let loosely =
            |text: &str| CommandPattern::new("rm *").unwrap().covers(&command(text), true);
        assert_eq!(loosely("/tmp/rm x"), Holds::Yes);
        assert_eq!(loosely("RM x"), Holds::Yes);
    }

    #[test]
    fn a_command_pattern_is_one_command() {
        for bad in ["", "  ", "a; b", "a | b", "a && b", "echo $(x)", "echo `x`"] {
            assert!(CommandPattern::new(bad).is_err(), "{bad}");
        }
    }

    /// The built-in rules were compiled at every start, which took longer than all else there.
    #[test]
    fn a_glob_is_compiled_with_the_first_path_and_once_for_all_clones() {
        let matcher = Matcher::new("**/.git/**", false).unwrap();
        let clone = matcher.clone();
        assert!(matcher.0.1.get().is_none());
        assert!(clone.is_match(Path::new("/srv/.git/config")));
        assert!(matcher.0.1.get().is_some());
        assert!(Matcher::new("a[b", false).is_err(), "what is wrong is said before");
    }

    /// Compiling one that is too large panics, and reading one that is too deep ends the process.
    #[test]
    fn what_is_let_in_can_be_compiled_and_the_rest_is_refused() {
        let dense =
            ["?", "*", "**/", "[!a]", "[!-~]", "{a,?}", "{?,*,}", "é", "[à-ü]", "[a-cx-z]", "\\*"];
        for part in dense {
            let whole = part.repeat(glob::MAX_BYTES / part.len());
            let matcher = Matcher::new(&whole, false).unwrap();
            assert!(!matcher.is_match(Path::new("")) || part.contains('*'), "{part}");
        }
        let alternatives = format!("{{{}}}", "a?,".repeat(glob::MAX_BYTES / 3 - 1));
        assert!(!Matcher::new(&alternatives, false).unwrap().is_match(Path::new("/a/b")));
        let nested = |depth| format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
        assert!(Matcher::new(&nested(glob::MAX_DEPTH), false).unwrap().is_match(Path::new("a")));
        for bad in [nested(glob::MAX_DEPTH + 1), nested(500_000), "?".repeat(1_000_000)] {
            assert!(PathPattern::new(&bad).is_err());
        }
    }

    #[test]
    fn paths_are_matched_as_the_kernel_would_see_them() {
        let directory = Path::new("/srv/project");
        for (pattern, path, expected) in [
            ("/home/u/.ssh/**", "/home/u/.ssh/id", true),
            ("/home/u/.ssh/**", "/home/u/.ssh", true),
            ("/home/u/.ssh/**", "/home/u/.sshx", false),
            ("/home/u/.ssh/**", "../../home/u/./x/../.ssh/id", true),
            ("src/**", "src/a/b.rs", true),
            ("src/**", "/srv/project/src/a.rs", true),
            ("./src/**", "src/a.rs", true),
            ("src/*", "src/a/b.rs", false),
            ("src/**", "/elsewhere/src/a.rs", false),
            ("**/*.pem", "/any/where/key.pem", true),
            ("*.md", "README.md", true),
        ] {
            let path = plain(Path::new(path), directory);
            let covered = PathPattern::new(pattern).unwrap().covers(&path, directory);
            assert_eq!(covered, expected, "{pattern} on {}", path.display());
        }
        assert!(PathPattern::new("a[").is_err());
    }

    #[test]
    fn hosts_are_matched_whole() {
        for (pattern, host, expected) in [
            ("example.com", "example.com", Holds::Yes),
            ("example.com", "EXAMPLE.com.", Holds::Yes),
            ("example.com", "www.example.com", Holds::No),
            ("*.example.com", "www.example.com", Holds::Yes),
            ("*.example.com", "example.com", Holds::No),
            ("*.example.com", "badexample.com", Holds::No),
            ("example.com:8080", "example.com:8080", Holds::Yes),
            ("example.com:8080", "example.com:80", Holds::No),
            ("example.com:8080", "example.com", Holds::Perhaps),
            ("*", "any.where", Holds::Yes),
            ("*:80", "any.where:80", Holds::Yes),
            ("*:80", "any.where:81", Holds::No),
            ("[::1]:80", "[::1]:80", Holds::Yes),
            ("0x7f.1", "127.0.0.1", Holds::Yes),
            ("127.0.0.1", "::ffff:7f00:1", Holds::Yes),
            ("127.0.0.1", "localhost", Holds::Perhaps),
            ("localhost", "[::1]:80", Holds::Perhaps),
            ("BÜCHER.example", "xn--bcher-kva.example", Holds::Yes),
        ] {
            let endpoint = Endpoint::parse(host).unwrap();
            let covered = HostPattern::new(pattern).unwrap().covers(&endpoint);
            assert_eq!(covered, expected, "{pattern} on {host}");
        }
        for bad in ["", "a*b", "http://x", "x:port", "*.*.x", "*x", "*:x", "*.1.2.3.4", "a b"] {
            assert!(HostPattern::new(bad).is_err(), "{bad}");
        }
    }
}

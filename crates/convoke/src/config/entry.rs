//! Entries of a project's files that start a program or widen rights. Each is trusted by itself.
//!
//! An entry is an MCP server, a hook, a command tool, any other setting that is not harmless, or an agent. Its
//! digest covers its label, what it says as it is written, and the content of every file inside the project
//! that its command line or its variables name. A pull that changes one of these changes the digest, and the
//! entry is left out until the user has seen it.
//!
//! Not covered: files larger than [`MAX_FILE_BYTES`], directories, files outside the project, and files that a
//! program finds by itself (`python3 -m`, `npx`, a makefile). Text that only reaches a prompt is covered by the
//! trust in the project.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use convoke_mcp::client::ServerConfig;
use rustix::fs::OFlags;
use serde::Serialize;
use serde_json::{Value, json};

use super::digest::Digest;
use super::problem::printable;

/// The largest file whose content is part of a digest.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The characters that end a word within a text: a text may be a whole command line.
const BETWEEN_WORDS: &[char] =
    &[' ', '\t', '\n', '\r', '"', '\'', '`', '=', ',', ':', ';', '&', '|', '<', '>', '(', ')'];

/// Whether the user has seen an entry as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryState {
    /// The user trusts the entry as it is now.
    Trusted,
    /// The user trusted another form of the entry.
    Changed,
    /// The user has not seen the entry.
    New,
}

/// An entry of a project that counts only if the user trusts it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProjectEntry {
    /// The kind, the name and the file of the entry, on one line.
    pub label: String,
    /// The digest of the entry as it is now.
    pub digest: Digest,
    /// Whether the user has seen the entry as it is now.
    pub state: EntryState,
    /// What the entry says.
    pub content: EntryContent,
    /// The files of the project whose content the digest covers, relative to the project.
    pub files: Vec<PathBuf>,
}

impl ProjectEntry {
    /// Returns the name of the MCP server, if the entry is one of a file of its own.
    pub(crate) fn server(&self) -> Option<&str> {
        match &self.content {
            EntryContent::Server { server, .. } => Some(&server.name),
            EntryContent::Setting { .. } | EntryContent::Agent { .. } => None,
        }
    }
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EntryContent {
    /// A setting of the project's file, with its key. Command lines, addresses, variables and headers are
    /// whole; a value that is nothing but a key, as `apiKey`, is masked, unless it asks for variables.
    Setting {
        /// The full key.
        key: String,
        /// The value as it is written.
        value: Value,
    },
    /// An MCP server of a file of its own.
    Server {
        /// The file.
        file: PathBuf,
        /// The server as it is written.
        server: Box<ServerConfig>,
    },
    /// An agent of a file of its own: its tools and rights.
    Agent {
        /// The file.
        file: PathBuf,
        /// The name of the agent.
        name: String,
        /// The tools and rights.
        rights: Value,
    },
}

/// The entries that the user trusts in one project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedEntries {
    entries: Vec<(Digest, String)>,
    admits_all: bool,
}

impl TrustedEntries {
    pub(super) fn new(entries: Vec<(Digest, String)>) -> Self {
        Self { entries, admits_all: false }
    }

    /// Admits every entry, each with its state: for a user who looks at a project before trusting it.
    #[must_use]
    pub fn admitting_all(mut self) -> Self {
        self.admits_all = true;
        self
    }

    pub(super) const fn admits_all(&self) -> bool {
        self.admits_all
    }

    fn state(&self, label: &str, digest: Digest) -> EntryState {
        if self.entries.iter().any(|(known, _)| *known == digest) {
            EntryState::Trusted
        } else if self.entries.iter().any(|(_, known)| known == label) {
            EntryState::Changed
        } else {
            EntryState::New
        }
    }
}

/// Decides about the entries of one project.
#[derive(Clone, Debug)]
pub struct EntryTrust {
    root: PathBuf,
    /// Where relative words of a command line may lead.
    starts: Vec<PathBuf>,
    trusted: Arc<TrustedEntries>,
}

impl EntryTrust {
    /// Decides about the entries of the project in `root`, for runs that work in this directory.
    pub fn new(root: &Path, working_directory: &Path, trusted: Arc<TrustedEntries>) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let root = real(root);
        let starts = BTreeSet::from([root.clone(), real(working_directory)]);
        Self { starts: starts.into_iter().collect(), root, trusted }
    }

    /// Tells whether an entry counts.
    pub(crate) fn admits(&self, entry: &ProjectEntry) -> bool {
        self.trusted.admits_all || entry.state == EntryState::Trusted
    }

    /// Returns a path as labels have it: relative to the project, where it lies there.
    pub(crate) fn relative<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }

    /// Returns the root of the project, with its links followed.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Makes an entry. `written` is what the digest covers; `command` decides which files it names.
    pub(crate) fn entry(
        &self,
        label: &str,
        written: &Value,
        command: &CommandWords,
        content: EntryContent,
    ) -> ProjectEntry {
        let label = printable(label);
        let files = self.files(command);
        // Keys of an object are sorted, so the same settings in another order are the same entry.
        let covered = json!({ "entry": label, "says": written, "files": files });
        let digest = Digest::of(&covered.to_string());
        let state = self.trusted.state(&label, digest);
        let files = files.into_keys().map(PathBuf::from).collect();
        ProjectEntry { label, digest, state, content, files }
    }

    /// Returns the files inside the project that a command names, with the digests of their content.
    fn files(&self, command: &CommandWords) -> BTreeMap<String, String> {
        let own = command.directory.iter();
        let starts: Vec<PathBuf> = match own.map(|own| self.root.join(own)).next() {
            Some(own) => vec![own],
            None => self.starts.clone(),
        };
        let mut files = BTreeMap::new();
        let words: BTreeSet<&str> = command.words.iter().flat_map(|text| words(text)).collect();
        for (start, word) in starts.iter().flat_map(|start| words_at(start, &words)) {
            let Ok(real) = start.join(word).canonicalize() else { continue };
            let Ok(inside) = real.strip_prefix(&self.root) else { continue };
            let name = inside.to_string_lossy().into_owned();
            if !files.contains_key(&name)
                && let Some(digest) = content_of(&real)
            {
                files.insert(name, digest.to_string());
            }
        }
        files
    }
}

fn words_at<'a>(
    start: &'a Path,
    words: &'a BTreeSet<&'a str>,
) -> impl Iterator<Item = (&'a Path, &'a str)> {
    words.iter().map(move |word| (start, *word))
}

/// Says in one line which entries are left out, because they are new or changed since the user looked at them.
/// Only the first few have their names told.
pub(crate) fn left_out_warning<'e>(
    entries: impl IntoIterator<Item = &'e ProjectEntry>,
) -> Option<String> {
    const NAMED: usize = 4;
    let left_out = entries.into_iter().filter(|entry| entry.state != EntryState::Trusted);
    let labels: Vec<&str> = left_out.map(|entry| entry.label.as_str()).collect();
    let (first, rest) = labels.split_at_checked(NAMED).unwrap_or((&labels, &[]));
    let more = match rest.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let (are, them) = match labels.len() {
        0 => return None,
        1 => ("1 entry of this project is".to_owned(), "it"),
        count => (format!("{count} entries of this project are"), "them"),
    };
    let first = first.join(", ");
    Some(format!(
        "{are} left out, new or changed since you trusted it: {first}{more}; `convoke config trust` shows {them}"
    ))
}

/// The texts of an entry that may name files of the project.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandWords {
    /// The program, its arguments and the values of its variables, with `${…}` replaced where possible.
    pub(crate) words: Vec<String>,
    /// The directory it starts in, if it says one.
    pub(crate) directory: Option<PathBuf>,
}

/// Returns a text and the words in it: an argument may be a command line (`sh -c "./x.sh"`) or end in a path
/// (`--require=./x.js`).
fn words(text: &str) -> impl Iterator<Item = &str> {
    let whole = std::iter::once(text);
    let parts = text.split(BETWEEN_WORDS).filter(move |part| *part != text);
    let after_equals = text.split_once('=').map(|(_, value)| value);
    whole.chain(parts).chain(after_equals).filter(|word| !word.is_empty() && !word.contains('\0'))
}

/// Returns the digest of a regular file that is not too large. A pipe is not waited for.
fn content_of(path: &Path) -> Option<Digest> {
    let is_covered =
        |metadata: std::fs::Metadata| metadata.is_file() && metadata.len() <= MAX_FILE_BYTES;
    path.metadata().ok().filter(|metadata| is_covered(metadata.clone()))?;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path).ok()?;
    file.metadata().ok().filter(|metadata| is_covered(metadata.clone()))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
    Some(Digest::of_bytes(&bytes))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the files that commands name")]
mod tests {
    use super::*;

    struct Fixture {
        directory: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            Self { directory: tempfile::tempdir().unwrap() }
        }

        fn file(&self, name: &str, text: &str) {
            let path = self.directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn entry(&self, trusted: &[(Digest, String)], words: &[&str]) -> ProjectEntry {
            let trusted = Arc::new(TrustedEntries::new(trusted.to_vec()));
            let root = self.directory.path();
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            let content = EntryContent::Setting { key: "hooks".into(), value: Value::Null };
            EntryTrust::new(root, root, trusted).entry(
                "hooks `a` of convoke.yml",
                &json!({ "on": "start" }),
                &CommandWords { words, directory: None },
                content,
            )
        }
    }

    #[test]
    fn entry_is_changed_when_a_file_that_its_command_names_changes() {
        let fixture = Fixture::new();
        for command in [
            &["./x.sh"][..],
            &["python3", "sub/y.py"],
            &["sh", "-c", "cd /tmp; ./x.sh --fast"],
            &["node", "--require=./sub/y.py"],
            &["--require ./x.sh"],
            &["make", "x.sh:all"],
        ] {
            fixture.file("x.sh", "one");
            fixture.file("sub/y.py", "one");
            let before = fixture.entry(&[], command);
            assert_eq!((before.state, before.files.len()), (EntryState::New, 1), "{command:?}");
            let trusted = [(before.digest, before.label.clone())];
            assert_eq!(fixture.entry(&trusted, command).state, EntryState::Trusted, "{command:?}");
            fixture.file("x.sh", "two");
            fixture.file("sub/y.py", "two");
            assert_eq!(fixture.entry(&trusted, command).state, EntryState::Changed, "{command:?}");
        }
    }

    #[test]
    fn entry_is_changed_when_a_file_that_its_command_names_appears() {
        let fixture = Fixture::new();
        let before = fixture.entry(&[], &["./x.sh"]);
        let trusted = [(before.digest, before.label)];
        fixture.file("x.sh", "one");
        assert_eq!(fixture.entry(&trusted, &["./x.sh"]).state, EntryState::Changed);
    }

    #[test]
    fn entry_does_not_cover_large_files_directories_and_files_outside() {
        let fixture = Fixture::new();
        fixture.file("large", &"x".repeat(1024 * 1024 + 1));
        fixture.file("sub/y.py", "one");
        std::os::unix::fs::symlink("/etc/hostname", fixture.directory.path().join("link")).unwrap();
        let entry = fixture.entry(&[], &["./large", "sub", "link", "/etc/hostname", "../x"]);
        assert_eq!(entry.files, Vec::<PathBuf>::new());
    }
}

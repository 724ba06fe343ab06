//! Everything configuration is made of, handed in by whoever starts the program.
//!
//! The library never reads the process environment, the home directory or the command line. It
//! reads two files, at the paths it finds here, and only while loading.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk;
use super::entry::TrustedEntries;

/// The names a project's file may have, the preferred one first.
pub const PROJECT_FILE_NAMES: &[&str] = &["convoke.yml", "convoke.yaml"];

/// Whether the user said that a project's files may decide things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// They may, within what the user allows.
    Trusted,
    /// They may, but for entries that are new or changed since the user looked at them.
    Entries(Arc<TrustedEntries>),
    /// They might once; an older version wrote that down and not which entries, so they may set harmless
    /// values only.
    Lapsed,
    /// They may set harmless values only.
    #[default]
    Untrusted,
}

impl Trust {
    /// Tells whether the project decides things.
    pub const fn is_given(&self) -> bool {
        matches!(self, Self::Trusted | Self::Entries(_))
    }

    /// Tells whether a mistake in the project's file is the user's own. A mistake in a file that the user has
    /// not agreed to stops no command: the file is left out.
    pub(crate) fn minds_mistakes(&self) -> bool {
        match self {
            Self::Trusted => true,
            Self::Entries(entries) => !entries.admits_all(),
            Self::Lapsed | Self::Untrusted => false,
        }
    }
}

/// Whether there will be tools that are neither built in nor configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MoreTools {
    /// The program may add its own, so a rule may name one that is not known yet.
    #[default]
    Perhaps,
    /// There are no others: who writes a rule about one is warned.
    None,
}

/// Where configuration comes from.
#[derive(Clone)]
#[non_exhaustive]
pub struct Sources {
    /// The user's file. It need not exist.
    pub user_file: Option<PathBuf>,
    /// A file with rules that the user saved when asked, beside those of the user's own file. It need not
    /// exist.
    pub rules_file: Option<PathBuf>,
    /// Where the search for the project's file starts; none, and there is no project layer.
    pub project_directory: Option<PathBuf>,
    /// What relative paths in variables and flags are relative to.
    pub working_directory: PathBuf,
    /// What `~` stands for, and where the search for the project's file ends.
    pub home: Option<PathBuf>,
    /// The environment: for `CONVOKE__…` settings and for `${NAME}`.
    pub environment: BTreeMap<String, String>,
    /// Settings given as `--set key=value`, in order.
    pub flags: Vec<(String, String)>,
    /// Whether the project's file is trusted.
    pub trust: Trust,
    /// Whether the program adds tools of its own.
    pub more_tools: MoreTools,
}

impl Sources {
    /// Starts with a working directory, where the project's file is looked for as well, and
    /// nothing else. The project is not trusted.
    pub fn new(working_directory: impl Into<PathBuf>) -> Self {
        let working_directory = working_directory.into();
        Self {
            user_file: None,
            rules_file: None,
            project_directory: Some(working_directory.clone()),
            working_directory,
            home: None,
            environment: BTreeMap::new(),
            flags: Vec::new(),
            trust: Trust::Untrusted,
            more_tools: MoreTools::Perhaps,
        }
    }

    /// Returns the project's file, where there is one: the nearest from the directory where the
    /// search starts upwards. Whether its directory is trusted decides [`Sources::trust`].
    pub fn project_file(&self) -> Option<PathBuf> {
        self.search_project_file().found
    }

    /// Returns the root of the project: where its file is; without one, the nearest directory upwards with
    /// `.git`, or the one where the search starts. The home directory is no project.
    pub fn project_root(&self) -> Option<PathBuf> {
        let start = self.project_directory.as_deref()?;
        let found = self.project_file().and_then(|file| Some(file.parent()?.to_owned()));
        let found = found.or_else(|| {
            let above = start.ancestors().take_while(|above| self.home.as_deref() != Some(above));
            let root = above.into_iter().find(|above| disk::exists(&above.join(".git")));
            Some(root.unwrap_or(start).to_owned())
        });
        found.filter(|root| self.home.as_ref() != Some(root))
    }

    /// Looks for the project's file. The search ends at a directory that contains `.git`, at the
    /// home directory and at the root; these are looked at as well.
    pub(crate) fn search_project_file(&self) -> Search {
        let mut search = Search::default();
        let start = self.project_directory.as_deref();
        for directory in start.into_iter().flat_map(Path::ancestors) {
            search.look_in(directory, self.user_file.as_deref());
            let is_home = self.home.as_deref() == Some(directory);
            if search.found.is_some() || is_home || disk::exists(&directory.join(".git")) {
                break;
            }
        }
        search
    }
}

/// The variables and flags may hold secrets, so only their names are shown.
impl fmt::Debug for Sources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags: Vec<&str> = self.flags.iter().map(|(key, _)| key.as_str()).collect();
        formatter
            .debug_struct("Sources")
            .field("user_file", &self.user_file)
            .field("rules_file", &self.rules_file)
            .field("project_directory", &self.project_directory)
            .field("working_directory", &self.working_directory)
            .field("home", &self.home)
            .field("environment", &self.environment.keys().collect::<Vec<_>>())
            .field("flags", &flags)
            .field("trust", &self.trust)
            .field("more_tools", &self.more_tools)
            .finish()
    }
}

/// What a search for the project's file gave.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// The file.
    pub(crate) found: Option<PathBuf>,
    /// A second file beside it, which is not read.
    pub(crate) shadowed: Option<PathBuf>,
    /// Where there was none.
    pub(crate) missing: Vec<PathBuf>,
}

impl Search {
    fn look_in(&mut self, directory: &Path, user_file: Option<&Path>) {
        for name in PROJECT_FILE_NAMES {
            let path = directory.join(name);
            if user_file == Some(path.as_path()) {
                continue;
            }
            match (disk::exists(&path), &self.found) {
                (true, None) => self.found = Some(path),
                (true, Some(_)) => self.shadowed = Some(path),
                (false, None) => self.missing.push(path),
                (false, Some(_)) => {}
            }
        }
    }
}

//! Loading from files, variables and flags, as the command does it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use convoke::config::{ConfigError, Loaded, Problem, Sources, Trust, TrustedEntries, load};
use tempfile::TempDir;

mod agents;
mod explaining;
mod files;
mod layers;
mod mistakes;
mod properties;
mod trust;

/// A home with a user's file, and a project below it.
pub(crate) struct Scene {
    directory: TempDir,
    pub(crate) sources: Sources,
}

impl Scene {
    /// An empty project in an empty home, trusted.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let home = root.join("home");
        let project = home.join("project");
        fs::create_dir_all(&project).unwrap();
        let mut sources = Sources::new(project);
        sources.user_file = Some(home.join("user.yml"));
        sources.home = Some(home);
        sources.trust = Trust::Trusted;
        Self { directory, sources }
    }

    pub(crate) fn untrusted(mut self) -> Self {
        self.sources.trust = Trust::Untrusted;
        self
    }

    /// A project that the user looks at before trusting it.
    pub(crate) fn looked_at(mut self) -> Self {
        self.sources.trust = Trust::Entries(Arc::new(TrustedEntries::default().admitting_all()));
        self
    }

    /// The user's file where there is no home.
    pub(crate) fn user_in_root(mut self, text: &str) -> Self {
        let path = self.root().join("user.yml");
        fs::write(&path, text).unwrap();
        self.sources.user_file = Some(path);
        self
    }

    pub(crate) fn user(self, text: &str) -> Self {
        fs::write(self.home().join("user.yml"), text).unwrap();
        self
    }

    pub(crate) fn project(self, text: &str) -> Self {
        fs::write(self.project_directory().join("convoke.yml"), text).unwrap();
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.sources.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn flag(mut self, key: &str, value: &str) -> Self {
        self.sources.flags.push((key.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    pub(crate) fn home(&self) -> &Path {
        self.sources.home.as_deref().unwrap()
    }

    pub(crate) fn project_directory(&self) -> &Path {
        &self.sources.working_directory
    }

    #[track_caller]
    pub(crate) fn load(&self) -> Loaded {
        load(&self.sources).unwrap_or_else(|error| panic!("{error}"))
    }

    #[track_caller]
    pub(crate) fn fail(&self) -> ConfigError {
        load(&self.sources).expect_err("the configuration is wrong")
    }

    /// Text with the temporary directory called `[root]`.
    pub(crate) fn readable(&self, text: &impl ToString) -> String {
        text.to_string().replace(self.root().to_str().unwrap(), "[root]")
    }

    /// Everything a person is told, one problem after the other.
    pub(crate) fn told(&self, problems: &[Problem]) -> String {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        self.readable(&lines.join("\n"))
    }
}

//! Files that decide what runs later: hooks, configuration that starts programs, agents, shell profiles.

use std::path::Path;
use std::sync::OnceLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

const LIST: &str = include_str!("../../data/runs_later.txt");

/// A file, or a directory with everything in it, that decides what runs later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsLater {
    /// The path below any directory. A directory ends with `/`; `*` stands for any part of a name.
    pub path: &'static str,
    /// The reason that a person is told.
    pub reason: &'static str,
}

impl RunsLater {
    /// Returns the path as a glob that covers it in every directory.
    pub fn glob(&self) -> String {
        match self.path.strip_suffix('/') {
            Some(directory) => format!("**/{directory}/**"),
            None => format!("**/{}", self.path),
        }
    }

    /// Returns one absolute path that the glob covers.
    pub fn example(&self) -> String {
        let file = if self.path.ends_with('/') { "x" } else { "" };
        format!("/{}{file}", self.path.replace('*', "x"))
    }
}

/// Returns all files that decide what runs later.
pub fn runs_later() -> impl Iterator<Item = RunsLater> {
    let mut reason = "";
    let lines = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(move |line| {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(next) => {
                reason = next;
                None
            }
            None => Some(RunsLater { path: line, reason }),
        }
    })
}

/// Returns the reason why a file decides what runs later, if it does. The path is absolute.
pub fn decides_what_runs_later(path: &Path) -> Option<&'static str> {
    static COMPILED: OnceLock<(GlobSet, Vec<&str>)> = OnceLock::new();
    let (set, reasons) = COMPILED.get_or_init(compiled);
    reasons.get(*set.matches(path).first()?).copied()
}

/// A pattern of the list that cannot be compiled would be left out; a test sees to it that none is.
fn compiled() -> (GlobSet, Vec<&'static str>) {
    let (mut set, mut reasons) = (GlobSetBuilder::new(), Vec::new());
    for file in runs_later() {
        let glob = file.glob();
        // A directory itself can be replaced too.
        let own = glob.strip_suffix("/**").map(str::to_owned);
        for glob in std::iter::once(glob.clone()).chain(own) {
            let built =
                GlobBuilder::new(&glob).literal_separator(true).case_insensitive(true).build();
            if let Ok(built) = built {
                set.add(built);
                reasons.push(file.reason);
            }
        }
    }
    (set.build().unwrap_or_default(), reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_list_is_recognised_with_its_reason_in_any_case() {
        assert!(runs_later().count() > 60);
        for file in runs_later() {
            assert!(!file.reason.is_empty(), "{file:?}");
            for path in [file.example(), file.example().to_uppercase()] {
                assert!(decides_what_runs_later(Path::new(&path)).is_some(), "{path}");
                let below = format!("/home/u/work{path}");
                assert!(decides_what_runs_later(Path::new(&below)).is_some(), "{below}");
            }
        }
        for path in ["/w/src/main.rs", "/w/Makefile", "/w/.gitignore", "/w/AGENTS.md", "/w/git/x"] {
            assert_eq!(decides_what_runs_later(Path::new(path)), None, "{path}");
        }
    }
}

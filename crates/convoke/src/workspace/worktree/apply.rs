//! Applying what a run changed to the user's files, and naming the files that do not take it.

use std::path::Path;

use convoke_core::RunId;

use super::compare::{APART, difference};
use super::origin::{Origins, Trees, files, places, states, undone};
use super::{hold, text};
use crate::workspace::changes::{Applied, Fit};
use crate::workspace::git::{Git, Rights};
use crate::workspace::known::AppliedFiles;
use crate::workspace::{Apply, Changes, Known, Repository, WorkspaceError, Workspaces, part};

/// Spaces at the ends of lines are nobody's business here.
const QUIETLY: &str = "--whitespace=nowarn";
/// How the name ends of a difference that is needed only while something is applied.
const SINCE: &str = ".since";

/// What is applied, and where.
#[derive(Clone, Copy)]
struct Step<'a> {
    workspaces: &'a Workspaces,
    run: &'a RunId,
    known: &'a Known,
    repository: &'a Repository,
    trees: Trees<'a>,
}

/// Applies what was changed to the user's files. What was applied before and is as it was at the start is made so
/// there too.
pub(in crate::workspace) async fn apply(
    workspaces: &Workspaces,
    run: &RunId,
    known: &Known,
    repository: &Repository,
    changes: &Changes,
    how: Apply,
) -> Result<Applied, WorkspaceError> {
    let base = repository.base.as_str();
    let applied = known.applied_tree.as_deref().unwrap_or(base);
    let trees = Trees { base, applied, now: changes.content.as_deref().unwrap_or(base) };
    let step = Step { workspaces, run, known, repository, trees };
    let fitted = step.apply(how).await;
    let store = workspaces.open_directory()?;
    for ending in [SINCE, ".work-index", ".work-index.lock"] {
        store.remove_file(part(run, ending)).ok();
    }
    fitted
}

impl Step<'_> {
    async fn apply(&self, how: Apply) -> Result<Applied, WorkspaceError> {
        let Self { workspaces, run, known, repository, trees } = *self;
        let objects = repository.common.join("objects");
        let git = self.git(vec![objects, workspaces.directory.clone()]).await?;
        let index = workspaces.directory.join(part(run, ".work-index"));
        let git = git.index(&index);
        let files = files(&git, trees).await?;
        let undone = undone(&git, trees, &files).await?;
        let there = places(&known.source, &files)?;
        let states = states(&git, trees.now, &there).await?;
        let origins =
            Origins::choose(&files, &states, async |path| self.holds(&git, path).await).await?;
        let done = |fit| Applied { fit, files: AppliedFiles::new(), undone };
        if origins.is_empty() {
            return Ok(done(Fit::Already));
        }
        let mut ending = ".diff";
        if !origins.is_base {
            let from = origins.tree(&git, trees.now).await?;
            self.write(&git, &from, trees.now).await?;
            ending = SINCE;
        }
        if !self.fits(&git, ending).await? {
            return Ok(done(Fit::Already));
        }
        if how == Apply::Really {
            hold(workspaces, repository, trees.now).await?;
            let patch = workspaces.directory.join(part(run, ending));
            let git = self.git(vec![known.source.clone()]).await?;
            git.run(&["apply", QUIETLY, text(&patch)?]).await?;
        }
        Ok(done(Fit::Now))
    }

    /// Starts git with the user's files, and the right to write these.
    async fn git(&self, writable: Vec<std::path::PathBuf>) -> Result<Git, WorkspaceError> {
        let Self { workspaces, known, repository, .. } = *self;
        let git = workspaces.git(Rights(writable), &known.source)?;
        git.repository(&repository.git_directory).files(&known.source).without_filters().await
    }

    /// Writes how two trees differ beside the workspace.
    async fn write(&self, git: &Git, from: &str, to: &str) -> Result<(), WorkspaceError> {
        let Self { workspaces, run, .. } = *self;
        let name = part(run, SINCE);
        let diff = difference(git, APART, from, to).await?.diff;
        let written = workspaces.open_directory()?.write(&name, diff);
        written.map_err(WorkspaceError::files(workspaces.directory.join(&name), "written"))
    }

    /// Tells whether a file that the user changed still has what was applied to it.
    async fn holds(&self, git: &Git, path: &Path) -> Result<bool, WorkspaceError> {
        let Some(name) = path.to_str() else { return Ok(false) };
        self.write(git, self.trees.base, self.trees.applied).await?;
        let only = format!("--include={}", literally(name));
        let patch = self.workspaces.directory.join(part(self.run, SINCE));
        let undo = ["apply", "--check", "--reverse", QUIETLY, &only, text(&patch)?];
        Ok(git.complaint(&undo).await?.is_none())
    }

    /// Tells whether a difference fits; not, where all of it is there already. If it neither fits nor is there, that
    /// is a conflict.
    async fn fits(&self, git: &Git, ending: &str) -> Result<bool, WorkspaceError> {
        let path = self.workspaces.directory.join(part(self.run, ending));
        let path = text(&path)?;
        let Some(said) = git.complaint(&["apply", "--check", QUIETLY, path]).await? else {
            return Ok(true);
        };
        let undo = ["apply", "--check", "--reverse", QUIETLY, path];
        if git.complaint(&undo).await?.is_none() {
            return Ok(false);
        }
        let (path, files) = (self.known.source.clone(), named(&said));
        Err(if files.is_empty() {
            WorkspaceError::Git { command: "apply".to_owned(), said }
        } else {
            WorkspaceError::Conflict { path, files }
        })
    }
}

/// Returns a pattern that only this name fits.
fn literally(name: &str) -> String {
    let mut pattern = String::new();
    for letter in name.chars() {
        if matches!(letter, '*' | '?' | '[' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// Finds the files that git names when a patch does not fit.
fn named(said: &str) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for line in said.lines().filter_map(|line| line.strip_prefix("error: ")) {
        if line.starts_with("patch failed: ") {
            continue;
        }
        if let Some((file, why)) = line.rsplit_once(": ") {
            let named = format!("{file} ({why})");
            if !files.contains(&named) {
                files.push(named);
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_pattern() {
        assert_eq!(literally("a b.txt"), "a b.txt");
        assert_eq!(literally("[x]*?\\.txt"), "\\[x]\\*\\?\\\\.txt");
    }

    #[test]
    fn files_that_do_not_fit_are_named_once() {
        let said = "error: patch failed: a:1\nerror: a: patch does not apply\nerror: a: patch does not \
                    apply\nerror: b: already exists in working directory\nwarning: x";
        assert_eq!(
            named(said),
            ["a (patch does not apply)", "b (already exists in working directory)"]
        );
    }
}

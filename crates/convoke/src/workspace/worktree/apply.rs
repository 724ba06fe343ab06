//! Applying what a run changed to the user's files, and naming the files that do not take it.

use convoke_core::{FileChange, RunId};

use super::text;
use crate::workspace::changes::Fit;
use crate::workspace::git::{Git, Rights};
use crate::workspace::{Apply, Known, Repository, WorkspaceError, Workspaces, part};

/// Spaces at the ends of lines are nobody's business here.
const QUIETLY: &str = "--whitespace=nowarn";

/// A diff that was written to a file beside a workspace.
pub(in crate::workspace) struct Patch<'a> {
    /// How the name of the file ends.
    pub(in crate::workspace) ending: &'static str,
    /// What it changes.
    pub(in crate::workspace) files: &'a [FileChange],
}

/// Applies a diff to the user's files. What is so there already is no conflict: it was taken over before the run
/// went on.
pub(in crate::workspace) async fn apply(
    workspaces: &Workspaces,
    run: &RunId,
    known: &Known,
    repository: &Repository,
    Patch { ending, files }: Patch<'_>,
    how: Apply,
) -> Result<Fit, WorkspaceError> {
    let path = workspaces.directory.join(part(run, ending));
    let path = text(&path)?;
    let rights = match how {
        Apply::Check => Rights::default(),
        Apply::Really => Rights(vec![known.source.clone()]),
    };
    let git = workspaces.git(rights, &known.source)?.repository(&repository.git_directory);
    let git = git.files(&known.source).without_filters().await?;
    let mut passed_over: Vec<String> = Vec::new();
    let mut complaint = git.complaint(&["apply", "--check", QUIETLY, path]).await?;
    if complaint.is_some() {
        let undo = ["apply", "--check", "--reverse", QUIETLY, path];
        if git.complaint(&undo).await?.is_none() {
            return Ok(Fit::Already);
        }
    }
    // Of what git says only the beginning is read, so it is asked again.
    while let Some(said) = &complaint {
        let more = there_already(&git, path, files, said, &passed_over).await?;
        if more.is_empty() {
            break;
        }
        passed_over.extend(more);
        let rest = [&["apply", "--check", QUIETLY], &texts(&passed_over)[..], &[path]].concat();
        complaint = git.complaint(&rest).await?;
    }
    if let Some(said) = complaint {
        let (path, files) = (known.source.clone(), named(&said));
        return Err(if files.is_empty() {
            WorkspaceError::Git { command: "apply".to_owned(), said }
        } else {
            WorkspaceError::Conflict { path, files }
        });
    }
    if how == Apply::Really {
        git.run(&[&["apply", QUIETLY], &texts(&passed_over)[..], &[path]].concat()).await?;
    }
    Ok(Fit::Now)
}

/// Returns the options that pass over files that git complains about and that are already as they are to become,
/// but for those that are known.
async fn there_already(
    git: &Git,
    patch: &str,
    files: &[FileChange],
    said: &str,
    known: &[String],
) -> Result<Vec<String>, WorkspaceError> {
    let complained =
        |name: &str| said.lines().any(|line| line.starts_with(&format!("error: {name}: ")));
    let mut options = Vec::new();
    for file in files {
        if !complained(&file.path) && !file.from.as_deref().is_some_and(complained) {
            continue;
        }
        let name = literally(&file.path);
        let (only, without) = (format!("--include={name}"), format!("--exclude={name}"));
        let undo = ["apply", "--check", "--reverse", QUIETLY, &only, patch];
        if !known.contains(&without) && git.complaint(&undo).await?.is_none() {
            options.push(without);
        }
    }
    Ok(options)
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

fn texts(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
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

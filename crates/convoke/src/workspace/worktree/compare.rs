//! What a run changed: the difference between the commit it began with and its files, as git tells it.

use std::collections::BTreeMap;

use cap_std::fs::Dir;
use convoke_core::{Change, FileChange, RunId};

use super::index::{clear_lock, copy_with_time, take_in};
use super::links::mend;
use crate::workspace::git::{Git, Rights};
use crate::workspace::{Changes, Known, Repository, WorkspaceError, Workspaces, part};

/// A file that is gone and one that is new with nearly the same content are one that moved.
const MOVED: &str = "-M";
/// What is applied further is told file by file: each may be so already.
pub(super) const APART: &str = "--no-renames";

/// Finds out what was changed.
pub(in crate::workspace) async fn changes(
    workspaces: &Workspaces,
    run: &RunId,
    known: &Known,
    repository: &Repository,
    store: &Dir,
) -> Result<Changes, WorkspaceError> {
    let mut notes = mend(repository)?;
    let (kept, index) = (part(run, ".index"), part(run, ".work-index"));
    let index_path = workspaces.directory.join(&index);
    clear_lock(store, &index);
    copy_with_time(store, &kept, store, &index)
        .map_err(WorkspaceError::files(&index_path, "written"))?;
    let rights = Rights(vec![repository.common.join("objects"), workspaces.directory.clone()]);
    let git = workspaces.git(rights, &known.tree)?.repository(&repository.common);
    let git = git.files(&known.tree).index(&index_path).without_filters().await?;
    notes.extend(take_in(&git, &known.tree, &[]).await?);
    let content = git.line(&["write-tree"]).await?;
    let Difference { files, diff } = difference(&git, MOVED, &repository.base, &content).await?;
    store.remove_file(&index).ok();
    Ok(Changes { files, diff, notes, content: Some(content), ..Changes::default() })
}

/// How two trees differ.
pub(super) struct Difference {
    pub(super) files: Vec<FileChange>,
    /// All of it, as git writes it.
    pub(super) diff: Vec<u8>,
}

/// Returns how two trees differ.
pub(super) async fn difference(
    git: &Git,
    moves: &str,
    from: &str,
    to: &str,
) -> Result<Difference, WorkspaceError> {
    let mut files = names(&compared(git, &[moves, "-z", "--name-status"], from, to).await?);
    count(&compared(git, &[moves, "-z", "--numstat"], from, to).await?, &mut files);
    let how = [moves, "-p", "--binary", "--full-index", "--no-color"];
    Ok(Difference { files, diff: compared(git, &how, from, to).await? })
}

pub(super) async fn compared(
    git: &Git,
    how: &[&str],
    from: &str,
    to: &str,
) -> Result<Vec<u8>, WorkspaceError> {
    let usual = ["diff-tree", "-r", "--no-ext-diff", "--no-textconv"];
    git.run(&[&usual[..], how, &[from, to]].concat()).await
}

/// Reads what `--raw -z` prints: by the path, what is there before and after, as an index is told.
pub(super) fn entries(printed: &[u8]) -> BTreeMap<Vec<u8>, (String, String)> {
    let mut fields = printed.split(|byte| *byte == 0);
    let mut entries = BTreeMap::new();
    while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
        // The modes before and after, the hashes before and after, and what happened.
        let about = String::from_utf8_lossy(about);
        let words: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
        if let [mode, new_mode, hash, new_hash, _] = words[..] {
            let after = format!("{new_mode} {new_hash}");
            entries.insert(path.to_vec(), (format!("{mode} {hash}"), after));
        }
    }
    entries
}

/// Reads what `--name-status -z` prints.
fn names(printed: &[u8]) -> Vec<FileChange> {
    let mut fields = printed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut files = Vec::new();
    while let Some(status) = fields.next().filter(|status| !status.is_empty()) {
        let change = match status.chars().next() {
            Some('A') => Change::Added,
            Some('D') => Change::Deleted,
            Some('R') => Change::Renamed,
            Some('T') => Change::Retyped,
            _ => Change::Modified,
        };
        let mut path = fields.next().unwrap_or_default().into_owned();
        let mut from = None;
        if change == Change::Renamed {
            from = Some(std::mem::replace(&mut path, fields.next().unwrap_or_default().into()));
        }
        files.push(FileChange { path, from, change, added: None, removed: None });
    }
    files
}

/// Reads what `--numstat -z` prints: in the same order.
fn count(printed: &[u8], files: &mut [FileChange]) {
    let mut fields = printed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    for file in files {
        let Some(field) = fields.next() else { return };
        let mut numbers = field.splitn(3, '\t');
        file.added = numbers.next().and_then(|number| number.parse().ok());
        file.removed = numbers.next().and_then(|number| number.parse().ok());
        // The names of a file that moved follow.
        if numbers.next() == Some("") {
            fields.next();
            fields.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_before_and_after_a_change_is_read() {
        let printed = b":100644 100755 aa bb M\0a b\0:100644 000000 cc 00 D\0gone\xff\0";
        let expected = [
            (b"a b".to_vec(), ("100644 aa", "100755 bb")),
            (b"gone\xff".to_vec(), ("100644 cc", "000000 00")),
        ];
        let expected = expected.map(|(path, (one, two))| (path, (one.to_owned(), two.to_owned())));
        assert_eq!(entries(printed), BTreeMap::from(expected));
        assert_eq!(entries(b""), BTreeMap::new());
    }

    #[test]
    fn names_and_numbers_of_git_are_read() {
        let mut files = names(b"M\0a b\0R090\0old\0new\nline\0A\0bin\0D\0gone\0");
        count(b"1\t2\ta b\x003\t0\t\0old\0new\nline\0-\t-\tbin\x000\t7\tgone\0", &mut files);
        let shown: Vec<_> = files
            .iter()
            .map(|file| (file.change.as_str(), file.path.as_str(), file.added, file.removed))
            .collect();
        assert_eq!(
            shown,
            [
                ("modified", "a b", Some(1), Some(2)),
                ("renamed", "new\nline", Some(3), Some(0)),
                ("added", "bin", None, None),
                ("deleted", "gone", Some(0), Some(7)),
            ]
        );
        assert_eq!(files[1].from.as_deref(), Some("old"));
    }
}

//! What a run changed: the difference between its copy and the one that stayed as it was.

use std::collections::BTreeMap;
use std::path::PathBuf;

use convoke_core::{Change, FileChange, RunId};

use super::blocking;
use super::files::{Files, State, is_link};
use crate::workspace::diff::{Side, compare};
use crate::workspace::{Changes, WorkspaceError, Workspaces, part};

/// Finds out what was changed.
pub(in crate::workspace) async fn changes(
    workspaces: &Workspaces,
    run: &RunId,
) -> Result<Changes, WorkspaceError> {
    let paths = [".base", ""].map(|ending| workspaces.directory.join(part(run, ending)));
    blocking(move || {
        let [base, tree] = &paths;
        let (old, new) = (Files::read(base)?, Files::read(tree)?);
        difference(&old, &new)
    })
    .await
}

/// Lists the paths that are not what they were.
pub(super) fn touched(old: &Files, new: &Files) -> Vec<PathBuf> {
    let gone = old.0.keys().filter(|path| !new.0.contains_key(*path));
    let other = new.0.iter().filter(|(path, state)| old.0.get(*path) != Some(state));
    let mut paths: Vec<PathBuf> = gone.chain(other.map(|(path, _)| path)).cloned().collect();
    paths.sort();
    paths
}

/// A file that is gone and one that is new with the same content are one that moved.
fn difference(old: &Files, new: &Files) -> Result<Changes, WorkspaceError> {
    let mut changes = Changes::default();
    let touched = touched(old, new);
    let mut moved: BTreeMap<&PathBuf, &PathBuf> = BTreeMap::new();
    for path in touched.iter().filter(|path| !old.0.contains_key(*path)) {
        let is_same = |gone: &&PathBuf| {
            !new.0.contains_key(*gone)
                && old.0.get(*gone) == new.0.get(path)
                && !moved.values().any(|taken| taken == gone)
        };
        if let Some(gone) = touched.iter().find(is_same) {
            moved.insert(path, gone);
        }
    }
    for path in &touched {
        if moved.values().any(|gone| *gone == path) {
            continue;
        }
        let from = moved.get(path).copied().unwrap_or(path);
        let cannot = || WorkspaceError::files(path, "read");
        let (before, after) = (old.0.get(from), new.0.get(path));
        let old_content = before.map(|_| old.content(from)).transpose().map_err(cannot())?;
        let new_content = after.map(|_| new.content(path)).transpose().map_err(cannot())?;
        let (from_name, name) = (from.to_string_lossy(), path.to_string_lossy());
        let old_side = side(&from_name, before, old_content.as_deref());
        let new_side = side(&name, after, new_content.as_deref());
        let found = compare(old_side, new_side);
        let change = match (before, after) {
            _ if from != path => Change::Renamed,
            (None, _) => Change::Added,
            (_, None) => Change::Deleted,
            (Some(before), Some(after)) if is_link(before) != is_link(after) => Change::Retyped,
            _ => Change::Modified,
        };
        changes.diff.extend_from_slice(found.text.as_bytes());
        changes.files.push(FileChange {
            path: name.into_owned(),
            from: (from != path).then(|| from_name.into_owned()),
            change,
            added: found.lines.map(|lines| lines.0),
            removed: found.lines.map(|lines| lines.1),
        });
    }
    Ok(changes)
}

pub(super) fn side<'a>(
    path: &'a str,
    state: Option<&'a State>,
    content: Option<&'a [u8]>,
) -> Option<Side<'a>> {
    let (state, content) = (state?, content?);
    Some(Side { path, mode: state.mode, content, hash: state.hash.get(..16).unwrap_or_default() })
}

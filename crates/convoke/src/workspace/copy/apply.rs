//! Applying what a run changed in a copy to the original, file by file, and taking back what was applied before.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt, Permissions, PermissionsExt};
use convoke_core::{Change, FileChange, RunId};
use convoke_tool::files::{Changed, FileState, NewFile, Target};

use super::blocking;
use super::compare::{side, touched};
use super::files::{Files, State, content, is_link, state};
use crate::workspace::changes::{Applied, Fit};
use crate::workspace::diff::compare;
use crate::workspace::known::AppliedFiles;
use crate::workspace::room::{Place, look};
use crate::workspace::{Apply, Known, WorkspaceError, Workspaces, part};

/// Applies what was changed: where the original is still what it was at the start, or what it became when changes were
/// last applied. What was applied then and is as it was at the start is made so in the original too.
pub(in crate::workspace) async fn apply(
    workspaces: &Workspaces,
    run: &RunId,
    known: &Known,
    how: Apply,
) -> Result<Applied, WorkspaceError> {
    let paths = [".base", ""].map(|ending| workspaces.directory.join(part(run, ending)));
    let (source, applied) = (known.source.clone(), known.applied_files.clone());
    blocking(move || {
        let [base, tree] = &paths;
        let (old, new) = (Files::read(base)?, Files::read(tree)?);
        let target = Dir::open_ambient_dir(&source, ambient_authority())
            .map_err(WorkspaceError::files(&source, "opened"))?;
        let touched = touched(&old, &new);
        let name = |path: &PathBuf| path.to_string_lossy().into_owned();
        let files: AppliedFiles =
            touched.iter().map(|path| (name(path), in_short(new.0.get(path)))).collect();
        let undone = undone(&applied, &files);
        let changed: BTreeSet<&Path> =
            touched.iter().chain(&undone).map(PathBuf::as_path).collect();
        let is_changed = |path: &Path| changed.contains(path);
        let (mut conflicts, mut to_do) = (Vec::new(), Vec::new());
        for path in touched.iter().chain(&undone) {
            let looked_at = || WorkspaceError::files(source.join(path), "looked at");
            let place = look(&target, path, new.0.contains_key(path), &is_changed);
            let (before, there) = match place.map_err(looked_at())? {
                // Its hash comes first: a change after this is noticed when it is exchanged.
                Place::File => (
                    before(&target, path).map_err(looked_at())?,
                    state(&target, path).map_err(looked_at())?,
                ),
                Place::Free => (FileState::Absent, None),
                taken @ Place::Taken(..) => {
                    conflicts.extend(taken.complaint(path));
                    continue;
                }
            };
            let wanted = new.0.get(path);
            // Somebody did the same already: then there is nothing to do.
            if there.as_ref() == wanted {
                continue;
            }
            to_do.push((path, before));
            let is_ours = applied.get(&*path.to_string_lossy()) == Some(&in_short(there.as_ref()));
            if there.as_ref() != old.0.get(path) && !is_ours {
                conflicts.push(path.display().to_string());
            }
        }
        if !conflicts.is_empty() {
            return Err(WorkspaceError::Conflict { path: source, files: conflicts });
        }
        let undone = undone.iter().map(|path| {
            let was_there = applied.get(&*path.to_string_lossy()).is_some_and(Option::is_some);
            taken_back(&target, &new, path, was_there)
                .map_err(WorkspaceError::files(source.join(path), "read"))
        });
        let undone = undone.collect::<Result<Vec<FileChange>, _>>()?;
        let fit = if to_do.is_empty() { Fit::Already } else { Fit::Now };
        if how == Apply::Check || fit == Fit::Already {
            return Ok(Applied { fit, files, undone });
        }
        let from = Dir::open_ambient_dir(tree, ambient_authority())
            .map_err(WorkspaceError::files(tree, "opened"))?;
        // What goes makes room: a directory may be in the place of a file, or the other way round.
        let (gone, others): (Vec<_>, Vec<_>) =
            to_do.into_iter().partition(|(path, _)| !new.0.contains_key(*path));
        let cannot = |path: &Path| WorkspaceError::files(source.join(path), "written");
        let mut lost_races = Vec::new();
        for (path, before) in &gone {
            if !remove(&target, path, *before).map_err(cannot(path))? {
                lost_races.push(path.display().to_string());
            }
        }
        for (path, before) in others {
            let Some(wanted) = new.0.get(path) else { continue };
            if !put(&from, &target, path, (wanted, before)).map_err(cannot(path))? {
                lost_races.push(path.display().to_string());
            }
        }
        // Only now: a directory that is filled again stays the one it is.
        for (path, _) in gone {
            remove_emptied(&target, path);
        }
        if !lost_races.is_empty() {
            return Err(WorkspaceError::Conflict { path: source, files: lost_races });
        }
        Ok(Applied { fit, files, undone })
    })
    .await
}

/// Returns what a file is, as it is kept; nothing, if there is none.
fn in_short(state: Option<&State>) -> Option<String> {
    state.map(|State { mode, hash, .. }| format!("{mode} {hash}"))
}

/// Lists what was applied and is no change any more. Of a name that is no text it is not known what it was.
fn undone(applied: &AppliedFiles, now: &AppliedFiles) -> Vec<PathBuf> {
    let is_known = |name: &&String| !name.contains(char::REPLACEMENT_CHARACTER);
    let undone = applied.keys().filter(|name| !now.contains_key(*name)).filter(is_known);
    undone.map(PathBuf::from).collect()
}

/// Says what becomes of a file of the original that is taken back.
fn taken_back(target: &Dir, new: &Files, path: &Path, was_there: bool) -> io::Result<FileChange> {
    let (before, after) = (state(target, path)?, new.0.get(path));
    let old_content = before.as_ref().map(|_| content(target, path)).transpose()?;
    let new_content = after.map(|_| new.content(path)).transpose()?;
    let name = path.to_string_lossy();
    let found = compare(
        side(&name, before.as_ref(), old_content.as_deref()),
        side(&name, after, new_content.as_deref()),
    );
    let change = match (was_there, after) {
        (false, _) => Change::Added,
        (true, None) => Change::Deleted,
        (true, Some(_)) => Change::Modified,
    };
    let (added, removed) = (found.lines.map(|lines| lines.0), found.lines.map(|lines| lines.1));
    Ok(FileChange { path: name.into_owned(), from: None, change, added, removed })
}

/// Returns the state of a file of the original, which is compared again when the file is replaced.
fn before(target: &Dir, path: &Path) -> io::Result<FileState> {
    match FileState::of(target, path.as_os_str()) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(FileState::Absent),
        state => state,
    }
}

/// Removes a file that is still as it was looked at, and tells whether it was.
fn remove(from: &Dir, path: &Path, before: FileState) -> io::Result<bool> {
    let Some((directory, name)) = opened(from, path)? else { return Ok(true) };
    let target = Target { directory: &directory, name, keep: None };
    let removed = target.remove(&|state| *state == before)?;
    Ok(matches!(removed, Changed::Done(_) | Changed::Refused(FileState::Absent)))
}

/// Opens the directory of a path; nothing, if there is none.
fn opened<'a>(root: &Dir, path: &'a Path) -> io::Result<Option<(Dir, &'a OsStr)>> {
    let Some(name) = path.file_name() else { return Ok(None) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.map_or_else(|| root.try_clone(), |parent| root.open_dir(parent));
    match directory {
        Ok(directory) => Ok(Some((directory, name))),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A directory that is empty goes with its last file.
fn remove_emptied(root: &Dir, path: &Path) {
    let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    above.take_while(|above| root.remove_dir(above).is_ok()).for_each(drop);
}

/// Removes a directory in which there are no files any more.
fn clear_away(root: &Dir, path: &Path) -> io::Result<()> {
    for entry in root.read_dir(path)? {
        clear_away(root, &path.join(entry?.file_name()))?;
    }
    root.remove_dir(path)
}

/// Makes a path what it is in the workspace, if it is still as it was looked at, and tells whether it was. A file
/// appears whole or not at all.
fn put(
    from: &Dir,
    to: &Dir,
    path: &Path,
    (wanted, before): (&State, FileState),
) -> io::Result<bool> {
    let parent = path.parent().unwrap_or(Path::new(""));
    if !parent.as_os_str().is_empty() {
        to.create_dir_all(parent)?;
    }
    let there = to.symlink_metadata(path).ok();
    let is_directory = there.as_ref().is_some_and(cap_std::fs::Metadata::is_dir);
    if is_directory {
        clear_away(to, path)?;
    }
    let Some((directory, name)) = opened(to, path)? else { return Ok(false) };
    let target = Target { directory: &directory, name, keep: None };
    let before = if is_directory { FileState::Absent } else { before };
    if is_link(wanted) {
        let link = from.read_link_contents(path)?;
        if before != FileState::Absent
            && let Changed::Refused(_) = target.remove(&|state| *state == before)?
        {
            return Ok(false);
        }
        return match directory.symlink_contents(link, name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            made => made.map(|()| true),
        };
    }
    let there = there.filter(cap_std::fs::Metadata::is_file);
    let usual = if wanted.mode == "100755" { 0o755 } else { 0o644 };
    let bits = there.map_or(usual, |there| there.mode() & 0o666 | usual & 0o111);
    // Whoever runs this has to be able to remove it again.
    let permissions = Permissions::from_mode(bits & 0o777 | 0o600);
    let mut new = NewFile::write(&directory, from.open(path)?, Some(permissions))?;
    let changed = match before {
        FileState::Absent => target.create(&mut new),
        _ => target.replace(&mut new, &|state| *state == before),
    };
    Ok(matches!(changed?, Changed::Done(_)))
}

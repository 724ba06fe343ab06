//! Making a copy to work with, and one to compare it with.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt};
use convoke_core::{RunId, WorkspaceKind};

use super::{LEFT_OUT, blocking, copy_file};
use crate::workspace::{Known, WorkspaceError, Workspaces, make_private, part, save, told};

/// How much a copy may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyLimits {
    /// How many files and directories.
    pub files: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Default for CopyLimits {
    fn default() -> Self {
        Self { files: 50_000, bytes: 1024 * 1024 * 1024 }
    }
}

/// What of a directory is copied.
#[derive(Debug)]
struct Bounds {
    limits: Option<CopyLimits>,
    /// What is not, as paths below the directory.
    kept_back: Vec<PathBuf>,
}

/// What was met while copying.
#[derive(Debug, Default)]
struct Met {
    files: u64,
    bytes: u64,
    /// What is neither a file nor a directory nor a link.
    special: Vec<PathBuf>,
    has_git: bool,
    has_kept_back: bool,
}

pub(in crate::workspace) async fn prepare(
    workspaces: &Workspaces,
    run: &RunId,
    start: &Path,
    store: &Dir,
) -> Result<Known, WorkspaceError> {
    let real = workspaces.directory.canonicalize();
    if real.is_ok_and(|real| real.starts_with(start)) {
        return Err(WorkspaceError::Inside { path: start.to_owned() });
    }
    let tree = workspaces.directory.join(part(run, ""));
    let mut known = Known::begun(WorkspaceKind::Copy, start.to_owned(), tree, PathBuf::new(), None);
    // Whoever finds this after we were killed knows what to clear away.
    save(workspaces, store, run, &known)?;
    let (source, limits) = (start.to_owned(), workspaces.limits);
    let kept_back = workspaces.kept_back_below(start);
    let names = [part(run, ".base"), part(run, "")];
    let cannot = |path: PathBuf, what| WorkspaceError::files(path, what);
    for name in &names {
        make_private(store, name).map_err(cannot(workspaces.directory.join(name), "made"))?;
    }
    let open = |name: &String| store.open_dir(name);
    let targets = [open(&names[0]), open(&names[1])];
    let [Ok(base), Ok(tree)] = targets else {
        let error = io::Error::other("it was just made");
        return Err(cannot(workspaces.directory.clone(), "opened")(error));
    };
    let met = blocking(move || {
        let from = Dir::open_ambient_dir(&source, ambient_authority())
            .map_err(WorkspaceError::files(&source, "opened"))?;
        let mut met = Met::default();
        let bounds = Bounds { limits: Some(limits), kept_back };
        copy(&from, &base, Path::new(""), &source, &bounds, &mut met)?;
        // The second one is a copy of the first: both begin the same, whatever happens meanwhile.
        let all = Bounds { limits: None, kept_back: Vec::new() };
        copy(&base, &tree, Path::new(""), &source, &all, &mut Met::default())?;
        Ok(met)
    })
    .await?;
    if met.has_git {
        known.notes.push("`.git` is left out: there is no history in the copy".to_owned());
    }
    if met.has_kept_back {
        known.notes.push("what is hidden or denied is left out".to_owned());
    }
    let special: Vec<String> = met.special.iter().map(|path| path.display().to_string()).collect();
    known.notes.extend(told("pipes, sockets and devices are left out", &special));
    Ok(known)
}

/// Copies what is in a directory. `path` is where it lies below `root`, for messages.
fn copy(
    from: &Dir,
    to: &Dir,
    path: &Path,
    root: &Path,
    bounds: &Bounds,
    met: &mut Met,
) -> Result<(), WorkspaceError> {
    let cannot = |name: &Path| WorkspaceError::files(root.join(path).join(name), "copied");
    for entry in from.entries().map_err(cannot(Path::new("")))? {
        let entry = entry.map_err(cannot(Path::new("")))?;
        let name = PathBuf::from(entry.file_name());
        if name == Path::new(LEFT_OUT) {
            met.has_git = true;
            continue;
        }
        if bounds.kept_back.contains(&path.join(&name)) {
            met.has_kept_back = true;
            continue;
        }
        let metadata = from.symlink_metadata(&name).map_err(cannot(&name))?;
        let kind = metadata.file_type();
        met.files += 1;
        met.bytes += if kind.is_file() { metadata.len() } else { 0 };
        within(bounds.limits.as_ref(), met, root)?;
        if kind.is_dir() {
            to.create_dir(&name).map_err(cannot(&name))?;
            let below = from.open_dir(&name).and_then(|from| Ok((from, to.open_dir(&name)?)));
            let (below_from, below_to) = below.map_err(cannot(&name))?;
            copy(&below_from, &below_to, &path.join(&name), root, bounds, met)?;
        } else if kind.is_symlink() {
            let target = from.read_link_contents(&name).map_err(cannot(&name))?;
            to.symlink_contents(target, &name).map_err(cannot(&name))?;
        } else if kind.is_file() {
            copy_file(from, to, &name, &name, metadata.mode()).map_err(cannot(&name))?;
        } else {
            met.special.push(path.join(&name));
        }
    }
    Ok(())
}

fn within(limits: Option<&CopyLimits>, met: &Met, root: &Path) -> Result<(), WorkspaceError> {
    let Some(limits) = limits else { return Ok(()) };
    if met.files > limits.files {
        let what = "more files and directories than may be copied".to_owned();
        return Err(WorkspaceError::too_much(root, what, limits.files.to_string()));
    }
    if met.bytes > limits.bytes {
        let what = "more bytes than may be copied".to_owned();
        return Err(WorkspaceError::too_much(root, what, format!("{} bytes", limits.bytes)));
    }
    Ok(())
}

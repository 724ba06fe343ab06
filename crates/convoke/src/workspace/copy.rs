//! Copies: for directories without git.
//!
//! Two copies are made: one to work with, and one that stays as it was. What a run changed is the difference
//! between them, so it does not matter what becomes of the original meanwhile. Files are opened below a
//! directory handle throughout: a link leads nowhere else. Where the file system can, copies share their
//! blocks.
//!
//! | module | owns |
//! | --- | --- |
//! | `apply` | applying what a run changed to the original |

mod apply;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use convoke_core::{Change, FileChange, RunId, WorkspaceKind};
use sha2::{Digest, Sha256};

pub(super) use self::apply::apply;
use super::diff::{Side, compare};
use super::{Changes, Known, WorkspaceError, Workspaces, hex, make_private, part, save};

/// What belongs to git is not copied: the copy has no history, and cannot change it.
const LEFT_OUT: &str = ".git";
/// How many names are told.
const MOST_NAMES: usize = 5;

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

pub(super) async fn prepare(
    workspaces: &Workspaces,
    run: &RunId,
    start: &Path,
    store: &Dir,
) -> Result<Known, WorkspaceError> {
    let real = workspaces.directory.canonicalize();
    if real.is_ok_and(|real| real.starts_with(start)) {
        return Err(WorkspaceError::Inside { path: start.to_owned() });
    }
    let mut known = Known {
        kind: WorkspaceKind::Copy,
        source: start.to_owned(),
        tree: workspaces.directory.join(part(run, "")),
        within: PathBuf::new(),
        repository: None,
        notes: Vec::new(),
        complete: false,
        applied: None,
        applied_tree: None,
        applied_files: BTreeMap::new(),
    };
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
    if !met.special.is_empty() {
        let shown = met.special.iter().take(MOST_NAMES).map(|path| path.display().to_string());
        let more = met.special.len().saturating_sub(MOST_NAMES);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let shown = shown.collect::<Vec<_>>().join(", ");
        known.notes.push(format!("pipes, sockets and devices are left out: {shown}{more}"));
    }
    Ok(known)
}

/// Finds out what was changed.
pub(super) async fn changes(
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

/// Removes a directory, also one whose owner took away the right to.
pub(super) fn remove_directory(parent: &Dir, name: &str) -> io::Result<()> {
    match parent.remove_dir_all(name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(parent, Path::new(name))?;
            parent.remove_dir_all(name)
        }
        ended => ended,
    }
}

fn open_up(parent: &Dir, name: &Path) -> io::Result<()> {
    parent.set_permissions(name, Permissions::from_mode(0o700))?;
    let directory = parent.open_dir(name)?;
    for entry in directory.entries()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&directory, Path::new(&entry.file_name()))?;
        }
    }
    Ok(())
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

/// Shares blocks where the file system can: `io::copy` between files asks it to.
fn copy_file(from: &Dir, to: &Dir, name: &Path, new: &Path, mode: u32) -> io::Result<()> {
    let mut source = from.open(name)?.into_std();
    let mut options = OpenOptions::new();
    // Whoever runs this has to be able to remove it again.
    options.write(true).create_new(true).mode(mode & 0o777 | 0o600);
    let mut target = to.open_with(new, &options)?.into_std();
    io::copy(&mut source, &mut target).map(drop)
}

fn within(limits: Option<&CopyLimits>, met: &Met, root: &Path) -> Result<(), WorkspaceError> {
    let Some(limits) = limits else { return Ok(()) };
    let too_much = |what: String, limit: String| {
        Err(WorkspaceError::TooMuch { path: root.to_owned(), what, limit })
    };
    if met.files > limits.files {
        let what = "more files and directories than may be copied".to_owned();
        return too_much(what, limits.files.to_string());
    }
    if met.bytes > limits.bytes {
        let what = "more bytes than may be copied".to_owned();
        return too_much(what, format!("{} bytes", limits.bytes));
    }
    Ok(())
}

/// What a file is: enough to tell whether it is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    mode: &'static str,
    hash: String,
    bytes: u64,
}

/// The files of a directory, by their paths below it.
#[derive(Debug)]
struct Files(BTreeMap<PathBuf, State>, Dir);

impl Files {
    fn read(root: &Path) -> Result<Self, WorkspaceError> {
        let directory = Dir::open_ambient_dir(root, ambient_authority());
        let directory = directory.map_err(WorkspaceError::files(root, "opened"))?;
        let mut files = BTreeMap::new();
        Self::walk(&directory, Path::new(""), &mut files)
            .map_err(WorkspaceError::files(root, "read"))?;
        Ok(Self(files, directory))
    }

    fn walk(directory: &Dir, path: &Path, files: &mut BTreeMap<PathBuf, State>) -> io::Result<()> {
        for entry in directory.entries()? {
            let entry = entry?;
            let name = PathBuf::from(entry.file_name());
            if name == Path::new(LEFT_OUT) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                Self::walk(&directory.open_dir(&name)?, &path.join(&name), files)?;
            } else if let Some(state) = state(directory, &name)? {
                files.insert(path.join(&name), state);
            }
        }
        Ok(())
    }

    fn content(&self, path: &Path) -> io::Result<Vec<u8>> {
        content(&self.1, path)
    }
}

/// Returns what is at a path; nothing, if that is neither a file nor a link.
fn state(directory: &Dir, path: &Path) -> io::Result<Option<State>> {
    let metadata = match directory.symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let kind = metadata.file_type();
    let mode = match () {
        () if kind.is_symlink() => "120000",
        () if !kind.is_file() => return Ok(None),
        () if metadata.mode() & 0o100 != 0 => "100755",
        () => "100644",
    };
    let mut hasher = Sha256::new();
    let bytes = if kind.is_symlink() {
        let target = content(directory, path)?;
        hasher.update(&target);
        target.len() as u64
    } else {
        io::copy(&mut directory.open(path)?, &mut Hashed(&mut hasher))?
    };
    let hash = hex(&hasher.finalize());
    Ok(Some(State { mode, hash, bytes }))
}

struct Hashed<'a>(&'a mut Sha256);

impl io::Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns what a file says, or where a link leads.
fn content(directory: &Dir, path: &Path) -> io::Result<Vec<u8>> {
    if directory.symlink_metadata(path)?.file_type().is_symlink() {
        let target = directory.read_link_contents(path)?;
        return Ok(target.into_os_string().into_encoded_bytes());
    }
    directory.read(path)
}

/// Lists the paths that are not what they were.
fn touched(old: &Files, new: &Files) -> Vec<PathBuf> {
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

fn is_link(state: &State) -> bool {
    state.mode == "120000"
}

fn side<'a>(
    path: &'a str,
    state: Option<&'a State>,
    content: Option<&'a [u8]>,
) -> Option<Side<'a>> {
    let (state, content) = (state?, content?);
    Some(Side { path, mode: state.mode, content, hash: state.hash.get(..16).unwrap_or_default() })
}

/// Does what waits for a disk where nobody else waits for it.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        let error = io::Error::other(error);
        Err(WorkspaceError::files("", "used")(error))
    })
}

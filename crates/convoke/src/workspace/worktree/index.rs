//! Indexes: what git knows about the files, with what it does not know yet taken in.
//!
//! The user's index is copied and never written. What is new is put into git's store, so there is a limit.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use convoke_core::RunId;

use crate::workspace::git::Git;
use crate::workspace::{WorkspaceError, Workspaces, part, told};

/// How much that git does not know yet may be carried over, or be the result of a run.
const MOST_FILES: usize = 20_000;
const MOST_BYTES: u64 = 512 * 1024 * 1024;

/// Takes an index over, with what it knows about files: what did not change is not read again. One that is
/// not there is empty.
pub(super) fn copy_index(
    from: &Path,
    store: &Dir,
    run: &RunId,
    workspaces: &Workspaces,
) -> Result<(), WorkspaceError> {
    let name = part(run, ".index");
    clear_lock(store, &name);
    let opened = Dir::open_ambient_dir(from, ambient_authority());
    let directory = opened.map_err(WorkspaceError::files(from, "opened"))?;
    // Nobody waits for whoever is at the other end of a pipe.
    let is_other = |there: cap_std::fs::Metadata| !there.is_file();
    if directory.symlink_metadata("index").is_ok_and(is_other) {
        let error = std::io::Error::other("it is not a file");
        return Err(WorkspaceError::files(from.join("index"), "read")(error));
    }
    match copy_with_time(&directory, "index", store, &name) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(WorkspaceError::files(workspaces.directory.join(name), "written")(error)),
    }
}

/// Removes the lock of an index of ours that git left when it was killed. One process works on a run, so no other git
/// uses the index.
pub(super) fn clear_lock(store: &Dir, index: &str) {
    // There nearly never is one, and git says what is wrong with one that stays.
    drop(store.remove_file(format!("{index}.lock")));
}

/// A file that was changed in the very second in which an index was written looks unchanged. Git tells by the
/// time of the index which files it has to read, so a copy keeps it.
pub(super) fn copy_with_time(from: &Dir, name: &str, to: &Dir, new: &str) -> std::io::Result<()> {
    let mut source = from.open(name)?.into_std();
    let mut target = to.create(new)?.into_std();
    std::io::copy(&mut source, &mut target)?;
    target.set_modified(source.metadata()?.modified()?)
}

/// Notes in the index what is changed and what is new, but for what is kept back below the root; returns what
/// is left out.
pub(super) async fn take_in(
    git: &Git,
    root: &Path,
    kept_back: &[PathBuf],
) -> Result<Vec<String>, WorkspaceError> {
    let status = ["diff-files", "-z", "--name-status", "--no-renames", "--ignore-submodules=all"];
    let changed = git.run(&status).await?;
    let new = git.run(&["ls-files", "-z", "--others", "--exclude-standard"]).await?;
    let fields = |list: &[u8]| -> Vec<Vec<u8>> {
        let all = list.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        all.map(<[u8]>::to_vec).collect()
    };
    let is_taken = |path: &Vec<u8>| {
        let path = Path::new(OsStr::from_bytes(path));
        !kept_back.iter().any(|kept| path.starts_with(kept))
    };
    let (mut gone, mut input) = (Vec::new(), Vec::new());
    for pair in fields(&changed).chunks_exact(2) {
        if let [status, path] = pair
            && is_taken(path)
        {
            let list = if status == b"D" { &mut gone } else { &mut input };
            list.extend_from_slice(path);
            list.push(0);
        }
    }
    // What ends with a slash is a repository of its own.
    let (nested, new): (Vec<_>, Vec<_>) =
        fields(&new).into_iter().filter(is_taken).partition(|path| path.ends_with(b"/"));
    measure(root, &new)?;
    for path in new {
        input.extend_from_slice(&path);
        input.push(0);
    }
    // What is gone is not looked at: a link may be in the place of its directory.
    if !gone.is_empty() {
        git.feed(&["update-index", "-z", "--force-remove", "--stdin"], gone).await?;
    }
    if !input.is_empty() {
        git.feed(&["update-index", "-z", "--add", "--remove", "--stdin"], input).await?;
    }
    Ok(told("repositories inside of it are left out", &texts(&nested)).into_iter().collect())
}

/// Files that git does not know are put into its store, so there is a limit.
fn measure(root: &Path, new: &[Vec<u8>]) -> Result<(), WorkspaceError> {
    if new.len() > MOST_FILES {
        let what = format!("{} new files that are not ignored", new.len());
        return Err(WorkspaceError::too_much(root, what, format!("{MOST_FILES} files")));
    }
    let size = |path: &Vec<u8>| {
        let path = root.join(String::from_utf8_lossy(path).as_ref());
        path.symlink_metadata().map_or(0, |metadata| metadata.len())
    };
    let bytes: u64 = new.iter().map(size).sum();
    if bytes > MOST_BYTES {
        let mib = |bytes: u64| format!("{} MiB", bytes / (1024 * 1024));
        let what = format!("{} in new files that are not ignored", mib(bytes));
        return Err(WorkspaceError::too_much(root, what, mib(MOST_BYTES)));
    }
    Ok(())
}

pub(super) async fn submodules(git: &Git) -> Result<Option<String>, WorkspaceError> {
    let staged = git.run(&["ls-files", "-z", "--stage"]).await?;
    let is_submodule = |entry: &&[u8]| entry.starts_with(b"160000 ");
    let name = |entry: &[u8]| entry.splitn(2, |byte| *byte == b'\t').nth(1).map(<[u8]>::to_vec);
    let entries = staged.split(|byte| *byte == 0).filter(is_submodule);
    let names: Vec<Vec<u8>> = entries.filter_map(name).collect();
    Ok(told("submodules are empty directories in it", &texts(&names)))
}

fn texts(names: &[Vec<u8>]) -> Vec<String> {
    names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

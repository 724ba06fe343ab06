//! Files and directories of the state directory: the only module that names them to the system.
//!
//! Everything made here is for its owner alone: directories 0700, files 0600.

#![expect(
    clippy::disallowed_methods,
    reason = "a state directory is reached by its path, here only"
)]

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use convoke_core::Timestamp;
use convoke_core::file_kind::not_a_file;
use rustix::fs::OFlags;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Makes one directory; it is an error if there is something already.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Makes a directory if there is none; tells whether it was made.
pub(crate) fn ensure_directory(path: &Path) -> io::Result<bool> {
    match make_directory(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes a file that was not there, to read it and to write at its end.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
}

/// Opens a file to read it and to write at its end.
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    open_file(path, OpenOptions::new().read(true).append(true))
}

/// Opens a file to read it.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_file(path, OpenOptions::new().read(true))
}

/// Opens a file, and nothing else: a pipe would be waited for. One that stands there after it was looked at
/// is not waited for either.
fn open_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let refuse = |metadata: fs::Metadata| {
        not_a_file(metadata.mode()).map_or(Ok(()), |what| Err(io::Error::other(what)))
    };
    refuse(path.metadata()?)?;
    let file = options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    refuse(file.metadata()?)?;
    Ok(file)
}

/// Opens a file or a directory of which it is known that it is one.
pub(crate) fn open_any(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Reads a whole file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file that anybody may have put there: no link, nothing but a file, nothing too long.
pub(crate) fn read_stranger(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > limit {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// Puts a whole file in its place, also over another one: whatever happens, it is there or it is not.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    put_by(path, bytes, |temporary| fs::rename(temporary, path))
}

/// Puts a whole file in its place unless there is one; tells whether it was put there.
pub(crate) fn put_new(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let put = put_by(path, bytes, |temporary| {
        fs::hard_link(temporary, path)?;
        fs::remove_file(temporary)
    });
    match put {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        put => put.map(|()| true),
    }
}

/// Writes a file beside a path, and has it moved there.
fn put_by(
    path: &Path,
    bytes: &[u8],
    place: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = OsString::from(format!(
        ".{}-{}.",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    name.push(path.file_name().unwrap_or_default());
    let temporary = path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options
        .open(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| place(&temporary));
    if written.is_err() {
        // The first error is the one to tell; this is tidying up.
        drop(fs::remove_file(&temporary));
    }
    written
}

/// Writes over the beginning of a file, which is made if it is not there, with one call.
pub(crate) fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    // A pipe is not waited for.
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    options.open(path)?.write_all(bytes)
}

/// Moves a file or a directory.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Removes a file.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

/// Removes a directory and all in it. A link is removed, not followed.
pub(crate) fn remove_directory(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(path)
}

/// Gives a file a second name, which takes no space.
pub(crate) fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)
}

/// Returns the names in a directory; none if there is no such directory. Names that are no text are
/// nobody's here.
pub(crate) fn names(path: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// Tells whether a process has ended and waits for its parent to look after it, where the system tells.
pub(crate) fn is_zombie(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program stands in parentheses, and may hold some itself.
    let state = status.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|state| state.starts_with(['Z', 'X']))
}

/// Returns the path of a directory without links.
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// Returns how long nothing was changed in a directory.
pub(crate) fn age(path: &Path, now: Timestamp) -> Option<Duration> {
    let changed = fs::symlink_metadata(path).ok()?.modified().ok()?;
    let changed = changed.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let now = u64::try_from(now.as_millis()).ok()?;
    Duration::from_millis(now).checked_sub(changed)
}

/// Returns how many bytes the files of a directory have.
pub(crate) fn bytes_in(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|metadata| metadata.len()).sum()
}

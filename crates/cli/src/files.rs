//! The few files the command itself reads and writes, always by the wish of the person who typed it.
//!
//! What tools touch is another matter: they open everything through their roots.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use convoke_core::file_kind::not_a_file;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// The most that is read from a file or from standard input.
pub(crate) const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;

/// Reads a text file that is nothing else, such as a pipe; nothing where there is none.
pub(crate) fn read_if_there(path: &Path) -> io::Result<Option<String>> {
    match read_regular(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a text file that nobody named: what is no file is told, and not waited for.
pub(crate) fn read_regular(path: &Path) -> io::Result<String> {
    read_text(open_regular(path)?)
}

/// Opens a file that nobody named, to be read.
pub(crate) fn open_regular(path: &Path) -> io::Result<fs::File> {
    refuse_others(&path.metadata()?)?;
    let mut options = fs::OpenOptions::new();
    let file = options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    refuse_others(&file.metadata()?)?;
    Ok(file)
}

fn refuse_others(metadata: &fs::Metadata) -> io::Result<()> {
    not_a_file(metadata.mode()).map_or(Ok(()), |what| Err(io::Error::other(what)))
}

/// Reads a text file, or whatever else somebody named, such as what another program writes.
#[expect(clippy::disallowed_methods, reason = "the person named this very file")]
pub(crate) fn read(path: &Path) -> io::Result<String> {
    read_text(fs::File::open(path)?)
}

/// Reads a file of any kind.
pub(crate) fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file to be read.
#[expect(clippy::disallowed_methods, reason = "the person named this very file")]
pub(crate) fn open(path: &Path) -> io::Result<fs::File> {
    if path.metadata()?.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    fs::File::open(path)
}

/// Opens a file that only its owner may read, in a directory of the same kind, to add to it. What is in
/// it stays.
pub(crate) fn append_private(path: &Path) -> io::Result<fs::File> {
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    let file = options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    refuse_others(&file.metadata()?)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Makes a file that only its owner may read, or empties it.
pub(crate) fn create_private(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Reads text to its end, up to a limit that only a mistake passes.
pub(crate) fn read_text(input: impl Read) -> io::Result<String> {
    let mut text = String::new();
    input.take(MAX_INPUT_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_INPUT_BYTES {
        let limit = MAX_INPUT_BYTES / (1024 * 1024);
        return Err(io::Error::other(format!("there is more than {limit} MiB of it")));
    }
    Ok(text)
}

/// Writes a text file.
#[expect(clippy::disallowed_methods, reason = "the person named this very file")]
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)
}

/// Makes a directory with those above it.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Writes a file that only its owner may read, whole or not at all. Directories that are made on the
/// way are the owner's alone, too.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().unwrap_or(&path);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// What keeps others of us from changing a file, for as long as it is kept itself.
#[derive(Debug)]
pub(crate) struct Held {
    _directory: Option<OwnedFd>,
}

/// Waits until nobody else of us changes a file, and keeps others from it. The file is written by putting another
/// in its place, so it is its directory that is locked; one that is not there is made. Where a directory cannot be
/// made or locked at all, nothing is held: whoever writes then says what is wrong, if anything is.
pub(crate) fn hold(path: &Path) -> io::Result<Held> {
    const PATIENCE: Duration = Duration::from_secs(10);
    const STEP: Duration = Duration::from_millis(5);
    let directory = directory_of(path);
    // What is wrong with it is told by whoever writes there.
    drop(fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory));
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open(&directory, flags, Mode::empty()) else {
        return Ok(Held { _directory: None });
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Held { _directory: Some(directory) }),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < deadline => {
                std::thread::sleep(STEP);
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                let waited = PATIENCE.as_secs();
                let why = format!("another process has been changing it for {waited} s");
                return Err(io::Error::other(why));
            }
            // Some file systems have no locks.
            Err(_) => return Ok(Held { _directory: None }),
        }
    }
}

/// Returns the directory that a file is really in.
fn directory_of(path: &Path) -> PathBuf {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real.parent().unwrap_or(&real).to_owned()
}

/// Writes a file in the place of another, whole or not at all: who may read it stays, and so does a link. A new
/// one is its owner's alone. One that nobody may write is left alone.
pub(crate) fn rewrite(path: &Path, text: &str) -> io::Result<()> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let permissions = real.metadata().map(|metadata| metadata.permissions()).ok();
    if permissions.as_ref().is_some_and(fs::Permissions::readonly) {
        return Err(io::Error::other("it is read-only"));
    }
    write_private(&real, text)?;
    permissions.map_or(Ok(()), |permissions| fs::set_permissions(&real, permissions))
}

/// Writes a new file that only its owner may read, whole or not at all.
pub(crate) fn put(path: &Path, text: &str) -> io::Result<()> {
    beside(path, text)?.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(())
}

/// The same, also where there is a file already.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    beside(path, text)?.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Writes a text to something that is there and no file: a device, a pipe.
pub(crate) fn write_to(path: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// Writes a text where it can be moved into its place with one step.
fn beside(path: &Path, text: &str) -> io::Result<tempfile::NamedTempFile> {
    let directory = path.parent().unwrap_or(path);
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_file_is_kept_and_closed_to_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/history");
        append_private(&path).unwrap();
        write(&path, "one\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        append_private(&path).unwrap();
        assert_eq!(read(&path).unwrap(), "one\n");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn private_files_are_the_owners_and_links_stay() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("a/b/real"), directory.path().join("link"));
        write_private(&real, "one\n").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_private(&link, "two\n").unwrap();
        assert_eq!(read(&real).unwrap(), "two\n");
        assert!(link.is_symlink());
        assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let parent = directory.path().join("a").metadata().unwrap();
        assert_eq!(parent.permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn who_may_read_a_file_stays_when_it_is_rewritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shared.yml");
        rewrite(&path, "one\n").unwrap();
        let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        rewrite(&path, "two\n").unwrap();
        assert_eq!((mode(), read(&path).unwrap().as_str()), (0o644, "two\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(rewrite(&path, "three\n").unwrap_err().to_string(), "it is read-only");
        assert_eq!((mode(), read(&path).unwrap().as_str()), (0o400, "two\n"));
    }

    #[test]
    fn a_file_is_held_by_one_at_a_time_and_also_by_its_links() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("a/real"), directory.path().join("link"));
        let held = hold(&real).unwrap();
        write_private(&real, "one\n").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let linked = rustix::fs::open(directory_of(&link), flags, Mode::empty()).unwrap();
        let taken = rustix::fs::flock(&linked, FlockOperation::NonBlockingLockExclusive);
        assert_eq!(taken, Err(Errno::WOULDBLOCK));
        let other = std::thread::spawn(move || {
            let _held = hold(&link).unwrap();
            read(&link).unwrap()
        });
        write_private(&real, "two\n").unwrap();
        drop(held);
        assert_eq!(other.join().unwrap(), "two\n");
    }

    #[test]
    fn input_is_text_and_has_an_end() {
        assert_eq!(read_text(&b"abc"[..]).unwrap(), "abc");
        assert!(read_text(&b"\xff"[..]).is_err());
        let endless = read_text(io::repeat(b'x')).unwrap_err();
        assert_eq!(endless.to_string(), "there is more than 64 MiB of it");
        assert_eq!(read_if_there(Path::new("/nowhere/at/all")).unwrap(), None);
    }
}

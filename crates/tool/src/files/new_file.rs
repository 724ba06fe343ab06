//! A new content on its way into a directory.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, File, MetadataExt, OpenOptions, OpenOptionsExt, Permissions};
use rustix::fs::{RenameFlags, renameat_with};
use xxhash_rust::xxh3::Xxh3;

use super::state::{FileHash, FileState, Identity};
use crate::cache::Stamp;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A name for a file that is on its way: `.convoke-INODE-NUMBER.tmp`. The inode is that of the new content, so a
/// process that finds the file later can tell the new content from a file that came out of its place.
pub(super) fn temporary_name(inode: u64) -> OsString {
    OsString::from(format!(".convoke-{inode:x}-{:x}.tmp", next_number()))
}

/// Returns a number that no other writer of this process uses, with the number of the process in front.
pub(super) fn next_number() -> u64 {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    u64::from(std::process::id()) << 32 | number & 0xFFFF_FFFF
}

/// Returns the inode that a temporary name speaks of.
pub(super) fn inode_in(name: &OsStr) -> Option<u64> {
    let (inode, _) =
        name.to_str()?.strip_prefix(".convoke-")?.strip_suffix(".tmp")?.split_once('-')?;
    u64::from_str_radix(inode, 16).ok()
}

/// A reader that hashes what is read.
struct Hashed<R> {
    content: R,
    hash: Xxh3,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(buffer)?;
        self.hash.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

/// A new content, written and forced to the disk, that is not in its place yet. It has no name as long as the file
/// system allows that, so a process that dies leaves nothing behind.
#[derive(Debug)]
pub struct NewFile {
    pub(super) file: File,
    pub(super) directory: Dir,
    pub(super) inode: (u64, u64),
    hash: FileHash,
    /// Its name, where it has one and is not in its place.
    pub(super) name: Option<OsString>,
}

impl NewFile {
    /// Writes a content, to its end, for a name in this directory. The file has these permissions from its first
    /// byte on.
    pub fn write(
        directory: &Dir,
        content: impl Read,
        permissions: Option<Permissions>,
    ) -> io::Result<Self> {
        let directory = directory.try_clone()?;
        let mut new = match unnamed(&directory, permissions.is_some()) {
            Some(file) => Self::of(file, directory, None)?,
            None => Self::named(directory, permissions.is_some())?,
        };
        if let Some(permissions) = permissions {
            new.file.set_permissions(permissions)?;
        }
        let mut content = Hashed { content, hash: Xxh3::new() };
        io::copy(&mut content, &mut new.file)?;
        new.file.sync_data()?;
        new.hash = FileHash::from(content.hash);
        Ok(new)
    }

    fn of(file: File, directory: Dir, name: Option<OsString>) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let inode = (metadata.dev(), metadata.ino());
        Ok(Self { file, directory, inode, hash: FileHash::of(b""), name })
    }

    /// Returns the hash of the content.
    pub const fn hash(&self) -> FileHash {
        self.hash
    }

    pub(super) const fn identity(&self) -> Identity {
        Identity { state: FileState::File(self.hash), inode: self.inode }
    }

    /// Returns what identifies the file as it is now.
    pub fn stamp(&self) -> io::Result<Stamp> {
        self.file.metadata().map(|metadata| Stamp::of(&metadata))
    }

    fn named(directory: Dir, private: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        if private {
            options.mode(0o600);
        }
        loop {
            let name = temporary_name(0);
            match directory.open_with(&name, &options) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => {
                    let mut new = Self::of(opened?, directory, Some(name.clone()))?;
                    let better = temporary_name(new.inode.1);
                    new.directory.rename(&name, &new.directory, &better)?;
                    new.name = Some(better);
                    return Ok(new);
                }
            }
        }
    }

    /// Gives it a name beside its place.
    pub(super) fn beside(&mut self) -> io::Result<OsString> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let name = temporary_name(self.inode.1);
        link(&self.file, &self.directory, &name)?;
        self.name = Some(name.clone());
        Ok(name)
    }

    /// Gives it its final name, if nothing has that name.
    pub(super) fn put(&mut self, name: &OsStr) -> io::Result<()> {
        match &self.name {
            None => link(&self.file, &self.directory, name)?,
            Some(beside) => {
                let flags = RenameFlags::NOREPLACE;
                match renameat_with(&self.directory, beside, &self.directory, name, flags) {
                    Err(error) if super::exchange::is_unsupported(error) => {
                        // The file system has no such rename; a link never replaces anything either.
                        self.directory.hard_link(beside, &self.directory, name)?;
                        return Ok(());
                    }
                    renamed => renamed?,
                }
                self.name = None;
            }
        }
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        // The name may stand for another file by now, which is not ours to remove.
        let is_ours = |metadata: cap_std::fs::Metadata| metadata.ino() == self.inode.1;
        if self.directory.symlink_metadata(&name).is_ok_and(is_ours) {
            drop(self.directory.remove_file(&name));
        }
    }
}

/// Opens a file without a name, where the file system has such files and they can be given one later.
#[cfg(target_os = "linux")]
fn unnamed(directory: &Dir, private: bool) -> Option<File> {
    use rustix::fs::{Mode, OFlags, openat};

    let mode = if private { 0o600 } else { 0o666 };
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let opened = openat(directory, ".", flags, Mode::from_raw_mode(mode)).ok()?;
    std::path::Path::new("/proc/self/fd").exists().then_some(())?;
    Some(File::from_std(opened.into()))
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Dir, _: bool) -> Option<File> {
    None
}

/// Gives a file without a name one that is free.
fn link(file: &File, directory: &Dir, name: &OsStr) -> io::Result<()> {
    use std::os::fd::{AsFd, AsRawFd};

    use rustix::fs::{AtFlags, CWD, linkat};

    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    Ok(linkat(CWD, path, directory, name, AtFlags::SYMLINK_FOLLOW)?)
}

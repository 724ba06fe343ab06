//! Logins in files that only their owner can read.
//!
//! One directory (0700), one file (0600) for each server, address and issuer. The directory is opened
//! once for each use and everything else happens below that handle, so a link that appears on the way
//! leads nowhere. A file that others can read, or that belongs to somebody else, is refused and named:
//! its token may be known, or planted. Files appear whole: written beside their place, forced to the
//! disk, then renamed.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::{StoreError, StoreLock, TokenStore};
use crate::auth::random::unguessable;
use crate::auth::record::Record;

/// A login is far shorter.
const LONGEST_FILE: u64 = 1024 * 1024;

/// How often a lock that somebody else holds is tried again.
const LOCK_STEP: Duration = Duration::from_millis(50);

/// Keeps logins in a directory. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FileStore {
    directory: PathBuf,
}

impl FileStore {
    /// Keeps logins in this directory, which is made when it is first needed.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Opened) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let path = self.directory.clone();
        let done = tokio::task::spawn_blocking(move || work(&Opened::open(path)?)).await;
        done.unwrap_or_else(|_| Err(StoreError::Other("the work was cut off".to_owned())))
    }
}

#[async_trait]
impl TokenStore for FileStore {
    async fn load(&self, server: &str, url: &str) -> Result<Option<Record>, StoreError> {
        let prefix = prefix_of(server, Some(url));
        self.work(move |directory| directory.newest(&prefix)).await
    }

    async fn save(&self, record: &Record) -> Result<(), StoreError> {
        let record = record.clone();
        self.work(move |directory| {
            let prefix = prefix_of(&record.server, Some(&record.url));
            let name = format!("{prefix}{}.json", hash(&record.issuer));
            directory.put(&name, record.to_json().expose().as_bytes())?;
            directory.remove(&prefix, |other| other != name).map(drop)
        })
        .await
    }

    async fn forget(&self, server: &str) -> Result<usize, StoreError> {
        let prefix = prefix_of(server, None);
        self.work(move |directory| directory.remove(&prefix, |_| true)).await
    }

    async fn lock(
        &self,
        server: &str,
        url: &str,
        patience: Duration,
    ) -> Result<StoreLock, StoreError> {
        let name = format!("{}lock", prefix_of(server, Some(url)));
        let file = self.work(move |directory| directory.open_lock(&name)).await?;
        let deadline = Instant::now() + patience;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(StoreLock::new(file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < deadline => {
                    tokio::time::sleep(LOCK_STEP).await;
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    return Err(StoreError::Busy { server: server.to_owned(), waited: patience });
                }
                Err(error) => return Err(failed(&self.directory)(error)),
            }
        }
    }
}

/// Returns how the names of all files about a server begin, or of those about one address of it. The
/// readable part is for people; the hashes tell names apart that it makes alike.
fn prefix_of(server: &str, url: Option<&str>) -> String {
    let readable = server.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-');
    let readable: String = readable.take(32).collect();
    let url = url.map(|url| format!("{}.", hash(url))).unwrap_or_default();
    format!("{readable}.{}.{url}", hash(server))
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let beginning = digest.first_chunk().copied().unwrap_or_default();
    format!("{:016x}", u64::from_be_bytes(beginning))
}

/// The directory, open and found to be ours alone.
struct Opened {
    path: PathBuf,
    handle: OwnedFd,
}

impl Opened {
    fn open(path: PathBuf) -> Result<Self, StoreError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|source| StoreError::Io { path: path.clone(), source })?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&path, flags, Mode::empty()).map_err(failed(&path))?;
        let stat = rustix::fs::fstat(&handle).map_err(failed(&path))?;
        ours_alone(&stat, &path, "700")?;
        Ok(Self { path, handle })
    }

    /// Reads the file that was written last of those whose names begin like this.
    fn newest(&self, prefix: &str) -> Result<Option<Record>, StoreError> {
        let mut newest: Option<(SystemTime, File, PathBuf)> = None;
        for name in self.names(prefix)? {
            let Some(file) = self.open_file(&name)? else { continue };
            let path = self.path.join(&name);
            let written = file.metadata().and_then(|metadata| metadata.modified());
            let written =
                written.map_err(|source| StoreError::Io { path: path.clone(), source })?;
            if newest.as_ref().is_none_or(|(before, ..)| *before < written) {
                newest = Some((written, file, path));
            }
        }
        let Some((_, file, path)) = newest else { return Ok(None) };
        let mut text = Vec::new();
        let read = file.take(LONGEST_FILE).read_to_end(&mut text);
        read.map_err(|source| StoreError::Io { path: path.clone(), source })?;
        Record::from_json(&text).map(Some).map_err(|_| StoreError::Unreadable { path })
    }

    /// Opens a file, if it is there, and is a file, and is ours alone.
    fn open_file(&self, name: &str) -> Result<Option<File>, StoreError> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.handle, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(StoreError::Unreadable { path }),
            Err(error) => return Err(failed(&path)(error)),
        };
        let stat = rustix::fs::fstat(&file).map_err(failed(&path))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(StoreError::Unreadable { path });
        }
        ours_alone(&stat, &path, "600")?;
        Ok(Some(File::from(file)))
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        let path = self.path.join(name);
        let chance = unguessable().map_err(|error| StoreError::Other(error.to_string()))?;
        let temporary = format!(".{}.tmp", chance.expose());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let written = (|| {
            let mode = Mode::RUSR | Mode::WUSR;
            let mut file = File::from(rustix::fs::openat(&self.handle, &temporary, flags, mode)?);
            file.write_all(content)?;
            file.sync_all()?;
            rustix::fs::renameat(&self.handle, &temporary, &self.handle, name)?;
            rustix::fs::fsync(&self.handle).map_err(io::Error::from)
        })();
        if written.is_err() {
            // The first error is the one to tell; this is tidying up.
            rustix::fs::unlinkat(&self.handle, &temporary, AtFlags::empty()).unwrap_or_default();
        }
        written.map_err(|source| StoreError::Io { path, source })
    }

    /// Removes the logins whose names begin like this, except those that are to stay; tells how many.
    fn remove(&self, prefix: &str, goes: impl Fn(&str) -> bool) -> Result<usize, StoreError> {
        let mut removed = 0;
        for name in self.names(prefix)?.iter().filter(|name| goes(name)) {
            match rustix::fs::unlinkat(&self.handle, name.as_str(), AtFlags::empty()) {
                Ok(()) => removed += 1,
                Err(Errno::NOENT) => {}
                Err(error) => return Err(failed(&self.path.join(name))(error)),
            }
        }
        Ok(removed)
    }

    /// Opens the file that is locked. It stays when the lock is gone: somebody may hold it already.
    fn open_lock(&self, name: &str) -> Result<OwnedFd, StoreError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let opened = rustix::fs::openat(&self.handle, name, flags, mode);
        opened.map_err(failed(&self.path.join(name)))
    }

    fn names(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle).map_err(failed(&self.path))? {
            let entry = entry.map_err(failed(&self.path))?;
            let name = entry.file_name().to_str().unwrap_or_default();
            if name.starts_with(prefix) && name.strip_suffix(".json").is_some() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }
}

fn ours_alone(stat: &Stat, path: &Path, mode: &'static str) -> Result<(), StoreError> {
    let path = path.to_owned();
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(StoreError::NotOurs { path });
    }
    if stat.st_mode & 0o077 != 0 {
        return Err(StoreError::Exposed { path, mode });
    }
    Ok(())
}

fn failed(path: &Path) -> impl Fn(Errno) -> StoreError + use<> {
    let path = path.to_owned();
    move |error| StoreError::Io { path: path.clone(), source: error.into() }
}

//! The content of a file, in short.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

use cap_std::fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// The bytes that are read and hashed at once: they stay in the processor's cache.
const CHUNK_BYTES: usize = 128 * 1024;
const PREFIX: &str = "xxh3-";

/// The hash of a whole file (XXH3, 128 bits). It tells apart contents that came about by themselves. It need not
/// withstand a forger: a process that can write a file of the same hash can write the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileHash(u128);

impl FileHash {
    /// Hashes a content.
    pub fn of(content: &[u8]) -> Self {
        Self(xxh3_128(content))
    }

    /// Hashes a content from its reader, to its end.
    pub fn read(mut content: impl Read) -> io::Result<Self> {
        let (mut hash, mut chunk) = (Xxh3::new(), vec![0; CHUNK_BYTES]);
        loop {
            match content.read(&mut chunk) {
                Ok(0) => return Ok(hash.into()),
                Ok(count) => hash.update(chunk.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl From<Xxh3> for FileHash {
    fn from(hash: Xxh3) -> Self {
        Self(hash.digest128())
    }
}

impl fmt::Display for FileHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PREFIX}{:032x}", self.0)
    }
}

impl FromStr for FileHash {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix(PREFIX).filter(|digits| digits.len() == 32).ok_or(())?;
        u128::from_str_radix(digits, 16).map(Self).map_err(|_| ())
    }
}

/// The state of one name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// There is nothing.
    Absent,
    /// A regular file with this content.
    File(FileHash),
    /// A symbolic link with this target.
    Link(FileHash),
    /// A directory or something else without a content of its own.
    Other,
}

impl FileState {
    /// Returns the hash of the content, if there is one.
    pub const fn hash(&self) -> Option<FileHash> {
        match self {
            Self::File(hash) | Self::Link(hash) => Some(*hash),
            Self::Absent | Self::Other => None,
        }
    }

    /// Looks at a name of a directory. A link is not followed.
    pub fn of(directory: &Dir, name: &OsStr) -> io::Result<Self> {
        Identity::of(directory, name).map(|identity| identity.state)
    }
}

impl fmt::Display for FileState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => formatter.write_str("absent"),
            Self::File(hash) => write!(formatter, "file {hash}"),
            Self::Link(hash) => write!(formatter, "link {hash}"),
            Self::Other => formatter.write_str("other"),
        }
    }
}

/// The state of a name, and which file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) state: FileState,
    pub(super) inode: (u64, u64),
}

impl Identity {
    pub(super) fn of(directory: &Dir, name: &OsStr) -> io::Result<Self> {
        let metadata = match directory.symlink_metadata(name) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { state: FileState::Absent, inode: (0, 0) });
            }
            Err(error) => return Err(error),
        };
        let inode = (metadata.dev(), metadata.ino());
        if metadata.is_symlink() {
            let target = directory.read_link_contents(name)?;
            let hash = FileHash::of(target.as_os_str().as_bytes());
            return Ok(Self { state: FileState::Link(hash), inode });
        }
        if !metadata.is_file() {
            return Ok(Self { state: FileState::Other, inode });
        }
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(NO_LINKS);
        let file = directory.open_with(name, &options)?;
        let opened = file.metadata()?;
        let state = if opened.is_file() {
            FileState::File(FileHash::read(file)?)
        } else {
            FileState::Other
        };
        Ok(Self { state, inode: (opened.dev(), opened.ino()) })
    }
}

/// Opens neither links nor the other end of a pipe.
#[expect(clippy::cast_possible_wrap, reason = "the flags of open(2) are an int")]
const NO_LINKS: i32 = rustix::fs::OFlags::NOFOLLOW
    .union(rustix::fs::OFlags::NONBLOCK)
    .union(rustix::fs::OFlags::NOCTTY)
    .bits() as i32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_the_same_in_pieces_and_survives_its_text() {
        let content: Vec<u8> = (0..400_000_u32).flat_map(u32::to_le_bytes).collect();
        let hash = FileHash::of(&content);
        assert_eq!(FileHash::read(&*content).unwrap(), hash);
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_ne!(FileHash::of(b"a"), FileHash::of(b"b"));
        for wrong in ["", "xxh3-", "xxh3-1", "sha256-00", "xxh3-0000000000000000000000000000000g"] {
            assert_eq!(wrong.parse::<FileHash>(), Err(()), "{wrong}");
        }
    }
}

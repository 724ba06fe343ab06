//! The ignore files that count at a place: those of its directory, then those of the directories above.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use convoke_core::glob;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags, openat};

/// Of a longer ignore file only the lines up to there count.
const MAX_BYTES: usize = 64 * 1024;
/// Further lines do not count: each is a pattern to compile.
const MAX_LINES: usize = 5000;
/// Some editors put it first; it is no part of the first pattern.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The rules of one directory, with those above it behind them.
pub(super) struct Rules {
    own: Gitignore,
    above: Option<Arc<Self>>,
}

impl Rules {
    /// Reads the ignore files of a directory. `path` is where it lies below the root of all rules.
    pub(super) fn in_directory(
        directory: BorrowedFd<'_>,
        path: &Path,
        above: Option<Arc<Self>>,
    ) -> Option<Arc<Self>> {
        let mut builder = GitignoreBuilder::new(path);
        for name in [".gitignore", ".ignore"] {
            for line in read(directory, name).unwrap_or_default().lines().take(MAX_LINES) {
                // A line that is no pattern says nothing; git passes over it too. So does one that is too
                // much: reading it could end the process.
                if glob::check(line).is_ok() {
                    drop(builder.add_line(None, line));
                }
            }
        }
        match builder.build() {
            Ok(own) if !own.is_empty() => Some(Arc::new(Self { own, above })),
            _ => above,
        }
    }

    /// Reads the ignore files from a root down to, but not including, the directory at `below`.
    pub(super) fn along(root: BorrowedFd<'_>, below: &Path) -> Option<Arc<Self>> {
        let mut rules = None;
        let mut path = PathBuf::new();
        let mut handle: Option<OwnedFd> = None;
        for component in below.components() {
            let Component::Normal(name) = component else { continue };
            let directory = handle.as_ref().map_or(root, AsFd::as_fd);
            rules = Self::in_directory(directory, &path, rules);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(next) = openat(directory, name, flags, Mode::empty()) else { break };
            handle = Some(next);
            path.push(name);
        }
        rules
    }

    /// Tells whether a path is ignored. The nearest rule that says anything decides.
    pub(super) fn ignores(&self, path: &Path, is_directory: bool) -> bool {
        match self.own.matched(path, is_directory) {
            Match::Ignore(_) => true,
            Match::Whitelist(_) => false,
            Match::None => {
                self.above.as_ref().is_some_and(|above| above.ignores(path, is_directory))
            }
        }
    }
}

fn read(directory: BorrowedFd<'_>, name: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(directory, name, flags, Mode::empty()).ok()?);
    let mut bytes = Vec::new();
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
    let text = whole_lines(&bytes);
    Some(String::from_utf8_lossy(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)).into_owned())
}

/// Cuts what is too long at the end of a line: half a pattern would be another pattern.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let Some(start) = bytes.get(..MAX_BYTES).filter(|start| start.len() < bytes.len()) else {
        return bytes;
    };
    let end = memchr::memrchr(b'\n', start).unwrap_or_default();
    start.get(..end).unwrap_or_default()
}

//! The only place in this crate that looks at the disk: configuration files, and nothing else.

use std::fs::{Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use convoke_core::file_kind::not_a_file;
use rustix::fs::OFlags;

use super::origin::Position;

/// The largest configuration file that is read.
pub(crate) const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Why a file cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// What is wrong.
    pub(crate) message: String,
    /// Where, if it is one place.
    pub(crate) position: Option<Position>,
}

impl From<String> for Unreadable {
    fn from(message: String) -> Self {
        Self { message, position: None }
    }
}

/// Reads a configuration file; nothing where there is none. Something that is not a regular file,
/// a pipe for instance, is refused before it is opened, and opening does not wait if it becomes one then.
pub(crate) fn read_file(path: &Path) -> Result<Option<String>, Unreadable> {
    match path.metadata() {
        Ok(metadata) => refuse_others(&metadata)?,
        Err(error) if is_absent(error.kind()) => return Ok(None),
        Err(error) => return Err(format!("it cannot be read: {error}").into()),
    }
    let unreadable = |error: std::io::Error| format!("it cannot be read: {error}");
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path).map_err(unreadable)?;
    refuse_others(&file.metadata().map_err(unreadable)?)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return Err(format!("it is larger than {MAX_FILE_BYTES} bytes").into());
    }
    into_text(bytes).map(Some)
}

fn refuse_others(metadata: &Metadata) -> Result<(), Unreadable> {
    not_a_file(metadata.mode()).map_or(Ok(()), |what| Err(what.into()))
}

fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn into_text(bytes: Vec<u8>) -> Result<String, Unreadable> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(error.as_bytes().get(..valid).unwrap_or_default());
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let line = count(before.matches('\n').count() + 1);
        let column = count(before.chars().rev().take_while(|c| *c != '\n').count() + 1);
        let position = Some(Position { line, column });
        Unreadable { message: "it is not UTF-8 text".to_owned(), position }
    })
}

/// Returns whether there is something at a path.
pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Follows the links of a path as far as it exists; the rest stays as it is. There is no answer
/// where a link leads nowhere: nobody can say where it will lead tomorrow.
pub(crate) fn follow_links(path: &Path) -> Option<PathBuf> {
    let mut missing = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return Some(missing.iter().rev().fold(real, |path, name| path.join(name)));
        }
        if exists(ancestor) {
            return None;
        }
        missing.extend(ancestor.file_name());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_have_a_position() {
        let position = Some(Position { line: 2, column: 3 });
        let error = into_text(b"a: 1\n\xc3\xa9b\xff".to_vec()).unwrap_err();
        assert_eq!(error, Unreadable { message: "it is not UTF-8 text".into(), position });
    }

    #[test]
    fn links_are_followed_as_far_as_the_path_exists() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/", real.join("out")).unwrap();
        std::os::unix::fs::symlink("/nowhere", real.join("broken")).unwrap();
        assert_eq!(follow_links(&real.join("out/nowhere/x")), Some("/nowhere/x".into()));
        assert_eq!(follow_links(&real.join("new/x")), Some(real.join("new/x")));
        assert_eq!(follow_links(&real.join("broken/x")), None);
    }

    #[test]
    fn only_regular_files_are_opened() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read_file(&directory.path().join("none")), Ok(None));
        let refused = |path: &Path| read_file(path).unwrap_err().message;
        assert_eq!(refused(directory.path()), "it is a directory, not a file");
        let pipe = directory.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(refused(&pipe), "it is a named pipe, not a file");
        let socket = directory.path().join("socket");
        std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(refused(&socket), "it is a socket, not a file");
        assert_eq!(refused(Path::new("/dev/null")), "it is a device, not a file");
    }
}

//! Replaces a file whole: whatever happens, there is the old one or the new one.
//!
//! The new content is written beside the old file, forced to the disk, given the old one's permissions
//! and then put in its place by one rename. Everything happens below open directory handles, so a link
//! that appears on the way is replaced or refused, never written through.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, File, Metadata, OpenOptions, OpenOptionsExt, Permissions};
use convoke_core::ToolError;
use convoke_tool::{FinalLink, MissingParents, Place, Stamp};
use rustix::fs::{RenameFlags, renameat_with};
use tokio_util::sync::CancellationToken;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// What may happen to a file that exists.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expect<'a> {
    /// It may be anything, also absent.
    Anything,
    /// It has to be in the state it was read in.
    Unchanged(&'a Metadata),
}

/// Puts `content`, read to its end, in the place of a file, or makes it. A link is followed. Nothing
/// happens if the call is over before the last step.
pub(crate) fn replace(
    place: &Place,
    content: impl Read,
    expect: Expect<'_>,
    token: &CancellationToken,
) -> Result<(), ToolError> {
    let (directory, name) = place.open_parent(MissingParents::Create, FinalLink::Follow)?;
    let existing = existing_file(place, &directory, &name)?;
    if let Expect::Unchanged(read) = expect
        && !existing.as_ref().is_some_and(|now| same_state(read, now))
    {
        return Err(ToolError::failed(format!(
            "`{}` was changed by somebody else meanwhile; nothing was written; read it again",
            place.spelled()
        )));
    }
    let permissions = existing.map(|metadata| metadata.permissions());
    let written = beside(&directory, content, permissions, |temporary| {
        if token.is_cancelled() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "the call is over"));
        }
        directory.rename(temporary, &directory, &name)
    });
    written.map_err(|error| failure(place, &error))
}

/// Puts `content` at a place where nothing is, or only what may be replaced. A link is not followed.
pub(crate) fn put(
    place: &Place,
    content: impl Read,
    permissions: Permissions,
    overwrite: bool,
    token: &CancellationToken,
) -> Result<(), ToolError> {
    let (directory, name) = place.open_parent(MissingParents::Create, FinalLink::Keep)?;
    let flags = if overwrite { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    let written = beside(&directory, content, Some(permissions), |temporary| {
        if token.is_cancelled() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "the call is over"));
        }
        Ok(renameat_with(&directory, temporary, &directory, &name, flags)?)
    });
    written.map_err(|error| failure(place, &error))
}

fn failure(place: &Place, error: &io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::Interrupted => {
            ToolError::cancelled(format!("`{}` was not written", place.spelled()))
        }
        io::ErrorKind::AlreadyExists => ToolError::failed(format!(
            "`{}` exists already; set `overwrite` to true to replace it",
            place.spelled()
        )),
        _ => place.error(error, "write"),
    }
}

/// Returns the file that is there, if any; refuses what is no file or may not be written.
fn existing_file(
    place: &Place,
    directory: &Dir,
    name: &OsStr,
) -> Result<Option<Metadata>, ToolError> {
    let metadata = match directory.symlink_metadata(name) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(place.error(&error, "write")),
    };
    let spelled = place.spelled();
    if metadata.is_symlink() {
        return Ok(None);
    }
    if metadata.is_dir() {
        return Err(ToolError::failed(format!(
            "`{spelled}` is a directory, so it cannot be written"
        )));
    }
    if !metadata.is_file() {
        return Err(ToolError::failed(format!(
            "`{spelled}` is not a regular file, so it is not written"
        )));
    }
    if metadata.permissions().readonly() {
        return Err(ToolError::permission(format!("`{spelled}` is read-only")));
    }
    Ok(Some(metadata))
}

fn same_state(before: &Metadata, now: &Metadata) -> bool {
    Stamp::of(before) == Stamp::of(now)
}

/// Writes `content` into a file beside the place, with its permissions from the first byte on, and then
/// lets `install` put it there. Whatever fails, nothing is left behind.
fn beside(
    directory: &Dir,
    mut content: impl Read,
    permissions: Option<Permissions>,
    install: impl FnOnce(&OsStr) -> io::Result<()>,
) -> io::Result<()> {
    let (mut file, temporary) = create_temporary(directory, permissions.is_some())?;
    let written = (|| {
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        io::copy(&mut content, &mut file)?;
        file.sync_data()?;
        drop(file);
        install(&temporary)
    })();
    if written.is_err() {
        // The first error is the one to tell; this is tidying up.
        drop(directory.remove_file(&temporary));
    }
    written
}

fn create_temporary(directory: &Dir, private: bool) -> io::Result<(File, OsString)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if private {
        options.mode(0o600);
    }
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".convoke-{}-{number}.tmp", std::process::id()));
        match directory.open_with(&name, &options) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (file, name)),
        }
    }
}

//! Replaces a file whole: whatever happens, there is the old one or the new one.
//!
//! The new content is written beside the old file, forced to the disk, given the old one's permissions
//! and then put in its place by one rename. Everything happens below open directory handles, so a link
//! that appears on the way is replaced or refused, never written through.

use std::ffi::OsString;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, Metadata, OpenOptions};
use convoke_core::ToolError;
use convoke_tool::{FinalLink, MissingParents, Place};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// What may happen to a file that exists.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expect<'a> {
    /// It may be anything, also absent.
    Anything,
    /// It has to be in the state it was read in.
    Unchanged(&'a Metadata),
}

/// Puts `content`, read to its end, in the place of a file, or makes it.
pub(crate) fn replace(
    place: &Place,
    content: impl Read,
    expect: Expect<'_>,
) -> Result<(), ToolError> {
    let (directory, name) = place.open_parent(MissingParents::Create, FinalLink::Follow)?;
    let existing = match directory.symlink_metadata(&name) {
        Ok(metadata) if metadata.is_file() => Some(metadata),
        Ok(metadata) if metadata.is_dir() => {
            return Err(ToolError::failed(format!(
                "`{}` is a directory, so it cannot be written",
                place.spelled()
            )));
        }
        Ok(metadata) if metadata.is_symlink() => None,
        Ok(_) => {
            return Err(ToolError::failed(format!(
                "`{}` is not a regular file, so it is not written",
                place.spelled()
            )));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(place.error(&error, "write")),
    };
    if let Expect::Unchanged(read) = expect
        && !existing.as_ref().is_some_and(|now| same_state(read, now))
    {
        return Err(ToolError::failed(format!(
            "`{}` was changed by somebody else meanwhile; nothing was written; read it again",
            place.spelled()
        )));
    }
    let replaced = write_beside(&directory, &name, content, existing.as_ref());
    replaced.map_err(|error| place.error(&error, "write"))
}

fn same_state(before: &Metadata, now: &Metadata) -> bool {
    use convoke_tool::Stamp;
    Stamp::of(before) == Stamp::of(now)
}

fn write_beside(
    directory: &Dir,
    name: &OsString,
    mut content: impl Read,
    existing: Option<&Metadata>,
) -> io::Result<()> {
    let (mut file, temporary) = create_temporary(directory)?;
    let written = (|| {
        io::copy(&mut content, &mut file)?;
        if let Some(existing) = existing {
            file.set_permissions(existing.permissions())?;
        }
        file.sync_data()?;
        drop(file);
        directory.rename(&temporary, directory, name)
    })();
    if written.is_err() {
        // The first error is the one to tell; this is tidying up.
        drop(directory.remove_file(&temporary));
    }
    written
}

fn create_temporary(directory: &Dir) -> io::Result<(cap_std::fs::File, OsString)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".convoke-{}-{number}.tmp", std::process::id()));
        match directory.open_with(&name, &options) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (file, name)),
        }
    }
}

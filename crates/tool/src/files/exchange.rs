//! Changes of one name that give back what they took out, if its content is not the expected one.

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::{RenameFlags, renameat, renameat_with};
use rustix::io::Errno;

use super::new_file::{NewFile, next_number, temporary_name};
use super::state::{FileState, Identity};

/// The exchanges of one undo. Each further one takes another process that writes in just that moment.
const MAX_EXCHANGES: usize = 1000;

/// A name in a directory. The caller holds the lock of the directory while it changes the name.
#[derive(Debug)]
pub struct Target<'a> {
    /// The directory.
    pub directory: &'a Dir,
    /// The name.
    pub name: &'a OsStr,
    /// The directory in which a replaced content is kept; it is made when it is needed. Without one the content
    /// is dropped.
    pub keep: Option<&'a Path>,
}

/// The end of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It was made. The replaced content is kept under this name.
    Done(Option<String>),
    /// It was not made, or was undone: the content was not accepted.
    Refused(FileState),
}

/// Tells whether a content may be replaced.
pub type Accepts<'a> = &'a dyn Fn(&FileState) -> bool;

impl Target<'_> {
    /// Makes a file, where nothing is.
    pub fn create(&self, new: &mut NewFile) -> io::Result<Changed> {
        match new.put(self.name) {
            Ok(()) => Ok(Changed::Done(None)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(Changed::Refused(FileState::of(self.directory, self.name)?))
            }
            Err(error) => Err(error),
        }
    }

    /// Replaces the file by another, if its content is accepted.
    ///
    /// The two files are exchanged by one system call, and the one that came out is looked at. Where the file
    /// system cannot do that, the content is looked at right before a rename.
    pub fn replace(&self, new: &mut NewFile, accepts: Accepts<'_>) -> io::Result<Changed> {
        let temporary = new.beside()?;
        let directory = self.directory;
        match exchange(directory, &temporary, directory, self.name) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Changed::Refused(FileState::Absent)),
            Err(error) if is_unsupported(error) => return self.rename_over(new, accepts),
            Err(error) => return Err(error.into()),
        }
        // From here on the temporary name stands for the user's file.
        new.name = None;
        let ours = new.identity();
        let undo = || self.undo((directory, &temporary), ours, Some(ours));
        let old = match Identity::of(directory, &temporary) {
            Ok(old) => old,
            Err(error) => return undo().and(Err(error)),
        };
        if !accepts(&old.state) {
            undo()?;
            return Ok(Changed::Refused(old.state));
        }
        let came_out = OldFile { directory, name: temporary.clone(), state: old.state };
        match came_out.end(self.keep) {
            Ok(kept) => Ok(Changed::Done(kept)),
            Err(error) => undo().and(Err(error)),
        }
    }

    /// Takes back an exchange of this name with another: what came out goes back into its place.
    ///
    /// What comes out then has to be what was `placed` there before. Anything else was written by another process in
    /// between, is newer, and goes back in turn. What is left under the other name is removed if it is `ours`, and
    /// kept otherwise.
    fn undo(
        &self,
        (other_directory, other): (&Dir, &OsStr),
        mut placed: Identity,
        ours: Option<Identity>,
    ) -> io::Result<()> {
        for _ in 0..MAX_EXCHANGES {
            let next = Identity::of(other_directory, other)?;
            match exchange(other_directory, other, self.directory, self.name) {
                Ok(()) => {}
                // Another process removed the file meanwhile: what came out takes the free place.
                Err(Errno::NOENT) => {
                    let flags = RenameFlags::NOREPLACE;
                    match renameat_with(other_directory, other, self.directory, self.name, flags) {
                        Err(Errno::EXIST) => continue,
                        renamed => return Ok(renamed?),
                    }
                }
                Err(error) => return Err(error.into()),
            }
            let out = Identity::of(other_directory, other)?;
            if out == placed {
                let (directory, name, state) = (other_directory, other.to_owned(), out.state);
                let left = OldFile { directory, name, state };
                return match (ours, self.keep) {
                    (Some(ours), _) if ours == out => left.end(None).map(drop),
                    (Some(_), Some(keep)) => left.keep(keep).map(drop),
                    // A move exchanged two files of the user: both have their names back.
                    _ => Ok(()),
                };
            }
            placed = next;
        }
        Err(io::Error::other("another process changes it all the time"))
    }

    /// Replaces a file on a file system that cannot exchange two. Between the look and the rename another process
    /// may change the file.
    fn rename_over(&self, new: &mut NewFile, accepts: Accepts<'_>) -> io::Result<Changed> {
        let (directory, temporary) = (self.directory, new.beside()?);
        let old = temporary_name(0);
        let linked = directory.hard_link(self.name, directory, &old).is_ok();
        let state = FileState::of(directory, if linked { &old } else { self.name })?;
        let old = OldFile { directory, name: old, state };
        if !accepts(&state) {
            if linked {
                old.end(None)?;
            }
            return Ok(Changed::Refused(state));
        }
        directory.rename(&temporary, directory, self.name)?;
        new.name = None;
        Ok(Changed::Done(if linked { old.end(self.keep)? } else { None }))
    }

    /// Deletes the file or link, if its content is accepted.
    pub fn remove(&self, accepts: Accepts<'_>) -> io::Result<Changed> {
        let (directory, temporary) = (self.directory, temporary_name(0));
        let flags = RenameFlags::NOREPLACE;
        match renameat_with(directory, self.name, directory, &temporary, flags) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Changed::Refused(FileState::Absent)),
            Err(error) if is_unsupported(error) => return self.unlink(accepts),
            Err(error) => return Err(error.into()),
        }
        let state = FileState::of(directory, &temporary);
        let old = |state| OldFile { directory, name: temporary.clone(), state };
        let why = match state {
            Ok(state) if accepts(&state) => match old(state).end(self.keep) {
                Ok(kept) => return Ok(Changed::Done(kept)),
                Err(error) => Err(error),
            },
            Ok(state) => Ok(Changed::Refused(state)),
            Err(error) => Err(error),
        };
        match renameat_with(directory, &temporary, directory, self.name, flags) {
            Ok(()) => why,
            // Another process made a new file there. Both are its user's.
            Err(Errno::EXIST) => {
                let state = FileState::of(directory, &temporary)?;
                if let Some(keep) = self.keep {
                    old(state).keep(keep)?;
                } else {
                    let mut saved = self.name.to_owned();
                    saved.push(&temporary);
                    renameat_with(directory, &temporary, directory, &saved, flags)?;
                }
                why
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a file on a file system that cannot rename without replacing. Between the look and the end another
    /// process may change the file.
    fn unlink(&self, accepts: Accepts<'_>) -> io::Result<Changed> {
        let (directory, old) = (self.directory, temporary_name(0));
        let linked = directory.hard_link(self.name, directory, &old).is_ok();
        let state = FileState::of(directory, if linked { &old } else { self.name })?;
        let old = OldFile { directory, name: old, state };
        if !accepts(&state) {
            if linked {
                old.end(None)?;
            }
            return Ok(Changed::Refused(state));
        }
        directory.remove_file(self.name)?;
        Ok(Changed::Done(if linked { old.end(self.keep)? } else { None }))
    }

    /// Moves this file to another name where nothing is, if its content is accepted. Both names are locked.
    pub fn move_to(&self, to: &Target<'_>, accepts: Accepts<'_>) -> io::Result<Changed> {
        let flags = RenameFlags::NOREPLACE;
        renameat_with(self.directory, self.name, to.directory, to.name, flags)?;
        let state = FileState::of(to.directory, to.name)?;
        if accepts(&state) {
            return Ok(Changed::Done(None));
        }
        renameat_with(to.directory, to.name, self.directory, self.name, flags)?;
        Ok(Changed::Refused(state))
    }

    /// Moves this file over another, if both contents are accepted. Tells which of the two was refused.
    pub fn move_over(
        &self,
        to: &Target<'_>,
        accepts: Accepts<'_>,
        accepts_target: Accepts<'_>,
    ) -> io::Result<(Changed, Refused)> {
        match exchange(self.directory, self.name, to.directory, to.name) {
            Ok(()) => {}
            Err(error) if is_unsupported(error) => {
                return self.rename_onto(to, accepts, accepts_target);
            }
            Err(error) => return Err(error.into()),
        }
        let moved = Identity::of(to.directory, to.name)?;
        let old = FileState::of(self.directory, self.name)?;
        let (from_is_fine, to_is_fine) = (accepts(&moved.state), accepts_target(&old));
        if !from_is_fine || !to_is_fine {
            to.undo((self.directory, self.name), moved, None)?;
            return Ok(if from_is_fine {
                (Changed::Refused(old), Refused::Target)
            } else {
                (Changed::Refused(moved.state), Refused::Source)
            });
        }
        // The replaced file has the name of the moved one now.
        let rest = Target { directory: self.directory, name: self.name, keep: to.keep };
        let removed = rest.remove(&|state| *state == old)?;
        let kept = match removed {
            Changed::Done(kept) => kept,
            Changed::Refused(_) => None,
        };
        Ok((Changed::Done(kept), Refused::Neither))
    }

    fn rename_onto(
        &self,
        to: &Target<'_>,
        accepts: Accepts<'_>,
        accepts_target: Accepts<'_>,
    ) -> io::Result<(Changed, Refused)> {
        let moved = FileState::of(self.directory, self.name)?;
        if !accepts(&moved) {
            return Ok((Changed::Refused(moved), Refused::Source));
        }
        let changed = to.unlink(accepts_target)?;
        if let Changed::Refused(_) = changed {
            return Ok((changed, Refused::Target));
        }
        renameat(self.directory, self.name, to.directory, to.name)?;
        Ok((changed, Refused::Neither))
    }
}

/// The file of a move that was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// None: the move was made.
    Neither,
    /// The file to be moved.
    Source,
    /// The file to be replaced.
    Target,
}

/// A file that came out of its place, under a temporary name.
pub(super) struct OldFile<'a> {
    directory: &'a Dir,
    name: OsString,
    state: FileState,
}

impl<'a> OldFile<'a> {
    /// A file that was found under a temporary name.
    pub(super) fn found(directory: &'a Dir, name: OsString) -> io::Result<Self> {
        let state = FileState::of(directory, &name)?;
        Ok(Self { directory, name, state })
    }

    /// Keeps the file, or removes it if there is no place for it.
    fn end(self, keep: Option<&Path>) -> io::Result<Option<String>> {
        match keep {
            Some(keep) => self.keep(keep).map(Some),
            None => self.directory.remove_file(&self.name).map(|()| None),
        }
    }

    /// Moves the file into a directory, under the hash of its content, and returns its name there. The file itself
    /// is moved, so a process that still has it open writes into what is kept; only another device takes a copy.
    pub(super) fn keep(self, into: &Path) -> io::Result<String> {
        DirBuilder::new().recursive(true).mode(0o700).create(into)?;
        let kept = Dir::open_ambient_dir(into, ambient_authority())?;
        let hash = self.state.hash().map_or_else(|| "other".to_owned(), |hash| hash.to_string());
        let mut name = format!("{hash}-0");
        loop {
            let flags = RenameFlags::NOREPLACE;
            match renameat_with(self.directory, &self.name, &kept, &name, flags) {
                Ok(()) => return Ok(name),
                Err(Errno::EXIST) => name = format!("{hash}-{:x}", next_number()),
                Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS) => match self.copy(&kept, &name) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        name = format!("{hash}-{:x}", next_number());
                    }
                    copied => return copied.map(|()| name),
                },
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn copy(&self, kept: &Dir, name: &str) -> io::Result<()> {
        if let FileState::Link(_) = self.state {
            let target = self.directory.read_link_contents(&self.name)?;
            kept.symlink_contents(target, name)?;
        } else {
            let mut from = self.directory.open(&self.name)?;
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600);
            io::copy(&mut from, &mut kept.open_with(name, &options)?)?;
        }
        self.directory.remove_file(&self.name)
    }
}

fn exchange(from: &Dir, from_name: &OsStr, to: &Dir, to_name: &OsStr) -> Result<(), Errno> {
    renameat_with(from, from_name, to, to_name, RenameFlags::EXCHANGE)
}

/// Tells whether a file system does not know a kind of rename.
pub(super) fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

#[cfg(test)]
mod tests;

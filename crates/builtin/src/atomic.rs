//! Changes files under the stale-file guard.
//!
//! A file is replaced whole: there is the old one or the new one at any moment. A call of a run replaces, moves or
//! deletes only a content that the run has read or written, or that the approved preview showed. Everything happens
//! below open directory handles, so a link that appears on the way is replaced or refused, never written through.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, Metadata};
use convoke_core::ToolError;
use convoke_tool::files::{Changed, DirectoryLock, FileHash, FileState, NewFile, Target, sweep};
use convoke_tool::{FinalLink, MissingParents, Place, Stamp, ToolContext};

use crate::refusal::{Refusal, Why};

/// The states of a file that a call may change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// The state that the preview showed, or from which the new content was made.
    pub(crate) shown: Option<FileState>,
    seen: Seen,
}

/// The content that the run last saw in a file.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// There is no run, or the content does not matter.
    NotAsked,
    Never,
    Content(FileHash),
}

impl Demand {
    /// A call that replaces, moves or deletes a file of this path.
    pub(crate) fn of(context: &ToolContext, path: &Path) -> Self {
        let known = context.seen_files().map(|seen| seen.hash(path));
        let seen = known.map_or(Seen::NotAsked, |hash| hash.map_or(Seen::Never, Seen::Content));
        Self { shown: context.pinned(path), seen }
    }

    /// A call whose new content was made from just this one.
    pub(crate) const fn exactly(hash: FileHash) -> Self {
        Self { shown: Some(FileState::File(hash)), seen: Seen::NotAsked }
    }

    /// Tells whether any content may be changed: there is no run, and nobody was shown anything.
    const fn is_open(&self) -> bool {
        self.shown.is_none() && matches!(self.seen, Seen::NotAsked)
    }

    /// Says why a state may not be changed.
    pub(crate) fn objection(&self, state: &FileState) -> Option<Why> {
        if self.shown.is_some_and(|shown| shown != *state) {
            return Some(Why::NotAsShown);
        }
        match (state, self.seen) {
            (FileState::Other, _) => Some(Why::NoFile),
            (FileState::File(_) | FileState::Link(_), Seen::Never) => Some(Why::Unread),
            (FileState::File(hash) | FileState::Link(hash), Seen::Content(seen))
                if *hash != seen =>
            {
                Some(Why::Changed)
            }
            _ => None,
        }
    }

    pub(crate) fn accepts(&self, state: &FileState) -> bool {
        self.objection(state).is_none()
    }
}

/// A name in a directory that is locked against other writers of this program.
pub(crate) struct Locked {
    pub(crate) directory: Dir,
    pub(crate) name: OsString,
    pub(crate) path: PathBuf,
    /// Held until this is dropped.
    lock: Option<DirectoryLock>,
}

impl Locked {
    /// Opens the directory of a place and locks it.
    pub(crate) fn open(
        place: &Place,
        context: &ToolContext,
        missing: MissingParents,
        link: FinalLink,
    ) -> Result<Self, ToolError> {
        let (directory, name) = place.open_parent(missing, link)?;
        let path = match link {
            FinalLink::Follow => place.resolved(),
            FinalLink::Keep => place.resolved_name(),
        };
        let mut locked = Self { directory, name, path, lock: None };
        locked.lock = Some(lock(place, context, &[&locked])?);
        Ok(locked)
    }

    /// Opens the directories of two places, without links followed, and locks both.
    pub(crate) fn open_both(
        from: &Place,
        to: &Place,
        context: &ToolContext,
    ) -> Result<(Self, Self), ToolError> {
        let open = |place: &Place, missing| {
            let (directory, name) = place.open_parent(missing, FinalLink::Keep)?;
            Ok::<_, ToolError>(Self { directory, name, path: place.resolved_name(), lock: None })
        };
        let mut source = open(from, MissingParents::Refuse)?;
        source.directory.symlink_metadata(&source.name).map_err(|e| from.error(&e, "move"))?;
        let target = open(to, MissingParents::Create)?;
        source.lock = Some(lock(from, context, &[&source, &target])?);
        Ok((source, target))
    }

    pub(crate) fn target<'a>(&'a self, context: &'a ToolContext) -> Target<'a> {
        let keep = context.seen_files().and_then(|seen| seen.keep());
        Target { directory: &self.directory, name: &self.name, keep }
    }
}

/// Locks the directories of names. The first call of a run in a directory also removes the temporary files there
/// whose writers were killed.
fn lock(
    place: &Place,
    context: &ToolContext,
    names: &[&Locked],
) -> Result<DirectoryLock, ToolError> {
    let directories: Vec<&Dir> = names.iter().map(|name| &name.directory).collect();
    let lock = DirectoryLock::hold(&directories, context.cancellation())
        .map_err(|error| failure(place, &error))?;
    let (seen, keep) = (context.seen_files(), context.seen_files().and_then(|seen| seen.keep()));
    for name in names {
        let above = name.path.parent().unwrap_or(&name.path);
        if seen.is_none_or(|seen| seen.is_unswept(above)) {
            // Tidying up is no reason to refuse a call.
            drop(sweep(&name.directory, &lock, keep));
        }
    }
    Ok(lock)
}

/// Puts a content in the place of a file, or makes the file. A link is followed. Nothing happens if the call is over
/// before the last step. A content that was made from another one names that in `base`.
pub(crate) fn replace(
    place: &Place,
    content: &[u8],
    base: Option<FileHash>,
    context: &ToolContext,
) -> Result<(), ToolError> {
    let locked = Locked::open(place, context, MissingParents::Create, FinalLink::Follow)?;
    let demand = base.map_or_else(|| Demand::of(context, &locked.path), Demand::exactly);
    let existing = existing_file(place, &locked.directory, &locked.name)?;
    let refuse = |state: &FileState| {
        let why = demand.objection(state).unwrap_or(Why::Changed);
        Refusal { verb: "write", place, path: &locked.path, why }.tell(state, context)
    };
    let text = || std::str::from_utf8(content).ok();
    let state = match &existing {
        None => FileState::Absent,
        // A file in the very state that the run knows is looked at when it has come out of its place.
        Some(metadata)
            if demand.is_open()
                || (demand.shown.is_none() && is_known(context, &locked.path, metadata)) =>
        {
            FileState::Other
        }
        Some(_) => FileState::of(&locked.directory, &locked.name)
            .map_err(|error| place.error(&error, "read"))?,
    };
    let hash = FileHash::of(content);
    if state == FileState::File(hash) && base.is_none() {
        // It has this content already, so nothing can be lost: a call that is repeated after a kill ends here.
        context.note_file(&locked.path, (hash, None, text()), None);
        return Ok(());
    }
    if state != FileState::Other && !demand.accepts(&state) {
        return Err(refuse(&state));
    }
    let permissions = existing.as_ref().map(Metadata::permissions);
    let written = NewFile::write(&locked.directory, content, permissions);
    let mut new = written.map_err(|error| failure(place, &error))?;
    still_wanted(context, place)?;
    let target = locked.target(context);
    let changed = match existing {
        None => target.create(&mut new),
        Some(_) => target.replace(&mut new, &|state| demand.accepts(state)),
    };
    match changed.map_err(|error| failure(place, &error))? {
        Changed::Done(kept) => {
            let stamp = new.stamp().ok();
            context.note_file(&locked.path, (hash, stamp, text()), kept);
            Ok(())
        }
        Changed::Refused(state) => Err(refuse(&state)),
    }
}

/// Tells whether a file is in the very state in which the run last saw it.
fn is_known(context: &ToolContext, path: &Path, metadata: &Metadata) -> bool {
    let seen = context.seen_files();
    seen.is_some_and(|seen| seen.hash_of_state(path, &Stamp::of(metadata)).is_some())
}

/// The last moment to stop: after this the call cannot be taken back.
pub(crate) fn still_wanted(context: &ToolContext, place: &Place) -> Result<(), ToolError> {
    if context.cancellation().is_cancelled() {
        return Err(ToolError::cancelled(format!("`{}` was not changed", place.spelled())));
    }
    Ok(())
}

pub(crate) fn failure(place: &Place, error: &io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::Interrupted => {
            ToolError::cancelled(format!("`{}` was not written", place.spelled()))
        }
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

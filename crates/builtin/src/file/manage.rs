//! Deleting and moving.

use convoke_core::{Display, ErrorKind, ToolError};
use convoke_tool::files::{Changed, FileHash, FileState, NewFile, Refused};
use convoke_tool::{FinalLink, MissingParents, Place, Rendered, ToolContext};
use rustix::fs::renameat;
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::atomic::{Demand, Locked, failure, still_wanted};
use crate::refusal::{Refusal, Why};

#[derive(Deserialize, JsonSchema)]
pub(super) struct DeleteFile {
    /// The path.
    path: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    /// Whether there was a file.
    deleted: bool,
}

pub(super) async fn delete_file(
    wanted: DeleteFile,
    context: ToolContext,
) -> Result<Rendered<Deleted>, ToolError> {
    let place = context.locate(&wanted.path)?;
    let inner = context.clone();
    let deleted = context.blocking(move || delete(&place, &inner)).await?;
    let text = if deleted { "Deleted" } else { "There is no" };
    Ok(Rendered::new(Deleted { deleted }, format!("{text} `{}`.", wanted.path)))
}

/// Checks that the file may be deleted, and pins it as it is.
pub(super) fn preview_delete(
    wanted: &DeleteFile,
    context: &ToolContext,
) -> Result<Option<Display>, ToolError> {
    pin(&context.locate(&wanted.path)?, "delete", context).map(|_| None)
}

/// Pins the state of a place, without a link followed. A state that the run has not seen ends the call.
fn pin(place: &Place, verb: &str, context: &ToolContext) -> Result<FileState, ToolError> {
    let opened = place.open_parent(MissingParents::Refuse, FinalLink::Keep);
    let state = match opened {
        Err(error) if error.kind == ErrorKind::NotFound => FileState::Absent,
        Err(error) => return Err(error),
        Ok((directory, name)) => {
            FileState::of(&directory, &name).map_err(|error| place.error(&error, "read"))?
        }
    };
    let path = place.resolved_name();
    match Demand::of(context, &path).objection(&state) {
        None | Some(Why::NoFile) => {}
        Some(why) => return Err(Refusal { verb, place, path: &path, why }.tell(&state, context)),
    }
    context.pin(path, state);
    Ok(state)
}

fn delete(place: &Place, context: &ToolContext) -> Result<bool, ToolError> {
    let opened = Locked::open(place, context, MissingParents::Refuse, FinalLink::Keep);
    let locked = match opened {
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let metadata = locked.directory.symlink_metadata(&locked.name);
    if metadata.is_ok_and(|metadata| metadata.is_dir()) {
        return Err(ToolError::failed(format!(
            "`{}` is a directory; only files and links are deleted",
            place.spelled()
        )));
    }
    remove(place, &locked, Demand::of(context, &locked.path), context)
}

/// Deletes a file that is locked, and tells whether there was one.
fn remove(
    place: &Place,
    locked: &Locked,
    demand: Demand,
    context: &ToolContext,
) -> Result<bool, ToolError> {
    still_wanted(context, place)?;
    // Pipes and devices have no content that could be lost.
    let accepts = |state: &FileState| {
        demand.objection(state).is_none_or(|why| why == Why::NoFile && demand.shown.is_none())
    };
    let removed = locked.target(context).remove(&accepts);
    match removed.map_err(|error| place.error(&error, "delete"))? {
        Changed::Done(kept) => {
            context.note_gone(&locked.path, kept);
            Ok(true)
        }
        Changed::Refused(FileState::Absent) => Ok(false),
        Changed::Refused(state) => {
            let why = demand.objection(&state).unwrap_or(Why::Changed);
            Err(Refusal { verb: "delete", place, path: &locked.path, why }.tell(&state, context))
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct MoveFile {
    /// Where it is.
    from: String,
    /// Where it shall be.
    to: String,
    /// Whether to replace what is there.
    overwrite: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Moved {
    /// Whether it was moved.
    success: bool,
}

pub(super) async fn move_file(
    wanted: MoveFile,
    context: ToolContext,
) -> Result<Rendered<Moved>, ToolError> {
    let (from, to) = (context.locate(&wanted.from)?, context.locate(&wanted.to)?);
    let overwrite = wanted.overwrite == Some(true);
    let inner = context.clone();
    context.blocking(move || rename(&from, &to, overwrite, &inner)).await?;
    let text = format!("Moved `{}` to `{}`.", wanted.from, wanted.to);
    Ok(Rendered::new(Moved { success: true }, text))
}

/// Checks that the file may be moved, and pins both places as they are.
pub(super) fn preview_move(
    wanted: &MoveFile,
    context: &ToolContext,
) -> Result<Option<Display>, ToolError> {
    let (from, to) = (context.locate(&wanted.from)?, context.locate(&wanted.to)?);
    if pin(&from, "move", context)? == FileState::Absent {
        return Err(ToolError::not_found(format!("File not found: `{}`", from.spelled())));
    }
    if wanted.overwrite == Some(true) {
        pin(&to, "replace", context)?;
    }
    Ok(None)
}

fn rename(
    from: &Place,
    to: &Place,
    overwrite: bool,
    context: &ToolContext,
) -> Result<(), ToolError> {
    let (source, target) = Locked::open_both(from, to, context)?;
    let is_directory = |locked: &Locked| {
        let metadata = locked.directory.symlink_metadata(&locked.name);
        metadata.is_ok_and(|metadata| metadata.is_dir())
    };
    let (source_demand, target_demand) =
        (Demand::of(context, &source.path), Demand::of(context, &target.path));
    let hash = FileState::of(&source.directory, &source.name)
        .map_err(|error| from.error(&error, "move"))?
        .hash();
    // A directory is moved with all that is in it, and only an empty one can be replaced: no content is lost.
    let accepts = |state: &FileState| {
        let is_as_shown = source_demand.shown.is_none_or(|shown| shown == *state);
        source_demand.accepts(state) || (*state == FileState::Other && is_as_shown)
    };
    let accepts_target = |state: &FileState| target_demand.accepts(state);
    let refuse = |place, locked: &Locked, demand: Demand, state: FileState| {
        let verb = if locked.path == source.path { "move" } else { "replace" };
        let why = demand.objection(&state).unwrap_or(Why::Changed);
        Err(Refusal { verb, place, path: &locked.path, why }.tell(&state, context))
    };
    still_wanted(context, from)?;
    let (here, there) = (source.target(context), target.target(context));
    let is_free = target.directory.symlink_metadata(&target.name).is_err();
    let moved = if !overwrite || is_free {
        here.move_to(&there, &accepts).map(|changed| (changed, Refused::Source))
    } else if is_directory(&source) || is_directory(&target) {
        renameat(&source.directory, &source.name, &target.directory, &target.name)
            .map(|()| (Changed::Done(None), Refused::Neither))
            .map_err(Into::into)
    } else {
        here.move_over(&there, &accepts, &accepts_target)
    };
    match moved {
        Ok((Changed::Done(kept), _)) => {
            context.note_gone(&source.path, None);
            if let Some(hash) = hash {
                context.note_file(&target.path, (hash, None, None), kept);
            }
            Ok(())
        }
        Ok((Changed::Refused(state), Refused::Target)) => refuse(to, &target, target_demand, state),
        Ok((Changed::Refused(state), _)) => refuse(from, &source, source_demand, state),
        Err(error) => {
            let is_file =
                matches!(FileState::of(&source.directory, &source.name), Ok(FileState::File(_)));
            match Errno::from_io_error(&error) {
                Some(Errno::EXIST) => Err(exists(to)),
                Some(Errno::XDEV) if is_file => {
                    copy_across((from, &source), (to, &target), overwrite, context)
                }
                Some(Errno::XDEV) => Err(ToolError::failed(format!(
                    "`{}` and `{}` are on different devices; only files can be moved between them",
                    from.spelled(),
                    to.spelled()
                ))),
                Some(Errno::INVAL) if is_directory(&source) => Err(ToolError::failed(format!(
                    "`{}` cannot be moved into itself",
                    from.spelled()
                ))),
                _ => Err(from.error(&error, "move")),
            }
        }
    }
}

fn exists(to: &Place) -> ToolError {
    ToolError::failed(format!(
        "`{}` exists already; set `overwrite` to true to replace it",
        to.spelled()
    ))
}

/// Moves a file between devices: the new one is whole before the old one goes, and the old one goes only
/// if it is still the one that was copied.
fn copy_across(
    (from, source): (&Place, &Locked),
    (to, target): (&Place, &Locked),
    overwrite: bool,
    context: &ToolContext,
) -> Result<(), ToolError> {
    let (file, metadata) = from.open_file()?;
    let written = NewFile::write(&target.directory, file, Some(metadata.permissions()));
    let mut new = written.map_err(|error| failure(to, &error))?;
    let copied = FileState::File(new.hash());
    if let Some(why) = Demand::of(context, &source.path).objection(&copied) {
        let refusal = Refusal { verb: "move", place: from, path: &source.path, why };
        return Err(refusal.tell(&copied, context));
    }
    still_wanted(context, from)?;
    let demand = Demand::of(context, &target.path);
    let there = target.target(context);
    let mut changed = there.create(&mut new).map_err(|error| failure(to, &error))?;
    if let (Changed::Refused(_), true) = (&changed, overwrite) {
        let replaced = there.replace(&mut new, &|state| demand.accepts(state));
        changed = replaced.map_err(|error| failure(to, &error))?;
    }
    let kept = match changed {
        Changed::Done(kept) => kept,
        Changed::Refused(_) if !overwrite => return Err(exists(to)),
        Changed::Refused(state) => {
            let why = demand.objection(&state).unwrap_or(Why::Changed);
            let refusal = Refusal { verb: "replace", place: to, path: &target.path, why };
            return Err(refusal.tell(&state, context));
        }
    };
    let hash: FileHash = new.hash();
    context.note_file(&target.path, (hash, new.stamp().ok(), None), kept);
    match remove(from, source, Demand::exactly(hash), context) {
        Ok(_) => Ok(()),
        Err(_) => Err(ToolError::failed(format!(
            "`{}` was copied to `{}`, but it was changed meanwhile and is still there",
            from.spelled(),
            to.spelled()
        ))),
    }
}

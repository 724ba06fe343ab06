//! Deleting and moving.

use std::io;

use convoke_core::{ErrorKind, ToolError};
use convoke_tool::{FinalLink, MissingParents, Place, Rendered, Stamp, ToolContext};
use rustix::fs::{RenameFlags, renameat, renameat_with};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::atomic::put;

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
    let token = context.cancellation().clone();
    let deleted = context.blocking(move || delete(&place, &token)).await?;
    let text = if deleted { "Deleted" } else { "There is no" };
    Ok(Rendered::new(Deleted { deleted }, format!("{text} `{}`.", wanted.path)))
}

fn delete(place: &Place, token: &CancellationToken) -> Result<bool, ToolError> {
    let (directory, name) = match place.open_parent(MissingParents::Refuse, FinalLink::Keep) {
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    match directory.symlink_metadata(&name) {
        Ok(metadata) if metadata.is_dir() => {
            return Err(ToolError::failed(format!(
                "`{}` is a directory; only files and links are deleted",
                place.spelled()
            )));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(place.error(&error, "delete")),
    }
    still_wanted(token)?;
    match directory.remove_file(&name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true).map_err(|error| place.error(&error, "delete")),
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
    let token = context.cancellation().clone();
    context.blocking(move || rename(&from, &to, overwrite, &token)).await?;
    let text = format!("Moved `{}` to `{}`.", wanted.from, wanted.to);
    Ok(Rendered::new(Moved { success: true }, text))
}

fn rename(
    from: &Place,
    to: &Place,
    overwrite: bool,
    token: &CancellationToken,
) -> Result<(), ToolError> {
    let (from_directory, from_name) = from.open_parent(MissingParents::Refuse, FinalLink::Keep)?;
    let source =
        from_directory.symlink_metadata(&from_name).map_err(|error| from.error(&error, "move"))?;
    let (to_directory, to_name) = to.open_parent(MissingParents::Create, FinalLink::Keep)?;
    still_wanted(token)?;
    let moved = if overwrite {
        renameat(&from_directory, &from_name, &to_directory, &to_name)
    } else {
        let flags = RenameFlags::NOREPLACE;
        renameat_with(&from_directory, &from_name, &to_directory, &to_name, flags)
    };
    match moved {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(ToolError::failed(format!(
            "`{}` exists already; set `overwrite` to true to replace it",
            to.spelled()
        ))),
        Err(Errno::XDEV) if source.is_file() => copy_across(from, to, overwrite, token),
        Err(Errno::XDEV) => Err(ToolError::failed(format!(
            "`{}` and `{}` are on different devices; only files can be moved between them",
            from.spelled(),
            to.spelled()
        ))),
        Err(Errno::INVAL) if source.is_dir() => {
            Err(ToolError::failed(format!("`{}` cannot be moved into itself", from.spelled())))
        }
        Err(error) => Err(from.error(&error.into(), "move")),
    }
}

/// Moves a file between devices: the new one is whole before the old one goes, and the old one goes only
/// if it is still the one that was copied.
fn copy_across(
    from: &Place,
    to: &Place,
    overwrite: bool,
    token: &CancellationToken,
) -> Result<(), ToolError> {
    let (file, metadata) = from.open_file()?;
    put(to, file, metadata.permissions(), overwrite, token)?;
    let unchanged = from.metadata().is_ok_and(|now| Stamp::of(&now) == Stamp::of(&metadata));
    if !unchanged {
        return Err(ToolError::failed(format!(
            "`{}` was copied to `{}`, but it was changed meanwhile and is still there",
            from.spelled(),
            to.spelled()
        )));
    }
    delete(from, token).map(|_| ())
}

/// The last moment to stop: after this the call cannot be taken back.
fn still_wanted(token: &CancellationToken) -> Result<(), ToolError> {
    if token.is_cancelled() {
        return Err(ToolError::cancelled("nothing was changed"));
    }
    Ok(())
}

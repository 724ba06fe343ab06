//! What is known of a file without reading it.

use cap_std::fs::{Metadata, MetadataExt};
use convoke_core::count::count;
use convoke_core::{ErrorKind, ToolError};
use convoke_tool::{Rendered, ToolContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FileInfo {
    /// Its name.
    pub(crate) name: String,
    /// Its path, as the other tools take it.
    pub(crate) path: String,
    /// Whether it is a directory.
    pub(crate) is_dir: bool,
    /// Whether it is a symbolic link; then nothing else here is about what it points to.
    pub(crate) is_symlink: bool,
    /// How many bytes it has.
    pub(crate) size: u64,
    /// When it was changed, in milliseconds since the epoch.
    pub(crate) modified: i64,
}

/// Returns when a file was changed, in milliseconds since the epoch.
pub(crate) fn modified_millis(metadata: &Metadata) -> i64 {
    metadata.mtime().saturating_mul(1000).saturating_add(metadata.mtime_nsec() / 1_000_000)
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct GetFileInfo {
    /// The path.
    path: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Info {
    /// Whether there is anything.
    exists: bool,
    /// How many bytes; 0 if there is nothing.
    size: u64,
    /// When it was changed, in milliseconds since the epoch; 0 if there is nothing.
    modified: i64,
    /// Whether it is a directory.
    is_dir: bool,
}

pub(super) async fn get_file_info(
    wanted: GetFileInfo,
    context: ToolContext,
) -> Result<Rendered<Info>, ToolError> {
    let place = context.locate(&wanted.path)?;
    let info = context.blocking(move || match place.metadata() {
        Ok(metadata) => Ok(Info {
            exists: true,
            size: metadata.len(),
            modified: modified_millis(&metadata),
            is_dir: metadata.is_dir(),
        }),
        Err(error) if error.kind == ErrorKind::NotFound => {
            Ok(Info { exists: false, size: 0, modified: 0, is_dir: false })
        }
        Err(error) => Err(error),
    });
    let info = info.await?;
    let text = match (info.exists, info.is_dir) {
        (false, _) => format!("`{}` does not exist", wanted.path),
        (true, true) => format!("`{}` is a directory", wanted.path),
        (true, false) => {
            format!("`{}` is a file of {}", wanted.path, count(info.size, "byte"))
        }
    };
    Ok(Rendered::new(info, text))
}

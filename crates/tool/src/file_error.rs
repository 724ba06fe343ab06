//! What an I/O error means, in words a model can act on.

use std::io::{Error, ErrorKind};

use convoke_core::ToolError;

/// Tells whether a directory handle refused because the path left it. Such a refusal carries no
/// number of the operating system; one for lack of permission does.
pub(crate) fn is_escape(error: &Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// Turns an I/O error into one that says what could not be done, to what, and why.
pub fn file_error(error: &Error, action: &str, path: &str) -> ToolError {
    let described = match error.kind() {
        ErrorKind::NotFound => ToolError::not_found(format!("File not found: `{path}`")),
        ErrorKind::PermissionDenied => {
            ToolError::permission(format!("the operating system refused to {action} `{path}`"))
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ToolError::failed(format!(
            "cannot {action} `{path}`: no space is left on the device; nothing was changed"
        )),
        ErrorKind::ReadOnlyFilesystem => {
            ToolError::permission(format!("`{path}` is on a read-only file system"))
        }
        ErrorKind::NotADirectory => ToolError::not_found(format!(
            "File not found: `{path}` (a part of it is not a directory)"
        )),
        ErrorKind::IsADirectory => {
            ToolError::failed(format!("cannot {action} `{path}`: it is a directory"))
        }
        ErrorKind::InvalidFilename => {
            ToolError::failed(format!("cannot {action} `{path}`: a name in it is too long"))
        }
        _ if error.raw_os_error() == Some(LOOP) => {
            ToolError::failed(format!("cannot {action} `{path}`: it goes through too many links"))
        }
        _ => ToolError::failed(format!("cannot {action} `{path}`: {error}")),
    };
    described.caused_by(error)
}

const LOOP: i32 = rustix::io::Errno::LOOP.raw_os_error();

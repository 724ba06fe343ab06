//! Files that are shown to the model.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use convoke::agent::Task;
use convoke_core::Part;

use crate::failure::Failure;
use crate::files;
use crate::session::Session;

/// The largest image or document that is sent.
const MAX_MEDIA_BYTES: usize = 20 * 1024 * 1024;
/// The longest text that is sent.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// The beginnings of the files that models can look at.
const MEDIA: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
];

/// Shows the model what was piped in beside its task, and files.
pub(in crate::commands) fn to(
    mut task: Task,
    input: Option<String>,
    files: &[PathBuf],
    session: &Session<'_>,
) -> Result<Task, Failure> {
    if let Some(input) = input {
        task = task.attach(Part::text(format!("Standard input:\n{input}")));
    }
    for file in files {
        task = task.attach(read(&session.absolute(file), file)?);
    }
    Ok(task)
}

/// Reads a file: an image or a PDF as what it is, text as text.
pub(in crate::commands) fn read(path: &Path, shown: &Path) -> Result<Part, Failure> {
    let shown = shown.display().to_string();
    let cannot = |why: &str| Failure::usage(format!("the file `{shown}` cannot be shown: {why}"));
    let bytes = files::read_bytes(path).map_err(|error| {
        Failure::usage(format!("the file `{shown}` cannot be read")).because(&error)
    })?;
    if let Some(mime) = media_type(&bytes) {
        if bytes.len() > MAX_MEDIA_BYTES {
            return Err(cannot("it is larger than 20 MiB"));
        }
        return Ok(Part::Media { mime: mime.to_owned(), data: BASE64_STANDARD.encode(&bytes) });
    }
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(cannot("it is longer than 1 MiB; let the agent read it instead"));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| cannot("it is neither UTF-8 text nor an image or PDF"))?;
    Ok(Part::text(format!("The file {shown}:\n{text}")))
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let known = MEDIA.iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, mime)| *mime);
    known.or(webp.then_some("image/webp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_how_they_begin() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(media_type(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"RIFF\0\0\0\0WAVE"), None);
        assert_eq!(media_type(b"%PDF-1.7"), Some("application/pdf"));
        assert_eq!(media_type(b"plain"), None);
    }
}

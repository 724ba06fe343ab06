//! Long texts, kept beside the journal under the hash of what is in them.
//!
//! A blob is written under another name and then renamed, so that one that is there is whole. The same
//! text is stored once. What is read is checked against its name.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use convoke_core::Event;
use serde_json::Value;

use crate::damage::Reason;
use crate::error::{JournalError, Tried};
use crate::files;
use crate::hash::Hash;
use crate::line::Moved;

/// An event whose line is longer than this has its long texts moved out.
pub(crate) const LONG_LINE: usize = 32 * 1024;
/// A text longer than this is long.
const LONG_TEXT: usize = 4 * 1024;

/// The blobs of one run.
#[derive(Clone, Debug)]
pub(crate) struct Blobs {
    directory: PathBuf,
    /// Another run that may have the same blobs already.
    donor: Option<PathBuf>,
}

/// What was written beside a journal and has to reach the disk with it.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) directories: BTreeSet<PathBuf>,
}

impl Fresh {
    pub(crate) fn add(&mut self, more: Self) {
        self.files.extend(more.files);
        self.directories.extend(more.directories);
    }
}

impl Blobs {
    /// The blobs of the run in this directory.
    pub(crate) fn of(run_directory: &Path) -> Self {
        Self { directory: run_directory.join("blobs"), donor: None }
    }

    /// Shares what another run has already.
    pub(crate) fn sharing(mut self, other: &Self) -> Self {
        self.donor = Some(other.directory.clone());
        self
    }

    /// Returns how many bytes they have.
    pub(crate) fn bytes(&self) -> u64 {
        files::bytes_in(&self.directory)
    }

    /// Returns all there are. A process that died may have left them off the disk.
    pub(crate) fn all(&self) -> Result<Fresh, JournalError> {
        let names = files::names(&self.directory).tried("list", &self.directory)?;
        let files: Vec<PathBuf> = names
            .iter()
            .filter_map(|name| Hash::parse(name))
            .map(|hash| self.path(&hash))
            .collect();
        let changed = (!files.is_empty()).then(|| self.directory.clone());
        Ok(Fresh { files, directories: changed.into_iter().collect() })
    }

    /// Stores the long texts of an event and returns the event without them.
    pub(crate) fn move_out(
        &self,
        event: &Event,
        fresh: &mut Fresh,
    ) -> Result<(Event, Moved), JournalError> {
        let mut whole = serde_json::to_value(event).map_err(JournalError::Json)?;
        let mut texts = Vec::new();
        take_long_texts(&mut whole, &mut String::new(), &mut texts);
        let mut moved = Moved::new();
        for (pointer, text) in texts {
            let hash = self.put(text.as_bytes(), fresh)?;
            moved.insert(pointer, hash.as_str().to_owned());
        }
        let event = serde_json::from_value(whole).map_err(JournalError::Json)?;
        Ok((event, moved))
    }

    /// Returns the text at a pointer of an event, checked against its hash.
    pub(crate) fn fetch(&self, pointer: &str, hash: &str) -> Result<String, Reason> {
        let (pointer, named) = (pointer.to_owned(), hash.to_owned());
        let Some(hash) = Hash::parse(hash) else {
            return Err(Reason::MissingBlob { pointer, hash: named });
        };
        let bytes = match files::read(&self.path(&hash)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Reason::MissingBlob { pointer, hash: named });
            }
            Err(error) => {
                let problem = error.to_string();
                return Err(Reason::UnreadableBlob { pointer, hash: named, problem });
            }
        };
        let altered = Reason::AlteredBlob { pointer, hash: named };
        if Hash::of(&bytes) != hash {
            return Err(altered);
        }
        String::from_utf8(bytes).map_err(|_| altered)
    }

    fn put(&self, content: &[u8], fresh: &mut Fresh) -> Result<Hash, JournalError> {
        let hash = Hash::of(content);
        let path = self.path(&hash);
        // One that a crash left empty, or that somebody altered, is no reason to lose this one.
        if files::read(&path).is_ok_and(|there| there == content) {
            return Ok(hash);
        }
        if files::ensure_directory(&self.directory).tried("make the directory", &self.directory)? {
            fresh.directories.extend(self.directory.parent().map(Path::to_path_buf));
        }
        if !self.borrow(&hash, content) {
            files::put(&path, content).tried("write", &path)?;
        }
        fresh.files.push(path);
        fresh.directories.insert(self.directory.clone());
        Ok(hash)
    }

    /// Takes a blob over from the donor, without a copy; tells whether that worked.
    fn borrow(&self, hash: &Hash, content: &[u8]) -> bool {
        let Some(donor) = &self.donor else { return false };
        let theirs = donor.join(hash.as_str());
        files::read(&theirs).is_ok_and(|there| there == content)
            && files::link(&theirs, &self.path(hash)).is_ok()
    }

    fn path(&self, hash: &Hash) -> PathBuf {
        self.directory.join(hash.as_str())
    }
}

/// Takes all long texts out of a value, with the JSON pointers to them.
fn take_long_texts(value: &mut Value, pointer: &mut String, texts: &mut Vec<(String, String)>) {
    let here = pointer.len();
    match value {
        Value::String(text) if text.len() > LONG_TEXT => {
            texts.push((pointer.clone(), std::mem::take(text)));
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                pointer.push_str(&format!("/{index}"));
                take_long_texts(item, pointer, texts);
                pointer.truncate(here);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                take_long_texts(field, pointer, texts);
                pointer.truncate(here);
            }
        }
        _ => {}
    }
}

//! A directory that goes away, and a context that may touch nothing else.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use convoke_core::Timestamp;
use tempfile::TempDir;

use crate::clock::ManualClock;
use crate::context::{ContextBuilder, ToolContext};
use crate::roots::Roots;

/// When tests take place: the first moment of 2026.
const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// A temporary directory. It goes when the last clone of it and of its contexts does.
#[derive(Clone, Debug)]
pub struct TempWorkspace {
    directory: Arc<TempDir>,
    root: PathBuf,
    handle: Arc<Dir>,
    roots: Roots,
    clock: Arc<ManualClock>,
}

impl TempWorkspace {
    /// Makes an empty one.
    pub fn new() -> io::Result<Self> {
        let directory = Arc::new(tempfile::tempdir()?);
        let root = directory.path().canonicalize()?;
        let handle = Arc::new(Dir::open_ambient_dir(&root, ambient_authority())?);
        let roots = Roots::open([&root]).map_err(io::Error::other)?;
        Ok(Self { directory, root, handle, roots, clock: Arc::new(ManualClock::new(NOW)) })
    }

    /// Returns the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the absolute path of something in it.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file, and makes the directories it lies in.
    pub fn write(&self, name: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
        let name = name.as_ref();
        if let Some(parent) = name.parent().filter(|parent| *parent != Path::new("")) {
            self.handle.create_dir_all(parent)?;
        }
        self.handle.write(name, contents)
    }

    /// Reads a file.
    pub fn read(&self, name: impl AsRef<Path>) -> io::Result<String> {
        self.handle.read_to_string(name)
    }

    /// Tells whether there is something of that name.
    pub fn has(&self, name: impl AsRef<Path>) -> bool {
        self.handle.symlink_metadata(name).is_ok()
    }

    /// Returns the clock that its contexts go by.
    pub const fn clock(&self) -> &Arc<ManualClock> {
        &self.clock
    }

    /// Makes a context that may touch this directory and starts there.
    pub fn context(&self) -> ToolContext {
        self.context_builder().build()
    }

    /// Starts such a context, to give it more.
    pub fn context_builder(&self) -> ContextBuilder {
        ToolContext::builder("testing")
            .roots(self.roots.clone())
            .working_directory(&self.root)
            .clock(Arc::clone(&self.clock) as Arc<dyn crate::Clock>)
            // The context keeps the directory alive.
            .extension(Arc::clone(&self.directory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_keeps_the_directory_alive() {
        let workspace = TempWorkspace::new().unwrap();
        workspace.write("a/b.txt", "hello").unwrap();
        assert_eq!(workspace.read("a/b.txt").unwrap(), "hello");
        assert!(workspace.has("a") && !workspace.has("b"));

        let root = workspace.root().to_path_buf();
        let context = workspace.context();
        drop(workspace);
        assert!(context.locate("a/b.txt").unwrap().open_file().is_ok());
        drop(context);
        assert!(!root.exists());
    }
}

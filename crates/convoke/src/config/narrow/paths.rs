//! Whether a path that a project wants lies within what the user allows.

use std::path::{Path, PathBuf};

use crate::config::disk;
use crate::config::node::Node;
use crate::config::paths::normalise;

/// The directories a project's paths have to lie in.
pub(super) struct Bounds {
    directories: Vec<PathBuf>,
    reason: &'static str,
}

impl Bounds {
    /// The user's own directories where there are some, and otherwise the project's directory.
    pub(super) fn new(own: Option<&Node>, project: &Path) -> Self {
        let (directories, reason) = match own {
            Some(list) => {
                let paths = super::texts(Some(list)).into_iter().map(PathBuf::from);
                (paths.collect(), "it is outside the paths you allow")
            }
            None => (vec![project.to_owned()], "it is outside the project"),
        };
        Self { directories, reason }
    }

    /// Returns the path with its links followed, if it lies inside; otherwise why not.
    ///
    /// The links count: a project could contain one that leads to the root directory. What is
    /// returned is what was checked, so that a link changed later changes nothing.
    pub(super) fn admit(&self, path: &Path) -> Result<String, &'static str> {
        let inside = |path: &Path, bound: &Path| path.starts_with(bound);
        let path = normalise(path).ok_or(self.reason)?;
        if !self.directories.iter().any(|bound| inside(&path, bound)) {
            return Err(self.reason);
        }
        let real = disk::follow_links(&path).ok_or("it is a link that leads nowhere")?;
        let real_bounds = self.directories.iter().filter_map(|bound| disk::follow_links(bound));
        if !real_bounds.into_iter().any(|bound| inside(&real, &bound)) {
            return Err("it is a link that leads outside");
        }
        real.into_os_string().into_string().map_err(|_| "it is not UTF-8")
    }
}

//! Whether there is room for files where changes are applied. All places are looked at before the first file is
//! written, so that nothing is applied in part. No link is followed.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, Metadata};

/// What is at a path, as far as it matters to a file that is to be put there or to go.
pub(super) enum Place {
    /// Nothing that is in the way.
    Free,
    /// A file, or a link.
    File,
    /// Something that has to stay; this says what.
    Taken(&'static str, Option<PathBuf>),
}

impl Place {
    /// Says why a file cannot be put there, with its path.
    pub(super) fn complaint(&self, path: &Path) -> Option<String> {
        match self {
            Self::Taken(why, Some(above)) => {
                Some(format!("{} (`{}` {why})", path.display(), above.display()))
            }
            Self::Taken(why, None) => Some(format!("{} ({why})", path.display())),
            Self::Free | Self::File => None,
        }
    }
}

/// Looks at the place of a file that is to be there, or not to be there. `is_changed` tells which files are changed: above
/// or below one that is to be there, these go.
pub(super) fn look(
    root: &Dir,
    path: &Path,
    is_wanted: bool,
    is_changed: &impl Fn(&Path) -> bool,
) -> io::Result<Place> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.retain(|above| !above.as_os_str().is_empty());
    for above in above.into_iter().rev() {
        let found = there(root, above)?;
        if found.as_ref().is_some_and(Metadata::is_dir) {
            continue;
        }
        let found = found.filter(|_| !is_changed(above));
        // What lies behind a link is still somewhere.
        let is_in_the_way = found.is_some_and(|found| is_wanted || found.is_symlink());
        return Ok(if is_in_the_way {
            Place::Taken("is no directory", Some(above.to_owned()))
        } else {
            Place::Free
        });
    }
    let Some(found) = there(root, path)? else { return Ok(Place::Free) };
    Ok(match () {
        () if found.is_file() || found.is_symlink() => Place::File,
        () if !is_wanted => Place::Free,
        () if !found.is_dir() => Place::Taken("something is there that is no file", None),
        () if is_cleared(root, path, is_changed)? => Place::Free,
        () => Place::Taken("a directory is there", None),
    })
}

fn there(root: &Dir, path: &Path) -> io::Result<Option<Metadata>> {
    match root.symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Tells whether nothing stays in a directory. One without files goes with nothing, but for the outermost, which is
/// replaced.
fn is_cleared(root: &Dir, path: &Path, is_changed: &impl Fn(&Path) -> bool) -> io::Result<bool> {
    for entry in root.read_dir(path)? {
        let entry = entry?;
        let path = path.join(entry.file_name());
        let is_cleared = if entry.file_type()?.is_dir() {
            root.read_dir(&path)?.next().is_some() && is_cleared(root, &path, is_changed)?
        } else {
            is_changed(&path)
        };
        if !is_cleared {
            return Ok(false);
        }
    }
    Ok(true)
}

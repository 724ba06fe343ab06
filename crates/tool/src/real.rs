//! Where paths really are, links resolved, for many paths at once.
//!
//! Lists of paths that may not be there, such as the usual places of credentials, share most of the
//! directories above them. Each of those is looked at once. What was seen is kept no longer than the list
//! takes: somebody who comes back later looks again, so a link that appeared meanwhile counts.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Resolves paths, all of them as things are now. Make another one to look again.
#[derive(Debug, Default)]
pub struct RealPlaces {
    /// By the text of a path, which is compared faster than its names.
    seen: HashMap<OsString, Place>,
}

/// Where a path is, or would be.
#[derive(Clone, Debug)]
struct Place {
    path: PathBuf,
    is_there: bool,
}

impl RealPlaces {
    /// Returns where a path really is, and where a part of it is missing, where it would be: what exists of
    /// it is resolved, and the rest of its names come behind.
    pub fn of(&mut self, path: &Path) -> PathBuf {
        self.place(path, Remember::No).path
    }

    fn place(&mut self, path: &Path, remember: Remember) -> Place {
        if let Some(known) = self.seen.get(path.as_os_str()) {
            return known.clone();
        }
        let place = match (path.parent(), path.file_name()) {
            (Some(above), Some(name)) if !above.as_os_str().is_empty() => {
                let above = self.place(above, Remember::Yes);
                let is_there = above.is_there;
                let path = above.path.join(name);
                if is_there { look_at(path) } else { Place { path, is_there } }
            }
            // A root, a lone name, or one step up: nothing above it is to be shared.
            _ => resolved(path.to_owned()),
        };
        if remember == Remember::Yes {
            self.seen.insert(path.as_os_str().to_owned(), place.clone());
        }
        place
    }
}

/// Returns where one path really is, as [`RealPlaces::of`] does. Most are there, which takes one look.
pub(crate) fn real_place(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| RealPlaces::default().of(path))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Remember {
    Yes,
    No,
}

/// Looks at a path whose parent is resolved.
fn look_at(path: PathBuf) -> Place {
    match path.read_link() {
        Ok(_) => resolved(path),
        // It is there, and no link.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Place { path, is_there: true },
        Err(_) => Place { path, is_there: false },
    }
}

fn resolved(path: PathBuf) -> Place {
    match path.canonicalize() {
        Ok(path) => Place { path, is_there: true },
        Err(_) => Place { path, is_there: false },
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make the files they look at")]

    use std::fs;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    /// One path after the other, without any memory.
    fn one_by_one(path: &Path) -> PathBuf {
        match (path.canonicalize(), path.parent(), path.file_name()) {
            (Err(_), Some(above), Some(name)) => one_by_one(above).join(name),
            (real, ..) => real.unwrap_or_else(|_| path.to_owned()),
        }
    }

    fn tree() -> TempDir {
        let tree = TempDir::new().unwrap();
        let at = |name: &str| tree.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/file"), "").unwrap();
        symlink("a", at("to_a")).unwrap();
        symlink(at("a/b"), at("a/to_b")).unwrap();
        symlink("missing", at("a/b/broken")).unwrap();
        symlink("loop", at("loop")).unwrap();
        symlink("../..", at("a/b/up")).unwrap();
        tree
    }

    const STEPS: [&str; 11] =
        ["a", "b", "file", "to_a", "to_b", "broken", "loop", "up", "..", ".", "new"];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// What is remembered of other paths changes nothing.
        #[test]
        fn each_is_found_where_it_would_be_found_alone(
            paths in prop::collection::vec(prop::collection::vec(0..STEPS.len(), 0..7), 1..9),
        ) {
            let tree = tree();
            let mut places = RealPlaces::default();
            for steps in paths {
                let steps = steps.into_iter().filter_map(|step| STEPS.get(step));
                let path = steps.fold(tree.path().to_owned(), |path, step| path.join(step));
                let found = one_by_one(&path);
                prop_assert_eq!(&places.of(&path), &found, "{}", path.display());
                prop_assert_eq!(&real_place(&path), &found, "{}", path.display());
            }
        }
    }

    #[test]
    fn what_is_no_full_path_is_resolved_as_well_as_it_can_be() {
        let mut places = RealPlaces::default();
        for path in ["", "/", "/..", "no such name", "no such/name", "..", "."] {
            let path = Path::new(path);
            assert_eq!(places.of(path), one_by_one(path), "{}", path.display());
        }
    }

    #[test]
    fn a_link_that_appeared_is_seen_by_the_next_who_looks() {
        let tree = tree();
        let path = tree.path().join("new/secret");
        assert_eq!(RealPlaces::default().of(&path), one_by_one(&path));
        symlink("a", tree.path().join("new")).unwrap();
        let real = tree.path().canonicalize().unwrap().join("a/secret");
        assert_eq!(RealPlaces::default().of(&path), real);
    }
}

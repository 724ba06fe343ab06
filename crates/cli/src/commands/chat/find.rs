//! Files of the project by a few letters of their names.
//!
//! What version control ignores is left out, and so is what is hidden. Letters have to come in order, not
//! side by side; names that have them together, at the beginning of a word or in the last part of the
//! path come first.

use std::path::Path;

use ignore::WalkBuilder;

/// How many files are looked at; in a larger project, people know what they look for.
const MAX_FILES: usize = 50_000;
/// How many are shown.
const MAX_FOUND: usize = 30;

/// Returns the files below a directory, as paths from there. Directories end with a slash.
pub(super) fn files(directory: &Path, depth: Option<usize>) -> Vec<String> {
    let walk = WalkBuilder::new(directory)
        .max_depth(depth)
        .require_git(false)
        .sort_by_file_name(Ord::cmp)
        .build();
    let name = |entry: ignore::DirEntry| {
        let path = entry.path().strip_prefix(directory).ok()?.to_str()?;
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        let slash = if is_directory { "/" } else { "" };
        // What only looks at one level goes on from there; otherwise the files are enough.
        let wanted = !path.is_empty() && (!is_directory || depth.is_some());
        wanted.then(|| format!("{path}{slash}"))
    };
    walk.filter_map(Result::ok).filter_map(name).take(MAX_FILES).collect()
}

/// Returns those that fit a few letters, best first.
pub(super) fn find<'a>(wanted: &str, names: &'a [String]) -> Vec<&'a str> {
    let mut found: Vec<(u32, &str)> =
        names.iter().filter_map(|name| Some((distance(wanted, name)?, name.as_str()))).collect();
    found.sort_by(|(left, one), (right, other)| {
        left.cmp(right).then(one.len().cmp(&other.len())).then(one.cmp(other))
    });
    found.into_iter().take(MAX_FOUND).map(|(_, name)| name).collect()
}

/// Returns how far a name is from what is wanted; nothing, if its letters are not all there.
fn distance(wanted: &str, name: &str) -> Option<u32> {
    let folded = name.to_lowercase();
    let wanted = wanted.to_lowercase();
    let last = folded.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if folded.starts_with(&wanted) || last.starts_with(&wanted) {
        return Some(0);
    }
    if last.contains(&wanted) {
        return Some(1);
    }
    if folded.contains(&wanted) {
        return Some(2);
    }
    scattered(&wanted, &folded).map(|jumps| 2 + jumps)
}

/// Returns how many pieces the letters are scattered over. The beginning of a word counts for less.
fn scattered(wanted: &str, name: &str) -> Option<u32> {
    let mut jumps = 0;
    let mut rest = name;
    let mut before = '/';
    for letter in wanted.chars() {
        let at = rest.find(letter)?;
        if let Some(skipped) = rest.get(..at).filter(|skipped| !skipped.is_empty()) {
            before = skipped.chars().next_back().unwrap_or(before);
            jumps += if before.is_alphanumeric() { 2 } else { 1 };
        }
        rest = rest.get(at + letter.len_utf8()..).unwrap_or_default();
    }
    Some(jumps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(wanted: &str, names: &[&'a str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name: &&'a str| (*name).to_owned()).collect();
        find(wanted, &names).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn the_nearest_name_comes_first() {
        let names = ["crates/cli/src/main.rs", "docs/maintain.md", "src/domain.rs", "README.md"];
        assert_eq!(found("main", &names)[..2], ["docs/maintain.md", "crates/cli/src/main.rs"]);
        assert_eq!(found("ccm", &names), ["crates/cli/src/main.rs"]);
        assert_eq!(found("readme", &names), ["README.md"]);
        assert_eq!(found("docs/", &names), ["docs/maintain.md"]);
        assert_eq!(found("xyz", &names), Vec::<String>::new());
        assert_eq!(found("", &names).len(), 4);
    }

    #[test]
    fn what_is_ignored_is_not_offered() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = directory.path().join(name);
            crate::files::make_directory(path.parent().unwrap()).unwrap();
            crate::files::write(&path, "x").unwrap();
        };
        for name in [".gitignore", "a.txt", "sub/b.txt", "target/c.txt", ".hidden"] {
            file(name);
        }
        crate::files::write(&directory.path().join(".gitignore"), "target\n").unwrap();
        assert_eq!(files(directory.path(), None), ["a.txt", "sub/b.txt"]);
        assert_eq!(files(directory.path(), Some(1)), ["a.txt", "sub/"]);
    }
}

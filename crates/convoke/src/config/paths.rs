//! Paths in settings: what they are relative to, and whether one lies inside another.
//!
//! A relative path is relative to the directory of the file that contains it, so moving between
//! directories never changes what is allowed. Every path is made absolute and free of `.` and `..`
//! before anything else looks at it.

use std::path::{Component, Path, PathBuf};

use super::node::Node;
use super::problem::Problem;
use super::schema::{Child, Schema};
use super::walk::{Verdict, walk};

/// What paths of one layer are relative to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base<'a> {
    /// The directory of the file; the working directory for flags and variables.
    pub(crate) directory: &'a Path,
    /// What `~` stands for.
    pub(crate) home: Option<&'a Path>,
}

/// Makes every path of a layer absolute. What cannot be a path is reported and taken out.
pub(crate) fn resolve_all(root: &mut Node, schema: Schema<'_>, base: Base<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    walk(root, schema, &mut |visit| {
        let Child::Known(schema) = visit.schema else { return Verdict::Keep };
        let text = visit.node.text().filter(|text| schema.is_path() && !text.is_empty());
        let Some(text) = text else { return Verdict::Descend };
        match resolve(text, base).and_then(into_text) {
            Ok(path) => {
                visit.node.set_text(path);
                Verdict::Keep
            }
            Err(mistake) => {
                problems.push(Problem::new(&visit.node.origin.place, visit.key, mistake));
                Verdict::Drop
            }
        }
    });
    problems
}

fn into_text(path: PathBuf) -> Result<String, String> {
    let unreadable = |path: PathBuf| format!("the path {} is not UTF-8", path.display());
    path.into_os_string().into_string().map_err(|path| unreadable(path.into()))
}

fn resolve(text: &str, base: Base<'_>) -> Result<PathBuf, String> {
    if text.contains('\0') {
        return Err("a path cannot contain a null character".to_owned());
    }
    let path = match text.strip_prefix('~') {
        None => base.directory.join(text),
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = base.home.ok_or("`~` cannot be used: there is no home directory")?;
            home.join(rest.trim_start_matches('/'))
        }
        Some(_) => return Err("`~name` is not understood; write the full path".to_owned()),
    };
    normalise(&path).ok_or_else(|| "the path leads above the root directory".to_owned())
}

/// Removes `.` and `..` without looking at the disk; nothing where `..` leads above the start.
pub(crate) fn normalise(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match clean.components().next_back() {
                Some(Component::Normal(_)) => {
                    clean.pop();
                }
                _ => return None,
            },
            other => clean.push(other),
        }
    }
    Some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_their_file() {
        let base = Base { directory: Path::new("/etc/app"), home: Some(Path::new("/home/ada")) };
        for (text, expected) in [
            ("data", Ok("/etc/app/data")),
            ("./a/./b//c/", Ok("/etc/app/a/b/c")),
            (".", Ok("/etc/app")),
            ("../x", Ok("/etc/x")),
            ("a/../b", Ok("/etc/app/b")),
            ("/var/log", Ok("/var/log")),
            ("~", Ok("/home/ada")),
            ("~/notes", Ok("/home/ada/notes")),
            ("~//etc", Ok("/home/ada/etc")),
            ("a~", Ok("/etc/app/a~")),
            ("../../..", Err("the path leads above the root directory")),
            ("~bob/x", Err("`~name` is not understood; write the full path")),
            ("a\0b", Err("a path cannot contain a null character")),
        ] {
            let expected = expected.map(PathBuf::from).map_err(str::to_owned);
            assert_eq!(resolve(text, base), expected, "{text}");
        }
        let homeless = Base { home: None, ..base };
        let missing = "`~` cannot be used: there is no home directory".to_owned();
        assert_eq!(resolve("~/x", homeless), Err(missing));
    }
}

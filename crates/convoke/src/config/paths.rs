//! Paths in settings: what they are relative to, and whether one lies inside another.
//!
//! A relative path is relative to the directory of the file that contains it, so moving between
//! directories never changes what is allowed. Every path is made absolute and free of `.` and `..`
//! before anything else looks at it. Where a program starts may be said relative to the [workspace](WORKSPACE) of a
//! run, which is not known yet: that alone stays as it is.

use std::path::{Component, Path, PathBuf};

use super::node::Node;
use super::problem::Problem;
use super::schema::{Child, Schema};
use super::walk::{Verdict, walk};

/// The word with which a path begins that is relative to the workspace, as `cwd` of an MCP server may be.
pub const WORKSPACE: &str = "workspace";

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
        let in_workspace = in_workspace(text).filter(|_| schema.is_place());
        match in_workspace.unwrap_or_else(|| resolve(text, base)).and_then(into_text) {
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

/// Reads a path that is relative to the workspace: the word alone, or with something behind it.
fn in_workspace(text: &str) -> Option<Result<PathBuf, String>> {
    let below = text.strip_prefix(WORKSPACE)?;
    if !below.is_empty() && !below.starts_with('/') {
        return None;
    }
    let below = normalise(Path::new(below.trim_start_matches('/')));
    let place = below.filter(|path| !path.to_string_lossy().contains('\0'));
    let place = place.map(|below| Path::new(WORKSPACE).join(below));
    Some(place.ok_or_else(|| "the path leads out of the workspace".to_owned()))
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
    fn a_path_may_be_relative_to_the_workspace() {
        let inside = |path: &str| Some(Ok(PathBuf::from(path)));
        let outside = || Some(Err("the path leads out of the workspace".to_owned()));
        for (text, expected) in [
            ("workspace", inside("workspace")),
            ("workspace/", inside("workspace")),
            ("workspace//a/./b/../c", inside("workspace/a/c")),
            ("workspace/..", outside()),
            ("workspace/a/../../b", outside()),
            ("workspaces", None),
            ("./workspace", None),
            ("/workspace", None),
        ] {
            assert_eq!(in_workspace(text), expected, "{text}");
        }
    }

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

//! Notes for agents: the `AGENTS.md` files of a project.

use std::path::Path;

use crate::config::disk;

/// The file that people write for agents.
const FILE_NAME: &str = "AGENTS.md";

/// Finds the notes that hold for a directory, the nearest first: in it and above it, up to a directory
/// with `.git`, the home directory or the root. Without `.git` above it, only the directory itself is
/// looked at: what lies further up belongs to somebody else.
pub(crate) fn find(directory: &Path, home: Option<&Path>) -> Vec<(String, String)> {
    let ancestors: Vec<&Path> = directory
        .ancestors()
        .take_while(|above| Some(*above) != home || *above == directory)
        .collect();
    let project = ancestors.iter().position(|above| disk::exists(&above.join(".git")));
    let within = project.map_or(1, |depth| depth + 1);
    let mut notes = Vec::new();
    let top = ancestors.get(within - 1).and_then(|top| top.canonicalize().ok());
    for (depth, above) in ancestors.into_iter().take(within).enumerate() {
        let path = above.join(FILE_NAME);
        let name = format!("{}{FILE_NAME}", "../".repeat(depth));
        // A link must not carry what lies outside the project to whoever runs the model.
        let inside = match (path.canonicalize(), &top) {
            (Ok(real), Some(top)) => real.starts_with(top),
            _ => continue,
        };
        if !inside {
            notes.push((name, "[not read: it is a link that leads out of the project]".to_owned()));
            continue;
        }
        match disk::read_file(&path) {
            Ok(Some(text)) => notes.push((name, text)),
            Ok(None) => {}
            Err(error) => notes.push((name, format!("[not read: {}]", error.message))),
        }
    }
    notes
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the files that are found")]
mod tests {
    use super::*;

    #[test]
    fn a_link_out_of_the_project_is_not_followed() {
        let outer = tempfile::tempdir().unwrap();
        let project = outer.path().join("project");
        std::fs::create_dir_all(project.join(".git")).unwrap();
        std::fs::write(outer.path().join("secret"), "the key").unwrap();
        std::os::unix::fs::symlink("../secret", project.join(FILE_NAME)).unwrap();
        let notes = find(&project, None);
        assert!(notes[0].1.starts_with("[not read: it is a link"), "{notes:?}");
    }

    #[test]
    fn the_nearest_note_comes_first_and_the_project_ends_the_search() {
        let outer = tempfile::tempdir().unwrap();
        let project = outer.path().join("project");
        let inner = project.join("crates/core");
        std::fs::create_dir_all(&inner).unwrap();
        for (place, text) in [(outer.path(), "outer"), (&project, "project"), (&inner, "inner")] {
            std::fs::write(place.join(FILE_NAME), text).unwrap();
        }
        let found = |directory: &Path| find(directory, None);
        assert_eq!(found(&inner), [("AGENTS.md".into(), "inner".to_owned())]);
        std::fs::create_dir(project.join(".git")).unwrap();
        assert_eq!(
            found(&inner),
            [
                ("AGENTS.md".to_owned(), "inner".to_owned()),
                ("../../AGENTS.md".to_owned(), "project".to_owned()),
            ]
        );
    }
}

//! Notes for agents: the `AGENTS.md` files of a project.

use std::path::Path;

use crate::config::disk;

/// The file that people write for agents.
const FILE_NAME: &str = "AGENTS.md";

/// What was found: names and texts.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// What the model is told. Of a note that could not be read, that it could not.
    pub(crate) told: Vec<(String, String)>,
    /// What could not be read, and why.
    pub(crate) unread: Vec<(String, String)>,
}

impl Notes {
    fn leave_out(&mut self, name: String, why: &str) {
        self.told.push((name.clone(), format!("[not read: {why}]")));
        self.unread.push((name, why.to_owned()));
    }
}

/// Finds the notes that hold for a directory, the nearest first: in it and above it, up to a directory
/// with `.git`, the home directory or the root. Without `.git` above it, only the directory itself is
/// looked at: what lies further up belongs to somebody else.
pub(crate) fn find(directory: &Path, home: Option<&Path>) -> Notes {
    let ancestors: Vec<&Path> = directory
        .ancestors()
        .take_while(|above| Some(*above) != home || *above == directory)
        .collect();
    let project = ancestors.iter().position(|above| disk::exists(&above.join(".git")));
    let within = project.map_or(1, |depth| depth + 1);
    let mut notes = Notes::default();
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
            notes.leave_out(name, "it is a link that leads out of the project");
            continue;
        }
        match disk::read_file(&path) {
            Ok(Some(text)) => notes.told.push((name, text)),
            Ok(None) => {}
            Err(error) => notes.leave_out(name, &error.message),
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
        assert_eq!(notes.unread[0].0, "AGENTS.md");
        assert!(notes.told[0].1.starts_with("[not read: it is a link"), "{notes:?}");
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
        let found = |directory: &Path| find(directory, None).told;
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

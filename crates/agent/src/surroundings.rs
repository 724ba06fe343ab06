//! What an agent is told about where it works.

/// Where an agent works, and what its users wrote down for agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Surroundings {
    /// The directory that relative paths start from.
    pub working_directory: String,
    /// The operating system.
    pub platform: String,
    /// Today, as `2026-03-01`.
    pub date: String,
    /// What is special about the files there, where something is.
    pub workspace: Option<String>,
    /// Notes for agents, the nearest first: where they are, and what they say.
    pub notes: Vec<(String, String)>,
    /// Notes that are there but could not be read: where they are, and why.
    pub unread: Vec<(String, String)>,
}

impl Surroundings {
    /// The most that is told of all notes together, in bytes.
    pub const MAX_NOTES: usize = 16 * 1024;

    /// Returns standing instructions with these surroundings added. What is cut is said.
    pub fn with(&self, instructions: &str) -> String {
        let mut text = instructions.trim_end().to_owned();
        text.push_str(&format!(
            "\n\nWorking directory: {}\nSystem: {}\nDate: {}\n",
            self.working_directory, self.platform, self.date
        ));
        if let Some(workspace) = &self.workspace {
            text.push_str(&format!("Workspace: {workspace}\n"));
        }
        for (path, note, kept) in self.kept() {
            text.push_str(&format!("\nFrom {path}:\n{}\n", kept.trim_end()));
            if kept.len() < note.len() {
                let cut = note.len() - kept.len();
                text.push_str(&format!(
                    "[{cut} bytes of {path} are not shown; read it if needed]\n"
                ));
            }
        }
        text
    }

    /// Returns what of the notes does not reach the model, for the people who wrote them.
    pub fn warnings(&self) -> Vec<String> {
        let unread = self.unread.iter().map(|(path, why)| format!("{path} was not read: {why}"));
        let cut = self.kept().filter(|(_, note, kept)| kept.len() < note.len());
        let cut = cut.map(|(path, note, kept)| {
            let (shown, all) = (kept.len(), note.len());
            format!("{path} is too long: the model is shown {shown} of its {all} bytes")
        });
        unread.chain(cut).collect()
    }

    /// Returns each note with what there is room for.
    fn kept(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let mut left = Self::MAX_NOTES;
        self.notes.iter().map(move |(path, note)| {
            let kept = floor(note, left);
            left -= kept.len();
            (path.as_str(), note.as_str(), kept)
        })
    }
}

/// Returns the beginning of a text, at most so many bytes.
fn floor(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_said() {
        let surroundings = Surroundings {
            working_directory: "/srv".into(),
            platform: "linux".into(),
            date: "2026-03-01".into(),
            workspace: None,
            notes: vec![
                ("AGENTS.md".into(), "ä".repeat(9_000)),
                ("../AGENTS.md".into(), "Use tabs.".into()),
            ],
            unread: vec![("../../AGENTS.md".into(), "it is a link".into())],
        };
        assert_eq!(
            surroundings.warnings(),
            [
                "../../AGENTS.md was not read: it is a link",
                "AGENTS.md is too long: the model is shown 16384 of its 18000 bytes",
                "../AGENTS.md is too long: the model is shown 0 of its 9 bytes",
            ]
        );
        let text = surroundings.with("Be good.\n");
        assert!(text.starts_with("Be good.\n\nWorking directory: /srv\n"), "{text}");
        assert!(text.contains("[1616 bytes of AGENTS.md are not shown"), "{}", text.len());
        assert!(text.contains("[9 bytes of ../AGENTS.md are not shown"));
        assert!(text.len() < Surroundings::MAX_NOTES + 500);
    }
}

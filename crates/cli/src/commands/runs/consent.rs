//! Whether a run may be resumed that belongs to another directory, or acts more freely than a new one would.

use std::path::Path;

use convoke::{Origin, ResumeDifference};
use convoke_core::{Event, Mode, RunId};

use super::super::ask;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

/// A run that somebody wants to resume.
pub(in crate::commands) struct Comeback<'a> {
    pub(in crate::commands) id: &'a RunId,
    pub(in crate::commands) events: &'a [Event],
    /// The mode that was named now.
    pub(in crate::commands) mode: Option<Mode>,
    /// Whether the run is to work in the present directory from now on.
    pub(in crate::commands) here: bool,
    /// The words of the command that resumes it, without flags.
    pub(in crate::commands) command: &'a str,
}

impl Comeback<'_> {
    /// Asks the user about a directory or a mode that is not the present one. Returns a session in the directory in
    /// which the run works.
    pub(in crate::commands) fn agree<'s>(
        &self,
        session: &Session<'s>,
        output: &Output,
    ) -> Result<Session<'s>, Failure> {
        let present = session.working_directory();
        let Some(origin) = Origin::of(self.events) else { return Ok(session.moved_to(present)) };
        let own = if self.here { present } else { &origin.working_directory };
        let mut difference = origin.compare(present, self.mode.unwrap_or(Mode::Default));
        difference.directory = difference.directory.filter(|_| !self.here);
        // A mode that is named takes the place of the run's own.
        difference.mode = difference.mode.filter(|_| self.mode.is_none());
        if !difference.is_none() {
            let agreed = ask::yes(&self.question(&difference, present), output);
            if agreed != Some(true) {
                return Err(self.refusal(&difference, present, agreed));
            }
        }
        Ok(session.moved_to(own))
    }

    fn facts(&self, difference: &ResumeDifference, present: &Path) -> String {
        let ResumeDifference { directory, mode, .. } = difference;
        let directory = directory.as_ref().map(|own| {
            format!("works in `{}`, and this is `{}`", own.display(), present.display())
        });
        let mode = mode
            .map(|mode| format!("acts in mode `{mode}`, which is freer than `{}`", Mode::Default));
        let facts: Vec<String> = directory.into_iter().chain(mode).collect();
        format!("run `{}` {}", self.id, facts.join("; it "))
    }

    fn question(&self, difference: &ResumeDifference, present: &Path) -> String {
        format!("{}\nresume it so?", self.facts(difference, present))
    }

    fn refusal(
        &self,
        difference: &ResumeDifference,
        present: &Path,
        agreed: Option<bool>,
    ) -> Failure {
        let ResumeDifference { directory, mode, .. } = difference;
        let place = directory.as_ref().map(|own| format!("--cwd {} ", shell_word(own)));
        let place = place.unwrap_or_default();
        let freedom = mode.map(|mode| format!(" --mode {mode}")).unwrap_or_default();
        let command = self.command;
        let facts = self.facts(difference, present);
        let failure = match agreed {
            Some(_) => Failure::usage(format!("run `{}` was not resumed", self.id)),
            None => Failure::usage(format!("{facts}; nobody can be asked about that here")),
        };
        let failure = failure.hint(format!("`convoke {place}{command}{freedom}` resumes it so"));
        let failure = match mode {
            Some(_) => failure.hint("`--mode default` asks before it changes anything"),
            None => failure,
        };
        match directory {
            Some(_) => failure.hint("`--here` lets it work in this directory from now on"),
            None => failure,
        }
    }
}

/// Writes a path as a shell reads it.
pub(in crate::commands) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@:,=%".contains(&byte);
    if text.bytes().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_word_quotes_what_a_shell_would_split() {
        assert_eq!(shell_word(Path::new("/a/b-c.d")), "/a/b-c.d");
        assert_eq!(shell_word(Path::new("/a b")), "'/a b'");
        assert_eq!(shell_word(Path::new("/it's")), "'/it'\\''s'");
    }
}

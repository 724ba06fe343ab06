//! Changing the arguments of a call in the person's editor.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::environment::Environment;
use crate::files;

/// The program in which the person changes texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Editor {
    program: String,
    arguments: Vec<String>,
    /// Where the text lies meanwhile: where programs of a run cannot reach it.
    private: Option<PathBuf>,
}

impl Editor {
    /// Finds the person's editor: what `VISUAL` or `EDITOR` says, or one that is usually there.
    pub(super) fn find(environment: &Environment) -> Option<Self> {
        let variables = environment.variables();
        let private = environment.config_directory();
        let named = ["VISUAL", "EDITOR"].into_iter().filter_map(|name| variables.get(name));
        for named in named {
            let mut words = named.split_whitespace().map(str::to_owned);
            if let Some(program) = words.next() {
                return Some(Self { program, arguments: words.collect(), private });
            }
        }
        let there = |name: &&str| {
            let mut directories = environment.program_directories().into_iter();
            directories.any(|directory| directory.join(name).is_file())
        };
        let program = ["nano", "vi"].into_iter().find(there)?.to_owned();
        Some(Self { program, arguments: Vec::new(), private })
    }

    /// Lets the person change a value.
    pub(super) fn edit(&self, value: &Value) -> Result<Value, String> {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        let directory = self.directory().map_err(|error| error.to_string())?;
        let path = directory.path().join("arguments.json");
        let changed = files::write_private(&path, &text)
            .and_then(|()| self.open(&path))
            .and_then(|()| files::read(&path));
        let changed =
            changed.map_err(|error| format!("`{}` did not work: {error}", self.program))?;
        serde_json::from_str(&changed).map_err(|error| format!("this is no JSON: {error}"))
    }

    fn directory(&self) -> io::Result<tempfile::TempDir> {
        match &self.private {
            Some(private) => {
                files::make_directory(private)?;
                tempfile::tempdir_in(private)
            }
            None => tempfile::tempdir(),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the person asked for this very program, on the person's own terminal"
    )]
    fn open(&self, path: &Path) -> io::Result<()> {
        let ended = Command::new(&self.program).args(&self.arguments).arg(path).status()?;
        if ended.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("it ended with {ended}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn editor(words: &str) -> Editor {
        Editor::find(&Environment::of(&[("EDITOR", words)])).unwrap()
    }

    #[test]
    fn what_the_person_wrote_is_what_counts() {
        let value = json!({ "command": "rm a" });
        let changed = editor("sed -i s/rm/ls/").edit(&value);
        assert_eq!(changed, Ok(json!({ "command": "ls a" })));
        assert_eq!(editor("true").edit(&value), Ok(value.clone()));
        assert!(editor("sed -i s/{//").edit(&value).unwrap_err().contains("no JSON"));
        assert!(editor("false").edit(&value).unwrap_err().contains("`false` did not work"));
        assert!(editor("no-such-editor").edit(&value).is_err());
    }

    #[test]
    fn visual_comes_first_and_without_any_there_is_none() {
        let both = Environment::of(&[("EDITOR", "ed"), ("VISUAL", "code --wait")]);
        let found = Editor::find(&both).unwrap();
        assert_eq!((found.program.as_str(), found.arguments.len()), ("code", 1));
        assert_eq!(Editor::find(&Environment::of(&[("EDITOR", " "), ("PATH", "")])), None);
    }
}

//! Shows a long text page by page, with the program the person likes for it.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use crate::environment::Environment;

/// A program that shows texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pager {
    program: String,
    arguments: Vec<String>,
    /// Whether `less` is told to show colours as colours: unless the person tells it something else.
    colours: bool,
}

impl Pager {
    /// Finds the person's pager: what `PAGER` says, or `less`, if there is one.
    pub(crate) fn find(environment: &Environment) -> Option<Self> {
        let variables = environment.variables();
        let colours = !variables.contains_key("LESS");
        let said = variables.get("PAGER").map(|said| said.split_whitespace().map(str::to_owned));
        let mut words = said.into_iter().flatten();
        if let Some(program) = words.next() {
            return Some(Self { program, arguments: words.collect(), colours });
        }
        let less = environment.program_directories().into_iter().map(|path| path.join("less"));
        let less = less.into_iter().find(|path| path.is_file())?;
        let program = less.to_string_lossy().into_owned();
        Some(Self { program, arguments: vec!["-R".to_owned()], colours })
    }

    /// Shows a text and waits until the person has seen enough.
    #[expect(
        clippy::disallowed_methods,
        reason = "the person asked for this very program, on the person's own terminal"
    )]
    pub(crate) fn show(&self, text: &str, onto: Stdio) -> io::Result<()> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(onto);
        if self.colours {
            command.env("LESS", "R");
        }
        let mut pager = command.spawn()?;
        if let Some(mut input) = pager.stdin.take() {
            // Who has seen enough closes it early.
            drop(input.write_all(text.as_bytes()));
        }
        let ended = pager.wait()?;
        // A shell that does not find the program says so with this code.
        if ended.code() == Some(127) { Err(io::Error::other("there is no pager")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    #[test]
    fn the_persons_own_pager_is_used_with_its_arguments() {
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("copy");
        let own = format!("tee {}", copy.display());
        let pager = Pager::find(&Environment::of(&[("PAGER", &own)])).unwrap();
        pager.show("one\ntwo\n", Stdio::null()).unwrap();
        assert_eq!(files::read(&copy).unwrap(), "one\ntwo\n");
        // Whoever leaves before the end has not failed.
        let early = Pager::find(&Environment::of(&[("PAGER", "true")])).unwrap();
        assert!(early.show(&"x\n".repeat(1_000_000), Stdio::null()).is_ok());
    }

    #[test]
    fn without_one_there_is_less_or_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        let place = Environment::of(&[("PATH", path), ("PAGER", " ")]);
        assert_eq!(Pager::find(&place), None);
        files::write(&directory.path().join("less"), "").unwrap();
        let less = Pager::find(&place).unwrap();
        assert_eq!((less.program, less.arguments), (format!("{path}/less"), vec!["-R".to_owned()]));
        let nothing = Pager::find(&Environment::of(&[("PAGER", "no-such-program-here")])).unwrap();
        assert!(nothing.show("x", Stdio::null()).is_err(), "then the text is printed");
    }
}

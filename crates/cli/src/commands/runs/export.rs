//! `convoke runs export`: a run as something to hand on.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use convoke::journal::timeline::Timeline;
use convoke::journal::{Recorded, export};
use convoke_core::{ExitCode, RunId};

use super::named::{LastFlag, Opened};
use super::show::damaged;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::session::Session;

const AFTER_HELP: &str = "\
jsonl is every event, one a line; html a page that needs nothing else, neither a network nor a server; md is \
Markdown for an issue or a pull request. Without --format the name of the file decides, and jsonl where there is \
none. It is written to standard output, except that a page on a terminal goes to run-ID.html. What a run read and \
wrote is in it: look before you hand it on. Only you can read the file.

Examples:
  convoke runs export --last --format html
  convoke runs export 1k2m --output run.md
  convoke runs export 1k2m | jq -r .type";

/// Write a run as a page, as Markdown or as its events
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Export {
    /// The run, or any part of its id that no other run has
    #[arg(value_name = "ID", num_args = 0..=1)]
    words: Vec<String>,
    #[command(flatten)]
    last: LastFlag,
    /// What to write
    #[arg(long, short, value_name = "FORMAT", value_parser = format_parser())]
    format: Option<Format>,
    /// Where to write it; - is standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Format {
    Jsonl,
    Html,
    Markdown,
}

fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["jsonl", "html", "md"]).map(|word| match word.as_str() {
        "html" => Format::Html,
        "md" => Format::Markdown,
        _ => Format::Jsonl,
    })
}

impl Format {
    /// What the name of a file says.
    pub(in crate::commands) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "html" | "htm" => Some(Self::Html),
            "md" | "markdown" => Some(Self::Markdown),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            _ => None,
        }
    }

    pub(in crate::commands) fn text(self, recorded: &Recorded) -> io::Result<String> {
        let timeline = || Timeline::of(&recorded.events);
        match self {
            Self::Html => Ok(export::html(&timeline())),
            Self::Markdown => Ok(export::markdown(&timeline())),
            Self::Jsonl => {
                let mut lines = Vec::new();
                export::jsonl(&recorded.events, &mut lines)?;
                String::from_utf8(lines).map_err(io::Error::other)
            }
        }
    }
}

impl Export {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let named = self.output.as_deref().filter(|path| *path != Path::new("-"));
        let format = match (self.format, named) {
            (Some(format), _) => format,
            (None, None) => Format::Jsonl,
            (None, Some(path)) => Format::of(path).ok_or_else(|| {
                Failure::usage(format!("`{}` does not say what to write", path.display()))
                    .hint("--format does, or a name that ends with .html, .md or .jsonl")
            })?,
        };
        let Opened { id, recorded, .. } = Opened::of(session, &self.words, self.last)?;
        let text = format.text(&recorded).map_err(|error| {
            Failure::failed(format!("run `{id}` cannot be written")).because(&error)
        })?;
        match self.place(&id, format, output) {
            None => output.out.text(output.out.printable(&text)),
            Some(path) => {
                self.write(&session.absolute(&path), &text)?;
                if !output.is_quiet() {
                    output.err.line(format_args!("wrote {}", path.display()));
                }
            }
        }
        damaged(&id, &recorded)
    }

    /// Nobody reads the source of a page on a terminal.
    fn place(&self, id: &RunId, format: Format, output: &Output) -> Option<PathBuf> {
        match &self.output {
            Some(path) if path == Path::new("-") => None,
            Some(path) => Some(path.clone()),
            None if format == Format::Html && output.out.is_terminal() => {
                Some(format!("run-{id}.html").into())
            }
            None => None,
        }
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), Failure> {
        // A device or a pipe is written to; a link leads to what is replaced.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let written = match target.metadata() {
            Ok(there) if !there.is_file() && !there.is_dir() => files::write_to(&target, text),
            _ if self.force => files::replace(&target, text),
            _ => files::put(path, text),
        };
        written.map_err(|error| {
            let shown = path.display();
            match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    Failure::usage(format!("`{shown}` is there already"))
                        .hint("--force replaces it")
                }
                _ => Failure::failed(format!("`{shown}` cannot be written")).because(&error),
            }
        })
    }
}

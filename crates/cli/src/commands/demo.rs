//! `convoke demo`: a recorded model and the real tools work on a sample project.
//!
//! Everything but the model's answers is what `convoke run` does. The recording is replayed strictly: each
//! answer is given only to the very request it was recorded for, so what the tools return has to be what
//! they returned then.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use convoke::Runtime;
use convoke::model::Replay;
use convoke_core::{ExitCode, Mode};

use super::run::approve::Approvals;
use super::run::watch::{Watch, threads};
use super::run::{cannot_start, choose};
use crate::failure::Failure;
use crate::files;
use crate::output::{Output, Style, wrap};
use crate::session::Session;
use crate::view::{Detail, View};

/// What the agent is asked to do.
const PROMPT: &str =
    "The test of this project fails. Find out why, fix it, and show that it passes.";
/// The model's answers.
const RECORDING: &str = include_str!("../../demo/recording.jsonl");
/// The sample project.
const PROJECT: &[(&str, &str)] = &[
    ("AGENTS.md", include_str!("../../demo/project/AGENTS.md")),
    ("README.md", include_str!("../../demo/project/README.md")),
    ("slug.sh", include_str!("../../demo/project/slug.sh")),
    ("test.sh", include_str!("../../demo/project/test.sh")),
];

const AFTER_HELP: &str = "\
Needs no key and no network. The model's answers are a recording; everything else happens: files are \
read, a program is run, a file is edited, the program is run again. It happens in a new directory, \
which is removed afterwards unless you keep it.

Examples:
  convoke demo
  convoke demo --keep ./slug && cd slug && sh test.sh";

/// See an agent work, without a key
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Demo {
    /// Work in this directory, which must not be there yet, and keep it
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Show thoughts, arguments and decisions too
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
}

impl Demo {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let place = Place::make(self.keep.as_deref().map(|path| session.absolute(path)))?;
        if !output.is_quiet() {
            let prompt = output.err.paint(Style::Name, PROMPT);
            output.err.line(format_args!("{prompt}"));
        }
        let code = self.work(&place, session, output)?;
        if !output.is_quiet() && code == ExitCode::Done {
            self.say_what_it_was(output);
        }
        Ok(code)
    }

    fn work(
        &self,
        place: &Place,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        // Whoever starts the demo consents to what it does in a directory of its own.
        let runtime = Runtime::builder(place.path())
            .mode(Mode::Full)
            .environment(session.environment().variables())
            // What lies around the sample is none of its business: the search for notes ends above it.
            .home(place.path().parent().map(Path::to_owned))
            .build()?;
        let replay = Replay::open(RECORDING.as_bytes(), choose::placeholders(&runtime))
            .map_err(|error| Failure::failed("the recording is broken").because(&error))?;
        let agent = runtime.main_agent(Arc::new(replay)).build();
        let agent = agent.map_err(|error| cannot_start(&error))?;
        let detail = if self.verbose { Detail::Verbose } else { Detail::Usual };
        let detail = if output.is_quiet() { Detail::Quiet } else { detail };
        let mut approvals = Approvals::new(output, session);
        let watch = Watch::new(View::text(output, detail), &mut approvals);
        watch.until_the_end(&threads()?, agent.start(PROMPT), output)
    }

    fn say_what_it_was(&self, output: &Output) {
        let next = match &self.keep {
            Some(path) => format!("the project is in {}", path.display()),
            None => "--keep DIR keeps the project".to_owned(),
        };
        let next = output.err.printable(&next).to_string();
        let text = format!(
            "The model's answers were a recording, the tools were real; {next}. With a model of your \
             own: convoke run \"…\""
        );
        for line in wrap(&text, output.err.width()) {
            output.err.line(line);
        }
    }
}

/// Where the demo works.
enum Place {
    /// Until it ends.
    Passing(tempfile::TempDir),
    /// For good.
    Kept(PathBuf),
}

impl Place {
    fn make(keep: Option<PathBuf>) -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| {
            Failure::failed("the sample project cannot be made").because(&error)
        };
        let place = match keep {
            Some(path) if path.exists() => {
                let shown = path.display();
                return Err(Failure::usage(format!("`{shown}` is there already"))
                    .hint("name a directory that does not exist yet"));
            }
            Some(path) => {
                files::make_directory(&path).map_err(cannot)?;
                Self::Kept(path)
            }
            None => Self::Passing(tempfile::tempdir().map_err(cannot)?),
        };
        for (name, text) in PROJECT {
            files::write(&place.path().join(name), text).map_err(cannot)?;
        }
        Ok(place)
    }

    fn path(&self) -> &Path {
        match self {
            Self::Passing(directory) => directory.path(),
            Self::Kept(path) => path,
        }
    }
}

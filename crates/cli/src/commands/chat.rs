//! `convoke chat`, and `convoke` alone: a conversation.
//!
//! A chat is a run like any other, which is taken up again with every message. Between two messages
//! nobody works on it, and it is kept as it is. Turns, time and calls are limited for each message, money
//! and tokens for all of them together.
//!
//! | module | owns |
//! | --- | --- |
//! | `talk` | the conversation itself |
//! | `perform` | the chat's own commands |
//! | `input` | the editor, or plain lines |
//! | `line` | what a line is: a message or a command |
//! | `mention` | `@path` in a message |
//! | `prompt` | `/server:prompt`, and what is known of what servers have |
//! | `complete`, `find` | what Tab offers |
//! | `queue` | what is said while a run works |
//! | `show` | what the chat says itself |
//! | `runs` | conversations that are kept |

mod complete;
mod find;
mod input;
mod line;
mod mention;
mod perform;
mod prompt;
mod queue;
mod resource;
mod runs;
mod show;
mod talk;

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use convoke::agent::{Paused, Reopened, last_said};
use convoke::config::Config;
use convoke::journal::Store;
use convoke::{Origin, Workspace};
use convoke_core::{ExitCode, Mode, RunId, WorkspaceKind};

use self::mention::{Attached, Places};
use self::talk::Talk;
use super::agents;
use super::mcp::end_all;
use super::run::approve::Approvals;
use super::run::flags::{AgentFlags, WorkspaceFlag};
use super::run::watch::threads;
use super::runs::consent::Comeback;
use super::runs::journals;
use super::runs::named::{self, LastFlag};
use super::workspace;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;
use crate::typing::Typing;

const AFTER_HELP: &str = "\
`convoke` alone does the same. The model is found as `convoke run` finds it. Limits of turns, time and \
calls hold for each message, limits of tokens and money for the whole conversation.

While it works, you can type the next message: it is taken in at the next turn. Ctrl-C stops an answer \
and keeps the conversation. /help shows the commands and keys.

Where standard input is not a terminal, every line is a message, and standard output is the answers and \
nothing else. The first message that fails decides the exit code.

Examples:
  convoke chat
  convoke chat --model ollama/qwen3 --mode plan
  convoke chat --file screen.png --max-cost 1
  convoke chat --last                                go on with this directory's last run
  printf 'Read README.md\\nSum it up in a line\\n' | convoke chat";

/// Talk with an agent
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Chat {
    #[command(flatten)]
    flags: AgentFlags,
    #[command(flatten)]
    workspace: WorkspaceFlag,
    /// Go on with this run
    #[arg(long, value_name = "ID", conflicts_with_all = ["last", "no_journal"])]
    resume: Option<String>,
    #[command(flatten)]
    last: LastFlag,
    /// Let the run work in this directory from now on, if it belongs to another
    #[arg(long)]
    here: bool,
}

impl Chat {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let Self { flags, workspace, resume, last, here } = self;
        if resume.is_none() && !last.last {
            if here {
                return Err(Failure::usage("--here is about a run that goes on")
                    .hint("name it with --resume, or say --last"));
            }
            return talk(&flags, workspace.workspace, session, None, output);
        }
        if flags.no_journal {
            return Err(Failure::usage("a run that is kept goes on being kept")
                .hint("leave out --no-journal"));
        }
        if workspace.workspace.is_some() {
            return Err(Failure::usage("a run keeps its workspace").hint("leave out --workspace"));
        }
        let store = session.existing_store()?;
        let id = named::only(&store, resume.as_slice(), last, session)?;
        let kept = journals(&store).reopen(&id).map_err(|error| named::failure(&error))?;
        agents::refuse_to_talk(&id, &kept.events)?;
        let command = format!("chat --resume {id}");
        let (events, mode) = (&kept.events, flags.mode);
        let comeback = Comeback { id: &id, events, mode, here, command: &command };
        let session = comeback.agree(session, output)?;
        talk(&flags, None, &session, Some(kept), output)
    }
}

/// Tells whether there is a person to talk with.
pub(crate) fn has_company() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// Talks until somebody leaves, beginning with a conversation that nobody works on, or with a new one.
fn talk(
    flags: &AgentFlags,
    wanted: Option<WorkspaceKind>,
    session: &Session<'_>,
    kept: Option<Reopened>,
    output: &mut Output,
) -> Result<ExitCode, Failure> {
    let places = Places {
        directory: session.working_directory().to_owned(),
        home: session.environment().home(),
        agents: Vec::new(),
        other_agents: Vec::new(),
        servers: Vec::new(),
    };
    let named = flags.file.iter().map(|path| path.display().to_string());
    let files: Result<Vec<Attached>, Failure> =
        named.map(|name| Attached::read(&name, &places)).collect();
    let to_attach = files?;
    let mut config = session.load(output)?.config;
    let origin = kept.as_ref().and_then(|kept| Origin::of(&kept.events));
    if let Some(origin) = &origin {
        config.tools.enabled = origin.tools_within(config.tools.enabled.as_deref());
    }
    flags.apply(&mut config);
    let threads = threads()?;
    let mode = flags.mode.or(origin.map(|origin| origin.mode)).unwrap_or(Mode::Default);
    let store = if flags.no_journal { None } else { session.store(output) };
    let (id, own) = if let Some(Reopened { paused, events, .. }) = &kept {
        let id = paused.id();
        let own = workspace::reopen(&id, events, session, &config, &threads, output)?;
        (id, own)
    } else {
        let kind = wanted.unwrap_or(config.agent.workspace);
        workspace::prepare(kind, store.is_some(), session, &config, &threads)?
    };
    let place = Place { config, mode, store, workspace: own.clone(), id };
    let ended = talk_in(place, flags, session, kept, to_attach, &threads, output);
    workspace::leave(own.as_ref(), &threads, output);
    // What does not end by itself, reading a line for instance, ends with the process.
    threads.shutdown_timeout(Duration::from_millis(200));
    ended
}

/// Where a conversation takes place.
struct Place {
    config: Config,
    mode: Mode,
    store: Option<Store>,
    workspace: Option<Workspace>,
    /// Its run.
    id: RunId,
}

fn talk_in(
    place: Place,
    flags: &AgentFlags,
    session: &Session<'_>,
    kept: Option<Reopened>,
    to_attach: Vec<Attached>,
    threads: &tokio::runtime::Runtime,
    output: &mut Output,
) -> Result<ExitCode, Failure> {
    let Place { config, mode, store, workspace, id } = place;
    let runtime = flags.runtime(session, mode, config.clone(), store, workspace)?;
    let places = Places {
        directory: runtime.context().working_directory().to_owned(),
        home: session.environment().home(),
        agents: agents::offered(&runtime),
        other_agents: agents::not_offered(&runtime),
        servers: resource::servers(&runtime),
    };
    Session::warn_of_programs(&runtime, output);
    session.warn_of_servers(&runtime, output);
    if runtime.calls_agents() {
        Session::warn_of_agents_in_short(&runtime, output);
    }
    let first = kept.is_none().then_some(id);
    let said = kept.as_ref().and_then(|kept| last_said(&kept.paused.id(), &kept.events));
    let said = said.map(str::to_owned);
    let paused = kept.map(|kept| kept.paused);
    let model = paused.as_ref().map(Paused::model);
    let chosen = flags.choose_or(model.as_deref(), session, &runtime, threads, output)?;
    let mut talk = Talk {
        flags,
        session,
        config,
        mode,
        runtime,
        chosen,
        approvals: Approvals::new(output, session),
        places,
        paused,
        said,
        to_attach,
        named: Vec::new(),
        sum_up: false,
        typing: Typing::default(),
        draft: String::new(),
        lines: VecDeque::new(),
        failed: None,
        first,
    };
    // What cannot work is told before anybody has written anything.
    talk.agent()?;
    let mut input = talk.input(output);
    talk.greet(&input, output);
    let ended = talk.go_on(&mut input, threads, output)?;
    end_all(&talk.runtime, threads);
    Ok(ended)
}

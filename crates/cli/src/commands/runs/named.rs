//! Which run is meant.

use clap::Args;
use convoke::journal::{FindError, JournalError, Newest, Recorded, Scope, Store};
use convoke_core::{Cause, Event, RunId};

use crate::failure::Failure;
use crate::session::Session;
use crate::view::amounts;

/// What comes before the words: a run, or `--last`.
const LAST_HELP: &str =
    "`--last` means the run of this directory that an agent last worked on; then no ID is given";

/// No id is longer.
const LONGEST: usize = 100;

/// The run that is meant where none is named.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(in crate::commands) struct LastFlag {
    /// The run of this directory that was last worked on
    #[arg(long)]
    pub(in crate::commands) last: bool,
    /// With --last: the run of any directory
    #[arg(long, requires = "last")]
    pub(in crate::commands) all: bool,
}

impl LastFlag {
    /// Means the run of this directory that was last worked on.
    pub(in crate::commands) const HERE: Self = Self { last: true, all: false };

    /// Finds the run.
    fn find(self, store: &Store, session: &Session<'_>) -> Result<RunId, Failure> {
        let here = session.working_directory();
        let scope = if self.all { Scope::Everywhere } else { Scope::Directory(here) };
        let Newest { run, elsewhere } =
            store.newest(scope, None).map_err(|error| failure(&error))?;
        run.map(|run| run.run).ok_or_else(|| none_here(store, session, elsewhere))
    }
}

/// Says that no run works in this directory, and how to find those of others.
pub(in crate::commands) fn none_here(
    store: &Store,
    session: &Session<'_>,
    elsewhere: usize,
) -> Failure {
    if elsewhere == 0 {
        let place = store.root().display();
        return Failure::usage(format!("there are no runs in `{place}`"))
            .hint("`convoke run \"…\"` makes one");
    }
    let here = session.working_directory().display();
    let others = amounts::count(elsewhere as u64, "run");
    Failure::usage(format!("no run works in `{here}` (elsewhere: {others})"))
        .hint("`convoke runs list` shows the runs of all directories")
        .hint("`--last --all` means the newest of them")
}

/// Says which run is meant by these words, and returns the words that are left.
pub(in crate::commands) fn run<'w>(
    store: &Store,
    words: &'w [String],
    last: LastFlag,
    session: &Session<'_>,
) -> Result<(RunId, &'w [String]), Failure> {
    if last.last {
        return Ok((last.find(store, session)?, words));
    }
    let Some((id, rest)) = words.split_first() else {
        return Err(Failure::usage("the run is not named")
            .hint("`convoke runs list` shows all runs")
            .hint(LAST_HELP));
    };
    Ok((find(store, id)?, rest))
}

/// Says which run is meant where nothing can follow its id.
pub(in crate::commands) fn only(
    store: &Store,
    words: &[String],
    last: LastFlag,
    session: &Session<'_>,
) -> Result<RunId, Failure> {
    match run(store, words, last, session)? {
        (found, []) => Ok(found),
        (_, [word, ..]) => {
            Err(Failure::usage(format!("there is an ID beside --last: `{word}`")).hint(LAST_HELP))
        }
    }
}

/// A run that was read.
pub(super) struct Opened {
    pub(super) store: Store,
    pub(super) id: RunId,
    pub(super) recorded: Recorded,
}

impl Opened {
    /// Reads the run that these words mean.
    pub(super) fn of(
        session: &Session<'_>,
        words: &[String],
        last: LastFlag,
    ) -> Result<Self, Failure> {
        let store = session.existing_store()?;
        let id = only(&store, words, last, session)?;
        Self::read(store, id)
    }

    /// Reads the run that has this id, or this part of it.
    pub(super) fn named(session: &Session<'_>, id: &str) -> Result<Self, Failure> {
        let store = session.existing_store()?;
        let id = find(&store, id)?;
        Self::read(store, id)
    }

    fn read(store: Store, id: RunId) -> Result<Self, Failure> {
        let recorded = store.read(&id).map_err(|error| failure(&error))?;
        Ok(Self { store, id, recorded })
    }
}

/// Finds a run by its id, or by any part of it that no other has.
pub(in crate::commands) fn find(store: &Store, id: &str) -> Result<RunId, Failure> {
    let wrong =
        |message: String| Failure::usage(message).hint("`convoke runs list` shows all runs");
    match id.len() {
        0 => return Err(wrong("the ID is empty".to_owned())),
        1..=LONGEST => {}
        length => return Err(wrong(format!("no run has an ID of {length} bytes"))),
    }
    store.find(id).map_err(|error| match error {
        FindError::Journal(error) => failure(&error),
        error => of_an_agent(store, id).unwrap_or_else(|| wrong(error.to_string())),
    })
}

/// Says whose an id is that an agent has which a run called: what it did is part of that run.
fn of_an_agent(store: &Store, id: &str) -> Option<Failure> {
    called(store, id).map(|(root, _)| {
        Failure::usage(format!(
            "`{id}` is an agent that run `{root}` called, and no run of its own"
        ))
        .hint(format!("`convoke runs show {root} --tree` shows what it did"))
        .hint(format!("`convoke runs resume {root}` takes it up with its run"))
    })
}

/// Returns the run that called the agent of this id, and what it recorded.
pub(super) fn called(store: &Store, id: &str) -> Option<(RunId, Vec<Event>)> {
    let (root, _) = id.split_once('-')?;
    let root = store.find(root).ok()?;
    let events = store.read(&root).ok()?.events;
    events.iter().any(|event| event.run.as_str() == id).then_some((root, events))
}

/// Says what is wrong with a journal.
pub(in crate::commands) fn failure(error: &JournalError) -> Failure {
    let cause = match error {
        JournalError::NotFound { .. }
        | JournalError::InvalidId { .. }
        | JournalError::NoSuchEvent { .. } => Cause::Usage,
        _ => Cause::State,
    };
    let failure = Failure::new(cause, error.to_string());
    match std::error::Error::source(error) {
        Some(source) => failure.because(source),
        None => failure,
    }
}

//! A recorded run goes on, in the place and with the freedom it was started with.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use convoke::agent::{Journals, NotResumable, Paused, Reopened, Task};
use convoke::config::Config;
use convoke::journal::Store;
use convoke::tools::{ExecutorBuilder, SystemClock};
use convoke::{Origin, Runtime, Workspace};
use convoke_core::{Cause, Event, ExitCode, Mode, RunId, RunSettings, Status};

use super::super::agents;
use super::super::mcp::end_all;
use super::super::run::approve::Approvals;
use super::super::run::flags::AgentFlags;
use super::super::run::watch::{self, Watch};
use super::super::run::{Format, agent, attach, cannot_start, format_parser, with_output};
use super::super::workspace;
use super::consent::Comeback;
use super::named::LastFlag;
use crate::failure::{self, Failure};
use crate::output::Output;
use crate::session::Session;

/// How a run goes on.
#[derive(Debug, Args)]
pub(super) struct GoesOn {
    /// The run, or any part of its id that no other run has; then what it is to do
    #[arg(value_name = "ID] [MESSAGE", num_args = 0..=2)]
    pub(super) words: Vec<String>,
    #[command(flatten)]
    pub(super) last: LastFlag,
    /// Let it work in this directory from now on, if it belongs to another
    #[arg(long)]
    pub(super) here: bool,
    #[command(flatten)]
    pub(super) flags: AgentFlags,
    /// What to print
    #[arg(long, short, value_name = "FORMAT", default_value = "text", value_parser = format_parser())]
    pub(super) output: Format,
}

/// How a run goes on, and where.
struct Place {
    config: Config,
    mode: Mode,
    settings: RunSettings,
    workspace: Option<Workspace>,
}

/// Opens runs of a store.
pub(in crate::commands) fn journals(store: &Store) -> Journals {
    Journals::new(store.clone(), Arc::new(SystemClock))
}

impl GoesOn {
    /// Says what the run is to do, from the words after its id.
    pub(super) fn message(rest: &[String]) -> Result<Option<&str>, Failure> {
        match rest {
            [] => Ok(None),
            [message] if !message.trim().is_empty() => Ok(Some(message)),
            [_] => Err(Failure::usage("the message is empty")),
            [_, ..] => Err(Failure::usage("there is more than one message")
                .hint("`--last` is the run already; put the message in quotes")),
        }
    }

    /// Asks the user about a run that would act in another directory or more freely. Returns a session in the
    /// directory in which it works.
    pub(super) fn agree<'s>(
        &self,
        (id, events): (&RunId, &[Event]),
        command: &str,
        session: &Session<'s>,
        output: &Output,
    ) -> Result<Session<'s>, Failure> {
        let (mode, here) = (self.flags.mode, self.here);
        Comeback { id, events, mode, here, command }.agree(session, output)
    }

    /// Tells of a run that is done and gets nothing more to do: its answer, or its report, is printed once more.
    /// Returns its exit code; nothing, if the run is not done.
    pub(super) fn tell_again(&self, reopened: &Reopened, output: &mut Output) -> Option<ExitCode> {
        let outcome = reopened.paused.outcome()?;
        if outcome.cause != Cause::Goal {
            return None;
        }
        let mut view = self.output.view(&self.flags, output).kept(true);
        view.recall(&reopened.events);
        view.learn(reopened.paused.task().as_ref());
        view.finish(output);
        Some(outcome.cause.exit_code())
    }

    /// Works on a run that was opened, in the directory of the session.
    pub(super) fn work(
        &self,
        reopened: Reopened,
        message: Option<&str>,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        if self.flags.no_journal {
            return Err(Failure::usage("a run that is kept goes on being kept")
                .hint("leave out --no-journal"));
        }
        let Reopened { paused, events, .. } = reopened;
        let origin = Origin::of(&events);
        let task = self.task(message, session)?;
        let waits = paused.outcome().is_some_and(|outcome| outcome.status == Status::Parked);
        // A copy that gets a message does not ask what the original asked.
        let is_fork = paused.is_new_fork();
        if waits && task.is_some() && !is_fork && !output.is_quiet() {
            output
                .err
                .line("a question is open: it is asked first, and what you say is heard after it");
        }
        let mut config = session.load(output)?.config;
        if let Some(origin) = &origin {
            config.tools.enabled = origin.tools_within(config.tools.enabled.as_deref());
            config.policy.on_ask = origin.on_ask;
        }
        let settings = paused.settings();
        config.budget = (&settings.budget).into();
        self.flags.apply(&mut config);
        // The limits a run was started with hold, unless somebody says otherwise now.
        let settings = RunSettings {
            budget: config.budget.budget(),
            strategy: self.flags.strategy.unwrap_or(settings.strategy),
            ..settings
        };
        let mode = self.flags.mode.or(origin.map(|origin| origin.mode)).unwrap_or(Mode::Default);
        let threads = watch::threads()?;
        let own = workspace::reopen(&paused.id(), &events, session, &config, &threads, output)?;
        let place = Place { config, mode, settings, workspace: own.clone() };
        let reopened = (paused, events.as_slice());
        let ended = self.work_in(place, reopened, task, session, &threads, output);
        workspace::leave(own.as_ref(), &threads, output);
        threads.shutdown_timeout(Duration::from_millis(200));
        ended
    }

    fn work_in(
        &self,
        place: Place,
        (paused, events): (Paused, &[Event]),
        task: Option<Task>,
        session: &Session<'_>,
        threads: &tokio::runtime::Runtime,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let Place { config, mode, settings, workspace } = place;
        let runtime = self.flags.runtime(session, mode, config, None, workspace)?;
        Session::warn_of_programs(&runtime, output);
        session.warn_of_servers(&runtime, output);
        let model = paused.model();
        let chosen = self.flags.choose_or(Some(&model), session, &runtime, threads, output)?;
        let mut approvals = Approvals::new(output, session);
        let agent = match Origin::of(events).and_then(|origin| origin.agent) {
            None => agent(&runtime, &chosen, &approvals),
            Some(named) => {
                let found = agents::find(&named.name, &runtime)?;
                let model = Arc::clone(&chosen.model);
                let id = paused.id();
                let ask = |tools: ExecutorBuilder| tools.approver(approvals.approver());
                if let Some(message) = agents::changed(&named, &found) {
                    failure::warning(output, &message);
                }
                let made = runtime.acting_on_as(&found, model, &named, &id, ask);
                let made = threads.block_on(made);
                made.map_err(|error| agents::run::not_started(&error, &named.name))?.0
            }
        };
        let agent = agent.run_settings(settings.clone());
        let agent = with_output(agent, settings.output);
        let agent = agent.build().map_err(|error| cannot_start(&error))?;
        let run =
            agent.resume(paused, task).map_err(|error| cannot_go_on(&error, &runtime, session))?;
        let mut view = self.output.view(&self.flags, output).kept(true);
        view.recall(events);
        if let Some(warning) = runtime.entries_warning() {
            view.warn(&warning, output);
        }
        let watch = Watch::new(view, &mut approvals).replaying(chosen.replay);
        let watch = watch.kept_in(session.existing_store()?);
        let ended = watch.until_the_end(threads, run, output)?;
        end_all(&runtime, threads);
        Ok(ended)
    }

    fn task(&self, message: Option<&str>, session: &Session<'_>) -> Result<Option<Task>, Failure> {
        let Some(message) = message else {
            return match self.flags.file.first() {
                None => Ok(None),
                Some(_) => Err(Failure::usage("there is a file, but nothing is said about it")),
            };
        };
        let mut task = Task::new(message);
        for file in &self.flags.file {
            task = task.attach(attach::read(&session.absolute(file), file)?);
        }
        Ok(Some(task))
    }
}

/// Says no to a run of which nothing was recorded.
pub(in crate::commands) fn refuse_never_started(
    run: &RunId,
    events: &[Event],
) -> Result<(), Failure> {
    if !events.is_empty() {
        return Ok(());
    }
    let message = format!("run `{run}` never started: its process was lost before anything began");
    let hint = format!("start it again; `convoke runs rm {run}` removes what is left");
    Err(Failure::new(Cause::State, message).hint(hint))
}

/// Says no where there is nobody who could go on: the calls that others made of a server.
pub(in crate::commands) fn refuse_served(run: &RunId, events: &[Event]) -> Result<(), Failure> {
    if Origin::of(events).is_none_or(|origin| !origin.served) {
        return Ok(());
    }
    let message =
        format!("run `{run}` is what clients of `convoke mcp serve` called, and no agent's");
    Err(Failure::usage(message).hint(format!("`convoke runs audit {run}` shows what was done")))
}

fn cannot_go_on(error: &NotResumable, runtime: &Runtime, session: &Session<'_>) -> Failure {
    let failure = Failure::new(Cause::Usage, error.to_string());
    match error {
        NotResumable::Absent { run, agent, .. } => {
            let failure = Failure::configuration(error.to_string());
            let failure = match runtime.known_agent(agent) {
                Err(unknown) => {
                    let why = agents::explained(&unknown, runtime, session);
                    let failure = failure.causes([why.to_string()]);
                    why.hints().fold(failure, Failure::hint)
                }
                Ok(_) => failure.hint(format!("`convoke agents check {agent}` says what is wrong")),
            };
            failure.hint(format!(
                "put it back as it was and resume again; `convoke runs resume {run} \"…\"`, with a message, \
                 goes on without it"
            ))
        }
        NotResumable::Done(run) => {
            failure.hint(format!("`convoke runs resume {run} \"…\"` gives it more to do"))
        }
        _ => failure,
    }
}

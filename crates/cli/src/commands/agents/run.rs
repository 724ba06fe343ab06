//! `convoke agents run`: an agent works by itself, without a main agent above it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use convoke::agent::registry::Registered;
use convoke::agent::{AgentTool, DirectError};
use convoke_core::{ExitCode, Mode};
use convoke_tool::Tool;
use serde_json::{Map, Value};

use super::super::mcp::end_all;
use super::super::run::approve::Approvals;
use super::super::run::flags::{AgentFlags, WorkspaceFlag};
use super::super::run::place::{Place, work_in_place};
use super::super::run::prompt::{self, Prompt};
use super::super::run::watch::Watch;
use super::super::run::{Format, attach, cannot_start, format_parser};
use super::super::tools::call::arguments;
use super::explained;
use crate::cli::key_and_value;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

const AFTER_HELP: &str = "\
The agent has the policy, the place and the limits of its definition, as far as the main agent has them. Its tools \
are those that it asks for, also ones that the main agent is not offered: all that the configuration lets be \
called (tools.enabled, tools.exclude). One that asks for none has those of the main agent. --model goes before \
its own model. Its run is kept and can be resumed as any other.

A prompt is its one text; where that is named, or others are, a prompt is handed over beside them. \
`convoke agents show` lists the inputs of an agent.

Examples:
  convoke agents run codebase_investigator \"How are secrets kept out of the journal?\"
  convoke agents run test_generator --input target=src/money.rs --input framework=proptest
  convoke agents run reviewer --inputs '{\"change\": \"HEAD~1\"}' --output json
  git diff | convoke agents run reviewer -

Exit codes:
  as those of `convoke run`";

/// Let an agent work by itself
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Run {
    /// The agent
    name: String,
    /// What to do; - reads it from standard input
    #[arg(value_name = "PROMPT | -")]
    prompt: Option<String>,
    /// One input, as target=src/lib.rs; @FILE is the text of a file; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = key_and_value)]
    input: Vec<(String, String)>,
    /// The inputs as a JSON object
    #[arg(long, value_name = "JSON")]
    inputs: Option<String>,
    #[command(flatten)]
    flags: AgentFlags,
    #[command(flatten)]
    workspace: WorkspaceFlag,
    /// What to print
    #[arg(long, short, value_name = "FORMAT", default_value = "text", value_parser = format_parser())]
    output: Format,
}

impl Run {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let ended = self.work(session, output);
        self.output.tell(&ended, output);
        ended
    }

    fn work(&self, session: &Session<'_>, output: &mut Output) -> Result<ExitCode, Failure> {
        let prompt = self.prompt();
        let prompt = prompt.map_err(|failure| self.with_its_inputs(failure, session, output))?;
        work_in_place(&self.flags, &self.workspace, session, output, |place, threads, output| {
            self.work_in(place, prompt, session, threads, output)
        })
    }

    fn work_in(
        &self,
        place: Place,
        prompt: Option<Prompt>,
        session: &Session<'_>,
        threads: &tokio::runtime::Runtime,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let Place { config, store, workspace, id } = place;
        let mode = self.flags.mode.unwrap_or(Mode::Default);
        let runtime = self.flags.runtime(session, mode, config, store, workspace)?;
        Session::warn_of_programs(&runtime, output);
        session.warn_of_servers(&runtime, output);
        let agent = runtime.find_agent(&self.name);
        let agent = agent.map_err(|error| explained(&error, &runtime, session))?;
        Session::warn_of_agent(&self.name, &runtime, output);
        let (inputs, more) = self.inputs(&agent, prompt.as_ref(), session)?;
        let usual = agent.model.model.as_deref();
        let chosen = self.flags.choose_or(usual, session, &runtime, threads, output)?;
        let mut approvals = Approvals::new(output, session);
        let made = runtime.acting_as(&agent, Arc::clone(&chosen.model), &inputs, &id, |tools| {
            tools.approver(approvals.approver())
        });
        let made = threads.block_on(made);
        let (builder, mut task) = made.map_err(|error| not_started(&error, &self.name))?;
        if let Some(more) = more {
            task = task.and(&more);
        }
        let builder = builder.build().map_err(|error| cannot_start(&error))?;
        let input = prompt.and_then(|prompt| prompt.input);
        let task = attach::to(task, input, &self.flags.file, session)?;
        let mut view = self.output.view(&self.flags, output).kept(runtime.journals().is_some());
        if let Some(warning) = runtime.entries_warning() {
            view.warn(&warning, output);
        }
        let watch = Watch::new(view, &mut approvals).replaying(chosen.replay);
        let ended = watch.until_the_end(threads, builder.start_as(id, task), output)?;
        end_all(&runtime, threads);
        Ok(ended)
    }

    /// Reads what it is to do. Where inputs are named, there need not be a text.
    fn prompt(&self) -> Result<Option<Prompt>, Failure> {
        if self.prompt.is_none() && (self.inputs.is_some() || !self.input.is_empty()) {
            return Ok(None);
        }
        prompt::read(self.prompt.as_deref()).map(Some)
    }

    /// Says which inputs the agent wants, to whoever gave it nothing.
    fn with_its_inputs(
        &self,
        failure: Failure,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Failure {
        let Ok(loaded) = session.load(output) else { return failure };
        let Ok(runtime) = session.runtime(loaded.config) else { return failure };
        let Ok(agent) = runtime.find_agent(&self.name) else { return failure };
        match agent.input.single_text() {
            Some(_) => failure,
            None => failure.hint(say_by_name(&agent)),
        }
    }

    /// Returns the inputs, and what is said beside them.
    fn inputs(
        &self,
        agent: &Arc<Registered>,
        prompt: Option<&Prompt>,
        session: &Session<'_>,
    ) -> Result<(Map<String, Value>, Option<String>), Failure> {
        let named = match &self.inputs {
            Some(text) => arguments::object(text, "inputs", "--input")?,
            None => Map::new(),
        };
        let tool = AgentTool::new(Arc::clone(agent));
        let find = |path: PathBuf| session.absolute(&path);
        let named = arguments::combine(named, &self.input, Some(tool.spec()), find)?;
        let named = named.as_object().cloned().unwrap_or_default();
        let text = prompt.map(|prompt| prompt.words.clone());
        let has_other_inputs =
            agent.input.single_text().is_none() && !agent.input.names().is_empty();
        if text.is_some() && named.is_empty() && has_other_inputs {
            let message = format!("`{}` takes no plain prompt", agent.name);
            return Err(Failure::usage(message).hint(say_by_name(agent)));
        }
        let made = agent.inputs_and_more(text, named);
        made.map_err(|error| not_started(&error, &agent.name))
    }
}

fn say_by_name(agent: &Registered) -> String {
    let optional = |required| if required { "" } else { " (optional)" };
    let names = agent.input.names().into_iter();
    let names: Vec<String> =
        names.map(|(name, required)| format!("{name}{}", optional(required))).collect();
    format!("say it as --input NAME=VALUE; its inputs are {}", names.join(", "))
}

/// Says why an agent cannot work by itself.
pub(in crate::commands) fn not_started(error: &DirectError, agent: &str) -> Failure {
    match error {
        DirectError::Inputs(_) => Failure::usage(error.to_string())
            .hint(format!("`convoke agents show {agent}` says what goes in")),
        _ => Failure::configuration(error.to_string()),
    }
}

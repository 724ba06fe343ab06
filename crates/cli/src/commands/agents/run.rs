//! `convoke agents run`: an agent works by itself, without a main agent above it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use convoke::agent::registry::Registered;
use convoke::agent::{AgentTool, DirectError};
use convoke_core::{ExitCode, Mode};
use convoke_tool::Tool;
use serde_json::{Map, Value};

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

A prompt is its one text. Other inputs are named: `convoke agents show NAME` lists them.

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
        let prompt = self.prompt()?;
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
        let inputs = self.inputs(&agent, prompt.as_ref(), session)?;
        let usual = agent.model.model.as_deref();
        let chosen = self.flags.choose_or(usual, session, &runtime, threads, output)?;
        let mut approvals = Approvals::new(output, session);
        let made = runtime.acting_as(&agent, Arc::clone(&chosen.model), &inputs, &id, |tools| {
            tools.approver(approvals.approver())
        });
        let (builder, task) = threads.block_on(made).map_err(|error| not_started(&error))?;
        let builder = builder.build().map_err(|error| cannot_start(&error))?;
        let input = prompt.and_then(|prompt| prompt.input);
        let task = attach::to(task, input, &self.flags.file, session)?;
        let view = self.output.view(&self.flags, output).kept(runtime.journals().is_some());
        let watch = Watch::new(view, &mut approvals).replaying(chosen.replay);
        watch.until_the_end(threads, builder.start_as(id, task), output)
    }

    /// Reads what it is to do. Where inputs are named, there need not be a text.
    fn prompt(&self) -> Result<Option<Prompt>, Failure> {
        if self.prompt.is_none() && (self.inputs.is_some() || !self.input.is_empty()) {
            return Ok(None);
        }
        prompt::read(self.prompt.as_deref()).map(Some)
    }

    fn inputs(
        &self,
        agent: &Arc<Registered>,
        prompt: Option<&Prompt>,
        session: &Session<'_>,
    ) -> Result<Map<String, Value>, Failure> {
        let named = match &self.inputs {
            Some(text) => arguments::from_json(text)?,
            None => Map::new(),
        };
        let tool = AgentTool::new(Arc::clone(agent));
        let find = |path: PathBuf| session.absolute(&path);
        let named = arguments::combine(named, &self.input, Some(tool.spec()), find)?;
        let named = named.as_object().cloned().unwrap_or_default();
        let text = prompt.map(|prompt| prompt.words.as_str());
        if text.is_some() && agent.input.single_text().is_none() {
            let names: Vec<String> =
                agent.input.names().into_iter().map(|(name, _)| name).collect();
            return Err(Failure::usage(format!("`{}` takes no plain prompt", agent.name)).hint(
                format!("say it as --input NAME=VALUE; its inputs are {}", names.join(", ")),
            ));
        }
        Ok(agent.inputs_of(text, named))
    }
}

/// Says why an agent cannot work by itself.
pub(in crate::commands) fn not_started(error: &DirectError) -> Failure {
    match error {
        DirectError::Inputs(_) => {
            Failure::usage(error.to_string()).hint("`convoke agents show NAME` says what goes in")
        }
        _ => Failure::configuration(error.to_string()),
    }
}

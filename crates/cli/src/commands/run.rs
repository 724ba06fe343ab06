//! `convoke run`: a task goes in, a model and tools work on it, an answer comes out.

pub(super) mod approve;
pub(super) mod attach;
pub(super) mod choose;
pub(super) mod flags;
mod overrides;
pub(super) mod place;
pub(super) mod prompt;
pub(super) mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use convoke::Runtime;
use convoke::agent::{AgentBuilder, AgentSetupError, OutputSpec, Task};
use convoke_core::{ExitCode, Mode};

use self::approve::Approvals;
use self::choose::Chosen;
use self::flags::{AgentFlags, WorkspaceFlag};
use self::place::{Place, work_in_place};
use self::watch::Watch;
use super::mcp::end_all;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::session::Session;
use crate::view::View;

const AFTER_HELP: &str = "\
The model is --model, or model.default, or a model of the first provider whose key is in the \
environment (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY), or one of a server on this machine \
(Ollama, llama.cpp, LM Studio): the one that was fetched last of those that can talk.

On a terminal, you see what happens while it happens, and are asked before anything is changed, run \
or fetched. Elsewhere, standard output is the answer and nothing else, and what would have to be asked \
about is refused; --mode auto_edit or full allows it. What a run said that gave no answer is shown on \
standard error.

With --workspace worktree or copy it works with files of its own, and yours stay as they are: you are told at \
the end what it changed, `convoke runs diff` shows it, and `convoke runs apply` takes it over. A worktree holds \
your changes that are not committed, and new files that are not ignored. With readonly it changes nothing.

--output json prints one report: how the run ended and why, the answer, what was used and done. \
--output stream-json prints every event while it happens, and that report as the last line, with \
\"type\": \"report\". `convoke config schema --all` has the schemas of both.

Examples:
  convoke run \"Which tests are slow, and why?\"
  convoke run --mode auto_edit \"Fix the typo in README.md\"
  git diff | convoke run --mode plan -
  convoke run --model ollama/qwen3 --max-turns 10 --max-cost 0.50 \"…\"
  convoke run --file screen.png \"What is wrong in this picture?\"
  convoke run --workspace worktree --mode full \"Try to update all dependencies\"
  convoke run --schema report.schema.json --output json \"List the public types\"
  convoke run --output stream-json \"…\" | jq -r .type
  convoke run --timeout 1h30m --turn-timeout 10m --max-tool-calls 100 \"…\"

Exit codes:
  0 done, 1 failed, 2 called wrongly, 3 not allowed, 4 a budget or limit was reached,
  5 stuck, 6 the model did not answer, 7 configuration wrong, 8 parked until somebody
  answers, 9 the run cannot be kept, 130 interrupted, 143 terminated";

/// Work on a task
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Run {
    /// What to do; - or nothing reads it from standard input. What else is piped in is shown to the model
    #[arg(value_name = "PROMPT | -")]
    prompt: Option<String>,
    #[command(flatten)]
    flags: AgentFlags,
    #[command(flatten)]
    workspace: WorkspaceFlag,
    /// What to print
    #[arg(long, short, value_name = "FORMAT", default_value = "text", value_parser = format_parser())]
    output: Format,
    /// Want an answer that fits this JSON Schema
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

/// What is written to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
    StreamJson,
}

impl Format {
    /// Shows a run in this form.
    pub(super) fn view(self, flags: &AgentFlags, output: &Output) -> View {
        let detail = flags.detail(output);
        match self {
            Self::Text => View::text(output, detail),
            Self::Json => View::json(output, detail),
            Self::StreamJson => View::stream_json(output),
        }
    }

    /// Tells a program that reads the output of an end that no view has told of: also of a run that
    /// never began.
    pub(super) fn tell(self, ended: &Result<ExitCode, Failure>, output: &mut Output) {
        match (ended, self) {
            (Err(failure), Self::Json) => output.json(&failure.report()),
            (Err(failure), Self::StreamJson) => output.out.line(failure.report()),
            _ => {}
        }
    }
}

impl Run {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let ended = self.work(session, output);
        self.output.tell(&ended, output);
        ended
    }

    fn work(&self, session: &Session<'_>, output: &mut Output) -> Result<ExitCode, Failure> {
        let task = self.task(session)?;
        let output_spec = self.output_spec(session)?;
        work_in_place(&self.flags, &self.workspace, session, output, |place, threads, output| {
            self.work_in(place, task, output_spec, session, threads, output)
        })
    }

    fn work_in(
        &self,
        place: Place,
        task: Task,
        output_spec: Option<OutputSpec>,
        session: &Session<'_>,
        threads: &tokio::runtime::Runtime,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let Place { config, store, workspace, id } = place;
        let mode = self.flags.mode.unwrap_or(Mode::Default);
        let runtime = self.flags.runtime(session, mode, config, store, workspace)?;
        Session::warn_of_programs(&runtime, output);
        session.warn_of_servers(&runtime, output);
        let chosen = self.flags.choose(session, &runtime, threads, output)?;
        let mut approvals = Approvals::new(output, session);
        let agent = with_output(agent(&runtime, &chosen, &approvals), output_spec);
        let agent = agent.build().map_err(|error| cannot_start(&error))?;
        let is_kept = runtime.journals().is_some();
        let mut view = self.output.view(&self.flags, output).kept(is_kept);
        let warnings = runtime.surroundings().warnings().into_iter();
        for warning in warnings.chain(runtime.entries_warning()).chain(agents(&runtime)) {
            view.warn(&warning, output);
        }
        let watch = Watch::new(view, &mut approvals).replaying(chosen.replay);
        let ended = watch.until_the_end(threads, agent.start_as(id, task), output)?;
        end_all(&runtime, threads);
        Ok(ended)
    }

    fn task(&self, session: &Session<'_>) -> Result<Task, Failure> {
        let prompt = prompt::read(self.prompt.as_deref())?;
        attach::to(Task::new(prompt.words), prompt.input, &self.flags.file, session)
    }

    fn output_spec(&self, session: &Session<'_>) -> Result<Option<OutputSpec>, Failure> {
        let Some(path) = &self.schema else { return Ok(None) };
        let shown = path.display();
        let text = files::read(&session.absolute(path)).map_err(|error| {
            Failure::usage(format!("the schema `{shown}` cannot be read")).because(&error)
        })?;
        let schema = serde_json::from_str(&text).map_err(|error| {
            Failure::usage(format!("the schema `{shown}` is not JSON")).because(&error)
        })?;
        let description = "The answer to the task.".to_owned();
        Ok(Some(OutputSpec { name: "result".to_owned(), description, schema }))
    }
}

/// Returns what is wrong with agents, where the run could call some.
fn agents(runtime: &Runtime) -> Vec<String> {
    if runtime.calls_agents() { runtime.agent_warnings_in_short() } else { Vec::new() }
}

/// Starts an agent that asks the person.
pub(super) fn agent(runtime: &Runtime, chosen: &Chosen, approvals: &Approvals) -> AgentBuilder {
    runtime.main_agent_with(Arc::clone(&chosen.model), |tools| tools.approver(approvals.approver()))
}

pub(super) fn with_output(agent: AgentBuilder, output: Option<OutputSpec>) -> AgentBuilder {
    match output {
        Some(output) => agent.output(output),
        None => agent,
    }
}

/// Says why an agent cannot be made.
pub(super) fn cannot_start(error: &AgentSetupError) -> Failure {
    match error {
        AgentSetupError::UnknownPrice { model, .. } => Failure::configuration(error.to_string())
            .hint(format!("say what it costs with model.facts.\"{model}\".price")),
        _ => Failure::usage(error.to_string()),
    }
}

pub(super) fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["text", "json", "stream-json"]).map(|word| match word.as_str() {
        "json" => Format::Json,
        "stream-json" => Format::StreamJson,
        _ => Format::Text,
    })
}

//! `convoke run`: a task goes in, a model and tools work on it, an answer comes out.

pub(super) mod approve;
pub(super) mod attach;
pub(super) mod choose;
pub(super) mod flags;
mod overrides;
mod prompt;
pub(super) mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use convoke::Runtime;
use convoke::agent::{AgentBuilder, AgentSetupError, OutputSpec, Task};
use convoke_core::{ExitCode, Part};

use self::approve::Approvals;
use self::choose::Chosen;
use self::flags::AgentFlags;
use self::watch::Watch;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::session::Session;
use crate::view::View;

const AFTER_HELP: &str = "\
The model is --model, or model.default, or a model of the first provider whose key is in the \
environment (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY), or one of a server on this machine \
(Ollama, llama.cpp, LM Studio).

On a terminal, you see what happens while it happens, and are asked before anything is changed, run \
or fetched. Elsewhere, standard output is the answer and nothing else, and what would have to be asked \
about is refused; --mode auto_edit or full allows it.

Examples:
  convoke run \"Which tests are slow, and why?\"
  convoke run --mode auto_edit \"Fix the typo in README.md\"
  git diff | convoke run --mode plan -
  convoke run --model ollama/qwen3 --max-turns 10 --max-cost 0.50 \"…\"
  convoke run --file screen.png \"What is wrong in this picture?\"
  convoke run --schema report.schema.json --output json \"List the public types\"
  convoke run --output stream-json \"…\" | jq -r .type

Exit codes:
  0 done, 1 failed, 2 called wrongly, 3 not allowed, 4 a budget or limit was reached,
  5 stuck, 6 the model did not answer, 7 configuration wrong, 130 interrupted, 143 terminated";

/// Work on a task
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Run {
    /// What to do; - or nothing reads it from standard input. What else is piped in is shown to the model
    #[arg(value_name = "PROMPT | -")]
    prompt: Option<String>,
    #[command(flatten)]
    flags: AgentFlags,
    /// What to print
    #[arg(long, short, value_name = "FORMAT", default_value = "text", value_parser = format_parser())]
    output: Format,
    /// Want an answer that fits this JSON Schema
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

/// What is written to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Text,
    Json,
    StreamJson,
}

impl Run {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let ended = self.work(session, output);
        // A program that reads the output learns of every end, also of a run that never began.
        match (&ended, self.output) {
            (Err(failure), Format::Json) => output.json(&failure.report()),
            (Err(failure), Format::StreamJson) => output.out.line(failure.report()),
            _ => {}
        }
        ended
    }

    fn work(&self, session: &Session<'_>, output: &mut Output) -> Result<ExitCode, Failure> {
        let task = self.task(session)?;
        let output_spec = self.output_spec(session)?;
        let mut config = session.load(output)?.config;
        self.flags.apply(&mut config);
        let threads = watch::threads()?;
        let runtime = self.flags.runtime(session, self.flags.mode, config)?;
        let chosen = self.flags.choose(session, &runtime, &threads, output)?;
        let mut approvals = Approvals::new(output);
        let agent = with_output(agent(&runtime, &chosen, &approvals), output_spec);
        let agent = agent.build().map_err(|error| cannot_start(&error))?;
        let watch = Watch::new(self.view(output), &mut approvals);
        let ended = watch.until_the_end(&threads, agent.start(task), output);
        // What does not end by itself, reading from a terminal for instance, ends with the process.
        threads.shutdown_timeout(Duration::from_millis(200));
        ended
    }

    fn task(&self, session: &Session<'_>) -> Result<Task, Failure> {
        let prompt = prompt::read(self.prompt.as_deref())?;
        let mut task = Task::new(prompt.words);
        if let Some(input) = prompt.input {
            task = task.attach(Part::text(format!("Standard input:\n{input}")));
        }
        for file in &self.flags.file {
            task = task.attach(attach::read(&session.absolute(file), file)?);
        }
        Ok(task)
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

    fn view(&self, output: &Output) -> View {
        let detail = self.flags.detail(output);
        match self.output {
            Format::Text => View::text(output, detail),
            Format::Json => View::json(output, detail),
            Format::StreamJson => View::stream_json(output),
        }
    }
}

/// Starts an agent that asks the person.
pub(super) fn agent(runtime: &Runtime, chosen: &Chosen, approvals: &Approvals) -> AgentBuilder {
    runtime.main_agent_with(Arc::clone(&chosen.model), |tools| tools.approver(approvals.approver()))
}

fn with_output(agent: AgentBuilder, output: Option<OutputSpec>) -> AgentBuilder {
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

fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["text", "json", "stream-json"]).map(|word| match word.as_str() {
        "json" => Format::Json,
        "stream-json" => Format::StreamJson,
        _ => Format::Text,
    })
}

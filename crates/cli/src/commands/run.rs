//! `convoke run`: a task goes in, a model and tools work on it, an answer comes out.

pub(super) mod approve;
mod attach;
pub(super) mod choose;
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
use convoke::config::{Config, Timeout};
use convoke_core::{ExitCode, Mode, Money, Part, Strategy};

use self::approve::Approvals;
use self::choose::Chosen;
use self::watch::Watch;
use crate::duration;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use crate::session::Session;
use crate::view::{Detail, View};

const AFTER_HELP: &str = "\
The model is --model, or model.default, or a model of the first provider whose key is in the \
environment (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY), or one of a server on this machine \
(Ollama, llama.cpp, LM Studio): the one that was fetched last of those that can talk.

On a terminal, you see what happens while it happens, and are asked before anything is changed, run \
or fetched. Elsewhere, standard output is the answer and nothing else, and what would have to be asked \
about is refused; --mode auto_edit or full allows it. What a run said that gave no answer is shown on \
standard error.

--output json prints one report: how the run ended and why, the answer, what was used and done. \
--output stream-json prints every event while it happens, and that report as the last line, with \
\"type\": \"report\". `convoke config schema --all` has the schemas of both.

Examples:
  convoke run \"Which tests are slow, and why?\"
  convoke run --mode auto_edit \"Fix the typo in README.md\"
  git diff | convoke run --mode plan -
  convoke run --model ollama/qwen3 --max-turns 10 --max-cost 0.50 \"…\"
  convoke run --file screen.png \"What is wrong in this picture?\"
  convoke run --schema report.schema.json --output json \"List the public types\"
  convoke run --output stream-json \"…\" | jq -r .type
  convoke run --timeout 1h30m --turn-timeout 10m --max-tool-calls 100 \"…\"

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
    /// The model, as provider/model or an alias
    #[arg(long, short, value_name = "NAME")]
    model: Option<String>,
    #[command(flatten)]
    limits: LimitFlags,
    /// The tools it may use, with * for any text; separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "no_tools")]
    tools: Option<Vec<String>>,
    /// Give it no tools
    #[arg(long)]
    no_tools: bool,
    /// How freely it may act
    #[arg(long, value_name = "MODE", default_value = "default", value_parser = mode_parser())]
    mode: Mode,
    /// Whether it starts at once or makes a plan first
    #[arg(long, value_name = "STRATEGY", value_parser = strategy_parser())]
    strategy: Option<Strategy>,
    /// Show it a file: text, an image or a PDF; may be repeated
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// What to print
    #[arg(long, short, value_name = "FORMAT", default_value = "text", value_parser = format_parser())]
    output: Format,
    /// Want an answer that fits this JSON Schema
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Keep the model's answers in this file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Take the model's answers from this file; a request that differs fails, an answer left over is told
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    replay: Option<PathBuf>,
    /// Show thoughts, arguments and decisions too
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
}

/// The limits of a run.
#[derive(Debug, Args)]
struct LimitFlags {
    /// How many times the model may answer; the last time is kept for the end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_turns: Option<u32>,
    /// How much it may cost, in US dollars
    #[arg(long, value_name = "DOLLARS", value_parser = money)]
    max_cost: Option<Money>,
    /// How many tokens it may use, sent and received
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// How many calls of tools it may make
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tool_calls: Option<u32>,
    /// How long it may take, as 30s, 5m or 1h30m, without waiting for you
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Timeout>,
    /// How long one answer of the model may take
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    turn_timeout: Option<Timeout>,
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
        self.apply(&mut config);
        let threads = watch::threads()?;
        let runtime =
            session.runtime_in(self.mode, config).map_err(|failure| match self.tools {
                Some(_) => failure.into_usage(),
                None => failure,
            })?;
        let chosen = self.choose(session, &runtime, &threads, output)?;
        let approvals = Approvals::new(output, session.environment());
        let agent = with_output(agent(&runtime, &chosen, &approvals), output_spec);
        let agent = agent.build().map_err(|error| cannot_start(&error))?;
        let mut view = self.view(output);
        for warning in runtime.surroundings().warnings() {
            view.warn(&warning, output);
        }
        let watch = Watch::new(view, approvals).replaying(chosen.replay);
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
        for file in &self.file {
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
        let detail = match self.verbose {
            true => Detail::Verbose,
            false if output.is_quiet() => Detail::Quiet,
            false => Detail::Usual,
        };
        match self.output {
            Format::Text => View::text(output, detail),
            Format::Json => View::json(output, detail),
            Format::StreamJson => View::stream_json(output),
        }
    }

    fn apply(&self, config: &mut Config) {
        overrides::apply(self, config);
    }

    fn choose(
        &self,
        session: &Session<'_>,
        runtime: &Runtime,
        threads: &tokio::runtime::Runtime,
        output: &Output,
    ) -> Result<Chosen, Failure> {
        let record = self.record.as_ref().map(|path| session.absolute(path));
        let placeholders = choose::placeholders(runtime);
        if let Some(path) = &self.replay {
            return choose::replay(&session.absolute(path), placeholders);
        }
        let chosen = choose::model(self.model.as_deref(), runtime, threads, output)?;
        match record {
            Some(path) => choose::record(chosen, &path, placeholders),
            None => Ok(chosen),
        }
    }
}

fn agent(runtime: &Runtime, chosen: &Chosen, approvals: &Approvals) -> AgentBuilder {
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

fn mode_parser() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.iter().map(|mode| mode.as_str()))
        .try_map(|word| word.parse::<Mode>())
}

fn strategy_parser() -> impl TypedValueParser<Value = Strategy> {
    PossibleValuesParser::new(Strategy::ALL.iter().map(|strategy| strategy.as_str()))
        .try_map(|word| word.parse::<Strategy>())
}

fn money(text: &str) -> Result<Money, String> {
    let money: Money = text.parse().map_err(|_| "write dollars, as 0.50".to_owned())?;
    if money > Money::default() { Ok(money) } else { Err("it has to be more than 0".to_owned()) }
}

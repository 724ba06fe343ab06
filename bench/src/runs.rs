//! Whole runs beside a client written by hand, against one model server.
//!
//! The model asks for `read_file` in every turn but the last, each time for another file of 1 KB. Both
//! sides send the same instructions and the same tools, and keep connections open in the same way.

mod many;
mod memory;
mod request;
mod server;
mod start;
mod turns;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use convoke::Runtime;
use convoke::core::run::Budget;
use convoke::core::{Cause, Declaration, ModelFacts};
use convoke_agent::{AgentExecutor, RunReport, prompts};
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_model::{Model, Provider, ProviderModel, Transport, WireFormat};
use serde_json::json;

use crate::Result;
use crate::bare::{Bare, Setup};
use crate::table::Table;

pub(crate) use many::play;
pub(crate) use start::first_request;

/// What is asked. The model does not mind.
pub(crate) const PROMPT: &str = "Read the files one after the other and say when you are done.";
/// A key as long as a real one.
const KEY: &str = "sk-test-0123456789abcdef0123456789abcdef0123456789abcdef";
/// What the model asks `read_file` for.
const ARGUMENTS: &str = r#"{"path":"file_{turn}_{call}.txt"}"#;
/// How the model's last answer begins, so that nobody is fast by doing nothing.
pub(crate) const LAST_WORDS: &str = "Everything is done.";

/// What the commands are, and where they work.
pub(crate) struct World {
    convoke: PathBuf,
    directory: tempfile::TempDir,
}

impl World {
    /// Makes a directory with the files the model asks for, and the peer's instructions beside it.
    pub(crate) fn new(convoke: PathBuf) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let world = Self { convoke, directory };
        std::fs::create_dir(world.files())?;
        let text: String =
            "All work and no play makes a dull file.\n".chars().cycle().take(1024).collect();
        for (turn, call) in (0..50).flat_map(|turn| (0..8).map(move |call| (turn, call))) {
            std::fs::write(world.files().join(format!("file_{turn}_{call}.txt")), &text)?;
        }
        std::fs::write(world.setup_file(), serde_json::to_vec(&setup(&world.files())?)?)?;
        Ok(world)
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.directory.path().join("files")
    }

    fn setup_file(&self) -> PathBuf {
        self.directory.path().join("setup.json")
    }

    /// Returns `convoke run`, with nothing around it that could change what it does.
    pub(crate) fn convoke_run(&self, base_url: &str, turns: usize) -> Command {
        let mut command = Command::new(&self.convoke);
        command.args(["run", "--model", "openai-chat/m", "--mode", "full", "--output", "text"]);
        command.args(["--max-turns", &(turns + 1).to_string(), PROMPT]);
        self.alone(command, base_url)
    }

    /// Returns the client written by hand, as a command.
    fn bare_run(&self, base_url: &str) -> Result<Command> {
        let mut command = Command::new(beside_this("bare-client")?);
        command.arg(self.setup_file()).arg(PROMPT);
        Ok(self.alone(command, base_url))
    }

    fn alone(&self, mut command: Command, base_url: &str) -> Command {
        let home = self.directory.path();
        command
            .current_dir(self.files())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", home)
            .env("OPENAI_BASE_URL", base_url)
            .env("OPENAI_API_KEY", KEY)
            // A store with one certificate: neither side is slowed down by the system's.
            .env("SSL_CERT_FILE", home.join("ca.pem"))
            .stdin(Stdio::null());
        command
    }
}

/// Measures everything about runs.
pub(crate) fn measure(table: &mut Table, convoke: &Path) -> Result<()> {
    let world = World::new(convoke.to_owned())?;
    start::measure(table, &world)?;
    turns::measure(table, &world)?;
    memory::measure(table, &world)?;
    many::measure(table, &world)?;
    request::measure(table, &world)
}

/// Returns another program of this package or of the test kit.
fn beside_this(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.exists() { Ok(path) } else { Err(format!("{} was not built", path.display()).into()) }
}

/// Returns what the client written by hand says in every request: the same as ours.
fn setup(files: &Path) -> Result<Setup> {
    // Whoever asks may be in the middle of something that cannot be held up.
    let declared = std::thread::scope(|scope| scope.spawn(|| declared(files)).join());
    let declarations = declared.map_err(|_| "the tools could not be found out")??;
    let tools = declarations.iter().map(|tool| {
        let (name, description, parameters) = (&tool.name, &tool.description, &tool.parameters);
        let function =
            json!({ "name": name, "description": description, "parameters": parameters });
        json!({ "type": "function", "function": function })
    });
    Ok(Setup { system: prompts::SYSTEM.trim_end().to_owned(), tools: tools.collect() })
}

/// Returns what a model is told about the tools of the main agent.
fn declared(files: &Path) -> std::result::Result<Vec<Declaration>, String> {
    let runtime = Runtime::builder(files).build().map_err(|error| error.to_string())?;
    let model = Arc::new(ScriptedModel::new([Turn::text("ok")]));
    let agent = runtime.main_agent(model.clone()).build().map_err(|error| error.to_string())?;
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let threads = threads.map_err(|error| error.to_string())?;
    threads.block_on(agent.start(PROMPT).finish());
    Ok(model.requests().into_iter().next().map(|first| first.tools).unwrap_or_default())
}

/// Makes the client written by hand.
fn bare(base_url: &str, files: &Path) -> Result<Bare> {
    Bare::new(base_url, KEY, setup(files)?, files.to_owned())
        .map_err(|error| error.to_string().into())
}

/// Makes our agent for the same server.
fn agent(base_url: &str, files: &Path) -> Result<AgentExecutor> {
    let provider = Provider::new("openai-chat", WireFormat::OpenAiChat, base_url).key(KEY);
    let model = ProviderModel::new("m", ModelFacts::default(), provider, Transport::default())?;
    agent_of(model, files)
}

/// Makes our agent with any model, and room for as many turns as anybody measures.
fn agent_of(model: impl Model + 'static, files: &Path) -> Result<AgentExecutor> {
    let runtime = Runtime::builder(files).build()?;
    let tools = runtime.executor().view(runtime.offered().clone());
    let budget = Budget { turns: 1_000, ..Budget::default() };
    Ok(AgentExecutor::builder(model, tools).budget(budget).team(runtime.team().clone()).build()?)
}

/// Returns what a run of ours answered, or why it did not.
pub(crate) fn answer_of(report: &RunReport) -> Result<String> {
    let words = report.text().unwrap_or_default();
    if report.outcome.cause == Cause::Goal {
        expected(words)
    } else {
        Err(format!("{:?}", report.outcome).into())
    }
}

/// Checks that the model came to its end.
fn expected(answer: String) -> Result<String> {
    if answer.starts_with(LAST_WORDS) {
        Ok(answer)
    } else {
        Err(format!("unexpected answer: {answer}").into())
    }
}

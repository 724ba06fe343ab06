//! What an agent is: its task, its model, its tools, what goes in and what comes out.
//!
//! A definition is static: plain data that a file, a program or the runtime itself writes down. It can do
//! nothing. Whoever wants it to act wraps it as a tool, or starts it as a run.
//!
//! `T` is what comes out, where a program wants it as a type of its own. Wherever definitions are kept
//! side by side they are [`untyped`](AgentDefinition::untyped), and what comes out is JSON.

mod commands;
mod input;
mod tools;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use convoke_core::policy::RuleSpec;
use convoke_core::run::{OnStuck, OutputSpec};
use convoke_core::{Message, Mode, Money, WorkspaceKind};
use convoke_model::Settings;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use commands::Commands;
pub use input::{Input, InputConfig, InputType, UnknownInputType};
pub use tools::{ToolChoice, ToolConfig};

/// An agent, as it is written down.
#[derive(Debug)]
pub struct AgentDefinition<T = Value> {
    /// Its name: letters, digits, `_` and `-`, unique in a registry. Models call it by this name.
    pub name: String,
    /// Its name for people; the name itself where absent.
    pub display_name: Option<String>,
    /// What it is good for, for the model that decides whom to ask.
    pub description: String,
    /// What it is told.
    pub prompt: PromptConfig,
    /// The model that works for it.
    pub model: ModelConfig,
    /// How it runs and what it may use.
    pub run: RunConfig,
    /// The tools it may call.
    pub tools: ToolConfig,
    /// What it may do with them: never more than whoever calls it.
    pub policy: PolicyConfig,
    /// What goes in.
    pub input: InputConfig,
    /// What comes out; a text, where nothing is said.
    pub output: Option<OutputSpec>,
    /// Turns what comes out into the text that is handed on.
    pub process_output: Option<ProcessOutput>,
    /// The agents it may call in turn, by name.
    pub agents: Vec<String>,
    /// What comes out, as a type.
    pub output_type: PhantomData<fn() -> T>,
}

/// What an agent is told. All texts may hold `${name}` for its inputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptConfig {
    /// Its standing instructions.
    pub system_prompt: Option<String>,
    /// A conversation it begins with: examples of how to go about its task.
    pub initial_messages: Vec<Message>,
    /// What it is asked to do. Where absent, its inputs are handed to it as they are.
    pub query: Option<String>,
}

/// The model that works for an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Its name, or an alias; the caller's model where absent.
    pub model: Option<String>,
    /// How it is asked; what is not set is as it is for the caller.
    pub settings: Settings,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self { model: None, settings: Settings::UNSET }
    }
}

/// How an agent runs, and what it may use. A limit that is absent is the caller's; one that is more than
/// the caller has left is cut down to that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunConfig {
    /// How long it may work.
    pub max_time: Option<Duration>,
    /// How many turns it may take.
    pub max_turns: Option<u32>,
    /// How many tokens it may use, its own agents included.
    pub max_tokens: Option<u64>,
    /// How much it may cost, its own agents included.
    pub max_cost: Option<Money>,
    /// How many calls of tools it may make.
    pub max_tool_calls: Option<u32>,
    /// What it knows of the conversation of its caller.
    pub context: Inherit,
    /// Where it works.
    pub workspace: Option<WorkspaceKind>,
    /// Whether its caller goes on while it works.
    pub background: bool,
    /// Whether it is left alone when the process that ran it is lost in the middle, and not taken up
    /// again.
    pub at_most_once: bool,
    /// What happens when it stops making progress; as for the caller, where absent.
    pub on_stuck: Option<OnStuck>,
}

/// What an agent knows of the conversation of whoever calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Inherit {
    /// Nothing: its inputs are all it gets.
    #[default]
    Fresh,
    /// The task of its caller and what its caller said last, in short.
    Brief,
    /// All of it.
    Fork,
}

impl Inherit {
    /// Every value, with the word it has in a file.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("fresh", Self::Fresh), ("brief", Self::Brief), ("fork", Self::Fork)];

    /// Returns the word it has in a file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Brief => "brief",
            Self::Fork => "fork",
        }
    }
}

/// What an agent may do, beside what its caller may: the stricter of both counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyConfig {
    /// How freely it acts; as its caller, where absent.
    pub mode: Option<Mode>,
    /// Rules of its own.
    pub rules: Vec<RuleSpec>,
    /// The only commands it may run, as patterns such as `git diff *`; whatever its rules and mode let it,
    /// where absent. A rule that denies cannot say "all but these", so this is said on its own, and kept by
    /// [`OnlyCommands`](crate::OnlyCommands).
    pub commands: Option<Vec<String>>,
}

/// Turns what an agent gives into the text that is handed on.
#[derive(Clone)]
pub struct ProcessOutput(Arc<Process>);

type Process = dyn Fn(&Value) -> Result<String, String> + Send + Sync;

impl ProcessOutput {
    /// Uses this function. What it cannot read is handed on as it is, and its error is told.
    pub fn new(process: impl Fn(&Value) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(process))
    }

    /// Makes the text.
    pub fn apply(&self, output: &Value) -> Result<String, String> {
        (self.0)(output)
    }
}

impl fmt::Debug for ProcessOutput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ProcessOutput")
    }
}

/// Whatever comes out: a definition holds none of it.
impl<T> Clone for AgentDefinition<T> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            display_name: self.display_name.clone(),
            description: self.description.clone(),
            prompt: self.prompt.clone(),
            model: self.model.clone(),
            run: self.run.clone(),
            tools: self.tools.clone(),
            policy: self.policy.clone(),
            input: self.input.clone(),
            output: self.output.clone(),
            process_output: self.process_output.clone(),
            agents: self.agents.clone(),
            output_type: PhantomData,
        }
    }
}

impl AgentDefinition {
    /// Starts a definition: an agent that answers with a text, does what its caller may do with the tools
    /// its caller has, and takes one text as its input.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            display_name: None,
            description: description.into(),
            prompt: PromptConfig::default(),
            model: ModelConfig::default(),
            run: RunConfig::default(),
            tools: ToolConfig::default(),
            policy: PolicyConfig::default(),
            input: InputConfig::default(),
            output: None,
            process_output: None,
            agents: Vec::new(),
            output_type: PhantomData,
        }
    }
}

impl<T> AgentDefinition<T> {
    /// Returns its name for people.
    pub fn title(&self) -> &str {
        self.display_name.as_deref().unwrap_or(&self.name)
    }

    /// Wants what comes out under this name and in the shape of a type.
    #[must_use]
    pub fn returning<U: schemars::JsonSchema + DeserializeOwned>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> AgentDefinition<U> {
        let schema = schemars::schema_for!(U).to_value();
        let output = OutputSpec { name: name.into(), description: description.into(), schema };
        AgentDefinition { output: Some(output), ..self.with_type() }
    }

    /// Hands this text on in place of what came out.
    #[must_use]
    pub fn processed(mut self, process: impl Fn(T) -> String + Send + Sync + 'static) -> Self
    where
        T: DeserializeOwned,
    {
        self.process_output = Some(ProcessOutput::new(move |output| {
            serde_json::from_value(output.clone()).map(&process).map_err(|error| error.to_string())
        }));
        self
    }

    /// Forgets the type of what comes out: it is JSON of the same shape.
    #[must_use]
    pub fn untyped(self) -> AgentDefinition {
        self.with_type()
    }

    fn with_type<U>(self) -> AgentDefinition<U> {
        AgentDefinition {
            name: self.name,
            display_name: self.display_name,
            description: self.description,
            prompt: self.prompt,
            model: self.model,
            run: self.run,
            tools: self.tools,
            policy: self.policy,
            input: self.input,
            output: self.output,
            process_output: self.process_output,
            agents: self.agents,
            output_type: PhantomData,
        }
    }
}

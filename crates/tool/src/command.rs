//! A tool that is a program: arguments go in as JSON on standard input, the answer comes out on
//! standard output.
//!
//! The answer is JSON if it can be read as such and text otherwise. An exit code other than zero is a
//! failure, with what the program wrote kept. Such a tool is declared in configuration, not in code.

use std::collections::BTreeMap;

use async_trait::async_trait;
use convoke_core::{Category, EffectRules, Kind, Millis, ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::context::ToolContext;
use crate::process::{Finished, run_to_end};
use crate::spawn::Program;
use crate::tool::{Invocation, Tool, ToolOutput};

const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// A command tool as it is written in configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandToolConfig {
    /// The name of the tool.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments. Without one, it takes none.
    #[serde(default = "no_parameters")]
    pub parameters: Value,
    /// The program and its arguments. No shell is involved.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// How long a call may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// What a call does to the world.
    #[serde(default = "execute")]
    pub kind: Kind,
    /// Its family.
    #[serde(default = "custom")]
    pub category: Category,
    /// Which arguments name the paths and URLs it touches.
    #[serde(default)]
    pub effects: EffectRules,
    /// Variables it gets beside those of the session.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where it runs, relative to the working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
}

fn no_parameters() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

const fn execute() -> Kind {
    Kind::Execute
}

const fn custom() -> Category {
    Category::Custom
}

/// A tool that is a program.
#[derive(Clone, Debug)]
pub struct CommandTool {
    spec: ToolSpec,
    config: CommandToolConfig,
}

impl CommandTool {
    /// Makes a tool from its declaration.
    pub fn new(config: CommandToolConfig) -> Self {
        let mut spec = ToolSpec::new(&config.name, &config.description, config.kind);
        spec.category = config.category;
        spec.parameters = config.parameters.clone();
        if let Some(object) = spec.parameters.as_object_mut() {
            object.entry("type").or_insert_with(|| "object".into());
        }
        spec.effects = config.effects.clone();
        spec.timeout_ms =
            config.timeout.map(|millis| Millis(std::time::Duration::from_millis(millis)));
        spec.streaming = true;
        Self { spec, config }
    }
}

impl Tool for CommandTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, arguments: Value) -> Result<Box<dyn Invocation>, ToolError> {
        Ok(Box::new(Run { config: self.config.clone(), arguments }))
    }
}

struct Run {
    config: CommandToolConfig,
    arguments: Value,
}

#[async_trait]
impl Invocation for Run {
    fn describe(&self) -> Option<String> {
        Some(format!("{} (on standard input: {})", self.config.command.join(" "), self.arguments))
    }

    async fn run(self: Box<Self>, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let directory = match &self.config.working_directory {
            Some(directory) => context.locate(directory)?.absolute(),
            None => context.working_directory().to_path_buf(),
        };
        let mut environment = context.environment().inherited();
        environment.extend(self.config.env);
        let program = Program::new(self.config.command, directory).environment(environment);
        let input = self.arguments.to_string().into_bytes();
        let finished = run_to_end(&context, program, input, MAX_OUTPUT_BYTES).await?;
        Ok(answer(&finished))
    }
}

fn answer(finished: &Finished) -> ToolOutput {
    let stdout = finished.stdout.text();
    let output = match serde_json::from_str::<Value>(&stdout) {
        Ok(value) => ToolOutput::new(value),
        Err(_) => ToolOutput::new(Value::String(stdout.clone())).with_text(stdout),
    };
    match finished.status {
        Some(status) if status.success() => output,
        Some(status) => {
            let stderr = finished.stderr.text();
            let complaint = if stderr.trim().is_empty() {
                String::new()
            } else {
                format!(": {}", stderr.trim())
            };
            output.failing(ToolError::failed(format!("the program ended with {status}{complaint}")))
        }
        None => output.failing(ToolError::cancelled("the program was stopped")),
    }
}

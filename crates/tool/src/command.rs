//! A tool that is a program: arguments go in as JSON on standard input, the answer comes out on
//! standard output.
//!
//! The answer is JSON if it can be read as such and text otherwise. An exit code other than zero is a
//! failure, with what the program wrote kept. Such a tool is usually declared in configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use convoke_core::{ToolError, ToolSpec};
use serde_json::Value;

use crate::context::ToolContext;
use crate::process::{Finished, run_to_end};
use crate::spawn::Program;
use crate::tool::{Invocation, Tool, ToolOutput};

const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// A tool that is a program.
#[derive(Clone, Debug)]
pub struct CommandTool {
    spec: ToolSpec,
    program: Arc<Invoked>,
}

#[derive(Clone, Debug)]
struct Invoked {
    command: Vec<String>,
    environment: BTreeMap<String, String>,
    working_directory: Option<PathBuf>,
}

impl CommandTool {
    /// Makes a tool that starts this program with these arguments. No shell is involved.
    pub fn new(mut spec: ToolSpec, command: Vec<String>) -> Self {
        spec.parameters.edit(|parameters| {
            if let Some(object) = parameters.as_object_mut() {
                object.entry("type").or_insert_with(|| "object".into());
            }
        });
        spec.streaming = true;
        spec.starts_programs = true;
        let program = Invoked { command, environment: BTreeMap::new(), working_directory: None };
        Self { spec, program: Arc::new(program) }
    }

    /// Gives the program these variables beside those of the session.
    #[must_use]
    pub fn environment(mut self, variables: BTreeMap<String, String>) -> Self {
        Arc::make_mut(&mut self.program).environment = variables;
        self
    }

    /// Starts the program here instead of in the session's working directory. Whoever declares the tool
    /// chooses the place; it need not lie in the allowed roots.
    #[must_use]
    pub fn working_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        Arc::make_mut(&mut self.program).working_directory = Some(directory.into());
        self
    }
}

impl Tool for CommandTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, arguments: Value) -> Result<Box<dyn Invocation>, ToolError> {
        Ok(Box::new(Run { program: Arc::clone(&self.program), arguments }))
    }
}

struct Run {
    program: Arc<Invoked>,
    arguments: Value,
}

#[async_trait]
impl Invocation for Run {
    fn describe(&self) -> Option<String> {
        Some(format!("{} (on standard input: {})", self.program.command.join(" "), self.arguments))
    }

    async fn run(self: Box<Self>, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let chosen = self.program.working_directory.as_deref();
        let directory = chosen.unwrap_or_else(|| context.working_directory());
        let mut environment = context.environment().inherited();
        environment.extend(self.program.environment.clone());
        let program = Program::new(self.program.command.clone(), directory.to_path_buf())
            .environment(environment);
        let input = self.arguments.to_string().into_bytes();
        let finished = run_to_end(&context, program, input, MAX_OUTPUT_BYTES).await?;
        Ok(answer(&finished))
    }
}

fn answer(finished: &Finished) -> ToolOutput {
    let stdout = finished.stdout.text();
    let output = match serde_json::from_str::<Value>(&stdout) {
        Ok(value) => ToolOutput::new(value),
        Err(_) => ToolOutput::new(Value::String(stdout.clone())).with_text(stdout.clone()),
    };
    let noticed = finished.noticed();
    let output = match noticed.as_str() {
        "" => output,
        noticed => output.with_text(format!("{}\n{noticed}", stdout.trim_end())),
    };
    match finished.how() {
        Some(_) if finished.status.is_some_and(|status| status.success()) => output,
        Some(how) => {
            let stderr = finished.stderr.text();
            let complaint = if stderr.trim().is_empty() {
                String::new()
            } else {
                format!(": {}", stderr.trim())
            };
            output.failing(ToolError::failed(format!("the program ended with {how}{complaint}")))
        }
        None => output.failing(ToolError::cancelled("the program was stopped")),
    }
}

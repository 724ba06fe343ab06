//! Hooks that are commands of the configuration.
//!
//! A command gets the event as one line of JSON on its standard input. It says what it thinks with its exit
//! code and its standard output: code 0 and nothing lets it happen; code 0 and
//! `{"decision": "deny", "reason": "…"}` refuses; code 0 and `{"arguments": {…}}` changes the arguments of a
//! call; any other code is a failure, with what it wrote to standard error as the reason.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use convoke_core::Event;
use convoke_core::hook::Moment;
use convoke_core::policy::wildcard;
use convoke_tool::process::{Finished, run_to_end};
use convoke_tool::{Hook, Program, ToolContext, UnconfinedSpawner, Verdict};
use serde::Deserialize;
use serde_json::Value;

use crate::config::HookConfig;

/// How much of what a hook writes is read.
const MAX_OUTPUT: usize = 64 * 1024;
/// How much of what a hook complains about is told.
const MAX_REASON: usize = 2_000;

/// A command that has a say.
#[derive(Debug)]
pub(crate) struct CommandHook {
    config: HookConfig,
    name: String,
    environment: BTreeMap<String, String>,
    working_directory: PathBuf,
}

/// What a command answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Said {
    decision: Option<Decision>,
    reason: Option<String>,
    arguments: Option<Value>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Allow,
    Deny,
}

impl CommandHook {
    /// Makes a hook that runs in a directory, with these variables.
    pub(crate) fn new(
        config: HookConfig,
        working_directory: PathBuf,
        environment: BTreeMap<String, String>,
    ) -> Self {
        let program = config.command.first().map(String::as_str).unwrap_or_default();
        let short = program.rsplit('/').next().unwrap_or(program).to_owned();
        let name = config.name.clone().unwrap_or(short);
        Self { config, name, environment, working_directory }
    }
}

#[async_trait]
impl Hook for CommandHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn wants(&self, moment: Moment, event: &Event) -> bool {
        let tool =
            |pattern: &str| Moment::tool(&event.body).is_some_and(|name| wildcard(pattern, name));
        self.config.on.contains(&moment) && self.config.tool.as_deref().is_none_or(tool)
    }

    fn guards(&self) -> bool {
        self.config.guard
    }

    fn timeout(&self) -> Duration {
        self.config.timeout.duration()
    }

    async fn call(&self, moment: Moment, event: &Event) -> Result<Verdict, String> {
        let mut variables = self.environment.clone();
        variables.insert("CONVOKE_HOOK".to_owned(), moment.as_str().to_owned());
        let program = Program::new(self.config.command.clone(), self.working_directory.clone())
            .environment(variables);
        let mut input = serde_json::to_vec(event).map_err(|error| error.to_string())?;
        input.push(b'\n');
        // It is the user's own program: it runs with the user's rights.
        let context =
            ToolContext::builder("hook").spawner(std::sync::Arc::new(UnconfinedSpawner)).build();
        let finished = run_to_end(&context, program, input, MAX_OUTPUT).await;
        verdict(&finished.map_err(|error| error.message)?)
    }
}

fn verdict(finished: &Finished) -> Result<Verdict, String> {
    let status = finished.status.ok_or("it was stopped")?;
    if !status.success() {
        let complaint: String = finished.stderr.text().trim().chars().take(MAX_REASON).collect();
        let silent = complaint.is_empty();
        return Err(if silent { format!("it ended with {status}") } else { complaint });
    }
    let said = finished.stdout.text();
    if said.trim().is_empty() {
        return Ok(Verdict::Go);
    }
    let said: Said = serde_json::from_str(said.trim())
        .map_err(|error| format!("what it wrote is no answer of a hook: {error}"))?;
    Ok(match said {
        Said { decision: Some(Decision::Deny), reason, .. } => {
            Verdict::Deny { reason: reason.unwrap_or_else(|| "it gave no reason".to_owned()) }
        }
        Said { arguments: Some(arguments), .. } => Verdict::Change { arguments },
        Said { .. } => Verdict::Go,
    })
}

//! Hooks that are commands of the configuration.
//!
//! A command gets the event as one line of JSON on its standard input. It says what it thinks with its exit
//! code and its standard output: code 0 and nothing lets it happen; code 0 and
//! `{"decision": "deny", "reason": "…"}` refuses; code 0 and `{"decision": "ask", "reason": "…"}` has a person
//! asked about a call; code 0 and `{"arguments": {…}}` changes the arguments of a call; any other code is a
//! failure, with what it wrote to standard error as the reason.
//!
//! A hook of the user runs with the user's rights, one of a project as confined as any program. Neither may
//! lie where tools and programs write, or what it is to watch could rewrite it; nor may one of the user's lie in
//! the folder that is worked in, which could bring along another. Only the user may name such a file, in full.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use convoke_core::Event;
use convoke_core::hook::Moment;
use convoke_tool::process::{Finished, run_to_end};
use convoke_tool::{Hook, Program, Spawner, ToolContext, Verdict};
use serde::Deserialize;
use serde_json::Value;

use crate::config::{Author, HookConfig};
use crate::written::{Written, WrittenWord};

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
    spawner: Arc<dyn Spawner>,
}

/// A hook that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the hook `{hook}` runs `{}`, which tools and programs can write, or this folder brought along; keep it \
     elsewhere, or name it in full in your own configuration",
    file.display()
)]
#[non_exhaustive]
pub struct HookError {
    /// Its name.
    pub hook: String,
    /// What it runs.
    pub file: PathBuf,
}

/// Refuses a hook whose program, or a file among its arguments, lies where tools and programs write.
pub(crate) fn refuse_if_written(
    hook: &HookConfig,
    author: Author,
    written: &Written,
    directory: &Path,
    search_path: Option<&String>,
) -> Result<(), HookError> {
    let search_path = search_path.map(String::as_str);
    let found = written.find(&hook.command, author, directory, search_path);
    let refused =
        found.map(|WrittenWord { file, .. }| HookError { hook: hook.title().to_owned(), file });
    refused.map_or(Ok(()), Err)
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
    Ask,
    Deny,
}

impl CommandHook {
    /// Makes a hook that runs in a directory, with these variables, started by this spawner.
    pub(crate) fn new(
        config: HookConfig,
        working_directory: &Path,
        environment: BTreeMap<String, String>,
        spawner: Arc<dyn Spawner>,
    ) -> Self {
        let name = config.title().to_owned();
        Self { config, name, environment, working_directory: working_directory.to_owned(), spawner }
    }
}

#[async_trait]
impl Hook for CommandHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn wants(&self, moment: Moment, event: &Event) -> bool {
        self.config.is_called(moment, Moment::tool(&event.body))
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
        let context = ToolContext::builder("hook").spawner(Arc::clone(&self.spawner)).build();
        let finished = run_to_end(&context, program, input, MAX_OUTPUT).await;
        verdict(&finished.map_err(|error| error.message)?)
    }
}

fn verdict(finished: &Finished) -> Result<Verdict, String> {
    let status = finished.status.ok_or("it was stopped")?;
    if !status.success() {
        let complaint: String = finished.stderr.text().trim().chars().take(MAX_REASON).collect();
        let silent = complaint.is_empty();
        let how = finished.how().unwrap_or_default();
        return Err(match &finished.reached {
            None if !silent => complaint,
            _ => format!("it ended with {how}"),
        });
    }
    let said = finished.stdout.text();
    if said.trim().is_empty() {
        return Ok(Verdict::Go);
    }
    let said: Said = serde_json::from_str(said.trim())
        .map_err(|error| format!("what it wrote is no answer of a hook: {error}"))?;
    let why = |reason: Option<String>| reason.unwrap_or_else(|| "it gave no reason".to_owned());
    Ok(match said {
        Said { decision: Some(Decision::Deny), reason, .. } => {
            Verdict::Deny { reason: why(reason) }
        }
        Said { decision: Some(Decision::Ask), arguments: Some(_), .. } => {
            return Err("it both asks and changes arguments; a hook does one of them".to_owned());
        }
        Said { decision: Some(Decision::Ask), reason, .. } => Verdict::Ask { reason: why(reason) },
        Said { arguments: Some(arguments), .. } => Verdict::Change { arguments },
        Said { .. } => Verdict::Go,
    })
}

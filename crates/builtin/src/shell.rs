//! Running a command.

use std::sync::Arc;
use std::time::Duration;

use convoke_core::{Category, ErrorKind, Kind, ToolError};
use convoke_tool::process::{Finished, run_to_end};
use convoke_tool::{FunctionTool, Program, Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const MAX_OUTPUT_BYTES: usize = 1024 * 1024;
/// Commands build and test; that takes longer than other tools.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);

/// Returns the tools of this family.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    let run = FunctionTool::new(
        "run_command",
        "Runs a shell command and returns its output and exit code. It has no terminal and no input; \
         what it leaves running is ended with it, and variables that look like credentials are not \
         passed on.",
        run_command,
    );
    vec![Arc::new(
        run.output::<CommandOutput>()
            .category(Category::Code)
            .kind(Kind::Execute)
            .streaming()
            .starts_programs()
            .timeout(DEFAULT_TIMEOUT)
            .timeout_from(|run: &RunCommand| run.timeout_ms.map(Duration::from_millis))
            .describe(|run: &RunCommand| run.command.clone()),
    )]
}

#[derive(Deserialize, JsonSchema)]
struct RunCommand {
    /// The command, for `bash`.
    command: String,
    /// Where it runs; the working directory if absent.
    working_directory: Option<String>,
    /// How long it may take, in milliseconds; two minutes if absent.
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
}

/// What a command left behind.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CommandOutput {
    /// Its exit code; null if a signal ended it.
    exit_code: Option<i32>,
    /// What it wrote.
    stdout: String,
    /// What it complained about.
    stderr: String,
    /// How many bytes of its output were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted_bytes: Option<u64>,
    /// What became of files that it changed and that decide what runs later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
}

async fn run_command(run: RunCommand, context: ToolContext) -> Result<ToolOutput, ToolError> {
    if run.command.trim().is_empty() {
        return Err(ToolError::validation(["`command` is empty"]));
    }
    if run.command.contains('\0') {
        return Err(ToolError::validation(["`command` contains a NUL byte"]));
    }
    let mut program = Program::new(Vec::new(), context.working_directory().to_path_buf())
        .environment(context.environment().inherited());
    if let Some(directory) = &run.working_directory {
        let place = context.locate(directory)?;
        program.working_directory = place.absolute();
        let opened = context.blocking(move || place.open_directory()).await?;
        program = program.in_directory(opened.into_std_file().into());
    }
    let in_shell = |shell: &str| {
        let command = vec![shell.to_owned(), "-c".to_owned(), run.command.clone()];
        let mut program = Program { command, ..program.clone() };
        // These name files that a shell would run before the command.
        program.environment.retain(|name, _| name != "BASH_ENV" && name != "ENV");
        program
    };
    let finished = match run_to_end(&context, in_shell("bash"), Vec::new(), MAX_OUTPUT_BYTES).await
    {
        Err(error) if error.kind == ErrorKind::NotFound => {
            run_to_end(&context, in_shell("sh"), Vec::new(), MAX_OUTPUT_BYTES).await?
        }
        finished => finished?,
    };
    Ok(answer(&finished))
}

fn answer(finished: &Finished) -> ToolOutput {
    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    let omitted = finished.stdout.omitted() + finished.stderr.omitted();
    let exit_code = finished.status.and_then(|status| status.code());
    let mut text = stdout.clone();
    if !stderr.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str("[stderr]\n");
        text.push_str(&stderr);
    }
    if text.is_empty() {
        text.push_str("(no output)");
    }
    let noticed = finished.noticed();
    if !noticed.is_empty() {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&noticed);
    }
    let mut value = json!({ "exitCode": exit_code, "stdout": stdout, "stderr": stderr });
    if let Some(object) = value.as_object_mut() {
        if omitted > 0 {
            object.insert("omittedBytes".into(), omitted.into());
        }
        if !finished.notices.is_empty() {
            object.insert("notices".into(), json!(finished.notices));
        }
    }
    let output = ToolOutput::new(value).with_text(text);
    match finished.how() {
        Some(_) if finished.status.is_some_and(|status| status.success()) => output,
        Some(how) => output.failing(ToolError::failed(format!("the command ended with {how}"))),
        None => output.failing(ToolError::cancelled("the command was stopped")),
    }
}

//! An agent whose result is a type: run by itself, and called by the main agent. Both models are scripts, so
//! the example needs no key.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use convoke::agent::definition::ToolConfig;
use convoke::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

/// What a count found.
#[derive(Debug, Deserialize, JsonSchema)]
struct Count {
    /// How many there are.
    number: u32,
    /// Where they are.
    files: Vec<String>,
}

fn counter() -> AgentDefinition<Count> {
    let mut definition = AgentDefinition::new("counter", "Counts where a word occurs.")
        .returning::<Count>("count", "What was counted.")
        .processed(|count| format!("{} in {}", count.number, count.files.join(", ")));
    definition.prompt.system_prompt = Some("You count where a word occurs.".to_owned());
    definition.tools = ToolConfig::only(["grep"]);
    definition.policy.mode = Some(Mode::Plan);
    definition.run.max_turns = Some(5);
    definition
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::builder(env!("CARGO_MANIFEST_DIR")).agent(counter()).build()?;
    let counts = [
        Turn::call("grep", json!({ "pattern": "^name", "include": "Cargo.toml" })),
        Turn::call("complete_task", json!({ "count": { "number": 1, "files": ["Cargo.toml"] } })),
    ];
    let model: Arc<dyn Model> = Arc::new(ScriptedModel::new(counts.clone()));
    let report = runtime.agent(&counter(), model, "Count `name` in the manifest.").await?;
    let count = report.output.ok_or("it gave nothing")?;
    println!("by itself: {} in {:?}, {:?}", count.number, count.files, report.report.outcome.cause);

    let task = json!({ "agent_name": "counter", "prompt": "Count `name` in the manifest." });
    let [search, done] = counts;
    let model = ScriptedModel::new([
        Turn::call("delegate_to_agent", task),
        search,
        done,
        Turn::text("There is one, in Cargo.toml."),
    ]);
    let main = runtime.main_agent(Arc::new(model)).build()?;
    let report = main.start("How many names are there?").finish().await;
    println!("by the main agent: {}", report.text().unwrap_or_default());
    assert_eq!(report.outcome.cause, Cause::Goal);
    Ok(())
}

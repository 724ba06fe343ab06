//! A task goes in, a model and tools work on it, and events come out until there is a report. The
//! model here is a script, so the example needs no key; `runtime.model("anthropic/claude-sonnet-4-5")?`
//! asks a real one.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use convoke::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::builder(env!("CARGO_MANIFEST_DIR")).build()?;
    let model = ScriptedModel::new([
        Turn::call("grep", json!({ "pattern": "^name", "include": "Cargo.toml" })),
        Turn::text("The crate is called convoke."),
    ]);
    let agent: MainAgent = runtime.main_agent(Arc::new(model)).build()?;
    let mut run = agent.start("What is this crate called?");
    while let Some(event) = run.next().await {
        match &event.body {
            EventBody::ToolCallStarted { description, .. } => println!("> {description}"),
            EventBody::ModelDelta { text } => print!("{text}"),
            _ => {}
        }
    }
    println!();
    let report = run.report().ok_or("the run has not ended")?;
    assert_eq!(report.outcome.cause, Cause::Goal);
    Ok(())
}

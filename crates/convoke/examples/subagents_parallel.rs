//! Three agents at once under one budget: what they use is counted once, and what is left is all they get. The
//! model is a script that plays everybody.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use convoke::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut reader = AgentDefinition::new("reader", "Reads a file, and sums it up.");
    reader.prompt.system_prompt = Some("You are a reader.".to_owned());
    let mut config = Config::default();
    config.budget.tokens = Some(20_000);
    let runtime =
        Runtime::builder(env!("CARGO_MANIFEST_DIR")).config(config).agent(reader).build()?;

    let ask = |file: &str| json!({ "agent_name": "reader", "prompt": format!("Read {file}.") });
    let model = ScriptedModel::from_fn(move |request| {
        let is_reader = request.system.starts_with("You are a reader.");
        match (is_reader, request.messages.len()) {
            // Calls of one answer are carried out at the same time.
            (false, 1) => Turn::call("delegate_to_agent", ask("Cargo.toml"))
                .and_call("delegate_to_agent", ask("src/lib.rs"))
                .and_call("delegate_to_agent", ask("src/runtime.rs")),
            (false, _) => Turn::text("All three were read."),
            (true, _) => Turn::call("complete_task", json!({ "result": "It is short." })),
        }
        .tokens(1_000, 100)
    });
    let main = runtime.main_agent(Arc::new(model)).build()?;
    let mut run = main.start("Sum up these three files.");
    while let Some(event) = run.next().await {
        match &event.body {
            EventBody::AgentSpawned { name, .. } => println!("{name} begins"),
            EventBody::AgentEnded { usage, .. } => println!("used {} tokens", usage.input_tokens),
            _ => {}
        }
    }
    let report = run.report().ok_or("the run has not ended")?;
    let used = report.usage.input_tokens + report.usage.output_tokens;
    println!("{}: {used} of 20000 tokens", report.text().unwrap_or_default());
    assert_eq!((report.outcome.cause, used), (Cause::Goal, 5 * 1_100));
    Ok(())
}

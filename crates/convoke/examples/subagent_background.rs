//! An agent that works in the background: its caller goes on, and is told when there is a result. The model is a
//! script that plays both.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use convoke::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut tester = AgentDefinition::new("tester", "Runs the tests, which takes long.");
    tester.prompt.system_prompt = Some("You are a tester.".to_owned());
    tester.run.background = true;
    let runtime = Runtime::builder(env!("CARGO_MANIFEST_DIR")).agent(tester).build()?;

    let model = ScriptedModel::from_fn(|request| {
        let is_tester = request.system.starts_with("You are a tester.");
        match (is_tester, request.messages.len()) {
            (false, 1) => Turn::call(
                "delegate_to_agent",
                json!({ "agent_name": "tester", "prompt": "Run the tests." }),
            ),
            // Meanwhile there is other work.
            (false, 3) => Turn::call("ls", json!({})),
            (false, 5) => Turn::call("background_agents", json!({ "action": "wait" })),
            (false, _) => Turn::text("All tests pass."),
            (true, 1) => Turn::call("grep", json!({ "pattern": "test", "include": "Cargo.toml" })),
            (true, _) => Turn::call("complete_task", json!({ "result": "204 passed" })),
        }
    });
    let main = runtime.main_agent(Arc::new(model)).build()?;
    let mut run = main.start("Do the tests pass?");
    while let Some(event) = run.next().await {
        match &event.body {
            EventBody::AgentSpawned { name, background: true, .. } => println!("{name} begins"),
            EventBody::ToolCallStarted { description, .. } => {
                println!("{}: {description}", event.agent);
            }
            EventBody::AgentEnded { message: Some(told), .. } => println!("told: {told}"),
            _ => {}
        }
    }
    let report = run.report().ok_or("the run has not ended")?;
    println!("{}", report.text().unwrap_or_default());
    assert_eq!(report.outcome.cause, Cause::Goal);
    Ok(())
}

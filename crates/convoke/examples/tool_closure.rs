//! A tool from a closure, with what it knows.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use convoke::prelude::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let greeting = "Good morning";
    let greet = FunctionTool::new(
        "greet",
        "Greets somebody.",
        move |who: Greet, _: ToolContext| async move {
            Ok::<_, String>(format!("{greeting}, {}!", who.name))
        },
    )
    .kind(Kind::Think);

    let runtime = Runtime::builder(std::env::temp_dir()).tool(greet).build()?;
    let executor = runtime.executor().build();
    let result = executor.execute(ToolCall::new("1", "greet", json!({ "name": "Ada" }))).await;
    assert_eq!(result.value(), Some(&json!("Good morning, Ada!")));
    println!("{}", result.text());
    Ok(())
}

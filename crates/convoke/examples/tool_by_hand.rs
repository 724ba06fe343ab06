//! A tool from the trait itself: for schemas that come from elsewhere.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use convoke::prelude::*;
use serde_json::Value;

struct Echo(ToolSpec);

impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn prepare(&self, arguments: Value) -> Result<Box<dyn Invocation>, ToolError> {
        Ok(Box::new(Said(arguments)))
    }
}

struct Said(Value);

#[async_trait]
impl Invocation for Said {
    async fn run(self: Box<Self>, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new(self.0))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut spec = ToolSpec::new("echo", "Says the same again.", Kind::Think);
    spec.parameters =
        json!({ "type": "object", "properties": { "text": { "type": "string" } } }).into();
    let runtime = Runtime::builder(std::env::temp_dir()).tool(Echo(spec)).build()?;
    let executor = runtime.executor().build();
    let result = executor.execute(ToolCall::new("1", "echo", json!({ "text": "hello" }))).await;
    assert_eq!(result.value(), Some(&json!({ "text": "hello" })));
    println!("{}", result.text());
    Ok(())
}

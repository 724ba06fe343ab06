//! A tool from configuration: a command that reads JSON and writes an answer.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example shows what it does"
)]

use convoke::config::{Sources, load};
use convoke::prelude::*;

const FILE: &str = "
policy: { kinds: { execute: allow } }
tools:
  commands:
    - name: shout
      description: Writes a text in capital letters.
      command: [tr, a-z, A-Z]
      parameters: { type: object, properties: { text: { type: string } }, required: [text] }
      timeout: 5000
      kind: execute
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("user.yml");
    std::fs::write(&file, FILE)?;
    let mut sources = Sources::new(directory.path());
    sources.user_file = Some(file);

    let builder = Runtime::builder(directory.path()).config(load(&sources)?.config);
    let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    let runtime = builder.environment([path].into()).build()?;
    let call = ToolCall::new("1", "shout", json!({ "text": "hello" }));
    let result = runtime.executor().build().execute(call).await;
    assert_eq!(result.value(), Some(&json!({ "TEXT": "HELLO" })));
    println!("{}", result.text());
    Ok(())
}

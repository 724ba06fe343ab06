//! The peer of `convoke run`: the client in `bare.rs` as a command.
#![expect(clippy::disallowed_methods, reason = "a program of its own")]

#[path = "../bare.rs"]
mod bare;

use std::error::Error;
use std::io::Write;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut words = std::env::args().skip(1);
    let mut next = || words.next().ok_or("usage: bare-client SETUP-FILE PROMPT");
    let (setup, prompt) = (next()?, next()?);
    let setup = serde_json::from_slice(&std::fs::read(setup)?)?;
    let base_url = std::env::var("OPENAI_BASE_URL")?;
    let key = std::env::var("OPENAI_API_KEY")?;
    let directory = std::env::current_dir()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        bare::Bare::new(&base_url, &key, setup, directory)?.run(&prompt).await
    })?;
    writeln!(std::io::stdout(), "{answer}")?;
    Ok(())
}

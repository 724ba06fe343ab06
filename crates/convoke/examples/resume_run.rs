//! A run is kept, taken up again, forked and done again: `cargo run --example resume_run`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use convoke::agent::replay;
use convoke::journal::{Store, export, timeline::Timeline};
use convoke::prelude::*;
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let store = Store::at(directory.path().join("state"));
    let runtime = Runtime::builder(directory.path()).store(Some(store.clone())).build()?;
    let model = ScriptedModel::new([
        Turn::call("ls", json!({})),
        Turn::text("There is a state directory."),
        Turn::text("It holds one run."),
        Turn::text("It would hold two."),
    ]);
    let agent = runtime.main_agent(Arc::new(model)).build()?;
    let run = agent.start("What is here?");
    let id = run.id().clone();
    println!("{}", run.finish().await.text().unwrap_or_default());

    // Another process would do the same: open the journal, and go on.
    let journals = runtime.journals().ok_or("nothing is kept")?;
    let reopened = journals.reopen(&id)?;
    let more = agent.resume(reopened.paused, Some(Task::new("What does it hold?")))?;
    println!("{}", more.finish().await.text().unwrap_or_default());

    // A fork shares the first events and goes its own way; the run itself stays as it is.
    let events = store.read(&id)?.events;
    let forked = journals.fork(&id, events.len() as u64)?;
    println!("a fork inherits about {} tokens", forked.paused.context_tokens());
    let other = agent.resume(forked.paused, Some(Task::new("And after a fork?")))?;
    println!("{}", other.finish().await.text().unwrap_or_default());

    // Everything that was decided is decided again, offline, and has to come out the same.
    let again = replay(&id, &events)?;
    println!("{} events, {} decisions, all the same", again.events, again.decided);
    let page = export::html(&Timeline::of(&events));
    println!("a page of {} kB", page.len() / 1024);
    Ok(())
}

//! A whole tree that behaves like one run: questions, parking, taking up again, the background, the ledger.

mod background;
mod continued;
mod ends;
mod questions;
mod resumed;
mod shared_limits;
mod stopped;

use std::sync::Arc;
use std::time::Duration;

use convoke_agent::{AgentBuilder, AgentDefinition, AgentExecutor, Letter};
use convoke_core::{Event, RunId};
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::Approver;
use serde_json::json;

use crate::family::{agent, team};
use crate::world::World;

impl World {
    fn main(
        &self,
        model: &Arc<ScriptedModel>,
        agents: impl IntoIterator<Item = AgentDefinition>,
        approver: impl Approver + 'static,
    ) -> AgentBuilder {
        AgentExecutor::with_model(model.clone(), self.tools(approver))
            .system("The main agent.")
            .keeper(Arc::new(self.journals()))
            .team(team(agents).build())
    }

    fn events(&self) -> Vec<Event> {
        self.journals().store().read(&RunId::new("r")).unwrap().events
    }

    /// Leaves a yes to everything that is asked, as another process would.
    fn approve_all(&self) {
        let events = self.events();
        let inbox = self.journals().store().inbox(&RunId::new("r")).unwrap();
        for open in convoke_journal::open_questions(&events) {
            let now = open.asked.after(Duration::from_secs(1));
            let letter =
                Letter::yes(open.run.clone(), open.call.clone(), open.fingerprint.to_owned(), now);
            inbox.put(&letter.into_item(), now).unwrap();
        }
    }
}

fn hit(word: &str) -> Turn {
    Turn::call("hit", json!({ "word": word }))
}

fn granting(name: &str, granted: &[&str]) -> AgentDefinition {
    let mut definition = agent(name);
    definition.agents = granted.iter().map(|name| (*name).to_owned()).collect();
    definition
}

//! A main agent with agents that it can call: one model plays all of them, by what each is told.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use convoke_agent::{
    AgentBuilder, AgentDefinition, AgentRegistry, Delegation, Paused, Place, Team, TeamBuilder,
};
use convoke_core::{Event, EventBody, ModelFacts, Role, RunId};
use convoke_model::RequestSnapshot;
use convoke_model::scripted::{ScriptedModel, Turn};
use convoke_tool::MemorySink;
use serde_json::{Value, json};

use crate::support::with;

/// Plays several agents: each answers in turn with what is written for it. An agent is known by the first
/// word of its instructions; the main agent is `main`.
#[derive(Default)]
pub(crate) struct Cast(HashMap<String, Vec<Turn>>);

impl Cast {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Writes what an agent says.
    pub(crate) fn says(mut self, who: &str, turns: impl IntoIterator<Item = Turn>) -> Self {
        self.0.entry(who.to_owned()).or_default().extend(turns);
        self
    }

    /// Hires a model. Whoever has nothing more to say completes its task with that.
    pub(crate) fn model(self) -> Arc<ScriptedModel> {
        self.model_with(ModelFacts { window: Some(100_000), ..ModelFacts::default() })
    }

    pub(crate) fn model_with(self, facts: ModelFacts) -> Arc<ScriptedModel> {
        let parts: Mutex<HashMap<String, VecDeque<Turn>>> =
            Mutex::new(self.0.into_iter().map(|(who, turns)| (who, turns.into())).collect());
        let answer = move |request: &RequestSnapshot| {
            let who = who(request);
            let next = parts.lock().unwrap().get_mut(&who).and_then(VecDeque::pop_front);
            next.unwrap_or_else(|| done(&format!("{who} has nothing more to say")))
        };
        Arc::new(ScriptedModel::from_fn(answer).with_facts(facts))
    }
}

/// Returns who is asked: agents are told `You are NAME.` first.
pub(crate) fn who(request: &RequestSnapshot) -> String {
    let named = request.system.strip_prefix("You are ").and_then(|rest| rest.split_once('.'));
    named.map_or_else(|| "main".to_owned(), |(name, _)| name.to_owned())
}

/// Returns how often whoever is asked has answered before.
pub(crate) fn turns(request: &RequestSnapshot) -> usize {
    request.messages.iter().filter(|message| message.role == Role::Assistant).count()
}

/// Says that a task is done.
pub(crate) fn done(result: &str) -> Turn {
    Turn::call("complete_task", json!({ "result": result }))
}

/// Hands a task to an agent.
pub(crate) fn ask(agent: &str, prompt: &str) -> Turn {
    Turn::call("delegate_to_agent", task(agent, prompt))
}

pub(crate) fn task(agent: &str, prompt: &str) -> Value {
    json!({ "agent_name": agent, "prompt": prompt })
}

pub(crate) fn in_background(agent: &str, prompt: &str) -> Value {
    json!({ "agent_name": agent, "prompt": prompt, "background": true })
}

/// Hands as many tasks to an agent, all at once.
pub(crate) fn ask_many(agent: &str, count: usize) -> Turn {
    (1..count).fold(ask(agent, "0"), |turn, index| {
        turn.and_call("delegate_to_agent", task(agent, &index.to_string()))
    })
}

/// An agent that is told its name.
pub(crate) fn agent(name: &str) -> AgentDefinition {
    let mut definition = AgentDefinition::new(name, format!("Does what {name} does."));
    definition.prompt.system_prompt = Some(format!("You are {name}. Be good."));
    definition
}

pub(crate) fn team(agents: impl IntoIterator<Item = AgentDefinition>) -> TeamBuilder {
    let registry = AgentRegistry::new();
    for agent in agents {
        registry.register(agent).unwrap();
    }
    Team::builder(registry).delegation(Delegation::Delegate).background(true)
}

/// The main agent, who can call these.
pub(crate) fn main_with(
    model: &Arc<ScriptedModel>,
    agents: impl IntoIterator<Item = AgentDefinition>,
) -> AgentBuilder {
    with(model).system("The main agent.").team(team(agents).build())
}

/// Takes the run `r` up in another process that was lost after some of its events.
pub(crate) fn lost_after(events: &[Event], kept: usize) -> Paused {
    let place = Place::new(Arc::new(MemorySink::default()));
    Paused::rebuild(&RunId::new("r"), events.get(..kept).unwrap(), place)
}

/// Returns how many events there are up to the first one like this.
pub(crate) fn up_to(events: &[Event], is_last: impl Fn(&Event) -> bool) -> usize {
    events.iter().position(is_last).unwrap() + 1
}

/// Who was asked, in order.
pub(crate) fn asked(model: &ScriptedModel) -> Vec<String> {
    model.requests().iter().map(who).collect()
}

/// What came back of the calls of a run, as the model sees it.
pub(crate) fn answers(events: &[Arc<Event>], agent: &str) -> Vec<String> {
    let own = events.iter().filter(|event| event.agent.as_str() == agent);
    let content = own.filter_map(|event| match &event.body {
        EventBody::ToolCallCompleted { content, tool_name, .. }
        | EventBody::ToolCallFailed { content, tool_name, .. }
        | EventBody::ToolCallDenied { content, tool_name, .. }
            if tool_name != "complete_task" =>
        {
            Some(content.clone())
        }
        _ => None,
    });
    content
        .map(|parts| {
            let texts = parts.iter().filter_map(|part| match part {
                convoke_core::Part::Text { text } => Some(text.as_str()),
                _ => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        })
        .collect()
}

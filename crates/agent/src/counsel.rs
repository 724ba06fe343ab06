//! Answers of a run's model for somebody behind a tool: a server that may ask.
//!
//! Each is the work of a small agent without tools below the run: it is in the stream, it is paid for by the
//! run's budget, and it ends with the call that it is for. The limits of agents are not about it: it is there
//! where agents are switched off, and has a count of its own.

use std::sync::Arc;

use convoke_core::{Message, Role, ToolError};
use convoke_tool::ToolContext;
use serde_json::Map;

use crate::definition::{AgentDefinition, ToolConfig};
use crate::drive::Caller;
use crate::member::{Member, record_end};
use crate::registry::Registered;
use crate::subagent::Order;
use crate::tree::COUNSEL_PREFIX;

/// How many turns an answer may take: one to say it; the others are for one that was empty or cut off.
const TURNS: u32 = 3;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Consultation {
    /// Who asks: the name of the agent that answers is made of it.
    pub who: String,
    /// Standing instructions.
    pub system: Option<String>,
    /// The conversation; the last message is what is asked.
    pub messages: Vec<Message>,
    /// How long the answer may be, in tokens.
    pub max_tokens: u32,
}

/// What the model of a run said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counsel {
    /// Its words.
    pub text: String,
    /// Its name.
    pub model: String,
}

/// Has the model of the run answer that a call belongs to.
pub async fn consult(context: &ToolContext, asked: Consultation) -> Result<Counsel, ToolError> {
    let member = Member::of(context)?;
    let model = member.agent.model.name().to_string();
    let order = order(asked)?;
    let call = context.call();
    let (begin, claim) = member.begin_counsel(call)?;
    // The call only waits meanwhile: who answers may need the seat.
    let away = member.seat.leave();
    let stop = (context.cancellation(), member.below.clone());
    let prepared = member.prepare(&order, begin, call, stop).await?;
    let caller = Caller {
        recorder: member.recorder.clone(),
        call: call.clone(),
        progress: context.progress().clone(),
    };
    let report = prepared.driver.called_by(caller).run(prepared.first).await;
    drop((claim, away));
    record_end(&member.recorder, &member.state, &report, None)
        .map_err(|error| ToolError::unavailable(error.to_string()))?;
    member.tree.forget_call(member.recorder.run(), call);
    if let Some(text) = report.text() {
        return Ok(Counsel { text, model });
    }
    let why = report.outcome.message.unwrap_or_else(|| "it gave no answer".to_owned());
    Err(ToolError::failed(format!("the model did not answer: {why}")))
}

fn order(asked: Consultation) -> Result<Order, ToolError> {
    let Consultation { who, system, mut messages, max_tokens } = asked;
    let Some(last) = messages.pop().filter(|last| last.role == Role::User) else {
        return Err(ToolError::validation(["the last message has to be the user's"]));
    };
    let name: String = who
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
        .collect();
    let asked_by = Some(who);
    let name = format!("{COUNSEL_PREFIX}{name}");
    let mut definition = AgentDefinition::new(name, "Answers for a server.");
    definition.prompt.system_prompt = system.map(|system| literally(&system));
    definition.prompt.initial_messages = messages.iter().map(spoken).collect();
    definition.prompt.query = Some(literally(&last.words()));
    definition.tools = ToolConfig::only(Vec::<String>::new());
    definition.run.max_turns = Some(TURNS);
    definition.run.at_most_once = true;
    definition.model.settings.max_output_tokens = Some(u64::from(max_tokens));
    let agent =
        Registered::of(definition).map_err(|error| ToolError::validation([error.to_string()]))?;
    Ok(Order { asked_by, ..Order::new(Arc::new(agent), Map::new()) })
}

fn spoken(message: &Message) -> Message {
    Message::text(message.role, literally(&message.words()))
}

/// What a stranger wrote is no template.
fn literally(text: &str) -> String {
    text.replace("${", "$${")
}

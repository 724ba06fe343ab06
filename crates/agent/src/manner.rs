//! How an agent is called, beside what goes into it: whether its caller waits, and whether one that ended goes on.
//!
//! Where the arguments of a call are the inputs of an agent, these stand beside them.

use std::sync::Arc;

use convoke_core::{RunId, ToolError};
use serde_json::{Map, Value, json};

use crate::check::AGENT_ID;
use crate::definition::InputConfig;
use crate::delegate::check;
use crate::registry::Registered;
use crate::subagent::{More, Order, handed};

/// The argument that lets an agent work while its caller goes on.
pub(crate) const BACKGROUND: &str = "background";

/// How agents may be called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Whether they may work in the background.
    pub(crate) background: bool,
}

impl Manner {
    /// Adds what may be said beside the inputs to their schema.
    pub(crate) fn declare(self, schema: &mut Value, inputs: &InputConfig) {
        let Value::Object(schema) = schema else { return };
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        let Value::Object(properties) = properties else { return };
        properties.insert(AGENT_ID.to_owned(), agent_id());
        if self.background && !is_input(inputs, BACKGROUND) {
            properties.insert(BACKGROUND.to_owned(), background());
        }
    }

    /// Makes an order of arguments that are inputs, and of what is said beside them. What goes into an agent that
    /// goes on is what more it is to do.
    pub(crate) fn order(
        self,
        agent: Arc<Registered>,
        mut inputs: Map<String, Value>,
    ) -> Result<Order, ToolError> {
        let continued = taken_id(&mut inputs);
        let wanted =
            if is_input(&agent.input, BACKGROUND) { None } else { inputs.remove(BACKGROUND) };
        let in_background = self.check(wanted.as_ref())?;
        check(&agent, &inputs)?;
        let mut order = match continued {
            None => Order::new(agent, inputs),
            Some(child) => {
                let message = asked(&agent, &inputs)?;
                let more = Some(More { child, message });
                Order { more, ..Order::new(agent, Map::new()) }
            }
        };
        order.background |= in_background;
        Ok(order)
    }

    /// Tells whether a call wants the background; where that is not to be had, it is told so.
    pub(crate) fn check(self, wanted: Option<&Value>) -> Result<bool, ToolError> {
        let wanted = wanted.and_then(Value::as_bool).unwrap_or_default();
        if wanted && !self.background {
            return Err(ToolError::validation([
                "agents do not work in the background here; leave `background` out",
            ]));
        }
        Ok(wanted)
    }
}

/// Takes the id of the agent that is to go on out of arguments.
pub(crate) fn taken_id(arguments: &mut Map<String, Value>) -> Option<RunId> {
    match arguments.remove(AGENT_ID) {
        Some(Value::String(id)) if !id.is_empty() => Some(RunId::new(id)),
        _ => None,
    }
}

/// The schema of the id of an agent that is to go on.
pub(crate) fn agent_id() -> Value {
    json!({ "type": "string", "description": "Continue this ended agent." })
}

/// The schema of the wish to go on while an agent works.
pub(crate) fn background() -> Value {
    json!({ "type": "boolean", "description": "Go on while it works." })
}

fn is_input(inputs: &InputConfig, name: &str) -> bool {
    inputs.names().iter().any(|(known, _)| known == name)
}

/// Returns what an agent is asked by its inputs.
fn asked(agent: &Registered, inputs: &Map<String, Value>) -> Result<String, ToolError> {
    let texts = agent.template().render(inputs);
    let texts = texts.map_err(|error| ToolError::validation(vec![error.to_string()]))?;
    Ok(texts.query.unwrap_or_else(|| handed(agent.definition(), inputs)))
}

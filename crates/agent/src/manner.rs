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
        if self.background && !inputs.has(BACKGROUND) {
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
        let continued = taken_id(&mut inputs)?;
        let wanted = if agent.input.has(BACKGROUND) { None } else { inputs.remove(BACKGROUND) };
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
        let wanted = match wanted {
            None | Some(Value::Null) => false,
            Some(Value::Bool(wanted)) => *wanted,
            Some(_) => {
                return Err(ToolError::validation(["`background` has to be `true` or `false`"]));
            }
        };
        if wanted && !self.background {
            return Err(ToolError::validation([
                "agents do not work in the background here; leave `background` out",
            ]));
        }
        Ok(wanted)
    }
}

/// Takes the id of the agent that is to go on out of arguments. An empty one is none: some models fill in everything.
pub(crate) fn taken_id(arguments: &mut Map<String, Value>) -> Result<Option<RunId>, ToolError> {
    match arguments.remove(AGENT_ID) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => Ok(Some(id).filter(|id| !id.is_empty()).map(RunId::new)),
        Some(_) => Err(ToolError::validation([
            "`agent_id` has to be a text: the id that an agent was answered with",
        ])),
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

/// Returns what an agent is asked by its inputs.
fn asked(agent: &Registered, inputs: &Map<String, Value>) -> Result<String, ToolError> {
    let texts = agent.template().render(inputs);
    let texts = texts.map_err(|error| ToolError::validation(vec![error.to_string()]))?;
    Ok(texts.query.unwrap_or_else(|| handed(agent.definition(), inputs)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where one tool calls agents of many shapes, nobody has looked at these before. An id that was passed over would
    /// have another agent begin in the place of the one that was meant.
    #[test]
    fn what_is_said_beside_the_inputs_is_taken_or_refused() {
        let id = |id: Value| taken_id(&mut Map::from_iter([(AGENT_ID.to_owned(), id)]));
        assert_eq!(id(json!("call_1")).unwrap(), Some(RunId::new("call_1")));
        assert_eq!(id(json!("")).unwrap(), None);
        assert_eq!(id(Value::Null).unwrap(), None);
        assert!(id(json!(1)).unwrap_err().message.contains("`agent_id` has to be a text"));
        let check = |wanted| Manner { background: true }.check(Some(&wanted));
        assert!(check(json!(true)).unwrap());
        assert!(!check(Value::Null).unwrap());
        assert!(check(json!("true")).unwrap_err().message.contains("`true` or `false`"));
        assert!(Manner { background: false }.check(Some(&json!(true))).is_err());
    }
}

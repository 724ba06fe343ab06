//! One tool that hands a task to any agent.
//!
//! The model is told which agents there were when its run began. A call is held against the agents there
//! are when it is made: one that came later can be called, and one that is gone is answered with those
//! that are left.

use std::sync::Arc;

use convoke_core::nearest::{did_you_mean, nearest};
use convoke_core::{Declaration, ToolError, ToolSpec};
use convoke_tool::{Invocation, Tool, cut_middle};
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value, json};

use crate::agent_tool::{SubagentInvocation, agent_spec, in_short};
use crate::check::{AGENT_ID, AGENT_NAME, MAX_NAME_BYTES};
use crate::definition::InputConfig;
use crate::manner::{BACKGROUND, Manner, agent_id, background, taken_id};
use crate::registry::Registered;
use crate::subagent::{More, Order};
use crate::team::{Delegation, Granted, Team};

/// The name of the tool.
pub const DELEGATE_TO_AGENT: &str = "delegate_to_agent";

/// What the agent is to do, and what else goes into it.
const PROMPT: &str = "prompt";
const INPUTS: &str = "inputs";

/// How many mistakes in the inputs of an agent are told at once.
const MAX_PROBLEMS: usize = 10;

/// Hands tasks to agents.
#[derive(Debug)]
pub struct DelegateTool {
    spec: ToolSpec,
    team: Team,
    granted: Granted,
    lineage: Vec<String>,
}

impl DelegateTool {
    pub(crate) fn new(team: Team, granted: Granted, lineage: &[String]) -> Self {
        let description = include_str!("../prompts/delegate_tool.md").trim_end();
        let mut spec = agent_spec(DELEGATE_TO_AGENT, description);
        // Whatever a model may send: what is wrong is said when the agent is known.
        spec.parameters = match team.delegation() {
            Delegation::Union => json!({
                "type": "object",
                "properties": { AGENT_NAME: { "type": "string" } },
                "required": [AGENT_NAME],
            }),
            _ => flat(&json!({ "type": "string" }), true),
        }
        .into();
        Self { spec, team, granted, lineage: lineage.to_vec() }
    }

    fn agents(&self) -> Vec<Arc<Registered>> {
        self.team.callable(&self.granted, &self.lineage)
    }

    fn find(&self, name: &str) -> Result<Arc<Registered>, ToolError> {
        let agents = self.agents();
        if let Some(agent) = agents.iter().find(|agent| agent.name == name) {
            return Ok(Arc::clone(agent));
        }
        let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        let close = nearest(name, names.iter().copied());
        let list = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let message =
            format!("there is no agent `{name}`{} (there are: {list})", did_you_mean(&close));
        Err(ToolError::not_found(message))
    }

    fn order(&self, mut arguments: Map<String, Value>) -> Result<Order, ToolError> {
        let Some(Value::String(name)) = arguments.remove(AGENT_NAME) else {
            return Err(ToolError::validation(["`agent_name` is missing"]));
        };
        let agent = self.find(&name)?;
        let manner = Manner { background: self.team.works_in_background(&self.agents()) };
        if self.team.delegation() == Delegation::Union {
            return manner.order(agent, arguments);
        }
        let prompt = match arguments.remove(PROMPT) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (continued, named) = (taken_id(&mut arguments)?, arguments.remove(INPUTS));
        let background = manner.check(arguments.remove(BACKGROUND).as_ref())?;
        check_rest(&agent, &arguments)?;
        if let Some(child) = continued {
            let message = more(prompt, named.as_ref())?;
            let mut order = Order::new(agent, Map::new());
            order.background |= background;
            order.more = Some(More { child, message });
            return Ok(order);
        }
        let (inputs, note) = inputs(&agent, prompt, named)?;
        check(&agent, &inputs)?;
        let mut order = Order::new(agent, inputs);
        order.background |= background;
        order.note = note;
        Ok(order)
    }
}

impl Tool for DelegateTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn declaration(&self) -> Declaration {
        let agents = self.agents();
        let (description, parameters) = match self.team.delegation() {
            Delegation::Union => {
                let manner = Manner { background: self.team.works_in_background(&agents) };
                (self.spec.description.clone(), union(&agents, manner))
            }
            _ => (listed(&self.spec.description, &agents), {
                let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
                let agent_name = if names.is_empty() {
                    json!({ "type": "string" })
                } else {
                    json!({ "type": "string", "enum": names })
                };
                flat(&agent_name, self.team.works_in_background(&agents))
            }),
        };
        Declaration { name: self.spec.name.clone(), description, parameters: parameters.into() }
    }

    fn prepare(&self, arguments: Value) -> Result<Box<dyn Invocation>, ToolError> {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        SubagentInvocation::of(self.order(arguments)?)
    }
}

/// The schema that is the same for all agents.
fn flat(agent_name: &Value, in_background: bool) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": {
            AGENT_NAME: agent_name,
            PROMPT: { "type": "string", "description": "The task, with all the agent has to know." },
            INPUTS: { "type": "object", "description": "Further inputs, by name." },
            AGENT_ID: agent_id(),
        },
        "required": [AGENT_NAME, PROMPT],
    });
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    if let (true, Some(properties)) = (in_background, properties) {
        properties.insert(BACKGROUND.to_owned(), background());
    }
    schema
}

/// The schema with a branch for each agent.
fn union(agents: &[Arc<Registered>], manner: Manner) -> Value {
    if agents.is_empty() {
        return flat(&json!({ "type": "string" }), false);
    }
    let branch = |agent: &Arc<Registered>| {
        let mut schema = agent.input.schema();
        let name = json!({ "const": agent.name, "description": in_short(&agent.description) });
        manner.declare(&mut schema, &agent.input);
        if let Value::Object(schema) = &mut schema {
            let properties = schema.entry("properties").or_insert_with(|| json!({}));
            if let Value::Object(properties) = properties {
                properties.insert(AGENT_NAME.to_owned(), name);
            }
            let required = schema.entry("required").or_insert_with(|| json!([]));
            if let Value::Array(required) = required {
                required.insert(0, AGENT_NAME.into());
            }
        }
        schema
    };
    json!({ "type": "object", "oneOf": agents.iter().map(branch).collect::<Vec<_>>() })
}

/// Adds to a description which agents there are, what they are good for, and what they want to know.
fn listed(description: &str, agents: &[Arc<Registered>]) -> String {
    let mut text = format!("{description}\nAgents:");
    for agent in agents {
        let what = agent.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let what = in_short(&what);
        text.push_str(&format!("\n- {}: {what}", agent.name));
        let inputs = wanted_inputs(&agent.input);
        if !inputs.is_empty() {
            text.push_str(&format!(" Inputs: {inputs}."));
        }
    }
    text
}

/// Says which inputs an agent has beside the one text that the prompt becomes.
fn wanted_inputs(input: &InputConfig) -> String {
    let single = input.single_text();
    let others = input.names().into_iter().filter(|(name, _)| Some(name) != single.as_ref());
    let named = others.map(|(name, required)| if required { name } else { format!("{name}?") });
    named.collect::<Vec<_>>().join(", ")
}

/// Returns what more an agent is to do that goes on: words alone. What it is given by name went in when it began.
fn more(prompt: Option<String>, named: Option<&Value>) -> Result<String, ToolError> {
    let is_empty = match named {
        None | Some(Value::Null) => true,
        Some(Value::Object(named)) => named.is_empty(),
        Some(_) => false,
    };
    if !is_empty {
        return Err(ToolError::validation([
            "an agent that goes on takes no `inputs`; say all of it in `prompt`",
        ]));
    }
    prompt.filter(|prompt| !prompt.trim().is_empty()).ok_or_else(|| {
        ToolError::validation(["`prompt` is empty; say in it what more the agent is to do"])
    })
}

/// Makes the inputs of an agent of a prompt and of what is named. A prompt that is none of them is not lost: it
/// is what is said beside them.
pub(crate) fn inputs(
    agent: &Registered,
    prompt: Option<String>,
    named: Option<Value>,
) -> Result<(Map<String, Value>, Option<String>), ToolError> {
    let mut inputs = match named {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(named)) => named,
        Some(_) => return Err(ToolError::validation(["`inputs` has to be an object"])),
    };
    let Some(prompt) = prompt.filter(|prompt| !prompt.trim().is_empty()) else {
        return Ok((inputs, None));
    };
    match agent.input.single_text() {
        Some(name) if !inputs.contains_key(&name) => {
            inputs.insert(name, Value::String(prompt));
            Ok((inputs, None))
        }
        // What is said by name counts.
        Some(name) if inputs.get(&name).is_some_and(|said| *said == prompt) => Ok((inputs, None)),
        None if inputs.is_empty() && !agent.input.names().is_empty() => {
            let wanted = wanted_inputs(&agent.input);
            Err(ToolError::validation([format!(
                "`{}` takes no plain prompt: put what it needs into `inputs` ({wanted})",
                agent.name
            )]))
        }
        _ => Ok((inputs, Some(prompt))),
    }
}

/// Says that there are arguments that nobody takes, if there are: an input of the agent that is at the wrong place, or
/// a name that is nearly right.
fn check_rest(agent: &Registered, rest: &Map<String, Value>) -> Result<(), ToolError> {
    let inputs = agent.input.names();
    let wrong = |name: &String| {
        if inputs.iter().any(|(known, _)| known == name) {
            return format!("`{name}` is an input of `{}`: put it into `{INPUTS}`", agent.name);
        }
        let close = nearest(name, [AGENT_NAME, PROMPT, INPUTS, AGENT_ID, BACKGROUND]);
        let list = "`agent_name`, `prompt`, `inputs`, `agent_id`";
        match close.as_slice() {
            [] => format!("`{name}` is not a parameter; there are: {list}"),
            close => format!("`{name}` is not a parameter{}", did_you_mean(close)),
        }
    };
    let problems: Vec<String> = rest.keys().take(MAX_PROBLEMS).map(wrong).collect();
    if problems.is_empty() { Ok(()) } else { Err(ToolError::validation(problems)) }
}

/// Says that an agent has no input of that name, and which is meant.
fn unknown_input(agent: &Registered, name: &str) -> String {
    let name = cut_middle(name, MAX_NAME_BYTES).unwrap_or_else(|| name.to_owned());
    let known = agent.input.names();
    let known: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let close = nearest(&name, known.iter().copied());
    let which = match (close.as_slice(), known.as_slice()) {
        ([], []) => "; it has none".to_owned(),
        ([], known) => format!("; its inputs are: {}", known.join(", ")),
        (close, _) => did_you_mean(close),
    };
    format!("`{}` has no input `{name}`{which}", agent.name)
}

/// Holds inputs against the schema of an agent.
pub(crate) fn check(agent: &Registered, inputs: &Map<String, Value>) -> Result<(), ToolError> {
    let schema = agent.input.schema();
    let broken = |error: String| {
        ToolError::unavailable(format!("the inputs of `{}` cannot be checked: {error}", agent.name))
    };
    let validator =
        jsonschema::validator_for(&schema).map_err(|error| broken(error.to_string()))?;
    let inputs = Value::Object(inputs.clone());
    let problem = |error: jsonschema::ValidationError<'_>| -> Vec<String> {
        let place = error.instance_path().to_string();
        match (place.trim_start_matches('/'), error.kind()) {
            ("", ValidationErrorKind::AdditionalProperties { unexpected }) => {
                unexpected.iter().map(|name| unknown_input(agent, name)).collect()
            }
            ("", _) => vec![format!("inputs of `{}`: {error}", agent.name)],
            (place, _) => vec![format!("input `{place}` of `{}`: {error}", agent.name)],
        }
    };
    let problems = validator.iter_errors(&inputs).flat_map(problem);
    let mut problems: Vec<String> = problems.take(MAX_PROBLEMS).collect();
    if problems.is_empty() {
        return Ok(());
    }
    problems.push(format!("its inputs have this schema: {schema}"));
    Err(ToolError::validation(problems))
}

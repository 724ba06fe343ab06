//! An agent that nobody calls: it is the first of its run.
//!
//! It is what it would be below the main agent: its own tools, policy, place and limits, each cut down to what
//! the main agent has. What the main agent was set up with stands in the place of a caller.

use std::sync::Arc;

use convoke_core::{Budget, Cause, ErrorKind, ModelFacts, RunId, RunSettings, Status, Usage};
use convoke_tool::ToolView;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::acting::Acting;
use crate::definition::{AgentDefinition, ToolChoice};
use crate::delegate;
use crate::equip::{equipped, over, settings_of, supplier, view_of};
use crate::executor::{AgentBuilder, Task};
use crate::registry::Registered;
use crate::rights::AgentRights;
use crate::running::RunReport;
use crate::subagent::{handed, instructions};
use crate::team::Granted;

/// An agent that cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectError {
    /// Its inputs are not what it takes.
    #[error("{0}")]
    Inputs(String),
    /// Something it needs is not there.
    #[error("the agent `{agent}` cannot be started: {why}")]
    Unusable {
        /// Its name.
        agent: String,
        /// What is not there.
        why: String,
    },
}

impl AgentBuilder {
    /// Makes this the agent of a definition, for one run: what was set up until now is the most it gets. Returns
    /// what it is asked to do as well.
    pub async fn acting_as(
        self,
        agent: &Registered,
        inputs: &Map<String, Value>,
        run: &RunId,
    ) -> Result<(Self, Task), DirectError> {
        self.act(agent, inputs, run, None).await
    }

    /// Makes this the agent of a definition for a run that began when it had these rights. It may do what it
    /// might then and still may.
    pub async fn acting_on_as(
        self,
        agent: &Registered,
        inputs: &Map<String, Value>,
        run: &RunId,
        then: &AgentRights,
    ) -> Result<(Self, Task), DirectError> {
        self.act(agent, inputs, run, Some(then)).await
    }

    async fn act(
        mut self,
        agent: &Registered,
        inputs: &Map<String, Value>,
        run: &RunId,
        then: Option<&AgentRights>,
    ) -> Result<(Self, Task), DirectError> {
        let limited = then.map(|then| then.limit(agent.definition()));
        let definition = limited.as_ref().unwrap_or(agent.definition());
        check(agent, inputs)?;
        let texts = agent.template().render(inputs);
        let texts = texts.map_err(|error| DirectError::Inputs(error.to_string()))?;
        let unusable = |why: String| {
            let agent = definition.name.clone();
            DirectError::Unusable { agent, why }
        };
        let shown = self.tools.shown().clone();
        let ceiling = self.ceiling.as_ref().unwrap_or(&shown);
        let view = view_of(definition, &shown, ceiling).map_err(unusable)?;
        let tools = self.tools.view(view.clone());
        let supplier = supplier(self.team.as_ref());
        let (tools, premises) =
            equipped(definition, then, run, supplier, tools).await.map_err(unusable)?;
        self.tools = tools;
        if let Some(workplace) = premises.and_then(|premises| premises.workplace) {
            self.workplace = Some(workplace);
        }
        let judged = Acting::new(&definition.name, Arc::clone(self.tools.permission()));
        self.tools = self.tools.authorizer(Arc::new(judged));
        self.system = instructions(texts.system_prompt, self.team.as_ref(), self.tools.used());
        let budget = self.settings.budget.clone();
        self.settings = settings_of(definition, self.model.facts(), &budget, &self.settings);
        self.reflection = Some(self.settings.reflection);
        self.model_settings = over(&definition.model.settings, &self.model_settings);
        self.granted = Granted::Only(definition.agents.clone().into());
        self.ceiling = Some(view);
        self.output.clone_from(&definition.output);
        self.by_call = true;
        let prompt = texts.query.unwrap_or_else(|| handed(definition, inputs));
        Ok((self, Task::new(prompt).after(texts.initial_messages)))
    }
}

impl Registered {
    /// Makes the inputs of this agent of a prompt and of what is given by name, as a caller does. A prompt that
    /// none of its inputs takes is what is said beside them.
    pub fn inputs_and_more(
        &self,
        prompt: Option<String>,
        named: Map<String, Value>,
    ) -> Result<(Map<String, Value>, Option<String>), DirectError> {
        let made = delegate::inputs(self, prompt, Some(Value::Object(named)));
        made.map_err(|error| DirectError::Inputs(error.message))
    }
}

fn check(agent: &Registered, inputs: &Map<String, Value>) -> Result<(), DirectError> {
    delegate::check(agent, inputs).map_err(|error| match error.kind {
        ErrorKind::Validation => DirectError::Inputs(error.message),
        _ => DirectError::Unusable { agent: agent.name.clone(), why: error.message },
    })
}

impl AgentDefinition {
    /// Returns the tools it has below a caller that is shown some and could have others.
    pub fn tools_below(&self, shown: &ToolView, ceiling: &ToolView) -> Result<ToolView, String> {
        view_of(self, shown, ceiling)
    }

    /// Returns the names of tools that it asks for and a caller cannot have. With one of them, it cannot be
    /// started.
    pub fn tools_missing(&self, ceiling: &ToolView) -> Vec<String> {
        let named = self.tools.allow.iter().flatten().filter_map(|choice| match choice {
            ToolChoice::Given(_) => None,
            choice => Some(choice.name()),
        });
        let is_missing = |name: &&str| {
            !name.contains(['*', ':'])
                && ceiling.get(name).is_none()
                && !ceiling.registry().may_come(name)
        };
        named.filter(is_missing).map(str::to_owned).collect()
    }

    /// Returns what it may use below a caller that has this left.
    pub fn budget_below(&self, left: &Budget) -> Budget {
        settings_of(self, &ModelFacts::default(), left, &RunSettings::default()).budget
    }
}

impl<T> AgentDefinition<T> {
    /// Makes the inputs of a text, where the agent takes one; and of what is said by name, which counts.
    pub fn inputs_of(&self, text: Option<&str>, named: Map<String, Value>) -> Map<String, Value> {
        let mut inputs = named;
        if let (Some(text), Some(name)) = (text, self.input.single_text()) {
            inputs.entry(name).or_insert_with(|| text.into());
        }
        inputs
    }
}

/// What came of an agent, with what it gave as a type.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentReport<T> {
    /// What it gave; nothing, if it gave nothing or something of another shape.
    pub output: Option<T>,
    /// Why what it gave is not there as a type.
    pub unread: Option<String>,
    /// Everything about the run.
    pub report: RunReport,
}

impl<T> AgentReport<T> {
    /// Returns how it ended.
    pub const fn status(&self) -> Status {
        self.report.outcome.status
    }

    /// Returns why it ended.
    pub const fn cause(&self) -> Cause {
        self.report.outcome.cause
    }

    /// Returns what it used, its own agents included.
    pub const fn usage(&self) -> &Usage {
        &self.report.usage
    }
}

impl<T: DeserializeOwned> From<RunReport> for AgentReport<T> {
    fn from(report: RunReport) -> Self {
        let read = report.answer.clone().map(serde_json::from_value::<T>).transpose();
        match read {
            Ok(output) => Self { output, unread: None, report },
            Err(error) => Self { output: None, unread: Some(error.to_string()), report },
        }
    }
}

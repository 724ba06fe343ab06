//! Running an agent by itself, as the first of its run.

use std::sync::Arc;

use convoke_agent::registry::{Registered, RegistryError};
use convoke_agent::{
    AgentBuilder, AgentDefinition, AgentReport, AgentRights, AgentSetupError, DirectError, Task,
    new_run_id,
};
use convoke_core::RunId;
use convoke_core::nearest::did_you_mean;
use convoke_core::policy::RuleError;
use convoke_model::Model;
use convoke_tool::ExecutorBuilder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{AgentOff, ModelSetupError, Runtime};
use crate::origin::OriginAgent;

/// An agent that cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentCallError {
    /// There is none of that name.
    #[error("there is no agent `{name}`{}", meant(close, off))]
    Unknown {
        /// The name.
        name: String,
        /// Names that come close.
        close: Vec<String>,
        /// Those of them that are switched off.
        off: Vec<String>,
    },
    /// It cannot be called from where it was looked for.
    #[error("`{caller}` cannot call the agent `{name}`: {why}")]
    NotCallable {
        /// The path of the one that would call it.
        caller: String,
        /// The name.
        name: String,
        /// Why not.
        why: String,
    },
    /// There is one, and it is switched off.
    #[error("the agent `{name}` is switched off: {off}")]
    SwitchedOff {
        /// The name.
        name: String,
        /// What switches it off.
        off: AgentOff,
    },
    /// Its rules cannot be used.
    #[error("the rules of the agent `{agent}` cannot be used: {error}")]
    Rules {
        /// The agent.
        agent: String,
        /// Why.
        error: RuleError,
    },
    /// Its definition does not hold together.
    #[error(transparent)]
    Definition(#[from] RegistryError),
    /// What goes in is no object.
    #[error("the inputs of an agent are an object, by name")]
    NoObject,
    /// Its model cannot be asked.
    #[error(transparent)]
    Model(#[from] ModelSetupError),
    /// Its inputs are wrong, or something it needs is not there.
    #[error(transparent)]
    Direct(#[from] DirectError),
    /// It cannot be made.
    #[error(transparent)]
    Setup(#[from] AgentSetupError),
}

/// Writes names that may have been meant, and which of them are switched off.
fn meant(close: &[String], off: &[String]) -> String {
    let close: Vec<&str> = close.iter().map(String::as_str).collect();
    let off = match (close.as_slice(), off) {
        (_, []) => String::new(),
        ([_], _) => " It is switched off".to_owned(),
        (_, off) => {
            let off: Vec<String> = off.iter().map(|name| format!("`{name}`")).collect();
            let are = if off.len() == 1 { "is" } else { "are" };
            format!(" {} {are} switched off", off.join(" and "))
        }
    };
    format!("{}{off}", did_you_mean(&close))
}

impl Runtime {
    /// Runs an agent to its end, and returns what it gave as its type. It need not be one that runs can call.
    /// Where no model is given, it is the one of the definition, or the usual one.
    pub async fn agent<T: DeserializeOwned>(
        &self,
        definition: &AgentDefinition<T>,
        model: impl Into<Option<Arc<dyn Model>>>,
        inputs: impl Serialize,
    ) -> Result<AgentReport<T>, AgentCallError> {
        let agent = Registered::of(definition.clone())?;
        self.run_agent(&agent, model.into(), inputs).await
    }

    /// Runs the agent of a name to its end, and returns what it gave as a type.
    pub async fn agent_named<T: DeserializeOwned>(
        &self,
        name: &str,
        model: impl Into<Option<Arc<dyn Model>>>,
        inputs: impl Serialize,
    ) -> Result<AgentReport<T>, AgentCallError> {
        let agent = self.find_agent(name)?;
        self.run_agent(&agent, model.into(), inputs).await
    }

    /// Starts an agent for one run, with a tool pipeline that was changed, and says what it is asked to do.
    /// Runs of it can be resumed: their origin names the agent and what went in.
    pub async fn acting_as(
        &self,
        agent: &Registered,
        model: Arc<dyn Model>,
        inputs: &Map<String, Value>,
        run: &RunId,
        change: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> Result<(AgentBuilder, Task), DirectError> {
        let rights = AgentRights::of(agent.definition());
        let main = self.main_to_be(agent, model, inputs, rights, change);
        main.acting_as(agent, inputs, run).await
    }

    /// Goes on with a run of an agent: it may do what its definition let it when the run began, and still does.
    pub async fn acting_on_as(
        &self,
        agent: &Registered,
        model: Arc<dyn Model>,
        before: &OriginAgent,
        run: &RunId,
        change: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> Result<(AgentBuilder, Task), DirectError> {
        let inputs = &before.inputs;
        let Some(then) = &before.rights else {
            return self.acting_as(agent, model, inputs, run, change).await;
        };
        let main = self.main_to_be(agent, model, inputs, then.clone(), change);
        main.acting_on_as(agent, inputs, run, then).await
    }

    /// Starts the main agent that becomes another one.
    fn main_to_be(
        &self,
        agent: &Registered,
        model: Arc<dyn Model>,
        inputs: &Map<String, Value>,
        rights: AgentRights,
        change: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
    ) -> AgentBuilder {
        let mut origin = self.origin();
        let (name, inputs) = (agent.definition().name.clone(), inputs.clone());
        origin.agent = Some(OriginAgent { name, inputs, rights: Some(rights) });
        self.main_agent_with(model, change)
            .team(self.team().clone())
            .ceiling(self.ceiling().clone())
            .origin(origin.to_json())
    }

    async fn run_agent<T: DeserializeOwned>(
        &self,
        agent: &Registered,
        model: Option<Arc<dyn Model>>,
        inputs: impl Serialize,
    ) -> Result<AgentReport<T>, AgentCallError> {
        let inputs = match serde_json::to_value(inputs) {
            Ok(Value::Object(inputs)) => inputs,
            Ok(Value::String(text)) => {
                agent.definition().inputs_of(Some(text.as_str()), Map::new())
            }
            Ok(Value::Null) => Map::new(),
            _ => return Err(AgentCallError::NoObject),
        };
        let model = match model {
            Some(model) => model,
            None => self.model(agent.definition().model.model.as_deref())?,
        };
        let run = new_run_id(self.context.clock().now());
        let (builder, task) = self.acting_as(agent, model, &inputs, &run, |tools| tools).await?;
        Ok(builder.build()?.start_as(run, task).finish().await.into())
    }
}

//! Tools and agents of a runtime as an MCP server.
//!
//! A call from outside passes through the pipeline of every other call: the same policy decides, the same hooks
//! have their say, and where somebody would have to be asked, nobody can be, so the answer is no. The calls of a
//! server are kept as a run, and a call of an agent is another run of its own, where all runs are kept. No answer
//! holds a secret that the runtime knows.

mod agent;
mod record;

use std::sync::Arc;

use convoke_agent::Toolbox;
use convoke_agent::registry::Registered;
use convoke_agent::team::Team;
use convoke_mcp::serve::Service;
use convoke_model::Model;
use convoke_tool::{Tool, ToolRegistry, ToolView};

use self::agent::ServedAgent;
use self::record::RecordedTools;
use super::{AgentCallError, Runtime};

/// What the server calls itself.
const NAME: &str = "convoke";

/// Collects what of a runtime others may call, and makes a [`Service`] of it.
///
/// ```
/// use std::sync::Arc;
///
/// use convoke::mcp::serve::serve_stdio;
/// use convoke::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = Runtime::builder(std::env::temp_dir()).build()?;
/// let model: Arc<dyn Model> = Arc::new(ScriptedModel::new([Turn::text("done")]));
/// let reading = runtime.callable().select(&Selection::only(["read_file", "grep"]))?;
/// let reviewer = AgentDefinition::new("reviewer", "Reviews a change.");
///
/// let service = runtime
///     .serve()
///     .tools(reading)
///     .agent(&reviewer, model)?
///     .service()
///     .instructions("Looks at the project, and reviews it.");
/// // A client that hangs up at once; a program would pass its standard streams.
/// serve_stdio(service, tokio::io::empty(), tokio::io::sink(), Default::default()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Serving<'a> {
    runtime: &'a Runtime,
    tools: ToolView,
    agents: Vec<ServedAgent>,
}

impl Runtime {
    /// Begins an MCP server of this runtime's tools and agents, with nothing in it yet.
    pub fn serve(&self) -> Serving<'_> {
        let nothing = ToolView::of(ToolRegistry::new());
        Serving { runtime: self, tools: nothing, agents: Vec::new() }
    }
}

impl Serving<'_> {
    /// Serves these tools, in place of those before.
    pub fn tools(mut self, tools: ToolView) -> Self {
        self.tools = tools;
        self
    }

    /// Serves an agent as a tool whose arguments are its inputs. Each call of it is a run. Without a model, it
    /// is the one of the definition, or the usual one.
    pub fn agent<T>(
        self,
        definition: &convoke_agent::AgentDefinition<T>,
        model: impl Into<Option<Arc<dyn Model>>>,
    ) -> Result<Self, AgentCallError>
    where
        convoke_agent::AgentDefinition<T>: Clone,
    {
        let agent = Arc::new(Registered::of(definition.clone())?);
        self.registered(agent, model.into())
    }

    /// Serves the agent of a name.
    pub fn agent_named(
        self,
        name: &str,
        model: impl Into<Option<Arc<dyn Model>>>,
    ) -> Result<Self, AgentCallError> {
        let agent = self.runtime.find_agent(name)?;
        self.registered(agent, model.into())
    }

    /// Serves all tools and agents of a toolbox.
    pub fn toolbox(
        self,
        toolbox: &Toolbox,
        model: impl Into<Option<Arc<dyn Model>>>,
    ) -> Result<Self, AgentCallError> {
        let model = model.into();
        let mut serving = self.tools(toolbox.tools().clone());
        for agent in toolbox.team().into_iter().flat_map(Team::offered) {
            serving = serving.registered(agent, model.clone())?;
        }
        Ok(serving)
    }

    fn registered(
        mut self,
        agent: Arc<Registered>,
        model: Option<Arc<dyn Model>>,
    ) -> Result<Self, AgentCallError> {
        let model = match model {
            Some(model) => model,
            None => self.runtime.model(agent.definition().model.model.as_deref())?,
        };
        self.agents.push(ServedAgent::new(agent, model, self.runtime.clone()));
        Ok(self)
    }

    /// Makes the service. A tool and an agent of one name: the tool counts. Its calls are kept as a run, if runs
    /// are. When tools of MCP servers come and go, its clients are told; that they do is up to
    /// [`McpServers::attach`](super::McpServers::attach).
    pub fn service(self) -> Service {
        let Self { runtime, tools, agents } = self;
        let agents = agents.into_iter().filter(|agent| tools.get(&agent.spec().name).is_none());
        let agents: Vec<Arc<dyn Tool>> =
            agents.map(|agent| -> Arc<dyn Tool> { Arc::new(agent) }).collect();
        let view = tools.and(agents);
        let clock = runtime.context().clock();
        let executors = runtime.executor().view(view);
        let journals = runtime.journals().cloned();
        let offer = RecordedTools::new(executors, journals, runtime.origin(), runtime.secrets());
        Service::new(NAME, env!("CARGO_PKG_VERSION"), Arc::new(offer)).clock(Arc::clone(clock))
    }
}

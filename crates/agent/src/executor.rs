//! What the runs of one agent share, and how one starts.

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

use convoke_core::run::{Budget, COMPLETE_TASK, OutputSpec};
use convoke_core::{
    Declaration, Ending, EventBody, Message, Part, ReflectionMode, Run, RunId, RunSettings,
    Secrets, Strategy, Timestamp, USE_TOOL,
};
use convoke_model::{Model, Settings};
use convoke_tool::catalogue::TOOL_SEARCH;
use convoke_tool::{
    Deferral, EventSink, ExecutorBuilder, Grants, NullSink, Recorder, SteadyClock, ToolContext,
    ToolView,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::background::BACKGROUND_AGENTS;
use crate::completion::Completion;
use crate::delegate::DELEGATE_TO_AGENT;
use crate::desk::Desk;
use crate::drive::Driver;
use crate::keeper::{Keeper, OneSink, Place, Refusing};
use crate::member::Member;
use crate::offer::{ManyTools, Offer};
use crate::prompts;
use crate::registry::Registered;
use crate::running::{Control, Rest, Running, StopCause, shown};
use crate::seat::Seat;
use crate::state::RunState;
use crate::team::{Granted, Team};
use crate::tree::{Family, Tree};
use crate::workplace::Workplace;

/// What an agent is asked to do.
#[derive(Clone, Debug, Default)]
pub struct Task {
    pub(crate) prompt: String,
    pub(crate) attachments: Vec<Part>,
    history: Vec<Message>,
}

impl Task {
    /// Makes a task of words.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), ..Self::default() }
    }

    /// Adds an image, a document or a text that comes before the prompt.
    #[must_use]
    pub fn attach(mut self, part: Part) -> Self {
        self.attachments.push(part);
        self
    }

    /// Says something more after the prompt.
    #[must_use]
    pub fn and(mut self, more: &str) -> Self {
        self.prompt = format!("{}\n\n{more}", self.prompt);
        self
    }

    /// Begins with a conversation: examples, or what was said before.
    #[must_use]
    pub fn after(mut self, history: Vec<Message>) -> Self {
        self.history = history;
        self
    }
}

impl<T: Into<String>> From<T> for Task {
    fn from(prompt: T) -> Self {
        Self::new(prompt)
    }
}

/// An agent that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentSetupError {
    /// The shape of its output is not a JSON Schema.
    #[error("the schema of the output cannot be used: {0}")]
    OutputSchema(String),
    /// A tool has the name by which runs complete their tasks.
    #[error("a tool is called `complete_task`, which is how a run says that it is done")]
    ReservedName,
    /// There is a money limit, and nobody knows what the model costs.
    #[error("there is a limit of {limit} but no price is known for `{model}`")]
    UnknownPrice {
        /// The model.
        model: String,
        /// The limit.
        limit: String,
    },
}

/// Starts the runs of one agent. Cheap to clone.
///
/// ```
/// use convoke_agent::AgentExecutor;
/// use convoke_model::scripted::{ScriptedModel, Turn};
/// use convoke_tool::{ToolContext, ToolExecutor, ToolRegistry, ToolView};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new([Turn::text("Hello!")]);
/// let view = ToolView::of(ToolRegistry::new());
/// let tools = ToolExecutor::builder(view, ToolContext::builder("greeting").build());
/// let agent = AgentExecutor::builder(model, tools).build()?;
///
/// let report = agent.start("Say hello.").finish().await;
/// assert_eq!(report.text().as_deref(), Some("Hello!"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AgentExecutor(Arc<Agent>);

/// The parts of an agent.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) model_settings: Settings,
    pub(crate) completion: Arc<Completion>,
    pub(crate) settings: RunSettings,
    pub(crate) tools: ExecutorBuilder,
    pub(crate) context: ToolContext,
    system: Arc<str>,
    /// How it says that it is done, where that is a call.
    pub(crate) completes: Option<Declaration>,
    /// The agents it may call, and which of them.
    pub(crate) team: Option<Team>,
    pub(crate) granted: Granted,
    /// What is told of many tools.
    pub(crate) many_tools: Option<ManyTools>,
    /// What its model is told of, as long as that stays the same.
    pub(crate) offer: Mutex<Option<Arc<Offer>>>,
    /// The tools that agents it calls may have.
    pub(crate) ceiling: ToolView,
    pub(crate) origin: Value,
    pub(crate) secrets: Secrets,
    keeper: Arc<dyn Keeper>,
    pub(crate) workplace: Option<Arc<dyn Workplace>>,
    cancellation: CancellationToken,
}

impl AgentExecutor {
    /// Starts an agent with this model and the tools of this pipeline.
    pub fn builder(model: impl Model + 'static, tools: ExecutorBuilder) -> AgentBuilder {
        Self::with_model(Arc::new(model), tools)
    }

    /// Starts an agent with a model that others use too.
    pub fn with_model(model: Arc<dyn Model>, tools: ExecutorBuilder) -> AgentBuilder {
        AgentBuilder {
            model,
            tools,
            model_settings: Settings::UNSET,
            system: prompts::SYSTEM.trim_end().to_owned(),
            settings: RunSettings::default(),
            reflection: None,
            output: None,
            by_call: false,
            team: None,
            granted: Granted::All,
            many_tools: None,
            ceiling: None,
            origin: Value::Null,
            secrets: Secrets::default(),
            keeper: Arc::new(OneSink(Arc::new(NullSink))),
            workplace: None,
            cancellation: CancellationToken::new(),
        }
    }

    /// Starts a run. A place for its events is made at once; nothing else happens until the stream is
    /// polled.
    pub fn start(&self, task: impl Into<Task>) -> Running {
        self.start_as(new_run_id(self.0.context.clock().now()), task)
    }

    /// Starts a run under this id.
    pub fn start_as(&self, id: RunId, task: impl Into<Task>) -> Running {
        let agent = Arc::clone(&self.0);
        let task = task.into();
        let refusing = |error| Place::new(Arc::new(Refusing(error)));
        let place = agent.keeper.keep(&id).unwrap_or_else(refusing);
        let state = Arc::new(RunState::of(Run::new(id)));
        let first = Self::started(&agent, Arc::clone(&agent.system), &[], task);
        Self::drive(agent, state, Family::default(), place, (0, Timestamp::default()), first)
    }

    /// Returns the events that a run begins with.
    pub(crate) fn started(
        agent: &Agent,
        system: Arc<str>,
        lineage: &[String],
        task: Task,
    ) -> Vec<EventBody> {
        let Task { prompt, attachments, history } = task;
        let offer = agent.offer(lineage);
        let tools = Arc::clone(&offer.declarations);
        let started = EventBody::RunStarted {
            task: agent.context.task().clone(),
            model: agent.model.name().to_string(),
            prompt,
            attachments,
            history,
            system,
            tools,
            settings: agent.settings.clone(),
            origin: agent.origin.clone(),
        };
        let prepared = agent.workplace.as_ref().map(|workplace| EventBody::WorkspacePrepared {
            place: workplace.place(),
            notes: workplace.notes(),
        });
        let warnings =
            offer.left_out.iter().map(|name| EventBody::Warning { message: why_left_out(name) });
        [started].into_iter().chain(prepared).chain(warnings).collect()
    }

    pub(crate) const fn agent(&self) -> &Arc<Agent> {
        &self.0
    }

    /// Makes a run go, beginning with these events. The last event it had recorded before has the number `seq` and the
    /// time `last`.
    pub(crate) fn drive(
        agent: Arc<Agent>,
        state: Arc<RunState>,
        family: Family,
        place: Place,
        (seq, last): (u64, Timestamp),
        first: Vec<EventBody>,
    ) -> Running {
        let id = state.lock().id().clone();
        // A clock that was set back since the last event must not make the journal go back.
        let clock = Arc::new(SteadyClock::starting_at(agent.context.clock().now().max(last)));
        let (sink, reader) = shown(Arc::clone(&place.sink));
        let recorder =
            Recorder::new(id, Arc::new(sink), clock).after(seq).hiding(agent.secrets.clone());
        let (handle, control) = Control::new(&agent.cancellation);
        let granted = [state.lock().granted().to_vec(), family.granted()].concat();
        let limits = agent.team.as_ref().map(|team| *team.limits()).unwrap_or_default();
        let (locks, grants) = (agent.tools.path_locks().clone(), Grants::new(granted));
        let kept = (place.inbox.clone(), place.replaced.clone());
        let tree = Arc::new(Tree::new(limits, locks, grants, kept, family));
        tree.open_account(recorder.run(), None, &agent.settings.budget);
        let origin = agent.origin.clone();
        let rest = Rest {
            state: Arc::clone(&state),
            tree: Arc::clone(&tree),
            place,
            recorder: recorder.clone(),
            origin,
        };
        let driver =
            Self::driver(agent, state, recorder, control, (tree, [].into(), Seat::always()));
        Running::new(driver.run(first), reader, handle, rest)
    }

    /// Makes what drives a run at this place of its tree.
    pub(crate) fn driver(
        agent: Arc<Agent>,
        state: Arc<RunState>,
        recorder: Recorder,
        control: Control,
        (tree, lineage, seat): (Arc<Tree>, Arc<[String]>, Seat),
    ) -> Driver {
        let recorder = recorder.observed_by(state.clone());
        let control = Arc::new(control);
        let offer = agent.offer(&lineage);
        let member = Arc::new(Member {
            tree: Arc::clone(&tree),
            agent: Arc::clone(&agent),
            recorder: recorder.clone(),
            state: Arc::clone(&state),
            control: Arc::clone(&control),
            lineage,
            seat,
            background: Arc::default(),
            below: StopCause::below(control.cause()),
        });
        let stop_tools = CancellationToken::new();
        let deferral = Deferral::of_a_run();
        let context = agent.context.for_run(stop_tools.clone()).deferring(deferral.clone());
        let context = context.with_extension(Arc::clone(&member));
        let context = context.guarding(state.seen_files(tree.replaced.clone()));
        let mut tools = agent.tools.clone();
        if let Some(view) = &offer.view {
            tools = tools.view(view.clone());
        }
        let tools = tools
            .context(context)
            .recorder(recorder.clone())
            .locks(tree.locks.clone())
            .granted(tree.grants.clone())
            .asking_through(|approver| Desk::new(approver, tree.inbox.clone(), Arc::clone(&state)))
            .build();
        let completion = agent.completion_of(&state);
        Driver {
            agent,
            state,
            completion,
            recorder,
            tools,
            stop_tools,
            deferral,
            control,
            broken: AtomicU32::new(0),
            changed: Mutex::default(),
            member,
            caller: None,
        }
    }
}

impl Agent {
    /// Finds an agent by its name.
    pub(crate) fn registered(&self, name: &str) -> Option<Arc<Registered>> {
        self.team.as_ref()?.registry().get(name)
    }

    /// Returns what the answers of a run are held against: what it was started with, also where this agent
    /// would want something else.
    fn completion_of(&self, state: &RunState) -> Arc<Completion> {
        let run = state.lock();
        let wanted = &run.settings().output;
        if run.task().is_none() || wanted.as_ref() == self.completion.spec() {
            return Arc::clone(&self.completion);
        }
        // It was a schema when the run started.
        let made = Completion::new(wanted.clone()).map(Arc::new);
        made.unwrap_or_else(|_| Arc::clone(&self.completion))
    }
}

/// Makes an [`AgentExecutor`].
#[derive(Debug)]
#[must_use]
pub struct AgentBuilder {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) tools: ExecutorBuilder,
    pub(crate) model_settings: Settings,
    pub(crate) system: String,
    pub(crate) settings: RunSettings,
    pub(crate) reflection: Option<ReflectionMode>,
    pub(crate) output: Option<OutputSpec>,
    pub(crate) by_call: bool,
    pub(crate) team: Option<Team>,
    pub(crate) granted: Granted,
    pub(crate) many_tools: Option<ManyTools>,
    pub(crate) ceiling: Option<ToolView>,
    pub(crate) origin: Value,
    pub(crate) secrets: Secrets,
    pub(crate) keeper: Arc<dyn Keeper>,
    pub(crate) workplace: Option<Arc<dyn Workplace>>,
    pub(crate) cancellation: CancellationToken,
}

impl AgentBuilder {
    /// Asks the model in this way.
    pub fn model_settings(mut self, settings: Settings) -> Self {
        self.model_settings = settings;
        self
    }

    /// Gives it these standing instructions in place of the usual ones.
    pub fn system(mut self, system: impl Into<String>) -> Self {
        self.system = system.into();
        self
    }

    /// Takes all settings of a run at once; what is known about the model is kept.
    pub fn run_settings(mut self, settings: RunSettings) -> Self {
        self.reflection = Some(settings.reflection);
        self.settings = settings;
        self
    }

    /// Limits what a run may use.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.settings.budget = budget;
        self
    }

    /// Goes about its tasks in this way. Planning looks back after failures, unless
    /// [`reflection`](Self::reflection) says otherwise.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.settings.strategy = strategy;
        self
    }

    /// Looks back at these moments.
    pub fn reflection(mut self, mode: ReflectionMode) -> Self {
        self.reflection = Some(mode);
        self
    }

    /// Tells the model after so many repetitions, and stops the run if it goes on.
    pub fn max_repeats(mut self, times: u32) -> Self {
        self.settings.max_repeats = times;
        self
    }

    /// Sums up the conversation when it fills this much of the model's window.
    pub fn compact_at_percent(mut self, percent: u8) -> Self {
        self.settings.compact_at_percent = percent;
        self
    }

    /// Wants an answer of this shape.
    pub fn output(mut self, output: OutputSpec) -> Self {
        self.output = Some(output);
        self
    }

    /// Ends by a call of `complete_task` only, not by an answer in words.
    pub fn completes_by_call(mut self) -> Self {
        self.by_call = true;
        self
    }

    /// Lets it call the agents of this team.
    pub fn team(mut self, team: Team) -> Self {
        self.team = Some(team);
        self
    }

    /// Lets it call these agents of a team.
    pub(crate) fn calling(mut self, team: Team, granted: Granted) -> Self {
        (self.team, self.granted) = (Some(team), granted);
        self
    }

    /// Lets it look for tools, where there are many or some come later.
    pub fn many_tools(mut self, many: Option<ManyTools>) -> Self {
        self.many_tools = many;
        self
    }

    /// Lets agents that it calls have any of these tools, where they ask for them by name. Without this, they
    /// can have those it has itself.
    pub fn ceiling(mut self, tools: ToolView) -> Self {
        self.ceiling = Some(tools);
        self
    }

    /// Records the events of all runs here.
    pub fn sink(self, sink: Arc<dyn EventSink>) -> Self {
        self.keeper(Arc::new(OneSink(sink)))
    }

    /// Records the events of each run in a place of its own.
    pub fn keeper(mut self, keeper: Arc<dyn Keeper>) -> Self {
        self.keeper = keeper;
        self
    }

    /// Works in a place of its own, and tells at the end of each run what it changed there.
    pub fn workplace(mut self, workplace: Arc<dyn Workplace>) -> Self {
        self.workplace = Some(workplace);
        self
    }

    /// Puts names in the place of these secrets in everything that is recorded, shown or said to the
    /// model.
    pub fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Keeps this with each run, for whoever has to make the same agent again to resume it.
    pub fn origin(mut self, origin: Value) -> Self {
        self.origin = origin;
        self
    }

    /// Stops all runs when this token says so.
    pub fn cancellation(mut self, token: CancellationToken) -> Self {
        self.cancellation = token;
        self
    }

    /// Makes the agent.
    pub fn build(self) -> Result<AgentExecutor, AgentSetupError> {
        let Self { model, tools, model_settings, system, mut settings, output, by_call, .. } = self;
        settings.model = *model.facts();
        settings.reflection =
            self.reflection.unwrap_or_else(|| ReflectionMode::default_for(settings.strategy));
        if let (Some(limit), None) = (settings.budget.cost, settings.model.price) {
            return Err(AgentSetupError::UnknownPrice {
                model: model.name().to_string(),
                limit: limit.to_string(),
            });
        }
        let has_tools = !tools.shown().is_empty()
            || self.many_tools.as_ref().is_some_and(|many| many.expects(tools.shown()));
        settings.ending = match &output {
            _ if by_call => Ending::CompleteTask,
            None => Ending::Text,
            // A provider can keep to a schema, but not while it may also call tools.
            Some(_) if !has_tools => Ending::Structured,
            Some(_) => Ending::StructuredOrCall,
        };
        settings.output.clone_from(&output);
        let completion = Completion::new(output).map_err(AgentSetupError::OutputSchema)?;
        let by_call = matches!(settings.ending, Ending::CompleteTask | Ending::StructuredOrCall);
        if by_call && tools.shown().get(COMPLETE_TASK).is_some() {
            return Err(AgentSetupError::ReservedName);
        }
        let completes = by_call.then(|| completion.declaration());
        Ok(AgentExecutor(Arc::new(Agent {
            model,
            model_settings,
            completion: Arc::new(completion),
            context: tools.used().clone(),
            ceiling: self.ceiling.unwrap_or_else(|| tools.shown().clone()),
            tools,
            system: system.into(),
            completes,
            team: self.team,
            granted: self.granted,
            many_tools: self.many_tools,
            offer: Mutex::default(),
            settings,
            origin: self.origin,
            secrets: self.secrets,
            keeper: self.keeper,
            workplace: self.workplace,
            cancellation: self.cancellation,
        })))
    }
}

/// Says why something of this name is not offered to a model, and what to do about it.
fn why_left_out(name: &str) -> String {
    match name {
        DELEGATE_TO_AGENT => {
            format!(
                "agents cannot be called: a tool is called `{name}`, which is how they are. Rename it"
            )
        }
        BACKGROUND_AGENTS => format!(
            "agents in the background cannot be looked after: a tool is called `{name}`, which is how they \
             are. Rename it"
        ),
        TOOL_SEARCH | USE_TOOL => format!(
            "tools that are not listed cannot be found: a tool is called `{name}`, which is how they are. \
             Rename it"
        ),
        _ => format!(
            "the agent `{name}` is not offered to the model: a tool has that name. Rename it, or let agents \
             be reached by `delegate`"
        ),
    }
}

/// Makes up an id that no other run has. Ids of later runs come later in the alphabet.
pub fn new_run_id(now: Timestamp) -> RunId {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let letters = |number: u64, count: u32| {
        (0..count).rev().map(move |place| {
            let index = usize::try_from(number >> (5 * place) & 31).unwrap_or_default();
            LETTERS.get(index).map_or('0', |letter| char::from(*letter))
        })
    };
    let seconds = u64::try_from(now.as_millis() / 1_000).unwrap_or_default();
    RunId::new(letters(seconds, 7).chain(letters(fastrand::u64(..), 8)).collect::<String>())
}

//! Makes an agent ready to work: how it begins, its texts, its model. What it gets of its caller's is in `equip`.

use std::sync::Arc;

use convoke_core::count::count;
use convoke_core::run::Budget;
use convoke_core::{
    CallId, Cause, EventBody, Message, Millis, Outcome, Part, Role, Run, RunId, Status, ToolError,
};
use convoke_model::Model;
use convoke_tool::ToolContext;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::definition::{AgentDefinition, Inherit, InputConfig};
use crate::drive::Driver;
use crate::equip::{equipped, over, settings_of, supplier, view_of};
use crate::executor::{Agent, AgentExecutor, Task};
use crate::member::Member;
use crate::prompts;
use crate::registry::Registered;
use crate::resume::taken_up;
use crate::rights::AgentRights;
use crate::running::{Control, RunHandle, StopCause};
use crate::seat::Seat;
use crate::state::RunState;
use crate::team::{Granted, Team};
use crate::tree::{ASKED_BY, Claim, MAX_COUNSELS, RIGHTS};

/// What more an agent is to do is recorded under this name. So is what was said beside its inputs, where that cannot
/// be taken for one of them.
const MORE: &str = "prompt";

/// How much is said about the file of an agent where it is called.
const MAX_SAID: usize = 5;

/// How much of a call's id is part of an agent's.
const MAX_CALL: usize = 48;

/// What an agent is called for.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) agent: Arc<Registered>,
    pub(crate) inputs: Map<String, Value>,
    pub(crate) background: bool,
    /// Goes on with an agent that ended.
    pub(crate) more: Option<More>,
    /// What was said beside its inputs.
    pub(crate) note: Option<String>,
    /// The server that it answers, if it is no agent that a model called.
    pub(crate) asked_by: Option<String>,
}

/// Something more for an agent that ended.
#[derive(Clone, Debug)]
pub(crate) struct More {
    pub(crate) child: RunId,
    pub(crate) message: String,
}

impl Order {
    /// Calls an agent anew.
    pub(crate) fn new(agent: Arc<Registered>, inputs: Map<String, Value>) -> Self {
        let background = agent.definition().run.background;
        Self { agent, inputs, background, more: None, note: None, asked_by: None }
    }

    /// Takes up an agent that worked in the background: with what it was given, or was to do then.
    pub(crate) fn again(
        agent: Arc<Registered>,
        child: &RunId,
        mut given: Map<String, Value>,
    ) -> Self {
        let said = given.get(MORE).and_then(Value::as_str).map(str::to_owned);
        let note = said.clone().filter(|_| is_no_input(&agent, MORE));
        if note.is_some() {
            given.remove(MORE);
        }
        let more = Some(More { child: child.clone(), message: said.unwrap_or_default() });
        Self { agent, inputs: given, background: true, more, note, asked_by: None }
    }

    /// Returns what is recorded of it.
    fn given(&self) -> Map<String, Value> {
        if let Some(More { message, .. }) = &self.more {
            return Map::from_iter([(MORE.to_owned(), message.as_str().into())]);
        }
        let mut given = self.inputs.clone();
        if let Some(note) = self.note.as_ref().filter(|_| is_no_input(&self.agent, MORE)) {
            given.insert(MORE.to_owned(), note.as_str().into());
        }
        given
    }
}

/// Tells whether nothing that goes into an agent can have this name.
fn is_no_input(agent: &Registered, name: &str) -> bool {
    matches!(agent.input, InputConfig::Named(_)) && !agent.input.has(name)
}

/// How an agent begins.
#[derive(Debug)]
pub(crate) enum Begin {
    /// It was never called before.
    New(RunId),
    /// It was called, and had not begun when the process was lost.
    Unstarted(RunId),
    /// It had begun.
    Resume(RunId, Arc<RunState>),
    /// It had ended, and has something more to do; whether that was recorded before.
    More(RunId, Arc<RunState>, String, bool),
    /// It has ended.
    Over(RunId, Arc<RunState>),
}

impl Begin {
    pub(crate) const fn child(&self) -> &RunId {
        match self {
            Self::New(child)
            | Self::Unstarted(child)
            | Self::Resume(child, _)
            | Self::More(child, ..)
            | Self::Over(child, _) => child,
        }
    }
}

/// An agent that is about to work.
pub(crate) struct Prepared {
    pub(crate) driver: Driver,
    pub(crate) first: Vec<EventBody>,
    pub(crate) handle: RunHandle,
}

/// Stops an agent: when, and why.
pub(crate) type Stop<'a> = (&'a CancellationToken, StopCause);

impl Member {
    /// Says how an agent begins that this call was not made for before.
    pub(crate) fn begin(&self, order: &Order, call: &CallId) -> Result<(Begin, Claim), ToolError> {
        if let Some(More { child, message }) = &order.more {
            let child = &self.child_of(child.as_str());
            self.check_child(child)?;
            self.check_name(child, &order.agent.name)?;
            // What its caller does not know yet is not over: its end would be taken for that of what comes now.
            let is_over = |outcome: &Outcome| outcome.status != Status::Parked;
            let is_known = {
                let run = self.state.lock();
                let known = run.children().get(child).and_then(|known| known.outcome.as_ref());
                known.is_some_and(is_over)
            };
            let ended = self
                .tree
                .run(child)
                .filter(|state| is_known && state.lock().outcome().is_some_and(is_over));
            let id = self.short(child);
            let busy =
                || ToolError::unavailable(format!("the agent `{id}` works; wait for it first"));
            let (state, claim) = ended.zip(self.tree.claim(child)).ok_or_else(busy)?;
            return Ok((Begin::More(child.clone(), state, message.clone(), false), claim));
        }
        let name = &order.agent.name;
        let limits = &self.tree.limits;
        if self.lineage.len() >= limits.max_depth as usize {
            let depth = limits.max_depth;
            let message = format!(
                "agents may call agents {depth} levels deep, and this is the last; do it yourself"
            );
            return Err(ToolError::permission(message));
        }
        if self.lineage.contains(name) {
            let path = self.recorder.agent();
            let message =
                format!("`{name}` is at work above you already ({path}); it cannot be called");
            return Err(ToolError::permission(message));
        }
        if !self.tree.bear() {
            let most = count(u64::from(limits.max_agents), "agent");
            let message = format!(
                "this run has called {most}, which is as many as it may; do it yourself, or continue one \
                 that has ended by its `agent_id`"
            );
            return Err(ToolError::permission(message));
        }
        let (child, claim) = self.name_child(call, limits.max_agents)?;
        Ok((Begin::New(child), claim))
    }

    /// Says how an answer for a server begins. It is no agent that somebody called, so how many of those there
    /// may be, and how far down, does not matter to it.
    pub(crate) fn begin_counsel(&self, call: &CallId) -> Result<(Begin, Claim), ToolError> {
        let (child, claim) = self.name_child(call, MAX_COUNSELS)?;
        if !self.tree.counsel(&child) {
            let message =
                format!("this run has answered servers {MAX_COUNSELS} times, as often as it may");
            return Err(ToolError::permission(message));
        }
        Ok((Begin::New(child), claim))
    }

    /// Makes up the id of an agent: that of its caller and the call. What is done again from a record has the
    /// same ids, and a model that is told about them is asked the same.
    fn name_child(&self, call: &CallId, most: u32) -> Result<(RunId, Claim), ToolError> {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let call: String = call.as_str().chars().map(plain).take(MAX_CALL).collect();
        let first = format!("{}-{call}", self.recorder.run());
        let others = (2..=most).map(|number| format!("{first}-{number}"));
        let mut names = std::iter::once(first.clone()).chain(others).map(RunId::new);
        let free = names.find_map(|id| self.tree.claim_new(&id).map(|claim| (id, claim)));
        free.ok_or_else(|| ToolError::unavailable("there is no id left for another agent"))
    }

    /// Says how an agent goes on that the same call began with, in a process that was lost.
    pub(crate) fn find_again(&self, child: RunId, order: &Order) -> Begin {
        let Some(state) = self.tree.run(&child) else { return Begin::Unstarted(child) };
        let (begun, ended) = {
            let run = state.lock();
            let ended = run.outcome().is_some_and(|outcome| !goes_on(outcome));
            (run.task().is_some(), ended)
        };
        match &order.more {
            Some(More { message, .. }) if begun && self.tree.waits_for_more(&child) => {
                Begin::More(child, state, message.clone(), true)
            }
            _ if !begun => Begin::Unstarted(child),
            _ if ended => Begin::Over(child, state),
            _ => Begin::Resume(child, state),
        }
    }

    /// Makes an agent ready, and records that it begins.
    pub(crate) async fn prepare(
        &self,
        order: &Order,
        begin: Begin,
        call: &CallId,
        stop: Stop<'_>,
    ) -> Result<Prepared, ToolError> {
        let child = begin.child().clone();
        let definition = order.agent.definition();
        let then = self.rights_of(&child, definition)?;
        let begins_anew = match &begin {
            Begin::New(_) | Begin::Unstarted(_) => false,
            Begin::Resume(_, state) | Begin::Over(_, state) => state.lock().begins_anew(false),
            Begin::More(_, state, ..) => state.lock().begins_anew(true),
        };
        let made = self.agent_of(order, (&child, begins_anew), then.as_ref()).await?;
        let agent = Arc::clone(made.agent());
        let spawned = |continued| EventBody::AgentSpawned {
            child: child.clone(),
            name: definition.name.clone(),
            inputs: order.given(),
            background: order.background,
            continued,
        };
        let (state, first, announce) = match begin {
            Begin::New(_) | Begin::Unstarted(_) => {
                let state = Arc::new(RunState::of(Run::new(child.clone())));
                let mut first = self.started(&agent, order)?;
                first.extend(self.said_of_the_file(&order.agent));
                (state, first, matches!(begin, Begin::New(_)).then(|| spawned(false)))
            }
            Begin::Resume(_, state) | Begin::Over(_, state) => {
                let first = resumption(&state, &agent, (then.as_ref(), definition), None);
                (state, first, None)
            }
            Begin::More(_, state, message, recorded) => {
                let message = Some(Message::text(Role::User, message));
                let first = resumption(&state, &agent, (then.as_ref(), definition), message);
                (state, first, (!recorded).then(|| spawned(true)))
            }
        };
        if let Some(spawned) = announce {
            self.tree.note_call(self.recorder.run(), call, &child);
            let recorded = self.recorder.record(Some(call), spawned);
            recorded.map_err(|error| ToolError::unavailable(error.to_string()))?;
        }
        self.tree.keep(&child, Arc::clone(&state), &agent.origin);
        let (handle, control) = Control::below(stop);
        let recorder = self.recorder.child(child.clone(), &definition.name);
        let lineage: Arc<[String]> =
            self.lineage.iter().cloned().chain([definition.name.clone()]).collect();
        self.open_account(&child, begins_anew, &agent.settings.budget);
        let seat = Seat::among(Arc::clone(&self.tree.seats));
        let place = (Arc::clone(&self.tree), lineage, seat);
        let driver = AgentExecutor::driver(agent, state, recorder, control, place);
        Ok(Prepared { driver, first, handle })
    }

    /// Says what there is to know about the file of an agent, once in a tree.
    fn said_of_the_file(&self, agent: &Registered) -> Vec<EventBody> {
        let warnings = agent.warnings();
        if warnings.is_empty() || !self.tree.is_first_of(&agent.name) {
            return Vec::new();
        }
        let said = warnings.iter().take(MAX_SAID).cloned();
        let more = warnings.len().saturating_sub(MAX_SAID) as u64;
        let more = (more > 0).then(|| {
            format!("{} about the file of the agent `{}`", count(more, "more warning"), agent.name)
        });
        said.chain(more).map(|message| EventBody::Warning { message }).collect()
    }

    /// Returns what an agent may do by its definition as it was when it began, where that is recorded.
    fn rights_of(
        &self,
        child: &RunId,
        definition: &AgentDefinition,
    ) -> Result<Option<AgentRights>, ToolError> {
        let recorded = self.tree.rights(child);
        let read = recorded.as_ref().map(AgentRights::deserialize).transpose();
        read.map_err(|error| {
            ToolError::unavailable(format!(
                "the agent `{}` cannot go on: what it might do when it began cannot be read ({error})",
                definition.name
            ))
        })
    }

    /// Opens the account of an agent. One that begins anew after its end makes its calls anew.
    fn open_account(&self, child: &RunId, begins_anew: bool, budget: &Budget) {
        self.tree.open_account(child, Some(self.recorder.run()), budget);
        if begins_anew {
            self.tree.renew_calls(child);
        }
    }

    /// Returns the events that a new agent begins with.
    fn started(&self, agent: &Arc<Agent>, order: &Order) -> Result<Vec<EventBody>, ToolError> {
        let texts = order.agent.template().render(&order.inputs);
        let texts = texts.map_err(|error| ToolError::validation(vec![error.to_string()]))?;
        let definition = order.agent.definition();
        let mut prompt = texts.query.unwrap_or_else(|| handed(definition, &order.inputs));
        if let Some(note) = &order.note {
            prompt = format!("{prompt}\n\n{note}");
        }
        let mut history = texts.initial_messages;
        match definition.run.context {
            Inherit::Fresh => {}
            Inherit::Brief => prompt = format!("{}\n\n{prompt}", self.in_short()),
            Inherit::Fork => history = [self.conversation(), history].concat(),
        }
        let lineage: Vec<String> =
            self.lineage.iter().cloned().chain([definition.name.clone()]).collect();
        let mut system = match &order.asked_by {
            Some(_) => texts.system_prompt.unwrap_or_default().into(),
            None => self.system(definition, texts.system_prompt, &agent.context),
        };
        if !definition.agents.is_empty() && lineage.len() >= self.tree.limits.max_depth as usize {
            system = format!("{system}\n\n{}", prompts::last_level()).into();
        }
        let task = Task::new(prompt).after(history);
        Ok(AgentExecutor::started(agent, system, &lineage, task))
    }

    /// Returns an agent's standing instructions, with how it hands over its result.
    fn system(
        &self,
        definition: &AgentDefinition,
        own: Option<String>,
        place: &ToolContext,
    ) -> Arc<str> {
        let forks = definition.run.context == Inherit::Fork;
        let own = match own {
            None if forks => Some(self.state.lock().system().to_owned()),
            own => own,
        };
        let team = self.agent.team.as_ref().filter(|_| !forks);
        instructions(own, team, place).into()
    }

    /// Returns what this run works on and what it said last, for an agent that is to know.
    fn in_short(&self) -> String {
        let run = self.state.lock();
        let task = run.task().map(|task| task.goal.clone()).unwrap_or_default();
        let said =
            run.messages().iter().rev().find(|message| {
                message.role == Role::Assistant && !message.words().trim().is_empty()
            });
        prompts::brief(&task, &said.map(Message::words).unwrap_or_default())
    }

    /// Returns this run's conversation up to the calls that are under way: a call without its answer cannot
    /// be shown to a model.
    fn conversation(&self) -> Vec<Message> {
        let run = self.state.lock();
        let mut messages = run.messages().to_vec();
        let has_calls = |message: &Message| message.calls().next().is_some();
        if messages.last().is_some_and(|last| last.role == Role::Assistant && has_calls(last))
            && let Some(last) = messages.last_mut()
        {
            last.parts.retain(|part| matches!(part, Part::Text { .. }));
            if last.parts.is_empty() {
                messages.pop();
            }
        }
        messages
    }

    /// An agent that goes on is held against all that it ever used. What its caller has counted of that is not
    /// taken from it twice, and neither is the time that it worked for the same call.
    fn add_what_is_counted(
        &self,
        left: &mut Budget,
        caller: &Run,
        (child, begins_anew): (&RunId, bool),
    ) {
        let counted = caller.children().get(child).map(|known| known.counted).unwrap_or_default();
        let tokens = counted.input_tokens.saturating_add(counted.output_tokens);
        left.tokens = left.tokens.map(|left| left.saturating_add(tokens));
        left.cost = left.cost.map(|left| left + counted.cost.unwrap_or_default());
        let Some(state) = self.tree.run(child) else { return };
        let past = state.lock();
        if !begins_anew && past.task().is_some() {
            left.time_ms = Millis::new(left.time_ms.get().saturating_add(past.worked()));
            left.turns = left.turns.saturating_add(past.turns_used());
            let calls = past.tool_calls_used();
            left.tool_calls = left.tool_calls.map(|left| left.saturating_add(calls));
        }
    }

    /// Makes the agent of a definition, for one run.
    async fn agent_of(
        &self,
        order: &Order,
        (child, begins_anew): (&RunId, bool),
        then: Option<&AgentRights>,
    ) -> Result<AgentExecutor, ToolError> {
        let limited = then.map(|then| Box::new(then.limit(order.agent.definition())));
        let definition = limited.as_deref().unwrap_or(order.agent.definition());
        let team = self.agent.team.as_ref();
        let supplier = supplier(team);
        let unusable = |why: String| {
            ToolError::unavailable(format!(
                "the agent `{}` cannot be started: {why}",
                definition.name
            ))
        };
        let model: Arc<dyn Model> = match &definition.model.model {
            Some(name) => supplier.model(name).map_err(unusable)?,
            None => Arc::clone(&self.agent.model),
        };
        let view =
            view_of(definition, self.agent.tools.shown(), &self.agent.ceiling).map_err(unusable)?;
        let tools = self.agent.tools.clone().view(view.clone());
        let (tools, premises) =
            equipped(definition, then, child, supplier, tools).await.map_err(unusable)?;
        let settings = {
            let run = self.state.lock();
            let mut left = run.left(self.recorder.now());
            self.add_what_is_counted(&mut left, &run, (child, begins_anew));
            settings_of(definition, model.facts(), &left, run.settings())
        };
        let mut origin = json!({
            "agent": definition.name,
            "inputs": order.inputs,
            RIGHTS: then.cloned().unwrap_or_else(|| AgentRights::of(definition)),
        });
        if let (Some(server), Some(origin)) = (&order.asked_by, origin.as_object_mut()) {
            origin.insert(ASKED_BY.to_owned(), server.clone().into());
        }
        let mut builder = AgentExecutor::with_model(model, tools)
            .model_settings(over(&definition.model.settings, &self.agent.model_settings))
            .run_settings(settings)
            .secrets(self.agent.secrets.clone())
            .origin(origin)
            .many_tools(self.agent.many_tools.clone())
            .ceiling(view);
        // Whoever asks for an answer is told in words.
        if order.asked_by.is_none() {
            builder = builder.completes_by_call();
        }
        if let Some(team) = team {
            let granted = Granted::Only(definition.agents.clone().into());
            builder = builder.calling(team.clone(), granted);
        }
        if let Some(output) = definition.output.clone() {
            builder = builder.output(output);
        }
        if let Some(workplace) = premises.and_then(|premises| premises.workplace) {
            builder = builder.workplace(workplace);
        }
        builder.build().map_err(|error| unusable(error.to_string()))
    }
}

/// Returns the events by which an agent goes on. What it might do when it began is in the record already, and is what
/// is looked at the next time as well.
fn resumption(
    state: &RunState,
    agent: &Agent,
    (then, now): (Option<&AgentRights>, &AgentDefinition),
    more: Option<Message>,
) -> Vec<EventBody> {
    let nothing = Value::Null;
    let recorded = if then.is_some() { &agent.origin } else { &nothing };
    let mut events = taken_up(&state.lock(), agent, recorded, more);
    if then.is_some_and(|then| *then != AgentRights::of(now)) {
        let message = format!(
            "what the agent `{}` may do was changed since it began; it may do what both allow",
            now.name
        );
        events.push(EventBody::Warning { message });
    }
    events
}

/// Tells whether an agent that ended like this goes on when the call that began it is made again: it waited
/// for a person, was stopped together with its caller, or found no model.
fn goes_on(outcome: &Outcome) -> bool {
    outcome.status == Status::Parked
        || is_stopped(outcome)
        || outcome.cause == Cause::ModelUnavailable
}

/// Tells whether somebody stopped an agent from outside.
pub(crate) fn is_stopped(outcome: &Outcome) -> bool {
    matches!(outcome.cause, Cause::Interrupted | Cause::Terminated)
}

/// Returns standing instructions, with where the agent works and how it hands over its result.
pub(crate) fn instructions(
    own: Option<String>,
    team: Option<&Team>,
    place: &ToolContext,
) -> String {
    let own = own.unwrap_or_else(|| prompts::SUBAGENT.trim_end().to_owned());
    let situated = match team {
        Some(team) => team.supplier().situate(&own, place),
        None => own,
    };
    format!("{}\n\n{}", situated.trim_end(), prompts::COMPLETE.trim_end())
}

/// Returns what an agent without a query is asked to do: its one text, or all of its inputs.
pub(crate) fn handed(definition: &AgentDefinition, inputs: &Map<String, Value>) -> String {
    let single = definition.input.single_text();
    let text = single.and_then(|name| inputs.get(&name)).and_then(Value::as_str);
    match (text, inputs.len()) {
        (Some(text), 1) => text.to_owned(),
        _ => serde_json::to_string_pretty(inputs).unwrap_or_default(),
    }
}

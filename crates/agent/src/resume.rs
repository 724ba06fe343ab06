//! Taking a run up again: after it ended, or after whoever worked on it was lost.
//!
//! What happened is folded into the run, once, and the run goes on with the same question as ever: what
//! next. Calls that have ended are never made again. Those that were under way are made again if that
//! does no harm, and are answered as interrupted otherwise. An answer of the model that was lost on its
//! way is asked for again, and all that was set aside for it is charged: nobody knows how much of it was generated.

use std::collections::BTreeSet;
use std::sync::Arc;

use convoke_core::run::Child;
use convoke_core::{
    Cause, Event, EventBody, Message, Outcome, Part, Role, Run, RunId, RunSettings, Status,
    TaskContext, Timestamp, Usage,
};
use serde_json::Value;

use crate::absent::{Absent, absent};
use crate::executor::{Agent, AgentExecutor, Task};
use crate::keeper::Place;
use crate::member::short_id;
use crate::prompts;
use crate::running::Running;
use crate::session::Session;
use crate::state::RunState;
use crate::tree::Family;

/// A run that nobody works on.
#[derive(Debug)]
pub struct Paused {
    pub(crate) state: Arc<RunState>,
    /// What became of the agents it called.
    pub(crate) family: Family,
    pub(crate) place: Place,
    /// The number of its last durable event, those of its children included.
    pub(crate) seq: u64,
    /// The time of that event.
    pub(crate) last: Timestamp,
    /// What it was last started or resumed with.
    pub(crate) origin: Value,
    /// The known secrets that its tools came across, and those of its children.
    pub(crate) seen: BTreeSet<String>,
    /// What it did to the environment of its session, where that was another process's.
    pub(crate) session: Session,
}

impl Paused {
    /// Rebuilds a run from its events. Further ones are kept in `place`.
    pub fn rebuild<'a>(
        id: &RunId,
        events: impl IntoIterator<Item = &'a Event> + Clone,
        place: Place,
    ) -> Self {
        let family = Family::of(id, events.clone());
        let (mut seq, mut last_origin, mut seen) = (0, Value::Null, BTreeSet::new());
        let mut last = Timestamp::default();
        let mut session = Session::default();
        let run = Run::replay(
            id.clone(),
            events.into_iter().inspect(|event| {
                seq += 1;
                last = last.max(event.ts);
                seen.extend(event.secrets.iter().cloned());
                session.take(event);
                if let (true, Some(origin)) = (event.run == *id, origin(event)) {
                    last_origin.clone_from(origin);
                }
            }),
        );
        let state = Arc::new(RunState::of(run));
        Self { state, family, place, seq, last, origin: last_origin, seen, session }
    }

    /// Returns its id.
    pub fn id(&self) -> RunId {
        self.state.lock().id().clone()
    }

    /// Returns how it ended, if it did.
    pub fn outcome(&self) -> Option<Outcome> {
        self.state.lock().outcome().cloned()
    }

    /// Tells whether it is a copy of another run that nobody has resumed with a message yet.
    pub fn is_new_fork(&self) -> bool {
        self.state.lock().is_new_fork()
    }

    /// Returns what it may use and how it ends.
    pub fn settings(&self) -> RunSettings {
        self.state.lock().settings().clone()
    }

    /// Returns the model that worked on it.
    pub fn model(&self) -> String {
        self.state.lock().model().to_owned()
    }

    /// Returns its task and what came of it, once it has begun.
    pub fn task(&self) -> Option<TaskContext> {
        self.state.lock().task().cloned()
    }

    /// Returns about how many tokens its next request takes in.
    pub fn context_tokens(&self) -> u64 {
        self.state.lock().context_tokens()
    }

    /// Returns what it has used.
    pub fn spent(&self) -> Usage {
        *self.state.lock().spent()
    }

    /// Returns what was said in it, as far as it was not summed up.
    pub fn messages(&self) -> Vec<Message> {
        self.state.lock().messages().to_vec()
    }

    /// Returns how many turns it took.
    pub fn turns(&self) -> u32 {
        self.state.lock().turns()
    }
}

/// A run that cannot be taken up again as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotResumable {
    /// It never began.
    #[error("the run `{0}` never began: there is nothing to go on with")]
    Empty(RunId),
    /// It is done, and there is nothing more to do.
    #[error("the run `{0}` is done; say what more it is to do")]
    Done(RunId),
    /// An agent that it called is not done, and cannot go on.
    #[error("the agent `{agent}` of the run `{run}` is not done and cannot go on: {why}")]
    Absent {
        /// The run.
        run: RunId,
        /// The agent's name.
        agent: String,
        /// What is missing.
        why: String,
    },
}

impl AgentExecutor {
    /// Takes a run up again, with something more to do or just where it was. Nothing happens until the
    /// stream is polled.
    ///
    /// Agents that were stopped together with it go on where they were, unless there is something more to do. Where one
    /// of them cannot be made any more, nothing happens and it is said which: whoever has something more to do
    /// goes on without it.
    /// The agent need not be the one that started it: the run keeps its instructions and the tools it
    /// was told of, and goes on with this agent's model, limits and ways to run tools.
    pub fn resume(&self, paused: Paused, more: Option<Task>) -> Result<Running, NotResumable> {
        let agent = Arc::clone(self.agent());
        if more.is_none()
            && let Some(Absent { name, why }) = absent(&agent, &paused.state, &paused.family)
        {
            return Err(NotResumable::Absent { run: paused.id(), agent: name, why });
        }
        let begins_anew = paused.state.lock().begins_anew(more.is_some());
        let first = {
            let run = paused.state.lock();
            if run.task().is_none() {
                return Err(NotResumable::Empty(run.id().clone()));
            }
            let done = run.outcome().is_some_and(|outcome| outcome.cause == Cause::Goal);
            if more.is_none() && done {
                return Err(NotResumable::Done(run.id().clone()));
            }
            // What tools came across before, they may go on working with.
            agent.secrets.note(&paused.seen);
            run.messages().iter().for_each(|message| agent.secrets.recall(message));
            let forgotten = paused.session.bring_back(&agent);
            let mut first = taken_up(&run, &agent, &paused.origin, more.map(Task::into_message));
            tell_what_is_forgotten(&mut first, &forgotten);
            first
        };
        let Paused { state, mut family, place, seq, last, .. } = paused;
        state.seen_files(place.replaced.clone()).sweep();
        if begins_anew {
            family.renew_calls();
        }
        Ok(Self::drive(agent, state, family, place, (seq, last), first))
    }
}

/// Returns what a person last said in a run; what the runtime said in a person's place is left out.
pub fn last_said<'e>(run: &RunId, events: &'e [Event]) -> Option<&'e str> {
    events.iter().rev().filter(|event| event.run == *run).find_map(|event| {
        let text = match &event.body {
            EventBody::RunStarted { prompt, .. } => prompt.as_str(),
            EventBody::UserMessage { message } => {
                message.parts.iter().rev().find_map(Part::as_text)?
            }
            _ => return None,
        };
        (!text.trim().is_empty() && !prompts::is_own(text)).then_some(text)
    })
}

/// Says which variables could not be brought back, with what is said anyway or by itself.
fn tell_what_is_forgotten(first: &mut Vec<EventBody>, forgotten: &[String]) {
    if forgotten.is_empty() {
        return;
    }
    let note = Part::text(prompts::forgotten(forgotten));
    let said = first.iter_mut().rev().find_map(|event| match event {
        EventBody::UserMessage { message } => Some(message),
        _ => None,
    });
    if let Some(message) = said {
        message.parts.insert(0, note);
    } else {
        let message = Message { role: Role::User, parts: vec![note] };
        first.push(EventBody::UserMessage { message });
    }
}

/// Returns the events by which a run is taken up again: with something else to do, or just where it was.
pub(crate) fn taken_up(
    run: &Run,
    agent: &Agent,
    origin: &Value,
    more: Option<Message>,
) -> Vec<EventBody> {
    let again = if more.is_some() { Vec::new() } else { without_model(run, agent) };
    let is_silent = run.waits_for_a_word(&again);
    let mut events = vec![resumed(run, agent, origin, (more.is_some(), again))];
    let word = match more {
        Some(message) => {
            events.extend(given_up(run).map(|message| EventBody::Notice { message }));
            Some(message)
        }
        // It only hears that it goes on: what it left working does, too.
        None if is_silent => Some(Message::text(Role::User, prompts::GO_ON.trim_end())),
        None => None,
    };
    events.extend(word.map(|message| EventBody::UserMessage { message }));
    events
}

/// Says which agents in the background were stopped together with a run, or worked where it was cut, and are not taken
/// up with it. Those that it waited for are named in the answers to their calls.
fn given_up(run: &Run) -> Option<String> {
    let is_cut = |child: &Child| {
        let waits = |outcome: &Outcome| outcome.status == Status::Parked;
        run.is_new_fork() && child.outcome.as_ref().is_none_or(waits)
    };
    let stops = |child: &Child| child.background && (child.stopped || is_cut(child));
    let stopped = run.children().iter().filter(|(_, child)| stops(child));
    let named = stopped
        .map(|(id, child)| format!("`{}` (agent_id: {})", child.name, short_id(run.id(), id)));
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| prompts::given_up(&named.join(", ")))
}

/// Returns what is recorded when a run is taken up again.
fn resumed(
    run: &Run,
    agent: &Agent,
    origin: &Value,
    (anything_else, again): (bool, Vec<RunId>),
) -> EventBody {
    let model = agent.model.name().to_string();
    let RunSettings { ending, output, .. } = run.settings().clone();
    let settings = RunSettings { ending, output, ..agent.settings.clone() };
    let redirected = anything_else && run.is_new_fork();
    // The original has the answer that a redirected copy does not ask for again.
    let lost = if redirected { Usage::default() } else { run.lost_answer() };
    EventBody::RunResumed {
        model: (model != run.model()).then_some(model),
        settings: (settings != *run.settings()).then_some(settings),
        lost,
        anything_else,
        redirected,
        again,
        origin: if agent.origin == *origin { Value::Null } else { agent.origin.clone() },
    }
}

/// Returns the agents that found no model, as the run did then, and go on with it. Those that may run only once were
/// called once, and who only answered a server is none.
fn without_model(run: &Run, agent: &Agent) -> Vec<RunId> {
    let goes_on = |name: &str| agent.registered(name).is_some_and(|it| !it.run.at_most_once);
    let found_none = run.without_model().filter(|(_, child)| goes_on(&child.name));
    found_none.map(|(id, _)| id.clone()).collect()
}

/// Returns what whoever started or resumed a run noted, if the event says so.
pub(crate) fn origin(event: &Event) -> Option<&Value> {
    match &event.body {
        EventBody::RunStarted { origin, .. } | EventBody::RunResumed { origin, .. }
            if !origin.is_null() =>
        {
            Some(origin)
        }
        _ => None,
    }
}

impl Task {
    /// Returns it as something that is said in a conversation.
    pub(crate) fn into_message(self) -> Message {
        let Self { prompt, mut attachments, .. } = self;
        attachments.push(Part::text(prompt));
        Message { role: Role::User, parts: attachments }
    }
}

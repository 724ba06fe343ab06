//! Folds events into a timeline.
//!
//! Items are only ever added at the end of a list, so a [`Place`] that was good once stays good. An agent
//! is put into the agent that started it when it first appears, so that no order of events makes a circle.

mod calls;
mod models;
mod notes;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use convoke_core::{CallId, Event, EventBody, Message, Part, Position, RunId, Timestamp, Usage};
use serde_json::Value;

use self::notes::{note, plain};
use super::{
    Agent, AgentIndex, Call, End, Gap, GapReason, Item, ItemKind, Note, Reported, Span, Timeline,
    Tone, Turn,
};

/// How deep agents are put into one another; deeper ones stand for themselves.
const MAX_DEPTH: usize = 16;

/// Folds all events.
pub(super) fn fold(events: &[Event]) -> Timeline<'_> {
    let mut fold = Fold::default();
    for event in events {
        fold.event(event);
    }
    fold.finish()
}

/// A timeline in the making.
#[derive(Debug, Default)]
pub(super) struct Fold<'e> {
    timeline: Timeline<'e>,
    begun: bool,
    /// When the event that is folded came, and the one before.
    now: Duration,
    before: Duration,
    runs: HashMap<&'e RunId, AgentIndex>,
    /// What is under way, for each agent.
    under_way: Vec<UnderWay<'e>>,
    /// The names of items that are taken.
    ids: HashSet<String>,
}

/// What an agent is in the middle of.
#[derive(Debug, Default)]
struct UnderWay<'e> {
    turn: Option<usize>,
    /// The number of the turn that began last.
    last_turn: Option<u32>,
    model: Option<Place>,
    /// The model call that ended last.
    last_model: Option<Place>,
    calls: HashMap<Option<&'e CallId>, Place>,
    /// The calls that began and have no answer.
    begun: HashSet<&'e CallId>,
}

/// Where an item is: in a list of its agent, or in one of its turns.
#[derive(Clone, Copy, Debug)]
struct Place {
    turn: Option<usize>,
    index: usize,
}

impl<'e> Fold<'e> {
    /// Takes in an event.
    pub(super) fn event(&mut self, event: &'e Event) {
        self.tick(event.ts);
        let agent = self.agent_of(event);
        if matches!(event.body, EventBody::RunResumed { .. } | EventBody::UserMessage { .. }) {
            self.go_on(agent);
        }
        self.body(agent, event);
    }

    fn tick(&mut self, ts: Timestamp) {
        if !self.begun {
            self.begun = true;
            self.timeline.started = ts;
        }
        let millis = ts.as_millis().saturating_sub(self.timeline.started.as_millis());
        self.before = self.now;
        self.now = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
        self.timeline.elapsed = self.timeline.elapsed.max(self.now);
    }

    fn body(&mut self, agent: AgentIndex, event: &'e Event) {
        match &event.body {
            EventBody::RunStarted { prompt, attachments, history, .. } => {
                self.start(agent, event);
                let attachments = attachments.iter().collect();
                let asked =
                    ItemKind::Asked { text: prompt.clone(), attachments, history: history.len() };
                self.put(agent, event, asked);
            }
            EventBody::UserMessage { message } => self.ask(agent, event, message),
            EventBody::RunEnded { outcome, answer, usage } => {
                let answer = answer.as_ref();
                let is_said = answer.and_then(Value::as_str).is_some_and(|answer| {
                    self.last_words(agent).is_some_and(|words| words.trim() == answer.trim())
                });
                let end = End { outcome, answer, is_said, usage: *usage };
                self.end(agent, event, end);
            }
            EventBody::RunResumed { .. } => {
                self.resume(agent);
                // The gap says it for the first run.
                let note = note(&event.body).filter(|note| agent.0 > 0 || !note.text.is_empty());
                if let Some(note) = note {
                    self.put(agent, event, ItemKind::Note(note));
                }
            }
            EventBody::RunForked { .. } => {
                // What another run did in the meantime took none of this one's time.
                if agent.0 == 0 {
                    self.gap(self.before, GapReason::Idle);
                }
                self.put_plain(agent, event);
            }
            EventBody::TurnStarted { turn } => self.start_turn(agent, event, *turn),
            EventBody::TurnEnded { turn } => self.end_turn(agent, event, *turn),
            EventBody::Usage(usage) => match self.turn(agent) {
                Some(turn) => turn.so_far = Some(*usage),
                None => self.put_plain(agent, event),
            },
            EventBody::AgentSpawned { child, name, .. } => self.spawn(agent, event, child, name),
            EventBody::AgentEnded { child, outcome, usage, .. } => {
                let reported = Reported { outcome, usage: *usage };
                // Nobody reports on itself.
                let other = self.runs.get(child).copied().filter(|index| *index != agent);
                match other.and_then(|index| self.agent(index)) {
                    Some(known) if known.reported.is_none() => known.reported = Some(reported),
                    _ => self.put_plain(agent, event),
                }
            }
            EventBody::Compaction { before, after, summary, .. } => {
                let (before, after, summary) = (*before, *after, summary.as_deref());
                self.put(agent, event, ItemKind::Compaction { before, after, summary });
            }
            EventBody::Reflection(reflection) => {
                self.put(agent, event, ItemKind::Reflection(reflection));
            }
            EventBody::Plan { steps } => {
                self.put(agent, event, ItemKind::Plan(steps));
            }
            EventBody::AnswerChecked { value, problems } => {
                self.put(agent, event, ItemKind::AnswerChecked { value, problems });
            }
            body => {
                if !self.model_event(agent, event) && !self.call_event(agent, event) {
                    match note(body) {
                        Some(note) => self.put(agent, event, ItemKind::Note(note)),
                        None => self.put_plain(agent, event),
                    }
                }
            }
        }
    }

    /// Returns the agent an event is about. One that was not heard of begins with it.
    fn agent_of(&mut self, event: &'e Event) -> AgentIndex {
        if let Some(index) = self.runs.get(&event.run) {
            return *index;
        }
        let parent = event.parent.as_ref().and_then(|run| self.runs.get(run).copied());
        let index = self.new_agent(&event.run, parent, event);
        if let Some(parent) = self.timeline.agents.get(index.0).and_then(|agent| agent.parent) {
            self.put(parent, event, ItemKind::Agent(index));
        }
        index
    }

    fn new_agent(
        &mut self,
        run: &'e RunId,
        parent: Option<AgentIndex>,
        event: &'e Event,
    ) -> AgentIndex {
        let index = AgentIndex(self.timeline.agents.len());
        let above = parent.and_then(|parent| self.timeline.agent(parent));
        let depth = above.map_or(0, |above| above.depth + 1);
        let parent = parent.filter(|_| depth < MAX_DEPTH);
        let path = event.agent.as_str();
        self.timeline.agents.push(Agent {
            run,
            path: &event.agent,
            name: path.rsplit_once('/').map_or(path, |(_, name)| name),
            model: "",
            parent,
            depth: if parent.is_some() { depth } else { 0 },
            span: self.opening(),
            system: "",
            tools: Vec::new(),
            items: Vec::new(),
            end: None,
            reported: None,
            usage: Usage::default(),
            turns: 0,
            calls: 0,
        });
        self.under_way.push(UnderWay::default());
        self.runs.insert(run, index);
        if parent.is_none() {
            self.timeline.roots.push(index);
        }
        index
    }

    fn start(&mut self, index: AgentIndex, event: &'e Event) {
        let EventBody::RunStarted { model, system, tools, .. } = &event.body else { return };
        if let Some(agent) = self.agent(index) {
            agent.path = &event.agent;
            agent.model = model;
            agent.system = system;
            agent.tools = tools.iter().map(|tool| tool.name.as_str()).collect();
        }
    }

    fn ask(&mut self, agent: AgentIndex, event: &'e Event, message: &'e Message) {
        let attachments =
            message.parts.iter().filter(|part| !matches!(part, Part::Text { .. })).collect();
        let asked = ItemKind::Asked { text: message.words(), attachments, history: 0 };
        self.put(agent, event, asked);
    }

    /// A call, or the agent itself, starts another agent.
    fn spawn(&mut self, agent: AgentIndex, event: &'e Event, child: &'e RunId, name: &'e str) {
        if self.runs.contains_key(child) {
            let title = format!("Agent {name} goes on");
            let note = Note { tone: Tone::Quiet, title, text: String::new() };
            self.put(agent, event, ItemKind::Note(note));
            return;
        }
        let index = self.new_agent(child, Some(agent), event);
        let below = self.agent(index).is_some_and(|child| {
            child.name = name;
            child.parent.is_some()
        });
        match self.call(agent, event.call.as_ref()) {
            Some(call) if below => call.agents.push(index),
            _ if below => self.put(agent, event, ItemKind::Agent(index)),
            _ => self.put_plain(agent, event),
        }
    }

    fn start_turn(&mut self, agent: AgentIndex, event: &'e Event, number: u32) {
        self.close_turn(agent);
        let turn = Turn { number, ..Turn::default() };
        let place = self.begin(agent, event, ItemKind::Turn(turn));
        if let Some(under_way) = self.under_way.get_mut(agent.0) {
            under_way.turn = Some(place.index);
            under_way.last_turn = Some(number);
        }
        if let Some(agent) = self.agent(agent) {
            agent.turns = agent.turns.saturating_add(1);
        }
    }

    fn end_turn(&mut self, agent: AgentIndex, event: &'e Event, number: u32) {
        let last = self.under_way.get(agent.0).and_then(|under_way| under_way.last_turn);
        match self.turn(agent) {
            Some(turn) if turn.number == number => self.close_turn(agent),
            // It was closed when the run was stopped, and the run went on.
            None if last == Some(number) => {}
            _ => self.put_plain(agent, event),
        }
    }

    fn close_turn(&mut self, agent: AgentIndex) {
        let turn = self.under_way.get_mut(agent.0).and_then(|under_way| under_way.turn.take());
        if let Some(index) = turn {
            self.close(agent, Place { turn: None, index }, self.now);
        }
    }

    /// The run ended: what was under way will not be answered any more.
    fn end(&mut self, index: AgentIndex, event: &'e Event, end: End<'e>) {
        self.interrupt_model(index, self.now);
        self.interrupt_calls(index);
        self.close_turn(index);
        self.put(index, event, ItemKind::Ended(end));
        let now = self.now;
        if let Some(agent) = self.agent(index) {
            agent.end = Some(end);
            agent.span = closed(agent.span, now);
        }
    }

    /// A run that had ended is resumed, or has a new message. Nothing else reopens it: a server may change its state
    /// behind the end.
    fn go_on(&mut self, index: AgentIndex) {
        let Some(agent) = self.agent(index).filter(|agent| agent.end.is_some()) else { return };
        let ended = agent.span.end();
        (agent.end, agent.reported) = (None, None);
        agent.span.open = true;
        if index.0 == 0 {
            self.gap(ended, GapReason::Idle);
        }
    }

    /// Another process went on with a run: what it had asked the model was lost. Its agents go on with it.
    fn resume(&mut self, agent: AgentIndex) {
        self.interrupt_model(agent, self.before);
        if agent.0 == 0 {
            self.gap(self.before, GapReason::Interrupted);
        }
    }

    fn gap(&mut self, start: Duration, reason: GapReason) {
        let known = self.timeline.gaps.last().map_or(Duration::ZERO, |gap| gap.span.end());
        let start = start.max(known);
        let duration = self.now.saturating_sub(start);
        if !duration.is_zero() {
            self.timeline.gaps.push(Gap { span: Span { start, duration, open: false }, reason });
        }
    }

    /// Nothing comes any more: what is open stays open, up to now.
    fn finish(mut self) -> Timeline<'e> {
        let last = self.timeline.elapsed;
        for agent in &mut self.timeline.agents {
            stretch(&mut agent.span, last);
            for item in &mut agent.items {
                stretch_item(item, last);
                if let ItemKind::Turn(turn) = &mut item.kind {
                    turn.items.iter_mut().for_each(|item| stretch_item(item, last));
                }
            }
        }
        self.timeline
    }
}

/// Adding and finding.
impl<'e> Fold<'e> {
    /// Adds something that takes no time, or none yet.
    fn add(&mut self, agent: AgentIndex, event: &Event, kind: ItemKind<'e>) -> Place {
        let id = self.id(event);
        let span = Span { start: self.now, ..Span::default() };
        let outside = matches!(kind, ItemKind::Turn(_) | ItemKind::Ended(_));
        let turn = self.under_way.get(agent.0).and_then(|under_way| under_way.turn);
        let turn = turn.filter(|_| !outside);
        let Some(items) = self.list(agent, turn) else { return Place { turn, index: usize::MAX } };
        items.push(Item { id, span, kind });
        Place { turn, index: items.len() - 1 }
    }

    fn put(&mut self, agent: AgentIndex, event: &Event, kind: ItemKind<'e>) {
        self.add(agent, event, kind);
    }

    /// Adds something that goes on until it is closed.
    fn begin(&mut self, agent: AgentIndex, event: &Event, kind: ItemKind<'e>) -> Place {
        let place = self.add(agent, event, kind);
        if let Some(item) = self.item(agent, place) {
            item.span.open = true;
        }
        place
    }

    fn put_plain(&mut self, agent: AgentIndex, event: &'e Event) {
        let (kind, data) = plain(&event.body);
        self.put(agent, event, ItemKind::Plain { kind, data });
    }

    /// Names an item after its event, and makes sure that no other has that name.
    fn id(&mut self, event: &Event) -> String {
        let id = match event.position {
            Position::Durable { seq } => format!("e{seq}"),
            Position::Ephemeral { after, index } => format!("e{after}-{index}"),
        };
        let mut unique = id.clone();
        let mut more = 1_u64;
        while !self.ids.insert(unique.clone()) {
            more += 1;
            unique = format!("{id}.{more}");
        }
        unique
    }

    fn opening(&self) -> Span {
        Span { start: self.now, duration: Duration::ZERO, open: true }
    }

    fn agent(&mut self, index: AgentIndex) -> Option<&mut Agent<'e>> {
        self.timeline.agents.get_mut(index.0)
    }

    fn list(&mut self, agent: AgentIndex, turn: Option<usize>) -> Option<&mut Vec<Item<'e>>> {
        let agent = self.agent(agent)?;
        match turn {
            None => Some(&mut agent.items),
            Some(turn) => match &mut agent.items.get_mut(turn)?.kind {
                ItemKind::Turn(turn) => Some(&mut turn.items),
                _ => None,
            },
        }
    }

    fn item(&mut self, agent: AgentIndex, place: Place) -> Option<&mut Item<'e>> {
        self.list(agent, place.turn)?.get_mut(place.index)
    }

    /// Returns the turn that is under way.
    fn turn(&mut self, agent: AgentIndex) -> Option<&mut Turn<'e>> {
        let index = self.under_way.get(agent.0)?.turn?;
        match &mut self.agent(agent)?.items.get_mut(index)?.kind {
            ItemKind::Turn(turn) => Some(turn),
            _ => None,
        }
    }

    fn close(&mut self, agent: AgentIndex, place: Place, at: Duration) {
        if let Some(item) = self.item(agent, place) {
            item.span = closed(item.span, at);
        }
    }
}

fn closed(span: Span, at: Duration) -> Span {
    Span { duration: at.saturating_sub(span.start), open: false, ..span }
}

fn stretch(span: &mut Span, last: Duration) {
    if span.open {
        span.duration = last.saturating_sub(span.start);
    }
}

fn stretch_item(item: &mut Item<'_>, last: Duration) {
    stretch(&mut item.span, last);
    if let ItemKind::Call(Call { approval: Some(approval), .. }) = &mut item.kind {
        stretch(&mut approval.span, last);
    }
}

#[cfg(test)]
mod tests {
    use convoke_core::event::VERSION;
    use convoke_core::{AgentPath, Purpose};

    use super::*;
    use crate::timeline::ModelState;

    fn event(seq: u64, millis: i64, body: EventBody) -> Event {
        Event {
            v: VERSION,
            position: Position::Durable { seq },
            ts: Timestamp::from_millis(millis),
            run: RunId::new("r"),
            parent: None,
            agent: AgentPath::default(),
            call: None,
            secrets: std::collections::BTreeSet::new(),
            body,
        }
    }

    #[test]
    fn a_resumed_run_has_a_gap_and_lost_an_answer() {
        let asked = EventBody::ModelRequest {
            model: "m".into(),
            purpose: Purpose::Main,
            notice: None,
            estimate: 0,
            reserved: None,
        };
        let notice = EventBody::Notice { message: "Go on.".into() };
        let events = [event(1, 0, asked), event(2, 400, notice.clone()), event(3, 9_000, notice)];
        let mut fold = Fold::default();
        for event in &events {
            fold.event(event);
        }
        fold.resume(AgentIndex(0));
        let timeline = fold.finish();
        let [gap] = timeline.gaps.as_slice() else { panic!("{:?}", timeline.gaps) };
        assert_eq!(gap.reason, GapReason::Interrupted);
        assert_eq!(gap.span.start, Duration::from_millis(400));
        assert_eq!(timeline.working(), Duration::from_millis(400));
        let first = timeline.agents.first().and_then(|agent| agent.items.first()).unwrap();
        assert_eq!(first.span.duration, Duration::from_millis(400));
        let ItemKind::Model(model) = &first.kind else { panic!("{first:?}") };
        assert_eq!(model.state, ModelState::Interrupted);
    }

    #[test]
    fn a_fork_has_a_gap_before_it_begins() {
        let notice = EventBody::Notice { message: "Go on.".into() };
        let forked = EventBody::RunForked { from: RunId::new("other"), at: 2 };
        let events = [
            event(1, 0, notice.clone()),
            event(2, 400, notice.clone()),
            event(3, 162_400, forked),
            event(4, 162_600, notice),
        ];
        let timeline = fold(&events);
        assert_eq!(timeline.working(), Duration::from_millis(600));
    }
}

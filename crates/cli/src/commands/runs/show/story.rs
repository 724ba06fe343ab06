//! What happened in a run, as rows.

use convoke::journal::timeline::{
    Agent, AgentIndex, Gap, GapReason, Item, ItemKind, ModelCall, ModelState, Timeline, Turn,
};
use convoke_core::Purpose;
use serde_json::Value;

use super::super::state::{self, State};
use super::items::{self, SAID};
use super::row::Row;
use crate::output::{Style, first_sentence};
use crate::view::amounts;
use crate::view::brief::{self, REMARK, one_line};
use crate::view::look::{Look, Sign};

/// In which order things are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// As they began, whoever did them.
    ByTime,
    /// What an agent did stands below what started it.
    ByAgent,
}

/// Rows in the making.
#[derive(Debug)]
struct Teller<'t, 'e> {
    timeline: &'t Timeline<'e>,
    look: Look,
    order: Order,
    rows: Vec<Row>,
    gaps: usize,
}

/// Returns what happened.
pub(super) fn rows(timeline: &Timeline<'_>, order: Order, look: Look) -> Vec<Row> {
    let mut teller = Teller { timeline, look, order, rows: Vec::new(), gaps: 0 };
    for root in &timeline.roots {
        teller.agent(*root, 0);
    }
    let mut rows = teller.rows;
    if order == Order::ByTime {
        // What began at the same time stays in the order of the agents.
        rows.sort_by_key(|row| row.span.start);
    }
    rows
}

impl<'e> Teller<'_, 'e> {
    fn agent(&mut self, index: AgentIndex, indent: usize) {
        let Some(agent) = self.timeline.agent(index) else { return };
        self.items(&agent.items, index, agent, indent);
    }

    fn items(&mut self, items: &[Item<'e>], of: AgentIndex, agent: &Agent<'e>, indent: usize) {
        for item in items {
            if agent.depth == 0 {
                self.gaps_before(item, of);
            }
            self.item(item, of, agent, indent);
        }
    }

    fn gaps_before(&mut self, item: &Item<'_>, of: AgentIndex) {
        let is_over = |gap: &&Gap| gap.span.end() <= item.span.start;
        while let Some(gap) = self.timeline.gaps.get(self.gaps).filter(is_over) {
            self.gaps += 1;
            let time = amounts::time(gap.span.duration);
            let text = match gap.reason {
                GapReason::Interrupted => format!("resumed after {time}, in another process"),
                GapReason::Idle => format!("went on after {time}"),
            };
            // It stands where the next thing begins.
            let row = Row::new("gap", None, of.get(), item.span).named(text);
            self.rows.push(row.went(Sign::Rule, Some(Style::Warn)));
        }
    }

    fn item(&mut self, item: &Item<'e>, of: AgentIndex, agent: &Agent<'e>, indent: usize) {
        let row = |kind| {
            let mut row = Row::new(kind, number(item), of.get(), item.span);
            row.indent = indent;
            row
        };
        match &item.kind {
            ItemKind::Asked { text, attachments, history } => {
                self.rows.push(items::asked(row("asked"), text, attachments, *history));
            }
            ItemKind::Turn(turn) => self.turn(row("turn"), turn, of, agent, indent),
            ItemKind::Model(model) => {
                let named = row("model").named(items::purpose(model.purpose));
                self.model(named, item, model, agent);
            }
            ItemKind::Call(call) => {
                self.rows.push(items::call(row("call"), item, call));
                call.agents.iter().for_each(|child| self.child(*child, indent + 1));
            }
            ItemKind::Agent(child) => self.child(*child, indent),
            ItemKind::Compaction { before, after, summary } => {
                let mut row = row("compaction");
                if let Some(summary) = summary {
                    let (before, after) = (amounts::tokens(*before), amounts::tokens(*after));
                    row = row.named("conversation shortened");
                    row = row.about(format!("from {before} to {after} tokens"));
                    row.detail("what is kept", *summary);
                } else {
                    row = row.named("the conversation could not be made shorter");
                    row = row.went(Sign::Warning, Some(Style::Warn));
                }
                self.rows.push(row);
            }
            ItemKind::Reflection(found) => {
                self.rows.push(items::reflection(row("reflection"), found));
            }
            ItemKind::Plan(steps) => self.rows.push(items::plan(row("plan"), steps)),
            ItemKind::AnswerChecked { value, problems } => {
                let row = row("answer_checked");
                self.rows.push(items::checked(row, value, problems));
            }
            ItemKind::Note(note) => self.rows.push(items::remark(row("note"), note)),
            // The gap before it says the same.
            ItemKind::Plain { kind, .. } if kind == "run_resumed" && self.follows_gap() => {}
            ItemKind::Plain { kind, data } => {
                let row = row("event").named(one_line(&kind.replace('_', " "), SAID));
                self.rows.push(row.about(brief::arguments(data)));
            }
            ItemKind::Ended(end) => {
                let state = State::ended(end.outcome.status);
                let row = row("ended").named("ended").about(state::ended(end.outcome));
                self.rows.push(row.went(state.sign(), Some(state.style())));
            }
            // What is not known yet is not hidden either.
            _ => self.rows.push(row("event").named("something happened")),
        }
    }

    fn follows_gap(&self) -> bool {
        self.rows.last().is_some_and(|row| row.kind == "gap")
    }

    /// A turn and the answer of its model are one line.
    fn turn(
        &mut self,
        row: Row,
        turn: &Turn<'e>,
        of: AgentIndex,
        agent: &Agent<'e>,
        indent: usize,
    ) {
        let row = row.named(format!("turn {}", turn.number));
        let is_main = |item: &Item<'_>| matches!(&item.kind, ItemKind::Model(model) if model.purpose == Purpose::Main);
        let main = turn.items.iter().position(is_main);
        let Some((main, item)) = main.and_then(|main| Some((main, turn.items.get(main)?))) else {
            self.rows.push(row);
            return self.items(&turn.items, of, agent, indent + 1);
        };
        let (before, after) = turn.items.split_at_checked(main).unwrap_or_default();
        // What comes before the model is asked belongs to the turn too, but was earlier.
        self.items(before, of, agent, indent);
        let ItemKind::Model(model) = &item.kind else { return };
        self.model(row, item, model, agent);
        self.items(after.get(1..).unwrap_or_default(), of, agent, indent + 1);
    }

    fn model(&mut self, mut row: Row, item: &Item<'_>, model: &ModelCall<'_>, agent: &Agent<'_>) {
        row.span = item.span;
        let (sign, style, word) = items::model_state(&model.state);
        row = row.went(sign, style).took(item.span);
        if !word.is_empty() {
            row.facts.push(word.to_owned());
        }
        if model.model != agent.model {
            row.facts.push(one_line(model.model, SAID));
        }
        if !model.usage.is_empty() {
            row.facts.push(amounts::usage(&model.usage, self.look));
        }
        for retry in &model.retries {
            let (attempt, delay) = (retry.attempt, amounts::time(retry.delay));
            let reason = one_line(retry.reason, REMARK);
            row.notes.push(format!("attempt {attempt} after {delay}: {reason}"));
        }
        if let ModelState::Failed(failure) = &model.state {
            row.notes.push(one_line(failure.message, REMARK));
        }
        let words = model.words.trim();
        let answer = agent.end.and_then(|end| end.answer).and_then(Value::as_str);
        if !words.is_empty() && answer.map(str::trim) != Some(words) {
            row.said = Some(one_line(first_sentence(words), SAID));
            row.detail("says", words);
        }
        row.detail("thinks", model.thoughts.as_str());
        row.detail("is told", model.notice.unwrap_or_default());
        self.rows.push(row);
    }

    fn child(&mut self, index: AgentIndex, indent: usize) {
        let Some(agent) = self.timeline.agent(index) else { return };
        let outcome = agent.end.map(|end| end.outcome);
        let outcome = outcome.or_else(|| agent.reported.map(|reported| reported.outcome));
        let used = agent.end.map(|end| end.usage);
        let used = used.or_else(|| agent.reported.map(|reported| reported.usage));
        let mut row = Row::new("agent", None, index.get(), agent.span);
        row.indent = indent;
        row = row.named(format!("agent {}", one_line(&self.timeline.label(index), SAID)));
        let state = outcome.map(|outcome| State::Ended(outcome.status));
        row = row.went(
            state.map_or(Sign::Begins, State::sign),
            Some(state.map_or(Style::Place, State::style)),
        );
        row = row.about(outcome.map(state::ended).unwrap_or_default());
        let usage = used.unwrap_or(agent.usage);
        row = row.took(agent.span);
        row.facts.push(amounts::count(agent.turns.into(), "turn"));
        if !usage.is_empty() {
            row.facts.push(amounts::usage(&usage, self.look));
        }
        self.rows.push(row);
        let indent = if self.order == Order::ByAgent { indent + 1 } else { 0 };
        self.agent(index, indent);
    }
}

/// Returns the number of the event that began something.
fn number(item: &Item<'_>) -> Option<u64> {
    let digits = item.id.strip_prefix('e')?;
    digits.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

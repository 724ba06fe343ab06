//! What there is to know about a run before its story.

use convoke::Origin;
use convoke::journal::timeline::Timeline;
use convoke::journal::{Forked, OpenQuestion, Recorded, Vouched};
use convoke_core::{Mode, Outcome, RunId, Timestamp};
use serde::Serialize;

use super::super::state::{self, State};
use super::row::Told;
use crate::moment;
use crate::output::{Stream, Style, columns, wrap};
use crate::view::amounts;
use crate::view::brief::one_line;
use crate::view::json::RunReport;
use crate::view::look::Look;
use crate::view::tree::between;

/// How long a value is, in columns.
const VALUE: usize = 300;

/// A run in a few lines.
pub(super) struct Head<'r> {
    pub(super) id: &'r RunId,
    pub(super) recorded: &'r Recorded,
    pub(super) timeline: &'r Timeline<'r>,
    pub(super) outcome: Option<&'r Outcome>,
    pub(super) state: State,
    /// What nobody has answered yet.
    pub(super) questions: &'r [OpenQuestion<'r>],
}

/// A run as programs read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToldRun<'r> {
    run: &'r RunId,
    status: &'static str,
    created: Timestamp,
    program: &'r str,
    model: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<&'r Forked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    working_directory: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    /// The agent that works, if it is not the main one.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// How many questions nobody has answered yet.
    open_questions: usize,
    /// Which ones.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    questions: &'r [OpenQuestion<'r>],
    /// How many events there are.
    events: usize,
    /// Without the time in which nothing was under way.
    working_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<String>,
    /// The event up to which the head that is kept apart vouches for the journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    vouched_up_to: Option<u64>,
    /// How it ended; null if it has not.
    report: Option<&'r RunReport>,
    items: &'r [Told<'r>],
}

impl<'r> Head<'r> {
    /// Returns its lines.
    pub(super) fn lines(&self, now: Timestamp, stream: &Stream) -> Vec<String> {
        let look = Look::of(stream);
        let word = match self.outcome {
            Some(outcome) if self.state != State::Damaged => {
                format!("{} {}", look.sign(self.state.sign()), state::ended(outcome))
            }
            _ => self.state.shown(self.questions.len(), stream),
        };
        let id = stream.paint(Style::Name, self.id);
        let mut lines = vec![format!("{id}  {}", stream.paint(self.state.style(), word))];
        let facts = self.facts(now, look);
        let widest = facts.iter().map(|(name, _)| columns(name)).max().unwrap_or_default();
        let left = widest + 4;
        let room = stream.width().map(|width| width.saturating_sub(left));
        for (name, value) in facts {
            let name = stream.paint(Style::Dim, format!("{name:<widest$}"));
            let mut pieces = wrap(&one_line(&value, VALUE), room).into_iter();
            lines.push(format!("  {name}  {}", pieces.next().unwrap_or_default()));
            lines.extend(pieces.map(|piece| format!("{:left$}{piece}", "")));
        }
        lines
    }

    fn facts(&self, now: Timestamp, look: Look) -> Vec<(&'static str, String)> {
        let timeline = self.timeline;
        let mut facts = Vec::new();
        let main = timeline.main();
        if let Some(main) = main.filter(|main| !main.model.is_empty()) {
            facts.push(("model", main.model.to_owned()));
        }
        if let Some(origin) = Origin::of(&self.recorded.events) {
            if let Some(agent) = &origin.agent {
                let own = agent.rights.as_ref().and_then(|rights| rights.mode);
                let own = own.map(|mode| format!(" (mode {mode})")).unwrap_or_default();
                facts.push(("agent", format!("{}{own}", agent.name)));
            }
            facts.push(("directory", origin.working_directory.display().to_string()));
        }
        let created = self.recorded.created;
        let ago = amounts::ago(between(created, now));
        facts.push(("started", format!("{} UTC, {ago}", moment::show(created))));
        if let Some(forked) = &self.recorded.forked_from {
            facts.push(("forked", format!("from {} after event {}", forked.run, forked.at)));
        }
        if let Some(main) = main {
            let idle = timeline.elapsed.saturating_sub(timeline.working());
            let idle = (!idle.is_zero()).then(|| format!("idle for {}", amounts::time(idle)));
            let took = Some(amounts::time(timeline.working()));
            facts.push(("took", look.joined([took, idle])));
            let others = timeline.agents.len().saturating_sub(1) as u64;
            let usage = timeline.usage();
            let used = [
                Some(amounts::count(main.turns.into(), "turn")),
                Some(amounts::count(timeline.calls(), "call")),
                (others > 0).then(|| amounts::count(others, "subagent")),
                (!usage.is_empty()).then(|| amounts::usage(&usage, look)),
            ];
            facts.push(("used", look.joined(used)));
        }
        facts
    }

    /// Returns everything for a program.
    pub(super) fn told(&self, items: &'r [Told<'r>], report: Option<&'r RunReport>) -> ToldRun<'r> {
        let Recorded { created, program, forked_from, events, damage, lost, vouched, .. } =
            self.recorded;
        let origin = Origin::of(events);
        let working = self.timeline.working().as_millis();
        ToldRun {
            run: self.id,
            status: self.state.word(),
            created: *created,
            program,
            model: self.timeline.main().map_or("", |main| main.model),
            forked_from: forked_from.as_ref(),
            working_directory: origin
                .as_ref()
                .map(|origin| origin.working_directory.display().to_string()),
            mode: origin.as_ref().map(|origin| origin.mode),
            agent: origin.and_then(|origin| origin.agent).map(|agent| agent.name),
            open_questions: self.questions.len(),
            questions: self.questions,
            events: events.len(),
            working_ms: u64::try_from(working).unwrap_or(u64::MAX),
            damage: damage.as_ref().or(lost.first()).map(ToString::to_string),
            vouched_up_to: match vouched {
                Vouched::UpTo(seq) => Some(*seq),
                Vouched::NoHead | Vouched::DamagedHead => None,
            },
            report,
            items,
        }
    }
}

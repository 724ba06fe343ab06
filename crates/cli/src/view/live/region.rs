//! The lines below what stays: what runs, what the model does, and the numbers.

use convoke_core::Timestamp;

use super::lines::{indent, spaced};
use crate::output::{Size, Stream, Style};
use crate::view::Detail;
use crate::view::amounts;
use crate::view::line::{Line, cut_painted};
use crate::view::look::{Look, Sign};
use crate::view::tree::{Activity, Agent, CallState, OpenCall, Totals, Tree};

/// How tall the region is, at most.
const MAX_LINES: usize = 14;
/// How much of an unfinished line is looked at, in columns.
const TAIL: usize = 200;

/// Returns the lines of the region, each narrower than the terminal and all of them shorter.
pub(super) fn region(
    tree: &Tree,
    now: Timestamp,
    size: Size,
    preview: &[String],
    detail: Detail,
    stream: &Stream,
) -> Vec<String> {
    // The cursor stands below the last line, and a full line would end in the next one. One more row stays free: a
    // terminal that is cleared from its very first row on may keep what was there, as if it had scrolled by.
    let rows = size.rows.saturating_sub(2).clamp(1, MAX_LINES);
    let width = size.columns.saturating_sub(1);
    let pen = Pen { now, width, look: Look::of(stream), stream, detail };
    let mut lines: Vec<String> =
        preview.iter().map(|line| cut_painted(line, width, stream)).collect();
    let room = rows.saturating_sub(lines.len() + 1);
    let (mut work, mut hidden) = (Vec::new(), 0);
    for agent in tree.agents() {
        match agent.who.depth {
            0 => pen.main_agent(agent, preview, &mut work),
            // Of thousands, only those are drawn that are seen.
            _ if work.len() > room => hidden += 1,
            _ => work.push(pen.subagent(agent)),
        }
    }
    if work.len() > room {
        hidden += work.len() - room.saturating_sub(1);
        work.truncate(room.saturating_sub(1));
        work.push(pen.dim(format!("{} {hidden} more", pen.look.sign(Sign::More))));
    }
    lines.extend(work);
    lines.push(pen.dim(status(tree.totals(), now, pen.look)));
    lines.drain(..lines.len().saturating_sub(rows));
    lines
}

/// Returns the numbers: `turn 3 · 12.4k tokens · $0.0312 · 8.2 s`.
pub(super) fn status(totals: &Totals, now: Timestamp, look: Look) -> String {
    let tokens = totals.usage.input_tokens.saturating_add(totals.usage.output_tokens);
    look.joined([
        (totals.turns > 0).then(|| format!("turn {}", totals.turns)),
        (tokens > 0).then(|| format!("{} tokens", amounts::all_tokens(&totals.usage))),
        amounts::cost(&totals.usage),
        Some(amounts::time(totals.elapsed(now))),
    ])
}

struct Pen<'a> {
    now: Timestamp,
    width: usize,
    look: Look,
    stream: &'a Stream,
    detail: Detail,
}

impl Pen<'_> {
    /// What the model does is shown by what it says, if that is shown.
    fn main_agent(&self, agent: &Agent, preview: &[String], lines: &mut Vec<String>) {
        for call in agent.calls.iter().filter(|call| !call.is_agent) {
            lines.push(self.call(call));
            let tail = call.tail.line(TAIL);
            if !tail.is_empty() {
                let line = Line::indented(4).flexible(Some(Style::Dim), tail);
                lines.push(line.fit(self.width, self.stream));
            }
        }
        let Some(words) = agent.activity.words(self.now) else { return };
        let mut line = self.working(0).plain(words);
        if !matches!(agent.activity, Activity::Retrying { .. }) {
            let time = amounts::time(agent.active_for(self.now));
            line = line.styled(Style::Dim, format!("  {time}"));
        }
        let is_thought = matches!(agent.activity, Activity::Thinking(_));
        if preview.is_empty() && (!is_thought || self.detail == Detail::Verbose) {
            let tail = agent.activity.tail().map(|tail| tail.line(TAIL)).unwrap_or_default();
            line = line.flexible(Some(Style::Dim), format!("  {tail}"));
        }
        lines.push(line.fit(self.width, self.stream));
    }

    /// A subagent has one line: what it does just now.
    fn subagent(&self, agent: &Agent) -> String {
        let running = agent.calls.iter().find(|call| call.state != CallState::Waiting);
        let does = match running.or_else(|| agent.calls.first()) {
            Some(call) if !call.is_agent => {
                let others = agent.calls.len() - 1;
                let more = if others > 0 { format!(" and {others} more") } else { String::new() };
                format!("{}{}{more}", call.name, spaced(&call.summary))
            }
            _ => agent.activity.words(self.now).unwrap_or_else(|| agent.task.clone()),
        };
        let asks = running.is_some_and(|call| call.state == CallState::Asking);
        let margin = indent(agent.who.depth.saturating_sub(1));
        let line = if asks { self.asking(margin) } else { self.working(margin) };
        let time = amounts::time(super::between(agent.started, self.now));
        line.styled(Style::Name, agent.who.label.clone())
            .flexible(None, format!("  {does}"))
            .styled(Style::Dim, format!("  {time}"))
            .fit(self.width, self.stream)
    }

    fn call(&self, call: &OpenCall) -> String {
        let line = match call.state {
            CallState::Running => self.working(0),
            CallState::Asking => self.asking(0),
            CallState::Waiting => {
                Line::default().styled(Style::Dim, format!("{} ", self.look.sign(Sign::Waits)))
            }
        };
        let done = call.fraction.map(|done| format!("{:.0} %", (done * 100.0).clamp(0.0, 100.0)));
        let state = match call.state {
            CallState::Running => Some(amounts::time(call.lasts(self.now))),
            CallState::Asking => Some("waits for your answer".to_owned()),
            CallState::Waiting => Some("waits".to_owned()),
        };
        line.styled(Style::Name, call.name.clone())
            .flexible(None, spaced(&call.summary))
            .styled(Style::Dim, format!("  {}", self.look.joined([done, state])))
            .fit(self.width, self.stream)
    }

    fn working(&self, margin: usize) -> Line {
        let millis = u64::try_from(self.now.as_millis()).unwrap_or_default();
        let sign = self.look.spinner(std::time::Duration::from_millis(millis));
        Line::indented(margin).styled(Style::Place, format!("{sign} "))
    }

    fn asking(&self, margin: usize) -> Line {
        let sign = self.look.sign(Sign::Asks);
        Line::indented(margin).styled(Style::Warn, format!("{sign} "))
    }

    fn dim(&self, text: String) -> String {
        Line::default().flexible(Some(Style::Dim), text).fit(self.width, self.stream)
    }
}

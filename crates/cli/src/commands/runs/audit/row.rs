//! What was done, as rows.

use std::collections::BTreeSet;

use convoke::agent::AgentRights;
use convoke::journal::audit::{Act, Approval, Began, Call, Entry, Outcome, Rights};
use serde_json::Value;

use super::super::short;
use crate::moment;
use crate::output::{Stream, Style, columns, cut};
use crate::view::line::Line;
use crate::view::look::{Look, Sign};
use crate::view::{amounts, brief};

/// How many columns there are at most on a terminal.
const AGENT: usize = 32;
const TOOL: usize = 32;
const RULE: usize = 48;
const WHAT: usize = 300;
/// How many there are where the terminal is narrow.
const NARROW: usize = 16;
/// How many columns what was done wants at least.
const LEAST_WHAT: usize = 20;
const GAP: usize = 2;

/// A column before the last, by its place.
const TITLES: [&str; 7] = ["when (UTC)", "run", "agent", "outcome", "tool", "decision", "rule"];
const WHEN: usize = 0;
const RUN: usize = 1;
const WHO: usize = 2;
const OUTCOME: usize = 3;
const WITH: usize = 4;
const DECISION: usize = 5;
const BY: usize = 6;
/// How long a year is with what follows it, and a sign.
const YEAR: usize = "2026-".len();
const SIGN: usize = 1;

/// An entry in cells, with what was done last.
struct Row {
    cells: [String; TITLES.len()],
    style: Option<Style>,
    what: String,
}

/// Entries in cells, and which columns are shown.
struct Sheet {
    rows: Vec<Row>,
    shown: Vec<usize>,
    titles: [&'static str; TITLES.len()],
}

/// Something that gives room.
#[derive(Clone, Copy)]
enum Step {
    Leave(usize),
    ShortRuns,
    WithoutYear,
    Cut(usize),
    OnlySign,
}

/// What gives way where there is too little room, in this order. When, in which run, who and what stay.
const STEPS: [Step; 7] = [
    Step::Leave(BY),
    Step::ShortRuns,
    Step::WithoutYear,
    Step::Leave(DECISION),
    Step::Cut(WHO),
    Step::Cut(WITH),
    Step::OnlySign,
];

/// Prints what was done, one line each. Where the terminal is narrow, columns become narrower or go until there
/// is room for what was done. `ids` are those of all runs.
pub(super) fn print(entries: &[Entry], ids: &[&str], stream: &Stream) {
    let look = Look::of(stream);
    let most = stream.width().map_or(usize::MAX, |_| WHAT);
    let rows: Vec<Row> = entries.iter().filter_map(|entry| row(entry, most, look)).collect();
    if rows.is_empty() {
        return;
    }
    let mut sheet = Sheet { rows, shown: (0..TITLES.len()).collect(), titles: TITLES };
    if let Some(room) = stream.width() {
        sheet.narrow(room.saturating_sub(LEAST_WHAT), ids, stream.ellipsis());
    }
    sheet.print(stream);
}

impl Sheet {
    fn print(&self, stream: &Stream) {
        let room = stream.width().unwrap_or(usize::MAX);
        let widths: Vec<(usize, usize)> =
            self.shown.iter().map(|index| (*index, self.width(*index))).collect();
        let title = widths.iter().fold(Line::default(), |line, (index, width)| {
            let title = self.titles.get(*index).copied().unwrap_or_default();
            put(line, Some(Style::Dim), title, *width)
        });
        stream.line(title.styled(Style::Dim, "what").fit(room, stream).trim_end());
        for row in &self.rows {
            let line = widths.iter().fold(Line::default(), |line, (index, width)| {
                let cell = row.cells.get(*index).map(String::as_str).unwrap_or_default();
                put(line, row.style.filter(|_| *index == OUTCOME), cell, *width)
            });
            stream.line(line.flexible(None, row.what.as_str()).fit(room, stream).trim_end());
        }
    }

    fn width(&self, index: usize) -> usize {
        let title = self.titles.get(index).map(|title| columns(title)).unwrap_or_default();
        self.cells(index).map(columns).max().unwrap_or_default().max(title)
    }

    fn cells(&self, index: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().filter_map(move |row| row.cells.get(index)).map(String::as_str)
    }

    fn narrow(&mut self, room: usize, ids: &[&str], mark: &str) {
        for step in STEPS {
            let taken: usize = self.shown.iter().map(|index| self.width(*index) + GAP).sum();
            if taken <= room {
                return;
            }
            self.take(step, ids, mark);
        }
    }

    fn take(&mut self, step: Step, ids: &[&str], mark: &str) {
        match step {
            Step::Leave(column) => self.shown.retain(|index| *index != column),
            Step::ShortRuns => {
                let endings = short::endings(ids);
                self.change(RUN, |run| {
                    let enough = endings.get(run).copied().unwrap_or(run.len());
                    run.get(run.len().saturating_sub(enough)..).unwrap_or(run).to_owned()
                });
            }
            Step::WithoutYear => {
                let years: BTreeSet<&str> =
                    self.cells(WHEN).filter_map(|when| when.get(..YEAR)).collect();
                if years.len() == 1 {
                    self.change(WHEN, |when| when.get(YEAR..).unwrap_or(when).to_owned());
                }
            }
            Step::Cut(column) => self.change(column, |text| cut(text, NARROW, mark)),
            Step::OnlySign => {
                if let Some(title) = self.titles.get_mut(OUTCOME) {
                    *title = "";
                }
                for row in &mut self.rows {
                    let Some(outcome) = row.cells.get_mut(OUTCOME) else { continue };
                    match outcome.split_once(' ').filter(|(sign, _)| columns(sign) == SIGN) {
                        Some((sign, _)) => *outcome = sign.to_owned(),
                        // One that has none goes to where there is room.
                        None => row.what = format!("{} {}", std::mem::take(outcome), row.what),
                    }
                }
            }
        }
    }

    fn change(&mut self, index: usize, change: impl Fn(&str) -> String) {
        for cell in self.rows.iter_mut().filter_map(|row| row.cells.get_mut(index)) {
            *cell = change(cell);
        }
    }
}

fn put(line: Line, style: Option<Style>, text: &str, width: usize) -> Line {
    let padding = " ".repeat(width.saturating_sub(columns(text)) + GAP);
    let line = match style {
        Some(style) => line.styled(style, text),
        None => line.plain(text),
    };
    line.plain(padding)
}

/// Makes an entry a row; no cell is longer than it may be, or than `most`, where there is no terminal.
fn row(entry: &Entry, most: usize, look: Look) -> Option<Row> {
    let [outcome, tool, decision, rule, what] = match &entry.act {
        Act::Call(call) => of_call(call, most, look),
        Act::Rights(rights) => of_rights(rights, most),
        _ => return None,
    };
    let agent = brief::one_line(&entry.agent_label, limit(AGENT, most));
    let (when, run) = (moment::show(entry.ts), entry.run.to_string());
    let cells = [when, run, agent, outcome, tool, decision, rule];
    Some(Row { cells, style: style(&entry.act), what })
}

/// Nothing is cut that goes to a file or to another program.
const fn limit(columns: usize, most: usize) -> usize {
    if most == usize::MAX { most } else { columns }
}

fn of_call(call: &Call, most: usize, look: Look) -> [String; 5] {
    let sign = look.sign(match call.outcome {
        Outcome::Completed => Sign::Ok,
        Outcome::Failed => Sign::Failed,
        Outcome::Denied => Sign::Denied,
        Outcome::Unfinished => Sign::Stopped,
    });
    let rule = call.rule.as_deref().unwrap_or_default();
    [
        format!("{sign} {}", call.outcome.as_str()),
        brief::one_line(&call.tool, limit(TOOL, most)),
        decision(call),
        brief::one_line(rule, limit(RULE, most)),
        what(call, most),
    ]
}

/// Returns what was decided, and what was answered where somebody was asked. A hook has the last word.
fn decision(call: &Call) -> String {
    if let Some(hooked) = call.refused_by() {
        return format!("hook {}: {}", brief::one_line(&hooked.hook, AGENT), hooked.action);
    }
    let decision = call.decision.as_deref().unwrap_or_default();
    let answer = call.approval.as_ref().map(|approval| match &approval.answer {
        None => "no answer yet".to_owned(),
        Some(answer) => {
            let word = if answer.approved { "yes" } else { "no" };
            let by = answer.by.as_ref().map(|who| format!(" by {}", brief::one_line(who, AGENT)));
            format!("{word}{}", by.unwrap_or_default())
        }
    });
    answer.map_or_else(|| decision.to_owned(), |answer| format!("ask: {answer}"))
}

/// Returns what a call does, what was asked for where that is something else, and why it was not done.
fn what(call: &Call, most: usize) -> String {
    let said = |approval: &Approval| approval.answer.as_ref()?.message.clone();
    let arguments = brief::arguments(&call.arguments);
    let done = if arguments.is_empty() { call.what.clone().unwrap_or_default() } else { arguments };
    let asked = call.asked.as_ref().map(|asked| format!(" (asked: {})", brief::arguments(asked)));
    let asked = asked.unwrap_or_default();
    let why = match &call.error {
        Some(error) => Some(error.message.clone()),
        None => call.approval.as_ref().and_then(said),
    };
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    brief::one_line(&format!("{done}{asked}{why}"), most)
}

fn of_rights(rights: &Rights, most: usize) -> [String; 5] {
    let word = match rights.event {
        Began::Started => "started",
        Began::Resumed => "resumed",
    };
    let text = |key: &str| rights.origin.get(key).and_then(|value| value.as_str());
    let agent = rights.origin.get("agent").map(|agent| of_agent(agent, &rights.origin));
    let mode = text("mode").map(|mode| format!("mode {mode}"));
    let place = text("workingDirectory").map(|place| format!("in {place}"));
    let tools = rights.origin.get("tools").and_then(|tools| tools.as_array()).map(|tools| {
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool.as_str()).collect();
        format!("with {}", names.join(", "))
    });
    let sandbox = text("sandbox").map(|sandbox| format!("sandbox {sandbox}"));
    let served = rights.origin.get("served").map(|_| "for MCP clients".to_owned());
    let all = [agent, mode, sandbox, served, place, tools].into_iter().flatten();
    let all: Vec<String> = all.filter(|part| !part.is_empty()).collect();
    let empty = String::new;
    [word.to_owned(), empty(), empty(), empty(), brief::one_line(&all.join("; "), most)]
}

/// Returns what the definition of an agent lets it do, beside what its caller may: of one that works by itself, with
/// its name.
fn of_agent(agent: &Value, origin: &Value) -> String {
    let name = agent.get("name").and_then(Value::as_str);
    let rights = agent.get("rights").or_else(|| origin.get("rights"));
    let rights = rights.cloned().and_then(|rights| serde_json::from_value(rights).ok());
    let AgentRights { mode, rules, commands, tools, .. } = rights.unwrap_or_default();
    let list = |what: &str, names: Vec<String>| match names.as_slice() {
        [] => format!("no {what}"),
        names => format!("{what} {}", names.join(", ")),
    };
    let parts = [
        mode.map(|mode| format!("its mode {mode}")),
        tools.map(|tools| list("tools", tools)),
        commands.map(|commands| list("commands", commands)),
        (!rules.is_empty()).then(|| amounts::count(rules.len() as u64, "rule")),
    ];
    let said = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    match (name, said.as_str()) {
        (None, "") => "as its caller".to_owned(),
        (None, _) => said,
        (Some(name), _) => format!("agent {name}: {said}").trim_end().to_owned(),
    }
}

const fn style(act: &Act) -> Option<Style> {
    match act {
        Act::Call(call) => Some(match call.outcome {
            Outcome::Completed => Style::Good,
            Outcome::Failed | Outcome::Denied => Style::Bad,
            Outcome::Unfinished => Style::Warn,
        }),
        _ => None,
    }
}

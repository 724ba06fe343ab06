//! What was done, as rows.

use convoke::agent::AgentRights;
use convoke::journal::audit::{Act, Approval, Began, Call, Entry, Outcome, Rights};
use serde_json::Value;

use crate::moment;
use crate::output::{Stream, Style, columns};
use crate::view::line::Line;
use crate::view::look::{Look, Sign};
use crate::view::{amounts, brief};

/// How many columns there are at most.
const AGENT: usize = 32;
const TOOL: usize = 32;
const RULE: usize = 48;
const WHAT: usize = 300;
/// How many columns what was done wants at least.
const LEAST_WHAT: usize = 20;
const GAP: usize = 2;

/// A column before the last, by its place.
const TITLES: [&str; 7] = ["when (UTC)", "run", "agent", "outcome", "tool", "decision", "rule"];
const OUTCOME: usize = 3;
/// In which order they go where there is too little room: the rule, the agent, the run, the time.
const LEAST_MISSED: [usize; 4] = [6, 2, 1, 0];

/// An entry in cells, with what was done last.
struct Row {
    cells: [String; TITLES.len()],
    style: Option<Style>,
    what: String,
}

/// Prints what was done, one line each. Where the terminal is narrow, columns go until there is room for
/// what was done.
pub(super) fn print(entries: &[Entry], stream: &Stream) {
    let look = Look::of(stream);
    let rows: Vec<Row> = entries.iter().filter_map(|entry| row(entry, look)).collect();
    if rows.is_empty() {
        return;
    }
    let width = |index: usize| {
        let cells = rows.iter().filter_map(|row| row.cells.get(index));
        cells.map(|cell| columns(cell)).max().unwrap_or_default()
    };
    let mut shown: Vec<(usize, usize)> = TITLES
        .iter()
        .enumerate()
        .map(|(index, title)| (index, width(index).max(columns(title))))
        .collect();
    if let Some(room) = stream.width() {
        drop_least_missed(&mut shown, room.saturating_sub(LEAST_WHAT));
    }
    let room = stream.width().unwrap_or(usize::MAX);
    let title = shown.iter().fold(Line::default(), |line, (index, width)| {
        let title = TITLES.get(*index).copied().unwrap_or_default();
        put(line, Some(Style::Dim), title, *width)
    });
    stream.line(title.styled(Style::Dim, "what").fit(room, stream).trim_end());
    for row in &rows {
        let line = shown.iter().fold(Line::default(), |line, (index, width)| {
            let cell = row.cells.get(*index).map(String::as_str).unwrap_or_default();
            put(line, row.style.filter(|_| *index == OUTCOME), cell, *width)
        });
        stream.line(line.flexible(None, row.what.as_str()).fit(room, stream).trim_end());
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

fn drop_least_missed(shown: &mut Vec<(usize, usize)>, room: usize) {
    for least in LEAST_MISSED {
        let taken: usize = shown.iter().map(|(_, width)| width + GAP).sum();
        if taken <= room {
            return;
        }
        shown.retain(|(index, _)| *index != least);
    }
}

fn row(entry: &Entry, look: Look) -> Option<Row> {
    let [outcome, tool, decision, rule, what] = match &entry.act {
        Act::Call(call) => of_call(call, look),
        Act::Rights(rights) => of_rights(rights),
        _ => return None,
    };
    let agent = brief::one_line(&entry.agent_label, AGENT);
    let (when, run) = (moment::show(entry.ts), entry.run.to_string());
    let cells = [when, run, agent, outcome, tool, decision, rule];
    Some(Row { cells, style: style(&entry.act), what })
}

fn of_call(call: &Call, look: Look) -> [String; 5] {
    let sign = look.sign(match call.outcome {
        Outcome::Completed => Sign::Ok,
        Outcome::Failed => Sign::Failed,
        Outcome::Denied => Sign::Denied,
        Outcome::Unfinished => Sign::Stopped,
    });
    let rule = call.rule.as_deref().unwrap_or_default();
    [
        format!("{sign} {}", call.outcome.as_str()),
        brief::one_line(&call.tool, TOOL),
        decision(call),
        brief::one_line(rule, RULE),
        what(call),
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
fn what(call: &Call) -> String {
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
    brief::one_line(&format!("{done}{asked}{why}"), WHAT)
}

fn of_rights(rights: &Rights) -> [String; 5] {
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
    let all = [agent, mode, sandbox, place, tools].into_iter().flatten();
    let all: Vec<String> = all.filter(|part| !part.is_empty()).collect();
    let empty = String::new;
    [word.to_owned(), empty(), empty(), empty(), brief::one_line(&all.join(" "), WHAT)]
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
        name.map(|name| format!("agent {name}:")),
        mode.map(|mode| format!("its mode {mode}")),
        tools.map(|tools| list("tools", tools)),
        commands.map(|commands| list("commands", commands)),
        (!rules.is_empty()).then(|| amounts::count(rules.len() as u64, "rule")),
    ];
    let said = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    if said.is_empty() { "as its caller".to_owned() } else { said }
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

//! What was done, as rows.

use convoke::journal::audit::{Act, Approval, Began, Call, Entry, Outcome, Rights};

use crate::moment;
use crate::output::{Stream, Style, Table};
use crate::view::brief;
use crate::view::look::{Look, Sign};

/// How many columns there are at most.
const AGENT: usize = 32;
const TOOL: usize = 32;
const RULE: usize = 48;
const WHAT: usize = 300;

/// Prints what was done, one line each.
pub(super) fn print(entries: &[Entry], stream: &Stream) {
    if entries.is_empty() {
        return;
    }
    let look = Look::of(stream);
    let mut table = Table::default().cut();
    let title = |text: &str| (text.to_owned(), Some(Style::Dim));
    table.row(
        ["when (UTC)", "run", "agent", "outcome", "tool", "decision", "rule", "what"].map(title),
    );
    for entry in entries {
        let [outcome, tool, decision, rule, what] = match &entry.act {
            Act::Call(call) => of_call(call, look),
            Act::Rights(rights) => of_rights(rights),
            _ => continue,
        };
        let plain = |text: String| (text, None);
        table.row([
            plain(moment::show(entry.ts)),
            plain(entry.run.to_string()),
            plain(brief::one_line(entry.agent.as_str(), AGENT)),
            (outcome, style(&entry.act)),
            plain(tool),
            plain(decision),
            plain(rule),
            plain(what),
        ]);
    }
    table.print(stream);
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

/// Returns what was decided, and what was answered where somebody was asked.
fn decision(call: &Call) -> String {
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

/// Returns what a call does, and why it was not done.
fn what(call: &Call) -> String {
    let said = |approval: &Approval| approval.answer.as_ref()?.message.clone();
    let arguments = brief::arguments(&call.arguments);
    let done = if arguments.is_empty() { call.what.clone().unwrap_or_default() } else { arguments };
    let why = match &call.error {
        Some(error) => Some(error.message.clone()),
        None => call.approval.as_ref().and_then(said),
    };
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    brief::one_line(&format!("{done}{why}"), WHAT)
}

fn of_rights(rights: &Rights) -> [String; 5] {
    let word = match rights.event {
        Began::Started => "started",
        Began::Resumed => "resumed",
    };
    let text = |key: &str| rights.origin.get(key).and_then(|value| value.as_str());
    let mode = text("mode").map(|mode| format!("mode {mode}"));
    let place = text("workingDirectory").map(|place| format!("in {place}"));
    let tools = rights.origin.get("tools").and_then(|tools| tools.as_array()).map(|tools| {
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool.as_str()).collect();
        format!("with {}", names.join(", "))
    });
    let sandbox = text("sandbox").map(|sandbox| format!("sandbox {sandbox}"));
    let all: Vec<String> = [mode, sandbox, place, tools].into_iter().flatten().collect();
    let empty = String::new;
    [word.to_owned(), empty(), empty(), empty(), brief::one_line(&all.join(" "), WHAT)]
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

//! Single things that happened, as rows.

use convoke::journal::timeline::{Approval, Call, CallState, Item, ModelState, Note, Span, Tone};
use convoke_core::event::{PlanStep, Reflection};
use convoke_core::policy::RuleSpec;
use convoke_core::{DisplayFormat, Part, Purpose, StopReason};
use serde_json::Value;

use super::row::Row;
use crate::output::Style;
use crate::view::amounts;
use crate::view::brief::{self, REMARK, one_line};
use crate::view::look::Sign;

/// How long what was asked or said is, in columns.
pub(super) const SAID: usize = 160;

/// A call of a tool.
pub(super) fn call(row: Row, item: &Item<'_>, call: &Call<'_>) -> Row {
    let (sign, style) = match call.state {
        CallState::Completed(_) => (Sign::Ok, Style::Good),
        CallState::Failed(_) => (Sign::Failed, Style::Bad),
        CallState::Denied(_) => (Sign::Denied, Style::Bad),
        CallState::Interrupted => (Sign::Stopped, Style::Warn),
        CallState::Requested | CallState::Waiting | CallState::Deferred(_) => {
            (Sign::Waits, Style::Warn)
        }
        CallState::Running => (Sign::Begins, Style::Place),
    };
    let mut row = row.went(sign, Some(style)).named(one_line(call.tool, SAID));
    row = row.about(brief::arguments(call.arguments));
    if let Some(start) = call.began {
        // The tool itself, without the wait for permission or for its turn.
        let duration = call.took.unwrap_or_else(|| item.span.end().saturating_sub(start));
        row = row.took(Span { start, duration, ..item.span });
    }
    match call.state {
        CallState::Completed(_) => row.facts.extend(brief::result(call.content, call.display)),
        CallState::Interrupted => row.facts.push("interrupted".to_owned()),
        CallState::Waiting => row.facts.push("waits for an answer".to_owned()),
        CallState::Deferred(reason) => {
            row.facts.push("waits".to_owned());
            row.notes.push(one_line(reason, REMARK));
        }
        CallState::Requested => row.facts.push("not started".to_owned()),
        CallState::Failed(error) => {
            row.facts.push("failed".to_owned());
            row.notes.push(one_line(&error.message, REMARK));
        }
        CallState::Denied(error) => {
            row.facts.push("denied".to_owned());
            row.notes.push(one_line(&error.message, REMARK));
        }
        CallState::Running => {}
    }
    if let Some(approval) = &call.approval {
        row.notes.push(answered(approval));
    }
    details(&mut row, call);
    row
}

/// What somebody wanted.
pub(super) fn asked(row: Row, text: &str, attachments: &[&Part], history: usize) -> Row {
    let mut row = row.named("asked").about(one_line(text, SAID)).went(Sign::Begins, None);
    if !attachments.is_empty() {
        row.facts.push(amounts::count(attachments.len() as u64, "attachment"));
    }
    if history > 0 {
        let messages = amounts::count(history as u64, "message");
        row.notes.push(format!("after an earlier conversation of {messages}"));
    }
    if text.trim().contains('\n') || text.len() > SAID {
        row.detail("asked", text);
    }
    row
}

/// What a model was asked for.
pub(super) const fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Main => "model",
        Purpose::Grace => "last answer",
        Purpose::Compact => "summing up",
        Purpose::Reflect => "looking back",
        Purpose::Plan => "planning",
    }
}

/// What came of asking a model.
pub(super) const fn model_state(state: &ModelState<'_>) -> (Sign, Option<Style>, &'static str) {
    match state {
        ModelState::Open => (Sign::Begins, Some(Style::Place), ""),
        ModelState::Answered(StopReason::Done) => (Sign::Note, None, ""),
        ModelState::Answered(StopReason::Length) => (Sign::Stopped, Some(Style::Warn), "cut off"),
        ModelState::Answered(StopReason::Refused) => (Sign::Denied, Some(Style::Bad), "refused"),
        ModelState::Answered(_) => (Sign::Note, None, "stopped"),
        ModelState::Failed(_) => (Sign::Failed, Some(Style::Bad), "failed"),
        ModelState::Interrupted => (Sign::Stopped, Some(Style::Warn), "interrupted"),
    }
}

/// Who said what about a call.
fn answered(approval: &Approval<'_>) -> String {
    let after = amounts::time(approval.span.duration);
    let mut answer = match approval.approved {
        Some(true) => format!("allowed after {after}"),
        Some(false) if approval.by.is_none() => "nobody answered".to_owned(),
        Some(false) => format!("refused after {after}"),
        None => format!("asked, and {after} later not answered"),
    };
    if let Some(who) = approval.by {
        answer.push_str(&format!(" by {}", one_line(who, REMARK)));
    }
    if approval.changed.is_some() {
        answer.push_str(", with other arguments");
    }
    if !approval.granted.is_empty() {
        let rules: Vec<String> = approval.granted.iter().map(RuleSpec::shown).collect();
        answer.push_str(&format!(", and from then on {}", one_line(&rules.join("; "), REMARK)));
    }
    match approval.words {
        Some(words) => format!("{answer}: {}", one_line(words, REMARK)),
        None => answer,
    }
}

fn details(row: &mut Row, call: &Call<'_>) {
    if let Some((decision, rule)) = call.decision {
        row.detail("policy", format!("{decision} ({rule})"));
    }
    if !call.arguments.is_null() {
        row.detail("arguments", pretty(call.arguments));
    }
    let shown = call.display.or(call.approval.as_ref().and_then(|approval| approval.preview));
    match shown {
        Some(display) if display.format == DisplayFormat::Diff => {
            row.change("change", &display.text);
        }
        _ => {}
    }
    let texts: Vec<&str> = call.content.iter().filter_map(Part::as_text).collect();
    match call.state {
        _ if !texts.is_empty() => row.detail("result", texts.join("\n")),
        CallState::Completed(value) => row.detail("result", pretty(value)),
        _ => row.detail("output until then", call.progress.as_str()),
    }
}

fn pretty(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

/// A look back.
pub(super) fn reflection(row: Row, found: &Reflection) -> Row {
    let verdict = serde_json::to_value(found.verdict).unwrap_or_default();
    let verdict = verdict.as_str().unwrap_or_default();
    let about = format!("{verdict}: {}", one_line(&found.assessment, SAID));
    let mut row = row.named("looked back").about(about);
    row.notes.extend(found.lessons.iter().map(|lesson| one_line(lesson, REMARK)));
    if let Some(next) = &found.next_focus {
        row.notes.push(format!("next: {}", one_line(next, REMARK)));
    }
    row.detail("assessment", found.assessment.as_str());
    row
}

/// A plan, with its steps.
pub(super) fn plan(row: Row, steps: &[PlanStep]) -> Row {
    let mut row = row.named("plan").about(amounts::count(steps.len() as u64, "step"));
    for step in steps {
        let tool = step.tool.as_deref().unwrap_or_default();
        let text = format!("{} {tool} {}", step.id, brief::arguments(&step.params));
        row.notes.push(one_line(&text, REMARK));
    }
    row
}

/// An answer that was checked.
pub(super) fn checked(row: Row, answer: &Value, problems: &[String]) -> Row {
    if problems.is_empty() {
        return row
            .named("the answer has the shape it has to have")
            .went(Sign::Ok, Some(Style::Good));
    }
    let mut row = row.named("the answer does not have the shape it has to have");
    row = row.went(Sign::Failed, Some(Style::Bad));
    row.notes.extend(problems.iter().map(|problem| one_line(problem, REMARK)));
    row.detail("answer", pretty(answer));
    row
}

/// Something worth a line.
pub(super) fn remark(row: Row, note: &Note) -> Row {
    let (sign, style) = match note.tone {
        Tone::Quiet => (Sign::Note, None),
        Tone::Warning => (Sign::Warning, Some(Style::Warn)),
        Tone::Error => (Sign::Failed, Some(Style::Bad)),
    };
    let stop = if note.text.is_empty() { "" } else { ":" };
    let mut row = row.named(one_line(&note.title, SAID) + stop).went(sign, style);
    row = row.about(one_line(&note.text, REMARK));
    row.detail("said", note.text.as_str());
    row
}

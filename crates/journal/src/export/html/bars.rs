//! The line of time: a row for each thing that happened, with a bar for when.
//!
//! Bars are drawn as SVG and placed by attributes: a page that allows no styles but its own cannot place
//! anything by style.

use super::body::agent_id;
use super::writer::Html;
use crate::export::amounts::time;
use crate::export::axis::Axis;
use crate::export::brief;
use crate::export::words::{self, Mood};
use crate::timeline::{AgentIndex, Call, Item, ItemKind, Span, Timeline, Tone};

/// How many letters a label has at most.
const LABEL: usize = 60;

/// Writes the rows of all agents.
pub(super) fn write(page: &mut Html, timeline: &Timeline<'_>) {
    let rows = Rows { timeline, axis: Axis::of(timeline) };
    rows.axis(page);
    page.markup("<ol>");
    for (number, index) in timeline.roots.iter().enumerate() {
        match timeline.agent(*index) {
            Some(agent) if number == 0 => rows.items(page, &agent.items, 0),
            _ => rows.child(page, *index, 0),
        }
    }
    page.markup("</ol>");
}

/// A row.
struct Row<'r> {
    id: &'r str,
    level: usize,
    class: &'static str,
    mood: Mood,
    label: String,
    detail: String,
    span: Span,
    waits: Option<Span>,
}

struct Rows<'t, 'e> {
    timeline: &'t Timeline<'e>,
    axis: Axis,
}

impl<'t> Rows<'t, '_> {
    fn axis(&self, page: &mut Html) {
        page.markup("<svg class=\"axis\" aria-hidden=\"true\">");
        for (place, moment) in self.axis.ticks() {
            page.markup("<line x1=\"").percent(place).markup("\" x2=\"").percent(place);
            page.markup("\" y1=\"16\" y2=\"22\"/><text y=\"11\" x=\"").percent(place).markup("\"");
            page.markup(match place {
                0 => ">",
                9_300.. => " text-anchor=\"end\">",
                _ => " text-anchor=\"middle\">",
            });
            page.text(&tick(moment)).markup("</text>");
        }
        page.markup("</svg>");
    }

    fn items(&self, page: &mut Html, items: &'t [Item<'_>], level: usize) {
        for item in items {
            self.item(page, item, level);
        }
    }

    fn child(&self, page: &mut Html, index: AgentIndex, level: usize) {
        let Some(agent) = self.timeline.agent(index) else { return };
        let mood = words::ending(agent).0;
        let (label, detail) = (self.timeline.label(index), "agent".to_owned());
        let row = Row {
            id: &agent_id(index),
            level,
            class: "agent",
            mood,
            label,
            detail,
            span: agent.span,
            waits: None,
        };
        self.row(page, &row);
        self.items(page, &agent.items, level + 1);
    }

    fn item(&self, page: &mut Html, item: &'t Item<'_>, level: usize) {
        if let ItemKind::Agent(index) = &item.kind {
            self.child(page, *index, level);
            return;
        }
        let (class, mood, label, detail) = describe(&item.kind);
        let waits = match &item.kind {
            ItemKind::Call(call) => waits(call, item.span),
            _ => None,
        };
        let (id, span) = (&item.id, item.span);
        self.row(page, &Row { id, level, class, mood, label, detail, span, waits });
        match &item.kind {
            ItemKind::Turn(turn) => self.items(page, &turn.items, level + 1),
            ItemKind::Call(call) => {
                call.agents.iter().for_each(|child| self.child(page, *child, level + 1));
            }
            _ => {}
        }
    }

    fn row(&self, page: &mut Html, row: &Row<'_>) {
        page.markup("<li class=\"").markup(row.class).markup(" ").mood(row.mood);
        page.markup("\"><a href=\"#").text(row.id).markup("\"><span class=\"label in");
        page.number(u64::try_from(row.level.min(9)).unwrap_or_default()).markup("\">");
        if !matches!(row.mood, Mood::Neutral) {
            page.markup("<span class=\"sign\">").markup(row.mood.sign()).markup("</span> ");
        }
        page.markup("<b>").text(&brief::one_line(&row.label, LABEL)).markup("</b> ");
        page.text(&brief::one_line(&row.detail, LABEL));
        page.markup("</span><svg class=\"lane\" role=\"img\" aria-label=\"");
        page.text(&spoken(row.span)).markup("\">");
        bar(page, self.axis.bar(row.span), if row.span.open { "bar open" } else { "bar" });
        if let Some(waits) = row.waits.and_then(|span| self.axis.part(span)) {
            bar(page, waits, "bar waits");
        }
        page.markup("</svg></a></li>");
    }
}

fn bar(page: &mut Html, (start, length): (u64, u64), class: &'static str) {
    page.markup("<rect class=\"").markup(class).markup("\" x=\"").percent(start);
    page.markup("\" width=\"").percent(length);
    page.markup("\" y=\"25%\" height=\"50%\" rx=\"2\"/>");
}

/// Returns when a call waited: for a person, or for other calls.
fn waits(call: &Call<'_>, span: Span) -> Option<Span> {
    match call.began {
        Some(began) => {
            let duration = began.saturating_sub(span.start);
            (!duration.is_zero()).then_some(Span { start: span.start, duration, open: false })
        }
        None => call.approval.as_ref().map(|approval| approval.span),
    }
}

/// Returns how a row looks, and what it says.
fn describe(kind: &ItemKind<'_>) -> (&'static str, Mood, String, String) {
    let named = |class, mood, label: &str| (class, mood, label.to_owned(), String::new());
    match kind {
        ItemKind::Asked { text, .. } => {
            ("asked", Mood::Neutral, "Asked".to_owned(), brief::one_line(text, LABEL))
        }
        ItemKind::Turn(turn) => named("turn", Mood::Neutral, &format!("Turn {}", turn.number)),
        ItemKind::Model(model) => {
            let (mood, word) = words::model_state(&model.state);
            ("model", mood, words::purpose(model.purpose).to_owned(), word.to_owned())
        }
        ItemKind::Call(call) => {
            let mood = words::call_state(&call.state).0;
            ("call", mood, call.tool.to_owned(), brief::arguments(call.arguments))
        }
        ItemKind::Compaction { summary: Some(_), .. } => {
            named("mark", Mood::Neutral, "Conversation shortened")
        }
        ItemKind::Compaction { summary: None, .. } => {
            named("mark", Mood::Stopped, "Conversation not shortened")
        }
        ItemKind::Reflection(_) => named("mark", Mood::Neutral, "Reflection"),
        ItemKind::Plan(_) => named("mark", Mood::Neutral, "Plan"),
        ItemKind::AnswerChecked { problems: [], .. } => {
            named("mark", Mood::Good, "Answer accepted")
        }
        ItemKind::AnswerChecked { .. } => named("mark", Mood::Bad, "Answer not accepted"),
        ItemKind::Note(note) => {
            let mood = match note.tone {
                Tone::Quiet => Mood::Neutral,
                Tone::Warning => Mood::Stopped,
                Tone::Error => Mood::Bad,
            };
            named("mark", mood, &note.title)
        }
        ItemKind::Plain { kind, .. } => named("mark", Mood::Neutral, &kind.replace('_', " ")),
        ItemKind::Agent(_) => named("agent", Mood::Neutral, "Agent"),
        ItemKind::Ended(end) => {
            let (mood, word) = words::outcome(end.outcome);
            ("mark", mood, "Ended".to_owned(), word)
        }
    }
}

fn spoken(span: Span) -> String {
    let end = if span.open { ", not finished" } else { "" };
    format!("at {}, for {}{end}", time(span.start), time(span.duration))
}

/// Writes a moment on the line: whole seconds without a point.
fn tick(moment: std::time::Duration) -> String {
    let millis = moment.as_millis();
    match millis {
        0 => "0".to_owned(),
        millis if millis < 60_000 && millis.is_multiple_of(1000) => format!("{} s", millis / 1000),
        _ => time(moment),
    }
}

//! What happened, in order: the part of the page that is read.

use std::cell::Cell;
use std::time::Duration;

use convoke_core::event::{PlanStep, Reflection};
use convoke_core::{Part, Usage};
use serde_json::Value;

use super::writer::Html;
use super::{call, model, prose};
use crate::export::amounts::{count, time, tokens, usage};
use crate::export::axis::Axis;
use crate::export::brief;
use crate::export::words::{self, Mood};
use crate::timeline::{
    Agent, AgentIndex, End, Gap, Item, ItemKind, Note, Span, Timeline, Tone, Turn,
};

/// Returns the name that an agent has on the page.
pub(super) fn agent_id(index: AgentIndex) -> String {
    format!("agent-{}", index.get())
}

/// Writes what all agents did.
pub(super) fn write(page: &mut Html, timeline: &Timeline<'_>) {
    let body = Body { timeline, axis: Axis::of(timeline), gaps: Cell::new(0) };
    let Some(main) = timeline.main() else {
        page.markup("<p class=\"nothing\">There are no events.</p>");
        return;
    };
    answer(page, main);
    for (number, index) in timeline.roots.iter().enumerate() {
        match timeline.agent(*index) {
            Some(agent) if number == 0 => body.items(page, &agent.items, agent),
            _ => body.child(page, *index),
        }
    }
    if main.end.is_none() {
        page.markup("<p class=\"nothing\">Nothing is known of what came after this: the run ");
        page.markup("is still at work, or was ended from outside.</p>");
    }
}

/// Most people come for the answer.
fn answer(page: &mut Html, main: &Agent<'_>) {
    let Some(answer) = main.end.and_then(|end| end.answer) else { return };
    page.markup("<section class=\"answer\" data-item id=\"answer\"><h2>Answer</h2>");
    value(page, answer);
    page.markup("</section>");
}

/// What is needed to write an item.
pub(super) struct Body<'t, 'e> {
    timeline: &'t Timeline<'e>,
    axis: Axis,
    /// How many gaps were shown.
    gaps: Cell<usize>,
}

impl<'e> Body<'_, 'e> {
    fn items(&self, page: &mut Html, items: &[Item<'e>], agent: &Agent<'e>) {
        for item in items {
            if agent.depth == 0 {
                self.gaps_before(page, item.span);
            }
            self.item(page, item, agent);
        }
    }

    fn gaps_before(&self, page: &mut Html, span: Span) {
        let is_over = |gap: &&Gap| gap.span.end() <= span.start;
        while let Some(gap) = self.timeline.gaps.get(self.gaps.get()).filter(is_over) {
            self.gaps.set(self.gaps.get() + 1);
            page.markup("<p class=\"gap\"><span>").text(&time(gap.span.duration));
            page.markup(" ").text(words::gap(gap.reason)).markup("</span></p>");
        }
    }

    fn item(&self, page: &mut Html, item: &Item<'e>, agent: &Agent<'e>) {
        match &item.kind {
            ItemKind::Turn(turn) => self.turn(page, item, turn, agent),
            ItemKind::Agent(index) => {
                page.markup("<div id=\"").text(&item.id).markup("\">");
                self.child(page, *index);
                page.markup("</div>");
            }
            ItemKind::Call(call) => {
                self.open(page, "call", item);
                call::write(page, call, item.span);
                call.agents.iter().for_each(|index| self.child(page, *index));
                page.markup("</div></article>");
            }
            kind => {
                self.open(page, class(kind), item);
                plain_item(page, item, agent);
                page.markup("</div></article>");
            }
        }
    }

    /// Begins an item: its name, and when it began.
    fn open(&self, page: &mut Html, class: &'static str, item: &Item<'_>) {
        page.markup("<article data-item class=\"item ").markup(class);
        page.markup("\" id=\"").text(&item.id).markup("\"><a class=\"at\" href=\"#").text(&item.id);
        page.markup("\" title=\"Link to this\">").text(&self.moment(item.span));
        page.markup("</a><div class=\"what\">");
    }

    fn moment(&self, span: Span) -> String {
        let worked = self.axis.worked(span.start);
        let is_short = self.timeline.elapsed < Duration::from_secs(5);
        match worked.as_secs() {
            _ if is_short => format!("{} ms", worked.as_millis()),
            0..60 => format!("{}.{} s", worked.as_secs(), worked.subsec_millis() / 100),
            _ => time(worked),
        }
    }

    fn turn(&self, page: &mut Html, item: &Item<'e>, turn: &Turn<'e>, agent: &Agent<'e>) {
        page.markup("<section class=\"turn\" id=\"").text(&item.id).markup("\"><h2>Turn ");
        page.number(turn.number).markup(" <span class=\"meta\">");
        meta(page, item.span, &turn.usage);
        let so_far = turn.so_far.filter(|so_far| *so_far != turn.usage);
        if let Some(so_far) = so_far.as_ref().and_then(usage) {
            page.markup("<span class=\"so-far\"> · so far ").text(&so_far).markup("</span>");
        }
        page.markup("</span></h2>");
        self.items(page, &turn.items, agent);
        page.markup("</section>");
    }

    fn child(&self, page: &mut Html, index: AgentIndex) {
        let Some(agent) = self.timeline.agent(index) else { return };
        let (mood, ending) = words::ending(agent);
        page.markup("<details class=\"agent\" open id=\"").text(&agent_id(index));
        page.markup("\"><summary><span class=\"kind\">Agent</span> <b>")
            .text(&self.timeline.label(index));
        page.markup("</b> ");
        badge(page, mood, &ending);
        page.markup(" <span class=\"meta\">").text(&count(agent.turns.into(), "turn"));
        page.markup(" · ");
        let reported = agent.end.map(|end| end.usage);
        let reported = reported.or_else(|| agent.reported.map(|reported| reported.usage));
        meta(page, agent.span, &reported.unwrap_or(agent.usage));
        page.markup("</span></summary><div class=\"inside\">");
        self.items(page, &agent.items, agent);
        if agent.items.is_empty() {
            page.markup("<p class=\"nothing\">None of its events are here.</p>");
        }
        page.markup("</div></details>");
    }
}

const fn class(kind: &ItemKind<'_>) -> &'static str {
    match kind {
        ItemKind::Asked { .. } => "asked",
        ItemKind::Model(_) => "model",
        ItemKind::Note(Note { tone: Tone::Warning, .. }) => "note warning",
        ItemKind::Note(Note { tone: Tone::Error, .. }) => "note error",
        ItemKind::Ended(_) => "ended",
        _ => "note",
    }
}

fn plain_item(page: &mut Html, item: &Item<'_>, agent: &Agent<'_>) {
    match &item.kind {
        ItemKind::Asked { text, attachments, history } => {
            asked(page, text, attachments, *history);
            let is_asked = |item: &&Item<'_>| matches!(item.kind, ItemKind::Asked { .. });
            if agent.items.iter().find(is_asked).is_some_and(|first| first.id == item.id) {
                setup(page, agent);
            }
        }
        ItemKind::Model(asked) => model::write(page, asked, item.span, agent),
        ItemKind::Compaction { before, after, summary } => {
            compaction(page, *before, *after, *summary);
        }
        ItemKind::Reflection(found) => reflection(page, found),
        ItemKind::Plan(steps) => plan(page, steps),
        ItemKind::AnswerChecked { value: answer, problems } => checked(page, answer, problems),
        ItemKind::Note(note) => {
            head(page, &note.title);
            if !note.text.is_empty() {
                prose::write(page, &note.text);
            }
        }
        ItemKind::Plain { kind, data } => {
            head(page, &kind.replace('_', " "));
            if !data.is_null() {
                block(page, "Data", &words::json(data));
            }
        }
        ItemKind::Ended(end) => ended(page, end, agent),
        ItemKind::Turn(_) | ItemKind::Call(_) | ItemKind::Agent(_) => {}
    }
}

fn asked(page: &mut Html, text: &str, attachments: &[&Part], history: usize) {
    head(page, "Asked");
    page.markup("<div class=\"quote\">").bounded(text.trim(), |page, text| {
        page.text(text);
    });
    page.markup("</div>");
    for part in attachments {
        page.markup("<p class=\"meta\">").text(&brief::one_line(&words::part(part), 200));
        page.markup("</p>");
    }
    if history > 0 {
        let history = count(u64::try_from(history).unwrap_or(u64::MAX), "message");
        page.markup("<p class=\"meta\">After an earlier conversation of ").text(&history);
        page.markup(".</p>");
    }
}

/// What an agent was given: its instructions and its tools.
fn setup(page: &mut Html, agent: &Agent<'_>) {
    if agent.system.is_empty() && agent.tools.is_empty() {
        return;
    }
    let tools = count(u64::try_from(agent.tools.len()).unwrap_or(u64::MAX), "tool");
    page.markup("<details class=\"more\"><summary>Instructions and ").text(&tools);
    page.markup("</summary>");
    if !agent.tools.is_empty() {
        page.markup("<p class=\"names\">");
        for tool in &agent.tools {
            page.markup("<code>").text(tool).markup("</code> ");
        }
        page.markup("</p>");
    }
    if !agent.system.is_empty() {
        block(page, "Instructions", agent.system);
    }
    page.markup("</details>");
}

fn compaction(page: &mut Html, before: u64, after: u64, summary: Option<&str>) {
    let Some(summary) = summary else {
        head(page, "The conversation could not be made shorter");
        return;
    };
    page.markup("<p class=\"head\"><b>Conversation shortened</b> <span class=\"meta\">");
    page.text(&tokens(before)).markup(" → ").text(&tokens(after)).markup(" tokens</span></p>");
    folded(page, "What is kept", summary);
}

fn reflection(page: &mut Html, found: &Reflection) {
    page.markup("<p class=\"head\"><b>Reflection</b> <span class=\"meta\">");
    page.text(&words::word(&found.verdict)).markup("</span></p>");
    prose::write(page, &found.assessment);
    if !found.lessons.is_empty() || !found.tool_failures.is_empty() {
        page.markup("<ul class=\"list\">");
        for lesson in &found.lessons {
            page.markup("<li>").text(lesson).markup("</li>");
        }
        for failure in &found.tool_failures {
            page.markup("<li><code>").text(&failure.tool_name).markup("</code> ");
            page.text(&failure.error);
            if let Some(suggestion) = &failure.suggestion {
                page.markup(" → ").text(suggestion);
            }
            page.markup("</li>");
        }
        page.markup("</ul>");
    }
    if let Some(next) = &found.next_focus {
        page.markup("<p>Next: ").text(next).markup("</p>");
    }
}

fn plan(page: &mut Html, steps: &[PlanStep]) {
    head(page, "Plan");
    page.markup("<ol class=\"list\">");
    for step in steps {
        page.markup("<li><b>").text(&step.id).markup("</b> ");
        page.text(&words::word(&step.action_type));
        if let Some(tool) = &step.tool {
            page.markup(" <code>").text(tool).markup("</code>");
        }
        page.markup(" ").text(&brief::arguments(&step.params));
        if !step.depends_on.is_empty() {
            page.markup(" <span class=\"meta\">after ").text(&step.depends_on.join(", "));
            page.markup("</span>");
        }
        page.markup("</li>");
    }
    page.markup("</ol>");
}

fn checked(page: &mut Html, answer: &Value, problems: &[String]) {
    if problems.is_empty() {
        head(page, "The answer has the shape it has to have");
        return;
    }
    head(page, "The answer does not have the shape it has to have");
    for problem in problems {
        page.markup("<div class=\"trouble\">").bounded(problem, |page, text| {
            page.text(text);
        });
        page.markup("</div>");
    }
    block(page, "Answer", &words::json(answer));
}

fn ended(page: &mut Html, end: &End<'_>, agent: &Agent<'_>) {
    let (mood, ending) = words::outcome(end.outcome);
    page.markup("<p class=\"head\"><b>Ended</b> ");
    badge(page, mood, &ending);
    if let Some(usage) = usage(&end.usage) {
        page.markup(" <span class=\"meta\">").text(&usage).markup("</span>");
    }
    page.markup("</p>");
    if let Some(message) = &end.outcome.message {
        page.markup("<div class=\"trouble\">").bounded(message, |page, text| {
            page.text(text);
        });
        page.markup("</div>");
    }
    if let Some(partial) = &end.outcome.partial {
        head(page, "What there was until then");
        value(page, partial);
    }
    // The last answer of the main agent stands at the top of the page.
    let is_on_top = agent.depth == 0 && agent.end.is_some_and(|last| last == *end);
    if let Some(answer) = end.answer.filter(|_| !is_on_top && !end.is_said) {
        value(page, answer);
    }
}

fn value(page: &mut Html, value: &Value) {
    match value {
        Value::String(text) => prose::write(page, text),
        value => block(page, "JSON", &words::json(value)),
    }
}

fn head(page: &mut Html, title: &str) {
    page.markup("<p class=\"head\"><b>").text(title).markup("</b></p>");
}

/// Writes how something ended.
pub(super) fn badge(page: &mut Html, mood: Mood, word: &str) {
    page.markup("<span class=\"badge ").mood(mood).markup("\"><span aria-hidden=\"true\">");
    page.markup(mood.sign()).markup("</span> ").text(word).markup("</span>");
}

/// Writes how long something took, and what it used.
pub(super) fn meta(page: &mut Html, span: Span, used: &Usage) {
    page.text(&time(span.duration));
    if span.open {
        page.markup(" and not finished");
    }
    if let Some(used) = usage(used) {
        page.markup(" · ").text(&used);
    }
}

/// Writes prose that is folded.
pub(super) fn folded(page: &mut Html, title: &'static str, text: &str) {
    page.markup("<details class=\"more\"><summary>").markup(title).markup("</summary>");
    prose::write(page, text);
    page.markup("</details>");
}

/// Writes a text as it stands, in a box with a button that copies it.
pub(super) fn block(page: &mut Html, title: &'static str, text: &str) {
    page.markup("<div class=\"block\"><p class=\"caption\">").markup(title);
    page.markup("<button type=\"button\" class=\"copy\">Copy</button></p><pre tabindex=\"0\">");
    page.bounded(text.trim_end_matches('\n'), |page, text| {
        page.text(text);
    });
    page.markup("</pre></div>");
}

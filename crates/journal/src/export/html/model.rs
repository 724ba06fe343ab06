//! A model that was asked: what it took, and what it said.

use convoke_core::Part;

use super::body::{badge, folded, meta};
use super::prose;
use super::writer::Html;
use crate::export::amounts::time;
use crate::export::{brief, words};
use crate::timeline::{Agent, ModelCall, ModelState, Span};

/// Writes a model call.
pub(super) fn write(page: &mut Html, model: &ModelCall<'_>, span: Span, agent: &Agent<'_>) {
    let (mood, state) = words::model_state(&model.state);
    page.markup("<p class=\"head\"><b>").text(words::purpose(model.purpose)).markup("</b> ");
    if !state.is_empty() {
        badge(page, mood, state);
    }
    page.markup(" <span class=\"meta\">");
    if model.model != agent.model {
        page.text(model.model).markup(" · ");
    }
    meta(page, span, &model.usage);
    page.markup("</span></p>");
    for retry in &model.retries {
        page.markup("<p class=\"retry\">Attempt ").number(retry.attempt).markup(" after ");
        page.text(&time(retry.delay)).markup(": ").text(retry.reason).markup("</p>");
    }
    if let Some(notice) = model.notice {
        folded(page, "It was told", notice);
    }
    if !model.thoughts.trim().is_empty() {
        folded(page, "Thought", &model.thoughts);
    }
    if !model.words.trim().is_empty() {
        if model.purpose.is_turn() {
            prose::write(page, &model.words);
        } else {
            folded(page, "It said", &model.words);
        }
    }
    asked_for(page, model);
    if let ModelState::Failed(failure) = &model.state {
        page.markup("<div class=\"trouble\"><b>").text(failure.error).markup("</b> ");
        page.text(failure.message);
        if let Some(hint) = failure.hint {
            page.markup("<p>").text(hint).markup("</p>");
        }
        page.markup("</div>");
    }
}

/// Names the tools that the model asks for, and what else it sent.
fn asked_for(page: &mut Html, model: &ModelCall<'_>) {
    let parts = model.message.map(|message| message.parts.as_slice()).unwrap_or_default();
    let calls: Vec<&str> = match model.message {
        Some(message) => message.calls().map(|call| call.name.as_str()).collect(),
        None => model.begun.clone(),
    };
    if !calls.is_empty() {
        page.markup("<p class=\"meta asks\">asks for ");
        for name in calls {
            page.markup("<code>").text(name).markup("</code> ");
        }
        page.markup("</p>");
    }
    for part in parts {
        if !matches!(part, Part::Text { .. } | Part::Thought { .. } | Part::ToolCall(_)) {
            page.markup("<p class=\"meta\">").text(&brief::one_line(&words::part(part), 200));
            page.markup("</p>");
        }
    }
}

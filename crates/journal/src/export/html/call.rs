//! A call: one line, and behind it what it was asked for and what came of it.

use convoke_core::{Access, Display, DisplayFormat, Effects, Resource, ToolError};

use super::body::{badge, block};
use super::prose;
use super::writer::Html;
use crate::export::amounts::time;
use crate::export::brief;
use crate::export::words;
use crate::timeline::{Approval, Call, CallState, Span};

/// Writes a call. One that went wrong, or has not ended, is unfolded.
pub(super) fn write(page: &mut Html, call: &Call<'_>, span: Span) {
    let (mood, state) = words::call_state(&call.state);
    let well = matches!(call.state, CallState::Completed(_));
    page.markup("<details data-fold class=\"").mood(mood);
    page.markup(if well { "\"><summary>" } else { "\" open><summary>" });
    page.markup("<span class=\"tool\">").text(call.tool).markup("</span> <span class=\"about\">");
    page.text(&brief::arguments(call.arguments)).markup("</span> <span class=\"came\">");
    let came = if well { brief::result(call) } else { String::new() };
    page.text(&came).markup("</span> ");
    badge(page, mood, state);
    page.markup(" <span class=\"took\">").text(&time(call.took.unwrap_or(span.duration)));
    page.markup("</span></summary><div class=\"inside\">");
    inside(page, call);
    page.markup("</div></details>");
}

fn inside(page: &mut Html, call: &Call<'_>) {
    if let CallState::Failed(error) | CallState::Denied(error) = &call.state {
        trouble(page, error);
    }
    permission(page, call);
    if let Some(approval) = &call.approval {
        asked(page, approval, call.display);
    }
    if let Some(display) = call.display {
        show(page, display);
    }
    if !call.arguments.is_null() {
        block(page, "Arguments", &words::json(call.arguments));
    }
    let content = words::parts(call.content);
    if !content.trim().is_empty() {
        block(page, "Result, as the model sees it", &content);
    } else if let CallState::Completed(value) = call.state {
        block(page, "Result", &words::json(value));
    }
    if call.content.is_empty() && !call.progress.is_empty() {
        block(page, "Output so far", &call.progress);
    }
}

fn trouble(page: &mut Html, error: &ToolError) {
    page.markup("<div class=\"trouble\"><b>").text(error.kind.as_str()).markup("</b> ");
    page.bounded(&error.message, |page, text| {
        page.text(text);
    });
    for cause in &error.causes {
        page.markup("<p>because ").text(cause).markup("</p>");
    }
    page.markup("</div>");
}

/// Says what allowed it, or did not, and what it touches.
fn permission(page: &mut Html, call: &Call<'_>) {
    let effects = call.effects.map(touches).unwrap_or_default();
    if call.decision.is_none() && effects.is_empty() {
        return;
    }
    page.markup("<p class=\"meta\">");
    if let Some((decision, rule)) = call.decision {
        page.markup("policy: ").text(decision).markup(" (").text(rule).markup(")");
        if !effects.is_empty() {
            page.markup(" · ");
        }
    }
    page.text(&effects).markup("</p>");
}

fn touches(effects: &Effects) -> String {
    let each = effects.iter().map(|(access, resource)| {
        let verb = match access {
            Access::Read => "reads",
            Access::Write => "writes",
        };
        match resource {
            Resource::Path(path) => format!("{verb} {path}"),
            Resource::Host(host) => format!("{verb} {host}"),
            Resource::Server(start) => format!("{verb} {start}*"),
            Resource::Variable(name) => format!("{verb} the variable {name}"),
            _ => verb.to_owned(),
        }
    });
    each.collect::<Vec<_>>().join(", ")
}

fn asked(page: &mut Html, approval: &Approval<'_>, display: Option<&Display>) {
    page.markup("<div class=\"approval\"><p>Asked: ").text(approval.description);
    page.markup(" <span class=\"meta\">").text(&words::word(&approval.kind)).markup(", ");
    page.text(approval.reason).markup("</span></p>");
    page.markup(match approval.approved {
        Some(true) => "<p><b>Allowed</b>",
        Some(false) => "<p><b>Not allowed</b>",
        None => "<p><b>Not answered</b>",
    });
    page.markup(" <span class=\"meta\">after ").text(&time(approval.span.duration));
    page.markup("</span>");
    if let Some(who) = approval.by {
        page.markup(" <span class=\"meta\">by ").text(who).markup("</span>");
    }
    if let Some(words) = approval.words {
        page.markup(" <q>").text(words).markup("</q>");
    }
    if !approval.granted.is_empty() {
        page.markup(" <span class=\"meta\">and from then on: ");
        page.text(&words::rules(approval.granted)).markup("</span>");
    }
    page.markup("</p></div>");
    if let Some(changed) = approval.changed {
        block(page, "Changed arguments", &words::json(changed));
    }
    // What was shown before is worth showing again only if something else came of it.
    if let Some(preview) = approval.preview.filter(|preview| Some(*preview) != display) {
        show(page, preview);
    }
}

fn show(page: &mut Html, display: &Display) {
    match display.format {
        DisplayFormat::Markdown => prose::write(page, &display.text),
        DisplayFormat::Diff => diff(page, &display.text),
        DisplayFormat::Text => block(page, "Shown", &display.text),
    }
}

fn diff(page: &mut Html, text: &str) {
    page.markup("<div class=\"block\"><p class=\"caption\">Change");
    page.markup("<button type=\"button\" class=\"copy\">Copy</button></p>");
    page.markup("<pre class=\"diff\" tabindex=\"0\">");
    page.bounded(text, |page, text| {
        for line in text.split_inclusive('\n') {
            page.markup(match line.as_bytes() {
                [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "<span class=\"file\">",
                [b'+', ..] => "<span class=\"add\">",
                [b'-', ..] => "<span class=\"del\">",
                [b'@', ..] => "<span class=\"hunk\">",
                _ => "<span>",
            });
            page.text(line).markup("</span>");
        }
    });
    page.markup("</pre></div>");
}

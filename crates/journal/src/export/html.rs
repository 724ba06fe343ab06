//! A run as one page that needs nothing else: no server, no network, not even its script.
//!
//! What the page is made of is in three files: `page.html`, `page.css` and `page.js`. They are put together
//! here. The page says which script and which styles it may use, by their hashes; a browser runs no other,
//! and fetches nothing. All else that gets into it goes through [`Html`], which knows only markup that is
//! part of this program, and text.

mod bars;
mod body;
mod call;
mod model;
mod prose;
mod writer;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use self::writer::Html;
use super::amounts::{count, moment, money, time, tokens};
use super::brief::one_line;
use super::words;
use crate::timeline::Timeline;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// How many letters the title has at most.
const TITLE: usize = 100;
/// How many letters the reason of an ending has at most, at the top of the page.
const WHY: usize = 300;

/// Writes a run as a page.
pub fn html(timeline: &Timeline<'_>) -> String {
    let mut page = Html::default();
    let mut rest = PAGE;
    while let Some((markup, more)) = rest.split_once("{{") {
        page.markup(markup);
        let (name, more) = more.split_once("}}").unwrap_or((more, ""));
        fill(&mut page, name, timeline);
        rest = more;
    }
    page.markup(rest);
    page.into_string()
}

/// Writes what a name in the page stands for.
fn fill(page: &mut Html, name: &str, timeline: &Timeline<'_>) {
    match name {
        "outcome" => outcome(page, timeline),
        "facts" => facts(page, timeline),
        "bars" => bars::write(page, timeline),
        "body" => body::write(page, timeline),
        "style" | "script" | "version" => {
            page.markup(own(name));
        }
        name => {
            page.text(&words_for(name, timeline));
        }
    }
}

/// Returns what a name in the page stands for, if that is ours.
fn own(name: &str) -> &'static str {
    match name {
        "style" => STYLE,
        "script" => SCRIPT,
        _ => env!("CARGO_PKG_VERSION"),
    }
}

/// Returns what a name in the page stands for, if that is text.
fn words_for(name: &str, timeline: &Timeline<'_>) -> String {
    match name {
        "style-hash" => hash(STYLE),
        "script-hash" => hash(SCRIPT),
        "title" => one_line(words::task(timeline), TITLE),
        "ending" => match timeline.main() {
            Some(main) => words::ending(main).1,
            None => "no events".to_owned(),
        },
        "description" => description(timeline),
        "run" => timeline.main().map(|agent| agent.run.to_string()).unwrap_or_default(),
        "when" => moment(timeline.started),
        _ => String::new(),
    }
}

/// Returns what run it is, when it was, with which model and how it ended, in a sentence.
fn description(timeline: &Timeline<'_>) -> String {
    let Some(main) = timeline.main() else { return "A run without events.".to_owned() };
    let (_, ending) = words::ending(main);
    let model = if main.model.is_empty() { "an unknown model" } else { main.model };
    format!("Run {} of {}, with {model}: {ending}.", main.run, moment(timeline.started))
}

fn outcome(page: &mut Html, timeline: &Timeline<'_>) {
    let Some(main) = timeline.main() else { return };
    let (mood, ending) = words::ending(main);
    page.markup("<span class=\"badge ").mood(mood).markup("\"><span aria-hidden=\"true\">");
    page.markup(mood.sign()).markup("</span> ").text(&ending).markup("</span>");
    if let Some(message) = main.end.and_then(|end| end.outcome.message.as_deref()) {
        page.markup(" <span class=\"why\">").text(&one_line(message, WHY)).markup("</span>");
    }
}

fn facts(page: &mut Html, timeline: &Timeline<'_>) {
    let Some(main) = timeline.main() else { return };
    let usage = timeline.usage();
    let others = u64::try_from(timeline.agents.len().saturating_sub(1)).unwrap_or(u64::MAX);
    let took = time(timeline.working());
    let cached = match usage.cached_tokens {
        0 => String::new(),
        cached => format!(", {} cached", tokens(cached)),
    };
    let sent = format!("{} in, {} out", tokens(usage.input_tokens), tokens(usage.output_tokens));
    let facts = [
        ("Model", main.model.to_owned(), String::new()),
        ("Time", took, if timeline.gaps.is_empty() { "" } else { "without pauses" }.to_owned()),
        ("Turns", main.turns.to_string(), agents(others)),
        ("Tool calls", timeline.calls().to_string(), String::new()),
        ("Tokens", sent, cached.trim_start_matches(", ").to_owned()),
        ("Cost", usage.cost.map_or_else(|| "unknown".to_owned(), money), String::new()),
    ];
    for (name, value, remark) in facts.iter().filter(|(_, value, _)| !value.is_empty()) {
        page.markup("<div><dt>").text(name).markup("</dt><dd>").text(value);
        if !remark.is_empty() {
            page.markup(" <small>").text(remark).markup("</small>");
        }
        page.markup("</dd></div>");
    }
}

fn agents(others: u64) -> String {
    match others {
        0 => String::new(),
        others => format!("and {}", count(others, "subagent")),
    }
}

/// Returns how a policy names a script or a style: by its SHA-256, in base64.
fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_page_fit_together() {
        for name in PAGE.split("{{").skip(1).filter_map(|rest| rest.split_once("}}")) {
            let known = [
                "style",
                "script",
                "style-hash",
                "script-hash",
                "version",
                "title",
                "ending",
                "description",
                "run",
                "when",
                "outcome",
                "facts",
                "bars",
                "body",
            ];
            assert!(known.contains(&name.0), "{}", name.0);
        }
        for file in [STYLE, SCRIPT] {
            assert!(!file.contains("</") && !file.contains("<!--"), "it would end its own element");
            assert!(!file.contains("http:") && !file.contains("https:") && !file.contains("url("));
        }
    }
}

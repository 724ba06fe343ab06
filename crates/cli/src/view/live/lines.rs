//! What is told on a terminal, as lines that stay.

use convoke_core::Cause;

use crate::output::{Stream, Style, wrap};
use crate::view::Detail;
use crate::view::amounts;
use crate::view::brief::some_lines;
use crate::view::diff::diff;
use crate::view::ending::word;
use crate::view::line::Line;
use crate::view::look::{Look, Sign};
use crate::view::tree::{CallEnd, End, Entry, Said, Weight, Who};

/// How many lines of an error are shown.
const MAX_ERROR: usize = 3;
/// How many lines of a diff are shown.
const MAX_DIFF: usize = 12;
/// How many lines of anything are shown to those who want to know everything.
const MAX_VERBOSE: usize = 60;
/// Deeper agents are not indented further.
const MAX_DEPTH: usize = 6;

/// Returns how far an agent's lines are indented.
pub(super) fn indent(depth: usize) -> usize {
    2 * depth.min(MAX_DEPTH)
}

/// Says who speaks.
pub(super) fn speaker(who: &Who, stream: &Stream) -> String {
    let sign = Look::of(stream).sign(Sign::Begins);
    let line = Line::indented(indent(who.depth.saturating_sub(1)));
    line.styled(Style::Dim, format!("{sign} {}", who.label)).fit(width(stream), stream)
}

/// Returns the lines of an entry.
pub(super) fn lines(entry: &Entry, detail: Detail, stream: &Stream) -> Vec<String> {
    let look = Look::of(stream);
    let margin = indent(entry.who.depth);
    let outer = indent(entry.who.depth.saturating_sub(1));
    match &entry.said {
        Said::Call(call) => call_lines(call, margin, detail, stream),
        Said::Begins { task } => {
            let line = Line::indented(outer)
                .styled(Style::Place, look.sign(Sign::Begins))
                .styled(Style::Name, format!(" {}", entry.who.label))
                .flexible(None, format!("  {task}"));
            vec![line.fit(width(stream), stream)]
        }
        Said::Ends { cause, recovered, message, turns, usage, duration } => {
            let (sign, style) = how(*cause, *recovered);
            let facts = amounts::facts(*turns, usage, *duration, look);
            let early = match cause {
                Cause::Goal => None,
                Cause::AwaitsApproval => Some("waits for an answer".to_owned()),
                cause => Some(word(*cause)),
            };
            let line = Line::indented(outer)
                .styled(style, look.sign(sign))
                .styled(Style::Name, format!(" {}", entry.who.label))
                .flexible(Some(Style::Dim), format!("  {}", look.joined([early, Some(facts)])));
            let mut lines = vec![line.fit(width(stream), stream)];
            lines.extend(message.iter().flat_map(|text| error(text, outer, stream)));
            lines
        }
        Said::Words(words) => {
            let lines = some_lines(words.trim(), MAX_VERBOSE, look);
            lines.into_iter().map(|line| format!("{:margin$}{line}", "")).collect()
        }
        Said::Note(text) => note(text, entry.weight, margin, stream),
        Said::Block { title, text } => {
            let mut lines = note(title, entry.weight, margin, stream);
            for line in some_lines(text, MAX_VERBOSE, look) {
                let line = stream.paint(Style::Dim, line);
                lines.push(format!("{:1$}{line}", "", margin + 4));
            }
            lines
        }
        Said::Answered { usage, duration } => {
            let time = amounts::time(*duration);
            let facts = look.joined([Some(amounts::usage(usage, look)), Some(time)]);
            note(&format!("model answered: {facts}"), entry.weight, margin, stream)
        }
    }
}

fn call_lines(call: &CallEnd, margin: usize, detail: Detail, stream: &Stream) -> Vec<String> {
    let look = Look::of(stream);
    let (sign, style, time) = match call.end {
        End::Ok => (Sign::Ok, Style::Good, Some(call.duration)),
        End::Failed => (Sign::Failed, Style::Bad, Some(call.duration)),
        End::Denied => (Sign::Denied, Style::Bad, None),
    };
    let result = call.remark.as_deref().filter(|_| call.end == End::Ok);
    let time = time.map_or_else(|| "denied".to_owned(), amounts::time);
    let apart = if result.is_some() { look.between() } else { "  " };
    let line = Line::indented(margin)
        .styled(style, look.sign(sign))
        .styled(Style::Name, format!(" {}", call.name))
        .flexible(None, spaced(&call.summary))
        .flexible(Some(Style::Dim), result.map(|text| format!("  {text}")).unwrap_or_default())
        .styled(Style::Dim, format!("{apart}{time}"));
    let mut lines = vec![line.fit(width(stream), stream)];
    if let Some(text) = call.remark.as_ref().filter(|_| call.end != End::Ok) {
        lines.extend(error(text, margin, stream));
    }
    if let Some(text) = &call.diff {
        let most = if detail == Detail::Verbose { MAX_VERBOSE } else { MAX_DIFF };
        let changed = without_heading(text);
        lines.extend(
            diff(changed, most, stream).iter().map(|line| format!("{:1$}{line}", "", margin + 4)),
        );
    }
    lines
}

/// The heading of a diff names a file that the call has named already.
fn without_heading(diff: &str) -> &str {
    diff.find("\n@@")
        .filter(|_| diff.starts_with("---"))
        .map_or(diff, |start| diff.get(start + 1..).unwrap_or(diff))
}

pub(super) fn spaced(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" {text}") }
}

const fn how(cause: Cause, recovered: bool) -> (Sign, Style) {
    match cause {
        Cause::Goal => (Sign::Ok, Style::Good),
        Cause::AwaitsApproval => (Sign::Waits, Style::Warn),
        _ if recovered => (Sign::Warning, Style::Warn),
        _ => (Sign::Failed, Style::Bad),
    }
}

fn error(text: &str, margin: usize, stream: &Stream) -> Vec<String> {
    let margin = margin + 4;
    let lines = wrap(text, Some(width(stream).saturating_sub(margin)));
    lines.into_iter().take(MAX_ERROR).map(|line| format!("{:margin$}{line}", "")).collect()
}

fn note(text: &str, weight: Weight, margin: usize, stream: &Stream) -> Vec<String> {
    let (label, label_style, style) = match weight {
        Weight::Error => ("error: ", Style::Bad, None),
        Weight::Caution | Weight::Warning => ("warning: ", Style::Warn, None),
        Weight::Usual => (Look::of(stream).sign(Sign::Note), Style::Place, None),
        Weight::Passing | Weight::Detail => {
            (Look::of(stream).sign(Sign::Note), Style::Dim, Some(Style::Dim))
        }
    };
    let label = if label.ends_with(' ') { label.to_owned() } else { format!("{label} ") };
    let room = width(stream).saturating_sub(margin + label.chars().count());
    let rest = " ".repeat(margin + 2);
    let line = |(index, line): (usize, String)| {
        let line = match style {
            Some(style) => stream.paint(style, line).to_string(),
            None => line,
        };
        match index {
            0 => format!("{:margin$}{}{line}", "", stream.paint(label_style, &label)),
            _ => format!("{rest}{line}"),
        }
    };
    wrap(text, Some(room)).into_iter().enumerate().map(line).collect()
}

fn width(stream: &Stream) -> usize {
    stream.width_now().unwrap_or(80)
}

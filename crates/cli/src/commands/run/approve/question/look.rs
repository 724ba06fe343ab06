//! How a question looks: what a call would do, who wants it, and what a rule would allow.

use std::io;
use std::process::Stdio;

use convoke_core::count::count;
use convoke_core::policy::RuleSpec;
use convoke_core::{DisplayFormat, Kind};
use convoke_tool::Question;

use super::super::Tools;
use crate::output::{Stream, Style, columns, cut, wrap};
use crate::pager::Pager;
use crate::view::diff;

/// How many lines somebody can be expected to read without paging.
const LONG: usize = 20;
/// How many bytes of a line somebody can be expected to read.
const WIDE: usize = 400;
/// How many rows of a call are shown in a low window: who asks is to stay in sight.
const FEW: usize = 3;
/// How many rows who asks, why, and what can be answered take, as a rule.
const AROUND: usize = 9;
/// How far what a call would do is set off from what we say.
const INDENT: usize = 2;

/// Shows what a call would do, and why it is asked about.
pub(super) fn show(question: &Question, agent: Option<&str>, stream: &Stream) {
    let name = stream.printable(&question.tool_name).to_string();
    let of = agent.map(|agent| format!(" of {}", stream.printable(agent))).unwrap_or_default();
    for line in wrap(&format!("{name}{of} {}:", wants(question.kind)), stream.width()) {
        match line.strip_prefix(&name) {
            Some(rest) => stream.line(format_args!("{}{rest}", stream.paint(Style::Name, &name))),
            None => stream.line(&line),
        }
    }
    match &question.preview {
        Some(preview) if preview.text.trim().is_empty() => {
            indented(stream, &question.description);
            indented(stream, "(nothing in the file changes, or a new file stays empty)");
        }
        Some(preview) if preview.format == DisplayFormat::Diff => {
            diff::show(stream, &preview.text);
        }
        Some(preview) => indented(stream, &preview.text),
        None => {
            let (lines, _) = excerpt(&harmless_lines(&what(question), stream), stream);
            for line in lines {
                stream.line(format_args!("{:INDENT$}{line}", ""));
            }
        }
    }
    let reason = format!("It is asked because {}", stream.printable(&question.reason));
    for line in wrap(&reason, stream.width()) {
        stream.line(stream.paint(Style::Dim, line));
    }
}

const fn wants(kind: Kind) -> &'static str {
    match kind {
        Kind::Execute => "wants to run a program",
        Kind::Fetch => "wants to use the network",
        Kind::Delete => "wants to delete",
        Kind::Read | Kind::Search => "wants to read",
        Kind::Think => "asks",
        _ => "wants to change something",
    }
}

/// Tells whether there is more to a call than somebody can be expected to read at once, or than is shown.
pub(super) fn is_long(question: &Question, stream: &Stream) -> bool {
    let (text, is_cut) = if let Some(preview) = &question.preview {
        (preview.text.clone(), false)
    } else {
        let text = what(question);
        let (_, is_cut) = excerpt(&harmless_lines(&text, stream), stream);
        (text, is_cut)
    };
    is_cut || text.lines().count() > LONG || text.lines().any(|line| line.len() > WIDE)
}

/// Returns as much of these lines as leaves in sight who asks, with a mark where something is missing, and whether
/// something is.
fn excerpt(lines: &[String], stream: &Stream) -> (Vec<String>, bool) {
    let (rows, width) = match stream.screen() {
        Some(size) => (size.rows.saturating_sub(AROUND).clamp(FEW, LONG), size.columns.max(20)),
        None => (LONG, usize::MAX),
    };
    let (mut shown, mut left) = (Vec::new(), rows);
    for line in lines {
        let Some(rest) = left.checked_sub(rows_of(line, width)) else { break };
        left = rest;
        shown.push(line.clone());
    }
    let Some(next) = lines.get(shown.len()) else { return (shown, false) };
    let mark = stream.ellipsis();
    let room = |rows: usize| rows.saturating_mul(width).saturating_sub(INDENT);
    if left > 0 {
        shown.push(cut(next, room(left), mark));
    } else if rows == FEW
        && let Some(last) = shown.last_mut()
    {
        // Another row for the mark alone would be one too many.
        *last = cut(&format!("{last} {mark}"), room(rows_of(last, width)), mark);
    }
    let more = lines.len() - shown.len();
    if rows > FEW && more > 0 {
        shown.push(format!("{mark} {}", count(more as u64, "more line")));
    }
    (shown, true)
}

/// Returns how many rows of a window a line takes.
fn rows_of(line: &str, width: usize) -> usize {
    (columns(line) + INDENT).div_ceil(width).max(1)
}

/// What a call would do, as a person reads it: a command whole, and everything else that is said with it.
/// What does not say of itself what it changes is shown with all of its arguments.
pub(super) fn what(question: &Question) -> String {
    let arguments = question.arguments.as_object();
    let Some(command) = arguments.and_then(|all| all.get("command")?.as_str()) else {
        let all = serde_json::to_string_pretty(&*question.arguments).unwrap_or_default();
        return format!("{}\n{all}", question.description);
    };
    let others = arguments.into_iter().flatten().filter(|(name, _)| *name != "command");
    let others = others.map(|(name, value)| format!("\n({name}: {value})"));
    format!("{command}{}", others.collect::<String>())
}

/// Everything there is to see of a question.
#[derive(Debug)]
pub(super) struct All {
    lines: Vec<String>,
    stream: Stream,
    pager: Option<Pager>,
}

impl All {
    pub(super) fn of(question: &Question, tools: &Tools, stream: &Stream) -> Self {
        let lines = match &question.preview {
            Some(preview) if preview.format == DisplayFormat::Diff => {
                diff::whole(&preview.text, stream)
            }
            Some(preview) => harmless_lines(&preview.text, stream),
            None => harmless_lines(&what(question), stream),
        };
        Self { lines, stream: stream.clone(), pager: tools.pager.clone() }
    }

    /// Adds what is said about it.
    pub(super) fn and(mut self, said: Vec<String>) -> Self {
        self.lines.extend(said);
        self
    }

    /// Shows it: with the pager, or at once where that does not work.
    pub(super) fn show(&self, onto: io::Result<Stdio>) {
        let text: String = self.lines.iter().flat_map(|line| [line, "\n"]).collect();
        let pager = self.pager.as_ref();
        if pager.zip(onto.ok()).is_none_or(|(pager, onto)| pager.show(&text, onto).is_err()) {
            self.lines.iter().for_each(|line| self.stream.line(format_args!("  {line}")));
        }
    }
}

/// Returns what rules allow, in a few words.
pub(super) fn allowed_by(rules: &[RuleSpec]) -> String {
    let each = rules.iter().map(|rule| {
        let what = match (&rule.command, &rule.host, &rule.tool) {
            (Some(command), ..) => format!("`{command}`"),
            (None, Some(host), Some(tool)) => format!("{tool} on {host}"),
            (None, None, Some(tool)) if rule.path.is_none() => tool.clone(),
            _ => return rule.shown(),
        };
        match &rule.directory {
            Some(directory) => format!("{what} in `{directory}`"),
            None => what,
        }
    });
    each.collect::<Vec<_>>().join(" and ")
}

/// Writes lines from somewhere else, set off from what we say.
pub(super) fn indented(stream: &Stream, text: &str) {
    for line in text.lines() {
        stream.line(format_args!("  {}", stream.printable(line)));
    }
}

fn harmless_lines(text: &str, stream: &Stream) -> Vec<String> {
    text.lines().map(|line| stream.printable(line).to_string()).collect()
}

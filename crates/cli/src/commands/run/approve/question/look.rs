//! How a question looks: what a call would do, who wants it, and what a rule would allow.

use std::io;
use std::process::Stdio;

use convoke_core::count::count;
use convoke_core::policy::RuleSpec;
use convoke_core::{DisplayFormat, Kind};
use convoke_tool::Question;

use super::super::Tools;
use crate::output::{Stream, Style, cut, filled, filled_from_end, folded, wrap};
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
    let text = question.preview.as_ref().map_or_else(|| what(question), |all| all.text.clone());
    let is_long = text.lines().count() > LONG || text.lines().any(|line| line.len() > WIDE);
    is_long || is_cut(question, stream)
}

/// Tells whether something of what a call would do is not shown.
pub(super) fn is_cut(question: &Question, stream: &Stream) -> bool {
    match &question.preview {
        Some(preview) => preview.format == DisplayFormat::Diff && diff::is_cut(&preview.text),
        None => excerpt(&harmless_lines(&what(question), stream), stream).1,
    }
}

/// Returns as much of these lines as leaves in sight who asks, in rows of the window, and whether something is missing.
/// Then the beginning and the end are there, with all of their spaces, and between them how much is not: nothing can
/// be put where nobody looks.
fn excerpt(lines: &[String], stream: &Stream) -> (Vec<String>, bool) {
    let (most, width) = match stream.screen() {
        Some(size) => (size.rows.saturating_sub(AROUND).clamp(FEW, LONG), size.columns.max(20)),
        None => (LONG, usize::MAX),
    };
    let width = width.saturating_sub(INDENT);
    let texts = |rows: &[Row<'_>]| rows.iter().map(|(_, row)| (*row).to_owned()).collect();
    for breaks in [folded, filled] {
        let rows = lines.iter().enumerate();
        let rows: Vec<Row<'_>> = rows.flat_map(|line| in_rows(line, width, breaks)).collect();
        if rows.len() <= most {
            return (texts(&rows), false);
        }
    }
    let begins = lines.iter().enumerate().flat_map(|line| in_rows(line, width, filled));
    let begins: Vec<Row<'_>> = begins.take(most - 1 - most / 3).collect();
    let ends = lines.iter().enumerate().rev();
    let ends = ends.flat_map(|line| in_rows(line, width, filled_from_end).rev());
    let mut ends: Vec<Row<'_>> = ends.take(most / 3).collect();
    ends.reverse();
    let mark = stream.ellipsis();
    let gap = format!("{mark} {} {mark}", missing(lines, &[begins.as_slice(), &ends].concat()));
    let mut shown: Vec<String> = texts(&begins);
    shown.push(cut(&gap, width, mark));
    shown.extend::<Vec<String>>(texts(&ends));
    (shown, true)
}

/// A row of the window, and the number of the line that it is of.
type Row<'a> = (usize, &'a str);

/// Breaks a line with its number into rows.
fn in_rows<'a>(
    (number, line): (usize, &'a String),
    width: usize,
    breaks: fn(&'a str, usize) -> Vec<&'a str>,
) -> impl DoubleEndedIterator<Item = Row<'a>> {
    breaks(line, width).into_iter().map(move |row| (number, row))
}

/// Says how much there is that is not in these rows.
fn missing(lines: &[String], shown: &[Row<'_>]) -> String {
    let letters = |text: &str| text.chars().count();
    let all: usize = lines.iter().map(|line| letters(line)).sum();
    let shown_letters: usize = shown.iter().map(|(_, row)| letters(row)).sum();
    let left = all.saturating_sub(shown_letters) as u64;
    let is_missing = |(number, line): &(usize, &String)| {
        let rows = shown.iter().filter(|(of, _)| of == number);
        let bytes = rows.map(|(_, row)| row.len()).reduce(|one, other| one + other);
        bytes.is_none_or(|bytes| bytes < line.len())
    };
    match lines.iter().enumerate().filter(is_missing).count() {
        0 | 1 => count(left, "more character"),
        lines => format!("{} with {}", count(lines as u64, "more line"), count(left, "character")),
    }
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
        // A pager may be told to cut what is too wide for the window.
        let width = stream.screen().map_or(usize::MAX, |size| size.columns);
        let width = width.saturating_sub(INDENT);
        let lines = match &question.preview {
            Some(preview) if preview.format == DisplayFormat::Diff => {
                diff::whole(&preview.text, width, stream)
            }
            Some(preview) => harmless_lines(&preview.text, stream),
            None => {
                let lines = harmless_lines(&what(question), stream);
                lines.iter().flat_map(|line| folded(line, width)).map(str::to_owned).collect()
            }
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
    // A tab takes as many columns as the terminal likes.
    text.lines().map(|line| stream.printable(line).to_string().replace('\t', "    ")).collect()
}

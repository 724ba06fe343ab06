//! How a question looks: what a call would do, who wants it, and what a rule would allow.

use std::io;
use std::process::Stdio;

use convoke_core::policy::RuleSpec;
use convoke_core::{DisplayFormat, Kind};
use convoke_tool::Question;

use super::super::Tools;
use crate::output::{Stream, Style, wrap};
use crate::pager::Pager;
use crate::view::diff;

/// How many lines somebody can be expected to read without paging.
const LONG: usize = 20;
/// How many bytes of a line somebody can be expected to read.
const WIDE: usize = 400;

/// Shows what a call would do, and why it is asked about.
pub(super) fn show(question: &Question, agent: Option<&str>, stream: &Stream) {
    let name = stream.paint(Style::Name, stream.printable(&question.tool_name));
    let wants = wants(question.kind);
    match agent {
        None => stream.line(format_args!("{name} {wants}:")),
        Some(agent) => stream.line(format_args!("{name} of {} {wants}:", stream.printable(agent))),
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
            let lines = harmless_lines(&what(question), stream);
            lines.iter().take(LONG).for_each(|line| stream.line(format_args!("  {line}")));
            if let Some(more) = lines.len().checked_sub(LONG).filter(|more| *more > 0) {
                stream.line(format_args!("  {} {more} more lines", stream.ellipsis()));
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

/// Tells whether there is more to a call than somebody can be expected to read at once.
pub(super) fn is_long(question: &Question) -> bool {
    let text = match &question.preview {
        Some(preview) => preview.text.clone(),
        None => what(question),
    };
    text.lines().count() > LONG || text.lines().any(|line| line.len() > WIDE)
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

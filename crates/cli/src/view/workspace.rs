//! What a run changed in its own workspace, for people.

use convoke_core::{Change, FileChange, WorkspaceReport};

use super::amounts;
use super::tree::AgentReport;
use crate::output::{Stream, Style};

/// How many files are listed.
const MOST_FILES: usize = 20;

/// Tells what was changed, and how to see it and take it over.
pub(crate) fn tell(report: &WorkspaceReport, run: &str, stream: &Stream) {
    let kind = report.place.kind;
    if report.files.is_empty() {
        stream.line(format_args!("nothing was changed in the {kind}"));
        return;
    }
    let count = amounts::count(report.files.len() as u64, "file");
    stream.line(format_args!("{count} changed in the {kind}; yours are as they were:"));
    for line in list(&report.files, MOST_FILES, stream) {
        stream.line(format_args!("  {line}"));
    }
    stream.line(format_args!("  to see it:       convoke runs diff {run}"));
    stream.line(format_args!("  to take it over: convoke runs apply {run}"));
}

/// Tells that an agent changed files of its own, and how to see them and take them over.
pub(crate) fn tell_of_agent(agent: &AgentReport, stream: &Stream) {
    let Some(report) = agent.workspace.as_ref().filter(|report| !report.files.is_empty()) else {
        return;
    };
    let count = amounts::count(report.files.len() as u64, "file");
    let (kind, name) = (report.place.kind, stream.printable(&agent.agent));
    stream.line(format_args!(
        "{name} changed {count} in a {kind} of its own; yours are as they were:"
    ));
    stream.line(format_args!("  to see it:       convoke runs diff {}", agent.run));
    stream.line(format_args!("  to take it over: convoke runs apply {}", agent.run));
}

/// Returns a line a file, at most `limit` of them and one that says how many are missing.
pub(crate) fn list(files: &[FileChange], limit: usize, stream: &Stream) -> Vec<String> {
    let mut lines: Vec<String> = files.iter().take(limit).map(|file| line(file, stream)).collect();
    if let more @ 1.. = files.len().saturating_sub(limit) {
        lines.push(format!("... {more} more"));
    }
    lines
}

fn line(file: &FileChange, stream: &Stream) -> String {
    let (sign, style) = match file.change {
        Change::Added => ("A", Style::Good),
        Change::Deleted => ("D", Style::Bad),
        Change::Renamed => ("R", Style::Place),
        Change::Modified | Change::Retyped => ("M", Style::Warn),
    };
    let shown = |path: &str| stream.printable(&path.replace('\n', "\\n")).to_string();
    let from = file.from.as_deref().map(|from| format!("{} -> ", shown(from))).unwrap_or_default();
    let lines = match (file.added, file.removed) {
        (Some(0), Some(0)) => String::new(),
        (Some(added), Some(removed)) => {
            let added = stream.paint(Style::Good, format_args!("+{added}")).to_string();
            let removed = stream.paint(Style::Bad, format_args!("-{removed}")).to_string();
            format!("  {added} {removed}")
        }
        _ => "  binary".to_owned(),
    };
    format!("{} {from}{}{lines}", stream.paint(style, sign), shown(&file.path))
}

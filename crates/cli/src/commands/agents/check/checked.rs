//! What came of checking one agent, and how it is shown.

use std::path::PathBuf;

use convoke::agent::AgentDefinition;
use convoke::agent::files::KeyLines;
use convoke::{Remark, Runtime};
use serde::Serialize;

use super::super::effective::Effective;
use super::super::note::Note;
use crate::output::{Stream, Style, Table, harmless, spelled, wrap};

/// What came of checking one agent.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Checked {
    /// Its file.
    #[serde(skip)]
    pub(super) file: Option<PathBuf>,
    /// Its file, as people see it from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// How its file is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<&'static str>,
    /// Whether nothing is wrong with it.
    pub(super) ok: bool,
    /// The file that is used in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) used_instead: Option<String>,
    /// Whether its file says that it is not for here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) left_out: bool,
    pub(super) problems: Vec<Note>,
    pub(super) warnings: Vec<Note>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) effective: Option<Effective>,
}

/// What it is in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Right,
    /// Right, and another agent has its name.
    Unused,
    /// Right, and not to be used by what it says itself.
    LeftOut,
    Wrong,
}

impl Checked {
    /// Returns what it is in a word.
    pub(super) fn state(&self) -> State {
        match (self.ok, &self.used_instead) {
            (false, _) => State::Wrong,
            (true, _) if self.left_out => State::LeftOut,
            (true, Some(_)) => State::Unused,
            (true, None) => State::Right,
        }
    }

    /// Adds what there is to say about it in this configuration.
    pub(super) fn review(&mut self, remarks: &[Remark], lines: &KeyLines) {
        let path = self.path.as_deref();
        for remark in remarks {
            let note = Note::placed(remark, path, lines);
            if remark.is_problem {
                self.problems.push(note);
            } else {
                self.warnings.push(note);
            }
        }
        for notes in [&mut self.problems, &mut self.warnings] {
            notes.sort_by_key(|note| note.line.unwrap_or(u64::MAX));
        }
        self.ok = self.problems.is_empty();
    }

    /// Adds what it is below the main agent.
    pub(super) fn with_effective(&mut self, agent: &AgentDefinition, runtime: &Runtime) {
        let effective = Effective::of(agent, runtime);
        // Whether a model can be asked depends on where that is tried, not on the file.
        let path = self.path.as_deref();
        self.warnings.extend(effective.no_model.as_deref().map(|why| Note::new(path, why)));
        self.effective = Some(effective);
    }

    /// Writes it, with what comes of it where it is right.
    pub(super) fn print(&self, out: &Stream) {
        let title = match (&self.path, &self.name) {
            (Some(path), Some(name)) => format!("{path} ({name})"),
            (Some(name), None) | (None, Some(name)) => name.clone(),
            (None, None) => String::new(),
        };
        let (word, style) = match self.state() {
            State::Right => ("ok", Style::Good),
            State::Unused => ("unused", Style::Warn),
            State::LeftOut => ("left out", Style::Warn),
            State::Wrong => ("wrong", Style::Bad),
        };
        out.line(format_args!("{}  {}", out.paint(style, word), spelled(&title)));
        let line = |style: Style, label: &str, note: &Note| {
            let text = harmless(&note.text());
            let room = out.width().map(|width| width.saturating_sub(label.len() + 4));
            let mut lines = wrap(&text, room).into_iter();
            let first = lines.next().unwrap_or_default();
            out.line(format_args!("  {}: {first}", out.paint(style, label)));
            lines.for_each(|line| out.line(format_args!("    {line}")));
        };
        self.problems.iter().for_each(|note| line(Style::Bad, "error", note));
        self.warnings.iter().for_each(|note| line(Style::Warn, "warning", note));
        if let Some(effective) = self.effective.as_ref().filter(|_| self.state() == State::Right) {
            Table::facts(effective.lines(), out);
        }
    }
}

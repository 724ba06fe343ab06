//! Something about the file of an agent: the words are the same wherever it is said.

use std::collections::BTreeSet;

use convoke::agent::files::{FileNote, KeyLines};
use convoke::{KnownAgent, Remark, Runtime};
use serde::Serialize;

use super::shown;
use crate::output::spelled;
use crate::session::Session;

/// Something about a file.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Note {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    message: String,
}

impl Note {
    pub(super) fn of(note: &FileNote, session: &Session<'_>) -> Self {
        Self {
            path: Some(shown(&note.path, session)),
            line: note.line,
            key: note.key.clone(),
            message: note.message.clone(),
        }
    }

    pub(super) fn new(path: Option<&str>, message: impl Into<String>) -> Self {
        Self { path: path.map(str::to_owned), line: None, key: None, message: message.into() }
    }

    /// Puts a remark where the file says what it is about.
    pub(super) fn placed(remark: &Remark, path: Option<&str>, lines: &KeyLines) -> Self {
        let found = lines.first(remark.keys);
        let key = found.map(|(key, _)| key).or_else(|| remark.keys.first().copied());
        Self {
            line: found.map(|(_, line)| line),
            key: key.map(str::to_owned),
            ..Self::new(path, remark.message.clone())
        }
    }

    /// Returns it as people find the place.
    pub(super) fn text(&self) -> String {
        let path = self.path.iter().map(|path| format!("{}:", spelled(path)));
        let line = self.line.iter().map(|line| format!("{line}:"));
        let place: String = path.chain(line).collect();
        let key = self.key.as_ref().map(|key| format!("key `{key}`: ")).unwrap_or_default();
        let gap = if place.is_empty() { "" } else { " " };
        format!("{place}{gap}{key}{}", self.message)
    }
}

/// Returns what is wrong with an agent that there is: what `agents check` says about it.
pub(super) fn problems(known: &KnownAgent, runtime: &Runtime, session: &Session<'_>) -> Vec<Note> {
    let mut files = runtime.agent_files().loaded.iter();
    let beside: BTreeSet<String> =
        files.clone().map(|loaded| loaded.definition.name.clone()).collect();
    let file = files.find(|loaded| Some(&loaded.source) == known.source.as_ref());
    let path = file.map(|loaded| shown(&loaded.source.path, session));
    let lines = file.map(|loaded| loaded.lines.clone()).unwrap_or_default();
    let remarks = runtime.review_agent(&known.agent, &beside);
    let wrong = remarks.iter().filter(|remark| remark.is_problem);
    wrong.map(|remark| Note::placed(remark, path.as_deref(), &lines)).collect()
}

//! One run in a few words, for a list.
//!
//! What a list shows is gathered line by line, and only a glance is taken at each: nothing is verified
//! here. What was gathered can be kept and gone on with when the journal has grown.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use convoke_core::{Cause, Outcome, RunId, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blob::Blobs;
use crate::hash::Hash;
use crate::header::{FORMAT, Forked, Format, Header};
use crate::line;

const PROMPT_CHARS: usize = 200;

/// One run in a few words.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Its id.
    pub run: RunId,
    /// When it was made.
    pub created: Timestamp,
    /// When something last happened in it.
    pub last_activity: Timestamp,
    /// What it was asked, on one line, cut after 200 characters.
    pub prompt: String,
    /// The model that works on it.
    pub model: String,
    /// The agent that works by itself, if it is not the main one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The directory it works in, where that was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Whether it is no agent's work, but the calls that clients of a server made.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub served: bool,
    /// Whether it runs, and how it ended.
    pub condition: Condition,
    /// How many turns the main agent began.
    pub turns: u32,
    /// How many tool calls began, its subagents' included.
    pub tool_calls: u64,
    /// What it used, its subagents included, where that was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How many questions nobody has answered yet, its subagents' included.
    pub open_questions: usize,
    /// How many bytes its journal and its blobs have.
    pub bytes: u64,
    /// How many events it has.
    pub events: u64,
    /// Where it was copied from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Forked>,
    /// Why the rest of it is not shown, where its journal cannot be read to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Whether a run runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Condition {
    /// A process works on it.
    Running,
    /// A process works on it, and a person has to answer before all of it goes on.
    Waiting,
    /// Its process was lost before anything was recorded: there is nothing to resume.
    NeverStarted,
    /// It has not ended and nobody works on it: it can be resumed.
    Interrupted,
    /// It ended.
    Ended {
        /// How, in one word.
        status: Status,
        /// Why.
        cause: Cause,
    },
}

/// What was gathered from a journal, as far as it was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Gathered {
    pub(crate) created: Timestamp,
    pub(crate) last_activity: Timestamp,
    pub(crate) prompt: String,
    pub(crate) model: String,
    #[serde(default)]
    pub(crate) agent: Option<String>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) served: bool,
    pub(crate) ended: Option<(Status, Cause)>,
    pub(crate) turns: u32,
    pub(crate) tool_calls: u64,
    /// What each run of the tree is known to have used that no other has counted as its own.
    pub(crate) used: BTreeMap<String, Usage>,
    /// The calls that began and have no answer: of which run, and which.
    begun: BTreeSet<(String, String)>,
    /// The questions that are open: of which run, about which call.
    pub(crate) asked: BTreeSet<(String, String)>,
    /// Those of them that a call asks which runs.
    #[serde(default)]
    inquired: BTreeSet<(String, String)>,
    pub(crate) events: u64,
    pub(crate) forked_from: Option<Forked>,
    pub(crate) problem: Option<String>,
    /// How many bytes of the journal this covers.
    pub(crate) read: u64,
    /// The hash of the last line it covers.
    last: String,
}

/// The fields of a line that tell what it is about.
#[derive(Deserialize)]
struct Glance<'a> {
    seq: u64,
    ts: Timestamp,
    #[serde(borrow)]
    run: Cow<'a, str>,
    #[serde(borrow, default)]
    call: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Line<T> {
    data: T,
    #[serde(default)]
    blobs: line::Moved,
}

#[derive(Deserialize)]
struct Started {
    prompt: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    origin: Value,
}

#[derive(Deserialize)]
struct Resumed {
    #[serde(default)]
    redirected: bool,
    #[serde(default)]
    origin: Value,
}

#[derive(Deserialize)]
struct Ended {
    outcome: Outcome,
    usage: Usage,
}

#[derive(Deserialize)]
struct AgentEnded {
    child: String,
    usage: Usage,
}

#[derive(Deserialize)]
struct Turn {
    turn: u32,
}

impl Glance<'_> {
    /// Returns the call it is about, and of which run.
    fn about(&self) -> Option<(String, String)> {
        self.call.as_ref().map(|call| (self.run.to_string(), call.to_string()))
    }
}

impl Gathered {
    /// Knows nothing yet, or nothing but why.
    pub(crate) fn nothing(problem: Option<String>) -> Self {
        Self {
            created: Timestamp::default(),
            last_activity: Timestamp::default(),
            prompt: String::new(),
            model: String::new(),
            agent: None,
            directory: None,
            served: false,
            ended: None,
            turns: 0,
            tool_calls: 0,
            used: BTreeMap::new(),
            begun: BTreeSet::new(),
            asked: BTreeSet::new(),
            inquired: BTreeSet::new(),
            events: 0,
            forked_from: None,
            problem,
            read: 0,
            last: String::new(),
        }
    }

    /// Gathers from the first byte on.
    pub(crate) fn from_start(run: &RunId, bytes: &[u8], blobs: &Blobs) -> Self {
        let mut gathered = Self::nothing(None);
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        match lines.next().and_then(|line| line.strip_suffix(b"\n")) {
            // Its process was lost before the line was whole.
            None => {}
            Some(first) => match header(run, first) {
                Err(problem) => gathered.problem = Some(problem),
                Ok(header) => {
                    gathered.created = header.created;
                    gathered.last_activity = header.created;
                    gathered.forked_from = header.forked_from;
                    gathered.covers(first);
                    gathered.lines(run, lines, blobs);
                }
            },
        }
        gathered
    }

    /// Goes on with what came after. Tells whether these bytes follow what was gathered.
    pub(crate) fn go_on(&mut self, run: &RunId, bytes: &[u8], blobs: &Blobs) -> bool {
        let follows = format!("{{\"prev\":\"{}\"", self.last);
        if self.last.is_empty() || self.problem.is_some() || !bytes.starts_with(follows.as_bytes())
        {
            return false;
        }
        self.lines(run, bytes.split_inclusive(|byte| *byte == b'\n'), blobs);
        true
    }

    fn lines<'a>(&mut self, run: &RunId, lines: impl Iterator<Item = &'a [u8]>, blobs: &Blobs) {
        let mut last = None;
        // A line without its newline is not there yet.
        let mut lines = lines.map_while(|line| line.strip_suffix(b"\n")).peekable();
        while let Some(line) = lines.next() {
            if self.take(run, line, blobs).is_none() {
                if line::is_torn(line) && lines.peek().is_none() {
                    break;
                }
                let number = self.events + 2;
                self.problem = Some(format!("line {number} of the journal cannot be read"));
                break;
            }
            self.read += line.len() as u64 + 1;
            last = Some(line);
        }
        if let Some(line) = last {
            Hash::of(line).as_str().clone_into(&mut self.last);
        }
    }

    fn take(&mut self, run: &RunId, line: &[u8], blobs: &Blobs) -> Option<()> {
        let glance: Glance<'_> = serde_json::from_slice(line).ok()?;
        let of_root = glance.run == run.as_str();
        match &*glance.kind {
            "run_started" if of_root => {
                let Line::<Started> { data, blobs: moved } = line::parse(line).ok()?;
                let moved = moved.get("/data/prompt");
                let prompt = moved.and_then(|hash| blobs.fetch("/data/prompt", hash).ok());
                self.prompt = one_line(&prompt.unwrap_or(data.prompt));
                self.model = data.model;
                let agent = data.origin.pointer("/agent/name").and_then(Value::as_str);
                self.agent = agent.map(str::to_owned);
                self.placed(&data.origin);
            }
            "run_ended" if of_root => {
                let Ended { outcome, usage } = line::parse::<Line<_>>(line).ok()?.data;
                self.ended = Some((outcome.status, outcome.cause));
                self.used.insert(glance.run.to_string(), usage);
            }
            "agent_ended" => {
                let AgentEnded { child, usage } = line::parse::<Line<_>>(line).ok()?.data;
                *self.used.entry(glance.run.to_string()).or_default() += usage;
                self.used.remove(&child);
            }
            "turn_started" if of_root => {
                let Turn { turn } = line::parse::<Line<_>>(line).ok()?.data;
                self.turns = turn;
            }
            "usage" => {
                let used: Usage = line::parse::<Line<_>>(line).ok()?.data;
                self.used.insert(glance.run.to_string(), used);
            }
            "tool_call_started" => {
                let is_new = glance.about().is_none_or(|call| self.begun.insert(call));
                self.tool_calls += u64::from(is_new);
            }
            // The same as what `open_questions` makes of whole events.
            "approval_asked" => self.asked.extend(glance.about()),
            "inquiry_asked" => {
                self.asked.extend(glance.about());
                self.inquired.extend(glance.about());
            }
            // The calls that inquired are lost, or are made again and ask again: those of agents as well, if the
            // whole tree is taken up.
            "run_resumed" => {
                let Resumed { redirected, origin } = line::parse::<Line<_>>(line).ok()?.data;
                if redirected && of_root {
                    self.asked.clear();
                }
                // Only a resume reopens a run that ended. Servers that change their state, warnings and the like may
                // be recorded behind the end.
                if of_root {
                    self.ended = None;
                    self.placed(&origin);
                }
                let lost = |call: &(String, String)| of_root || call.0 == glance.run;
                for call in self.inquired.iter().filter(|call| lost(call)) {
                    self.asked.remove(call);
                }
                self.inquired.retain(|call| !lost(call));
            }
            "approval_answered"
            | "inquiry_answered"
            | "tool_call_completed"
            | "tool_call_failed"
            | "tool_call_denied" => {
                if let Some(call) = glance.about() {
                    self.asked.remove(&call);
                    self.inquired.remove(&call);
                    if glance.kind.starts_with("tool_call_") {
                        self.begun.remove(&call);
                    }
                }
            }
            _ => {}
        }
        self.events = glance.seq;
        self.last_activity = glance.ts;
        Some(())
    }

    /// Takes in where a run works, if its origin says so.
    fn placed(&mut self, origin: &Value) {
        if let Some(directory) = origin.get("workingDirectory").and_then(Value::as_str) {
            self.directory = Some(directory.into());
            self.served = origin.get("served").and_then(Value::as_bool).unwrap_or_default();
        }
    }

    /// Returns what all of it used, where that was recorded.
    pub(crate) fn usage(&self) -> Option<Usage> {
        (!self.used.is_empty()).then(|| self.used.values().copied().sum())
    }

    fn covers(&mut self, line: &[u8]) {
        self.read = line.len() as u64 + 1;
        Hash::of(line).as_str().clone_into(&mut self.last);
    }
}

fn header(run: &RunId, line: &[u8]) -> Result<Header, String> {
    let unreadable = || "the first line of the journal cannot be read".to_owned();
    let Format { journal } = serde_json::from_slice(line).map_err(|_| unreadable())?;
    if journal > u64::from(FORMAT) {
        return Err(format!("a newer program wrote the journal (format {journal})"));
    }
    let header: Header = serde_json::from_slice(line).map_err(|_| unreadable())?;
    if header.run != *run {
        return Err(format!("the journal belongs to run `{}`", header.run));
    }
    Ok(header)
}

/// Puts a text on one line and cuts it.
fn one_line(text: &str) -> String {
    // Only a part is looked at: a prompt may be as long as a book.
    let start: String = text.chars().take(PROMPT_CHARS * 10).collect();
    let words: Vec<&str> = start.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let joined = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    joined.chars().take(PROMPT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_becomes_one_short_line() {
        assert_eq!(one_line(" fix\n\tthe \u{1b} bug  "), "fix the bug");
        assert_eq!(one_line(&"é ".repeat(5000)).chars().count(), PROMPT_CHARS);
    }
}

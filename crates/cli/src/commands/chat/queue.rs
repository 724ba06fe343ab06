//! What a person says while a run works.
//!
//! A message goes to the run at once and is taken in at its next turn. Commands, and what comes after
//! them, are held back until the run has ended, and so is a message that mentions a file that is not
//! there, or something that an MCP server would have to be asked for.

use std::collections::VecDeque;

use convoke::agent::RunHandle;
use convoke_core::{Event, EventBody, Part, Secrets};

use super::super::run::watch::Listener;
use super::line::Line;
use super::mention::{Mentioning, Places};

/// What was said, and what became of it.
#[derive(Debug)]
pub(super) struct Queue<'a> {
    places: &'a Places,
    /// What nobody is to see: the run knows it by name.
    secrets: Secrets,
    /// Told to the run, which has not taken it in.
    told: VecDeque<Told>,
    /// Held back.
    held: VecDeque<String>,
    /// The agents that messages are for which the run has taken in.
    named: Vec<String>,
}

#[derive(Debug)]
struct Told {
    /// As it was typed.
    line: String,
    /// As the run knows it.
    words: String,
    /// The agents it is for.
    agents: Vec<String>,
}

impl<'a> Queue<'a> {
    pub(super) fn new(places: &'a Places, secrets: Secrets) -> Self {
        let (told, held, named) = Default::default();
        Self { places, secrets, told, held, named }
    }

    /// Returns the agents that the messages are for which the run has taken in.
    pub(super) fn take_named(&mut self) -> Vec<String> {
        std::mem::take(&mut self.named)
    }

    /// Returns what the run never heard, in the order in which it was said.
    pub(super) fn into_lines(self) -> VecDeque<String> {
        self.told.into_iter().map(|told| told.line).chain(self.held).collect()
    }
}

impl Listener for Queue<'_> {
    fn hear(&mut self, line: String, run: &RunHandle) {
        let said = match Line::read(&line) {
            Ok(Line::Message(text)) if self.held.is_empty() => {
                let said = Mentioning::read(&text, self.places).ok();
                said.filter(|said| said.resources.is_empty())
            }
            _ => None,
        };
        let Some(said) = said else { return self.held.push_back(line) };
        let words = self.secrets.hide(&said.text).into_owned();
        let agents = said.agents.clone();
        // What a run does not hear any more is said after it.
        match run.say(said.into_task()) {
            Ok(()) => self.told.push_back(Told { line, words, agents }),
            Err(_) => self.held.push_back(line),
        }
    }

    fn notice(&mut self, event: &Event) -> Option<String> {
        let EventBody::UserMessage { message } = &event.body else { return None };
        let words = message.parts.iter().rev().find_map(Part::as_text)?;
        if self.told.front()?.words != words {
            return None;
        }
        let told = self.told.pop_front()?;
        self.named.extend(told.agents);
        Some(told.line)
    }

    fn waiting(&self) -> Vec<String> {
        let told = self.told.iter().map(|told| told.line.clone());
        told.chain(self.held.iter().cloned()).collect()
    }
}

//! The commands of the chat, carried out.

use convoke::agent::{Paused, Reopened, last_said};
use convoke::journal::Store;
use convoke_core::Mode;

use super::super::run::choose::{self, Chosen};
use super::super::{agents, workspace};
use super::line::Command;
use super::runs::Kept;
use super::show;
use super::talk::{Next, Talk, note};
use crate::failure::Failure;
use crate::output::Output;
use crate::view::amounts;

/// What of the window stays as it is when a conversation is summed up, in percent; below that, there is
/// nothing to sum up.
const SHORT_PERCENT: u64 = 20;

impl Talk<'_> {
    /// Carries out a command.
    pub(super) fn command(&mut self, command: Command, output: &Output) -> Result<Next, Failure> {
        match command {
            Command::Help => show::help(output),
            Command::Model(None) => {
                show::models(&self.model(), &self.runtime, &self.config, output);
            }
            Command::Model(Some(name)) => self.ask_another(&name, output)?,
            Command::Mode(None) => {
                let modes: Vec<&str> = Mode::ALL.iter().map(|mode| mode.as_str()).collect();
                output.err.line(format_args!("mode {} of {}", self.mode, modes.join(", ")));
            }
            Command::Mode(Some(mode)) => self.act(mode, output)?,
            Command::Tools => show::tools(&self.runtime, output),
            Command::Agents => show::agents(&self.agents(), output),
            Command::Mcp => show::servers(&self.runtime, output),
            Command::Usage => show::usage(self.paused.as_ref(), self.facts(), output),
            Command::Compact => self.compact(output),
            Command::Clear => {
                self.may_begin_another()?;
                self.paused = None;
                note("this is a new conversation", output);
            }
            Command::Resume(id) => {
                self.may_begin_another()?;
                let resumed =
                    self.kept().resume(id.as_deref(), self.paused.as_ref(), self.session)?;
                workspace::refuse_move(&resumed.events)?;
                agents::refuse_to_talk(&resumed.paused.id(), &resumed.events)?;
                self.take_up(resumed, output);
            }
            Command::Fork(seq) => {
                self.may_begin_another()?;
                let forked = self.kept().fork(self.begun()?, seq)?;
                let tokens = amounts::tokens(forked.paused.context_tokens());
                note(&format!("{} inherits about {tokens} tokens", forked.paused.id()), output);
                self.take_up(forked, output);
            }
            Command::Export(file) => {
                let directory = &self.places.directory;
                let path = self.kept().export(self.begun()?, file.as_deref(), directory)?;
                note(&format!("written to {}", path.display()), output);
            }
            Command::Quit => return Ok(Next::Leave),
        }
        Ok(Next::GoOn)
    }

    /// Asks another model from the next message on.
    fn ask_another(&mut self, name: &str, output: &Output) -> Result<(), Failure> {
        if self.flags.record.is_some() {
            return Err(Failure::usage("the answers of one model are being recorded")
                .hint("leave out --record to change models"));
        }
        let model = self.runtime.model(name).map_err(|error| choose::failure(&error))?;
        let before = std::mem::replace(&mut self.chosen, Chosen { model, replay: None });
        if let Err(failure) = self.agent() {
            self.chosen = before;
            return Err(failure);
        }
        note(&format!("{} is asked from now on", self.model()), output);
        Ok(())
    }

    /// Acts as freely as this from the next message on.
    fn act(&mut self, mode: Mode, output: &Output) -> Result<(), Failure> {
        self.runtime = {
            let (config, own) = (self.config.clone(), self.runtime.workspace().cloned());
            self.flags.runtime(self.session, mode, config, self.store(), own)?
        };
        self.mode = mode;
        note(&format!("mode {mode} from now on"), output);
        Ok(())
    }

    fn compact(&mut self, output: &Output) {
        let at = self.config.agent.compact_at;
        let share = self.paused.as_ref().map(|run| show::share(run.context_tokens(), self.facts()));
        let said = match share {
            None => "there is nothing to sum up yet".to_owned(),
            Some(None) => {
                "how much the model takes is not known; the conversation is summed up when \
                           it is too long for it"
                    .to_owned()
            }
            Some(Some(percent)) if percent <= SHORT_PERCENT => format!(
                "the window is {percent} % full, which is too little to sum up; that happens by itself \
                 at {at} %"
            ),
            Some(Some(_)) => {
                self.sum_up = true;
                "the conversation is summed up before your next message is answered".to_owned()
            }
        };
        note(&said, output);
    }

    /// Files of its own belong to one conversation.
    fn may_begin_another(&self) -> Result<(), Failure> {
        match self.runtime.workspace().filter(|workspace| workspace.kind().is_own()) {
            None => Ok(()),
            Some(workspace) => Err(Failure::usage(format!(
                "this conversation works in a {} of its own, which no other can use",
                workspace.kind()
            ))
            .hint("leave with /quit, and start another chat")),
        }
    }

    fn kept(&self) -> Kept<'_> {
        Kept(self.runtime.journals())
    }

    fn store(&self) -> Option<Store> {
        self.runtime.journals().map(|journals| journals.store().clone())
    }

    /// Goes on with a conversation that was kept.
    fn take_up(&mut self, kept: Reopened, output: &Output) {
        let said = last_said(&kept.paused.id(), &kept.events);
        show::recap(&kept.paused, said, output);
        self.paused = Some(kept.paused);
    }

    /// Returns the agents that can be called, with what they do.
    fn agents(&self) -> Vec<(String, String)> {
        let offered = self.runtime.team().offered();
        offered.iter().map(|agent| (agent.name.clone(), agent.description.clone())).collect()
    }

    fn begun(&self) -> Result<&Paused, Failure> {
        self.paused.as_ref().ok_or_else(|| Failure::usage("nothing was said yet"))
    }
}

//! The conversation: a message goes in, a run goes on, and what comes of it is shown.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use convoke::Runtime;
use convoke::agent::{AgentExecutor, Paused, Running, Task};
use convoke::config::Config;
use convoke_core::{Cause, ExitCode, Mode, ModelFacts, Outcome, RunId, Status};

use tokio::time::Instant;

use super::super::mcp::unless_stopped;
use super::super::run::approve::Approvals;
use super::super::run::choose::Chosen;
use super::super::run::flags::AgentFlags;
use super::super::run::watch::{Person, Watch};
use super::super::run::{agent, cannot_start};
use super::complete::Complete;
use super::input::{Editor, Heard, History, Input, Lines};
use super::line::Line;
use super::mention::{Attached, Mentioning, Places};
use super::prompt::{Asked as Filling, Named};
use super::queue::Queue;
use super::{has_company, prompt, resource, show};
use crate::failure::Failure;
use crate::output::{Output, Style};
use crate::session::Session;
use crate::typing::Typing;
use crate::view::ending;
use crate::view::{Before, Totals, View};

/// How soon Ctrl-C has to come again to mean that somebody wants to leave, and not that a line is unwanted.
const SOON: Duration = Duration::from_millis(1_500);

/// A conversation.
#[derive(Debug)]
pub(super) struct Talk<'a> {
    pub(super) flags: &'a AgentFlags,
    pub(super) session: &'a Session<'a>,
    pub(super) config: Config,
    pub(super) mode: Mode,
    pub(super) runtime: Runtime,
    pub(super) chosen: Chosen,
    pub(super) approvals: Approvals,
    pub(super) places: Places,
    /// The run between two messages; nothing before the first.
    pub(super) paused: Option<Paused>,
    /// What was last said in a conversation that goes on.
    pub(super) said: Option<String>,
    /// Files that go with the next message.
    pub(super) to_attach: Vec<Attached>,
    /// The agents that the next message is for.
    pub(super) named: Vec<String>,
    /// Whether the conversation is summed up before the next answer.
    pub(super) sum_up: bool,
    pub(super) typing: Typing,
    /// What stands at the prompt already.
    pub(super) draft: String,
    /// What was said while the last answer came, and not heard.
    pub(super) lines: VecDeque<String>,
    /// How the first message ended that failed.
    pub(super) failed: Option<ExitCode>,
    /// The id of the run that the first message begins.
    pub(super) first: Option<RunId>,
}

/// Whether the person was told how to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    NotYet,
    /// Since then; a while later it is forgotten.
    ToLeave(Instant),
}

/// What happens after a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    /// Somebody wants to leave.
    Leave,
    /// The system wants it to end.
    Stop(ExitCode),
}

impl Talk<'_> {
    /// Finds out where messages come from.
    pub(super) fn input(&self, output: &Output) -> Input {
        if !has_company() || output.err.screen().is_none() {
            return Input::Lines(Lines::new(&output.err));
        }
        let history = match self.session.environment().state_directory() {
            Some(directory) => history(&directory.join("history"), output),
            None => History::passing(),
        };
        let models = show::model_names(&self.model(), &self.runtime, &self.config);
        let complete = Complete::new(self.places.clone(), models);
        Input::Editor(Box::new(Editor::new(&output.err, history, complete)))
    }

    /// Says where the chat is.
    pub(super) fn greet(&self, input: &Input, output: &Output) {
        if !input.is_terminal() || output.is_quiet() {
            return;
        }
        show::banner(&self.model(), &self.directory(), self.mode, output);
        if let Some(paused) = &self.paused {
            show::recap(paused, self.said.as_deref(), output);
        }
    }

    /// Talks until somebody leaves, and returns what the command exits with.
    pub(super) fn go_on(
        &mut self,
        input: &mut Input,
        threads: &tokio::runtime::Runtime,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let mut asked = Asked::NotYet;
        loop {
            match self.next_line(input, threads, output)? {
                Heard::Line(line) => match self.line(&line, input, threads, output) {
                    Next::GoOn => asked = Asked::NotYet,
                    Next::Leave => break,
                    Next::Stop(code) => return Ok(code),
                },
                Heard::Interrupt if matches!(asked, Asked::ToLeave(at) if at.elapsed() < SOON) => {
                    break;
                }
                Heard::Interrupt => {
                    asked = Asked::ToLeave(Instant::now());
                    note("Ctrl-C again to leave", output);
                }
                Heard::End => break,
                Heard::Stop(cause) => return Ok(cause.exit_code()),
            }
            // Nobody reads the answers any more.
            if output.out.is_gone() {
                break;
            }
        }
        Ok(self.failed.filter(|_| !input.is_terminal()).unwrap_or(ExitCode::Done))
    }

    fn next_line(
        &mut self,
        input: &mut Input,
        threads: &tokio::runtime::Runtime,
        output: &Output,
    ) -> Result<Heard, Failure> {
        if let Some(line) = self.lines.pop_front() {
            show::said(&line, output);
            return Ok(Heard::Line(line));
        }
        if input.is_terminal() {
            output.err.gap();
        }
        input.know(prompt::served(&self.runtime));
        input.read(std::mem::take(&mut self.draft), threads)
    }

    fn line(
        &mut self,
        line: &str,
        input: &mut Input,
        threads: &tokio::runtime::Runtime,
        output: &mut Output,
    ) -> Next {
        let done = match Line::read(line) {
            Ok(Line::Nothing) => Ok(Next::GoOn),
            Ok(Line::Message(text)) => self.message(&text, line, input, threads, output),
            Ok(Line::Command(command)) => self.command(command, output),
            Ok(Line::Prompt(named)) => self.prompt(&named, line, input, threads, output),
            Err(failure) => Err(failure),
        };
        done.unwrap_or_else(|failure| {
            failure.print(output);
            self.failed.get_or_insert(failure.code());
            Next::GoOn
        })
    }

    /// Says something to the model, and shows what comes of it.
    fn message(
        &mut self,
        text: &str,
        line: &str,
        input: &Input,
        threads: &tokio::runtime::Runtime,
        output: &mut Output,
    ) -> Result<Next, Failure> {
        let task = self.task(text, input, threads, output);
        self.say_or_keep(task, line, input, threads, output)
    }

    /// Has a server fill in a prompt, and says that.
    fn prompt(
        &mut self,
        named: &Named,
        line: &str,
        input: &mut Input,
        threads: &tokio::runtime::Runtime,
        output: &mut Output,
    ) -> Result<Next, Failure> {
        let shows = input.is_terminal() && !output.is_quiet();
        // A server may take long, and whoever waits may not want to.
        let found = threads.block_on(unless_stopped(async {
            if shows {
                note(&format!("asking {} for {}", named.server, named.prompt), output);
            }
            named.find(&self.runtime).await
        }));
        let filled = found.flatten().and_then(|prompt| {
            let given = prompt::arguments(&prompt, &named.written)?;
            prompt::ask(&prompt, given, input, threads, output)
        });
        let task = match filled {
            Ok(Filling::Filled(given)) => {
                threads.block_on(unless_stopped(named.task(given, &self.runtime))).flatten()
            }
            Ok(Filling::Not(Heard::Stop(cause))) => return Ok(Next::Stop(cause.exit_code())),
            Ok(Filling::Not(_)) => return Ok(Next::GoOn),
            Err(failure) => Err(failure),
        };
        let task = task.map(|task| {
            let files = std::mem::take(&mut self.to_attach);
            if shows {
                show::attached(&files, output);
            }
            files.into_iter().fold(task, |task, file| task.attach(file.part))
        });
        self.say_or_keep(task, line, input, threads, output)
    }

    /// Hands a message over. One that could not be made stands at the prompt again, unless somebody wants to leave.
    fn say_or_keep(
        &mut self,
        task: Result<Task, Failure>,
        line: &str,
        input: &Input,
        threads: &tokio::runtime::Runtime,
        output: &mut Output,
    ) -> Result<Next, Failure> {
        match task {
            Ok(task) => self.say(task, input, threads, output),
            Err(failure) if leaves(failure.code(), input) => Ok(Next::Stop(failure.code())),
            Err(failure) => {
                // It need not be written again.
                line.trim_end().clone_into(&mut self.draft);
                Err(failure)
            }
        }
    }

    /// Hands a message over, and shows what comes of it.
    fn say(
        &mut self,
        task: Task,
        input: &Input,
        threads: &tokio::runtime::Runtime,
        output: &mut Output,
    ) -> Result<Next, Failure> {
        let before = self.before();
        let mut named = std::mem::take(&mut self.named);
        let mut run = self.start(task)?;
        if input.is_terminal() && !output.is_quiet() {
            output.err.gap();
        }
        let view = View::text(output, self.flags.detail(output)).after(before);
        let mut watch = Watch::new(view, &mut self.approvals);
        let mut queue = Queue::new(&self.places, self.runtime.secrets());
        let may_type = input.is_editor() && watch.view().is_live();
        let person = may_type.then_some(Person { typing: &mut self.typing, listener: &mut queue });
        let followed = watch.follow(threads, &mut run, person, output);
        named.append(&mut queue.take_named());
        named.retain(|agent| !watch.view().has_called(agent));
        self.lines = queue.into_lines();
        self.draft = self.typing.take_draft();
        let ended = followed.and_then(|()| {
            let ended = watch.view().close(output);
            watch.unrecorded(&run).map_or(Ok(ended), Err)
        });
        self.paused = Some(run.pause());
        match ended {
            Ok(None) => Ok(Next::GoOn),
            Ok(Some((totals, outcome))) => {
                if outcome.cause == Cause::Goal {
                    show::not_called(&named, output);
                }
                Ok(self.ended(totals, &outcome, input, output))
            }
            Err(failure) if failure.code() == ExitCode::Terminated => {
                Ok(Next::Stop(failure.code()))
            }
            Err(failure) => {
                self.give_back();
                Err(failure)
            }
        }
    }

    fn task(
        &mut self,
        text: &str,
        input: &Input,
        threads: &tokio::runtime::Runtime,
        output: &Output,
    ) -> Result<Task, Failure> {
        let mut said = Mentioning::read(text, &self.places)?;
        let shows = input.is_terminal() && !output.is_quiet();
        for mentioned in std::mem::take(&mut said.resources) {
            let read = async {
                if shows {
                    note(&format!("reading {}:{}", mentioned.server, mentioned.uri), output);
                }
                resource::read(&mentioned, &self.runtime).await
            };
            // A server may take long, and whoever waits may not want to.
            said.files.extend(threads.block_on(unless_stopped(read))??);
        }
        said.files.append(&mut self.to_attach);
        if shows {
            show::attached(&said.files, output);
        }
        self.named.clone_from(&said.agents);
        Ok(said.into_task())
    }

    /// Takes the run up again, or starts it.
    fn start(&mut self, task: Task) -> Result<Running, Failure> {
        let agent = self.agent()?;
        self.sum_up = false;
        let Some(paused) = self.paused.take() else {
            return Ok(match self.first.take() {
                Some(id) => agent.start_as(id, task),
                None => agent.start(task),
            });
        };
        match agent.resume(paused, Some(task.clone())) {
            Ok(run) => Ok(run),
            // Nothing of it could be recorded: there is nothing to go on with.
            Err(_) => Ok(agent.start(task)),
        }
    }

    /// Makes the agent that answers the next message.
    pub(super) fn agent(&self) -> Result<AgentExecutor, Failure> {
        let agent = agent(&self.runtime, &self.chosen, &self.approvals);
        let agent = match self.summing_up() {
            Some(percent) => agent.compact_at_percent(percent),
            None => agent,
        };
        agent.build().map_err(|error| cannot_start(&error))
    }

    /// A conversation that is to be summed up counts as full as soon as it is as long as it is now.
    fn summing_up(&self) -> Option<u8> {
        let paused = self.paused.as_ref().filter(|_| self.sum_up)?;
        let percent = show::share(paused.context_tokens(), self.facts())?.saturating_sub(1);
        u8::try_from(percent.clamp(1, 100)).ok()
    }

    /// Tells how a message ended, where that was not as it should be.
    fn ended(
        &mut self,
        totals: Totals,
        outcome: &Outcome,
        input: &Input,
        output: &mut Output,
    ) -> Next {
        let cause = outcome.cause;
        if cause == Cause::Goal {
            return Next::GoOn;
        }
        if !input.is_terminal() {
            self.failed.get_or_insert(cause.exit_code());
        }
        let leaves = cause == Cause::Terminated || !input.is_terminal();
        match cause {
            Cause::Interrupted | Cause::Terminated if leaves => {
                return Next::Stop(cause.exit_code());
            }
            Cause::Interrupted => {
                self.give_back();
                // The model is told which; whoever asks for them can have them continued.
                let were_at_work = totals.agents.iter().any(|it| it.status == Status::Cancelled);
                let without =
                    if were_at_work { ", without the agents that were at work" } else { "" };
                let goes_on = "interrupted; the conversation goes on with your next message";
                note(&format!("{goes_on}{without}"), output);
            }
            // The person said no, and knows it.
            Cause::Denied if outcome.recovered && input.is_terminal() => {}
            _ => {
                // Money and tokens are counted over the whole conversation.
                let usage = self.paused.as_ref().map_or(totals.usage, Paused::spent);
                let totals = Totals { usage, budget: self.before().budget, ..totals };
                if let Some(failure) = ending::reason(&totals, outcome) {
                    failure.any_hint(hint(cause, &totals)).print(output);
                }
            }
        }
        Next::GoOn
    }

    /// What was to be said after an answer that was stopped may have to be said otherwise.
    fn give_back(&mut self) {
        let mut lines: Vec<String> = self.lines.drain(..).collect();
        if !self.draft.is_empty() {
            lines.push(std::mem::take(&mut self.draft));
        }
        self.draft = lines.join("\n");
    }

    fn before(&self) -> Before {
        let budget = self.config.run_settings(self.facts()).budget;
        match &self.paused {
            Some(paused) => Before { turns: paused.turns(), usage: paused.spent(), budget },
            None => Before { budget, ..Before::default() },
        }
    }

    /// Returns what is known about the model.
    pub(super) fn facts(&self) -> ModelFacts {
        *self.chosen.model.facts()
    }

    /// Returns the name of the model.
    pub(super) fn model(&self) -> String {
        self.chosen.model.name().to_string()
    }

    /// Returns the working directory as people write it.
    fn directory(&self) -> String {
        let home = self.places.home.as_deref();
        let below = home.and_then(|home| self.places.directory.strip_prefix(home).ok());
        match below {
            Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Some(rest) => format!("~/{}", rest.display()),
            None => self.places.directory.display().to_string(),
        }
    }
}

/// A history that cannot be kept is no reason not to talk.
fn history(path: &Path, output: &Output) -> History {
    History::open(path).unwrap_or_else(|error| {
        let label = output.err.paint(Style::Warn, "warning:");
        let shown = path.display().to_string();
        let shown = output.err.printable(&shown);
        output.err.line(format_args!("{label} what is said is not remembered: {shown}: {error}"));
        History::passing()
    })
}

/// Tells whether a conversation is over when something in it ended so.
fn leaves(code: ExitCode, input: &Input) -> bool {
    code == ExitCode::Terminated || (code == ExitCode::Interrupted && !input.is_terminal())
}

/// Says something small.
pub(super) fn note(text: &str, output: &Output) {
    let text = output.err.printable(text).to_string();
    output.err.line(output.err.paint(Style::Dim, text));
}

/// Says what to do about an ending, in a chat.
fn hint(cause: Cause, totals: &Totals) -> Option<String> {
    match cause {
        Cause::MaxTurns | Cause::Timeout | Cause::MaxToolCalls => {
            Some("the limit is for each message: say `go on`, and it does".to_owned())
        }
        Cause::Denied | Cause::AwaitsApproval => {
            Some("`/mode auto_edit` permits changes to files, `/mode full` everything".to_owned())
        }
        _ => ending::hint(cause, totals),
    }
}

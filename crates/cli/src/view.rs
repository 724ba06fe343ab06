//! What a person or a program sees of a run, made from its events.
//!
//! A [`View`] is shown every event and woken about ten times a second. What it makes of that
//! depends on where the two streams of the process lead:
//!
//! | standard error | what happens | standard output | the answer |
//! | --- | --- | --- | --- |
//! | a terminal | [`live`]: a tree that moves | the same terminal | appears as it is written |
//! | a file or pipe | [`plain`]: a line for each thing that ended | a terminal | rendered, at the end |
//! | | | a file or pipe | as it is, and nothing else |
//!
//! `--output json` puts one object in the place of the answer, `--output stream-json` the events
//! themselves and that object as the last line ([`json`]). [`tree`] is the model that all of them share, [`ending`] the words for a run
//! that did not reach its goal. Everything that comes from a model or a tool is made harmless before it
//! is shown.

pub(crate) mod amounts;
pub(crate) mod brief;
mod denials;
pub(crate) mod diff;
pub(crate) mod ending;
pub(crate) mod json;
pub(crate) mod line;
mod live;
pub(crate) mod look;
pub(crate) mod markdown;
pub(crate) mod message;
mod plain;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
pub(crate) mod workspace;

use std::time::Instant;

use convoke_core::{AgentPath, Ending, Event, EventBody, Outcome, RunId, TaskContext, Timestamp};
use serde_json::Value;

use self::denials::Denials;
use self::json::RunReport;
use self::live::Live;
use self::markdown::{Page, render};
use self::plain::Plain;
use self::tree::Tree;
pub(crate) use self::tree::{Before, Totals};
use crate::failure;
use crate::output::{Output, Stream};

/// How much is told beside the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What puts the answer in doubt, and errors.
    Quiet,
    /// What happens.
    Usual,
    /// Also thoughts, arguments, decisions and what each answer used.
    Verbose,
}

/// What is written to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// The answer.
    Text,
    /// One object at the end.
    Json,
    /// Every event, one a line.
    StreamJson,
}

/// Shows a run.
#[derive(Debug)]
pub(crate) struct View {
    out: Stream,
    format: Format,
    tree: Tree,
    denials: Denials,
    teller: Teller,
    words: Words,
    clock: Clock,
    task: Option<TaskContext>,
}

#[derive(Debug)]
enum Teller {
    Live(Box<Live>),
    Plain(Plain),
}

/// What the main agent's model says.
#[derive(Debug, Default)]
struct Words {
    /// Whether it is speaking to the user, and not summing up or planning.
    to_user: bool,
    /// Whether they are data and not for reading.
    is_data: bool,
    /// The last thing that was shown.
    shown: Option<String>,
}

impl View {
    /// Shows a run to a person: what happens, and the answer.
    pub(crate) fn text(output: &Output, detail: Detail) -> Self {
        Self::new(output, Format::Text, detail)
    }

    /// Shows a run that is taken up again: what it used before is not counted.
    pub(crate) fn after(mut self, before: Before) -> Self {
        self.tree = Tree::after(before);
        self
    }

    /// Shows what happens to a person, and the report to a program.
    pub(crate) fn json(output: &Output, detail: Detail) -> Self {
        Self::new(output, Format::Json, detail)
    }

    /// Shows everything to a program. A person sees only warnings: the events say the rest already.
    pub(crate) fn stream_json(output: &Output) -> Self {
        Self::new(output, Format::StreamJson, Detail::Quiet)
    }

    fn new(output: &Output, format: Format, detail: Detail) -> Self {
        let (out, err) = (output.out.clone(), output.err.clone());
        let watched = err.screen().is_some() && detail != Detail::Quiet;
        let teller = if watched {
            let words = (format == Format::Text && out.is_terminal()).then(|| out.clone());
            Teller::Live(Box::new(Live::new(err, words, detail)))
        } else {
            Teller::Plain(Plain::new(err, detail))
        };
        let (tree, words, clock) = (Tree::default(), Words::default(), Clock::default());
        let denials = Denials::default();
        Self { out, format, tree, denials, teller, words, clock, task: None }
    }

    /// Says that the run is kept, and can be taken up again.
    pub(crate) fn kept(mut self, is_kept: bool) -> Self {
        self.tree.keep(is_kept);
        self
    }

    /// Says that what the run waits for has an answer already.
    pub(crate) const fn answered(&mut self) {
        self.tree.answered();
    }

    /// Takes in what happened in a run before it was taken up again, and shows nothing of it.
    pub(crate) fn recall(&mut self, events: &[Event]) {
        for event in events {
            self.denials.fold(event);
            self.tree.fold(event);
        }
    }

    /// Shows an event.
    pub(crate) fn event(&mut self, event: &Event) {
        self.clock.set(event.ts);
        if self.format == Format::StreamJson {
            json::line(event, &self.out);
        }
        self.denials.fold(event);
        let entries = self.tree.fold(event);
        match &mut self.teller {
            Teller::Plain(plain) => plain.tell(&entries),
            Teller::Live(live) => {
                if self.tree.is_root(event) {
                    self.words.hear(&event.body, live);
                }
                live.tell(entries);
                live.draw(&self.tree, event.ts);
            }
        }
    }

    /// Tells whether there is something that moves, and [`View::tick`] has something to do.
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self.teller, Teller::Live(_))
    }

    /// Lets time pass: what moves moves on, and what was held back is shown. Wants to be called about
    /// ten times a second.
    pub(crate) fn tick(&mut self) {
        self.tick_at(self.clock.now());
    }

    fn tick_at(&mut self, now: Timestamp) {
        if let Teller::Live(live) = &mut self.teller {
            live.draw(&self.tree, now);
        }
    }

    /// Shows what a person types meanwhile: messages that wait, and what is not complete.
    pub(crate) fn typed(&mut self, waiting: Vec<String>, draft: &str) {
        if let Teller::Live(live) = &mut self.teller {
            live.typed(waiting, draft);
        }
        self.tick();
    }

    /// Shows a message that the run took in while it worked.
    pub(crate) fn heard(&mut self, message: &str) {
        if let Teller::Live(live) = &mut self.teller {
            live.heard(message);
        }
    }

    /// Tells whether nothing was shown yet that stays.
    pub(crate) const fn is_fresh(&self) -> bool {
        match &self.teller {
            Teller::Live(live) => live.is_fresh(),
            Teller::Plain(_) => false,
        }
    }

    /// Takes the moving part away and holds still, so that a question can be asked on the terminal.
    pub(crate) fn pause(&mut self) {
        if let Teller::Live(live) = &mut self.teller {
            live.pause();
        }
    }

    /// Goes on after a pause.
    pub(crate) fn go_on(&mut self) {
        if let Teller::Live(live) = &mut self.teller {
            live.go_on();
        }
    }

    /// Tells whether an agent of this name was called, by whomever.
    pub(crate) fn has_called(&self, agent: &str) -> bool {
        self.tree.has_called(agent)
    }

    /// Returns how the run ended, once it has.
    pub(crate) fn report(&self) -> Option<RunReport> {
        let ended = self.tree.ended()?;
        let report = RunReport::new(&self.totals(), &ended.outcome, ended.answer.clone());
        Some(RunReport { task: self.task.clone(), ..report })
    }

    /// Returns what was used, with what no mode would have let happen.
    fn totals(&self) -> Totals {
        self.denials.counted_in(self.tree.totals())
    }

    /// Learns what was done, planned and learned, for the report.
    pub(crate) fn learn(&mut self, task: Option<&TaskContext>) {
        self.task = task.cloned();
    }

    /// Tells of something that is in no event, here and in the report.
    pub(crate) fn warn(&mut self, message: &str, output: &mut Output) {
        self.tree.warn(message);
        self.abandon();
        failure::doubt(output, message);
    }

    /// Leaves a run that did not end: on a clean line, and without another word.
    pub(crate) fn abandon(&mut self) {
        if let Teller::Live(live) = &mut self.teller {
            live.go_on();
            live.clear();
        }
    }

    /// Ends the view: prints the answer or the report, what the run used, and why it did not reach its
    /// goal if it did not.
    pub(crate) fn finish(&mut self, output: &mut Output) {
        let Some((totals, outcome)) = self.close(output) else { return };
        if let Some(failure) = ending::failure(&totals, &outcome) {
            failure.print(output);
        }
    }

    /// Ends the view: prints the answer or the report, and what the run used. Returns how it ended.
    pub(crate) fn close(&mut self, output: &mut Output) -> Option<(Totals, Outcome)> {
        self.abandon();
        let ended = self.tree.ended()?;
        let doubt = ending::not_completed(self.tree.totals(), &ended.outcome);
        if let Some(doubt) = &doubt {
            self.tree.warn(doubt);
        }
        let report = self.report()?;
        match (self.format, &report.answer, &report.partial) {
            (Format::Text, Some(answer), _) => self.answer(answer),
            (Format::Text, None, Some(partial)) => self.partial(partial, output),
            (Format::Text, None, None) => {}
            (Format::Json, ..) => output.json(&report),
            (Format::StreamJson, ..) => json::line(&report, &self.out),
        }
        self.out.flush();
        let summary = self.summary();
        match &mut self.teller {
            Teller::Live(live) => live.close(&summary),
            Teller::Plain(plain) => plain.close(&summary),
        }
        if let (Some(changed), Format::Text | Format::Json) = (&report.workspace, self.format)
            && !output.is_quiet()
        {
            workspace::tell(changed, &report.run, &output.err);
        }
        if matches!(self.format, Format::Text | Format::Json) && !output.is_quiet() {
            for agent in &report.agents {
                workspace::tell_of_agent(agent, &output.err);
            }
        }
        if let Some(doubt) = &doubt {
            failure::doubt(output, doubt);
        }
        let ended = self.tree.ended()?;
        Some((self.totals(), ended.outcome.clone()))
    }

    /// Shows what was said by a run that gave no answer, unless it stands there already. It is no answer,
    /// so it is not on standard output.
    fn partial(&self, partial: &Value, output: &Output) {
        if self.words.are_shown(partial) {
            return;
        }
        let text = match partial {
            Value::String(text) => text.clone(),
            value => serde_json::to_string_pretty(value).unwrap_or_default(),
        };
        output.err.gap();
        output.err.line("not an answer, but what was said until then:");
        for line in text.trim().lines() {
            output.err.line(format_args!("  {}", output.err.printable(line)));
        }
    }

    /// Prints the answer, unless it stands there already.
    fn answer(&mut self, answer: &Value) {
        if self.words.are_shown(answer) {
            return;
        }
        if let Teller::Live(live) = &mut self.teller
            && self.out.is_terminal()
        {
            live.set_apart();
        }
        print_answer(answer, &self.out);
    }

    /// Returns what an agent is called here: its path, numbered where there are several of that name.
    pub(crate) fn name_of(&self, run: &RunId, path: &AgentPath) -> String {
        match (self.tree.label(run), path.as_str().rsplit_once('/')) {
            (Some(label), Some((above, _))) => format!("{above}/{label}"),
            _ => path.to_string(),
        }
    }

    fn summary(&self) -> String {
        let totals = self.tree.totals();
        let look = match &self.teller {
            Teller::Live(live) => live.look(),
            Teller::Plain(plain) => plain.look(),
        };
        let calls = match totals.tool_calls {
            0 => None,
            calls => Some(amounts::count(calls.into(), "call")),
        };
        look.joined([
            Some(amounts::count(totals.turns.into(), "turn")),
            calls,
            (totals.denied > 0).then(|| format!("{} denied", totals.denied)),
            (!totals.usage.is_empty()).then(|| amounts::usage(&totals.usage, look)),
            Some(amounts::time(totals.elapsed(totals.latest))),
        ])
    }
}

/// The time of the events, carried on from the last one.
#[derive(Debug, Default)]
struct Clock(Option<(Timestamp, Instant)>);

impl Clock {
    fn set(&mut self, at: Timestamp) {
        self.0 = Some((at, Instant::now()));
    }

    fn now(&self) -> Timestamp {
        self.0.map_or_else(Timestamp::default, |(at, since)| at.after(since.elapsed()))
    }
}

/// Prints an answer: rendered on a terminal, and as it is anywhere else.
pub(crate) fn print_answer(answer: &Value, out: &Stream) {
    match answer {
        Value::String(text) if !out.is_terminal() => {
            out.text(text);
            if !text.ends_with('\n') {
                out.gap();
            }
        }
        answer => answer_lines(answer, out).iter().for_each(|line| out.line(line)),
    }
}

/// Returns the lines of an answer, as [`print_answer`] would print them.
pub(crate) fn answer_lines(answer: &Value, out: &Stream) -> Vec<String> {
    match answer {
        Value::String(text) if out.is_terminal() => render(text, Page::of(out)),
        Value::String(text) => text.lines().map(str::to_owned).collect(),
        value => {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            out.printable(&text).to_string().lines().map(str::to_owned).collect()
        }
    }
}

impl Words {
    /// Tells whether a text is the last thing that was shown.
    fn are_shown(&self, value: &Value) -> bool {
        value.as_str().is_some_and(|text| self.shown.as_deref() == Some(text))
    }

    /// Hands on what the model says to its user. What it says otherwise (a summary, a plan) and data
    /// are not for reading.
    fn hear(&mut self, body: &EventBody, live: &mut Live) {
        match body {
            EventBody::RunStarted { settings, .. } => {
                self.is_data = settings.ending == Ending::Structured;
            }
            EventBody::ModelRequest { purpose, .. } => {
                self.to_user = purpose.is_turn() && !self.is_data && live.shows_words();
            }
            EventBody::ModelDelta { text } if self.to_user => live.hear(text),
            EventBody::ModelResponse { message, .. } if self.to_user => {
                let words = message.words();
                if !live.hears() {
                    live.hear(&words);
                }
                live.end_words();
                self.shown = Some(words);
            }
            EventBody::ModelFailed { partial, .. } if self.to_user => {
                live.end_words();
                self.shown.clone_from(partial);
            }
            // It starts from the beginning, or not again.
            EventBody::ModelRetry { .. }
            | EventBody::ModelFailed { .. }
            | EventBody::RunCancelled { .. } => live.end_words(),
            _ => {}
        }
    }
}

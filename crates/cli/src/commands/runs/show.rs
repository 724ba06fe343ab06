//! `convoke runs show`: what happened in a run.

mod axis;
mod head;
mod items;
mod lines;
mod row;
mod story;

use std::io;
use std::process::Stdio;

use clap::Args;
use convoke::journal::timeline::Timeline;
use convoke::journal::{OpenQuestion, Recorded, Store};
use convoke::tools::{Clock, SystemClock};
use convoke_core::policy::RuleSpec;
use convoke_core::{Event, ExitCode, RunId};

use self::head::Head;
use self::lines::Amount;
use self::row::{Row, Told};
use self::story::Order;
use super::answer::{name, whole};
use super::named::{self, LastFlag, Opened};
use super::state::State;
use super::unanswered::Questions;
use crate::commands::inquiry::Answering;
use crate::failure::Failure;
use crate::output::{Output, Stream, Style, cut, harmless};
use crate::pager::Pager;
use crate::session::Session;
use crate::view::amounts;
use crate::view::json::RunReport;
use crate::view::look::Look;
use crate::view::tree::Tree;
use crate::view::{answer_lines, ending};

/// How much of what a call would do is shown.
const QUESTION: usize = 120;

const AFTER_HELP: &str = "\
Each line has the number of its event (for `convoke runs fork --at`), when it began, a bar that says when and for \
how long, and what it was. A long text is shown with the program that PAGER names. A run can be shown while \
it works. Where its journal is damaged, what is intact is shown, and the exit code is 9.

Examples:
  convoke runs show --last
  convoke runs show 1k2m --full          arguments, results and changes too
  convoke runs show 1k2m --tree          what a subagent did, below what started it
  convoke runs show --last --json";

/// Show what happened in a run
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Show {
    /// The run, or any part of its id that no other run has
    #[arg(value_name = "ID", num_args = 0..=1)]
    words: Vec<String>,
    #[command(flatten)]
    last: LastFlag,
    /// Put what a subagent did below what started it
    #[arg(long)]
    tree: bool,
    /// Show arguments, results, changes and thoughts too
    #[arg(long, conflicts_with = "json")]
    full: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A run that is shown.
struct Shown<'r> {
    id: &'r RunId,
    recorded: &'r Recorded,
    timeline: Timeline<'r>,
    /// What it used, in the words of `convoke run`.
    tree: Tree,
    state: State,
    /// What nobody has answered yet.
    questions: Vec<OpenQuestion<'r>>,
    /// How many questions have an answer that the run has not heard yet.
    answered: usize,
}

impl Show {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let Opened { store, id, recorded } = Opened::of(session, &self.words, self.last)?;
        let Questions { open, answered } = Questions::of(&store, &id, &recorded.events);
        let shown = Shown {
            id: &id,
            recorded: &recorded,
            timeline: Timeline::of(&recorded.events),
            tree: folded(&recorded.events),
            state: state_of(&store, &id, &recorded)?,
            questions: open,
            answered,
        };
        let order = if self.tree { Order::ByAgent } else { Order::ByTime };
        let rows = story::rows(&shown.timeline, order, Look::of(&output.out));
        if self.json {
            shown.tell(&rows, output);
        } else {
            let amount = if self.full { Amount::Full } else { Amount::Usual };
            let lines = shown.lines(&rows, order, amount, output);
            page(&lines, session, &output.out, Ok(Stdio::inherit()));
        }
        damaged(&id, &recorded)
    }
}

impl Shown<'_> {
    /// Returns everything, line by line.
    fn lines(&self, rows: &[Row], order: Order, amount: Amount, output: &Output) -> Vec<String> {
        let stream = &output.out;
        let mut lines = self.head().lines(SystemClock.now(), stream);
        if rows.is_empty() {
            return lines;
        }
        lines.push(String::new());
        lines.extend(lines::lines(rows, &self.timeline, order, amount, stream));
        lines.extend(self.end(output));
        lines.extend(self.questions(amount, output));
        let is_cut = rows.iter().flat_map(|row| &row.details).any(row::Detail::is_cut);
        if amount == Amount::Full && is_cut {
            let whole = format!("what was left out is in: convoke runs export {}", self.id);
            lines.extend([String::new(), stream.paint(Style::Dim, whole).to_string()]);
        }
        lines
    }

    /// Returns what the run waits for, and how to answer.
    fn questions(&self, amount: Amount, output: &Output) -> Vec<String> {
        let stream = &output.out;
        let mut lines = Vec::new();
        if self.answered > 0 {
            let count = amounts::count(self.answered as u64, "question");
            let are = if self.answered == 1 { "is" } else { "are" };
            let when = if self.state.is_worked_on() {
                "in a moment".to_owned()
            } else {
                format!("when it goes on: convoke runs resume {}", self.id)
            };
            lines.push(String::new());
            lines.push(format!("{count} {are} answered; the run hears it {when}"));
        }
        let Some(first) = self.questions.first() else { return lines };
        lines.extend([String::new(), "It waits for an answer:".to_owned()]);
        for question in &self.questions {
            let call = name(question, &self.questions);
            let call = harmless(&call);
            let agent = question.agent_label.as_str();
            if let Some(answering) = Answering::of(question) {
                let tool = stream.paint(Style::Name, harmless(question.tool_name));
                let who = question.inquiry.as_ref().map_or("", |inquiry| inquiry.who);
                let who = harmless(who);
                let (reason, calls) = answering.reason_and_calls();
                lines.push(match calls {
                    // The one it was put for may not be the one that asks.
                    Some(calls) => {
                        format!("  {call}  {who} asks, during one of: {}:", harmless(&calls))
                    }
                    None => format!("  {call}  {agent}  {tool}  {who} asks:"),
                });
                let said = answering.lines(stream);
                let fields = answering.field_lines();
                let fields = fields.iter().map(|field| format!("  {}", harmless(field)));
                lines.extend(said.into_iter().chain(fields).map(|line| format!("  {line}")));
                lines.push(format!("    {}", harmless(reason)));
                continue;
            }
            let what = begins(question.description, stream.ellipsis());
            let name = stream.paint(Style::Name, harmless(question.tool_name));
            lines.push(format!("  {call}  {agent}  {name}  {what}"));
            lines.push(format!("    {}", harmless(question.reason)));
            if amount == Amount::Full {
                lines.extend(whole(question, stream).map(|line| format!("    {line}")));
            }
            let rules: Vec<String> = question.rules.iter().map(RuleSpec::shown).collect();
            if !rules.is_empty() {
                let rules = rules.join("; ");
                lines.push(format!("    --always would allow {}", harmless(&rules)));
            }
        }
        let (id, call) = (self.id, name(first, &self.questions));
        let call = harmless(&call);
        let approve = format!("convoke runs approve {id} {call}");
        let deny = format!("convoke runs deny {id} {call}");
        let commands: Vec<String> = match Answering::of(first).as_ref().map(Answering::form) {
            // Nothing of what a stranger wrote stands in a line that people copy into a shell.
            Some(Some(form)) if !form.fields().is_empty() => {
                let filled = format!("{approve} --arguments JSON");
                // Only a person can be asked for the fields.
                let asked = stream.is_terminal().then_some(approve);
                asked.into_iter().chain([filled, deny]).collect()
            }
            Some(Some(_)) => vec![approve, deny],
            _ => vec![approve, format!("{deny} --message \"…\"")],
        };
        let before = std::iter::once("  To answer: ").chain(std::iter::repeat("             "));
        lines.extend(before.zip(commands).map(|(before, command)| format!("{before}{command}")));
        lines
    }

    /// Returns the answer and how the run ended, in the words of `convoke run`.
    fn end(&self, output: &Output) -> Vec<String> {
        let stream = &output.out;
        let mut lines = Vec::new();
        let Some(ended) = self.tree.ended() else {
            let resume = format!("convoke runs resume {}", self.id);
            let line = match self.state {
                State::Running | State::Waiting => "A process works on it.".to_owned(),
                State::Damaged => return lines,
                _ => format!("It was interrupted. To go on: {resume}"),
            };
            return vec![String::new(), stream.paint(Style::Warn, line).to_string()];
        };
        if let Some(answer) = &ended.answer {
            lines.push(String::new());
            lines.extend(answer_lines(answer, stream));
        } else if let Some(partial) = &ended.outcome.partial {
            lines.push(String::new());
            lines.push("not an answer, but what was said until then:".to_owned());
            let partial = answer_lines(partial, stream);
            lines.extend(partial.iter().map(|line| format!("  {line}")));
        }
        if let Some(failure) = ending::failure(self.tree.totals(), &ended.outcome) {
            lines.push(String::new());
            lines.extend(failure.shown_on(stream));
        }
        lines
    }

    /// Prints everything for a program.
    fn tell(&self, rows: &[Row], output: &mut Output) {
        let name =
            |row: &Row| self.timeline.agents.get(row.agent).map_or("", |agent| agent.path.as_str());
        let items: Vec<Told<'_>> = rows.iter().map(|row| Told::of(row, name(row))).collect();
        let report = RunReport::of(&self.tree, None);
        output.json(&self.head().told(&items, report.as_ref()));
    }

    fn head(&self) -> Head<'_> {
        Head {
            id: self.id,
            recorded: self.recorded,
            timeline: &self.timeline,
            outcome: self.tree.ended().map(|ended| &ended.outcome),
            state: self.state,
            questions: &self.questions,
        }
    }
}

/// Returns how a text begins, on one line, and how much there is beyond that.
fn begins(text: &str, mark: &str) -> String {
    let line = harmless(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let shown = cut(&line, QUESTION, "");
    match line.chars().count() - shown.chars().count() {
        0 => line,
        more => format!("{shown}{mark} {}", amounts::count(more as u64, "more character")),
    }
}

fn folded(events: &[Event]) -> Tree {
    let mut tree = Tree::default();
    for event in events {
        tree.fold(event);
    }
    tree
}

/// Says what became of a run. Only where its last event leaves that open the others are asked.
fn state_of(store: &Store, id: &RunId, recorded: &Recorded) -> Result<State, Failure> {
    if recorded.damage.is_some() {
        return Ok(State::Damaged);
    }
    let timeline = Timeline::of(&recorded.events);
    if let Some(end) = timeline.main().and_then(|main| main.end) {
        return Ok(State::ended(end.outcome.status));
    }
    let all = store.list().map_err(|error| named::failure(&error))?;
    let summary = all.iter().find(|summary| summary.run == *id);
    Ok(summary.map_or(State::Interrupted, State::of))
}

/// Shows a text on a stream, which a program reaches like this: page by page, if it is longer than the screen.
pub(super) fn page(
    lines: &[String],
    session: &Session<'_>,
    stream: &Stream,
    onto: io::Result<Stdio>,
) {
    let is_long = stream.screen().is_some_and(|screen| lines.len() >= screen.rows);
    if is_long && let (Some(pager), Ok(onto)) = (Pager::find(session.environment()), onto) {
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        stream.flush();
        if pager.show(&text, onto).is_ok() {
            return;
        }
    }
    for line in lines {
        stream.line(line);
    }
}

/// What is intact was shown; this says what is not.
pub(super) fn damaged(run: &RunId, recorded: &Recorded) -> Result<ExitCode, Failure> {
    match recorded.problem(run) {
        None => Ok(ExitCode::Done),
        Some(problem) => Err(named::failure(&problem)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_is_counted() {
        assert_eq!(begins("touch   made\n; ls\u{7}", "…"), "touch made ; ls\\u{7}");
        let long = format!("echo {}", "x".repeat(120));
        let shown = format!("echo {}… 5 more characters", "x".repeat(115));
        assert_eq!(begins(&long, "…"), shown);
    }
}

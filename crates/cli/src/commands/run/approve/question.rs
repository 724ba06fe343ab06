//! One question: how it is put, and what the answers mean.

mod look;

use std::io;
use std::os::fd::AsFd;
use std::process::Stdio;

use convoke_core::count::count;
use convoke_tool::{Answer, Question};
use serde_json::Value;
use tokio::sync::oneshot;

use self::look::{All, indented};
use super::keyboard::{Awaited, Said, Typed};
use super::save::save;
use super::{Approvals, Tools};
use crate::commands::inquiry::{Answering, Step};
use crate::output::{Stream, Style, cut, wrap};
use crate::view::View;

const HELP: &str = "\
y  yes, this once          a  yes, and the like for the rest of the run
n  no                      s  as a, and keep the rule for all runs to come
v  see all of it           e  change the arguments in your editor first
Anything else is a no, and the model reads what you wrote.";
/// How many lines of what a rule allows stand before the answers: in a low window, nothing is to push out of sight
/// what is asked about.
const MOST_OF_A_RULE: usize = 3;
/// Who answered, as the journal has it.
const BY: &str = "terminal";

/// A question and the way back.
#[derive(Debug)]
pub(in crate::commands::run) struct Asked {
    question: Question,
    answer: oneshot::Sender<Answer>,
    /// What the agent is called that asks, where it is known by more than its path.
    agent: Option<String>,
    /// What was entered so far, where it is an inquiry.
    answering: Option<Answering>,
    /// Whether something of what a call would do was shown to nobody yet.
    is_hidden: bool,
    /// How many more questions wait.
    more: usize,
}

/// A question that is not answered yet: something is done first, and another line is awaited.
pub(in crate::commands::run) type Unanswered = (Asked, Option<Awaited>);

/// What a line means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Once,
    Always,
    Save,
    Refuse,
    Edit,
    View,
    Help,
    /// Nothing is said. It may have been meant for a question that went away.
    Nothing,
    /// Anything else is for the model.
    Message,
}

impl Meaning {
    fn of(line: Option<&str>) -> Self {
        match line.map(|line| line.trim().to_lowercase()).as_deref() {
            Some("y" | "yes") => Self::Once,
            Some("a" | "always") => Self::Always,
            Some("s" | "save") => Self::Save,
            None | Some("n" | "no") => Self::Refuse,
            Some("") => Self::Nothing,
            Some("e" | "edit") => Self::Edit,
            Some("v" | "view") => Self::View,
            Some("?" | "h" | "help") => Self::Help,
            Some(_) => Self::Message,
        }
    }
}

impl Asked {
    pub(super) fn new(question: Question, answer: oneshot::Sender<Answer>) -> Self {
        let answering = question.inquiry.clone().map(Answering::new);
        Self { question, answer, agent: None, answering, is_hidden: false, more: 0 }
    }

    /// Calls the agent that asks by the name it has in this view.
    pub(in crate::commands::run) fn seen_in(mut self, view: &View) -> Self {
        self.agent = Some(view.name_of(&self.question.run, &self.question.agent));
        self
    }

    /// Says with it how many more questions wait.
    pub(in crate::commands::run) const fn before(mut self, more: usize) -> Self {
        self.more = more;
        self
    }

    /// Tells whether a call that runs asks what it has to know.
    pub(in crate::commands::run) const fn is_inquiry(&self) -> bool {
        self.answering.is_some()
    }

    /// Says no.
    pub(in crate::commands::run) fn decline(self) {
        self.answer(Answer::no());
    }

    /// Tells whether nobody wants to know the answer any more.
    pub(in crate::commands::run) fn is_withdrawn(&self) -> bool {
        self.answer.is_closed()
    }

    /// Waits until nobody wants to know the answer any more: somebody else gave it, or the time is up.
    pub(in crate::commands::run) async fn withdrawn(&mut self) {
        self.answer.closed().await;
    }

    /// Shows what it is about.
    pub(in crate::commands::run) fn show(&mut self, stream: &Stream) {
        let question = &self.question;
        let agent = self.agent.as_deref().unwrap_or(question.agent.as_str());
        let agent = Some(agent).filter(|_| !question.agent.is_root());
        if let Some(answering) = &self.answering {
            answering.show(&question.tool_name, agent, stream);
        } else {
            look::show(question, agent, stream);
            self.is_hidden = look::is_cut(question, stream);
        }
        if self.more > 0 {
            let more = count(self.more as u64, "more question");
            let verb = if self.more == 1 { "waits" } else { "wait" };
            stream.line(stream.paint(Style::Dim, format!("{more} {verb}")));
        }
    }

    /// Asks.
    pub(in crate::commands::run) fn put(&self, approvals: &Approvals, stream: &Stream) {
        match &self.answering {
            Some(answering) => answering.prompt(stream),
            None => self.ask(&approvals.tools, stream),
        }
    }

    /// Begins to wait for an answer. The terminal has to be free.
    pub(in crate::commands::run) fn line(&self, approvals: &Approvals) -> Option<Awaited> {
        let typed = self.answering.as_ref().map_or(Typed::Seen, Answering::typed);
        approvals.tools.keys.line(typed)
    }

    fn ask(&self, tools: &Tools, stream: &Stream) {
        stream.text(self.prompt(tools, stream));
        stream.flush();
    }

    /// Returns the question itself, with the answers that make sense here.
    fn prompt(&self, tools: &Tools, stream: &Stream) -> String {
        let mut answers = vec!["[y]es", "[n]o"];
        let always = self.always(tools, stream);
        let is_cut = always.len() > MOST_OF_A_RULE;
        if look::is_long(&self.question, stream) || is_cut {
            answers.push("[v]iew all");
        }
        if tools.editor.is_some() {
            answers.push("[e]dit");
        }
        let answers = format!("{}, or say what to do instead:", answers.join(", "));
        let answers = wrap(&answers, stream.width()).join("\n") + " ";
        let mut shown: Vec<String> = always.into_iter().take(MOST_OF_A_RULE).collect();
        if let (true, Some(last)) = (is_cut, shown.last_mut()) {
            let mark = stream.ellipsis();
            *last = cut(&format!("{last}{mark}"), stream.width().unwrap_or(usize::MAX), mark);
        }
        shown.push(answers);
        shown.join("\n")
    }

    /// Says what is allowed by always saying yes, in lines.
    fn always(&self, tools: &Tools, stream: &Stream) -> Vec<String> {
        if self.question.rules.is_empty() {
            return Vec::new();
        }
        let rules = look::allowed_by(&self.question.rules);
        let saves = if tools.rules.is_some() { "; [s]ave allows it in all runs" } else { "" };
        let always = format!("[a]lways allows {} in this run{saves}", stream.printable(&rules));
        wrap(&always, stream.width())
    }

    /// Takes in what the person said. Returns the question if that was no answer yet.
    pub(in crate::commands::run) fn hear(
        self,
        said: Said,
        approvals: &Approvals,
        stream: &Stream,
    ) -> Option<Unanswered> {
        let tools = &approvals.tools;
        let line = match said {
            Said::Edited(arguments) if arguments == *self.question.arguments => {
                return Some(self.again("nothing was changed", tools, stream));
            }
            // The call is checked anew and shown with what it would do now.
            Said::Edited(arguments) => return self.answer(Answer::Change(arguments)),
            Said::Line(line) => line,
        };
        if line.is_none() {
            // The end of input leaves the cursor behind the question.
            stream.line("");
        }
        if self.answering.is_some() {
            return self.hear_entered(line.as_deref(), tools, stream);
        }
        let rules = self.question.rules.clone();
        match Meaning::of(line.as_deref()) {
            // Nobody agrees to what nobody saw.
            Meaning::Once | Meaning::Always | Meaning::Save if self.is_hidden => {
                indented(
                    stream,
                    "not all of it was shown; here it is whole, and you are asked again",
                );
                Some(self.view(tools, stream))
            }
            Meaning::Once => self.answer(Answer::yes()),
            Meaning::Help => Some(self.again(HELP, tools, stream)),
            Meaning::Nothing => {
                Some(self.again("that is no answer; y is yes and n is no", tools, stream))
            }
            Meaning::Refuse => self.answer(Answer::no()),
            Meaning::Message => {
                let message = line.as_deref().unwrap_or_default().trim().to_owned();
                self.answer(Answer::no_because(message))
            }
            Meaning::View => Some(self.view(tools, stream)),
            Meaning::Edit => Some(self.edit(tools, stream)),
            Meaning::Always | Meaning::Save if rules.is_empty() => Some(self.again(
                "no rule would allow this; it is asked about each time",
                tools,
                stream,
            )),
            Meaning::Always => self.answer(Answer::always(rules)),
            Meaning::Save => match tools.rules.as_deref().map(|path| (path, save(path, &rules))) {
                Some((path, Ok(()))) => {
                    stream.line(format_args!("  saved in {}", path.display()));
                    self.answer(Answer::always(rules))
                }
                Some((path, Err(error))) => {
                    let problem = format!("{} cannot be written: {error}", path.display());
                    Some(self.again(&problem, tools, stream))
                }
                None => Some(self.again("there is no place to save rules", tools, stream)),
            },
        }
    }

    /// Takes in what goes into a form, or whether it is sent.
    fn hear_entered(
        mut self,
        line: Option<&str>,
        tools: &Tools,
        stream: &Stream,
    ) -> Option<Unanswered> {
        let answering = self.answering.as_mut()?;
        match answering.hear(line, stream) {
            Step::Ask => {
                let line = tools.keys.line(answering.typed());
                answering.prompt(stream);
                Some((self, line))
            }
            Step::Send(entered) => self.answer(Answer::with_arguments(Value::Object(entered))),
            Step::Decline => self.answer(Answer::no()),
        }
    }

    fn answer(self, answer: Answer) -> Option<Unanswered> {
        // A call that was stopped meanwhile does not wait for it any more.
        drop(self.answer.send(answer.by(BY)));
        None
    }

    /// Says why that was no answer, and asks again.
    fn again(self, problem: &str, tools: &Tools, stream: &Stream) -> Unanswered {
        indented(stream, problem);
        self.ask(tools, stream);
        (self, tools.keys.line(Typed::Seen))
    }

    /// Shows everything, and asks again.
    fn view(mut self, tools: &Tools, stream: &Stream) -> Unanswered {
        self.is_hidden = false;
        let all = All::of(&self.question, tools, stream).and(self.always(tools, stream));
        let (prompt, stream, keys) = (self.prompt(tools, stream), stream.clone(), tools.keys);
        let line = tools.keys.line_after(move || {
            all.show(io::stderr().as_fd().try_clone_to_owned().map(Stdio::from));
            // What was typed before somebody saw it is no answer.
            keys.forget();
            stream.text(&prompt);
            stream.flush();
            None
        });
        (self, line)
    }

    /// Lets the person change the arguments. The call is asked about anew with what comes of it.
    fn edit(self, tools: &Tools, stream: &Stream) -> Unanswered {
        let Some(editor) = tools.editor.clone() else {
            return self.again("there is no editor; EDITOR names one", tools, stream);
        };
        let arguments = self.question.arguments.clone();
        let (prompt, stream) = (self.prompt(tools, stream), stream.clone());
        let line = tools.keys.line_after(move || match editor.edit(&arguments) {
            Ok(changed) => Some(Said::Edited(changed)),
            Err(problem) => {
                indented(&stream, &problem);
                stream.text(&prompt);
                stream.flush();
                None
            }
        });
        (self, line)
    }
}

#[cfg(test)]
mod tests;

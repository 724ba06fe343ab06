//! Asking the person at the terminal, one question at a time, without losing sight of the run.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, IsTerminal, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use convoke_core::{DisplayFormat, Kind};
use convoke_tool::{Answer, Approver, Question};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::QueueSelector;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::environment::Environment;
use crate::files;
use crate::output::{Output, Stream, Style};
use crate::pager::Pager;
use crate::view::diff::{show, whole};

/// How many lines somebody can be expected to read without paging.
const LONG: usize = 20;

/// A question and the way back.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) question: Question,
    answer: oneshot::Sender<Answer>,
}

/// Carries questions from calls to the person.
#[derive(Debug)]
pub(in crate::commands) struct Approvals {
    sender: mpsc::UnboundedSender<Asked>,
    receiver: Option<mpsc::UnboundedReceiver<Asked>>,
    somebody: bool,
    always: Arc<Mutex<BTreeSet<String>>>,
    pager: Option<Pager>,
}

impl Approvals {
    /// Finds out whether there is somebody to ask.
    pub(in crate::commands) fn new(output: &Output, environment: &Environment) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let somebody = output.err.is_terminal() && terminal().is_some();
        let pager = somebody.then(|| Pager::find(environment)).flatten();
        Self { sender, receiver: Some(receiver), somebody, always: Arc::default(), pager }
    }

    /// Takes back every yes that was said for always.
    pub(in crate::commands) fn forget(&self) {
        self.always.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) fn approver(&self) -> AskAtTerminal {
        AskAtTerminal {
            sender: self.somebody.then(|| self.sender.clone()),
            always: Arc::clone(&self.always),
        }
    }

    /// Waits for the next question.
    pub(super) async fn next(&mut self) -> Asked {
        let next = match &mut self.receiver {
            Some(receiver) => receiver.recv().await,
            None => None,
        };
        match next {
            Some(asked) => asked,
            None => std::future::pending().await,
        }
    }
}

/// Asks through the one who watches the run.
#[derive(Debug)]
pub(super) struct AskAtTerminal {
    sender: Option<mpsc::UnboundedSender<Asked>>,
    always: Arc<Mutex<BTreeSet<String>>>,
}

#[async_trait]
impl Approver for AskAtTerminal {
    async fn ask(&self, question: Question) -> Answer {
        let Some(sender) = &self.sender else { return Answer::Nobody };
        let matter = matter(&question);
        if self.always.lock().unwrap_or_else(PoisonError::into_inner).contains(&matter) {
            return Answer::Yes;
        }
        let (answer, answered) = oneshot::channel();
        if sender.send(Asked { question, answer }).is_err() {
            return Answer::Nobody;
        }
        answered.await.unwrap_or(Answer::Nobody)
    }
}

impl Asked {
    /// Shows what it is about and asks. What was typed before is no answer.
    pub(super) fn show(&self, stream: &Stream) {
        forget_what_was_typed();
        let question = &self.question;
        let name = stream.paint(Style::Name, stream.printable(&question.tool_name));
        let wants = match question.kind {
            Kind::Execute => "wants to run a program",
            Kind::Fetch => "wants to use the network",
            Kind::Delete => "wants to delete",
            _ => "wants to change something",
        };
        stream.line(format_args!("{name} {wants}:"));
        match &question.preview {
            Some(preview) if preview.text.trim().is_empty() => {
                indented(stream, &question.description);
                indented(stream, "(nothing in the file changes, or a new file stays empty)");
            }
            Some(preview) if preview.format == DisplayFormat::Diff => {
                show(stream, &preview.text);
            }
            Some(preview) => indented(stream, &preview.text),
            None => indented(stream, &what(question)),
        }
        stream.text(self.prompt(stream));
        stream.flush();
    }

    /// Returns the question itself. That all can be viewed is said where much is to be seen.
    fn prompt(&self, stream: &Stream) -> String {
        let question = &self.question;
        let always = match question.kind {
            Kind::Execute => "this command".to_owned(),
            _ => question.tool_name.clone(),
        };
        let lines = question.preview.as_ref().map_or(0, |preview| preview.text.lines().count());
        let view = if lines > LONG { "[v]iew all, " } else { "" };
        let always = stream.printable(&always);
        format!("[y]es, [n]o, {view}[a]lways {always} in this run, or say what to do instead: ")
    }

    /// Makes ready to show all of it and to ask again.
    pub(super) fn again(&self, stream: &Stream, approvals: &Approvals) -> Again {
        let lines = match &self.question.preview {
            Some(preview) if preview.format == DisplayFormat::Diff => whole(&preview.text, stream),
            Some(preview) => harmless_lines(&preview.text, stream),
            None => harmless_lines(&what(&self.question), stream),
        };
        Again {
            lines,
            prompt: self.prompt(stream),
            stream: stream.clone(),
            pager: approvals.pager.clone(),
        }
    }

    /// Hands back what the person said.
    pub(super) fn answer(self, line: Option<&str>, approvals: &Approvals) {
        let said = line.map(str::trim);
        let answer = match said.map(str::to_lowercase).as_deref() {
            Some("y" | "yes") => Answer::Yes,
            Some("a" | "always") => {
                let mut always = approvals.always.lock().unwrap_or_else(PoisonError::into_inner);
                always.insert(matter(&self.question));
                Answer::Yes
            }
            None | Some("" | "n" | "no") => Answer::No { message: None },
            Some(_) => Answer::No { message: said.map(str::to_owned) },
        };
        // A call that was stopped meanwhile does not wait for it any more.
        drop(self.answer.send(answer));
    }
}

/// A question that is asked once more, after everything was shown.
#[derive(Debug)]
pub(super) struct Again {
    lines: Vec<String>,
    prompt: String,
    stream: Stream,
    pager: Option<Pager>,
}

impl Again {
    /// Shows everything, and asks.
    pub(super) fn ask(self) {
        self.show(io::stderr().as_fd().try_clone_to_owned().map(Stdio::from));
        self.stream.text(&self.prompt);
        self.stream.flush();
    }

    /// Shows everything: with the pager, or at once where that does not work.
    fn show(&self, onto: io::Result<Stdio>) {
        let text: String = self.lines.iter().flat_map(|line| [line, "\n"]).collect();
        let pager = self.pager.as_ref();
        if pager.zip(onto.ok()).is_none_or(|(pager, onto)| pager.show(&text, onto).is_err()) {
            self.lines.iter().for_each(|line| self.stream.line(format_args!("  {line}")));
        }
    }
}

/// Tells whether somebody wants to see all of it before the answer.
pub(super) fn wants_all(line: Option<&str>) -> bool {
    let said = line.map(|line| line.trim().to_lowercase());
    matches!(said.as_deref(), Some("v" | "view"))
}

fn harmless_lines(text: &str, stream: &Stream) -> Vec<String> {
    text.lines().map(|line| stream.printable(line).to_string()).collect()
}

/// What a yes for always is a yes to: a tool, or one very command.
fn matter(question: &Question) -> String {
    match question.kind {
        Kind::Execute => format!("{} {}", question.tool_name, question.arguments),
        _ => question.tool_name.clone(),
    }
}

/// What a call would do, as a person reads it: a command whole, and everything else that is said with it.
fn what(question: &Question) -> String {
    let arguments = question.arguments.as_object();
    let Some(command) = arguments.and_then(|all| all.get("command")?.as_str()) else {
        return question.description.clone();
    };
    let others = arguments.into_iter().flatten().filter(|(name, _)| *name != "command");
    let others = others.map(|(name, value)| format!("\n({name}: {value})"));
    format!("{command}{}", others.collect::<String>())
}

fn indented(stream: &Stream, text: &str) {
    for line in text.lines() {
        stream.line(format_args!("  {}", stream.printable(line)));
    }
}

fn forget_what_was_typed() {
    if let Some(terminal) = terminal() {
        // A terminal that forgets nothing is asked all the same.
        rustix::termios::tcflush(&terminal, QueueSelector::IFlush).ok();
    }
}

/// A line that is awaited from the terminal, also where standard input is something else. Who drops it
/// leaves what is typed to others.
#[derive(Debug)]
pub(super) struct Awaited {
    line: JoinHandle<Option<String>>,
    /// Dropping it ends the wait.
    _stop: PipeWriter,
}

impl Awaited {
    /// Begins to wait; there is nothing to wait for where there is no terminal.
    pub(super) fn line() -> Option<Self> {
        Self::line_after(|| ())
    }

    /// Does something that may take a while, and then begins to wait.
    pub(super) fn line_after(first: impl FnOnce() + Send + 'static) -> Option<Self> {
        let (terminal, (stopped, stop)) = (keyboard()?, io::pipe().ok()?);
        let line = tokio::task::spawn_blocking(move || {
            first();
            read_line(terminal, &stopped)
        });
        Some(Self { line, _stop: stop })
    }

    /// Returns the line; there is none at the end of input.
    pub(super) async fn next(&mut self) -> Option<String> {
        (&mut self.line).await.ok().flatten()
    }
}

/// The terminal is ready when it has a whole line.
fn read_line(terminal: fs::File, stopped: &PipeReader) -> Option<String> {
    loop {
        let mut waited =
            [PollFd::new(&terminal, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        let polled = poll(&mut waited, None);
        let [_, stop] = &waited;
        match polled {
            _ if !stop.revents().is_empty() => return None,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
            Ok(_) => break,
        }
    }
    let mut line = String::new();
    let bytes = io::BufReader::new(terminal).read_line(&mut line).ok()?;
    (bytes > 0).then_some(line)
}

/// Returns where the person types: standard input, if that is a terminal. Not every system can wait for
/// the terminal under its general name.
fn keyboard() -> Option<fs::File> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return stdin.as_fd().try_clone_to_owned().ok().map(fs::File::from);
    }
    terminal()
}

/// Opens the terminal of the person, if there is one.
fn terminal() -> Option<fs::File> {
    files::open(Path::new("/dev/tty")).ok()
}

#[cfg(test)]
mod tests {
    use convoke::Runtime;
    use convoke_core::ToolCall;
    use serde_json::json;

    use super::*;

    /// Says no, and keeps the question.
    #[derive(Debug)]
    struct Keep(mpsc::UnboundedSender<Question>);

    #[async_trait]
    impl Approver for Keep {
        async fn ask(&self, question: Question) -> Answer {
            self.0.send(question).unwrap();
            Answer::No { message: None }
        }
    }

    /// Returns the question that somebody is asked who has to judge so many new lines.
    async fn asked(lines: usize) -> Asked {
        let directory = tempfile::tempdir().unwrap();
        let runtime = Runtime::builder(directory.path()).build().unwrap();
        let (sender, mut questions) = mpsc::unbounded_channel();
        let executor = runtime.executor().approver(Keep(sender)).build();
        let content: Vec<String> = (0..lines).map(|line| format!("line {line}\u{7}")).collect();
        let content = content.join("\n");
        let arguments = json!({ "path": "a.txt", "content": content });
        executor.execute(ToolCall::new("c", "write_file", arguments)).await;
        let (answer, _) = oneshot::channel();
        Asked { question: questions.try_recv().unwrap(), answer }
    }

    #[tokio::test]
    async fn a_long_change_can_be_seen_whole_before_the_answer() {
        let output = Output::in_memory();
        let approvals = Approvals::new(&output, &Environment::of(&[]));
        let asked = asked(500).await;
        asked.show(&output.err);
        let shown = output.err.contents();
        assert!(shown.contains("[v]iew all") && !shown.contains("line 499"), "{shown}");
        asked.again(&output.err, &approvals).show(Ok(Stdio::null()));
        let shown = output.err.contents();
        assert!(shown.contains("+line 499\\u{7}"), "{}", shown.len());
        for line in ["v\n", "V", " view "] {
            assert!(wants_all(Some(line)), "{line}");
        }
        assert!(!wants_all(None) && !wants_all(Some("y")) && !wants_all(Some("")));
    }

    #[tokio::test]
    async fn a_short_change_is_seen_already() {
        let output = Output::in_memory();
        asked(3).await.show(&output.err);
        assert!(!output.err.contents().contains("[v]iew"), "{}", output.err.contents());
    }
}

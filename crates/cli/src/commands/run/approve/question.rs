//! One question: how it is shown, and what the answers mean.

use std::io;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::sync::Arc;

use convoke_core::policy::RuleSpec;
use convoke_core::{DisplayFormat, Kind};
use convoke_tool::{Answer, Question};
use serde_json::Value;
use tokio::sync::oneshot;

use super::keyboard::{Awaited, Said, forget_what_was_typed};
use super::save::save;
use super::{Approvals, Tools};
use crate::commands::inquiry::{Answering, Step};
use crate::output::{Stream, Style, wrap};
use crate::view::View;
use crate::view::diff::{show, whole};

/// How many lines somebody can be expected to read without paging.
const LONG: usize = 20;
/// How many bytes of a line somebody can be expected to read.
const WIDE: usize = 400;
const HELP: &str = "\
y  yes, this once          a  yes, and the like for the rest of the run
n  no                      s  as a, and keep the rule for all runs to come
v  see all of it           e  change the arguments in your editor first
Anything else is a no, and the model reads what you wrote.";
/// Who answered, as the journal has it.
const BY: &str = "terminal";

/// A question and the way back.
#[derive(Debug)]
pub(in crate::commands::run) struct Asked {
    question: Question,
    answer: oneshot::Sender<Answer>,
    /// The arguments as the person left them, which count only when the person has seen them again.
    edited: Option<Value>,
    /// What the agent is called that asks, where it is known by more than its path.
    agent: Option<String>,
    /// What was entered so far, where it is an inquiry.
    answering: Option<Answering>,
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
        Self { question, answer, edited: None, agent: None, answering }
    }

    /// Calls the agent that asks by the name it has in this view.
    pub(in crate::commands::run) fn seen_in(mut self, view: &View) -> Self {
        self.agent = Some(view.name_of(&self.question.run, &self.question.agent));
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

    /// Shows what it is about and asks. What was typed before is no answer.
    pub(in crate::commands::run) fn show(&self, approvals: &Approvals, stream: &Stream) {
        forget_what_was_typed();
        let question = &self.question;
        if let Some(answering) = &self.answering {
            let agent = self.agent.as_deref().unwrap_or(question.agent.as_str());
            let agent = Some(agent).filter(|_| !question.agent.is_root());
            answering.show(&question.tool_name, agent, stream);
            answering.prompt(stream);
            return;
        }
        let name = stream.paint(Style::Name, stream.printable(&question.tool_name));
        let wants = match question.kind {
            Kind::Execute => "wants to run a program",
            Kind::Fetch => "wants to use the network",
            Kind::Delete => "wants to delete",
            Kind::Read | Kind::Search => "wants to read",
            Kind::Think => "asks",
            _ => "wants to change something",
        };
        if question.agent.is_root() {
            stream.line(format_args!("{name} {wants}:"));
        } else {
            let agent = self.agent.as_deref().unwrap_or(question.agent.as_str());
            stream.line(format_args!("{name} of {} {wants}:", stream.printable(agent)));
        }
        match &question.preview {
            Some(preview) if preview.text.trim().is_empty() => {
                indented(stream, &question.description);
                indented(stream, "(nothing in the file changes, or a new file stays empty)");
            }
            Some(preview) if preview.format == DisplayFormat::Diff => {
                show(stream, &preview.text);
            }
            Some(preview) => indented(stream, &preview.text),
            None => {
                let lines = harmless_lines(&what(question), stream);
                lines.iter().take(LONG).for_each(|line| stream.line(format_args!("  {line}")));
                if let Some(more) = lines.len().checked_sub(LONG).filter(|more| *more > 0) {
                    stream.line(format_args!("  … {more} more lines"));
                }
            }
        }
        let reason = format!("It is asked because {}", stream.printable(&question.reason));
        for line in wrap(&reason, stream.width()) {
            stream.line(stream.paint(Style::Dim, line));
        }
        stream.text(self.prompt(&approvals.tools, stream));
        stream.flush();
    }

    /// Returns the question itself, with the answers that make sense here.
    fn prompt(&self, tools: &Tools, stream: &Stream) -> String {
        let question = &self.question;
        let mut answers = vec!["[y]es", "[n]o"];
        if self.is_long() {
            answers.push("[v]iew all");
        }
        if tools.editor.is_some() {
            answers.push("[e]dit");
        }
        let broken = |text: String| wrap(&text, stream.width()).join("\n");
        let answers = broken(format!("{}, or say what to do instead:", answers.join(", "))) + " ";
        // What was changed by hand is one thing; no rule was proposed for it.
        if question.rules.is_empty() || self.edited.is_some() {
            return answers;
        }
        let rules = shown(&question.rules);
        let saves = if tools.rules.is_some() { "; [s]ave allows it in all runs" } else { "" };
        let always = format!("[a]lways allows {} in this run{saves}", stream.printable(&rules));
        format!("{}\n{answers}", broken(always))
    }

    /// Tells whether not all of it was shown.
    fn is_long(&self) -> bool {
        let text = match &self.question.preview {
            Some(preview) => preview.text.clone(),
            None => what(&self.question),
        };
        text.lines().count() > LONG || text.lines().any(|line| line.len() > WIDE)
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
            Said::Edited(arguments) => return Some(self.with(arguments, tools, stream)),
            Said::Line(line) => line,
        };
        if line.is_none() {
            // The end of input leaves the cursor behind the question.
            stream.line("");
        }
        if self.answering.is_some() {
            return self.hear_entered(line.as_deref(), stream);
        }
        let rules = self.question.rules.clone();
        match Meaning::of(line.as_deref()) {
            Meaning::Once => match self.edited.clone() {
                Some(arguments) => self.answer(Answer::with_arguments(arguments)),
                None => self.answer(Answer::yes()),
            },
            Meaning::Help => Some(self.again(HELP, tools, stream)),
            Meaning::Nothing => {
                Some(self.again("that is no answer; y is yes and n is no", tools, stream))
            }
            Meaning::Always | Meaning::Save if self.edited.is_some() => {
                let problem = "what you changed can be allowed once; say yes or no";
                Some(self.again(problem, tools, stream))
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
    fn hear_entered(mut self, line: Option<&str>, stream: &Stream) -> Option<Unanswered> {
        let answering = self.answering.as_mut()?;
        match answering.hear(line, stream) {
            Step::Ask => {
                answering.prompt(stream);
                Some((self, Awaited::line()))
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

    /// Shows the arguments as the person left them, and asks about them.
    fn with(mut self, arguments: Value, tools: &Tools, stream: &Stream) -> Unanswered {
        self.question.preview = None;
        self.question.arguments = Arc::new(arguments.clone());
        self.edited = Some(arguments);
        let changed = format!("it would run with:\n{}", what(&self.question));
        self.again(&changed, tools, stream)
    }

    /// Says why that was no answer, and asks again.
    fn again(self, problem: &str, tools: &Tools, stream: &Stream) -> Unanswered {
        indented(stream, problem);
        stream.text(self.prompt(tools, stream));
        stream.flush();
        (self, Awaited::line())
    }

    /// Shows everything, and asks again.
    fn view(self, tools: &Tools, stream: &Stream) -> Unanswered {
        let all = self.all(tools, stream);
        let (prompt, stream) = (self.prompt(tools, stream), stream.clone());
        let line = Awaited::line_after(move || {
            all.show(io::stderr().as_fd().try_clone_to_owned().map(Stdio::from));
            stream.text(&prompt);
            stream.flush();
            None
        });
        (self, line)
    }

    fn all(&self, tools: &Tools, stream: &Stream) -> All {
        let lines = match &self.question.preview {
            Some(preview) if preview.format == DisplayFormat::Diff => whole(&preview.text, stream),
            Some(preview) => harmless_lines(&preview.text, stream),
            None => harmless_lines(&what(&self.question), stream),
        };
        All { lines, stream: stream.clone(), pager: tools.pager.clone() }
    }

    /// Lets the person change the arguments. What comes of it is the answer, unless it cannot be used.
    fn edit(self, tools: &Tools, stream: &Stream) -> Unanswered {
        let Some(editor) = tools.editor.clone() else {
            return self.again("there is no editor; EDITOR names one", tools, stream);
        };
        let arguments = self.question.arguments.clone();
        let (prompt, stream) = (self.prompt(tools, stream), stream.clone());
        let line = Awaited::line_after(move || match editor.edit(&arguments) {
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

/// Everything there is to see of a question.
#[derive(Debug)]
struct All {
    lines: Vec<String>,
    stream: Stream,
    pager: Option<crate::pager::Pager>,
}

impl All {
    /// Shows it: with the pager, or at once where that does not work.
    fn show(&self, onto: io::Result<Stdio>) {
        let text: String = self.lines.iter().flat_map(|line| [line, "\n"]).collect();
        let pager = self.pager.as_ref();
        if pager.zip(onto.ok()).is_none_or(|(pager, onto)| pager.show(&text, onto).is_err()) {
            self.lines.iter().for_each(|line| self.stream.line(format_args!("  {line}")));
        }
    }
}

/// Returns what rules allow, in a few words.
fn shown(rules: &[RuleSpec]) -> String {
    let each = rules.iter().map(|rule| {
        let what = match (&rule.command, &rule.host, &rule.tool) {
            (Some(command), ..) => format!("`{command}`"),
            (None, Some(host), Some(tool)) => format!("{tool} on {host}"),
            (None, None, Some(tool)) if rule.path.is_none() => tool.clone(),
            _ => return rule.shown(),
        };
        match &rule.directory {
            Some(directory) => format!("{what} in `{directory}`"),
            None => what,
        }
    });
    each.collect::<Vec<_>>().join(" and ")
}

fn harmless_lines(text: &str, stream: &Stream) -> Vec<String> {
    text.lines().map(|line| stream.printable(line).to_string()).collect()
}

/// What a call would do, as a person reads it: a command whole, and everything else that is said with it.
/// What does not say of itself what it changes is shown with all of its arguments.
fn what(question: &Question) -> String {
    let arguments = question.arguments.as_object();
    let Some(command) = arguments.and_then(|all| all.get("command")?.as_str()) else {
        let all = serde_json::to_string_pretty(&*question.arguments).unwrap_or_default();
        return format!("{}\n{all}", question.description);
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

#[cfg(test)]
mod tests {
    use convoke::Runtime;
    use convoke_core::{Permission, ToolCall};
    use convoke_tool::{Consent, Objection, ask_with};
    use serde_json::json;
    use tempfile::TempDir;
    use tokio::sync::mpsc;

    use super::*;
    use crate::environment::Environment;
    use crate::output::Output;

    struct Scene {
        directory: TempDir,
        approvals: Approvals,
        output: Output,
    }

    impl Scene {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let rules = Some(directory.path().join("rules.yml"));
            let environment = Environment::of(&[("EDITOR", "true")]);
            let mut approvals = Approvals::of(false, &environment, rules);
            approvals.tools.editor = super::super::edit::Editor::find(&environment);
            Self { directory, approvals, output: Output::in_memory() }
        }

        /// Returns the question that somebody is asked who has to judge so many new lines.
        async fn asked(&self, lines: usize) -> (Asked, oneshot::Receiver<Answer>) {
            let runtime = Runtime::builder(self.directory.path()).build().unwrap();
            let (sender, mut questions) = mpsc::unbounded_channel();
            let keep = ask_with(move |question| {
                sender.send(question).unwrap();
                std::future::ready(Answer::no())
            });
            let executor = runtime.executor().approver(keep).build();
            let content: Vec<String> = (0..lines).map(|line| format!("line {line}\u{7}")).collect();
            let arguments = json!({ "path": "a.txt", "content": content.join("\n") });
            executor.execute(ToolCall::new("c", "write_file", arguments)).await;
            let (sender, answer) = oneshot::channel();
            (Asked::new(questions.try_recv().unwrap(), sender), answer)
        }

        /// Says a line, and returns what the call was told.
        async fn say(&self, line: Option<&str>) -> Option<Answer> {
            let (asked, mut answer) = self.asked(3).await;
            let said = Said::Line(line.map(str::to_owned));
            match asked.hear(said, &self.approvals, &self.output.err) {
                None => Some(answer.try_recv().unwrap()),
                Some(_) => None,
            }
        }
    }

    #[tokio::test]
    async fn a_long_change_can_be_seen_whole_before_the_answer() {
        let scene = Scene::new();
        let (asked, _answer) = scene.asked(500).await;
        asked.show(&scene.approvals, &scene.output.err);
        let shown = scene.output.err.contents();
        assert!(shown.contains("[v]iew all") && !shown.contains("line 499"), "{shown}");
        asked.all(&scene.approvals.tools, &scene.output.err).show(Ok(Stdio::null()));
        let shown = scene.output.err.contents();
        assert!(shown.contains("+line 499\\u{7}"), "{}", shown.len());
    }

    #[tokio::test]
    async fn a_short_change_is_seen_already() {
        let scene = Scene::new();
        scene.asked(3).await.0.show(&scene.approvals, &scene.output.err);
        let shown = scene.output.err.contents();
        assert!(!shown.contains("[v]iew"), "{shown}");
        assert!(shown.ends_with(
            "[a]lways allows tool `write_file`, path `a.txt` in this run; [s]ave allows it in all runs\n\
             [y]es, [n]o, [e]dit, or say what to do instead: "
        ));
    }

    #[tokio::test]
    async fn a_rule_is_offered_with_the_directory_it_holds_in() {
        let scene = Scene::new();
        let (mut asked, _answer) = scene.asked(3).await;
        let mut rule = RuleSpec::command(Permission::Allow, "make *");
        rule.directory = Some("/home/ann/project".to_owned());
        asked.question.rules = vec![rule];
        asked.show(&scene.approvals, &scene.output.err);
        let shown = scene.output.err.contents();
        let offered = "[a]lways allows `make *` in `/home/ann/project` in this run";
        assert!(shown.contains(offered), "{shown}");
        assert!(shown.contains("It is asked because tools of kind `edit` need"), "{shown}");
    }

    #[tokio::test]
    async fn each_answer_means_what_it_says() {
        let scene = Scene::new();
        let rules = || {
            let mut rule = RuleSpec::tool(Permission::Allow, "write_file");
            rule.path = Some("a.txt".to_owned());
            vec![rule]
        };
        let no = |message: Option<&str>| {
            Answer::No(Objection { message: message.map(str::to_owned), by: Some(BY.into()) })
        };
        let yes = |rules| Answer::Yes(Consent { rules, by: Some(BY.into()), ..Consent::default() });
        for (line, expected) in [
            (Some("y"), yes(vec![])),
            (Some(" YES "), yes(vec![])),
            (Some("a"), yes(rules())),
            (Some("n"), no(None)),
            (None, no(None)),
            (Some("use b.txt"), no(Some("use b.txt"))),
        ] {
            assert_eq!(scene.say(line).await, Some(expected), "{line:?}");
        }
        // An empty line may have been meant for something else: it is asked again.
        assert_eq!(scene.say(Some("")).await, None);
        assert_eq!(scene.say(Some("s")).await, Some(yes(rules())));
        let saved = crate::files::read(&scene.directory.path().join("rules.yml")).unwrap();
        assert!(
            saved.ends_with(
                "    - {\"effect\":\"allow\",\"tool\":\"write_file\",\"path\":\"a.txt\"}\n"
            ),
            "{saved}"
        );
    }

    #[tokio::test]
    async fn edited_arguments_are_shown_before_they_count() {
        let scene = Scene::new();
        let (asked, mut answer) = scene.asked(3).await;
        let changed = json!({ "path": "b.txt", "content": "other" });
        let next = asked.hear(Said::Edited(changed.clone()), &scene.approvals, &scene.output.err);
        let (asked, _) = next.unwrap();
        assert!(answer.try_recv().is_err(), "nothing is said yet");
        let shown = scene.output.err.contents();
        assert!(shown.contains("it would run with:") && shown.contains("\"b.txt\""), "{shown}");
        let said = |line: &str| Said::Line(Some(line.to_owned()));
        let (asked, _) = asked.hear(said("a"), &scene.approvals, &scene.output.err).unwrap();
        assert!(asked.hear(said("y"), &scene.approvals, &scene.output.err).is_none());
        let expected = Answer::with_arguments(changed).by(BY);
        assert_eq!(answer.try_recv().unwrap(), expected);
    }

    #[tokio::test]
    async fn what_says_nothing_of_itself_is_shown_with_its_arguments() {
        let scene = Scene::new();
        let (mut asked, _answer) = scene.asked(3).await;
        asked.question.preview = None;
        asked.question.arguments =
            Arc::new(json!({ "content": vec!["line"; 50], "encoding": "base64" }));
        asked.show(&scene.approvals, &scene.output.err);
        let shown = scene.output.err.contents();
        assert!(shown.contains("more lines") && shown.contains("[v]iew all"), "{shown}");
        asked.all(&scene.approvals.tools, &scene.output.err).show(Ok(Stdio::null()));
        assert!(scene.output.err.contents().contains("base64"));
    }

    #[tokio::test]
    async fn what_a_server_asks_is_shown_whole_and_answered_by_what_is_typed() {
        let scene = Scene::new();
        let (mut asked, mut answer) = scene.asked(3).await;
        let command = json!({ "type": "string", "default": "ls" });
        let properties = json!({ "command": command, "name": { "type": "string" } });
        let schema = json!({ "properties": properties, "required": ["name", "command"] });
        asked.question.preview = None;
        asked.question.inquiry = Some(Arc::new(convoke_tool::Inquiry {
            who: "mcp:calc".into(),
            message: "What is your name?".into(),
            wanted: convoke_core::event::Wanted::Form { schema },
            problem: None,
            reason: "a server wants to know it".into(),
        }));
        let (sender, _) = oneshot::channel();
        let question = asked.question.clone();
        let mut asked = Asked::new(question, std::mem::replace(&mut asked.answer, sender));
        asked.show(&scene.approvals, &scene.output.err);
        for line in ["n", ""] {
            let said = Said::Line(Some(line.to_owned()));
            asked = asked.hear(said, &scene.approvals, &scene.output.err).unwrap().0;
        }
        assert!(answer.try_recv().is_err(), "nothing is sent yet");
        let said = Said::Line(Some("y".to_owned()));
        assert!(asked.hear(said, &scene.approvals, &scene.output.err).is_none());
        let entered = json!({ "name": "n", "command": "ls" });
        assert_eq!(answer.try_recv().unwrap(), Answer::with_arguments(entered).by(BY));
        let shown = scene.output.err.contents();
        for part in
            ["mcp:calc", "What is your name?", "(1/2) name (text; required)", "would be told"]
        {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_done_is_said_and_asked_again() {
        let mut scene = Scene::new();
        scene.approvals.tools.rules = None;
        scene.approvals.tools.editor = None;
        assert_eq!(scene.say(Some("s")).await, None);
        assert_eq!(scene.say(Some("e")).await, None);
        assert_eq!(scene.say(Some("?")).await, None);
        let (mut asked, _answer) = scene.asked(3).await;
        asked.question.rules.clear();
        let said = Said::Line(Some("a".to_owned()));
        let next = asked.hear(said, &scene.approvals, &scene.output.err);
        assert!(next.is_some());
        let shown = scene.output.err.contents();
        for part in [
            "no place to save rules",
            "EDITOR names one",
            "the model reads",
            "asked about each time",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }
}

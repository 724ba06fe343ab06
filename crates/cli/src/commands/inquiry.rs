//! A question that a call asks in the middle of its work: a form that is filled in field by field, or a page
//! that is opened. Nothing is sent before the person has seen all of it and said yes.
//!
//! While fields are asked for, whatever is typed is what goes into the field, an `n` included; an empty line takes
//! what stands in brackets. The end of input and Ctrl-C decline, or leave a question of another process open. What the
//! server says is marked as its own, behind a bar that none of it can leave. What goes into a field for passwords is not
//! seen while it is typed, by whoever reads the line.

use std::sync::Arc;

use convoke::journal::OpenQuestion;
use convoke_core::event::Wanted;
use convoke_tool::{Field, Form, Inquiry};
use serde_json::{Map, Value};
use url::{Host, Url};

use super::run::approve::Typed;
use crate::output::{Stream, Style, folded, harmless, wrap};
use crate::view::brief::one_line;

/// How many lines of a stranger's words are shown.
const MAX_LINES: usize = 40;
/// How much of the name of a field is shown.
const NAME: usize = 60;
const HOW: &str = "An empty line takes what is in [brackets]; Ctrl-C declines, and stops all of it if it \
comes again. You see everything before it is sent.";
/// The same, where another process asks.
const HOW_ELSEWHERE: &str = "An empty line takes what is in [brackets]; Ctrl-C and Ctrl-D leave the question open. \
You see everything before it is sent.";

/// An inquiry that is being answered.
#[derive(Debug)]
pub(super) struct Answering {
    inquiry: Arc<Inquiry>,
    form: Option<Form>,
    /// What was entered so far.
    entered: Map<String, Value>,
    /// Which field is asked for; behind the last one, whether all of it is sent.
    at: usize,
    /// Whether another process asks: then who leaves has said nothing to it.
    is_elsewhere: bool,
}

/// What a line came to.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Another line is awaited.
    Ask,
    /// This is the answer.
    Send(Map<String, Value>),
    /// There will be none.
    Decline,
}

impl Answering {
    pub(super) fn new(inquiry: Arc<Inquiry>) -> Self {
        // A form that cannot be read was put to nobody.
        let form = Form::wanted(&inquiry.wanted).ok().flatten();
        Self { inquiry, form, entered: Map::new(), at: 0, is_elsewhere: false }
    }

    /// Begins to answer what another process asked.
    pub(super) fn of(question: &OpenQuestion<'_>) -> Option<Self> {
        let inquiry = question.inquiry.as_ref()?;
        let asked = Inquiry {
            who: inquiry.who.to_owned(),
            message: question.description.to_owned(),
            wanted: inquiry.wanted.clone(),
            problem: inquiry.problem.map(str::to_owned),
            reason: String::new(),
            calls: Vec::new(),
        };
        let answering = Self::new(Arc::new(asked.recorded_for(question.reason)));
        Some(Self { is_elsewhere: true, ..answering })
    }

    pub(super) const fn form(&self) -> Option<&Form> {
        self.form.as_ref()
    }

    fn fields(&self) -> &[Field] {
        self.form.as_ref().map(Form::fields).unwrap_or_default()
    }

    /// Shows who asks and what.
    pub(super) fn show(&self, tool_name: &str, agent: Option<&str>, stream: &Stream) {
        let inquiry = &*self.inquiry;
        let who = stream.paint(Style::Name, stream.printable(&inquiry.who));
        let (reason, calls) = self.reason_and_calls();
        let during = match (calls, agent) {
            // The one it was put for may not be the one that asks.
            (Some(calls), _) => format!("one of: {calls}"),
            (None, Some(agent)) => format!("{tool_name} of {agent}"),
            (None, None) => tool_name.to_owned(),
        };
        stream.line(format_args!("{who} asks, during {}:", stream.printable(&during)));
        self.lines(stream).iter().for_each(|line| stream.line(line));
        if let Some(problem) = &inquiry.problem {
            let problem = format!("the last answer did not fit: {problem}");
            for line in set_off("  ", &problem, stream) {
                stream.line(stream.paint(Style::Warn, line));
            }
        }
        let reason = format!("It is asked because {}.", stream.printable(reason));
        let how = if self.is_elsewhere { HOW_ELSEWHERE } else { HOW };
        let how = (!self.fields().is_empty()).then(|| how.to_owned());
        for line in std::iter::once(reason).chain(how).flat_map(|text| wrap(&text, stream.width()))
        {
            stream.line(stream.paint(Style::Dim, line));
        }
    }

    /// Returns why it is asked, and the calls it may be for, where nobody can tell which of them it is.
    pub(super) fn reason_and_calls(&self) -> (&str, Option<String>) {
        let Inquiry { reason, calls, .. } = &*self.inquiry;
        (reason, (!calls.is_empty()).then(|| calls.join(", ")))
    }

    /// Returns what is asked: the words of whoever asks, and where a page leads.
    pub(super) fn lines(&self, stream: &Stream) -> Vec<String> {
        let words: Vec<&str> = self.inquiry.message.lines().collect();
        let mut lines: Vec<String> = Vec::new();
        for line in words.iter().take(MAX_LINES) {
            lines.extend(set_off(&bar(stream), line, stream));
        }
        if let Some(more) = words.len().checked_sub(MAX_LINES).filter(|more| *more > 0) {
            lines.push(format!("  {} {more} more lines", stream.ellipsis()));
        }
        if let Wanted::Visit { url } = &self.inquiry.wanted {
            lines.push("  It wants you to open this page:".to_owned());
            lines.extend(set_off("    ", url, stream));
            let (host, warnings) = leads_to(url);
            let host = stream.paint(Style::Emphasis, harmless(&host)).to_string();
            lines.push(format!("  It is a page of {host}"));
            for warning in warnings {
                lines.push(format!("  {}", stream.paint(Style::Warn, warning)));
            }
        }
        lines
    }

    /// Returns the fields, a line each.
    pub(super) fn field_lines(&self) -> Vec<String> {
        self.fields().iter().map(Field::told).collect()
    }

    /// Tells whether the next line is seen while it is typed.
    pub(super) fn typed(&self) -> Typed {
        let is_secret = self.fields().get(self.at).is_some_and(Field::is_secret);
        if is_secret { Typed::Unseen } else { Typed::Seen }
    }

    /// Asks for the next line.
    pub(super) fn prompt(&self, stream: &Stream) {
        let count = self.fields().len();
        match self.fields().get(self.at) {
            Some(field) => {
                let described = format!("({}/{count}) {}", self.at + 1, field.described());
                for line in set_off("", &described, stream) {
                    stream.line(line);
                }
                let before = self.entered.get(&field.name).or(field.default.as_ref());
                let before = before.map(|value| format!(" [{}]", shown(field, value)));
                let asked = one_line(&field.name, NAME) + &before.unwrap_or_default();
                stream.text(set_off("", &asked, stream).join("\n") + ": ");
            }
            None => self.ask_to_send(stream),
        }
        stream.flush();
    }

    /// Shows what would be sent, and asks whether it is.
    fn ask_to_send(&self, stream: &Stream) {
        if let Wanted::Visit { .. } = self.inquiry.wanted {
            stream.text("Have you opened it? [y]es, [n]o: ");
            return;
        }
        stream.line(format_args!("{} would be told:", stream.printable(&self.inquiry.who)));
        for field in self.fields() {
            let value = self.entered.get(&field.name).map(|value| shown(field, value));
            let value = value.unwrap_or_else(|| "(nothing)".to_owned());
            let told = format!("{}: {value}", one_line(&field.name, NAME));
            for line in set_off("  ", &told, stream) {
                stream.line(line);
            }
        }
        let change = if self.fields().is_empty() { "" } else { ", [c]hange" };
        stream.text(format_args!("Send it? [y]es, [n]o{change}: "));
    }

    /// Takes in a line; none at the end of input.
    pub(super) fn hear(&mut self, line: Option<&str>, stream: &Stream) -> Step {
        let Some(line) = line else { return Step::Decline };
        let fields = self.form.as_ref().map(Form::fields).unwrap_or_default();
        let Some(field) = fields.get(self.at) else { return self.hear_whether(line, stream) };
        let before = self.entered.get(&field.name).filter(|_| line.trim().is_empty());
        let read = before.map_or_else(|| field.read(line), |before| Ok(Some(before.clone())));
        match read {
            Ok(value) => {
                self.entered.extend(value.map(|value| (field.name.clone(), value)));
                self.at += 1;
            }
            Err(problem) => {
                let problem = format!("  {}", stream.printable(&problem));
                stream.line(stream.paint(Style::Warn, problem));
            }
        }
        Step::Ask
    }

    fn hear_whether(&mut self, line: &str, stream: &Stream) -> Step {
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => Step::Send(self.entered.clone()),
            "n" | "no" => Step::Decline,
            "c" | "change" if !self.fields().is_empty() => {
                self.at = 0;
                Step::Ask
            }
            _ => {
                let or = if self.fields().is_empty() { "yes or no" } else { "yes, no or change" };
                stream.line(format_args!("  please say {or}"));
                Step::Ask
            }
        }
    }
}

/// Returns what stands before words of somebody else's.
fn bar(stream: &Stream) -> String {
    let bar = if stream.shows_unicode() { "\u{2502}" } else { "|" };
    format!("  {bar} ")
}

/// Returns words of somebody else's as lines that fit, also where they go into a file: the first behind this, the others
/// behind a bar. The terminal has nothing to break, so none of them can look like a line of ours. What was laid out
/// stays so as long as there is room for it.
fn set_off(first: &str, words: &str, stream: &Stream) -> Vec<String> {
    const BEFORE: usize = 4;
    // A tab takes as many columns as the terminal likes.
    let words = harmless(words).replace('\t', "    ");
    // The last column is left free, in which some terminals break a line already.
    let room = stream.width_now().map_or(usize::MAX, |width| width.saturating_sub(BEFORE + 1));
    let lines = words.lines().flat_map(|line| folded(line, room)).map(str::trim_end);
    let bar = bar(stream);
    let before = std::iter::once(first).chain(std::iter::repeat(bar.as_str()));
    let lines: Vec<String> =
        before.zip(lines).map(|(before, line)| format!("{before}{line}")).collect();
    if lines.is_empty() { vec![first.to_owned()] } else { lines }
}

/// Returns a value as a person would enter it, unless others must not see it.
fn shown(field: &Field, value: &Value) -> String {
    const HIDDEN: &str = "******";
    if field.is_secret() { HIDDEN.to_owned() } else { field.shown(value) }
}

/// Returns where an address leads, and what may deceive about it.
fn leads_to(url: &str) -> (String, Vec<&'static str>) {
    let Ok(url) = Url::parse(url) else { return (url.to_owned(), Vec::new()) };
    let host = url.host_str().unwrap_or_default().to_owned();
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let mut warnings = Vec::new();
    if url.scheme() != "https" && !is_here {
        warnings.push("it is not encrypted: others may see what you enter there");
    }
    if !url.username().is_empty() || url.password().is_some() {
        warnings.push("what stands before the @ is not where it leads");
    }
    if host.split('.').any(|part| part.starts_with("xn--")) {
        warnings.push("its name has letters that may look like others");
    }
    (host, warnings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answering(wanted: Wanted) -> Answering {
        Answering::new(Arc::new(Inquiry {
            who: "mcp:calc".into(),
            message: "Who\u{7} are you?\nSend it? [y]es".into(),
            wanted,
            problem: None,
            reason: "a server wants to know it".into(),
            calls: Vec::new(),
        }))
    }

    fn form() -> Answering {
        answering(Wanted::Form {
            schema: json!({ "type": "object", "required": ["command"], "properties": {
                "command": { "type": "string", "description": "what to run" },
                "level": { "type": "integer", "minimum": 1, "maximum": 5, "default": 3 },
                "why": { "type": "string" } } }),
        })
    }

    fn stream() -> Stream {
        Stream::on_terminal(80).without_colour()
    }

    fn say(answering: &mut Answering, line: &str, stream: &Stream) -> Step {
        answering.prompt(stream);
        answering.hear(Some(line), stream)
    }

    #[test]
    fn a_form_is_filled_in_line_by_line_and_seen_before_it_is_sent() {
        let stream = stream();
        let mut form = form();
        form.show("mcp__calc__greet", Some("main/reviewer"), &stream);
        for line in ["", "n", "seven", "9", "", "", "maybe", "c", "ls", "5", "for fun"] {
            assert_eq!(say(&mut form, line, &stream), Step::Ask, "{line}");
        }
        let all = json!({ "command": "ls", "level": 5, "why": "for fun" });
        let Step::Send(sent) = say(&mut form, "y", &stream) else { panic!("it is sent") };
        assert_eq!(Value::Object(sent), all);
        let shown = stream.contents();
        for part in [
            "mcp:calc asks, during mcp__calc__greet of main/reviewer:",
            "  \u{2502} Who\\u{7} are you?\n  \u{2502} Send it? [y]es\n",
            "(1/3) command (text; required): what to run\ncommand: ",
            "something has to be entered",
            "(2/3) level (a whole number from 1 to 5; may be left out)\nlevel [3]: ",
            "this is not a whole number from 1 to 5",
            "greater than the maximum of 5",
            "mcp:calc would be told:\n  command: n\n  level: 3\n  why: (nothing)\n\
             Send it? [y]es, [n]o, [c]hange: ",
            "please say yes, no or change",
            "command [n]: ",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    /// Regression: one call was named of which nobody knew whether it was the one that asks.
    #[test]
    fn a_question_that_may_be_of_several_calls_is_put_on_none_of_them() {
        let stream = stream();
        let calls = ["mcp__calc__ask of main/worker".to_owned(), "mcp__calc__slow".to_owned()];
        let inquiry = Inquiry { calls: calls.into(), ..Inquiry::clone(&form().inquiry) };
        Answering::new(Arc::new(inquiry)).show("mcp__calc__slow", Some("main"), &stream);
        let shown = stream.contents();
        let headline =
            "mcp:calc asks, during one of: mcp__calc__ask of main/worker, mcp__calc__slow:\n";
        assert!(shown.starts_with(headline), "{shown}");
        assert!(shown.contains("It is asked because a server wants to know it.\n"), "{shown}");
    }

    #[test]
    fn a_form_breaks_between_words_in_a_narrow_terminal() {
        let stream = Stream::on_terminal(40).without_colour();
        let message = "Everything that you enter here is recorded by me, the server.";
        let wanted = Wanted::Form {
            schema: json!({ "properties": { "a": { "type": "string",
                "description": "a long description of what is to be entered" } } }),
        };
        let mut inquiry = Inquiry::clone(&answering(wanted).inquiry);
        inquiry.message = message.into();
        let form = Answering::new(Arc::new(inquiry));
        form.show("t", None, &stream);
        form.prompt(&stream);
        let shown = stream.contents();
        assert!(shown.lines().all(|line| crate::output::columns(line) <= 40), "{shown}");
        let words = shown.replace("\n  \u{2502} ", " ").replace('\n', " ");
        assert!(words.contains(message) && words.contains(HOW), "{shown}");
    }

    /// Regression: a word that was longer than a line went on at the left, where our own lines are.
    #[test]
    fn no_word_of_a_server_leaves_its_margin() {
        let stream = Stream::on_terminal(60).without_colour();
        let gap = "\u{2800}".repeat(200);
        let forged = format!("x{gap}Send\u{2800}it?\u{2800}[y]es\t{gap}y\nmcp:bank\u{2800}asks");
        let property = json!({ "type": "string", "description": forged, "default": forged });
        let schema = json!({ "properties": { (forged.as_str()): property } });
        let mut inquiry = Inquiry::clone(&answering(Wanted::Form { schema }).inquiry);
        (inquiry.message, inquiry.problem) = (forged.clone(), Some(forged.clone()));
        let mut form = Answering::new(Arc::new(inquiry));
        form.show("t", None, &stream);
        say(&mut form, "", &stream);
        stream.line("");
        form.prompt(&stream);
        stream.line("");
        let page = Wanted::Visit { url: format!("https://x.example/{forged}") };
        answering(page).show("t", None, &stream);
        let shown = stream.contents();
        assert!(shown.lines().all(|line| crate::output::columns(line) <= 60), "{shown}");
        for part in ["Send\u{2800}it", "mcp:bank"] {
            let forged: Vec<&str> = shown.lines().filter(|line| line.contains(part)).collect();
            assert!(!forged.is_empty(), "{shown}");
            assert!(forged.iter().all(|line| line.starts_with("  \u{2502} ")), "{forged:?}");
        }
    }

    #[test]
    fn what_goes_into_a_file_is_harmless_too() {
        let stream = Stream::in_memory();
        let lines = answering(Wanted::Visit { url: "https://x.example/\u{1b}[2J".into() });
        let lines = lines.lines(&stream).join("\n");
        assert!(!lines.contains(['\u{7}', '\u{1b}']), "{lines:?}");
    }

    #[test]
    fn a_password_is_not_shown_again() {
        let stream = stream();
        let schema = json!({ "type": "object", "required": ["pin"],
            "properties": { "pin": { "type": "string" } } });
        let mut form = answering(Wanted::Form { schema });
        for line in ["4711", "c", ""] {
            assert_eq!(say(&mut form, line, &stream), Step::Ask, "{line}");
        }
        let Step::Send(sent) = say(&mut form, "y", &stream) else { panic!("it is sent") };
        assert_eq!(Value::Object(sent), json!({ "pin": "4711" }));
        let shown = stream.contents();
        assert!(shown.contains("would be told:\n  pin: ******\n"), "{shown}");
        assert!(shown.contains("pin [******]: ") && !shown.contains("4711"), "{shown}");
    }

    #[test]
    fn declining_is_possible_at_every_step() {
        let stream = stream();
        assert_eq!(form().hear(None, &stream), Step::Decline);
        let mut form = form();
        for line in ["ls", "", ""] {
            assert_eq!(form.hear(Some(line), &stream), Step::Ask);
        }
        assert_eq!(form.hear(Some("n"), &stream), Step::Decline);
    }

    #[test]
    fn a_page_is_shown_with_where_it_leads() {
        let stream = stream();
        let url = "http://bank.example@xn--bnk-sna.example/x".to_owned();
        let mut visit = answering(Wanted::Visit { url });
        visit.show("t", None, &stream);
        assert_eq!(say(&mut visit, "", &stream), Step::Ask, "only yes is yes");
        assert_eq!(say(&mut visit, "y", &stream), Step::Send(Map::new()));
        let shown = stream.contents();
        for part in [
            "It is a page of xn--bnk-sna.example\n",
            "not encrypted",
            "before the @",
            "look like others",
            "Have you opened it? [y]es, [n]o: ",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert_eq!(leads_to("http://127.0.0.1:8/x"), ("127.0.0.1".to_owned(), vec![]));
    }
}

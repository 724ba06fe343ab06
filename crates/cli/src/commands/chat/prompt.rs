//! `/server:prompt` in a chat: a prepared message of an MCP server, filled in and said.
//!
//! What it takes may stand behind it, in order or as `name=value`, in quotes where it has spaces; a person is asked
//! for the rest. The words are the server's: nothing in them is taken for a file to attach or for a command.

use std::collections::BTreeMap;
use std::time::Duration;

use convoke::Runtime;
use convoke::agent::Task;
use convoke::mcp::client::{Prompt, PromptArgument};
use convoke_core::nearest::{did_you_mean, nearest};
use convoke_core::{Message, Part, Role, ToolError};

use super::input::{Heard, Input};
use super::talk::note;
use crate::failure::Failure;
use crate::output::Output;
use crate::view::brief::one_line;

/// How long a server may take, its start included.
const PATIENCE: Duration = Duration::from_mins(1);
/// The longest that is sent.
const MAX_BYTES: usize = 1024 * 1024;

/// A prompt as somebody wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// The server that has it.
    pub(super) server: String,
    /// What the server calls it.
    pub(super) prompt: String,
    /// What stands behind it.
    pub(super) written: String,
}

/// What is filled into a prompt.
pub(super) type Arguments = BTreeMap<String, String>;

/// What came of asking for what a prompt takes.
#[derive(Debug)]
pub(super) enum Asked {
    /// This is filled in.
    Filled(Arguments),
    /// Somebody thought better of it, or wants to leave.
    Not(Heard),
}

impl Named {
    /// Finds what it takes, and starts its server for that if need be.
    pub(super) async fn find(&self, runtime: &Runtime) -> Result<Prompt, Failure> {
        let Self { server, prompt, .. } = self;
        let listed = runtime.mcp().into_iter().flat_map(|servers| servers.listed());
        let names: Vec<&str> = listed.map(|listed| listed.config.name.as_str()).collect();
        let Some(servers) = runtime.mcp().filter(|_| names.contains(&server.as_str())) else {
            let close = did_you_mean(&nearest(server, names));
            let message = format!("there is no MCP server `{server}`{close}");
            return Err(
                Failure::usage(message).hint(format!("`//{server}:{prompt}` says it to the model"))
            );
        };
        if let Some(why) = runtime.denies_reading(server) {
            let message = format!("no prompt of the MCP server `{server}` can be used");
            return Err(Failure::failed(message).causes([why]));
        }
        servers.attach();
        let listing = tokio::time::timeout(PATIENCE, servers.servers().list_prompts(server));
        let prompts = listing.await.unwrap_or_else(|_| Err(ToolError::timeout(PATIENCE)));
        let prompts = prompts.map_err(|error| failed(&error, runtime))?;
        let found = prompts.iter().find(|one| one.name == *prompt);
        found.cloned().ok_or_else(|| {
            let close = nearest(prompt, prompts.iter().map(|one| one.name.as_str()));
            let close = did_you_mean(&close);
            Failure::usage(format!("the MCP server `{server}` has no prompt `{prompt}`{close}"))
                .hint(format!("`convoke mcp prompts {server}` shows them all"))
        })
    }

    /// Has the server fill it in.
    pub(super) async fn task(
        &self,
        arguments: Arguments,
        runtime: &Runtime,
    ) -> Result<Task, Failure> {
        let Self { server, prompt, .. } = self;
        let Some(servers) = runtime.mcp() else {
            return Err(Failure::usage("there are no MCP servers"));
        };
        let filling = servers.servers().get_prompt(server, prompt, arguments);
        let filled = tokio::time::timeout(PATIENCE, filling).await;
        let filled = filled.unwrap_or_else(|_| Err(ToolError::timeout(PATIENCE)));
        said(filled.map_err(|error| failed(&error, runtime))?)
    }
}

fn failed(error: &ToolError, runtime: &Runtime) -> Failure {
    Failure::failed(runtime.secrets().hide(&error.message))
}

/// Makes a message of what a server says.
fn said(messages: Vec<Message>) -> Result<Task, Failure> {
    let is_talk = messages.iter().any(|message| message.role == Role::Assistant);
    let (mut words, mut others): (Vec<String>, Vec<Part>) = (Vec::new(), Vec::new());
    for message in messages {
        if is_talk {
            let speaker = if message.role == Role::Assistant { "assistant" } else { "user" };
            words.push(format!("[{speaker}]"));
        }
        for part in message.parts {
            match part.as_text() {
                Some(text) => words.push(text.to_owned()),
                None => others.push(part),
            }
        }
    }
    if words.is_empty() && others.is_empty() {
        return Err(Failure::failed("there is nothing in this prompt"));
    }
    let text = words.join("\n");
    if text.len() > MAX_BYTES {
        return Err(Failure::failed("this prompt is longer than 1 MiB"));
    }
    Ok(others.into_iter().fold(Task::new(text), Task::attach))
}

/// Reads what stands behind a prompt: `name=value`, or values in the order in which the prompt takes them.
pub(super) fn arguments(prompt: &Prompt, written: &str) -> Result<Arguments, Failure> {
    let takes = |name: &str| prompt.arguments.iter().any(|one| one.name == name);
    let mut given = Arguments::new();
    let mut in_order = Vec::new();
    for word in words(written) {
        match word.split_once('=').filter(|(name, _)| takes(name)) {
            Some((name, value)) => drop(given.insert(name.to_owned(), value.to_owned())),
            None => in_order.push(word),
        }
    }
    let left: Vec<&PromptArgument> =
        prompt.arguments.iter().filter(|one| !given.contains_key(&one.name)).collect();
    if in_order.len() > left.len() {
        // One text is one value, with or without quotes.
        if let ([only], true) = (left.as_slice(), given.is_empty()) {
            return Ok(Arguments::from([(only.name.clone(), written.trim().to_owned())]));
        }
        let names: Vec<&str> = prompt.arguments.iter().map(|one| one.name.as_str()).collect();
        let takes = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        return Err(Failure::usage(format!("this prompt takes {takes}"))
            .hint("put a value with spaces in quotes: city=\"New York\""));
    }
    let named = left.iter().map(|one| one.name.clone()).zip(in_order);
    given.extend(named);
    Ok(given)
}

/// Splits a line where spaces are, but not in quotes, which go.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            letter if letter.is_whitespace() && !quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Asks a person for what is missing; where nothing was given, also for what may be left out.
pub(super) fn ask(
    prompt: &Prompt,
    mut given: Arguments,
    input: &mut Input,
    threads: &tokio::runtime::Runtime,
    output: &Output,
) -> Result<Asked, Failure> {
    let asks_all = given.is_empty() && input.is_terminal();
    for argument in &prompt.arguments {
        if given.contains_key(&argument.name) || !(argument.required || asks_all) {
            continue;
        }
        if !input.is_terminal() {
            let message = format!("this prompt needs `{}`", argument.name);
            let hint = format!("write {}=VALUE behind it", argument.name);
            return Err(Failure::usage(message).hint(hint));
        }
        loop {
            note(&question(argument), output);
            match input.read(String::new(), threads)? {
                Heard::Line(text) if !text.trim().is_empty() => {
                    given.insert(argument.name.clone(), text.trim().to_owned());
                    break;
                }
                Heard::Line(_) if !argument.required => break,
                Heard::Line(_) => note("it has to be given; Ctrl-C gives up the prompt", output),
                other => return Ok(Asked::Not(other)),
            }
        }
    }
    Ok(Asked::Filled(given))
}

fn question(argument: &PromptArgument) -> String {
    const LONGEST: usize = 200;
    let PromptArgument { name, description, required } = argument;
    let name = one_line(name, LONGEST);
    let optional = if *required { "" } else { " (may be left out)" };
    match description {
        Some(description) => format!("{name}{optional}: {}", one_line(description, LONGEST)),
        None => format!("{name}{optional}"),
    }
}

/// What is known of what one server has, for Tab: names, and what they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Served {
    /// The server.
    pub(super) server: String,
    /// Its prompts.
    pub(super) prompts: Vec<(String, Option<String>)>,
    /// What can be read from it, by address.
    pub(super) resources: Vec<(String, Option<String>)>,
}

/// Returns what is known of what servers have. None is started.
pub(super) fn served(runtime: &Runtime) -> Vec<Served> {
    let Some(servers) = runtime.mcp() else { return Vec::new() };
    let used = servers.listed().iter().filter(|listed| listed.config.enabled);
    let served = used.map(|listed| {
        let server = listed.config.name.clone();
        let prompts = servers.servers().known_prompts(&server);
        let (resources, templates) = servers.servers().known_resources(&server);
        let prompts = prompts.into_iter().filter_map(|one| shown(one.name, one.description));
        let resources = resources.into_iter().map(|one| (one.uri, one.name));
        // Of what is to be filled in, all that is known is the beginning.
        let begins = |template: String| template.split('{').next().unwrap_or_default().to_owned();
        let templates = templates.into_iter().map(|one| (begins(one.uri_template), one.name));
        let resources = resources.chain(templates);
        let resources = resources.filter_map(|(uri, name)| shown(uri, Some(name)));
        Served { server, prompts: prompts.collect(), resources: resources.collect() }
    });
    served.collect()
}

/// Returns what Tab may write into a line, with what it is. What a server says may be no word, and harm a terminal.
fn shown(word: String, about: Option<String>) -> Option<(String, Option<String>)> {
    const LONGEST_WORD: usize = 400;
    const LONGEST: usize = 80;
    let is_word = !word.is_empty()
        && !word.contains(char::is_whitespace)
        && one_line(&word, LONGEST_WORD) == word;
    is_word.then(|| (word, about.map(|about| one_line(&about, LONGEST))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(names: &[&str]) -> Prompt {
        let argument = |name: &&str| PromptArgument {
            name: (*name).to_owned(),
            description: None,
            required: true,
        };
        let arguments = names.iter().map(argument).collect();
        Prompt { name: "p".into(), title: None, description: None, arguments }
    }

    fn read(names: &[&str], written: &str) -> Vec<(String, String)> {
        arguments(&prompt(names), written).unwrap().into_iter().collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn values_are_given_in_order_or_by_name() {
        assert_eq!(read(&["a", "b"], "1 2"), [pair("a", "1"), pair("b", "2")]);
        assert_eq!(read(&["a", "b"], "b=1 x=2"), [pair("a", "x=2"), pair("b", "1")]);
        assert_eq!(
            read(&["a", "b"], "\"New York\" b=\"\""),
            [pair("a", "New York"), pair("b", "")]
        );
        assert_eq!(read(&["a"], "all of it"), [pair("a", "all of it")]);
        assert!(read(&["a"], " ").is_empty());
        assert!(
            arguments(&prompt(&[]), "x").is_err()
                && arguments(&prompt(&["a", "b"]), "1 2 3").is_err()
        );
    }

    #[test]
    fn tab_offers_nothing_that_harms_a_terminal() {
        let about = Some("two\nlines \u{1b}[2J".to_owned());
        let (word, about) = shown("note://today".into(), about).unwrap();
        assert_eq!(word, "note://today");
        assert!(!about.unwrap().contains(char::is_control));
        for bad in ["a b", "a\nb", "\u{1b}[2J", "a\u{202e}b", ""] {
            assert_eq!(shown(bad.into(), None), None, "{bad:?}");
        }
    }

    #[test]
    fn what_a_server_says_is_one_message() {
        let message = |role, text: &str| Message { role, parts: vec![Part::text(text)] };
        let text = |messages| format!("{:?}", said(messages).unwrap());
        assert!(text(vec![message(Role::User, "look at @a.txt")]).contains("look at @a.txt"));
        let talk = vec![message(Role::User, "one"), message(Role::Assistant, "two")];
        assert!(text(talk).contains("[user]\\none\\n[assistant]\\ntwo"));
        assert!(said(Vec::new()).is_err());
    }
}

//! What a line is: a message, or one of the chat's own commands.
//!
//! A line that begins with one slash and a word is a command; two slashes are a message that begins
//! with one. A word with a colon is a prompt of an MCP server. What looks like a path (`/usr/bin …`) is a message.

use convoke_core::Mode;
use convoke_core::nearest::{did_you_mean, nearest};

use super::prompt::Named;
use crate::failure::Failure;

/// A line, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Nothing was said.
    Nothing,
    /// Something for the model.
    Message(String),
    /// Something for the chat itself.
    Command(Command),
    /// A prepared message of a server.
    Prompt(Named),
}

/// What the chat itself can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Model(Option<String>),
    Mode(Option<Mode>),
    Tools,
    Agents,
    Mcp,
    Usage,
    Compact,
    Clear,
    Resume(Option<String>),
    Fork(Option<u64>),
    Export(Option<String>),
    Quit,
}

/// How a command is written, for help and completion.
#[derive(Debug)]
pub(super) struct Usage {
    /// Its name, without the slash.
    pub(super) name: &'static str,
    /// What may come after it.
    pub(super) argument: &'static str,
    /// What it does.
    pub(super) about: &'static str,
    read: fn(Option<String>) -> Result<Command, Failure>,
}

/// All commands, in the order in which help lists them.
pub(super) const COMMANDS: &[Usage] = &[
    usage("help", "", "Show this", |_| Ok(Command::Help)),
    usage("model", "[NAME]", "Show the model, or ask another one from now on", |name| {
        Ok(Command::Model(name))
    }),
    usage("mode", "[MODE]", "Show or change how freely it may act", mode),
    usage("tools", "", "List the tools it may use", |_| Ok(Command::Tools)),
    usage("agents", "", "List the agents it may call", |_| Ok(Command::Agents)),
    usage("mcp", "", "List the MCP servers, and what they are doing", |_| Ok(Command::Mcp)),
    usage("usage", "", "Show what the conversation used, and how full the window is", |_| {
        Ok(Command::Usage)
    }),
    usage("compact", "", "Sum up the conversation before the next answer", |_| {
        Ok(Command::Compact)
    }),
    usage("clear", "", "Begin a new conversation", |_| Ok(Command::Clear)),
    usage("resume", "[ID]", "Go on with an earlier conversation", |id| Ok(Command::Resume(id))),
    usage("fork", "[SEQ]", "Go on from an earlier point, and keep this one", fork),
    usage("export", "[FILE]", "Write the conversation to a file", |file| Ok(Command::Export(file))),
    usage("quit", "", "Leave; so does Ctrl-D", |_| Ok(Command::Quit)),
];

/// Other names that people try.
const ALIASES: &[(&str, &str)] = &[("exit", "quit"), ("new", "clear"), ("cost", "usage")];

const fn usage(
    name: &'static str,
    argument: &'static str,
    about: &'static str,
    read: fn(Option<String>) -> Result<Command, Failure>,
) -> Usage {
    Usage { name, argument, about, read }
}

impl Line {
    /// Reads a line.
    pub(super) fn read(line: &str) -> Result<Self, Failure> {
        let line = line.trim();
        let Some(rest) = line.strip_prefix('/') else {
            let said = if line.is_empty() { Self::Nothing } else { Self::Message(line.to_owned()) };
            return Ok(said);
        };
        if rest.starts_with('/') {
            return Ok(Self::Message(rest.to_owned()));
        }
        let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if let Some((server, prompt)) = name.split_once(':').filter(|pair| is_prompt(*pair)) {
            let (server, prompt) = (server.to_owned(), prompt.to_owned());
            return Ok(Self::Prompt(Named { server, prompt, written: argument.trim().to_owned() }));
        }
        if !is_name(name) {
            return Ok(Self::Message(line.to_owned()));
        }
        command(name, argument.trim()).map(Self::Command)
    }

    /// Tells whether a line is for the chat, rightly written or not.
    pub(super) fn is_command(line: &str) -> bool {
        !matches!(Self::read(line), Ok(Self::Nothing | Self::Message(_)))
    }
}

/// A typo in a command is no message either: whatever is one word may be one.
fn is_name(name: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.chars().all(is_word)
}

fn is_prompt((server, prompt): (&str, &str)) -> bool {
    is_name(server) && !prompt.is_empty() && !prompt.contains('/')
}

fn command(name: &str, argument: &str) -> Result<Command, Failure> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, name)| name);
    let Some(usage) = COMMANDS.iter().find(|usage| usage.name == name) else {
        let names = COMMANDS.iter().map(|usage| usage.name);
        let near: Vec<String> =
            nearest(name, names).into_iter().map(|near| format!("/{near}")).collect();
        let near: Vec<&str> = near.iter().map(String::as_str).collect();
        return Err(Failure::usage(format!(
            "there is no command `/{name}`{}",
            did_you_mean(&near)
        ))
        .hint(format!("`/help` lists them; `//{name}` says it to the model")));
    };
    let argument = (!argument.is_empty()).then(|| argument.to_owned());
    if usage.argument.is_empty() && argument.is_some() {
        return Err(Failure::usage(format!("`/{name}` takes nothing after it")));
    }
    (usage.read)(argument)
}

fn mode(word: Option<String>) -> Result<Command, Failure> {
    let Some(word) = word else { return Ok(Command::Mode(None)) };
    if let Ok(mode) = word.parse() {
        return Ok(Command::Mode(Some(mode)));
    }
    let words: Vec<&str> = Mode::ALL.iter().map(|mode| mode.as_str()).collect();
    let near = did_you_mean(&nearest(&word, words.iter().copied()));
    Err(Failure::usage(format!("there is no mode `{word}`{near}"))
        .hint(format!("the modes are {}", words.join(", "))))
}

fn fork(seq: Option<String>) -> Result<Command, Failure> {
    let Some(seq) = seq else { return Ok(Command::Fork(None)) };
    let number = seq.parse().map_err(|_| {
        Failure::usage(format!("`{seq}` is not the number of an event"))
            .hint("write it as `/fork 12`")
    })?;
    Ok(Command::Fork(Some(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Line {
        Line::Message(text.to_owned())
    }

    #[test]
    fn a_slash_and_a_word_are_a_command() {
        for (line, command) in [
            ("/help", Command::Help),
            (" /quit ", Command::Quit),
            ("/exit", Command::Quit),
            ("/model", Command::Model(None)),
            ("/model openai/gpt", Command::Model(Some("openai/gpt".into()))),
            ("/mode plan", Command::Mode(Some(Mode::Plan))),
            ("/fork 12", Command::Fork(Some(12))),
            ("/export a b.md", Command::Export(Some("a b.md".into()))),
        ] {
            assert_eq!(Line::read(line).unwrap(), Line::Command(command), "{line}");
        }
    }

    #[test]
    fn everything_else_is_said_to_the_model() {
        assert_eq!(Line::read("  ").unwrap(), Line::Nothing);
        assert_eq!(Line::read("hello\nthere ").unwrap(), message("hello\nthere"));
        assert_eq!(Line::read("//help me").unwrap(), message("/help me"));
        assert_eq!(Line::read("/usr/bin is full").unwrap(), message("/usr/bin is full"));
        assert_eq!(Line::read("/ or not").unwrap(), message("/ or not"));
    }

    #[test]
    fn a_command_that_is_not_there_is_told_the_nearest() {
        let said = Line::read("/hepl").unwrap_err().to_string();
        assert_eq!(said, "there is no command `/hepl`; did you mean `/help`?");
        let said = Line::read("/mode plna").unwrap_err().to_string();
        assert_eq!(said, "there is no mode `plna`; did you mean `plan`?");
        assert!(Line::read("/fork x").is_err() && Line::read("/tools x").is_err());
        assert!(Line::is_command("/hepl") && !Line::is_command("//help"));
    }

    #[test]
    fn a_word_with_a_dash_is_no_message() {
        for line in ["/no-command", "/foo_bar", "/model2 x"] {
            assert!(Line::read(line).is_err(), "{line}");
        }
        assert_eq!(Line::read("/2 of them").unwrap(), message("/2 of them"));
    }

    #[test]
    fn a_server_and_its_prompt_are_named_with_a_colon() {
        let (server, prompt) = ("my-docs".to_owned(), "code.review".to_owned());
        let named = Named { server, prompt, written: "a b=c".to_owned() };
        assert_eq!(Line::read("/my-docs:code.review  a b=c ").unwrap(), Line::Prompt(named));
        assert!(Line::is_command("/a:b"));
        for line in ["/etc: what is it", "/c:/windows", "/:x"] {
            assert_eq!(Line::read(line).unwrap(), message(line), "{line}");
        }
    }

    #[test]
    fn every_command_is_read_by_its_name() {
        for usage in COMMANDS {
            assert!(Line::is_command(&format!("/{}", usage.name)), "{usage:?}");
            assert!(!usage.about.is_empty() && !usage.about.ends_with('.'), "{usage:?}");
        }
        for (alias, name) in ALIASES {
            assert_eq!(command(alias, "").unwrap(), command(name, "").unwrap());
        }
    }
}

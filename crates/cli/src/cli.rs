//! What can be said on the command line.
//!
//! Each command defines its own arguments, in its own file; here is what they have in common.

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, StyledStr, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use convoke_core::ExitCode;
use convoke_core::nearest::nearest;

use crate::commands::{Command, chat};
use crate::failure::Failure;
use crate::output::{Colour, Output, Verbosity};

const AFTER_HELP: &str = "\
Examples:
  convoke                                     talk with an agent
  convoke demo                                see it work, without a key
  convoke run \"Which tests are slow?\"        work on a task
  convoke models check                        find out which model answers
  convoke tools call grep --arg pattern=TODO  call a tool yourself
  convoke config explain model.default        ask why

Exit codes:
  0 done, 1 failed, 2 called wrongly, 3 not allowed, 4 a budget or limit was reached, 5 stuck,
  6 the model did not answer, 7 configuration wrong, 8 parked until somebody answers,
  9 state directory, 130 interrupted, 143 terminated";

const CONFIG_HELP: &str = "Use this file in place of the user's own [env: CONVOKE_CONFIG=]";
const STATE_HELP: &str = "Keep runs in this directory [env: CONVOKE_STATE=]";
const TRUST_HELP: &str = "Trust the project's files, in CI [env: CONVOKE_TRUST_PROJECT=1]";

/// Convoke, an agent runtime: models and tools work on a task, and the end is told honestly.
#[derive(Debug, Parser)]
#[command(
    name = "convoke",
    version,
    after_help = AFTER_HELP,
    max_term_width = 100,
    propagate_version = false
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The configuration file to use in place of the user's own.
    #[arg(long, global = true, value_name = "FILE", help = CONFIG_HELP)]
    pub(crate) config: Option<PathBuf>,
    /// Set one setting, as tools.timeout=5000; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) set: Vec<(String, String)>,
    /// Work in this directory
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// The directory in which runs are kept.
    #[arg(long, global = true, value_name = "DIR", help = STATE_HELP)]
    pub(crate) state: Option<PathBuf>,
    /// Whether the project's file is trusted without being on the list.
    #[arg(long, global = true, help = TRUST_HELP)]
    pub(crate) trust_project: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto",
          value_parser = colour_parser())]
    pub(crate) color: Colour,
    /// Print only the answer, errors, and what puts the answer in doubt
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

impl Global {
    /// Returns how much is said beside the answer.
    pub(crate) const fn verbosity(&self) -> Verbosity {
        if self.quiet { Verbosity::Quiet } else { Verbosity::Usual }
    }
}

/// What was said, understood.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// What every command takes.
    pub(crate) global: Global,
    /// The command.
    pub(crate) command: Command,
}

/// Something to print instead of running a command: help, the version, or what was said wrongly.
#[derive(Debug)]
pub(crate) struct Said {
    words: Words,
    code: ExitCode,
    /// When to use colour.
    pub(crate) colour: Colour,
}

/// Who found the words for it.
#[derive(Debug)]
enum Words {
    Parser(StyledStr),
    Own(Failure),
}

/// Reads the command line. Without a command, a person at a terminal is talked with; anybody else gets
/// help.
pub(crate) fn parse() -> Result<Parsed, Said> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let colour = wanted_colour(&arguments);
    let said = |error: clap::Error, arguments: &[OsString]| match no_command(&error, arguments) {
        Some(failure) => Said { words: Words::Own(failure), code: ExitCode::Usage, colour },
        None => Said { code: code_of(&error), words: Words::Parser(error.render()), colour },
    };
    let read = |arguments: &[OsString]| {
        let matches = Cli::command().try_get_matches_from(arguments);
        let read = matches.and_then(|matches| Cli::from_arg_matches(&matches));
        read.map_err(|error| said(error, arguments))
    };
    let mut cli = read(&arguments)?;
    if cli.command.is_none() && chat::has_company() {
        arguments.push("chat".into());
        cli = read(&arguments)?;
    }
    let Cli { global, command } = cli;
    command.map(|command| Parsed { global, command }).ok_or_else(|| {
        let words = Words::Parser(Cli::command().render_help());
        Said { words, code: ExitCode::Done, colour }
    })
}

/// Explains a word that is no command: a slip of the fingers, or a task without `run` before it.
fn no_command(error: &clap::Error, arguments: &[OsString]) -> Option<Failure> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let definition = Cli::command();
    let words = || arguments.iter().skip(1).map(|word| word.to_string_lossy());
    let mut before = words().take_while(|before| before != word);
    if before.any(|before| definition.find_subcommand(before.as_ref()).is_some()) {
        // The groups have few commands, and the parser knows what to say about those.
        return None;
    }
    let names = definition.get_subcommands().map(clap::Command::get_name);
    let is_sentence = word.contains(char::is_whitespace);
    let close = if is_sentence { Vec::new() } else { nearest(word, names) };
    let failure = Failure::usage(format!("`{word}` is not a command"));
    if let Some(group) = group_of(word, &definition) {
        let failure = failure.hint(format!("did you mean `convoke {group} {word}`?"));
        return Some(failure.hint("`convoke --help` lists the commands"));
    }
    // `rnu` is as close to `runs` as to `run`: who slips rarely leaves letters out.
    let close = close.into_iter().min_by_key(|name| name.len().abs_diff(word.len()));
    let hint = if let Some(name) = close {
        format!("did you mean `convoke {name}`?")
    } else {
        let task = words().skip_while(|before| before != word);
        let task: Vec<_> = task.take_while(|word| !word.starts_with('-')).collect();
        let task = task.join(" ").replace('"', "\\\"");
        format!("to work on a task: convoke run \"{task}\"")
    };
    Some(failure.hint(hint).hint("`convoke --help` lists the commands"))
}

/// Returns the group in which a word is a command, if it is one in only one of them.
fn group_of<'d>(word: &str, definition: &'d clap::Command) -> Option<&'d str> {
    let mut groups = definition.get_subcommands().filter(|group| {
        group.get_subcommands().any(|command| command.get_name() == word && word != "help")
    });
    let group = groups.next()?;
    groups.next().is_none().then(|| group.get_name())
}

/// Returns the whole definition, for completions.
pub(crate) fn definition() -> clap::Command {
    Cli::command()
}

impl Said {
    /// Prints it: help and version on standard output, mistakes on standard error.
    pub(crate) fn print(&self, output: &mut Output) {
        let text = match &self.words {
            Words::Parser(text) => text,
            Words::Own(failure) => return failure.print(output),
        };
        let stream = if self.code == ExitCode::Done { &output.out } else { &output.err };
        if stream.is_coloured() {
            stream.text(text.ansi());
        } else {
            stream.text(text);
        }
    }

    /// Returns the exit code.
    pub(crate) const fn code(&self) -> ExitCode {
        self.code
    }
}

/// A group of commands without a command is a question for help.
fn code_of(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => ExitCode::Done,
        _ => ExitCode::Usage,
    }
}

/// Finds out about colour also where the rest cannot be understood.
fn wanted_colour(arguments: &[OsString]) -> Colour {
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('='),
            None if word == "--" => return Colour::Auto,
            None => None,
        };
        match value {
            Some("always") => return Colour::Always,
            Some("never") => return Colour::Never,
            _ => {}
        }
    }
    Colour::Auto
}

/// Reads when to use colour.
fn colour_parser() -> impl TypedValueParser<Value = Colour> {
    PossibleValuesParser::new(["auto", "always", "never"]).map(|word| match word.as_str() {
        "always" => Colour::Always,
        "never" => Colour::Never,
        _ => Colour::Auto,
    })
}

/// Reads one of several words.
pub(crate) fn one_of<T>(
    words: impl IntoIterator<Item = &'static str>,
) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Error + Send + Sync> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| word.parse::<T>())
}

/// Splits `key=value`.
pub(crate) fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("the key before `=` is missing".to_owned()),
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err("write it as KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn colour_is_found_in_any_command_line() {
        for (words, colour) in [
            (&["convoke", "--color=never", "nonsense"][..], Colour::Never),
            (&["convoke", "nonsense", "--color", "always"], Colour::Always),
            (&["convoke", "--", "--color=never"], Colour::Auto),
            (&["convoke", "--color", "pink"], Colour::Auto),
            (&["convoke", "--colors=never"], Colour::Auto),
        ] {
            let words: Vec<OsString> = words.iter().map(Into::into).collect();
            assert_eq!(wanted_colour(&words), colour, "{words:?}");
        }
    }

    #[test]
    fn settings_need_a_key() {
        assert_eq!(key_and_value("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(key_and_value("a="), Ok(("a".into(), String::new())));
        assert!(key_and_value("=b").is_err());
        assert!(key_and_value("a").is_err());
    }
}

//! What can be said on the command line.
//!
//! Each command defines its own arguments, in its own file; here is what they have in common.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, StyledStr, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use convoke_core::ExitCode;

use crate::commands::{Command, chat};
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
  6 the model did not answer, 7 configuration wrong, 9 state directory, 130 interrupted,
  143 terminated";

const CONFIG_HELP: &str = "Use this file in place of the user's own [env: CONVOKE_CONFIG=]";
const TRUST_HELP: &str = "Trust the project's convoke.yml, in CI [env: CONVOKE_TRUST_PROJECT=1]";

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
    /// Whether the project's file is trusted without being on the list.
    #[arg(long, global = true, help = TRUST_HELP)]
    pub(crate) trust_project: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto",
          value_parser = colour_parser())]
    pub(crate) color: Colour,
    /// Print no warnings and no summaries
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
    text: StyledStr,
    code: ExitCode,
    /// When to use colour.
    pub(crate) colour: Colour,
}

/// Reads the command line. Without a command, a person at a terminal is talked with; anybody else gets
/// help.
pub(crate) fn parse() -> Result<Parsed, Said> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let colour = wanted_colour(&arguments);
    let said = |error: clap::Error| Said { text: error.render(), code: code_of(&error), colour };
    let read = |arguments: &[OsString]| {
        let matches = Cli::command().try_get_matches_from(arguments)?;
        Cli::from_arg_matches(&matches)
    };
    let mut cli = read(&arguments).map_err(said)?;
    if cli.command.is_none() && chat::has_company() {
        arguments.push("chat".into());
        cli = read(&arguments).map_err(said)?;
    }
    let Cli { global, command } = cli;
    command.map(|command| Parsed { global, command }).ok_or_else(|| {
        let text = Cli::command().render_help();
        Said { text, code: ExitCode::Done, colour }
    })
}

/// Returns the whole definition, for completions.
pub(crate) fn definition() -> clap::Command {
    Cli::command()
}

impl Said {
    /// Prints it: help and version on standard output, mistakes on standard error.
    pub(crate) fn print(&self, output: &mut Output) {
        let stream = if self.code == ExitCode::Done { &output.out } else { &output.err };
        if stream.is_coloured() {
            stream.text(self.text.ansi());
        } else {
            stream.text(&self.text);
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

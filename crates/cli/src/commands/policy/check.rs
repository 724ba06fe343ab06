//! `convoke policy check`: what would be decided about a call.

use clap::Args;
use convoke_core::policy::{Decision, Source};
use convoke_core::{AgentPath, ExitCode, Mode, Permission};
use serde_json::{Value, json};

use super::{mode_parser, style_of};
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

const AFTER_HELP: &str = "\
After `--` comes a command for run_command: one word is read as a shell would, several are a program \
and its arguments. Otherwise name a tool and its arguments as JSON. Nothing is run.

Examples:
  convoke policy check -- git push origin main
  convoke policy check -- 'git status && rm -rf build'
  convoke policy check read_file '{\"path\": \"README.md\"}'
  convoke policy check --mode full --json -- make

Exit codes:
  0 it is allowed, 3 it is asked about or denied";

/// Say what would be decided about a command or a call
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Check {
    /// The tool
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    tool: Option<String>,
    /// Its arguments, as a JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// The command
    #[arg(last = true)]
    command: Vec<String>,
    /// How freely the run may act
    #[arg(long, value_parser = mode_parser(), default_value = "default")]
    mode: Mode,
    /// The agent that would make the call, as main/reviewer
    #[arg(long, value_name = "NAME", default_value = "main")]
    agent: String,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let config = session.load(output)?.config;
        let runtime = session.runtime_in(self.mode, config, None, None)?;
        let (name, arguments) = self.call()?;
        let tool = runtime.callable().get(name).ok_or_else(|| {
            Failure::usage(format!("there is no tool `{name}`"))
                .hint("`convoke tools list` shows them all")
        })?;
        let agent = AgentPath::new(&*self.agent);
        let decision = runtime.judge(tool.as_ref(), &arguments, &agent).map_err(|error| {
            Failure::usage(format!("these are no arguments of `{name}`: {}", error.message))
                .hint(format!("`convoke tools show {name}` describes them"))
        })?;
        self.print(&decision, output);
        Ok(match decision.permission {
            Permission::Allow => ExitCode::Done,
            Permission::Ask | Permission::Deny => ExitCode::Denied,
        })
    }

    fn call(&self) -> Result<(&str, Value), Failure> {
        let Some(tool) = &self.tool else {
            return Ok(("run_command", json!({ "command": line(&self.command) })));
        };
        let arguments: Value = serde_json::from_str(&self.arguments)
            .map_err(|error| Failure::usage("the arguments are not JSON").because(&error))?;
        if !arguments.is_object() {
            return Err(Failure::usage("the arguments are not a JSON object"));
        }
        Ok((tool, arguments))
    }

    fn print(&self, decision: &Decision, output: &mut Output) {
        if self.json {
            let place = match &decision.source {
                Source::Rule { place, .. } => place.as_deref(),
                Source::Kind(_) | Source::Unread => None,
            };
            return output.json(&json!({
                "decision": decision.permission,
                "rule": decision.source.to_string(),
                "place": place,
                "reason": decision.reason,
            }));
        }
        let word = output.out.paint(style_of(decision.permission), decision.permission);
        output.out.line(format_args!("{word}: {}", decision.reason));
        output.out.line(format_args!("  by {}", decision.source));
    }
}

/// Puts words together so that a shell takes them apart again; one word is a line already.
fn line(words: &[String]) -> String {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '_' | '.' | '/' | ':' | '@' | '%' | '+' | ',' | '-')
    };
    match words {
        [line] => line.clone(),
        words => words
            .iter()
            .map(|word| {
                if !word.is_empty() && word.chars().all(is_plain) {
                    word.clone()
                } else {
                    format!("'{}'", word.replace('\'', r"'\''"))
                }
            })
            .collect::<Vec<_>>()
            .join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        let line =
            |words: &[&str]| line(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(line(&["git status && ls"]), "git status && ls");
        assert_eq!(line(&["git", "commit", "-m", "it's; done"]), r"git commit -m 'it'\''s; done'");
        assert_eq!(line(&["ls", ""]), "ls ''");
    }
}

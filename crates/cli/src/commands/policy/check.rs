//! `convoke policy check`: what would be decided about a call.

use clap::Args;
use convoke::Refusal;
use convoke_core::hook::Moment;
use convoke_core::policy::{Decision, Source};
use convoke_core::{AgentPath, ExitCode, Mode, Permission, ToolError};
use serde_json::{Value, json};

use super::super::{agents, tools};
use super::mode_parser;
use crate::failure::Failure;
use crate::hooks::{self, Called};
use crate::output::{Output, Style};
use crate::session::Session;

const AFTER_HELP: &str = "\
After `--` comes a command for run_command: one word is read as a shell would, several are a program \
and its arguments. Otherwise name a tool and its arguments as JSON. Nothing is run, no hook either; \
those of the configuration that would have a say are named.

An agent may do what everybody on the way down to it may, with the tools that are left: on a path such as \
main/worker/reviewer each has to be one that the one before it may call. Agents are tools as well, by their own \
names or by delegate_to_agent.

Examples:
  convoke policy check -- git push origin main
  convoke policy check -- 'git status && rm -rf build'
  convoke policy check read_file '{\"path\": \"README.md\"}'
  convoke policy check --mode full --json -- make
  convoke policy check --agent generalist -- git push
  convoke policy check --agent main/worker/reviewer write_file '{\"path\": \"a\", \"content\": \"\"}'

Exit codes:
  0 it is allowed, 2 there is no such tool or agent, 3 it is asked about or denied";

/// Say what would be decided about a command or a call
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Check {
    /// The tool
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    tool: Option<String>,
    /// Its arguments, as a JSON object
    #[arg(value_name = "JSON")]
    arguments: Vec<String>,
    /// The command
    #[arg(last = true)]
    command: Vec<String>,
    /// How freely the run may act
    #[arg(long, value_parser = mode_parser(), default_value = "default")]
    mode: Mode,
    /// The agent that would make the call, as reviewer or main/reviewer
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
        let (name, arguments) = self.call()?;
        let runtime = session.runtime_in(self.mode, config.clone(), None, None)?;
        Session::warn_of_entries(&runtime, output);
        let known = tools::known_name(name, &runtime)?;
        let name = known.as_str();
        let hooks = hooks::called_for(&config, name);
        let standing = runtime.standing(&self.agent);
        let standing = standing.map_err(|error| agents::explained(&error, &runtime, session))?;
        let tool = runtime.tool_at(name, &standing).ok_or_else(|| {
            let unknown = Failure::usage(runtime.callable().unknown(name).message);
            unknown.hint("`convoke tools list` shows them all").hint(self.with_dashes())
        })?;
        let wrong = |error: ToolError| {
            Failure::usage(format!("these are no arguments of `{name}`: {}", error.message))
                .hint(format!("`convoke tools show {name}` describes them"))
        };
        let decision = runtime.judge(tool.as_ref(), &arguments, &standing).map_err(wrong)?;
        let refusal = runtime.refusal(tool.as_ref(), &arguments, &standing).map_err(wrong)?;
        let is_main = standing.path() == &AgentPath::default();
        let not_offered = is_main.then(|| runtime.not_offered_tool(name)).flatten();
        let notes: Vec<String> = standing.notes().iter().cloned().chain(not_offered).collect();
        self.print(&decision, refusal.as_ref(), &hooks, &notes, output);
        Ok(match decision.permission {
            Permission::Allow if refusal.is_none() => ExitCode::Done,
            _ => ExitCode::Denied,
        })
    }

    fn call(&self) -> Result<(&str, Value), Failure> {
        let Some(tool) = &self.tool else {
            return Ok(("run_command", json!({ "command": line(&self.command) })));
        };
        let text = match self.arguments.as_slice() {
            [] => "{}",
            [text] => text,
            _ => {
                return Err(Failure::usage("the arguments of a tool are one JSON object")
                    .hint(self.with_dashes()));
            }
        };
        let arguments: Value = serde_json::from_str(text).map_err(|error| {
            Failure::usage("the arguments are not JSON").because(&error).hint(self.with_dashes())
        })?;
        if !arguments.is_object() {
            return Err(Failure::usage("the arguments are not a JSON object"));
        }
        Ok((tool, arguments))
    }

    /// Says how to ask about a command.
    fn with_dashes(&self) -> String {
        let words: Vec<String> = self.tool.iter().chain(&self.arguments).cloned().collect();
        format!("a command comes after `--`: convoke policy check -- {}", line(&words))
    }

    fn print(
        &self,
        decision: &Decision,
        refusal: Option<&Refusal>,
        hooks: &[Called],
        notes: &[String],
        output: &mut Output,
    ) {
        // Some is refused before the policy is asked.
        let permission = refusal.map_or(decision.permission, |_| Permission::Deny);
        let reason = refusal.map_or(&decision.reason, |refusal| &refusal.reason);
        let source =
            refusal.map_or_else(|| decision.source.to_string(), |refusal| refusal.by.clone());
        let subject = decision.subject.as_ref().filter(|_| refusal.is_none());
        // Nobody is called about what is denied.
        let is_called = |hook: &&Called| match permission {
            Permission::Deny => false,
            Permission::Ask => true,
            Permission::Allow => hook.on == Moment::BeforeTool,
        };
        let hooks: Vec<&Called> = hooks.iter().filter(is_called).collect();
        if self.json {
            let place = match &decision.source {
                Source::Rule { place, .. } if refusal.is_none() => place.as_deref(),
                _ => None,
            };
            return output.json(&json!({
                "decision": permission,
                "rule": source,
                "place": place,
                "reason": reason,
                "subject": subject,
                "hooks": hooks,
                "notes": notes,
            }));
        }
        let word = output.out.paint(Style::of(permission), permission);
        let tell = |text: &str| output.out.line(output.out.printable(text));
        // What rules are and why may be written in a file of a folder that nobody trusts.
        output.out.line(format_args!("{word}: {}", output.out.printable(reason)));
        if let Some(subject) = subject {
            tell(&format!("  for {subject}"));
        }
        tell(&format!("  by {source}"));
        for hook in hooks {
            tell(&format!("  then {hook}"));
        }
        for note in notes {
            tell(&format!("  but {note}"));
        }
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

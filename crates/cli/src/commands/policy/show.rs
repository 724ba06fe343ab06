//! `convoke policy show`: the rules that hold, and the table for everything else.

use clap::Args;
use convoke::Standing;
use convoke_core::policy::{Layer, Rule, Scope};
use convoke_core::{ExitCode, Kind, Mode, Permission};
use serde_json::{Map, Value, json};

use super::super::agents;
use super::mode_parser;
use crate::failure::{self, Failure};
use crate::output::{Output, Style, Table};
use crate::session::Session;

const AFTER_HELP: &str = "\
What a rule denies stays denied. Where no rule says anything, the kind of call decides.

Examples:
  convoke policy show
  convoke policy show --agent reviewer
  convoke policy show --mode full --json";

/// Show what is allowed, asked about and denied
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Show {
    /// What this agent may do, as reviewer or main/reviewer: no more than the main agent, and its own policy
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// How freely the run may act
    #[arg(long, value_parser = mode_parser(), default_value = "default")]
    mode: Mode,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Show {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let config = session.load(output)?.config;
        let runtime = session.runtime_in(self.mode, config, None, None)?;
        Session::warn_of_entries(&runtime, output);
        let standing = runtime.standing(self.agent.as_deref().unwrap_or("main"));
        let standing = standing.map_err(|error| agents::explained(&error, &runtime, session))?;
        for note in standing.notes() {
            failure::warning(output, note);
        }
        let path = self.agent.as_ref().map(|_| standing.path().as_str());
        let concerns = |rule: &Rule| path.is_none_or(|path| rule.concerns(path));
        let shown = Shown::of(&standing, concerns);
        if self.json {
            output.json(&shown.json());
        } else {
            shown.print(output);
        }
        Ok(ExitCode::Done)
    }
}

/// A rule, with who wrote it and which of theirs it is.
type Written<'a> = (String, usize, &'a Rule);

/// What holds.
struct Shown<'a> {
    rules: Vec<Written<'a>>,
    kinds: Vec<(Kind, Permission)>,
    /// The only commands, where there are only some: each list narrows those before it.
    commands: Vec<&'a [String]>,
}

impl<'a> Shown<'a> {
    fn of(standing: &'a Standing, concerns: impl Fn(&Rule) -> bool) -> Self {
        let authority = standing.authority();
        let mut rules = Vec::new();
        for (index, policy) in authority.policies().enumerate() {
            // An agent's own policy is the user's again, and then what is its own.
            let is_new = |layer: &&Layer| index == 0 || layer.scope() == Scope::Agent;
            for layer in policy.layers().iter().filter(is_new) {
                let whose = layer.scope().to_string();
                let numbered = layer.rules().iter().enumerate();
                let held = numbered.filter(|(_, rule)| concerns(rule));
                rules.extend(held.map(|(number, rule)| (whose.clone(), number + 1, rule)));
            }
        }
        let strictest = |kind: &Kind| authority.policies().map(|policy| policy.kind(*kind)).max();
        let kinds = Kind::ALL.iter().filter_map(|kind| Some((*kind, strictest(kind)?)));
        Self { rules, kinds: kinds.collect(), commands: standing.commands().collect() }
    }

    fn json(&self) -> Value {
        let kinds: Map<String, Value> =
            self.kinds.iter().map(|(kind, what)| (kind.to_string(), json!(what))).collect();
        let rule = |(layer, number, rule): &Written<'_>| json!({ "layer": layer, "number": number, "place": rule.place(), "rule": rule.spec() });
        let rules: Vec<Value> = self.rules.iter().map(rule).collect();
        let mut shown = json!({ "rules": rules, "kinds": kinds });
        // The last list is the agent's own.
        if let (Some(commands), Value::Object(fields)) = (self.commands.last(), &mut shown) {
            fields.insert("commands".to_owned(), json!(commands));
        }
        shown
    }

    fn print(&self, output: &Output) {
        if !self.rules.is_empty() {
            let mut table = Table::indented(2);
            for (layer, number, rule) in &self.rules {
                table.row([
                    (format!("{layer} {number}"), Some(Style::Name)),
                    (rule.effect().to_string(), Some(Style::of(rule.effect()))),
                    (rule.shown(), None),
                    (rule.place().unwrap_or_default().to_owned(), None),
                ]);
            }
            output.out.line(output.out.paint(Style::Heading, "rules"));
            table.print(&output.out);
            output.out.gap();
        }
        for commands in &self.commands {
            output.out.line(output.out.paint(Style::Heading, "only these commands"));
            for command in *commands {
                output.out.line(format_args!("  {}", output.out.printable(command)));
            }
            if commands.is_empty() {
                output.out.line("  none");
            }
            output.out.gap();
        }
        let mut table = Table::indented(2);
        for (kind, permission) in &self.kinds {
            table.row([
                (kind.to_string(), Some(Style::Name)),
                (permission.to_string(), Some(Style::of(*permission))),
            ]);
        }
        output.out.line(output.out.paint(Style::Heading, "kinds"));
        table.print(&output.out);
    }
}

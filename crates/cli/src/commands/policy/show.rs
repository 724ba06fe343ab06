//! `convoke policy show`: the rules that hold, and the table for everything else.

use clap::Args;
use convoke_core::policy::{Policy, Rule, Scope};
use convoke_core::{ExitCode, Kind, Mode};
use serde_json::json;

use super::{mode_parser, style_of};
use crate::failure::Failure;
use crate::output::{Output, Style, Table};
use crate::session::Session;

const AFTER_HELP: &str = "\
What a rule denies stays denied. Where no rule says anything, the kind of call decides.

Examples:
  convoke policy show
  convoke policy show --agent main/reviewer
  convoke policy show --mode full --json";

/// Show what is allowed, asked about and denied
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Show {
    /// Only rules that can hold for this agent, as main/reviewer
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
        for policy in runtime.authority().policies() {
            let rules = self.rules(policy);
            if self.json {
                print_json(policy, &rules, output);
            } else {
                print(policy, &rules, output);
            }
        }
        Ok(ExitCode::Done)
    }

    fn rules<'p>(&self, policy: &'p Policy) -> Vec<(Scope, usize, &'p Rule)> {
        let concerns = |rule: &Rule| self.agent.as_deref().is_none_or(|agent| rule.concerns(agent));
        let layers = policy.layers().iter();
        let rules = layers.flat_map(|layer| {
            let numbered = layer.rules().iter().enumerate();
            numbered.map(|(index, rule)| (layer.scope(), index + 1, rule))
        });
        rules.filter(|(_, _, rule)| concerns(rule)).collect()
    }
}

fn print_json(policy: &Policy, rules: &[(Scope, usize, &Rule)], output: &mut Output) {
    let kinds: serde_json::Map<_, _> =
        Kind::ALL.iter().map(|kind| (kind.to_string(), json!(policy.kind(*kind)))).collect();
    let rules: Vec<_> = rules
        .iter()
        .map(|(layer, number, rule)| {
            json!({ "layer": layer, "number": number, "place": rule.place(), "rule": rule.spec() })
        })
        .collect();
    output.json(&json!({ "rules": rules, "kinds": kinds }));
}

fn print(policy: &Policy, rules: &[(Scope, usize, &Rule)], output: &Output) {
    if !rules.is_empty() {
        let mut table = Table::indented(2);
        for (layer, number, rule) in rules {
            table.row([
                (format!("{layer} {number}"), Some(Style::Name)),
                (rule.effect().to_string(), Some(style_of(rule.effect()))),
                (rule.shown(), None),
                (rule.place().unwrap_or_default().to_owned(), None),
            ]);
        }
        output.out.line(output.out.paint(Style::Heading, "rules"));
        table.print(&output.out);
        output.out.gap();
    }
    let mut table = Table::indented(2);
    for kind in Kind::ALL {
        let permission = policy.kind(*kind);
        table.row([
            (kind.to_string(), Some(Style::Name)),
            (permission.to_string(), Some(style_of(permission))),
        ]);
    }
    output.out.line(output.out.paint(Style::Heading, "kinds"));
    table.print(&output.out);
}

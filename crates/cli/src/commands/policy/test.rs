//! `convoke policy test`: whether rules hold for the examples they carry.
//!
//! Loading checks them already, and a mistake is reported with its line; this says how many there are.

use clap::Args;
use convoke_core::ExitCode;
use serde_json::json;

use crate::failure::Failure;
use crate::output::{Output, Style};
use crate::session::Session;

const AFTER_HELP: &str = "\
A rule's `match` names what it has to hold for, and `not_match` what it must not hold for.

Examples:
  convoke policy test
  convoke policy test --json

Exit codes:
  0 all examples hold, 7 one does not";

/// Check the examples that rules carry
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Test {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Test {
    /// Runs the command.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let rules = session.load(output)?.config.policy.rules;
        let examples: usize =
            rules.iter().map(|rule| rule.matches.len() + rule.not_match.len()).sum();
        let rules = rules.len();
        if self.json {
            output.json(&json!({ "ok": true, "rules": rules, "examples": examples }));
        } else {
            let ok = output.out.paint(Style::Good, "ok");
            output.out.line(format_args!("{ok}: rules {rules}, examples {examples}"));
        }
        Ok(ExitCode::Done)
    }
}

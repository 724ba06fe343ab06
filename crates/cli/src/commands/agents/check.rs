//! `convoke agents check`: whether files of agents are right, and what comes of them.

mod checked;
pub(super) mod directory;
mod files;

use clap::Args;
use convoke_core::ExitCode;

use self::checked::{Checked, State};
use self::files::{Files, Group};
use crate::failure::Failure;
use crate::output::{Output, Style, spelled};
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
Without a name, all files of agents are checked that there are here, those of a project that is not trusted \
included: checking uses none of them. A file, and every file of a directory, is checked as the tool writes it \
that its directory is named after: .claude/agents, .gemini/agents, .opencode/agent. A name is that of an \
agent, or of a file without its ending; a file that is wrong is found by both.

Of a directory, the folders below it are looked at in which agents usually are: `.` stands for .convoke/agents, \
.claude/agents and the like. Files there that are no agents are passed over.

A warning says what is not as the file has it: limits that the configuration cuts, tools of servers that are \
not configured, agents that are switched off or not offered. A file that is right and not used, because another \
agent has its name, is called unused; one that says itself that it is not for here is left out.

Examples:
  convoke agents check
  convoke agents check .convoke/agents/reviewer.md
  convoke agents check .claude/agents
  convoke agents check reviewer --json

Exit codes:
  0 all are right, 2 there is no such agent, file or directory, 7 one is not right";

/// Check files of agents
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Check {
    /// Files, directories, or names of agents
    #[arg(value_name = "PATH | NAME")]
    what: Vec<String>,
    /// Print JSON
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
        let runtime = session.runtime_looking(config)?;
        let files = Files::new(&runtime, session);
        let (mut groups, mut not_found) = (Vec::new(), None);
        if self.what.is_empty() {
            groups.push(files.all());
        }
        for what in &self.what {
            match files.named(what) {
                Ok(found) => groups.extend(found),
                Err(failure) => not_found = not_found.or(Some(failure)),
            }
        }
        let not_found = match not_found {
            Some(failure) if groups.is_empty() => return Err(failure),
            others => others,
        };
        if self.json {
            let all: Vec<&Checked> = groups.iter().flat_map(|group| &group.checked).collect();
            output.json(&all);
        } else {
            print(&groups, output);
        }
        // What is there is checked all the same.
        if let Some(failure) = not_found {
            return Err(failure);
        }
        let is_right = groups.iter().all(|group| group.checked.iter().all(|one| one.ok));
        Ok(if is_right { ExitCode::Done } else { ExitCode::Configuration })
    }
}

fn print(groups: &[Group], output: &Output) {
    for group in groups {
        if let Some(heading) = &group.heading {
            let heading = spelled(heading);
            output.out.line(output.out.paint(Style::Heading, heading));
            output.out.gap();
        }
        for one in &group.checked {
            one.print(&output.out);
            output.out.gap();
        }
    }
    if !output.is_quiet() {
        let all = || groups.iter().flat_map(|group| &group.checked);
        let of = |state: State| all().filter(|one| one.state() == state).count();
        let some = |state: State, word: &str| match of(state) {
            0 => String::new(),
            number => format!(", {number} {word}"),
        };
        let (unused, left_out) = (some(State::Unused, "unused"), some(State::LeftOut, "left out"));
        let agents = amounts::count(all().count() as u64, "agent");
        output.out.line(format_args!("{agents}, {} wrong{unused}{left_out}", of(State::Wrong)));
    }
}

//! `convoke runs audit`: who did what, and what allowed it.
//!
//! Everything comes from the journals, which are verified on the way. A journal that fails is told and
//! does not keep the others from being listed.

mod row;
mod verified;

use std::collections::BTreeSet;

use clap::Args;
use convoke::Origin;
use convoke::journal::audit::{Act, Entry, Outcome, entries};
use convoke::journal::{JournalError, Store};
use convoke::tools::{Clock, SystemClock};
use convoke_core::policy::wildcard;
use convoke_core::{ExitCode, RunId, Timestamp};

use self::verified::{Verification, Verified};
use super::named::{self, LastFlag};
use crate::failure::{self, Failure};
use crate::moment::{self, Moment};
use crate::output::Output;
use crate::session::Session;
use crate::view::amounts;

const AFTER_HELP: &str = "\
Without an ID all runs are looked at. Filters combine. Each line is a tool call: when it was asked for (UTC), in \
which run, by which agent, how it ended, the tool, what was decided (and answered, where somebody was asked; or the \
hook that refused it), the rule that decided, and what the call did. Where a hook or a person changed the \
arguments, those that were asked for stand behind those that ran. Lines without a tool say with which rights a run \
was started or resumed. On a narrow terminal the rule and the decision are left out, and runs are named by the \
end of their ids; when, in which run, who and what always stay. Nothing is left out where the output is no terminal.

Every journal is verified: each line vouches for the one before it, and a head that is kept apart vouches for a \
late line. Where a journal fails, or is gone while its head is left, the exit code is 9. One without a head cannot \
be verified; that is told and is no failure.

With --json each line is an object with a `type`:
  call          ts, run, seq, agent, agentLabel (numbered where several have one name), call, tool,
                what, arguments (what ran), asked (what was asked for, where that was changed), decision, rule,
                approval {asked, reason, answer {at, approved, message}},
                hooks [{hook, action (denied, changed, failed), message, arguments}],
                outcome (completed, failed, denied, unfinished), error, durationMs
  rights        ts, run, seq, agent, agentLabel, event (started, resumed), origin
  verification  run, status (intact, unverified, damaged, gone), events, vouchedUpTo, problem

Examples:
  convoke runs audit --last
  convoke runs audit --since 2d --tool run_command
  convoke runs audit --since 2026-03-01 --until 2026-03-07 --denied
  convoke runs audit --agent 'main/*' --json";

/// How many agents are named where none is the one that is meant.
const MOST_NAMES: usize = 20;

/// List who did what in runs, and what allowed it
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Audit {
    /// The runs, or any parts of their ids that no other run has
    #[arg(value_name = "ID", conflicts_with = "last")]
    words: Vec<String>,
    #[command(flatten)]
    last: LastFlag,
    /// Only what was done since then: 90s, 2h or 3d ago, or 2026-03-01 or 2026-03-01T09:30 (UTC)
    #[arg(long, value_name = "MOMENT", value_parser = moment::parse)]
    since: Option<Moment>,
    /// Only what was done until then
    #[arg(long, value_name = "MOMENT", value_parser = moment::parse)]
    until: Option<Moment>,
    /// Only calls of these tools, with `*` for any text
    #[arg(long, value_name = "PATTERN")]
    tool: Option<String>,
    /// Only what these agents did, by path or name, with `*` for any text
    #[arg(long, value_name = "PATTERN")]
    agent: Option<String>,
    /// Only calls that were not allowed
    #[arg(long)]
    denied: bool,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

impl Audit {
    /// Runs the command.
    pub(crate) fn run(
        self,
        session: &Session<'_>,
        output: &mut Output,
    ) -> Result<ExitCode, Failure> {
        let store = session.existing_store()?;
        let now = SystemClock.now();
        let (mut wanted, mut verifications) = (Vec::new(), Vec::new());
        let mut agents = Agents::default();
        let gone = store.gone().map_err(|error| named::failure(&error))?;
        for run in self.meant(&store, &gone, now, session)? {
            if gone.contains(&run) {
                verifications.push(Verification::gone(run));
                continue;
            }
            let mut started_as = None;
            let (all, verified) = match store.read(&run) {
                Ok(recorded) => {
                    let agent = Origin::of(&recorded.events).and_then(|origin| origin.agent);
                    started_as = agent.map(|agent| agent.name);
                    (entries(&run, &recorded.events), Verified::of(&run, &recorded))
                }
                // It was removed since its name was read.
                Err(JournalError::NotFound { .. }) if self.words.is_empty() => continue,
                Err(error) => (Vec::new(), Verified::unreadable(&error)),
            };
            for entry in all {
                let is_meant = self.means_agent_of(&entry, started_as.as_deref());
                agents.note(&entry, started_as.as_deref(), is_meant);
                if is_meant && self.is_wanted(&entry, now) {
                    wanted.push(entry);
                }
            }
            verifications.push(Verification { run, verified });
        }
        wanted.sort_by_key(|entry| entry.ts);
        if let (Some(pattern), false) = (&self.agent, agents.one_was_meant) {
            failure::doubt(output, &agents.unknown(pattern));
        }
        if self.json {
            for entry in &wanted {
                output.json_line(entry);
            }
            for found in &verifications {
                output.json_line(&found.told());
            }
        } else {
            let all = store.list().map_err(|error| named::failure(&error))?;
            let ids: Vec<&str> = all.iter().map(|run| run.run.as_str()).collect();
            row::print(&wanted, &ids, &output.out);
            if wanted.is_empty() && !output.is_quiet() {
                let runs = amounts::count(verifications.len() as u64, "run");
                output.err.line(format_args!("nothing of the kind was done in {runs}"));
            }
            verified::say_unverified(&verifications, output);
        }
        verified::end(&verifications)
    }

    /// Finds the runs. One in which nothing happened since then is left out without being read; one that is
    /// gone may have been about anything.
    fn meant(
        &self,
        store: &Store,
        gone: &[RunId],
        now: Timestamp,
        session: &Session<'_>,
    ) -> Result<Vec<RunId>, Failure> {
        if self.last.last {
            return Ok(vec![named::only(store, &[], self.last, session)?]);
        }
        if self.words.is_empty() {
            let all = store.list().map_err(|error| named::failure(&error))?;
            let since = self.since.map(|since| since.begin(now));
            // One that cannot be read may hold anything.
            let is_late = |last| since.is_none_or(|since| last >= since);
            let chosen =
                all.into_iter().filter(|run| run.problem.is_some() || is_late(run.last_activity));
            let chosen = chosen.map(|run| run.run).filter(|run| !gone.contains(run));
            return Ok(chosen.chain(gone.iter().cloned()).collect());
        }
        let mut runs: Vec<RunId> = Vec::new();
        for word in &self.words {
            let run = match gone.iter().find(|run| run.as_str() == word) {
                Some(run) => run.clone(),
                None => named::find(store, word)?,
            };
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
        Ok(runs)
    }

    /// Tells whether an agent is one of those that are meant: by its path, or by its name alone; whoever was started
    /// by itself has a name too.
    fn means_agent_of(&self, entry: &Entry, started_as: Option<&str>) -> bool {
        let Some(pattern) = &self.agent else { return true };
        let (path, label) = (entry.agent.as_str(), entry.agent_label.as_str());
        let own = started_as.filter(|_| !path.contains('/'));
        let names = [path, label, last_part(path), last_part(label)];
        names.into_iter().chain(own).any(|name| wildcard(pattern, name))
    }

    fn is_wanted(&self, entry: &Entry, now: Timestamp) -> bool {
        let fits = |pattern: &Option<String>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| wildcard(pattern, text))
        };
        let act = match &entry.act {
            Act::Call(call) => {
                fits(&self.tool, &call.tool) && (!self.denied || call.outcome == Outcome::Denied)
            }
            _ => self.tool.is_none() && !self.denied,
        };
        act && self.since.is_none_or(|since| entry.ts >= since.begin(now))
            && self.until.is_none_or(|until| entry.ts <= until.end(now))
    }
}

/// The agents that were seen.
#[derive(Debug, Default)]
struct Agents {
    names: BTreeSet<String>,
    one_was_meant: bool,
}

impl Agents {
    fn note(&mut self, entry: &Entry, started_as: Option<&str>, is_meant: bool) {
        self.one_was_meant |= is_meant;
        let path = entry.agent.as_str();
        let own = started_as.filter(|_| !path.contains('/'));
        self.names.extend([path].into_iter().chain(own).map(str::to_owned));
    }

    /// That nothing was done by somebody whom nobody knows says nothing.
    fn unknown(&self, pattern: &str) -> String {
        let names: Vec<&str> = self.names.iter().take(MOST_NAMES).map(String::as_str).collect();
        let more = if self.names.len() > MOST_NAMES { ", …" } else { "" };
        match names.as_slice() {
            [] => format!("no agent did anything here, so none is called `{pattern}`"),
            _ => format!(
                "no agent here is called `{pattern}`; there are: {}{more}",
                names.join(", ")
            ),
        }
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

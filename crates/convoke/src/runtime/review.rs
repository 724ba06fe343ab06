//! What there is to say about an agent in this configuration: what it names that there is not, and what of
//! its limits it does not get.
//!
//! Whether a definition holds together is checked where it is read. Here it meets the tools, agents and limits
//! of one configuration. Everything is said at once.

use std::collections::BTreeSet;
use std::fmt::Display;

use convoke_agent::check::{MAIN, check};
use convoke_agent::definition::AgentDefinition;
use convoke_agent::files::{AgentOrigin, AgentSource, tool_here};
use convoke_agent::{DELEGATE_TO_AGENT, shipped};
use convoke_core::nearest::{did_you_mean, nearest};
use convoke_core::{Kind, Mode};
use convoke_journal::export::amounts;
use convoke_tool::Selection;

use super::{AgentCallError, Runtime};

/// Something to know about an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remark {
    /// Whether it is wrong, and not only good to know.
    pub is_problem: bool,
    /// What the key may be called in a file that it is about; none, if it is about the whole file.
    pub keys: &'static [&'static str],
    /// What there is to know.
    pub message: String,
}

impl Remark {
    fn problem(keys: &'static [&'static str], message: impl Into<String>) -> Self {
        Self { is_problem: true, keys, message: message.into() }
    }

    fn warning(keys: &'static [&'static str], message: impl Into<String>) -> Self {
        Self { is_problem: false, keys, message: message.into() }
    }
}

/// A limit of an agent that is more than it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CutLimit {
    /// What the key may be called in a file.
    pub keys: &'static [&'static str],
    /// What it asks for.
    pub wanted: String,
    /// What it gets.
    pub given: String,
    /// The setting that says so.
    pub setting: &'static str,
}

impl Display for CutLimit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} → {} ({})", self.wanted, self.given, self.setting)
    }
}

const NAME: &[&str] = &["name"];
const TOOLS: &[&str] = &["tools", "permission"];
const AGENTS: &[&str] = &["agents", "tools"];
const COMMANDS: &[&str] = &["commands", "tools", "permission"];
const RULES: &[&str] = &["rules", "permissions", "permission"];
const TURNS: &[&str] = &["max_turns", "steps", "max_steps", "budget"];
const TIME: &[&str] = &["max_time_minutes", "timeout_mins", "budget"];
const BUDGET: &[&str] = &["budget"];

impl Runtime {
    /// Says what there is to know about an agent here. `beside` are the names of agents that it may name
    /// although they are not there: those that are checked with it.
    pub fn review_agent(&self, agent: &AgentDefinition, beside: &BTreeSet<String>) -> Vec<Remark> {
        let mut remarks = self.review_tools(agent);
        if self.registry.has(&agent.name) {
            let message = format!(
                "a tool is called `{0}` as well, and `{0}` in what is shown may be either; rename the agent",
                agent.name
            );
            remarks.push(Remark::warning(NAME, message));
        }
        remarks
            .extend(agent.agents.iter().filter_map(|name| self.review_called(agent, name, beside)));
        // What is wrong with the rules themselves was said where they were read.
        if let (Err(error), Ok(_)) = (self.authority_of(&agent.policy), check(agent)) {
            remarks.push(Remark::problem(RULES, error.to_string()));
        }
        remarks.extend(self.review_commands(agent));
        let cut = self.cut_limits(agent);
        remarks.extend(cut.iter().map(|cut| Remark::warning(cut.keys, cut.to_string())));
        remarks
    }

    fn review_tools(&self, agent: &AgentDefinition) -> Vec<Remark> {
        let missing = self.tools_missing(agent);
        let patterns =
            agent.tools.allow.iter().flatten().map(convoke_agent::definition::ToolChoice::name);
        let fits_none = |pattern: &&str| {
            self.ceiling().select(&Selection::only([(*pattern).to_owned()])).is_err()
        };
        let unfitting = patterns.filter(|name| name.contains(['*', ':'])).filter(fits_none);
        let remark = |name: &String| {
            let why = self.why_missing(name);
            // What there is and the main agent cannot have is left out of what it gets.
            if self.registry.has(name) {
                Remark::warning(TOOLS, why)
            } else {
                Remark::problem(TOOLS, why)
            }
        };
        let mut remarks: Vec<Remark> =
            missing
                .iter()
                .map(remark)
                .chain(unfitting.map(|pattern| {
                    Remark::problem(TOOLS, format!("no tool fits `{pattern}` here"))
                }))
                .collect();
        let is_told = remarks.iter().any(|remark| remark.is_problem);
        if let (false, Err(why)) = (is_told, self.tools_of(agent)) {
            remarks.push(Remark::problem(TOOLS, why));
        }
        remarks
    }

    /// Says it where an agent has commands that it can never run.
    fn review_commands(&self, agent: &AgentDefinition) -> Option<Remark> {
        let commands = agent.policy.commands.as_ref().filter(|commands| !commands.is_empty())?;
        let these = commands.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
        if agent.policy.mode == Some(Mode::Plan) {
            let message = format!(
                "{these} can never run: in mode `plan` no program does; write another mode, such as `default`"
            );
            return Some(Remark::warning(COMMANDS, message));
        }
        let tools = self.tools_of(agent).ok()?;
        let runs = tools.list().iter().any(|tool| {
            let spec = tool.spec();
            spec.kind == Kind::Execute || spec.starts_programs
        });
        (!runs).then(|| {
            let message = format!("{these} can never run: none of its tools runs commands");
            Remark::warning(COMMANDS, message)
        })
    }

    /// Says why there is no tool of a name.
    fn why_missing(&self, name: &str) -> String {
        if self.callable.get(name).is_some() {
            return format!("the tool `{name}` is not one of `tools.enabled`");
        }
        if self.registry.has(name) {
            return format!("the tool `{name}` is excluded by `tools.exclude`");
        }
        if self.known_agent(name).is_ok() {
            return format!("`{name}` is an agent, not a tool; write `agents: [{name}]`");
        }
        if name == DELEGATE_TO_AGENT {
            return format!(
                "an agent that may call others names them, and not `{name}`; write `agents: [NAME]`"
            );
        }
        if let Some(here) = tool_here(name).filter(|here| here != name) {
            return format!("there is no tool `{name}` here; did you mean `{here}`?");
        }
        let tools = self.ceiling().list();
        let close = nearest(name, tools.iter().map(|tool| tool.spec().name.as_str()));
        format!("there is no tool `{name}` here{}", did_you_mean(&close))
    }

    fn review_called(
        &self,
        agent: &AgentDefinition,
        name: &str,
        beside: &BTreeSet<String>,
    ) -> Option<Remark> {
        if name == agent.name {
            let message = format!("`{name}` is left out: an agent cannot call itself");
            return Some(Remark::warning(AGENTS, message));
        }
        if name == MAIN {
            let message = format!(
                "`{MAIN}` is left out: it is the first agent of every run, and nobody can call it"
            );
            return Some(Remark::warning(AGENTS, message));
        }
        match self.find_agent(name) {
            Ok(_) => None,
            Err(error @ AgentCallError::SwitchedOff { .. }) => {
                Some(Remark::warning(AGENTS, error.to_string()))
            }
            Err(_) if beside.contains(name) => None,
            // It works without.
            Err(error) => Some(Remark::warning(AGENTS, error.to_string())),
        }
    }

    /// Returns the limits of an agent that the budget of a run cuts.
    pub fn cut_limits(&self, agent: &AgentDefinition) -> Vec<CutLimit> {
        let (run, most) = (&agent.run, self.config.budget.budget());
        let count = |number: u64| number.to_string();
        [
            cut(TURNS, "budget.turns", run.max_turns, Some(most.turns), |it| count(it.into())),
            cut(TIME, "budget.time", run.max_time, Some(most.time_ms.get()), amounts::time),
            cut(BUDGET, "budget.tokens", run.max_tokens, most.tokens, count),
            cut(BUDGET, "budget.cost", run.max_cost, most.cost, amounts::money),
            cut(BUDGET, "budget.toolCalls", run.max_tool_calls, most.tool_calls, |it| {
                count(it.into())
            }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn cut<T: Ord + Copy>(
    keys: &'static [&'static str],
    setting: &'static str,
    wanted: Option<T>,
    most: Option<T>,
    shown: impl Fn(T) -> String,
) -> Option<CutLimit> {
    let (wanted, most) = (wanted?, most?);
    (most < wanted).then(|| CutLimit { keys, wanted: shown(wanted), given: shown(most), setting })
}

/// Says it where a project's agent takes the place of one that comes with Convoke: whoever knows that name
/// expects another.
pub fn replaces_shipped(agent: &AgentDefinition, source: &AgentSource) -> Option<String> {
    let is_shipped = || shipped::all().iter().any(|one| one.name == agent.name);
    let replaces = source.origin == AgentOrigin::Project && is_shipped();
    replaces.then(|| {
        format!(
            "the project's agent `{0}` takes the place of the `{0}` that comes with Convoke",
            agent.name
        )
    })
}

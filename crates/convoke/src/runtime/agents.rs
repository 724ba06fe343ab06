//! The agents that runs of a runtime can call: those of the program, those in files, those that come with
//! Convoke.
//!
//! Files are read when agents are first needed. Before that, a runtime knows only where they would be.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use convoke_agent::definition::AgentDefinition;
use convoke_agent::files::{AgentDirectory, FileNote, LoadReport, ProjectTrust, load};
use convoke_agent::registry::RegistryError;
use convoke_agent::{
    AgentOverride, AgentRegistry, BACKGROUND_AGENTS, DELEGATE_TO_AGENT, Delegation, Team, Toolbox,
    shipped,
};
use convoke_core::Budget;
use convoke_core::policy::wildcard;
use convoke_tool::ToolView;

use super::Runtime;
use super::review::replaces_shipped;
use super::servers::{without_missing_servers, without_servers_of_overrides};
use super::supply::Supply;

/// Those that come with Convoke and are there without anybody saying so. The others change files.
const ON_BY_DEFAULT: &[&str] = &["codebase_investigator", "generalist"];

/// The tools by which agents are called.
pub(super) const AGENT_TOOLS: &[&str] = &[DELEGATE_TO_AGENT, BACKGROUND_AGENTS];

/// The agents of a runtime, as far as they were needed.
#[derive(Debug)]
pub(super) struct Agents {
    registry: AgentRegistry,
    directories: Vec<AgentDirectory>,
    trust: ProjectTrust,
    found: OnceLock<Found>,
}

/// What came of looking for agents.
#[derive(Debug)]
struct Found {
    team: Team,
    report: LoadReport,
    /// What settings made unusable.
    unusable: Vec<RegistryError>,
    /// What settings say about agents and servers that there are not.
    unknown: Vec<String>,
}

impl Agents {
    pub(super) fn new(
        of_program: Vec<AgentDefinition>,
        directories: Vec<AgentDirectory>,
        trust: ProjectTrust,
    ) -> Result<Self, RegistryError> {
        let registry = AgentRegistry::new();
        for definition in of_program {
            registry.replace(definition)?;
        }
        Ok(Self { registry, directories, trust, found: OnceLock::new() })
    }

    /// No agents.
    pub(super) fn none() -> Self {
        let registry = AgentRegistry::new();
        let (directories, trust) = (Vec::new(), ProjectTrust::Untrusted);
        Self { registry, directories, trust, found: OnceLock::new() }
    }

    fn look(&self, runtime: &Runtime) -> Found {
        let config = &runtime.config.agents;
        let mut overrides = config.overrides();
        let missing = without_servers_of_overrides(&mut overrides, &runtime.config);
        let (_, mut unusable) = self.registry.load_shipped(&with_defaults(&overrides));
        let mut report = load(&self.directories, self.trust);
        let left_out = report.shadowed.iter_mut().map(|shadowed| &mut shadowed.left_out);
        for loaded in report.loaded.iter_mut().chain(left_out) {
            without_missing_servers(loaded, &runtime.config);
        }
        unusable.extend(self.registry.replace_all(&mut report, &overrides).1);
        let mut unknown = self.registry.unknown_overrides(&overrides);
        unknown.extend(missing);
        let team = Team::builder(self.registry.clone())
            .supplier(Supply::of(runtime))
            .delegation(config.delegation())
            .limits(config.limits())
            .background(config.background)
            .exclude(config.exclude.clone());
        let team = match &config.allow {
            Some(names) => team.allow(names.clone()),
            None => team,
        };
        Found { team: team.build(), report, unusable, unknown }
    }
}

/// Switches those off that are there only if somebody says so. A file may take the name of such a one: it is
/// then what the file says, and there.
fn with_defaults(overrides: &BTreeMap<String, AgentOverride>) -> BTreeMap<String, AgentOverride> {
    let mut all = overrides.clone();
    for definition in shipped::all() {
        let is_on = ON_BY_DEFAULT.contains(&definition.name.as_str());
        all.entry(definition.name).or_default().enabled.get_or_insert(is_on);
    }
    all
}

impl Runtime {
    fn found(&self) -> &Found {
        self.agents.found.get_or_init(|| self.agents.look(self))
    }

    /// Returns the agents there are.
    pub fn agents(&self) -> &AgentRegistry {
        self.found().team.registry()
    }

    /// Returns the agents that runs can call, and how.
    pub fn team(&self) -> &Team {
        &self.found().team
    }

    /// Returns tools and agents side by side.
    pub fn toolbox(&self) -> Toolbox {
        Toolbox::new(self.callable.clone(), Some(self.team().clone()))
    }

    /// Returns what came of reading the files of agents.
    pub fn agent_files(&self) -> &LoadReport {
        &self.found().report
    }

    /// Returns what people should know about agents that are not there or not what one would think: files that
    /// are wrong or not trusted, names that are taken, settings that cannot be used.
    pub fn agent_warnings(&self) -> Vec<String> {
        let Found { report, unusable, unknown, .. } = self.found();
        let files = report.notices.iter().chain(&report.problems).map(ToString::to_string);
        let shadowed = report.shadowed.iter().map(ToString::to_string);
        let unusable = unusable.iter().map(|error| format!("agents.overrides: {error}"));
        let unknown = unknown.iter().map(|text| format!("agents.overrides: {text}"));
        let replacing = report.loaded.iter().filter_map(|loaded| {
            let message = replaces_shipped(&loaded.definition, &loaded.source)?;
            Some(FileNote::new(&loaded.source.path, message).to_string())
        });
        files.chain(shadowed).chain(replacing).chain(unusable).chain(unknown).collect()
    }

    /// Returns the tools an agent has below the main one.
    pub fn tools_of(&self, agent: &AgentDefinition) -> Result<ToolView, String> {
        agent.tools_below(&self.offered, self.ceiling())
    }

    /// Returns the names of tools that an agent asks for and cannot have below the main one.
    pub fn tools_missing(&self, agent: &AgentDefinition) -> Vec<String> {
        agent.tools_missing(self.ceiling())
    }

    /// Returns what an agent may use below a main one that has used nothing yet.
    pub fn budget_of(&self, agent: &AgentDefinition) -> Budget {
        agent.budget_below(&self.config.budget.budget())
    }

    /// Tells whether the main agent may call agents: where its tools were chosen, only if the tool for that
    /// is one of them.
    pub fn calls_agents(&self) -> bool {
        let tools = &self.config.tools;
        let names =
            |pattern: &String| pattern == "category:agent" || wildcard(pattern, DELEGATE_TO_AGENT);
        self.config.agents.delegation() != Delegation::Off
            && tools.enabled.as_ref().is_none_or(|enabled| enabled.iter().any(names))
            && !tools.exclude.iter().any(names)
    }

    /// Returns the tools that agents may ask for by name: where somebody chose the tools, those.
    pub(super) fn ceiling(&self) -> &ToolView {
        match self.config.tools.enabled {
            Some(_) => &self.offered,
            None => &self.callable,
        }
    }
}
